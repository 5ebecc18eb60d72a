//! Skills below a folder that the user named, and the longer names of skills with the same name.

use super::{call, document, dry_run, list, system};
use crate::harness::Test;
use serde_json::json;
use std::fs;
use std::process::Command;

/// The names that `list_skills` returns for the folder `repo`.
fn names(test: &Test) -> Vec<String> {
    let (listed, _) = list(test, ["--skills", "repo"]);
    listed.into_iter().map(|(name, _)| name).collect()
}

fn get(test: &Test, name: &str) -> crate::harness::Outcome {
    let call = json!({"skill_name": name}).to_string();
    test.next_run().args(["--skills", "repo", "tool", "get_skill", &call]).run()
}

/// Skills at every level are found and can be used, except in folders that tools create and in
/// other skills.
#[test]
fn named_folder_is_searched_below() {
    let skill = |test: Test, path: &str| {
        let name = path.rsplit('/').next().unwrap();
        test.file(&format!("repo/{path}/SKILL.md"), document(name, &format!("At {path}.")))
    };
    let found =
        ["skills/a", "plugins/p/skills/b", ".claude/skills/c", "1/2/3/4/5/6/7/deepest", "template"];
    let ignored = [
        "1/2/3/4/5/6/7/8/too-deep",
        "skills/a/examples/inner",
        "node_modules/n/skills/x",
        ".git/y",
        "__pycache__/z",
        ".pytest_cache/q",
        "env/lib/v",
        "skills/.hidden",
    ];
    let test = found.into_iter().chain(ignored).fold(Test::new(), skill);
    let test = test.file("repo/env/pyvenv.cfg", "").folder("repo/docs/images");
    assert_eq!(names(&test), ["a", "b", "c", "deepest", "template"]);
    // Next to skills a folder without a document is shown to the user.
    let shown = test.next_run().args(["--skills", "repo", "skills", "list"]).run().success();
    shown.stdout_has("docs\t(cannot be used: it has no SKILL.md)\n").stdout_lacks("images");
    for path in found {
        let name = path.rsplit('/').next().unwrap();
        get(&test, name).success().stdout_has(&format!("At {path}."));
    }
    // A default folder is not searched, but the option that does so is named.
    let test = test.file("skills/more/s/SKILL.md", document("s", "S."));
    let run = dry_run(&test, [""; 0]);
    run.stderr_has(&format!("--skills {}\n", test.path("skills").display()));
}

/// A link below a named folder is followed only inside it, and each real folder is found once.
#[test]
fn links_below_a_named_folder_stay_inside() {
    let test = Test::new()
        .file("outside/deep/o/SKILL.md", document("o", "Outside."))
        .file("elsewhere/direct/SKILL.md", document("direct", "A skill of the user's."))
        .file("repo/skills/a/SKILL.md", document("a", "A."))
        .link("repo/plugins/p/skills", "../../skills")
        .link("repo/plugins/p/up", "../..")
        .link("repo/plugins/out", "../../outside/deep")
        .link("repo/out", "../outside")
        .link("repo/direct", "../elsewhere/direct")
        // A folder for another client, made of links to documents.
        .folder("repo/.gemini/skills/a")
        .link("repo/.gemini/skills/a/SKILL.md", "../../../skills/a/SKILL.md");
    assert_eq!(names(&test), ["a", "direct"]);
    get(&test, "out").status(1).stdout_has("it has no SKILL.md");
    get(&test, "direct").success().stdout_has("A skill of the user's.");
    // A document that cannot be read is not taken for such a link.
    let test = test.folder("repo/skills/pipe");
    let made = Command::new("mkfifo").arg(test.path("repo/skills/pipe/SKILL.md")).status();
    assert!(made.unwrap().success());
    get(&test, "pipe").status(1).stdout_has("cannot be read: a FIFO");
}

/// Of skills with the same name the shallower wins, then the first by path. The others have a name
/// with their plugin, if that is equal with more folders, and copies are not offered.
#[test]
fn same_names_are_told_apart_by_their_plugins() {
    let test = Test::new()
        .file("repo/skills/pdf/SKILL.md", document("pdf", "First."))
        .file("repo/plugins/office/.claude-plugin/plugin.json", "{}")
        .file("repo/plugins/office/skills/pdf/SKILL.md", document("pdf", "Of office."))
        .file("repo/plugins/print/skills/pdf/SKILL.md", document("pdf", "Of print."))
        .file("repo/plugins/twice/plugin.json", "{}")
        .file("repo/plugins/twice/x/pdf/SKILL.md", document("pdf", "X."))
        .file("repo/plugins/twice/y/pdf/SKILL.md", document("pdf", "Y."))
        .file("repo/.cursor/skills/pdf/SKILL.md", document("pdf", "First."));
    let expected = ["office:pdf", "pdf", "print:pdf", "twice/x:pdf", "twice/y:pdf"];
    assert_eq!(names(&test), expected);
    for (name, says) in [
        ("pdf", "First."),
        ("repo:pdf", "use one of the names `pdf`, `repo/.cursor/skills:pdf`"),
        ("repo/skills:pdf", "First."),
        ("repo/.cursor/skills:pdf", "First."),
        ("office:pdf", "Of office."),
        ("office/skills:pdf", "Of office."),
        ("plugins/office/skills:pdf", "Of office."),
        ("print:pdf", "Of print."),
        ("twice/y:pdf", "Y."),
        ("twice:pdf", "use one of the names `twice/x:pdf`, `twice/y:pdf`"),
        ("unknown:pdf", "did you mean `pdf`"),
    ] {
        get(&test, name).stdout_has(says);
    }
    let command = |words: &[&str]| test.next_run().args(["--skills", "repo"]).args(words).run();
    let listed = command(&["skills", "list"]).success();
    listed
        .stdout_has("repo/.cursor/skills:pdf\tFirst.")
        .stderr_has("so this skill is `office:pdf`");
    command(&["skills", "show", "twice/x:pdf"]).success().stdout_has("X.");
    command(&["skills", "check", "print:pdf"]).success();
    assert!(system(&dry_run(&test, ["--skills", "repo"])).contains("- twice/x:pdf: X.\n"));
}

