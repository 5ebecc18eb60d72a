//! Tests of the linter: each broken rule is reported at the right line, and no other rule is.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::{RULES, RuleRow, Skills};
use host::clock::thread_time;
use host::confined::Root;
use host::scratch::Scratch;

/// A skill in a temporary folder.
pub(super) struct TestSkill {
    scratch: Scratch,
    name: &'static str,
}

impl TestSkill {
    pub(super) fn new(name: &'static str) -> TestSkill {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        fs::create_dir_all(scratch.path().join(name)).unwrap();
        TestSkill { scratch, name }
    }

    pub(super) fn path(&self) -> std::path::PathBuf {
        self.scratch.path().join(self.name)
    }

    pub(super) fn write(self, file: &str, content: impl AsRef<[u8]>) -> TestSkill {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(super) fn skill(&self) -> Skill {
        Skill {
            is_locked: false,
            private: std::rc::Rc::default(),
            read_rule: std::cell::OnceCell::new(),
            name: self.name.to_owned(),
            address: self.name.to_owned(),
            program: "skills-runner".to_owned(),
            path: self.path(),
            root: Root::open(&self.path()).unwrap(),
        }
    }

    /// Returns the problems found, each as `file:line rule`.
    pub(super) fn findings(&self) -> Vec<String> {
        let show = |problem: Problem| {
            let line = problem.line.map_or("-".to_owned(), |line| line.to_string());
            format!("{}:{line} {}", problem.file.display(), problem.rule.name())
        };
        check(&self.skill()).into_iter().map(show).collect()
    }
}

/// Returns a document of the skill `a` with these further lines in its frontmatter.
pub(super) fn document_with(lines: &str) -> String {
    format!("---\nname: a\ndescription: does b\n{lines}---\nDo it.\n")
}

pub(super) fn findings_in_document(text: impl AsRef<[u8]>) -> Vec<String> {
    TestSkill::new("a").write("SKILL.md", text).findings()
}

#[test]
fn a_good_skill_has_no_problem() {
    let text = "---\r\nname: a\r\ndescription: >-\r\n  Does b: well.\r\nlicense: MIT\r\n\
                compatibility: Python 3.9\r\nmetadata:\r\n  version: \"1.0\"\r\n\
                allowed-tools: Bash(git:*, jq) Read\r\nargument-hint: [topic]\r\nversion: 2\r\n\
                tags: [x]\r\nwhatever: 1\r\n---\r\nRead [it](references/x.md).\r\n";
    let skill = TestSkill::new("a")
        .write("SKILL.md", text)
        .write("references/x.md", "x")
        .write("assets/logo.png", b"\x89PNG\r\n\x1a\n\0\0")
        .write("assets/form.docx", b"PK\x03\x04\0\0")
        .write("notes.a", "notes that are text")
        .write("__pycache__/x.pyc", b"\0\0")
        .write("node_modules/b/SKILL.md", "---");
    assert_eq!(skill.findings(), [""; 0]);
}

/// Returns documents that break each rule for documents and their fields, with the expected
/// findings.
#[allow(clippy::too_many_lines, reason = "a table")]
fn documents() -> Vec<(String, &'static [&'static str])> {
    let long = |count| "é".repeat(count);
    vec![
        (format!("\u{feff}{}", document_with("")), &["1 late-frontmatter"]),
        (format!("\n\n{}", document_with("")), &["1 late-frontmatter"]),
        (
            format!("{}a\u{200b}b\nc\u{e0041}\n👨\u{200d}👩\n", document_with("")),
            &["6 invisible-character", "7 invisible-character"],
        ),
        (format!("```markdown\n{}```\n", document_with("")), &["1 late-frontmatter"]),
        ("# A\nText\n".into(), &["1 no-frontmatter"]),
        ("---\nname: a\ndescription: b\n\nBody\n".into(), &["1 unclosed-frontmatter"]),
        (document_with("x: Use when: now\n"), &["4 unquoted-value"]),
        (document_with("x: @home\n"), &["4 unquoted-value"]),
        (document_with("x: *bold* words\n"), &["4 unsupported-yaml"]),
        (document_with("x: <<\n"), &["4 unquoted-value"]),
        (document_with("x: [a] [b]\n"), &["4 unquoted-value"]),
        (document_with("x: \"open\n"), &["4 unclosed-quote"]),
        (document_with("x: [open\n"), &["4 bad-flow"]),
        (document_with("x: \"C:\\windows\"\n"), &["4 bad-escape"]),
        (document_with("x: ]\n"), &["4 bad-flow"]),
        (document_with("x: | text\n"), &["4 unquoted-value"]),
        (document_with("x: ? y\n"), &["4 unsupported-yaml"]),
        (document_with(&format!("{}: y\n", "k".repeat(2000))), &["4 unsupported-yaml"]),
        (document_with(&format!("x: {}\n", "[".repeat(100))), &["4 unsupported-yaml"]),
        (document_with("x:\n\ty: z\n"), &["5 tab"]),
        (document_with("x:\n    y: z\n  w: v\n"), &["6 indentation"]),
        (document_with(" license: MIT\n"), &["4 indented-field"]),
        (document_with(" licence: MIT\n"), &["4 indented-field"]),
        (document_with("license:MIT\n"), &["4 not-a-field"]),
        (document_with("license: MIT\nlicense: MIT\n"), &["5 duplicate-key"]),
        (document_with("name: b\n"), &["4 duplicate-key", "4 name-folder"]),
        (document_with("name: 3\n"), &["4 duplicate-key", "4 field-type", "4 name-folder"]),
        ("---\nname: b\ndescription: c\nname: a\n---\nDo\n".into(), &["4 duplicate-key"]),
        (
            document_with(&format!(" compatibility: {}\n", long(501))),
            &["4 indented-field", "4 optional-field"],
        ),
        (document_with("x: y\u{7}\n"), &["4 control-character"]),
        (document_with("x: y\u{2028}z\n"), &["4 invisible-character"]),
        ("---\ndescription: b\n---\nDo\n".into(), &["1 missing-name"]),
        ("---\nname: a\ndescription: ' '\n---\nDo\n".into(), &["3 missing-description"]),
        (format!("---\nname: {}\ndescription: b\n---\nDo\n", "b".repeat(65)), &["2 invalid-name"]),
        ("---\nname: My_Skill\ndescription: b\n---\nDo\n".into(), &["2 invalid-name"]),
        ("---\nname: a--b\ndescription: b\n---\nDo\n".into(), &["2 invalid-name"]),
        ("---\nname: -a\ndescription: b\n---\nDo\n".into(), &["2 invalid-name"]),
        (format!("---\nname: a\ndescription: {}\n---\nDo\n", long(1024)), &[]),
        (
            format!("---\nname: a\ndescription: {}\n---\nDo\n", long(1025)),
            &["3 description-length"],
        ),
        ("---\nname: a\ndescription: [b, c]\n---\nDo\n".into(), &["3 field-type"]),
        ("---\nname: [a]\ndescription: b\n---\nDo\n".into(), &["2 field-type"]),
        (document_with(&format!("compatibility: {}\n", long(500))), &[]),
        (document_with(&format!("compatibility: {}\n", long(501))), &["4 optional-field"]),
        (document_with("compatibility: ''\n"), &["4 optional-field"]),
        (document_with("license: [MIT]\n"), &["4 optional-field"]),
        (document_with("metadata: x\n"), &["4 optional-field"]),
        (document_with("metadata:\n  version: 1.0\n"), &["4 optional-field"]),
        (document_with("allowed-tools:\n- Read\n"), &[]),
        (document_with("allowed-tools: Read, Bash(git:*)\n"), &[]),
        (document_with("allowed_tools: Read\n"), &["4 field-typo"]),
        ("---\nname: a\ndesciption: b\n---\nDo\n".into(), &["1 missing-description"]),
        ("---\nname: a\ndescription: b\n---\n".into(), &["- empty-document"]),
        (format!("{}{}", document_with(""), "x".repeat(40_001)), &["- long-document"]),
        (format!("{}{}", document_with(""), "x\n".repeat(10_000)), &[]),
        (format!("{}[x](y.md)", document_with("")), &["6 missing-file"]),
        (format!("{}`scripts/y.py`", document_with("")), &["6 missing-file"]),
        (format!("{}[x](../y.md)", document_with("")), &["6 missing-file"]),
        (format!("{}[x](../../etc/passwd)", document_with("")), &["6 missing-file"]),
    ]
}

