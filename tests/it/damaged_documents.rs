//! Documents of all kinds: correct, damaged, and hostile.
//!
//! For any content of a `SKILL.md`, its reader neither panics nor hangs, and explains what it
//! cannot read. The real program lists each hostile skill with a reason, and continues.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use skills::frontmatter::{self, Frontmatter};

use crate::harness::{Outcome, Reply, Server, Test, seconds};

/// Typical documents, each read without a finding.
const CORRECT: [&str; 12] = [
    "---\nname: plain\ndescription: Sorts the mail into folders. Use it on Mondays.\n---\n\n# Plain\n\nText.\n",
    "\u{feff}---\r\nname: windows\r\ndescription: >-\r\n  Saved by an editor\r\n  on another system.\r\n\r\n  Second part.\r\nlicense: MIT\r\n---\r\n# Windows\r\n",
    "---\nname: 'single'\ndescription: 'It''s here: quoted # no comment'\nmetadata:\n  author: \"Zo\\u00eb\"\n  version: \"1.10\"\n---\nBody\n",
    "---\nname: double\ndescription: \"Tabs\\tand \\\"quotes\\\", a long \\\n  line, \\x41 \\U0001F600 and \\/ paths\"\nallowed-tools: [Read, 'Write', \"Run(python:*)\"]\n---\nBody\n",
    "---\nname: literal\ndescription: |\n  First line: with a colon.\n    Indented more.\n\n  After a gap.\nargument-hint: [topic: rivers | lakes]\n---\nBody\n",
    "---\n# The owner's remark.\nname: folded   # behind a value\ndescription: >+\n\n  One\n  two\n\n\n  three\n   - kept\n\n\nversion: 2.0\n---\n",
    "---\nname: nested\ndescription: Maps in lists in maps\nhooks:\n  before:\n    - match: \"*.csv\"\n      run:\n      - {command: check, args: [--strict, 3, yes, ~]}\n      - - deep\n        - {a: {b: {c: []}}}\n  after: {}\nwhen: 2024-02-29\n---\nBody\n",
    "---\nname: typed\ndescription: 3000 words, counted\nnumbers: [1, 0x1F, 012, 1_000, -2.5e+3, 1:30, .5, 1e3]\nwords: [yes, Off, null, ~, y, NaN]\n---\nBody\n",
    "---\nname: 多言語\ndescription: Прочитай файл 📄 — naïve café, 日本語の説明。\ntags:\n- données\n- 資料\n---\n# Überschrift\n",
    "---\nname: spread\ndescription:\n  starts below its key\n  and goes on\n\n  for three lines\nmetadata: {\n  owner: me, # inside\n  list: [\n    a,\n    b\n  ]}\n---   \n\n```bash\npython scripts/run.py --- \"$1\"\n```\n",
    "---\n\"name\": json\n'description': \"Keys in quotes\"\nextra: {\"a\":[1,{\"b\":null}],\"c\":true}\n---\nBody\n---\nMore\n---\n",
    "---\nname: long\ndescription: >\n  one two three four five six seven eight nine ten one two three four five\n  one two three four five six seven eight nine ten one two three four five\n  one two three four five six seven eight nine ten one two three four five\ncompatibility: Needs Python 3.11+ (3.9 works); no network\n---\n# Long\n\n## Steps\n\n1. Read.\n2. Write.\n",
];

/// Bytes with a meaning in YAML, in UTF-8 or for lines.
const SPECIAL: [&[u8]; 34] = [
    b":",
    b": ",
    b"- ",
    b"---",
    b"\n---\n",
    b"...",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b"\0",
    b"\x1b[2J",
    b"#",
    b" #",
    b"'",
    b"\"",
    b"\\",
    b"\\u12",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b"|",
    b">-\n",
    b"&a ",
    b"*a",
    b"!!str ",
    b"? ",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    "\u{feff}".as_bytes(),
    "\u{2028}".as_bytes(),
];

#[test]
fn correct_documents_have_no_finding() {
    for document in CORRECT {
        let front = frontmatter::parse(document);
        assert_eq!(front.diagnostics, [], "{document:?}");
        assert!(front.name().is_some() && front.description().is_some(), "{document:?}");
        let body = &document[front.body_start..];
        assert!(
            !body.contains("name:") && document[..front.body_start].trim_end().ends_with("---")
        );
    }
}

