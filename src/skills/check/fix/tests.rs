//! Tests of the repairs: what is repaired, what is not, and that nothing else changes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::skills::check::tests::TestSkill;
use crate::skills::frontmatter;
use crate::world::clock::thread_time;

/// The repaired document, and the repaired rules with their lines.
fn repair(text: &str) -> Option<(String, Vec<String>)> {
    let repaired = repair_document(text, "a-b")?;
    let fixed = repaired.fixed.iter().map(|(line, rule)| format!("{line} {rule}"));
    Some((repaired.text, fixed.collect()))
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn safe_repairs_are_made() {
    let table: &[(&str, &str, &[&str])] = &[
        // Quotes, only where they are needed.
        (
            "name: a-b\ndescription: Use \"it\" when: a\\b\nlicense: MIT",
            "name: a-b\ndescription: \"Use \\\"it\\\" when: a\\\\b\"\nlicense: MIT",
            &["3 unquoted-colon"],
        ),
        (
            "name: a-b\ndescription: Use when: now\n  or later\n\n# note\nlicense: MIT # x",
            "name: a-b\ndescription: \"Use when: now or later\"\n\n# note\nlicense: MIT # x",
            &["3 unquoted-colon"],
        ),
        (
            "name: a-b\ndescription: c\nargument-hint: [x] [y]\nx: @a\ny: *b* c\nz: <<",
            "name: a-b\ndescription: c\nargument-hint: \"[x] [y]\"\nx: \"@a\"\ny: \"*b* c\"\nz: \"<<\"",
            &[
                "4 text-after-value",
                "5 reserved-character",
                "6 anchor-alias-tag",
                "7 ambiguous-value",
            ],
        ),
        ("name:a-b\ndescription: c", "name: a-b\ndescription: c", &["2 not-a-field"]),
        ("name: a-b\ndescription: c\nmetadata:\n  x: y: z # 1\n  w: Use: it", "", &[]),
        (
            "name: a-b\ndescription: c\nmetadata:\n  w: Use: it\n  l:\n  - @x",
            "name: a-b\ndescription: c\nmetadata:\n  w: \"Use: it\"\n  l:\n  - \"@x\"",
            &["5 unquoted-colon", "7 reserved-character"],
        ),
        (
            "name: a-b\ndescription: c\nmetadata:\n\tx: y\n\tz: w",
            "name: a-b\ndescription: c\nmetadata:\n    x: y\n    z: w",
            &["5 tab"],
        ),
        (
            "name: a-b\ndescription: |\n  c\n\nlicense: Use: it\n\nx: y",
            "name: a-b\ndescription: |\n  c\n\nlicense: \"Use: it\"\n\nx: y",
            &["6 unquoted-colon"],
        ),
        // Tabs between words stay, all others become spaces.
        ("name: a-b\ndescription: c\td", "name: a-b\ndescription: \"c\\td\"", &["3 tab"]),
        (
            "name:\ta-b\t# x\ndescription: Use: c\td\nx: [y,\tz]",
            "name: a-b # x\ndescription: \"Use: c\\td\"\nx: [y, z]",
            &["2 tab", "3 unquoted-colon", "4 tab"],
        ),
        (
            "name: a-b\ndescription: c\nmetadata:\n\tx: y\tz",
            "name: a-b\ndescription: c\nmetadata:\n    x: \"y\\tz\"",
            &["5 tab"],
        ),
        ("name: a-b\ndescription: c\nr\tq: x", "", &[]),
        ("name: a-b\ndescription: c\td # e", "", &[]),
        // Fields indented into the value above, each with its own white space.
        ("name: a-b\n description: c", "name: a-b\ndescription: c", &["3 indented-field"]),
        (
            "name: a-b\ndescription: Fill forms: yes\n license: MIT\n\tmetadata:\n    x: y",
            "name: a-b\ndescription: \"Fill forms: yes\"\nlicense: MIT\nmetadata:\n    x: y",
            &["3 unquoted-colon", "4 indented-field", "5 indented-field"],
        ),
        (
            "name: 'a-b'\n  description: |-\n    x\n  license: MIT",
            "name: 'a-b'\ndescription: |-\n    x\nlicense: MIT",
            &["3 indented-field", "5 indented-field"],
        ),
        // A line that may or may not be a field stays.
        ("name: a-b\ndescription: Use when: now\n  or: later", "", &[]),
        ("name: a-b\n name: c\ndescription: d", "", &[]),
        ("name: a-b\ndescription: c\n\tnote: d", "", &[]),
        // Fields.
        (
            "name: A B\ndescription: c",
            "name: a-b\ndescription: c",
            &["2 name-characters", "2 name-folder"],
        ),
        ("description: c", "name: a-b\ndescription: c", &["1 missing-name"]),
        ("name:\ndescription: c", "name: a-b\ndescription: c", &["2 missing-name"]),
        (
            "name: a-b\ndescription:\n- Does this.\n- 'Use: now'",
            "name: a-b\ndescription: \"Does this. Use: now\"",
            &["3 field-type"],
        ),
        (
            "name: a-b\ndescription: [Merge PDFs, split PDFs. Use when X]",
            "name: a-b\ndescription: Merge PDFs, split PDFs. Use when X",
            &["3 field-type"],
        ),
        (
            "name: a-b\ndescription: [Fill: all, or 'none']",
            "name: a-b\ndescription: \"Fill: all, or 'none'\"",
            &["3 field-type"],
        ),
        ("name: a-b\ndescription: 1.10", "name: a-b\ndescription: \"1.10\"", &["3 field-type"]),
        (
            "name: a-b\ndescription: c\nname: a-b\nlicense: MIT",
            "name: a-b\ndescription: c\nlicense: MIT",
            &["4 duplicate-key"],
        ),
        (
            "name: a-b\ndescription: c\nallowed-tools: Read, Bash(git add:*, x),Edit",
            "name: a-b\ndescription: c\nallowed-tools: Read Bash(git add:*, x) Edit",
            &["4 allowed-tools-commas"],
        ),
        (
            "name: a-b\ndescription: c\nallowed-tools:\n  - Read\n  - Edit\nx: y",
            "name: a-b\ndescription: c\nallowed-tools: Read Edit\nx: y",
            &["4 allowed-tools-type"],
        ),
        // What is ambiguous stays.
        ("name: c\ndescription: c", "", &[]),
        ("nmae: c\ndescription: c", "", &[]),
        ("name: a-b\ndescription: [open", "", &[]),
        ("name: a-b\ndescription: \"open", "", &[]),
        ("name: a-b\ndescription: \"C:\\dir\"", "", &[]),
        ("name: a-b\ndescription: Use when: now # or not", "", &[]),
        ("name: a-b\ndescription: c\nx: 1\nx: 2", "", &[]),
        ("name: a-b\ndescription: c\nallowed-tools: Read, Web Search", "", &[]),
        ("name: a-b\ndescription: [c, {d: e}]", "", &[]),
        ("name: a-b\ndescription: \"c\"\nstray", "", &[]),
        // A field without its space, or text without its indentation.
        ("name: a-b\ndescription: c\nauthor:me\nversion:1", "", &[]),
        ("name: a-b\nfoo:bar\ndescription: c", "", &[]),
        ("name: a-b\ndescription: c\nrewrite this", "", &[]),
        ("name: a-b\ndescription: c: d\nwrapped\nx: y", "", &[]),
        ("name: a-b\ndescription: c\nlicense:MIT\nstray", "", &[]),
        ("name: a-b\ndescription: c\nmetadata:\n  x: y: z\nfoo:bar", "", &[]),
        (
            "name: a-b\ndescription: c\nlicense:MIT\nallowed-tools:Read",
            "name: a-b\ndescription: c\nlicense: MIT\nallowed-tools: Read",
            &["4 not-a-field", "5 not-a-field"],
        ),
        ("name: a-b\ndescription: c: d\nx: \u{7}", "", &[]),
        ("name: a-b\ndescription: c", "", &[]),
    ];
    for (source, expected, fixed) in table {
        for line_end in ["\n", "\r\n"] {
            let document = |source: &str| {
                let text = format!("---\n{source}\n---\n\n# It\n\n---\nx: y: z \t\n");
                text.replace('\n', line_end)
            };
            let result = repair(&document(source));
            let fixed: Vec<String> = fixed.iter().map(ToString::to_string).collect();
            let expected = (!expected.is_empty()).then(|| (document(expected), fixed));
            assert_eq!(result, expected, "{source}");
            if let Some((text, _)) = expected {
                assert!(repair(&text).is_none(), "once is enough: {source}");
            }
        }
    }
}

#[test]
fn lines_of_dashes_are_repaired() {
    let good = "---\nname: a-b\ndescription: c: d\n---\n# It\n";
    let expected = good.replace("c: d", "\"c: d\"");
    for (text, fixed) in [
        (format!("\u{feff}{good}"), ["1 byte-order-mark", "3 unquoted-colon"].as_slice()),
        (format!(" \n\n{good}"), &["1 late-frontmatter", "5 unquoted-colon"]),
        (good.replace("d\n---\n", "d---\n"), &["1 unclosed-frontmatter", "3 unquoted-colon"]),
        (good.replace("d\n---\n", "d\n"), &["1 unclosed-frontmatter", "3 unquoted-colon"]),
        (good.replace("d\n---\n", "d\n...\n"), &["1 unclosed-frontmatter", "3 unquoted-colon"]),
    ] {
        let fixed = fixed.iter().map(ToString::to_string).collect();
        assert_eq!(repair(&text), Some((expected.clone(), fixed)), "{text:?}");
    }
    let end = "---\nname: a-b\ndescription: c";
    let (text, _) = repair(end).unwrap();
    assert_eq!(text, format!("{end}\n---\n"));
    assert_eq!(repair("# No frontmatter\n"), None);
    assert_eq!(repair(""), None);
}

/// A repair never changes the meaning of a document.
#[test]
fn repairs_keep_the_meaning() {
    let pieces = [
        "name: a-b\n",
        "description: Use: it\n",
        "x: [a] b\n",
        "\tx: y\n",
        "m:\n  k: a: b\n",
        "---\n",
        "---",
        "\u{feff}",
        "\n",
        "- z\n",
        "x: @y # z\n",
        "license: MIT\n",
        "# c\n",
        "allowed-tools: A, B\n",
        "name: A_B\n",
        "q: 'it''s'\n",
        "  deep: 1\n",
        "t: \"a\n b\"\n",
        "description: |\n  x: y\n\n",
        "\r\n",
        "x:y\n",
        " compatibility: Python\n",
        "\tmetadata:\n    x: y\n",
        "u: v\tw\n",
        "z:\ty\t# x\n",
    ];
    let mut seed = 7_u64;
    let mut count = 0;
    for _ in 0..20_000 {
        let mut text = "---\n".to_owned();
        for _ in 0..7 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[usize::try_from(seed >> 33).unwrap() % pieces.len()]);
        }
        let Some(result) = repair_document(&text, "a-b") else {
            continue;
        };
        count += 1;
        let (before, after) = (frontmatter::parse(&text), frontmatter::parse(&result.text));
        let rules: Vec<&str> = result.fixed.iter().map(|(_, rule)| *rule).collect();
        for (key, value) in &after.fields {
            let is_intended = match key.as_str() {
                "name" => rules.iter().any(|rule| rule.contains("name")),
                "allowed-tools" => rules.contains(&"allowed-tools-commas"),
                "description" => rules.contains(&"field-type"),
                _ => false,
            };
            assert!(is_intended || before.fields.get(key) == Some(value), "{text:?} {key}");
        }
        assert!(before.fields.keys().all(|key| after.fields.contains_key(key)), "{text:?}");
        assert_eq!(text[before.body_start..], result.text[after.body_start..], "{text:?}");
        let is_unexpected = |finding: &frontmatter::Diagnostic| {
            !["missing-description", "duplicate-key", "field-type"].contains(&finding.rule)
        };
        assert!(!after.diagnostics.iter().any(is_unexpected), "{text:?} {after:?}");
        assert!(repair_document(&result.text, "a-b").is_none(), "{text:?} {:?}", result.text);
    }
    assert!(count > 2_000, "{count} were repaired");
}

