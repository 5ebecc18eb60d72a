//! Tests of the files that documents name.

use std::fs;

use super::check;
use super::tests::{TestSkill, document_with, findings_in_document};

#[test]
fn only_references_to_skill_files_are_found() {
    let missing = [
        "[x](y.md)",
        "![x](images/y.png \"title\")",
        "[x](y.md#part)",
        "[x](a%20b.md)",
        "see `scripts/x.py`",
        "see `./references/x.md`",
        "run `python scripts/x.py --a b`",
        "```bash\n# Adds the numbers of your project\npython scripts/x.py\n```",
        "```bash\npython3 -u scripts/x.py a\n```",
        "see references/x.md for more",
        "If detailed examples are required, open `resources/x.md`.",
        "run `python3 ~/.claude/skills/a/tool/x.py`",
        "## Output\n[x](references/x.md)",
        "```terminal\nuv run {baseDir}/tool/x.py\n```",
        "`${CLAUDE_SKILL_DIR}/tool/x.py`",
        "~~~console\n$ cat references/x.md | less\n~~~",
    ];
    for text in missing {
        let found = findings_in_document(format!("{}{text}\n", document_with("")));
        assert!(found.len() == 1 && found[0].ends_with(" missing-file"), "{text}: {found:?}");
    }
    let ignored = [
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
        "[x](.wiki/x.md) and the script `scripts/x.py` of the plugin root",
        "```bash\npython tool.py -o assets/x.png scripts/y.py\n# scripts/z.py\n```",
        "```bash\ncd /x && python scripts/y.py\n```",
        "```python\nopen('assets/x.png')\n```",
        "[x](/etc/x.md) [x](a(1).md) [x](y.md",
        "![x](SKILL.md) `scripts/../SKILL.md`",
        "> [x](y.md)",
        "- [x](y.md) - [Description]",
        "## Output format\n\n[x](y.md)",
        "### The file `index.md`\n\n[x](./y.md)",
        "If `references/x.md` exists, read it. Check whether [x](y.md) exists.",
        "```sh\n./scripts/x.sh --all\n```",
        "```sh\ngit clone u\npython scripts/x.py\n```",
        "```sh\ncd x\npython scripts/y.py\n```",
        "```sh\npython tool.py \\\n  scripts/y.py\n```",
        "read `y/SKILL.md`",
    ];
    for text in ignored {
        assert_eq!(
            findings_in_document(format!("{}{text}\n", document_with(""))),
            [""; 0],
            "{text}"
        );
    }
}

/// The name of another skill hides no file, only those that are in it.
#[test]
fn files_beside_the_name_of_another_skill_are_found() {
    for (text, is_missing) in [
        ("Read `references/x.md` first. Then use the `b` skill.", true),
        ("Use the `b` skill, then read [x](references/x.md).", true),
        ("The `b` skill runs after `python scripts/x.py`.", true),
        ("Read [x](y.md) before you use the `b` skill.", true),
        ("See `references/x.md` in the `b` skill.", false),
        ("See [x](references/x.md) of the `b` skill.", false),
    ] {
        let found = findings_in_document(format!("{}{text}\n", document_with("")));
        let expected = if is_missing { &["SKILL.md:6 missing-file"][..] } else { &[] };
        assert_eq!(found, expected, "{text}");
    }
}

/// A path below the skill's folder is not one of the repository around it, as others may be.
#[test]
fn a_file_above_the_skill_is_outside() {
    for (path, expected) in [
        ("${CLAUDE_SKILL_DIR}/tool/x.py", &["SKILL.md:6 outside-reference"][..]),
        ("scripts/x.py", &[]),
    ] {
        let text = format!("{}`{path}`\n", document_with(""));
        let skill = TestSkill::new("a")
            .write("SKILL.md", text)
            .write("../tool/x.py", "")
            .write("../scripts/x.py", "");
        assert_eq!(skill.findings(), expected, "{path}");
    }
}

#[test]
fn a_similar_name_is_suggested() {
    let skill = TestSkill::new("a")
        .write(
            "SKILL.md",
            format!(
                "{}[x](reference/Guide.md) [y](rest.md) [z](references/xss.md)\n[g](guidde.md)\n",
                document_with("")
            ),
        )
        .write("references/guide.md", "x")
        .write("references/css.md", "x");
    let found = check(&skill.skill());
    assert_eq!(found[0].fix.as_deref(), Some("did you mean `references/guide.md`?"));
    assert_eq!(found[1].fix.as_deref(), Some("add the file, or correct its path"));
    assert_eq!(found[2].fix.as_deref(), Some("add the file, or correct its path"));
    assert_eq!(found[3].fix.as_deref(), Some("did you mean `references/guide.md`?"));
}

