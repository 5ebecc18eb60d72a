//! Skills installed with the program: found relative to the binary, after all others, and only if
//! no other user can have written them.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;

use crate::harness::{Outcome, Test, program, report_skipped};

const SKILLS: &str = "prefix/share/skills-runner/skills";
/// Command that runs a program as an ordinary user.
const USER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";
const PROGRAM: &str = "exec ../prefix/bin/skills-runner \"$@\"";

fn document(name: &str, says: &str) -> String {
    format!("---\nname: {name}\ndescription: {says}\n---\n\n# {name}\n")
}

/// The program in `prefix/bin`, two installed skills, and an empty working folder.
fn test_with_installation() -> Test {
    let test = Test::new()
        .folder("work")
        .folder("prefix/bin")
        .file(&format!("{SKILLS}/a/SKILL.md"), document("a", "Installed."))
        .file(&format!("{SKILLS}/b/SKILL.md"), document("b", "Installed."));
    let program = test.path("prefix/bin/skills-runner");
    copy_program(&program);
    // With any umask.
    [".", "work", "prefix", "prefix/share", "prefix/share/skills-runner", SKILLS]
        .into_iter()
        .fold(test, |test, folder| test.mode(folder, 0o755))
        .cwd("work")
}

/// Copies in a separate process. Otherwise a child of another test could inherit the open file,
/// which then could not be executed.
pub(super) fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(program()).arg(to).status();
    assert!(copied.unwrap().success());
}