/// Each document gives fields or a finding, and never a panic.
#[test]
fn damaged_documents_are_read_or_explained() {
    let mut random = Random(0x5eed);
    let (mut repaired, mut lost) = (0, 0);
    for _ in 0..10_000 {
        let document = damaged(&mut random);
        let shown = OnPanic(&document);
        let begun = Instant::now();
        let front = frontmatter::parse_head(&document, true).expect("it is the whole document");
        assert_consistent(&document, &front);
        // Discovery reads a piece first, which may be too short.
        let piece = random.below(document.len() + 1);
        if let Some(front) = frontmatter::parse_head(&document[..piece], false) {
            assert_consistent(&document[..piece], &front);
        }
        assert!(begun.elapsed() < seconds(5.0), "it took {:?}", begun.elapsed());
        repaired += usize::from(front.description().is_some() && !front.diagnostics.is_empty());
        lost += usize::from(front.description().is_none());
        drop(shown);
    }
    // The test proves something only if some damage is repaired and some is not.
    assert!(repaired > 3000 && lost > 500, "{repaired} repaired, {lost} lost");
}

/// Asserts the rules for every result of reading a document.
fn assert_consistent(document: &[u8], front: &Frontmatter) {
    let text = String::from_utf8_lossy(document);
    let lines = 1 + text.replace("\r\n", "\n").matches(['\n', '\r']).count();
    for finding in &front.diagnostics {
        assert!((1..=lines).contains(&finding.line), "{finding:?} of {lines} lines");
        assert!(!finding.message.is_empty() && finding.message.len() < 400);
    }
    let names = |rule: &str| front.diagnostics.iter().any(|finding| finding.rule.name() == rule);
    let is_absent = names("no-frontmatter");
    let is_lost = |missing| is_absent || names(missing) || names("field-type");
    assert!(front.name().is_some() || is_lost("missing-name"));
    assert!(front.description().is_some() || is_lost("missing-description"));
    let head = document.get(..front.body_start).expect("the body begins in the document");
    assert!(std::str::from_utf8(head).is_ok(), "the body begins inside a character");
    if let Ok(text) = std::str::from_utf8(document) {
        let body = frontmatter::first_line_of_text(&text[front.body_start..]);
        assert!(body.is_none_or(|line| text.contains(line)));
    }
}

/// A correct document with one to six random changes.
fn damaged(random: &mut Random) -> Vec<u8> {
    let mut document = random.choose(&CORRECT).as_bytes().to_vec();
    for _ in 0..=random.below(6) {
        // Most changes are made in the frontmatter.
        let reach = if random.below(4) == 0 { document.len() } else { document.len().min(200) };
        let at = random.below(reach + 1);
        match random.below(9) {
            0 if at < document.len() => document[at] ^= 1 << random.below(8),
            1 => document.truncate(at),
            2 => drop(document.drain(at..(at + random.below(20)).min(document.len()))),
            3..5 => insert(&mut document, at, random.choose::<&[u8]>(&SPECIAL)),
            5 => disorder_lines(&mut document, random),
            6 => {
                let byte = u8::try_from(random.below(256)).unwrap_or_default();
                insert(&mut document, at, &[byte]);
            }
            7 => {
                let pieces: [&[u8]; 8] =
                    [b"[", b"{a: ", b"- ", b"a:\n ", b" ", b"x", b"\n", b"\xf0\x9f"];
                let times = *random.choose(&[3, 70, 300, 3000]);
                let run = random.choose(&pieces).repeat(times);
                insert(&mut document, at, &run);
            }
            _ => {
                let other = random.choose(&CORRECT).as_bytes();
                let from = random.below(other.len());
                let to = from + random.below(other.len() - from);
                insert(&mut document, at, &other[from..to]);
            }
        }
    }
    document
}

fn insert(document: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    document.splice(at..at, bytes.iter().copied());
}

