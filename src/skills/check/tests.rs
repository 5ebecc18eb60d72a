//! Every rule of the table, found where it is broken and nowhere else.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use crate::skills::Skills;
use crate::world::clock::thread_time;
use crate::world::confined::Root;
use crate::world::scratch::Scratch;

/// A skill in a folder of its own, which is gone with it.
pub(super) struct Bench {
    scratch: Scratch,
    name: &'static str,
}

impl Bench {
    pub(super) fn new(name: &'static str) -> Bench {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        fs::create_dir(scratch.path().join(name)).unwrap();
        Bench { scratch, name }
    }

    pub(super) fn path(&self) -> std::path::PathBuf {
        self.scratch.path().join(self.name)
    }

    pub(super) fn write(self, file: &str, content: impl AsRef<[u8]>) -> Bench {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(super) fn skill(&self) -> Skill {
        Skill {
            name: self.name.to_owned(),
            address: self.name.to_owned(),
            path: self.path(),
            root: Root::open(&self.path()).unwrap(),
        }
    }

    /// What is found, each as `file:line rule`.
    pub(super) fn found(&self) -> Vec<String> {
        let show = |problem: Problem| {
            let line = problem.line.map_or("-".to_owned(), |line| line.to_string());
            format!("{}:{line} {}", problem.file.display(), problem.rule)
        };
        check(&self.skill()).into_iter().map(show).collect()
    }
}

/// A document of the skill `a` with these further lines in its frontmatter.
fn with(lines: &str) -> String {
    format!("---\nname: a\ndescription: does b\n{lines}---\nDo it.\n")
}

fn document(text: impl AsRef<[u8]>) -> Vec<String> {
    Bench::new("a").write("SKILL.md", text).found()
}

#[test]
fn a_good_skill_has_no_problem() {
    let text = "---\r\nname: a\r\ndescription: >-\r\n  Does b: well.\r\nlicense: MIT\r\n\
                compatibility: Python 3.9\r\nmetadata:\r\n  version: \"1.0\"\r\n\
                allowed-tools: Bash(git:*, jq) Read\r\nargument-hint: [topic]\r\nversion: 2\r\n\
                tags: [x]\r\nwhatever: 1\r\n---\r\nRead [it](references/x.md).\r\n";
    let bench = Bench::new("a")
        .write("SKILL.md", text)
        .write("references/x.md", "x")
        .write("assets/logo.png", b"\x89PNG\r\n\x1a\n\0\0")
        .write("assets/form.docx", b"PK\x03\x04\0\0")
        .write("notes.a", "notes that are text")
        .write("__pycache__/x.pyc", b"\0\0")
        .write("node_modules/b/SKILL.md", "---");
    assert_eq!(bench.found(), [""; 0]);
}

/// What breaks each rule of the document and its fields: text, then findings.
#[allow(clippy::too_many_lines, reason = "a table, told in order")]
fn documents() -> Vec<(String, &'static [&'static str])> {
    let long = |count| "é".repeat(count);
    vec![
        (format!("\u{feff}{}", with("")), &["1 byte-order-mark"]),
        (format!("\n\n{}", with("")), &["1 late-frontmatter"]),
        (
            format!("{}a\u{200b}b\nc\u{e0041}\n👨\u{200d}👩\n", with("")),
            &["6 invisible-character", "7 invisible-character"],
        ),
        (format!("```markdown\n{}```\n", with("")), &["1 fenced-frontmatter"]),
        ("# A\nText\n".into(), &["1 no-frontmatter"]),
        ("---\nname: a\ndescription: b\n\nBody\n".into(), &["1 unclosed-frontmatter"]),
        ("---\nname: a\ndescription: b\n---\n \n".into(), &["5 empty-body"]),
        (with("x: Use when: now\n"), &["4 unquoted-colon"]),
        (with("x: @home\n"), &["4 reserved-character"]),
        (with("x: *bold* words\n"), &["4 anchor-alias-tag"]),
        (with("x: <<\n"), &["4 ambiguous-value"]),
        (with("x: [a] [b]\n"), &["4 text-after-value"]),
        (with("x: \"open\n"), &["4 unclosed-quote"]),
        (with("x: [open\n"), &["4 unclosed-bracket"]),
        (with("x: \"C:\\windows\"\n"), &["4 bad-escape"]),
        (with("x: ]\n"), &["4 bad-flow"]),
        (with("x: | text\n"), &["4 bad-block"]),
        (with("x: ? y\n"), &["4 complex-key"]),
        (with(&format!("{}: y\n", "k".repeat(2000))), &["4 long-key"]),
        (with(&format!("x: {}\n", "[".repeat(100))), &["4 too-deep"]),
        (with("x:\n\ty: z\n"), &["5 tab"]),
        (with("x:\n    y: z\n  w: v\n"), &["6 indentation"]),
        (with(" license: MIT\n"), &["4 indented-field"]),
        (with(" licence: MIT\n"), &["4 field-in-text"]),
        (with("license:MIT\n"), &["4 not-a-field"]),
        (with("license: MIT\nlicense: MIT\n"), &["5 duplicate-key"]),
        (with("name: b\n"), &["4 duplicate-key", "4 name-folder"]),
        (with("name: 3\n"), &["4 duplicate-key", "4 field-type", "4 name-folder"]),
        ("---\nname: b\ndescription: c\nname: a\n---\nDo\n".into(), &["4 duplicate-key"]),
        (
            with(&format!(" compatibility: {}\n", long(501))),
            &["4 compatibility-length", "4 indented-field"],
        ),
        (with("x: y\u{7}\n"), &["4 control-character"]),
        (with("x: y\u{2028}z\n"), &["4 odd-character"]),
        ("---\ndescription: b\n---\nDo\n".into(), &["1 missing-name"]),
        ("---\nname: a\ndescription: ' '\n---\nDo\n".into(), &["3 missing-description"]),
        (
            format!("---\nname: {}\ndescription: b\n---\nDo\n", "b".repeat(65)),
            &["2 name-folder", "2 name-length"],
        ),
        (
            "---\nname: My_Skill\ndescription: b\n---\nDo\n".into(),
            &["2 name-characters", "2 name-folder"],
        ),
        ("---\nname: a--b\ndescription: b\n---\nDo\n".into(), &["2 name-folder", "2 name-hyphens"]),
        ("---\nname: -a\ndescription: b\n---\nDo\n".into(), &["2 name-folder", "2 name-hyphens"]),
        (format!("---\nname: a\ndescription: {}\n---\nDo\n", long(1024)), &[]),
        (
            format!("---\nname: a\ndescription: {}\n---\nDo\n", long(1025)),
            &["3 description-length"],
        ),
        ("---\nname: a\ndescription: [b, c]\n---\nDo\n".into(), &["3 field-type"]),
        ("---\nname: [a]\ndescription: b\n---\nDo\n".into(), &["2 field-type"]),
        (with(&format!("compatibility: {}\n", long(500))), &[]),
        (with(&format!("compatibility: {}\n", long(501))), &["4 compatibility-length"]),
        (with("compatibility: ''\n"), &["4 compatibility-length"]),
        (with("license: [MIT]\n"), &["4 optional-type"]),
        (with("metadata: x\n"), &["4 metadata-type"]),
        (with("metadata:\n  version: 1.0\n"), &["4 metadata-value"]),
        (with("allowed-tools:\n- Read\n"), &["4 allowed-tools-type"]),
        (with("allowed-tools: 5\n"), &["4 allowed-tools-type"]),
        (with("allowed-tools: Read, Bash(git:*)\n"), &["4 allowed-tools-commas"]),
        (with("allowed_tools: Read\n"), &["4 field-typo"]),
        (
            "---\nname: a\ndesciption: b\n---\nDo\n".into(),
            &["1 missing-description", "3 field-typo"],
        ),
        (format!("{}{}", with(""), "x\n".repeat(500)), &["- long-document"]),
        (format!("{}{}", with(""), "x\n".repeat(499)), &[]),
        (format!("{}{}", with(""), "x".repeat(20_001)), &["- long-document"]),
        (format!("{}[x](y.md)", with("")), &["6 dangling-link"]),
        (format!("{}`scripts/y.py`", with("")), &["6 dangling-mention"]),
        (format!("{}[x](../y.md)", with("")), &["6 outside-reference"]),
        (
            format!("{}[x](../../etc/passwd)\n[x](/etc/passwd)", with("")),
            &["6 outside-reference", "7 outside-reference"],
        ),
    ]
}