#[test]
fn every_rule_is_reported_where_it_is_broken() {
    let mut seen = BTreeSet::new();
    let mut add_rules = |found: &[String]| {
        for line in found {
            seen.insert(line.rsplit(' ').next().unwrap().to_owned());
        }
    };
    for (text, expected) in documents() {
        let mut found = findings_in_document(&text);
        found.sort();
        let expected: Vec<String> =
            expected.iter().map(|line| format!("SKILL.md:{line}")).collect();
        let shown: String = text.chars().take(200).collect();
        assert_eq!(found, expected, "{shown:?}");
        add_rules(&found);
    }
    for (skill, expected) in broken_folders() {
        let found = skill.findings();
        assert_eq!(found, expected);
        add_rules(&found);
    }
    for problem in clashes() {
        add_rules(&[format!("x {}", problem.rule.name())]);
    }
    // Other rules have their own tests: below, and with a real Python in tests/it.
    let tested_separately = [
        Rule::OtherSkill,
        Rule::OutsideReference,
        Rule::UnreadableFile,
        Rule::NotLocked,
        Rule::LinkAbove,
        Rule::ManyFiles,
        Rule::InvalidEvals,
        Rule::TooManySkills,
        Rule::SkillsBelow,
        Rule::FlatFile,
        Rule::NameTaken,
    ];
    let is_tested_elsewhere = |row: &&RuleRow| {
        tested_separately.contains(&row.rule) || row.rule as usize >= Rule::NoPython as usize
    };
    let untested = RULES.iter().filter(|row| !seen.contains(row.name) && !is_tested_elsewhere(row));
    assert_eq!(untested.map(|row| row.name).collect::<Vec<_>>(), [""; 0]);
}

