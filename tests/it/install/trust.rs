//! What must not happen, whatever a source, a cloned project or another process does.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use super::{
    added, assert_nothing_left, change, document, files, lock, recorded, skills, with_source,
};
use crate::harness::Test;

/// The check of a skill starts the Python of its venv; a link must not make one of the source.
#[test]
fn nothing_of_a_source_is_run() {
    let program = "#!/bin/sh\ntouch \"$HOME/ran\"\n";
    for name in ["venv", ".venv", "node_modules", "__pycache__"] {
        let test = Test::new()
            .file("source/one/SKILL.md", document("one"))
            .file("source/one/a.py", "import foo\n")
            .executable("source/one/env/bin/python", program)
            .executable("source/one/env/bin/python3", program)
            .link(&format!("source/one/{name}"), "env");
        skills(&test, &["add", "./source", "--to", "skills", "--dry-run"]).run().success();
        change(&test, &["add", "./source"]).success();
        assert!(!test.exists("ran") && !test.exists("home/ran"), "{name}");
        assert!(!test.exists(&format!("skills/one/{name}")), "{name} is installed");
        assert!(test.exists("skills/one/env/bin/python"), "{name}: the rest is there");
        let locked = test.next_run().env("SKILLS_LOCKED", "on").args(["skills", "list"]).run();
        locked.success().stdout_lacks("cannot be used");
    }
}

/// A folder of this name in a cloned project may have been made by its author.
#[test]
fn hidden_folders_of_other_authors_are_left_alone() {
    let decided = "skills/.skills-runner-install/decided";
    let test = with_source()
        .file("skills/mine/SKILL.md", document("mine"))
        .file(&format!("{decided}/skills-runner.lock"), "{\"version\":1,\"skills\":{}}");
    let before = files(&test.path(""));
    for words in [&["list"][..], &["check"], &["add", "./source", "--to", "skills", "--yes"]] {
        let run = skills(&test, words).run();
        run.stderr_has(".skills-runner-install is not from this program: it may hold your files");
        assert_eq!(files(&test.path("")), before, "{words:?}");
    }
}

/// The user sees a state, and agrees to change that one.
#[test]
fn changes_while_the_question_is_open_are_not_lost() {
    let test = with_source();
    let add = skills(&test, &["add", "./source", "--to", "skills"]);
    let mut terminal = add.env("TERM", "xterm").spawn_on_terminal();
    terminal.expect("[y/N]");
    fs::create_dir(test.path("skills/one")).unwrap();
    fs::write(test.path("skills/one/mine.txt"), "mine").unwrap();
    terminal.type_line("y");
    terminal.wait_exit().status(1).terminal_has("has just been changed");
    assert_nothing_left(&test);
    assert_eq!(test.read("skills/one/mine.txt"), "mine");
    assert!(!test.exists("skills/two"), "nothing is changed");

    let test = with_source();
    added(&test);
    for words in [&["update"][..], &["remove", "two"]] {
        fs::write(test.path("source/two/SKILL.md"), document("two") + "New.\n").unwrap();
        let run = skills(&test, words).args(["--to", "skills"]).env("TERM", "xterm");
        let mut terminal = run.spawn_on_terminal();
        terminal.expect("[y/N]");
        fs::write(test.path("skills/two/mine.txt"), "mine").unwrap();
        terminal.type_line("y");
        terminal.wait_exit().status(1).terminal_has("has just been changed");
        assert_nothing_left(&test);
        assert_eq!(test.read("skills/two/mine.txt"), "mine", "{words:?}");
        assert_eq!(test.read("skills/two/SKILL.md"), document("two"), "{words:?}");
        fs::remove_file(test.path("skills/two/mine.txt")).unwrap();
    }
}

/// A skill is whole or left out, also if no other skill could have such a file.
#[test]
fn skills_with_files_that_cannot_be_copied_are_left_out() {
    let deep = format!("source/one/{}/file", ["d"; 65].join("/"));
    let table: [(&str, &dyn Fn(Test) -> Test); 2] = [
        ("64 levels", &|test| test.file(&deep, "x")),
        ("a FIFO", &|test| {
            let path = std::ffi::CString::new(test.path("source/one/fifo").as_os_str().as_bytes());
            // SAFETY: the path ends with NUL.
            assert_eq!(unsafe { libc::mkfifo(path.unwrap().as_ptr(), 0o600) }, 0);
            test
        }),
    ];
    for (reason, prepare) in table {
        let test = prepare(with_source());
        change(&test, &["add", "./source"]).status(1).stderr_has(reason);
        assert!(!test.exists("skills/one") && test.exists("skills/two/SKILL.md"), "{reason}");
    }
}