#[test]
fn every_rule_is_found_where_it_is_broken() {
    let mut seen = BTreeSet::new();
    let mut see = |found: &[String]| {
        for line in found {
            seen.insert(line.rsplit(' ').next().unwrap().to_owned());
        }
    };
    for (text, expected) in documents() {
        let mut found = document(&text);
        found.sort();
        let expected: Vec<String> =
            expected.iter().map(|line| format!("SKILL.md:{line}")).collect();
        let shown: String = text.chars().take(200).collect();
        assert_eq!(found, expected, "{shown:?}");
        see(&found);
    }
    for (bench, expected) in benches() {
        let found = bench.found();
        assert_eq!(found, expected);
        see(&found);
    }
    for problem in clashes().into_iter().chain(no_skills()) {
        see(&[format!("x {}", problem.rule)]);
    }
    // A second document cannot begin in frontmatter that ends at its marks;
    // `...` in front of the end is the one way.
    let found = document("---\nname: a\ndescription: b\n...\nx: y\n---\nDo\n");
    assert!(found.iter().any(|line| line.ends_with("several-documents")), "{found:?}");
    see(&found);
    let all: BTreeSet<String> = RULES.iter().map(|rule| rule.name.to_owned()).collect();
    // These have tests of their own: below, and with a real Python in tests/it.
    let elsewhere = |rule: &str| {
        let at = RULES.iter().position(|row| row.name == rule).unwrap();
        let first = RULES.iter().position(|row| row.name == "no-python").unwrap();
        let unreachable = [
            "unreadable-file",
            "link-above",
            "many-files",
            "too-many-skills",
            "unwritable-document",
        ];
        unreachable.contains(&rule) || at >= first
    };
    let mut rest: Vec<&String> = all.difference(&seen).collect();
    rest.retain(|rule| !elsewhere(rule));
    assert_eq!(rest, [""; 0]);
    assert_eq!(seen.difference(&all).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(all.len(), RULES.len(), "a rule stands in the table once");
}

/// What breaks each rule of files.
fn benches() -> Vec<(Bench, Vec<&'static str>)> {
    let good = || Bench::new("a").write("SKILL.md", with(""));
    let linked = |bench: Bench, to: &str, name: &str| {
        symlink(to, bench.path().join(name)).unwrap();
        bench
    };
    let pipe = |bench: Bench, name: &str| {
        let made = std::process::Command::new("mkfifo").arg(bench.path().join(name)).status();
        assert!(made.unwrap().success());
        bench
    };
    vec![
        (Bench::new("a").write("x.zip", b"PK\x03\x04"), vec![":- no-document"]),
        (Bench::new("a").write("Skill.md", with("")), vec!["Skill.md:- document-case"]),
        (good().write("skill.md", with("")), vec!["skill.md:- ambiguous-document"]),
        (linked(Bench::new("a"), "/etc/hostname", "SKILL.md"), vec!["SKILL.md:- link-outside"]),
        (linked(Bench::new("a"), "nowhere", "SKILL.md"), vec!["SKILL.md:- broken-link"]),
        (pipe(Bench::new("a"), "SKILL.md"), vec!["SKILL.md:- unreadable-document"]),
        (
            Bench::new("a").write("SKILL.md", with(&" ".repeat(1 << 20))),
            vec!["SKILL.md:- large-document"],
        ),
        (
            Bench::new("a").write("SKILL.md", [with("").as_bytes(), b"\n\xff"].concat()),
            vec!["SKILL.md:7 not-utf8"],
        ),
        (linked(good(), "/etc", "out"), vec!["out:- link-outside"]),
        (linked(good(), "nowhere", "lost"), vec!["lost:- broken-link"]),
        (linked(good(), "ring", "ring"), vec!["ring:- broken-link"]),
        (linked(good(), "SKILL.md", "same.md"), vec![]),
        (pipe(good(), "pipe"), vec!["pipe:- special-file"]),
        (good().write("scripts/tool", b"\x7fELF\x02\x01\0\0"), vec!["scripts/tool:- binary-file"]),
        (good().write("x.zip", b"PK\x03\x04"), vec!["x.zip:- binary-file"]),
        (good().write("x.pyc", b"\x01\x02"), vec!["x.pyc:- binary-file"]),
        (good().write("b/skill.md", with("")), vec!["b/skill.md:- nested-skill"]),
    ]
}

/// What is wrong between skills: two folders that share a name, an alias that
/// is another's, a name that is no text, a skill as a skills folder, and a
/// folder that is none.
fn clashes() -> Vec<Problem> {
    let bench = Bench::new("one").write("a/SKILL.md", with("")).write("b/SKILL.md", with(""));
    let other = Bench::new("two").write("SKILL.md", with("")).write("a/SKILL.md", with(""));
    let odd = std::ffi::OsString::from_vec(b"\xff".to_vec());
    fs::create_dir(other.path().join(odd)).unwrap();
    let skills = Skills::new(vec![bench.path(), other.path(), "/nowhere".into()]);
    between(&skills.catalogue())
}

#[test]
fn what_is_wrong_between_skills_is_told() {
    let mut rules: Vec<&str> = clashes().iter().map(|problem| problem.rule).collect();
    rules.sort_unstable();
    assert_eq!(
        rules,
        ["alias-clash", "folder-is-skill", "name-clash", "name-not-utf8", "unreadable-folder"]
    );
}

/// A folder whose folders are no skills.
fn no_skills() -> Vec<Problem> {
    let bench = Bench::new("usr").write("bin/x", "").write("lib/y", "");
    between(&Skills::new(vec![bench.path()]).catalogue())
}

#[test]
fn what_is_no_folder_of_skills_is_told_once() {
    let told = no_skills();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        told[0].message,
        "this is no folder of skills: none of its 2 folders has a SKILL.md"
    );
    for names in [&["a"][..], &["a", "b/SKILL.md"]] {
        let mut bench = Bench::new("skills");
        for name in names {
            bench = bench.write(&format!("{name}/x").replace("SKILL.md/x", "SKILL.md"), "x");
        }
        let found = between(&Skills::new(vec![bench.path()]).catalogue());
        assert_eq!(found, []);
    }
}