/// Returns folders that break each rule about files, with the expected findings.
fn broken_folders() -> Vec<(TestSkill, Vec<&'static str>)> {
    let good = || TestSkill::new("a").write("SKILL.md", document_with(""));
    let linked = |skill: TestSkill, to: &str, name: &str| {
        symlink(to, skill.path().join(name)).unwrap();
        skill
    };
    let commanding = |script: &str, mode| {
        let text = format!("{}```sh\n./scripts/x.sh\n```\n", document_with(""));
        let skill = TestSkill::new("a").write("SKILL.md", text).write("scripts/x.sh", script);
        let path = skill.path().join("scripts/x.sh");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        skill
    };
    let pipe = |skill: TestSkill, name: &str| {
        let status = std::process::Command::new("mkfifo").arg(skill.path().join(name)).status();
        assert!(status.unwrap().success());
        skill
    };
    vec![
        (TestSkill::new("a").write("x.zip", b"PK\x03\x04"), vec![":- no-document"]),
        (
            TestSkill::new("a").write("Skill.md", document_with("")),
            vec!["Skill.md:- document-case"],
        ),
        (good().write("skill.md", document_with("")), vec!["skill.md:- document-case"]),
        (linked(TestSkill::new("a"), "/etc/hostname", "SKILL.md"), vec!["SKILL.md:- broken-link"]),
        (linked(TestSkill::new("a"), "nowhere", "SKILL.md"), vec!["SKILL.md:- broken-link"]),
        (pipe(TestSkill::new("a"), "SKILL.md"), vec!["SKILL.md:- unreadable-document"]),
        (
            TestSkill::new("a").write("SKILL.md", document_with(&" ".repeat(1 << 20))),
            vec!["SKILL.md:- unreadable-document"],
        ),
        (
            TestSkill::new("a")
                .write("SKILL.md", [document_with("").as_bytes(), b"\n\xff"].concat()),
            vec!["SKILL.md:7 not-utf8"],
        ),
        (linked(good(), "/etc", "out"), vec!["out:- broken-link"]),
        (linked(good(), "nowhere", "lost"), vec!["lost:- broken-link"]),
        (linked(good(), "ring", "ring"), vec!["ring:- broken-link"]),
        (linked(good(), "SKILL.md", "same.md"), vec![]),
        (pipe(good(), "pipe"), vec!["pipe:- unreadable-file"]),
        (good().write("b/SKILL.md", document_with("")).write("c.zip", "PK"), vec![]),
        (commanding("#!/bin/sh\n", 0o644), vec!["SKILL.md:7 not-executable"]),
        (commanding("#!/bin/sh\r\n", 0o755), vec!["scripts/x.sh:1 crlf-script"]),
        (commanding("#!/bin/sh\n# x\r\n", 0o755), vec![]),
    ]
}

