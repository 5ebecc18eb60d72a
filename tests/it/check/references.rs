//! References of documents, and the scripts that they run, through the program.

use crate::harness::Test;

/// Missing files are warnings, also those that another Markdown file names; a script that cannot
/// start in any client is an error.
#[test]
fn references_of_all_documents_are_checked() {
    let front = "---\nname: a\ndescription: does b\n---\n";
    let text = format!("{front}Read [x](references/x.md), open `resources/y.md`.\n");
    let test = Test::new().skill("a", &text).file("skills/a/references/x.md", "[z](z.md)\n");
    let run = test.next_run().args(["skills", "check"]).run().success();
    run.stdout_has("skills/a/SKILL.md:5: warning[missing-file]: `resources/y.md` is named here")
        .stdout_has("skills/a/references/x.md:1: warning[missing-file]: `z.md` is named here");
    let text = format!("{front}Run `bash scripts/x.sh`.\n");
    let test = Test::new().skill("a", &text).file("skills/a/scripts/x.sh", "#!/bin/sh\r\nls\r\n");
    let run = test.args(["skills", "check"]).run().status(1);
    run.stdout_has("skills/a/scripts/x.sh:1: error[crlf-script]: ");
}

/// What names a script in a command is a reference, whatever the sentence says.
#[test]
fn a_missing_script_of_a_command_is_reported_in_every_sentence() {
    let front = "---\nname: a\ndescription: does b\n---\n";
    for sentence in ["Sum", "Add", "If it exists, save", "For example, create"] {
        let text = format!("{front}{sentence} the numbers with `python scripts/total.py`.\n");
        let run = Test::new().skill("a", &text).args(["skills", "check"]).run().success();
        run.stdout_has("SKILL.md:5: warning[missing-file]: `scripts/total.py` is named here");
    }
}

/// A path to the document of another skill names the tool that reads it.
#[test]
fn the_document_of_another_skill_names_the_tool() {
    let front = "---\nname: a\ndescription: does b\n---\n";
    let test = Test::new()
        .skill("a", &format!("{front}[b](../b/SKILL.md)\n"))
        .skill("b", &front.replace("name: a", "name: b"));
    let run = test.args(["skills", "check", "a"]).run().success();
    run.stdout_has("skills/a/SKILL.md:5: note[other-skill]: `../b/SKILL.md` belongs to ")
        .stdout_has("  fix: name the skill instead: call get_skill `b`\n");
}