const BROKEN: &str = "---\nname: a\ndescription: Use: it\n---\nDo.\n";
const REPAIRED: &str = "---\nname: a\ndescription: \"Use: it\"\n---\nDo.\n";

#[test]
fn the_document_is_written_and_renamed() {
    let skill = TestSkill::new("a").write("Skill.md", BROKEN);
    let path = skill.path().join("Skill.md");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let fixed = fix(&skill.skill()).unwrap();
    let shown: Vec<_> = fixed.iter().map(|fixed| (fixed.line, fixed.rule)).collect();
    assert_eq!(shown, [(Some(3), "unquoted-colon"), (None, "document-case")]);
    let names: Vec<_> =
        fs::read_dir(skill.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["SKILL.md"]);
    let path = skill.path().join("SKILL.md");
    assert_eq!(fs::read_to_string(&path).unwrap(), REPAIRED);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fix(&skill.skill()), Ok(vec![]));
}

/// A repair that another one makes possible happens in the same run; a repeated field with a
/// comment stays.
#[test]
fn one_run_makes_all_repairs() {
    let twice =
        "---\nallowed-tools: A, B\ndescription: d\nname: >\n a_b\nallowed-tools: A, B\n---\n";
    let once = repair_document(twice, "a-b").unwrap();
    assert!(once.text.contains("allowed-tools: A B\n"), "{}", once.text);
    assert_eq!(once.text.matches("allowed-tools").count(), 1);
    assert!(repair_document(&once.text, "a-b").is_none());
    let kept = "---\nname: a-b\ndescription: d\nlicense: MIT\nlicense: MIT\n  # agreed\n---\n";
    assert!(repair_document(kept, "a-b").is_none(), "the comment would be lost");
}

