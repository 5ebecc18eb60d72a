//! The files of a skill that inexact paths mean, and those of the skills beside it.

use serde_json::json;

use crate::harness::{Outcome, Reply, Server, Test};

fn read(test: &Test, skill: &str, path: &str) -> Outcome {
    let arguments = json!({"skill_name": skill, "file_path": path}).to_string();
    test.next_run().args(["tool", "read_file_in_skill", &arguments]).run()
}

fn skills() -> Test {
    Test::new()
        .skill("pdf", "---\nname: acrobat\n---\n# PDF\n")
        .file("skills/pdf/forms.md", "forms\n")
        .file("skills/pdf/scripts/Fill.py", "fill\n")
        .file("skills/pdf/scripts/two", "two\n")
        .file("skills/pdf/scripts/TWO.py", "TWO\n")
        .file("skills/pdf/a/same.md", "same\n")
        .file("skills/pdf/a/SAME.md", "SAME\n")
}

/// A path is taken as meant where only letter case, the skill's folder in front, or `.py` differ
/// and one file alone fits; the answer says so.
#[test]
fn inexact_paths_are_taken_as_meant() {
    let test = skills();
    let table = [
        ("forms.md", "", "forms\n"),
        ("./forms.md", "", "forms\n"),
        ("FORMS.md", "forms.md", "forms\n"),
        ("skill.md", "SKILL.md", "---\nname: acrobat\n---\n# PDF\n"),
        ("skills/pdf/forms.md", "forms.md", "forms\n"),
        ("./pdf/Forms.md", "forms.md", "forms\n"),
        ("PDF/forms.md", "forms.md", "forms\n"),
        ("scripts/fill", "scripts/Fill.py", "fill\n"),
        ("SCRIPTS/fill.py", "scripts/Fill.py", "fill\n"),
        ("pdf/scripts/two", "scripts/two", "two\n"),
        ("Scripts", "scripts", "Fill.py (5 bytes)\nTWO.py (4 bytes)\ntwo (4 bytes)\n"),
    ];
    for (path, meant, content) in table {
        let note = match meant {
            "" => String::new(),
            meant => format!("[read `{meant}`, there is no `{path}`]\n"),
        };
        read(&test, "pdf", path).success().stdout(&(note + content));
    }
    // Several fit, or only a near one.
    for path in ["a/Same.md", "scripts/Two", "fill.py", "form.md", "other/forms.md", "pdf/"] {
        read(&test, "pdf", path).status(1).stdout_has("no such file or folder");
    }
}

/// `../OTHER/FILE` and an absolute path are the file of another skill, through that skill's own
/// folder; everything else outside stays refused.
#[test]
fn paths_into_another_skill_are_its_files() {
    let test = skills()
        .skill("ink", "# Ink\n")
        .file("skills/secret.md", "outside\n")
        .file("skills/plain/note.md", "outside\n")
        .link("skills/pdf/out.md", "../secret.md")
        .link("skills/linked", "../elsewhere")
        .file("elsewhere/SKILL.md", "# Linked\n");
    let absolute = |path: &str| test.path(path).display().to_string();
    let table = [
        ("../pdf/forms.md".to_string(), "forms\n"),
        ("./../pdf//./forms.md".into(), "forms\n"),
        ("../pdf/Forms.md".into(), "[read `forms.md`, there is no `Forms.md`]\nforms\n"),
        ("../linked/SKILL.md".into(), "# Linked\n"),
        ("../linked".into(), "SKILL.md (9 bytes)\n"),
        (absolute("skills/pdf/forms.md"), "forms\n"),
        (absolute("skills/ink/SKILL.md"), "# Ink\n"),
    ];
    for (path, content) in table {
        read(&test, "ink", &path).success().stdout(content);
    }
    let refused = [
        ("../secret.md", "a path must not contain `..`"),
        ("../plain/note.md", "a path must not contain `..`"),
        ("../Pdf/forms.md", "a path must not contain `..`"),
        ("../pdf/../secret.md", "a path must not contain `..`"),
        ("../../skills/pdf/forms.md", "a path must not contain `..`"),
        ("../pdf/out.md", "a link leads out of the folder"),
        ("../pdf/nothing.md", "`nothing.md` of the skill `pdf` cannot be read: no such file"),
        (&absolute("skills/secret.md"), "an absolute path that is not in the folder"),
        (&absolute("skills/pdf/../secret.md"), "a path must not contain `..`"),
    ];
    for (path, message) in refused {
        read(&test, "ink", path).status(1).stdout_has(message).stdout_lacks("outside");
    }
    let call = json!({"skill_name": "ink", "file_path": "../pdf/SKILL.md"}).to_string();
    let server =
        Server::start([Reply::calls([("read_file_in_skill", call.as_str())]), Reply::text("done")]);
    let run = test.next_run().endpoint(&server).args(["-o", "json", "go"]).run().success();
    assert_eq!(run.stdout_json()["skills_read"], json!(["pdf"]));
    server.finish();
}