/// Swaps two lines, or repeats, removes or indents one.
fn disorder_lines(document: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> =
        document.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let (one, other) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(5) {
        0 => lines.swap(one, other),
        1 => lines.insert(other, lines[one].clone()),
        2 => drop(lines.remove(one)),
        3 => lines[one].insert(0, *random.choose(b" \t")),
        _ if lines[one].starts_with(b" ") => drop(lines[one].remove(0)),
        _ => lines[one].extend_from_slice(b"  \n"),
    }
    *document = lines.concat();
}

/// Hundreds of hostile skills in the real program: all are listed, those without a description
/// with a reason, and each can be loaded or is refused.
#[test]
#[ignore = "long"]
fn hostile_skills_are_listed_with_a_reason() {
    let mut random = Random(0xfeed);
    let mut test = Test::new();
    let mut expected = BTreeSet::new();
    for (name, content) in special_documents() {
        test = test.file(&format!("skills/{name}/SKILL.md"), content);
        expected.insert(name.to_owned());
    }
    for number in 0..260 {
        let name = format!("damaged-{number:03}");
        test = test.file(&format!("skills/{name}/SKILL.md"), damaged(&mut random));
        expected.insert(name);
    }
    let test = with_special_files(test);
    expected.extend(SPECIAL_FILES.map(|(name, _)| name.to_owned()));
    let listed = list(&test, &expected);
    for (name, reason) in SPECIAL_FILES {
        let found = listed.iter().find(|(listed, _)| listed == name).map(|(_, text)| text.as_str());
        assert!(
            found.is_some_and(|text| text.contains(reason)),
            "{name}: {found:?} lacks {reason:?}"
        );
    }
    for (name, content) in fetch_all(&test, &expected) {
        let is_text = content.starts_with("Base directory for this skill: ");
        let is_error =
            content.starts_with("{\"error\":\"") && content.contains(&name.replace('"', "\\\""));
        assert!(is_text != is_error, "{name}: {content:.300}");
        let is_special_file = SPECIAL_FILES.iter().any(|(special, _)| *special == name);
        assert!(!is_special_file || is_error, "{name}: {content:.300}");
        assert!(
            !name.starts_with("no-text") || content.contains("not UTF-8"),
            "{name}: {content:.300}"
        );
        assert!(!name.starts_with("huge") || content.contains("1 MiB"), "{name}: {content:.300}");
    }
}

/// Regular files with strange content as documents, with their skills' names.
fn special_documents() -> Vec<(&'static str, Vec<u8>)> {
    let all_bytes: Vec<u8> = (0..=255).collect();
    let head = "---\nname: x\ndescription: ";
    let long = |piece: &str, count: usize| format!("{head}{}", piece.repeat(count)).into_bytes();
    vec![
        ("empty", Vec::new()),
        ("nul", vec![0; 5000]),
        ("no-text-bytes", all_bytes.repeat(20)),
        ("no-text-latin", b"---\nname: x\ndescription: caf\xe9\n---\n".to_vec()),
        (
            "no-text-utf16",
            "\u{feff}---\nname: x\n".encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ),
        ("huge-line", long("x", 2 << 20)),
        ("huge-lines", long("a: [\n", 500_000)),
        ("huge-body", format!("{head}short\n---\n{}", "text\n".repeat(500_000)).into_bytes()),
        ("deep", long("[", 100_000)),
        ("deep-dashes", format!("---\nname: x\na: {}", "- ".repeat(100_000)).into_bytes()),
        ("never-closed", long("\"\n ", 100_000)),
        ("one-dash", b"-".to_vec()),
        ("dashes", b"---".to_vec()),
        ("dashes-only", "---\n".repeat(10_000).into_bytes()),
        ("line-ends", "\r".repeat(10_000).into_bytes()),
        (
            "escapes",
            b"---\nname: \"\\x1b[2J\"\ndescription: \"\\0\\a\\x1b]0;t\\a\"\n---\n\x1b[31m".to_vec(),
        ),
        ("white space 'and' \"quotes\"", b"---\nname: x\ndescription: y\n---\n".to_vec()),
        ("zwölf-📁", b"---\nname: x\ndescription: y\n---\n".to_vec()),
        ("line\nend", b"---\nname: x\ndescription: y\n---\n".to_vec()),
    ]
}