/// A folder whose name looks like `PLUGIN:SKILL` keeps it.
#[test]
fn folder_name_with_a_colon_is_not_taken() {
    let test = Test::new()
        .file("repo/pdf/SKILL.md", document("pdf", "First."))
        .file("repo/print:pdf/SKILL.md", document("print:pdf", "With a colon."))
        .file("repo/print/pdf/SKILL.md", document("pdf", "Of print."));
    assert_eq!(names(&test), ["pdf", "print:pdf", "repo/print:pdf"]);
    get(&test, "print:pdf").success().stdout_has("With a colon.");
    get(&test, "repo/print:pdf").success().stdout_has("Of print.");
}

/// The folders that the specification and installers use are found without any setting; the
/// project's win, and the user learns of it.
#[test]
fn all_default_folders_are_read() {
    let mut test = Test::new().cwd("work").folder("work");
    let folders = [
        "work/skills",
        "work/.agents/skills",
        "work/.claude/skills",
        "home/.local/share/skills-runner/skills",
        "home/.agents/skills",
        "home/.claude/skills",
    ];
    for (at, folder) in folders.iter().enumerate() {
        test = test
            .file(&format!("{folder}/same/SKILL.md"), document("same", folder))
            .file(&format!("{folder}/s{at}/SKILL.md"), document(&format!("s{at}"), folder));
    }
    let (listed, _) = list(&test, [""; 0]);
    let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4", "s5", "same"]);
    call(&test, "get_skill", &json!({"skill_name": "same"})).stdout_has("work/skills");
    let run = dry_run(&test, [""; 0]);
    let used = "using the skills of this folder: 2 in ./skills, 1 in ./.agents/skills, \
                1 in ./.claude/skills\n";
    run.stderr_has(used).stderr_has("home/.claude/skills/same: the name `same` means ");
    // An installer's link to the other folder is not a clash.
    fs::remove_dir_all(test.path("work/.claude")).unwrap();
    let test = test.link("work/.claude/skills/s1", "../../.agents/skills/s1");
    let run = dry_run(&test, [""; 0]).stderr_lacks("`s1`");
    run.stderr_has("using the skills of this folder: 2 in ./skills, 1 in ./.agents/skills\n");
    // In the home, these folders are the user's own.
    let test = test.cwd("home");
    dry_run(&test, [""; 0]).stderr_lacks("using the skills of this folder");
    // A named folder replaces them all.
    let (listed, _) = list(&test, ["--skills", ".agents/skills"]);
    assert_eq!(listed.len(), 2);
}

/// A named folder that is a skill is offered with the skills below it, and can be used.
#[test]
fn named_folder_may_be_a_skill_itself() {
    let test = Test::new()
        .file("repo/SKILL.md", document("repo", "The root."))
        .file("repo/say.py", "print('said')")
        .file("repo/a/SKILL.md", document("a", "Below."));
    assert_eq!(names(&test), ["a", "repo"]);
    let call = json!({"skill_name": "repo", "file_path": "say.py"}).to_string();
    for sandbox in ["off", "on"] {
        let run = test.next_run().env("SCRIPT_SANDBOX", sandbox);
        let run = run.args(["--skills", "repo", "tool", "run_python_script", &call]).run();
        run.success().stdout_has(r#""stdout":"said\n""#);
    }
    test.next_run().args(["skills", "show", "./repo"]).run().success().stdout_has("The root.");
    let default = test.file("skills/SKILL.md", document("skills", "In a default folder."));
    assert_eq!(list(&default, [""; 0]).0[0].0, "skills");
}

/// A search ends after 20,000 folders, and says so.
#[test]
#[ignore = "long"]
fn search_of_too_many_folders_ends() {
    let test = Test::new().file("repo/z/late/SKILL.md", document("late", "Late."));
    for number in 0..20_001 {
        fs::create_dir_all(test.path(format!("repo/a/{number}"))).unwrap();
    }
    dry_run(&test, ["--skills", "repo"]).stderr_has("more than 20000 folders");
}

/// A skill that is not listed, as there are too many folders, is found by its name all the same.
#[test]
#[ignore = "long"]
fn skills_beyond_the_list_are_found_by_name() {
    let test = Test::new()
        .skill("z-late", &document("z-late", "Late."))
        .skill("z-other", &document("z-other", "Other."));
    for number in 0..20_001 {
        fs::create_dir(test.path(format!("skills/{number}"))).unwrap();
    }
    let run = |words: &[&str]| test.clone().args(words).args(["--skills", "skills"]).run();
    run(&["tool", "get_skill", r#"{"skill_name":"z-late"}"#]).success();
    run(&["skills", "show", "z-late"]).success().stdout_has("description:  Late.\n");
    run(&["skills", "check", "z-late", "z-other"])
        .success()
        .stderr_has("2 skills checked: 0 errors");
    run(&["skills", "setup", "z-late", "z-other"]).status(2).stderr_has("`z-other` is a skill");
    let asked = dry_run(&test, ["--skills", "skills", "/z-late x"]);
    asked.stderr_has("using skill `z-late`");
}