/// A large value with many fields of the same key is parsed once.
#[test]
fn many_repeated_fields_take_little_time() {
    let large = format!("a: [{}x]\n", "x,".repeat(5_000));
    let others: Vec<String> = (0..800).map(|n| format!("a: {n}\n")).collect();
    let twins: Vec<String> = (0..200).map(|n| format!("b{n}: 1\nb{n}: 1\n")).collect();
    let (others, twins) = (others.concat(), twins.concat());
    let text = format!("---\nname: a-b\ndescription: d\n{large}{others}{twins}---\n");
    let begin = thread_time();
    repair_document(&text, "a-b");
    // Quadratic time would need minutes.
    let took = thread_time().saturating_sub(begin);
    assert!(took.as_secs() < 60, "{took:?}");
}

#[test]
fn links_are_not_written_through() {
    let skill = TestSkill::new("a").write("real.md", BROKEN);
    symlink("real.md", skill.path().join("SKILL.md")).unwrap();
    let problem = fix(&skill.skill()).unwrap_err();
    assert_eq!(problem.rule, "unwritable-document");
    assert!(problem.message.starts_with("failed to write it"), "{problem:?}");
    assert_eq!(fs::read_to_string(skill.path().join("real.md")).unwrap(), BROKEN);

    let skill = TestSkill::new("a").write("real.md", REPAIRED);
    symlink("real.md", skill.path().join("skill.md")).unwrap();
    assert_eq!(fix(&skill.skill()), Ok(vec![]));
}

