//! Documents, folders and reports.

use crate::harness::Test;

/// Two skills, one of them with a problem of each kind.
fn some_skills() -> Test {
    let broken = "\u{feff}---\r\nname: Table Maker\r\ndescription: Use when: now\r\n\
                  allowed-tools: Read, Bash(git:*)\r\n---\r\nRead [it](references/x.md).\r\n";
    Test::new()
        .file("skills/table-maker/Skill.md", broken)
        .skill("good", "---\nname: good\ndescription: Is good.\n---\nDo it.\n")
}

/// One line per problem in the format of compilers, and an exit status for CI.
#[test]
fn problems_are_reported_with_place_and_errors_fail() {
    let test = some_skills();
    let run = test.clone().args(["skills", "check"]).run();
    let run = run.status(1);
    let problems: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| !line.starts_with("  fix: "))
        .map(|line| line.split("]: ").next().unwrap())
        .collect();
    let at = |rest: &str| format!("skills/table-maker/Skill.md{rest}");
    assert_eq!(
        problems,
        [
            at(": error[document-case"),
            at(":1: error[late-frontmatter"),
            at(":2: warning[invalid-name"),
            at(":3: warning[unquoted-value"),
            at(":6: warning[missing-file"),
        ]
    );
    let good = test.args(["skills", "check", "good"]).run();
    good.success().stdout("");
}

#[test]
fn json_report_has_every_problem() {
    let test = some_skills().args(["skills", "check", "--json", "table-maker"]);
    let run = test.run();
    let run = run.status(1);
    let report = run.stdout_json();
    assert_eq!((&report["errors"], &report["warnings"]), (&2.into(), &3.into()));
    let problem = &report["problems"][3];
    assert_eq!(problem["rule"], "unquoted-value");
    assert_eq!(problem["severity"], "warning");
    assert_eq!(problem["line"], 3);
    assert_eq!(problem["file"], "Skill.md");
}

/// Fields in brackets without a space after a colon are read here and lost in clients that use
/// libyaml.
#[test]
fn colons_without_a_space_in_brackets_are_reported() {
    for (field, is_reported) in [
        ("hooks: {After:[{match: Skill}]}", true),
        ("metadata: {author:{name: acme}}", true),
        ("tags: [a:[b]]", true),
        ("tags: [a:]", true),
        ("metadata: {author:,b: c}", true),
        ("tags: [a, \n  b:]", true),
        ("metadata: {\"author\":{\"name\":\"acme\"}}", false),
        ("tags: [a: [b], c:d, http://x.y/z]", false),
        ("note: see a:[b] and {c:}", false),
    ] {
        let document = format!("---\nname: c\ndescription: does x\n{field}\n---\nDo it.\n");
        let test = Test::new().skill("c", &document);
        test.clone().args(["skills", "list"]).run().success().stdout("c\tdoes x\n");
        let run = test.args(["skills", "check"]).run().success();
        let line = if field.contains('\n') { 5 } else { 4 };
        let problem =
            format!("skills/c/SKILL.md:{line}: warning[bad-flow]: no space after a colon");
        run.check(run.stdout.contains(&problem) == is_reported, field);
        run.check(is_reported || run.stdout.is_empty(), field);
    }
}

/// A field without its space, or a line without its indentation, is reported.
#[test]
fn line_that_is_not_a_field_is_reported() {
    for stray in ["author:me\nversion:1.2", "TODO rewrite this"] {
        let document = format!("---\nname: c\ndescription: does x\n{stray}\n---\nDo it.\n");
        let test = Test::new().skill("c", &document);
        let run = test.next_run().args(["skills", "check"]).run().success();
        run.stdout_has("skills/c/SKILL.md:4: warning[not-a-field]: ");
    }
}

/// Prose in brackets keeps its commas.
#[test]
fn description_in_brackets_is_kept_whole() {
    let prose = "Merge PDFs, split PDFs, and rotate. Use when X";
    let document = format!("---\nname: c\ndescription: [{prose}]\n---\nDo it.\n");
    let test = Test::new().skill("c", &document);
    test.next_run().args(["skills", "list"]).run().success().stdout_has(prose);
    let check = test.next_run().args(["skills", "check"]).run().success();
    check.stdout_has("write it as one text in double quotes\n");
}

/// PyYAML fails at any tab. Readers that accept tabs keep one that separates words.
#[test]
fn tab_between_words_is_kept() {
    let document = "---\nname: c\ndescription: a\tb\nversion:\t2\n---\nDo it.\n";
    let test = Test::new().skill("c", document);
    let show = test.next_run().args(["skills", "show", "--json", "c"]).run().stdout_json();
    assert_eq!(show["frontmatter"]["description"], "a\tb");
    let check = test.next_run().args(["skills", "check"]).run().success();
    check
        .stdout_has(
            ":3: warning[unsupported-yaml]: a tab outside quotes, which some readers refuse",
        )
        .stdout_has("put text in double quotes\n");
}

