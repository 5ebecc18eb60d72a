//! The files of a skill that inexact paths mean, and those of the skills beside it.

use serde_json::json;

use crate::harness::{Outcome, Test};

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