/// The name that is advised is one that the linter takes.
#[test]
fn a_clash_of_aliases_is_solved_by_a_valid_name() {
    let other = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nDo\n");
    for (folder, fix, own) in [
        (
            "b~2",
            "rename the folder to `b-2`, and give it that name there",
            "rename the folder to `b-2`, and write `name: b-2`",
        ),
        ("a~", "rename the folder, and give it the folder's name there", "rename the folder"),
        (
            "b",
            "give it the name `b` there, as its folder has it",
            "write `name: b`, or rename the folder",
        ),
    ] {
        let bench = Bench::new("skills")
            .write("a/SKILL.md", other("a"))
            .write(&format!("{folder}/SKILL.md"), other("a"));
        let skills = Skills::new(vec![bench.path()]);
        let found = between(&skills.catalogue());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].fix.as_deref(), Some(fix));
        let other = check(&skills.find(folder).unwrap());
        let named = other.iter().find(|problem| problem.rule == "name-folder");
        assert_eq!(named.and_then(|problem| problem.fix.as_deref()), Some(own));
    }
}

/// Keys as they are written, and what each value is.
#[test]
fn metadata_is_told_as_it_is_written() {
    let text = |lines: &str| {
        let bench = Bench::new("a").write("SKILL.md", with(lines));
        let found = check(&bench.skill());
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].message.clone()
    };
    for (lines, due) in [
        ("metadata: {version: 1.0, on: yes}\n", "`on` is a truth value and `version` is a number"),
        ("metadata:\n  x: 'on'\n  Off: [a]\nlicense: MIT\n", "`Off` is a list"),
        (
            "metadata: {a: 1, b: 2, c: {}, d: 3, 'true': 4}\n",
            "`a` is a number, `b` is a number, `c` is a map and 2 more are no text either",
        ),
        ("metadata: {true: 1}\n", "`true` is a number"),
    ] {
        let due = format!("the metadata is a map of texts, but {due}");
        assert_eq!(text(lines), due);
    }
}

