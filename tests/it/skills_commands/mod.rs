//! `skills list`, `show` and `new`.

mod list_and_show;
mod new;
mod reports;

use crate::harness::Test;

const TABLES: &str = "---\nname: table-maker\ndescription: Makes tables.\nlicense: MIT\nmetadata:\n  version: \"1.0\"\n---\n# Tables\n";

fn some_skills() -> Test {
    Test::new()
        .skill("tables", TABLES)
        .file("skills/tables/scripts/make.py", "print(1)\n")
        .skill("notes", "# Keeps notes\n\nThen more.\n")
        .file("skills/empty/readme.txt", "nothing here\n")
}