/// Skills whose document is not a readable file, and their text in the list.
const SPECIAL_FILES: [(&str, &str); 7] = [
    ("z-device", "leads out"),
    ("z-dangling", "SKILL.md"),
    ("z-fifo", "FIFO"),
    ("z-folder", "folder"),
    ("z-loop", "circle"),
    ("z-outside", "leads out"),
    ("z-socket", "socket"),
];

fn with_special_files(test: Test) -> Test {
    let test = test
        .link("skills/z-device/SKILL.md", "/dev/zero")
        .link("skills/z-dangling/SKILL.md", "nowhere")
        .folder("skills/z-fifo")
        .folder("skills/z-folder/SKILL.md")
        .link("skills/z-loop/SKILL.md", "SKILL.md")
        .file("secret", "outside")
        .link("skills/z-outside/SKILL.md", "../../secret")
        .folder("skills/z-socket");
    let fifo = test.path("skills/z-fifo/SKILL.md");
    let made = std::process::Command::new("mkfifo").arg(fifo).status();
    assert!(made.is_ok_and(|status| status.success()), "the program mkfifo exists");
    // The socket's file remains after the listener is closed.
    let socket = std::os::unix::net::UnixListener::bind(test.path("skills/z-socket/SKILL.md"));
    socket.expect("a short path");
    test
}

/// The names and descriptions of all skills, listed in parts that fit the limit of one list. No
/// description is empty.
fn list(test: &Test, expected: &BTreeSet<String>) -> Vec<(String, String)> {
    let names: Vec<&String> = expected.iter().collect();
    let mut listed = Vec::new();
    for (number, piece) in names.chunks(50).enumerate() {
        let folder = test.path(format!("piece-{number}"));
        fs::create_dir(&folder).expect("the folder is new");
        for name in piece {
            fs::rename(test.path("skills").join(name), folder.join(name))
                .expect("the skill's folder");
        }
        let run =
            tool(&test.next_run().env("SKILLS_FOLDER_PATH", &folder), "list_skills", &json!({}));
        let list = run.success().stdout_json();
        assert_eq!(list["note"], Value::Null, "the list is complete");
        for skill in list["skills"].as_array().expect("a list") {
            let text = |field: &str| skill[field].as_str().expect("text").to_owned();
            let (name, description) = (text("name"), text("description"));
            assert!(description.len() <= 4100, "{name}: {description:?}");
            listed.push((name, description));
        }
    }
    let found: Vec<&String> = listed.iter().map(|(name, _)| name).collect();
    assert_eq!(found, names);
    listed
}

/// The results of `get_skill` for all skills, in one run.
fn fetch_all(test: &Test, names: &BTreeSet<String>) -> Vec<(String, String)> {
    let calls: Vec<String> =
        names.iter().map(|name| json!({"skill_name": name}).to_string()).collect();
    let batches = calls
        .chunks(100)
        .map(|batch| Reply::calls(batch.iter().map(|call| ("get_skill", call.as_str()))));
    let server = Server::start(batches.chain([Reply::text("done")]));
    let pieces = (0..names.len().div_ceil(50)).map(|number| test.path(format!("piece-{number}")));
    let folders = std::env::join_paths(pieces).expect("no colon in a temporary folder");
    let run = test.next_run().endpoint(&server).env("SKILLS_FOLDER_PATH", folders);
    run.args(["go"]).timeout(seconds(60.0)).run().success().stdout("done\n");
    let requests = server.finish();
    let results = requests.last().expect("a request").messages().iter();
    let contents = results.filter(|message| message["role"] == "tool");
    let contents = contents.map(|message| message["content"].as_str().expect("text").to_owned());
    let fetched: Vec<(String, String)> = names.iter().cloned().zip(contents).collect();
    assert_eq!(fetched.len(), names.len());
    fetched
}

fn tool(test: &Test, name: &str, arguments: &Value) -> Outcome {
    test.next_run().args(["tool", name, &arguments.to_string()]).run()
}

/// A small random number generator (`SplitMix64`), the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `limit`, which must not be 0.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("smaller than a usize")
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Prints the document on which a test failed.
struct OnPanic<'d>(&'d [u8]);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let end = self.0.len().min(2000);
            eprintln!("the document: {:?}", String::from_utf8_lossy(&self.0[..end]));
        }
    }
}