/// Returns problems between skills: a name in two folders, the alias of another skill, a name
/// that is not UTF-8, and a missing folder.
fn clashes() -> Vec<Problem> {
    let skill = TestSkill::new("one")
        .write("a/SKILL.md", document_with(""))
        .write("b/SKILL.md", document_with(""));
    let other = TestSkill::new("two")
        .write("SKILL.md", document_with(""))
        .write("a/SKILL.md", document_with(""));
    let odd = std::ffi::OsString::from_vec(b"\xff".to_vec());
    fs::create_dir(other.path().join(odd)).unwrap();
    let skills = Skills::new(vec![skill.path(), other.path(), "/nowhere".into()]);
    check_catalogue(&skills.catalogue())
}

#[test]
fn problems_between_skills_are_reported() {
    let mut rules: Vec<&str> = clashes().iter().map(|problem| problem.rule.name()).collect();
    rules.sort_unstable();
    assert_eq!(rules, ["name-clash", "name-clash", "name-not-utf8", "unreadable-folder"]);
}

#[test]
fn a_name_of_another_skill_is_reported_with_a_fix() {
    let text = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nDo\n");
    for (folder, clash_fix, name_fix) in [
        ("a~", "rename the folder, and give it the folder's name there", "rename the folder"),
        (
            "b",
            "give it the name `b` there, like its folder",
            "write `name: b`, or rename the folder",
        ),
    ] {
        let skill = TestSkill::new("skills")
            .write("a/SKILL.md", text("a"))
            .write(&format!("{folder}/SKILL.md"), text("a"));
        let skills = Skills::new(vec![skill.path()]);
        let found = check_catalogue(&skills.catalogue());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].fix.as_deref(), Some(clash_fix));
        let problems = check(&skills.open(folder).unwrap());
        let problem = problems.iter().find(|problem| problem.rule == Rule::NameFolder);
        assert_eq!(problem.and_then(|problem| problem.fix.as_deref()), Some(name_fix));
    }
}

#[test]
fn the_first_value_of_metadata_that_is_not_text_is_named() {
    for (lines, cause) in [
        ("metadata: {x: {y: 1}, version: 1.0}\n", "`version` is a number"),
        ("metadata:\n  x: 'on'\n  z: [a]\n  y: on\n", "`y` is a boolean"),
    ] {
        let skill = TestSkill::new("a").write("SKILL.md", document_with(lines));
        let found = check(&skill.skill());
        assert_eq!(found.len(), 1, "{found:?}");
        let expected = format!("values of the metadata must be text, but {cause}");
        assert_eq!(found[0].message, expected);
    }
}

