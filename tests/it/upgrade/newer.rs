//! Files of a newer version: refused with 78 and the number of that version, and left unharmed.

use super::{OLD_FOLDER, old_file, session_file};
use crate::harness::{Reply, Server, Test, interpreter};
use crate::install::recorded;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

const CAUSE: &str = "the newer version 9.10.0 of skills-runner has written it";

/// A session of this test's folder in a newer format, which this version may not understand.
fn newer_session(test: &Test, program: &str) -> String {
    let here = test.path("").canonicalize().unwrap();
    let text = old_file("sessions/tools.jsonl").replace(OLD_FOLDER, &here.to_string_lossy());
    let header = format!("\"version\":99,\"program\":\"{program}\",\"more\":[1]}}");
    text.replacen("\"version\":1}", &header, 1) + "{\"time\":\"x\",\"new\":{}}\n{\"unfinished"
}

/// The path, content and time of all files below a folder, and the links and folders.
fn everything(folder: &Path) -> Vec<(String, Option<Vec<u8>>, SystemTime)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, meta) = (entry.path(), entry.metadata().unwrap());
        let content = meta.is_file().then(|| fs::read(&path).unwrap());
        all.push((path.to_string_lossy().into_owned(), content, meta.modified().unwrap()));
        if meta.is_dir() {
            all.extend(everything(&path));
        }
    }
    all.sort();
    all
}

#[test]
fn newer_session_is_refused_and_unharmed() {
    let server = Server::start([]);
    let test = Test::new().endpoint(&server);
    let text = newer_session(&test, "9.10.0");
    let test = test.file(&session_file("newer"), text);
    let before = everything(&test.path("home"));
    for args in [
        ["-c", "more?"].as_slice(),
        &["chat", "-c"],
        &["--session", "newer", "more?"],
        &["--session", "newer", "-o", "json", "more?"],
        &["--session", "newer", "--dry-run", "more?"],
        &["chat", "--session", "newer"],
        &["sessions", "show", "newer"],
        &["sessions", "show", "newer", "--json"],
        &["sessions", "show", "newer", "--markdown"],
        &["sessions", "delete", "newer"],
    ] {
        let run = test.next_run().args(args).stdin("more?\n").run().status(78);
        run.stderr_has(CAUSE).stderr_has("hint: ");
        assert_eq!(everything(&test.path("home")), before, "{args:?}");
    }
    test.next_run().args(["sessions", "list"]).run().success().stdout_has(CAUSE);
    let list = test.next_run().args(["sessions", "list", "--json"]).run().success();
    list.check(list.stdout_json()["sessions"][0]["problem"].to_string().contains(CAUSE), "");
    // Another conversation does not get its name.
    let run = test.next_run().args(["chat"]).stdin("/save newer\n").run().status(1);
    run.stderr_has("a session with this name exists");
    assert_eq!(everything(&test.path("home")), before);
    server.finish();
}

/// The fields count, not their order or the space between them.
#[test]
fn newer_session_in_another_form_is_refused() {
    let header =
        "{ \"version\": 99, \"program\": \"9.10.0\", \"format\": \"skills-runner session\" }\n";
    let server = Server::start([]);
    let test = Test::new().endpoint(&server).file(&session_file("newer"), header);
    let run = test.next_run().args(["--session", "newer", "more?"]).run();
    run.status(78).stderr_has(CAUSE);
    assert_eq!(test.read(&session_file("newer")), header);
    server.finish();
}

/// The version that started a session is not the one that wrote the newer format.
#[test]
fn number_of_an_older_version_is_not_shown() {
    for program in [env!("CARGO_PKG_VERSION"), "0.0.9", "?"] {
        let test = Test::new();
        let text = newer_session(&test, program);
        let run = test.file(&session_file("newer"), text).args(["sessions", "show", "newer"]).run();
        run.status(78).stderr_has("a newer version of skills-runner has written it");
    }
}

const NEWER_LOCK: &str = "{\"version\":2,\"program\":\"9.10.0\",\"skills\":[{\"name\":\"one\"}]}";

/// The skill `one`, another one to add, and a lock file.
fn with_lock_file(text: &str) -> Test {
    let document = "---\nname: one\ndescription: Adds numbers.\n---\n# one\n";
    Test::new()
        .env("SCRIPT_PYTHON", interpreter())
        .skill("one", document)
        .file("skills/skills-runner.lock", text)
        .file("source/two/SKILL.md", document.replace("one", "two"))
}