/// Names that some file systems take for the same one, of skills.
#[test]
fn skills_with_names_that_are_the_same_somewhere_are_left_out() {
    let composed = "caf\u{e9}";
    let test = Test::new()
        .file(&format!("source/a/{composed}/SKILL.md"), document("x"))
        .file("source/b/cafe\u{301}/SKILL.md", document("another"));
    change(&test, &["add", "./source"]).status(1).stderr_has("in another folder, too");
    assert_eq!(lock(&test)["skills"].as_object().unwrap().len(), 1);
}

/// A lock file of a cloned project must not choose where the source is.
#[test]
fn revisions_that_are_none_are_refused() {
    let test = with_source();
    added(&test);
    for revision in ["../../../evil/repo/archive/HEAD", "main", "", "sha256:1", "--output=x"] {
        let mut content = lock(&test);
        content["skills"]["one"]["revision"] = json!(revision);
        let other = with_source().file("skills/skills-runner.lock", content.to_string());
        let before = files(&other.path(""));
        for words in [&["restore"][..], &["update"], &["remove", "one"]] {
            change(&other, words).status(78).stderr_has("is not a revision");
        }
        assert_eq!(files(&other.path("")), before);
    }
}

/// What is refused is not offered by a search, and compiled files are not read.
#[test]
fn locked_skills_are_not_used_by_detours() {
    let test = with_source();
    added(&test);
    let test = test.env("SKILLS_LOCKED", "on");
    let tool = |name: &str, arguments: serde_json::Value| {
        test.next_run().args(["tool", name, &arguments.to_string()]).run()
    };
    fs::create_dir(test.path("skills/one/__pycache__")).unwrap();
    fs::write(test.path("skills/one/__pycache__/x.py"), "print('planted')\n").unwrap();
    for path in ["__pycache__/x.py", "./__pycache__/x.py"] {
        let read = json!({"skill_name": "one", "file_path": path});
        tool("read_file_in_skill", read.clone()).status(1).stdout_lacks("planted");
        tool("run_python_script", read).stdout_lacks("planted");
    }
    let text = document("two").replace("Adds numbers", "Frobnicates IGNORE");
    fs::write(test.path("skills/two/SKILL.md"), text).unwrap();
    for query in ["frobnicates", "two"] {
        tool("list_skills", json!({"query": query})).stdout_lacks("IGNORE");
    }
    let check = test.next_run().args(["skills", "check"]).run();
    check.status(1).stdout_has("error[not-locked]").stdout_has("skills restore --force");
}

/// Repositories have copies of their skills for several clients.
#[test]
fn copies_of_a_skill_in_one_source_are_added_once() {
    let test = with_source();
    let copy = test.read("source/two/SKILL.md");
    let test = test.file("source/.claude/skills/two/SKILL.md", copy);
    change(&test, &["add", "./source"]).success().stdout("added: skills/one\nadded: skills/two\n");
    assert_eq!(lock(&test)["skills"]["two"]["folder"], "two");
    let other =
        with_source().file("source/.claude/skills/two/SKILL.md", document("two") + "Other.\n");
    let run = change(&other, &["add", "./source"]);
    run.status(1).stderr_has("a skill `two` in another folder, too");
    assert_eq!(other.read("skills/two/SKILL.md"), document("two"));
}

/// Skills of one name are the same only if their files are.
#[test]
fn skills_of_one_name_with_files_of_the_same_size_are_different() {
    let other = document("two").replace("Adds", "Eats");
    let test = with_source()
        .file("source/.claude/skills/two/SKILL.md", &other)
        .file("source/more/TWO/SKILL.md", document("two"));
    let run = change(&test, &["add", "./source", "--json"]).status(1);
    let skills = run.stdout_json()["skills"].as_array().unwrap().clone();
    let actions = |name: &str| -> Vec<String> {
        let of_name = skills.iter().filter(|skill| skill["name"] == name);
        of_name.map(|skill| skill["action"].as_str().unwrap().into()).collect()
    };
    let mut twos = actions("two");
    twos.sort();
    assert_eq!(twos, ["added", "refused"]);
    assert_eq!(actions("TWO"), ["refused"]);
    assert_eq!(test.read("skills/two/SKILL.md"), document("two"));
}