/// The linter accepts the name that it suggests, and each missing file has a fix.
#[test]
fn suggested_names_are_valid() {
    for (folder, name, expected) in [
        ("a", "A_b", "write `name: a`, or rename the folder and the skill to `a-b`"),
        ("a-b", "A_b", "write `name: a-b`"),
        ("My Skill", "My Skill", "write `name: my-skill`"),
        ("My Skill", "-b-", "write `name: b`"),
    ] {
        let text = format!("---\nname: {name}\ndescription: d\n---\nDo [x](y.md).\n");
        let skill = TestSkill::new(folder).write("SKILL.md", text);
        let found = check(&skill.skill());
        let fix = |rule| {
            let it = found.iter().find(|problem| problem.rule == rule);
            it.and_then(|problem| problem.fix.clone()).unwrap()
        };
        assert_eq!(fix(Rule::InvalidName), expected, "{found:?}");
        assert_eq!(fix(Rule::MissingFile), "add the file, or correct its path");
    }
}

#[test]
fn unchecked_files_are_reported() {
    let mut skill = TestSkill::new("a").write("SKILL.md", document_with(""));
    let deep = "d/".repeat(limits::WALK_DEPTH);
    skill = skill.write(&format!("{deep}x"), "x");
    assert_eq!(skill.findings(), [":- many-files"]);
}

/// Root can read every file, so the expectation depends on the user.
#[test]
fn a_file_that_cannot_be_opened_is_an_error() {
    let skill = TestSkill::new("a").write("SKILL.md", document_with("")).write("x", "x");
    let path = skill.path().join("x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let expected: &[&str] = match fs::read(&path) {
        Ok(_) => &[],
        Err(_) => &["x:- unreadable-file"],
    };
    assert_eq!(skill.findings(), expected);
}

#[test]
fn problems_per_rule_are_limited() {
    let links: Vec<String> = (0..50).map(|n| format!("[x](n{n}.md)\n")).collect();
    let links = links.concat();
    let skill = TestSkill::new("a").write("SKILL.md", format!("{}{links}", document_with("")));
    let found = check(&skill.skill());
    assert_eq!(found.len(), limits::PROBLEMS);
    assert!(found.last().unwrap().message.ends_with("are not listed"), "{found:?}");
}

/// No document, even of the largest size, needs much time or stack.
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
        for front in [document_with(""), "---\nname: a\ndescription: ".to_owned()] {
            // Only these pieces are tested at the full size; an eighth of it is faster.
            let is_full = ["](", "`", "[x](y.md) "].contains(&piece);
            let size = limits::DOCUMENT_BYTES / if is_full { 1 } else { 8 } - 100;
            let text = format!("{front}{}", piece.repeat(size / piece.len()));
            let skill = TestSkill::new("a").write("SKILL.md", text);
            let start = thread_time();
            check(&skill.skill());
            // Quadratic time would need minutes.
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
        let skill = TestSkill::new("a").write("SKILL.md", &text);
        check(&skill.skill());
    }
}

#[test]
fn severities_depend_on_what_other_clients_load() {
    let link = |to: &str| {
        let skill = TestSkill::new("a").write("SKILL.md", document_with("")).write("../b", "b");
        symlink(to, skill.path().join("x")).unwrap();
        skill
    };
    let named = |name: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n---\nDo\n");
        TestSkill::new("react").write("SKILL.md", text)
    };
    let text = "---\nname: a\ndescription: |\n  d\n  ---\n\n  # A\n";
    let indented = TestSkill::new("a").write("SKILL.md", text);
    for (skill, rule, severity) in [
        (link("../b"), Rule::BrokenLink, Severity::Note),
        (link("/etc"), Rule::BrokenLink, Severity::Warning),
        (link("../c"), Rule::BrokenLink, Severity::Warning),
        (named("vercel-react"), Rule::NameFolder, Severity::Note),
        (named("build-react-app"), Rule::NameFolder, Severity::Note),
        (named("reactive"), Rule::NameFolder, Severity::Warning),
        (indented, Rule::Indentation, Severity::Warning),
    ] {
        let found = check(&skill.skill());
        let found: Vec<_> = found.iter().map(|it| (it.rule, it.severity)).collect();
        assert_eq!(found, [(rule, severity)]);
    }
}