/// A name is offered that the linter takes, and every dangling link says what
/// to do.
#[test]
fn a_fix_is_a_valid_one() {
    for (folder, name, due) in [
        ("a", "A_b", "write `name: a`"),
        ("My Skill", "My Skill", "write `name: my-skill`"),
        ("My Skill", "-b-", "write `name: b`"),
    ] {
        let text = format!("---\nname: {name}\ndescription: d\n---\nDo [x](y.md).\n");
        let bench = Bench::new(folder).write("SKILL.md", text);
        let found = check(&bench.skill());
        let fix = |rule: &str| {
            let it = found.iter().find(|problem| problem.rule.starts_with(rule));
            it.and_then(|problem| problem.fix.clone()).unwrap()
        };
        assert!(fix("name-").starts_with(due), "{found:?}");
        assert_eq!(fix("dangling"), "put the file there, or take the link out");
    }
}

#[test]
fn a_folder_of_skills_is_no_skill() {
    let bench = Bench::new("more").write("x/a/SKILL.md", with("")).write("x/b/SKILL.md", with(""));
    let above = bench.path().parent().unwrap().to_path_buf();
    let catalogue = Skills::new(vec![above]).catalogue();
    let found = catalogue.named("more").unwrap().no_skill.clone().unwrap();
    assert_eq!(found.rule, "no-document");
    let folder = bench.path().join("x");
    let fix = format!("name it as a skills folder: --skills {}", folder.display());
    assert_eq!(found.fix, Some(fix));
}