fn list(test: &Test) -> Outcome {
    test.next_run().shell(PROGRAM).args(["skills", "list"]).run()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

#[test]
fn installed_skills_are_found_last_relative_to_the_binary() {
    let test = test_with_installation();
    let all = "a\tInstalled.\nb\tInstalled.\n";
    list(&test).success().stdout(all).stderr_is_empty();
    // The place of the binary itself, also if it is started through a link.
    symlink("../prefix/bin/skills-runner", test.path("home/again")).unwrap();
    let linked = test.next_run().shell("exec ../home/again \"$@\"");
    linked.args(["skills", "list"]).run().success().stdout(all);

    let test = test
        .file("work/skills/a/SKILL.md", document("a", "Of the project."))
        .file("home/.local/share/skills-runner/skills/c/SKILL.md", document("c", "The user's."));
    let run = list(&test).success();
    let all = "a\tOf the project.\nb\tInstalled.\nc\tThe user's.\nskills-runner:a\tInstalled.\n";
    run.stdout(all).stderr_has("so this skill is `skills-runner:a`");
    for named in [
        test.next_run().env("SKILLS_FOLDER_PATH", "skills"),
        test.next_run().args(["--skills", "skills"]),
    ] {
        let run = named.shell(PROGRAM).args(["skills", "list"]).run();
        run.success().stdout("a\tOf the project.\n");
    }
    let call = r#"{"skill_name":"b"}"#;
    let run = test.next_run().shell(PROGRAM).args(["tool", "get_skill", call]);
    run.run().success().stdout_has("description: Installed.");
}

/// If the installed folder is the user's own folder, it counts as the user's.
#[test]
fn prefix_in_the_home_is_the_users_folder() {
    let test = test_with_installation().mode(SKILLS, 0o775);
    let data = test.path("prefix/share");
    let run = list(&test.next_run().env("XDG_DATA_HOME", data)).success();
    run.stdout("a\tInstalled.\nb\tInstalled.\n").stderr_is_empty();
}

/// A new skill is created in the user's folder, not in the installed one.
#[test]
fn new_skill_is_created_in_the_working_folder() {
    let test = test_with_installation();
    let run = test.next_run().shell(PROGRAM).args(["skills", "new", "x"]).run();
    run.success().stdout("skills/x\n");
    assert!(test.exists("work/skills/x/SKILL.md"));
}

/// Folders that others can write, or that a link leads to, are not trusted.
#[test]
#[ignore = "long"]
fn skills_in_a_folder_writable_by_others_are_ignored() {
    for (folder, mode) in [
        (SKILLS, 0o775),
        (SKILLS, 0o757),
        (SKILLS, 0o1777),
        ("prefix/share/skills-runner", 0o775),
        ("prefix/share/skills-runner", 0o757),
    ] {
        let test = test_with_installation().mode(folder, mode);
        let run = list(&test).success().stdout("");
        run.stderr_has("is not used: it belongs to another user, others may write in it, or");
        for tool in ["get_skill", "read_file_in_skill"] {
            let call = r#"{"skill_name":"a","file_path":"SKILL.md"}"#;
            let run = test.next_run().shell(PROGRAM).args(["tool", tool, call]).run();
            run.status(1).stdout_lacks("Installed");
        }
    }
    // As in Debian's /usr/local: a group can write there, but nothing below is the group's.
    let test = test_with_installation().mode("prefix/share", 0o2775);
    list(&test).success().stdout_has("a\tInstalled.");
}

#[test]
fn skills_reached_by_a_link_are_ignored() {
    for folder in ["prefix/share", "prefix/share/skills-runner", SKILLS] {
        let test = test_with_installation();
        let (place, moved) = (test.path(folder), test.path("moved"));
        fs::rename(&place, &moved).unwrap();
        symlink(moved, place).unwrap();
        let run = list(&test).success();
        run.stdout("").stderr_has("or a link leads there");
    }
}

/// Only folders owned by root or the user count.
#[test]
fn skills_of_other_owners_are_ignored() {
    if !is_root() {
        return;
    }
    let own = |folder: &Path, user: u32| chown(folder, Some(user), None).unwrap();
    for (folder, owner, of_user, of_root) in [
        (SKILLS, 0, true, true),
        (SKILLS, 65534, true, false),
        (SKILLS, 65533, false, false),
        ("prefix/share/skills-runner", 65533, false, false),
        ("prefix/share/skills-runner", 65534, true, false),
        ("prefix/share", 65533, false, false),
    ] {
        let test = test_with_installation();
        own(&test.path(folder), owner);
        for (before, counts) in [(format!("exec {USER} "), of_user), ("exec ".into(), of_root)] {
            let shell = PROGRAM.replace("exec ", &before);
            let run = test.next_run().shell(&shell).args(["skills", "list"]).run();
            let run = run.success();
            let is_listed = run.stdout.contains("a\tInstalled.");
            run.check(is_listed == counts, format_args!("{folder} of {owner}: {shell}"));
        }
    }
}

/// `make install` and `make uninstall` keep a user's files in the same folder.
#[test]
fn make_installs_and_removes_skills() {
    let repository = env!("CARGO_MANIFEST_DIR");
    if Command::new("make").arg("--version").output().is_err() {
        return report_skipped("no make");
    }
    let test = Test::new().folder("work").cwd("work");
    let prefix = test.path("prefix");
    let make = |target: &str| {
        let mut make = Command::new("sh");
        let line = format!("umask 002; make -C \"$0\" {target} PREFIX=\"$1\" BINARY=\"$2\"");
        make.args(["-c", &line, repository]).arg(&prefix).arg(program());
        let output = make.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    make("install");
    let run = list(&test).success().stderr_is_empty();
    let names = run.stdout.lines().filter_map(|line| line.split('\t').next());
    let names: Vec<&str> = names.collect();
    assert_eq!(names, ["calculator", "data-explorer", "table-report", "text-analyzer"]);
    assert!(!test.exists(&format!("{SKILLS}/calculator/venv")));
    let test = test.file(&format!("{SKILLS}/mine/SKILL.md"), document("mine", "Mine."));
    make("uninstall");
    let left = fs::read_dir(test.path(SKILLS)).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mine"]);
    fs::remove_dir_all(test.path(SKILLS).join("mine")).unwrap();
    make("uninstall");
    assert!(!test.exists("prefix/share/skills-runner") && !test.exists("prefix/bin/skills-runner"));
}
