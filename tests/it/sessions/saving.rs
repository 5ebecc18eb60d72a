//! Saved and continued sessions.

use super::{FOLDER, contents, file, names, saved};
use crate::harness::{Reply, Server, Test, seconds, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;

#[test]
fn named_session_is_continued_and_private() {
    let (test, _) = saved();
    let mode = |path: &str| test.path(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(FOLDER), mode(&file("s"))), (0o700, 0o600));
    let replies = ["5.", "6.", "7.", "8."].map(Reply::text);
    let server = Server::start(replies);
    let test = test.endpoint(&server);
    let run = test.next_run().args(["--session", "s", "-o", "jsonl", "and 2 + 3?"]).run().success();
    let records = run.stdout_json_lines();
    assert_eq!(records[0]["session"], "s");
    assert_eq!(records.last().unwrap()["session"], "s");
    run.stderr_has("continuing session `s`").stderr_has("2 messages");
    let run = test.next_run().args(["-c", "-q", "and now?"]).run().success();
    run.stdout("6.\n").stderr_has("continuing session `s`").stderr_has("4 messages");
    // Also if stdin is a pipe.
    let run = test.next_run().args(["chat", "--session=s"]).stdin("more\n").run().success();
    run.stdout("7.\n");
    // A run with a named session prints no notice of it: cron would send a mail each time.
    let run = test.next_run().args(["-q", "--session", "s", "last?"]).run();
    run.success().stdout("8.\n").stderr_lacks("continuing");
    let requests = server.finish();
    assert_eq!(contents(&requests[0]), ["2 + 2?", "4.", "and 2 + 3?"]);
    assert_eq!(contents(&requests[2]).len(), 7);
    assert_eq!(requests[0].messages()[0]["role"], "system");
    // Without a session nothing is saved.
    let server = Server::start([Reply::text("8.")]);
    let run = test.endpoint(&server).next_run().args(["-o", "json", "hi"]).run().success();
    assert!(run.stdout_json()["session"].is_null());
    server.finish();
}

#[test]
fn latest_session_of_the_folder_is_continued() {
    let (test, _) = saved();
    let test = test.folder("elsewhere");
    let run = test.next_run().cwd("elsewhere").args(["-c", "hi"]).run();
    run.status(1).stderr_has("there is no saved conversation of").stderr_has("hint:");
    let server = Server::start([Reply::text("b"), Reply::text("c")]);
    let test = test.endpoint(&server);
    test.next_run().cwd("elsewhere").args(["--session", "other", "b?"]).run().success();
    test.next_run().cwd(".").args(["-c", "c?"]).run().success().stderr_has("`s`");
    server.finish();
}

#[test]
fn dry_run_shows_saved_messages_and_writes_nothing() {
    let (test, before) = saved();
    let run = test.next_run().args(["--session", "s", "--dry-run", "more"]).run().success();
    run.stdout_has("2 + 2?").stdout_has("more");
    test.next_run().args(["--session", "new", "--dry-run", "more"]).run().success();
    assert_eq!((test.read(&file("s")), names(&test)), (before, vec!["s.jsonl".to_string()]));
}

#[test]
fn wrong_usage_is_reported() {
    let server = Server::start([]);
    let test = Test::new().endpoint(&server);
    for (args, text) in [
        (&["--session", "a/b", "hi"][..], "the name is not valid"),
        (&["--session", "", "hi"], "the name is not valid"),
        (&["--session", "..", "hi"], "the name is not valid"),
        (&["--session", "ä", "hi"], "the name is not valid"),
        (&["--session", "-a", "hi"], "the name is not valid"),
        (&["sessions", "show", "a", "b"], "sessions show takes NAME"),
        (&["--session", "a", "-c", "hi"], "cannot be used together"),
        (&["-c", "doctor"], "works only with a question"),
        (&["tool", "list_skills", "--session", "a"], "works only with a question"),
        (&["sessions", "list", "x"], "takes no arguments"),
        (&["sessions", "show"], "needs NAME"),
        (&["sessions", "lsit"], "did you mean `sessions list`?"),
    ] {
        test.next_run().args(args).run().status(2).stdout_is_empty().stderr_has(text);
    }
    let long = "x".repeat(101);
    test.next_run().args(["--session", &long, "hi"]).run().status(2);
    assert!(!test.exists(FOLDER), "the folder was created");
    server.finish();
}

#[test]
fn second_process_reports_the_holder_of_a_session() {
    let server = Server::start([Reply::text("a"), Reply::text("b")]);
    let test = Test::new().endpoint(&server);
    let mut first = test.next_run().args(["chat", "--session", "s"]).stdin_open().spawn();
    first.write_stdin("hi\n");
    first.read_stdout_until("a\n");
    let pid = first.pid().to_string();
    for args in [&["--session", "s", "hi"][..], &["-c", "hi"], &["sessions", "delete", "s"]] {
        let run = test.next_run().args(args).run().status(75);
        run.stderr_has("`s`").stderr_has(&format!("process {pid} is using it")).stderr_has("hint:");
    }
    let run = test.next_run().args(["sessions", "list", "--json"]).run().success();
    assert_eq!(run.stdout_json()["sessions"][0]["in_use"].to_string(), pid);
    first.kill9();
    first.wait().status(-libc::SIGKILL);
    test.next_run().args(["--session", "s", "again"]).run().success().stdout("b\n");
    server.finish();
}

/// The lock is held by no script, guardian or leftover process.
#[test]
fn scripts_do_not_inherit_the_session_lock() {
    let script = r#"{"skill_name":"s","script":"import os, time\nif os.fork() == 0:\n    time.sleep(30)\nprint('begun', flush=True)\ntime.sleep(30)"}"#;
    let server = Server::start([Reply::calls([("run_python_script", script)]), Reply::text("b")]);
    let test = Test::new().skill("s", "---\nname: s\ndescription: d\n---\n").endpoint(&server);
    let mut first = test.next_run().args(["--session", "s", "run it"]).spawn();
    first.read_stderr_until("→ run_python_script");
    sleep(seconds(0.5));
    first.kill9();
    assert!(wait_until(seconds(10.0), || !first.is_running()));
    // While processes that the first run started are still ending.
    let run = test.next_run().args(["--session", "s", "and?"]).run().success().stdout("b\n");
    run.stderr_has("continuing session");
    first.wait();
    let requests = server.finish();
    let roles: Vec<&str> =
        requests[1].messages().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
    assert!(requests[1].tool_result("call_1").contains("the program was ended"));
}