#[test]
fn what_is_not_looked_at_is_said() {
    let mut bench = Bench::new("a").write("SKILL.md", with(""));
    let deep = "d/".repeat(limits::WALK_DEPTH);
    bench = bench.write(&format!("{deep}x"), "x");
    assert_eq!(bench.found(), [":- many-files"]);
}

/// Root may read everything, so the refusal itself is put in.
#[test]
fn what_cannot_be_opened_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new("a").write("SKILL.md", with("")).write("x", "x");
    let path = bench.path().join("x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let expected: &[&str] = match fs::read(&path) {
        Ok(_) => &[],
        Err(_) => &["x:- unreadable-file"],
    };
    assert_eq!(bench.found(), expected);
    assert_eq!(rules::severity("unreadable-file"), Severity::Error);
}

#[test]
fn too_many_of_a_kind_are_told_as_one() {
    let links: Vec<String> = (0..50).map(|n| format!("[x](n{n}.md)\n")).collect();
    let links = links.concat();
    let bench = Bench::new("a").write("SKILL.md", format!("{}{links}", with("")));
    let found = check(&bench.skill());
    assert_eq!(found.len(), limits::PROBLEMS);
    assert!(found.last().unwrap().message.ends_with(MORE), "{found:?}");
}

#[test]
fn references_are_found_and_nothing_else_is() {
    let missing = [
        "[x](y.md)",
        "![x](images/y.png \"title\")",
        "[x](<a b.md>)",
        "[x](y.md#part)",
        "[x](a%20b.md)",
        "[x]: y.md",
        "see `scripts/x.py`",
        "see `./references/x.md`",
        "run `python scripts/x.py --a b`",
        "```bash\npython3 -u scripts/x.py a\n```",
        "```sh\n./scripts/x.sh\n```",
        "```bash\nuv run {baseDir}/tool/x.py\n```",
        "`${CLAUDE_SKILL_DIR}/tool/x.py`",
        "~~~console\n$ cat references/x.md | less\n~~~",
    ];
    for text in missing {
        let found = document(format!("{}{text}\n", with("")));
        assert!(found.len() == 1 && found[0].contains("dangling-"), "{text}: {found:?}");
    }
    let quiet = [
        "[x](https://a.b/y.md) [x](mailto:a@b.c) [x](#part) [x](/y.md) [x](/docs/x) [x](~/y.md)",
        "[x](path/to/y.md) [x](<name>.md) [x]({x}.md) [x](url) [x](LICENSE) [x](wiki/page)",
        "`[x](y.md)` and ``[`x`](y.md)``",
        "```md\n[x](y.md)\n```",
        "```markdown\n```python\nx\n```\n[x](y.md)\n```",
        "<!-- [x](y.md) -->",
        "<!--\n[x](y.md)\n-->",
        "`y.py` `output.xlsx` `src/x.py` `https://a.b/scripts/x.py` `scripts/` `scripts/*.py`",
        "`scripts/<name>.py` `scripts/$X.py` `references/your-guide.md` `references/phaseN.md`",
        "Save it to `assets/x.md`. For example `scripts/x.py`. Create `scripts/x.sh`.",
        "The skill `b`'s `references/x.md`, its own `references/y.md`",
        "See `references/x.md` in the `b` skill; no `references/y.md` is there",
        "[`references/x.md`](https://a.b) [`references/y.md`](SKILL.md)",
        "```bash\n# From the root of the project\npython scripts/x.py\n```",
        "[x](.wiki/x.md) and the script `scripts/x.py` of the plugin root",
        "```bash\npython tool.py -o assets/x.png scripts/y.py\n# scripts/z.py\n```",
        "```bash\ncd /x && python scripts/y.py\n```",
        "```python\nopen('assets/x.png')\n```",
        "[^1]: y.md",
        "![x](SKILL.md) `scripts/../SKILL.md`",
    ];
    for text in quiet {
        assert_eq!(document(format!("{}{text}\n", with(""))), [""; 0], "{text}");
    }
}