/// Problems of one cause are one problem: the files of a missing folder, the documents of other
/// skills, and the files outside the skill.
#[test]
fn missing_files_of_one_cause_are_one_problem() {
    let text = "`references/x.md`\n[y](references/y.md)\n[b](../b/SKILL.md) [b](../b/)\n\
                [c](../c.md) [d](../d.md)\n`scripts/x.py`\n`scripts/y.py`\n";
    let skill = TestSkill::new("a")
        .write("SKILL.md", format!("{}{text}", document_with("")))
        .write("scripts/z.py", "")
        .write("../b/SKILL.md", "b");
    let found = check(&skill.skill());
    let shown: Vec<String> = found.iter().map(|problem| problem.message.clone()).collect();
    assert_eq!(
        shown,
        [
            "`references/x.md`, `references/y.md` are named here, but the skill has no folder \
             `references`",
            "`../b/SKILL.md`, `../b/` belong to other skills",
            "`../c.md`, `../d.md` lead out of the skill, to no file",
            "`scripts/x.py` is named here, but the skill has no such file",
            "`scripts/y.py` is named here, but the skill has no such file",
        ]
    );
    let fix = "name the skill instead: call get_skill `b`";
    assert_eq!(found[1].fix.as_deref(), Some(fix));
}

/// A file of the plugin around the skill is installed with it.
#[test]
fn a_file_of_the_plugin_is_no_problem() {
    let text = format!("{}[x](../../x.md)\n", document_with(""));
    let skill = TestSkill::new("p/skills/a").write("SKILL.md", text);
    fs::write(skill.path().join("../../x.md"), "").unwrap();
    let outside = |skill: &TestSkill| {
        let found = skill.findings();
        found.iter().filter(|line| line.ends_with("outside-reference")).count()
    };
    assert_eq!(outside(&skill), 1);
    fs::write(skill.path().join("../../plugin.json"), "{}").unwrap();
    assert_eq!(outside(&skill), 0);
}

/// The Markdown files that the document names are read, too; their paths are relative to them or
/// to the skill.
#[test]
fn references_of_named_files_are_followed() {
    let text = format!("{}[x](references/x.md) `assets/t.md`\n", document_with(""));
    let skill = TestSkill::new("a")
        .write("SKILL.md", text)
        .write(
            "references/x.md",
            "# X\n[y](y.md) [z](references/z.md) [s](../SKILL.md)\n[q](q.md)\n",
        )
        .write("references/y.md", "[x](x.md) `scripts/x.py`\n[r](r.md)\n")
        .write("references/z.md", "")
        .write("references/unnamed.md", "[q](q.md)")
        .write("assets/t.md", "[q](q.md)");
    assert_eq!(
        skill.findings(),
        ["references/x.md:3 missing-file", "references/y.md:2 missing-file"]
    );
}

/// Other skills are found from each file of the skill, with the files in them.
#[test]
fn files_of_other_skills_are_notes() {
    let skill = TestSkill::new("s/a")
        .write("SKILL.md", format!("{}[x](references/x.md)\n", document_with("")))
        .write("references/x.md", "[b](../../b/part/SKILL.md) [c](../../c/x.md) [d](../../d.md)")
        .write("../b/SKILL.md", "b")
        .write("../b/part/SKILL.md", "b")
        .write("../d.md", "d");
    let found = check(&skill.skill());
    let shown: Vec<_> = found.iter().map(|it| (it.rule.name(), it.message.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("other-skill", "`../../b/part/SKILL.md` belongs to another skill"),
            (
                "outside-reference",
                "`../../d.md` is outside the skill, and missing where only the skill is installed"
            ),
            ("missing-file", "`../../c/x.md` leads out of the skill, to no file"),
        ]
    );
    assert_eq!(found[0].fix.as_deref(), Some("name the skill instead: call get_skill `b`"));
}

/// Only lines of shell commands run scripts; a script beside the document is run as `./x.sh`.
#[test]
fn commands_are_lines_of_shell_code() {
    let findings = |text: &str, script: &str| {
        let text = format!("{}{text}\n", document_with(""));
        TestSkill::new("a")
            .write("SKILL.md", text)
            .write("scripts/x.sh", script)
            .write("y.sh", script)
            .write("references/r.md", "")
            .findings()
    };
    for text in [
        "```bash\nscripts/x.sh --all\n```",
        "```\n$ scripts/x.sh\n```",
        "```\n./y.sh\n```",
        "```sh\nX=$(./y.sh)\n```",
        "Type `$ scripts/x.sh a`.",
    ] {
        let found = findings(text, "");
        assert!(found.len() == 1 && found[0].ends_with(" not-executable"), "{text}: {found:?}");
    }
    for text in [
        "- `scripts/x.sh --all` does it",
        "### Setup (scripts/z.sh)\n\n```sh\nx\n```",
        "Call `b` (see its `references/x.md`).",
        "Call `b`, and follow `b`'s\n`references/x.md`.",
        "Run `./scripts/x.sh`.",
        "```\nscripts/x.sh\n```",
        "```python\n./y.sh\n```",
        "```sh\nX=$(bash y.sh) && sh scripts/x.sh\nreferences/r.md a\n```",
    ] {
        assert_eq!(findings(text, ""), [""; 0], "{text}");
    }
    for (text, file) in [("```sh\nbash y.sh\n```", "y.sh"), ("See `scripts/x.sh`.", "scripts/x.sh")]
    {
        assert_eq!(findings(text, "#!/bin/sh\r\n"), [format!("{file}:1 crlf-script")], "{text}");
    }
}
