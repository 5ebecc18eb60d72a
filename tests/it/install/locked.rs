//! `SKILLS_LOCKED=on`: skills that are not exactly as in the lock file are not used.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{added, change, document, files, lock, with_source};
use crate::harness::{Outcome, Reply, Server, Test, interpreter};

/// The installed skills `one` and `two`.
fn installed() -> Test {
    let test = with_source();
    added(&test);
    test.env("SKILLS_LOCKED", "on")
}

/// Calls a tool.
fn tool(test: &Test, name: &str, arguments: &Value) -> Outcome {
    test.next_run().args(["tool", name, &arguments.to_string()]).run()
}

fn script(test: &Test) -> Outcome {
    tool(test, "run_python_script", &json!({"skill_name": "one", "file_path": "scripts/run.py"}))
}

/// Whether the list shows a skill as usable.
#[track_caller]
fn is_usable(test: &Test, name: &str) -> bool {
    let list = test.next_run().args(["skills", "list", "--json"]).run().stdout_json();
    let mut skills = list["skills"].as_array().expect("a list").iter();
    let skill = skills.find(|skill| skill["name"] == name);
    skill.is_some_and(|skill| skill["document"].is_string())
}

/// Checks that a skill is used, or that it is not used anywhere and that this is reported.
#[track_caller]
fn assert_used(test: &Test, is_used: bool, what: &str) {
    assert_eq!(is_usable(test, "one"), is_used, "{what}");
    let list = test.next_run().args(["skills", "list"]).run();
    list.check(is_used || list.stdout.contains("SKILLS_LOCKED"), "the reason is not shown");
    let document = tool(test, "get_skill", &json!({"skill_name": "one"}));
    document.check((document.status == 0) == is_used, format_args!("{what}: get_skill"));
    document.check(document.stdout.contains("# one") == is_used, format_args!("{what}: its text"));
    let file = json!({"skill_name": "one", "file_path": "data/table.csv"});
    let file = tool(test, "read_file_in_skill", &file);
    file.check(file.stdout.contains("1,2") == is_used, format_args!("{what}: its files"));
    let ran = script(test);
    ran.check(ran.stdout.contains("42") == is_used, format_args!("{what}: its script"));
    let server = Server::start([Reply::text("4")]);
    test.next_run().endpoint(&server).args(["hi"]).run().success();
    let requests = server.finish();
    let is_named = requests[0].system().contains("one: ")
        || requests[0].system().contains("**one**")
        || requests[0].system().contains("- one");
    assert_eq!(is_named, is_used, "{what}: {}", requests[0].system());
    assert!(requests[0].system().contains("two"), "{what}: the other skill is used");
}