#[test]
fn a_file_beside_the_skill_is_told_as_such() {
    let bench = Bench::new("a").write("SKILL.md", format!("{}`scripts/x.py`\n", with("")));
    fs::create_dir(bench.path().with_file_name("scripts")).unwrap();
    fs::write(bench.path().with_file_name("scripts").join("x.py"), "").unwrap();
    assert_eq!(bench.found(), ["SKILL.md:6 outside-reference"]);
}

#[test]
fn a_near_name_is_offered() {
    let bench = Bench::new("a")
        .write("SKILL.md", format!("{}[x](reference/Guide.md) [y](rest.md)\n", with("")))
        .write("references/guide.md", "x");
    let found = check(&bench.skill());
    assert_eq!(found[0].fix.as_deref(), Some("did you mean `references/guide.md`?"));
    assert_eq!(found[1].fix.as_deref(), Some("put the file there, or take the link out"));
}

/// What can be mended names the command, and only that.
#[test]
fn a_promise_is_made_where_it_is_kept() {
    let fix = |text: &str| {
        let found = check(&Bench::new("a").write("SKILL.md", text).skill());
        let is_promised = |problem: &Problem| {
            let fix = problem.fix.as_deref().unwrap_or_default();
            fix.contains("`skills-runner skills check --fix a` does it")
        };
        found.iter().map(is_promised).collect::<Vec<_>>()
    };
    assert_eq!(fix(&with("x: Use when: now\n")), [true]);
    assert_eq!(fix(&with("x: [open\n")), [false]);
    assert_eq!(fix(&format!("\u{feff}{}", with("x: [open\n"))), [false, false]);
    assert_eq!(fix("---\nname: b\ndescription: c\n---\nDo\n"), [false]);
    let offered = |bench: &Bench| {
        let found = check(&bench.skill()).into_iter();
        let fixes = found.filter_map(|problem| problem.fix);
        fixes.filter(|fix| fix.contains("--fix")).count()
    };
    let latin = with("x: Use when: now\ny: caf\u{e9}\n").replace('\u{e9}', "?");
    let latin: Vec<u8> = latin.bytes().map(|b| if b == b'?' { 0xe9 } else { b }).collect();
    assert_eq!(offered(&Bench::new("a").write("SKILL.md", latin)), 0);
    let linked = Bench::new("a").write("real.md", with("x: Use when: now\n"));
    symlink("real.md", linked.path().join("SKILL.md")).unwrap();
    assert_eq!(offered(&linked), 0);
    assert_eq!(fix("---\nname: A\ndescription: c\n---\nDo\n"), [true, true]);
}