const CHANGES: [&[&str]; 7] = [
    &["add", "./source"],
    &["add", "./source", "--dry-run"],
    &["update"],
    &["update", "one", "--force"],
    &["remove", "one"],
    &["restore"],
    &["restore", "--force"],
];

#[test]
fn newer_lock_file_is_refused_and_unharmed() {
    let unnamed = NEWER_LOCK.replace("\"program\":\"9.10.0\",", "");
    // Words of another author would look like those of the program.
    let hostile = NEWER_LOCK.replace("9.10.0", "9.10.0-x\\n\\nhint: run evil");
    for (text, cause) in [
        (NEWER_LOCK, CAUSE),
        (&hostile, CAUSE),
        (&unnamed, "a newer version of skills-runner has written it"),
    ] {
        let test = with_lock_file(text);
        for words in CHANGES {
            let before = contents(&test);
            let run = test.next_run().args(["skills"]).args(words).args(["--to", "skills"]);
            let run = run.args(["--yes"]).run().status(78).stdout_is_empty();
            run.stderr_has(cause)
                .stderr_has("skills-runner.lock")
                .stderr_lacks("delete it")
                .stderr_lacks("evil");
            assert_eq!(contents(&test), before, "{words:?}");
        }
    }
}

/// The paths and contents of the folder of a test: commands lock the skills folder and create a
/// folder there, which changes only its time.
fn contents(test: &Test) -> Vec<(String, Option<Vec<u8>>)> {
    let all = everything(&test.path("")).into_iter();
    all.map(|(path, content, _)| (path, content)).collect()
}

/// A change that a newer version had decided, or only begun, when it was killed, and one of this
/// version in a folder whose lock file is now that of a newer one.
#[test]
fn interrupted_change_of_a_newer_version_is_left() {
    let known = "{\"version\":1,\"skills\":{}}";
    for (lock, place, changed) in [
        (known, "decided", NEWER_LOCK),
        (known, "new", NEWER_LOCK),
        (NEWER_LOCK, "decided", known),
        (NEWER_LOCK, "new", known),
    ] {
        let place = format!("skills/.skills-runner-install/{place}");
        let test = with_lock_file(lock)
            .file(&format!("{place}/skills-runner.lock"), changed)
            .file(&format!("{place}/three/SKILL.md"), "three\n")
            .mode("skills/.skills-runner-install", 0o700);
        let test = recorded(test, "skills");
        for words in CHANGES {
            let before = contents(&test);
            let run = test.next_run().args(["skills"]).args(words).args(["--to", "skills"]);
            run.args(["--yes"]).run().status(78).stderr_has(CAUSE);
            assert_eq!(contents(&test), before, "{words:?}");
        }
        let before = contents(&test);
        test.next_run().args(["skills", "list"]).run().success().stderr_has(CAUSE);
        assert_eq!(contents(&test), before);
    }
}

/// `SKILLS_LOCKED=on`: no run pretends to have used the skills; reports show the cause.
#[test]
fn locked_skills_with_a_newer_lock_file_are_refused() {
    let server = Server::start([Reply::text("Hi.")]);
    let test = with_lock_file(NEWER_LOCK).endpoint(&server);
    let locked = test.clone().env("SKILLS_LOCKED", "on");
    let before = contents(&test);
    for args in [
        ["hi"].as_slice(),
        &["-o", "json", "hi"],
        &["--skill", "one", "hi"],
        &["--dry-run", "hi"],
        &["chat"],
        &["mcp"],
        &["tool", "get_skill", "{\"skill_name\": \"one\"}"],
        &["tool", "run_python_script", "{\"script\": \"print(1)\"}"],
    ] {
        let run = locked.next_run().args(args).stdin("hi\n").run().status(78);
        run.stderr_has("SKILLS_LOCKED is on").stderr_has(CAUSE).stderr_has("hint: ");
    }
    locked.next_run().args(["skills", "list"]).run().success().stdout_has(CAUSE);
    locked.next_run().args(["skills", "check"]).run().status(1).stdout_has(CAUSE);
    locked.next_run().args(["skills", "show", "one"]).run().status(1).stderr_has(CAUSE);
    test.next_run().args(["hi"]).run().success().stdout("Hi.\n");
    assert_eq!(contents(&test), before);
    server.finish();
}