/// A field with extra indentation is read and reported; so is a line that only looks like a field.
#[test]
fn indented_field_is_read_and_reported() {
    let test = Test::new()
        .file(
            "skills/slip/SKILL.md",
            "---\nname: slip\n description: Use when X\n\tlicense: MIT\n---\nDo it.\n",
        )
        .file(
            "skills/note/SKILL.md",
            "---\nname: note\ndescription: Fill forms\n  note: all\n---\nDo it.\n",
        );
    let list = test.clone().args(["skills", "list", "--json"]).run();
    let list = list.success().stdout_json();
    assert_eq!(list["skills"][1]["description"], "Use when X", "{list}");
    let run = test.clone().args(["skills", "check"]).run().success();
    let problems = run.stdout.lines().filter(|line| line.starts_with("skills"));
    let problems: Vec<&str> = problems.map(|line| line.split("]: ").next().unwrap()).collect();
    let expected = [
        "skills/note/SKILL.md:4: warning[indented-field",
        "skills/slip/SKILL.md:3: warning[indented-field",
        "skills/slip/SKILL.md:4: warning[indented-field",
    ];
    assert_eq!(problems, expected, "{}", run.stdout);
}

/// The linter fails in every format if it cannot read a folder.
#[test]
fn unreadable_folder_is_an_error() {
    let good = "---\nname: good\ndescription: Is good.\n---\nDo it.\n";
    let test = Test::new().skill("good", good).file("plain", "x");
    for (folder, words) in [("./nowhere", "does not exist"), ("plain", "is not a folder")] {
        let both = ["skills", "check", "--skills", "skills", "--skills", folder];
        for args in [&both[..], &["skills", "check", "--skills", folder]] {
            let run = test.clone().args(args).run().status(78);
            run.stdout_is_empty().stderr_has(words).stderr_has("hint: ");
        }
        let test = test.clone().env("SKILLS_FOLDER_PATH", format!("skills:{folder}"));
        let run = test.next_run().args(["skills", "check"]).run().status(1);
        let name = folder.trim_start_matches("./");
        run.stdout_has(&format!("{name}: error[unreadable-folder]: the skills folder "))
            .stdout_has(words)
            .stdout_has("  fix: ")
            .stderr_has("1 error, 0 warnings");
        let run = test.next_run().args(["skills", "check", "--json"]).run();
        let report = run.status(1).stdout_json();
        let problem = &report["problems"][0];
        assert_eq!(problem["rule"], "unreadable-folder");
        assert_eq!(problem["severity"], "error");
        assert_eq!(problem["path"], test.path(name).display().to_string());
        assert_eq!((&report["status"], &report["exit_code"]), (&"error".into(), &1.into()));
    }
    let run = test.clone().args(["skills", "check", "./plain"]).run();
    run.status(1).stdout_has("plain: error[unreadable-folder]");
    let test = test.env("SKILLS_FOLDER_PATH", "skills:nowhere");
    let list = test.args(["skills", "list", "--json"]);
    let problem = &list.run().success().stdout_json()["problems"][0];
    assert_eq!(problem["rule"], "unreadable-folder");
}

/// CI passes changed files, an editor its current folder.
#[test]
fn skill_is_found_by_its_document_and_from_its_folder() {
    let test = some_skills();
    let document = "skills/table-maker/Skill.md";
    let args = ["skills", "check", document, document];
    let run = test.clone().args(args).run().status(1);
    run.stdout_has("skills/table-maker/Skill.md:3: warning[unquoted-value]")
        .stderr_has("1 skill checked: 2 errors, 3 warnings");
    let show = test.clone().args(["skills", "show", "skills/good/SKILL.md"]);
    show.run().success().stdout_has("name:         good\n");
    let inside = test.clone().cwd(test.path("skills/table-maker"));
    for word in [".", "Skill.md", "./Skill.md"] {
        let run = inside.clone().args(["skills", "check", word]).run();
        run.status(1)
            .stdout_has("Skill.md:3: warning[unquoted-value]")
            .stdout_lacks("maker/Skill.md");
    }
    // The folder itself, and a link to it.
    let deep = "d/".repeat(40);
    let test = test.file(&format!("skills/good/{deep}x"), "x").link("way", "skills/good");
    for folder in ["skills/good", "way"] {
        let inside = test.clone().cwd(test.path(folder));
        let run = inside.args(["skills", "check", "."]).run().success();
        run.stdout_has(".: warning[many-files]: ");
    }
}