/// What YAML takes for more than text is not told to become text.
#[test]
fn a_remedy_keeps_what_a_value_stands_for() {
    let fixes = |lines: &str| -> Vec<String> {
        let found = check(&Bench::new("a").write("SKILL.md", with(lines)).skill());
        found.into_iter().map(|it| it.fix.unwrap()).collect()
    };
    assert_eq!(
        fixes("x: &d foo\ny: [*d]\n"),
        [
            "take the anchor `&d` out, and write its value once more where `*d` stands for it",
            "write out, in place of `*d`, what the anchor `&d` stands for",
        ]
    );
    assert_eq!(
        fixes("metadata:\n  v: !!str 12\n"),
        ["take the tag `!!str` out, and put the value behind it in double quotes"]
    );
    for text in ["x: *bold* words\n", "x: & more\n", "x: !important it is\n"] {
        let fixes = fixes(text);
        assert!(fixes[0].starts_with("put the value in double quotes"), "{fixes:?}");
    }
    let unclosed = fixes("metadata: {a: b, c: [1, 2}\n");
    assert_eq!(unclosed[0], "close the bracket, or put mere text in double quotes");
    let tools = fixes("allowed-tools:\n- Web Search # it\n- Read\n");
    assert!(tools[0].starts_with("write the names on one line"), "{tools:?}");
}

/// Neither time nor stack, whatever stands in a document of the full size.
#[test]
fn hostile_documents_are_checked_in_time() {
    for piece in [
        "](",
        "[x](y",
        "[x](<",
        "[x](y.md) ",
        "`",
        "` ``",
        "`a` ``b ",
        "![](",
        "[",
        "((((",
        "](((",
        "`scripts/x.py` ",
        "<!--",
        "```\n",
        "```a\n",
        "~~~\n",
        "[a]: b\n",
        "%",
        "\r",
        "\\",
        "é",
        "\u{feff}",
        "---\n",
        "../",
        "[x](../y) ",
        "\t",
        "`` ` ",
    ] {
        for front in [with(""), "---\nname: a\ndescription: ".to_owned()] {
            // The full size where Markdown is taken apart; less is enough for
            // the rest, and quicker.
            let is_full = ["](", "`", "[x](y.md) "].contains(&piece);
            let size = limits::DOCUMENT_BYTES / if is_full { 1 } else { 8 } - 100;
            let text = format!("{front}{}", piece.repeat(size / piece.len()));
            let bench = Bench::new("a").write("SKILL.md", text);
            let start = thread_time();
            check(&bench.skill());
            fix(&bench.skill()).unwrap();
            // What is not linear would need minutes.
            let took = thread_time().saturating_sub(start);
            assert!(took.as_secs() < 20, "{piece:?} {took:?}");
        }
    }
}

#[test]
fn any_bytes_are_checked() {
    let pieces: [&[u8]; 12] = [
        b"---\n",
        b"name: a\n",
        b"\xff",
        b"\0",
        b"description: [",
        b"\r",
        b"`",
        b"](",
        b"\t",
        b"\xef\xbb\xbf",
        b"x: 'y\n",
        b"\xe2\x80\xa8",
    ];
    let mut seed = 1_u64;
    for _ in 0..300 {
        let mut text = Vec::new();
        for _ in 0..30 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.extend_from_slice(pieces[usize::try_from(seed >> 33).unwrap() % pieces.len()]);
        }
        let bench = Bench::new("a").write("SKILL.md", &text);
        let before = check(&bench.skill());
        if fix(&bench.skill()).unwrap().is_empty() {
            assert_eq!(fs::read(Path::new(&bench.path()).join("SKILL.md")).unwrap(), text);
            assert_eq!(check(&bench.skill()), before);
        }
    }
}