/// Every new, changed or missing file, a link, and an entry that is missing.
#[test]
fn changed_skills_are_not_used() {
    type Edit = fn(&Test);
    let write = |test: &Test, path: &str, text: &str| {
        let path = test.path("skills/one").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    assert_used(&installed(), true, "as installed");
    let test = installed();
    write(&test, "data/table.csv", "a,b\n1,3\n");
    assert_used(&test, false, "a changed file");
    let table: [(&str, Edit); 8] = [
        ("an added file", |test| fs::write(test.path("skills/one/data/new"), "").unwrap()),
        ("a hidden file", |test| fs::write(test.path("skills/one/.hidden"), "").unwrap()),
        ("a deleted file", |test| fs::remove_file(test.path("skills/one/scripts/run.py")).unwrap()),
        ("a link", |test| {
            std::os::unix::fs::symlink("SKILL.md", test.path("skills/one/link")).unwrap();
        }),
        ("a file as a link", |test| {
            let file = test.path("skills/one/data/table.csv");
            fs::rename(&file, test.path("table.csv")).unwrap();
            std::os::unix::fs::symlink(test.path("table.csv"), &file).unwrap();
        }),
        ("a FIFO", |test| {
            let fifo = test.path("skills/one/fifo");
            assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        }),
        ("a file named venv", |test| fs::write(test.path("skills/one/venv"), "").unwrap()),
        ("a deep venv", |test| {
            fs::create_dir_all(test.path("skills/one/data/venv")).unwrap();
            fs::write(test.path("skills/one/data/venv/x"), "").unwrap();
        }),
    ];
    for (what, edit) in table {
        let test = installed();
        edit(&test);
        assert_used(&test, false, what);
        // Without the setting it is used.
        let unlocked = test.next_run().env("SKILLS_LOCKED", "off");
        assert!(is_usable(&unlocked, "one"), "{what}");
    }
}

/// Skills that are not in the lock file, by hand or under another name.
#[test]
fn skills_without_an_entry_are_not_used() {
    let test = installed().file("skills/by-hand/SKILL.md", document("by-hand"));
    assert_eq!(["by-hand", "two"].map(|name| is_usable(&test, name)), [false, true]);
    let test = installed();
    fs::rename(test.path("skills/one"), test.path("skills/three")).unwrap();
    fs::write(test.path("skills/three/SKILL.md"), document("three")).unwrap();
    assert!(!is_usable(&test, "three"));
    // A skill of another folder, and one that a link leads to.
    let test = installed().file("other/four/SKILL.md", document("four"));
    let list = test.next_run().args(["skills", "list", "--json", "--skills", "other"]).run();
    assert_ne!(list.stdout_json()["skills"][0]["status"], "ok");
    let test = installed();
    fs::remove_file(test.path("skills/skills-runner.lock")).unwrap();
    assert!(!is_usable(&test, "one"));
    assert_ne!(tool(&test, "get_skill", &json!({"skill_name": "one"})).status, 0);
    // Below the skills folder: the lock file lists folders beside it.
    let test = installed().file("skills/group/five/SKILL.md", document("five"));
    assert!(!is_usable(&test, "five"));
}

/// A change in the middle of a conversation counts.
#[test]
fn changes_during_a_conversation_are_noticed() {
    let test = installed();
    let document = test.path("skills/one/scripts/run.py");
    let call = json!({"skill_name": "one", "file_path": "scripts/run.py"});
    let answer = call.clone();
    let server = Server::start([
        Reply::call("run_python_script", &call),
        Reply::from_fn(move |_| {
            fs::write(&document, "print('changed')\n").unwrap();
            Reply::call("run_python_script", &answer)
        }),
        Reply::text("done"),
    ]);
    test.next_run().endpoint(&server).args(["run it"]).run();
    let requests = server.finish();
    let last = requests.last().unwrap();
    assert!(last.tool_result("call_1").contains("42"), "{last:?}");
    let second = last.tool_result("call_2");
    assert!(!second.contains("changed\n") || second.contains("error"), "{second}");
    assert!(second.contains("skills-runner.lock"), "{second}");
}

/// Folders that tools create do not count.
#[test]
fn folders_of_tools_do_not_count() {
    let test = installed()
        .venv("one")
        .file("skills/one/node_modules/a/index.js", "x")
        .file("skills/one/data/node_modules/a/index.js", "x")
        .file("skills/one/__pycache__/x.pyc", "x")
        .file("skills/one/scripts/__pycache__/x.pyc", "x");
    assert_used(&test, true, "with folders of tools");
}

/// A compiled file that does not match its source is not read.
#[test]
fn compiled_files_are_not_read() {
    let compile = "import py_compile, sys; py_compile.compile(sys.argv[1], cfile=sys.argv[2], invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)";
    for (setting, text) in [("on", "true value"), ("off", "planted value")] {
        let test = Test::new()
            .file("source/one/SKILL.md", document("one"))
            .file("source/one/scripts/run.py", "import helper\nprint(helper.TEXT)\n")
            .file("source/one/scripts/helper.py", "TEXT = 'true value'\n")
            .file("planted.py", "TEXT = 'planted value'\n");
        added(&test);
        let version = Command::new(interpreter())
            .args(["-c", "import sys; print(sys.implementation.cache_tag)"])
            .output();
        let tag = String::from_utf8(version.unwrap().stdout).unwrap();
        let compiled =
            test.path(format!("skills/one/scripts/__pycache__/helper.{}.pyc", tag.trim()));
        fs::create_dir_all(compiled.parent().unwrap()).unwrap();
        let made = Command::new(interpreter())
            .args(["-I", "-c", compile])
            .arg(test.path("planted.py"))
            .arg(&compiled)
            .status();
        assert!(made.unwrap().success());
        let test = test.env("SKILLS_LOCKED", setting).env("SCRIPT_PYTHON", interpreter());
        let ran = script(&test).success();
        ran.check(ran.stdout.contains(text), format_args!("SKILLS_LOCKED={setting}"));
        // Nor one that a script asks for, or a second process.
        let call = "import os, subprocess, sys; os.chdir(os.environ['SKILL_DIR']); sys.exit(subprocess.run([sys.executable, 'scripts/run.py']).returncode)";
        let nested = json!({"skill_name": "one", "script": call});
        let ran = tool(&test, "run_python_script", &nested).success();
        ran.check(ran.stdout.contains(text), format_args!("SKILLS_LOCKED={setting}, nested"));
        // And none is written.
        let written = files(&test.path("skills/one/scripts")).len();
        assert_eq!(written, 3);
    }
}

/// `./.env` may only switch it on.
#[test]
fn dotenv_can_only_switch_it_on() {
    let changed =
        || installed().file("skills/one/data/table.csv", "changed").env_unset("SKILLS_LOCKED");
    let table = [
        (None, "on", Some(false)),
        (None, "off", Some(true)),
        (Some("on"), "off", Some(false)),
        (Some("off"), "on", None),
    ];
    for (variable, dotenv, is_used) in table {
        let test = changed().dotenv(&format!("SKILLS_LOCKED={dotenv}\n"));
        let test = match variable {
            Some(value) => test.env("SKILLS_LOCKED", value),
            None => test,
        };
        if let Some(is_used) = is_used {
            assert_eq!(is_usable(&test, "one"), is_used, "{variable:?} {dotenv}");
        }
    }
    // The user's own file decides, and the folder cannot switch it off.
    let test = changed().file("home/.config/skills-runner/.env", "SKILLS_LOCKED=on\n");
    assert!(!is_usable(&test, "one"));
    let test = test.dotenv("SKILLS_LOCKED=off\n");
    assert!(!is_usable(&test, "one"));
    // Other words are errors, not `off`.
    let test = changed().env("SKILLS_LOCKED", "perhaps");
    let run = test.next_run().args(["skills", "list"]).run();
    run.check(run.status != 0 && run.stderr.contains("SKILLS_LOCKED"), "not reported");
}

/// A broken lock file: nothing is used, and the file stays.
#[test]
fn unreadable_lock_files_lock_everything() {
    for text in ["", "{", "[]", "{\"version\":1}", "{\"version\":1,\"skills\":{\"../x\":{}}}"] {
        let test = installed().file("skills/skills-runner.lock", text);
        assert!(!is_usable(&test, "one"), "{text}");
        let got = tool(&test, "get_skill", &json!({"skill_name": "one"}));
        got.check(got.status != 0, text);
        assert_eq!(test.read("skills/skills-runner.lock"), text);
        let unlocked = test.next_run().env("SKILLS_LOCKED", "off");
        assert!(is_usable(&unlocked, "one"), "{text}");
    }
    // A link is not followed, and a folder is not a file.
    let test = installed();
    fs::rename(test.path("skills/skills-runner.lock"), test.path("moved")).unwrap();
    let test = test.link("skills/skills-runner.lock", "../moved");
    assert!(!is_usable(&test, "one"));
}

/// The model cannot write the lock file, nor a skill, with its file tools.
#[test]
fn file_tools_do_not_write_the_lock_file() {
    let test = installed().link("link", "skills/skills-runner.lock");
    let before = files(&test.path("skills"));
    for path in [
        "skills/skills-runner.lock",
        "link",
        "skills/one/new",
        "./skills/../skills/skills-runner.lock",
    ] {
        let calls = [
            ("write_file", json!({"path": path, "content": "{}"})),
            ("edit_file", json!({"path": path, "old": "\"version\": 1", "new": "\"version\": 2"})),
        ];
        for (name, arguments) in calls {
            let run = tool(&test, name, &arguments);
            run.check(run.stdout.contains("error"), format_args!("{name} {path}"));
            assert_eq!(files(&test.path("skills")), before, "{name} {path}");
        }
    }
    // The skills folder as the working folder, with a skills folder or without.
    for more in [&["--skills", "."][..], &[]] {
        let write = json!({"path": "skills-runner.lock", "content": "{}"}).to_string();
        let write = test.next_run().cwd("skills").args(["tool", "write_file", &write]);
        let run = write.args(more).run();
        run.check(run.stdout.contains("error"), format_args!("{more:?}"));
        assert_eq!(files(&test.path("skills")), before, "{more:?}");
    }
}

/// One changed byte of an installed skill, and `restore` repairs it.
#[test]
fn restored_skills_are_used_again() {
    let test = installed();
    let mut bytes = fs::read(test.path("skills/one/SKILL.md")).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    let test = test.file("skills/one/SKILL.md", bytes);
    assert!(!is_usable(&test, "one"));
    change(&test, &["restore", "--force"]).success();
    assert!(is_usable(&test, "one"));
    assert_eq!(lock(&test)["version"], 1);
}
