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
        "```bash\npython3 -u scripts/x.py a\n```",
        "```sh\n./scripts/x.sh\n```",
        "```bash\nuv run {baseDir}/tool/x.py\n```",
        "`${CLAUDE_SKILL_DIR}/tool/x.py`",
        "~~~console\n$ cat references/x.md | less\n~~~",
    ];
    for text in missing {
        let found = findings_in_document(format!("{}{text}\n", document_with("")));
        assert!(found.len() == 1 && found[0].contains("dangling-"), "{text}: {found:?}");
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
        "```bash\n# From the root of the project\npython scripts/x.py\n```",
        "[x](.wiki/x.md) and the script `scripts/x.py` of the plugin root",
        "```bash\npython tool.py -o assets/x.png scripts/y.py\n# scripts/z.py\n```",
        "```bash\ncd /x && python scripts/y.py\n```",
        "```python\nopen('assets/x.png')\n```",
        "[x](/etc/x.md) [x](a(1).md) [x](y.md",
        "![x](SKILL.md) `scripts/../SKILL.md`",
    ];
    for text in ignored {
        assert_eq!(
            findings_in_document(format!("{}{text}\n", document_with(""))),
            [""; 0],
            "{text}"
        );
    }
}

#[test]
fn a_file_above_the_skill_is_outside() {
    let skill =
        TestSkill::new("a").write("SKILL.md", format!("{}`scripts/x.py`\n", document_with("")));
    fs::create_dir(skill.path().with_file_name("scripts")).unwrap();
    fs::write(skill.path().with_file_name("scripts").join("x.py"), "").unwrap();
    assert_eq!(skill.findings(), ["SKILL.md:6 outside-reference"]);
}

#[test]
fn a_similar_name_is_suggested() {
    let skill = TestSkill::new("a")
        .write("SKILL.md", format!("{}[x](reference/Guide.md) [y](rest.md)\n", document_with("")))
        .write("references/guide.md", "x");
    let found = check(&skill.skill());
    assert_eq!(found[0].fix.as_deref(), Some("did you mean `references/guide.md`?"));
    assert_eq!(found[1].fix.as_deref(), Some("add the file, or remove the link"));
}