#[test]
fn two_documents_are_not_renamed() {
    let skill = TestSkill::new("a").write("SKILL.MD", REPAIRED).write("skill.md", REPAIRED);
    assert_eq!(fix(&skill.skill()), Ok(vec![]));
    let root = skill.skill().root;
    assert!(root.rename("skill.md", "SKILL.MD").is_err());
    assert!(root.replace("skill.md", b"other", b"new").is_err(), "another process changed it");
    assert_eq!(fs::read_to_string(skill.path().join("skill.md")).unwrap(), REPAIRED);
    assert_eq!(fs::read_dir(skill.path()).unwrap().count(), 2, "nothing is left behind");
}

/// Each condition of the verification, with a document that breaks only that one.
#[test]
fn only_the_same_meaning_is_verified() {
    let document = "---\nname: a\ndescription: b\n---\nDo.\n";
    let front = frontmatter::parse(document);
    let work = repair::DocumentRepair::new(document, &front).unwrap();
    let is_proven = |text: &str| work.is_proven(text, &front.fields);
    assert!(is_proven(document));
    assert!(is_proven("---\nname: 'a'\ndescription: \"b\"\n---\nDo.\n"));
    for text in [
        "---\nname: a\ndescription: c\n---\nDo.\n",
        "---\nname: a\ndescription: b\nx: y\n---\nDo.\n",
        "---\nname: a\n---\nDo.\n",
        "---\nname: a\ndescription: b\n---\nDo!\n",
        "---\nname: a\ndescription: b\n---\n\nDo.\n",
        "---\nname: a\ndescription: b\nDo.\n",
        "\u{feff}---\nname: a\ndescription: b\n---\nDo.\n",
        "\n---\nname: a\ndescription: b\n---\nDo.\n",
        "---\nname: a\n\tdescription: b\n---\nDo.\n",
        "---\n\u{feff}name: a\ndescription: b\n---\nDo.\n",
    ] {
        assert!(!is_proven(text), "{text:?}");
    }
}

/// Quotes around quotes would double with every round.
#[test]
fn a_line_that_quotes_do_not_repair_stays() {
    for yaml in [
        "list:\n  - \"\n\"\": x",
        "f2:\n   -  \"\\\"q\\\"0\":\n      \"\\\"q\\\"1\": !!int \"9\"",
        "f2:\n   -  \"\\\"q\\\"0\":\n      \"\\\"q\\\"1\": @x",
    ] {
        let text = format!("---\nname: a-b\ndescription: c\n{yaml}\n---\nBody\n");
        assert_eq!(repair(&text), None, "{yaml}");
    }
}

/// Values with a meaning for other readers are not turned into text.
#[test]
fn anchors_and_tags_stay() {
    for yaml in [
        "metadata:\n  a: !!int \"1\"",
        "version: !!str 1",
        "x: &a foo\ny: *a",
        "f1:\n   \"\\\"q\\\"0\": !!bool \"false\"",
    ] {
        let text = format!("---\nname: a-b\ndescription: c\n{yaml}\n---\nBody\n");
        assert_eq!(repair(&text), None, "{yaml}");
    }
}