/// A project may bring what looks like an interrupted change: without a record in the user's data no
/// command touches it, wherever the record of another change comes from.
#[test]
fn interrupted_changes_of_a_stranger_are_left() {
    let hidden = "project/skills/.skills-runner-install";
    let lock = json!({"version": 1, "skills": {"one": {
        "source": "x", "folder": "", "revision": null,
        "files": {"SKILL.md": super::digest(document("one").as_bytes())},
    }}});
    let fresh = || {
        with_source()
            .file("project/skills/one/SKILL.md", "# Old\n")
            .file("project/skills/skills-runner.lock", lock.to_string())
            .file(&format!("{hidden}/decided/skills-runner.lock"), lock.to_string())
            .file(&format!("{hidden}/decided/one/SKILL.md"), document("one"))
            .mode(hidden, 0o700)
            .cwd("project")
    };
    let name = format!("{hidden}/abcdefghijklmnop");
    let of_another_folder = recorded(fresh().folder("other"), "other").file(&name, "");
    let with_another_name = recorded(fresh(), "project/skills");
    fs::remove_file(with_another_name.path(&name)).unwrap();
    let empty = recorded(fresh(), "project/skills");
    let record = files(&empty.path("")).into_keys().find(|path| path.contains("/changes/"));
    let empty = empty.file(&record.unwrap(), "");
    let without_home = recorded(fresh(), "project/skills").env_unset("HOME");
    for test in [fresh(), of_another_folder, with_another_name, empty, without_home] {
        let before = files(&test.path("project"));
        for words in [
            &["list"][..],
            &["check"],
            &["show", "one"],
            &["add", "../source", "--yes"],
            &["update", "--yes"],
            &["remove", "one", "--yes"],
            &["restore", "--yes"],
        ] {
            let to: &[&str] =
                if words.len() > 1 && words[0] != "show" { &["--to", "skills"] } else { &[] };
            let run = test.next_run().args(["skills"]).args(words).args(to).run();
            run.stderr_has(
                ".skills-runner-install is not from this program: it may hold your files",
            );
            assert_eq!(files(&test.path("project")), before, "{words:?}");
        }
    }
}

/// Of a change of this user, too, only skills with the listed files, which have no links, are put in
/// their places.
#[test]
fn interrupted_changes_move_nothing_out() {
    let digest = super::digest(document("one").as_bytes());
    let other = super::digest(b"other");
    let hidden = "project/skills/.skills-runner-install";
    for (link, listed, is_valid) in
        [(true, &digest, false), (false, &other, false), (false, &digest, true)]
    {
        let lock = json!({"version": 1, "skills": {"one": {
            "source": "x", "folder": "", "revision": null, "files": {"SKILL.md": listed},
        }}});
        let test = Test::new()
            .file("project/skills/one/SKILL.md", "# Old\n")
            .file("project/skills/one/up/node_modules/chalk/index.js", "evil")
            .file(&format!("{hidden}/decided/skills-runner.lock"), lock.to_string())
            .file(&format!("{hidden}/decided/one/SKILL.md"), document("one"));
        let up = format!("{hidden}/decided/one/up");
        let test = if link { test.link(&up, "../../..") } else { test };
        let test = recorded(test, "project/skills");
        test.next_run().cwd("project").args(["skills", "list"]).run();
        assert!(!test.exists("node_modules") && !test.exists("project/node_modules"));
        let is_new = test.read("project/skills/one/SKILL.md") == document("one");
        assert_eq!(is_new, is_valid, "{link} {listed}");
        let left = files(&test.path("")).into_keys();
        let left: Vec<String> = left
            .filter(|path| path.contains("skills-runner/changes/") && !path.ends_with('/'))
            .collect();
        assert_eq!(left.len(), usize::from(!is_valid), "{left:?}");
    }
}

/// Killed before the hidden folder has its file, or when it has it no more.
#[test]
fn an_empty_hidden_folder_of_this_user_is_removed() {
    let test = recorded(with_source().file("skills/mine/SKILL.md", document("mine")), "skills");
    fs::remove_file(test.path("skills/.skills-runner-install/abcdefghijklmnop")).unwrap();
    change(&test, &["add", "./source"]).success();
    assert!(test.exists("skills/one/SKILL.md"));
}

/// A skill that cannot be copied does not keep out another one of its name.
#[test]
fn refused_skill_does_not_keep_out_one_of_its_name() {
    let test = with_source()
        .file("source/two/twin", "x")
        .file("source/two/Twin.", "x")
        .file("source/.claude/skills/two/SKILL.md", document("two") + "Good.\n");
    change(&test, &["add", "./source"]).status(1).stderr_has("take `Twin.` for a part of it");
    assert!(test.read("skills/two/SKILL.md").ends_with("Good.\n"));
    assert_eq!(lock(&test)["skills"]["two"]["folder"], ".claude/skills/two");
}

/// The name of the lock file is no name of a skill, and a skill has a document.
#[test]
fn skills_that_cannot_be_used_are_left_out() {
    let test = with_source()
        .file("source/skills-runner.lock/SKILL.md", document("lock"))
        .file("source/three/text/notes.md", "text\n")
        .link("source/three/SKILL.md", "text");
    let run = change(&test, &["add", "./source"]).status(1);
    run.stderr_has("the lock file has this name").stderr_has("its SKILL.md is a folder");
    let names: Vec<String> = lock(&test)["skills"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["one", "two"]);
}
