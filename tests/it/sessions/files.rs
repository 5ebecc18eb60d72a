//! Session files that are damaged or cannot be written.

use super::{contents, file, names, saved};
use crate::harness::{Reply, Server, Test};
use std::fs;

/// What `kill -9` left of a write had not been acknowledged: the rest of the file is a whole session.
#[test]
fn unfinished_last_line_is_removed() {
    let (test, text) = saved();
    let unfinished = "{\"time\":\"2026-11-22T10:00:00.000Z\",\"add\":{\"ro";
    let test = test.file(&file("s"), format!("{text}{unfinished}"));
    let server = Server::start([Reply::text("5."), Reply::text("6.")]);
    let test = test.endpoint(&server);
    test.next_run().args(["--session", "s", "more"]).run().success().stderr_lacks("damaged");
    let saved = test.read(&file("s"));
    assert!(saved.starts_with(&text) && !saved.contains(unfinished), "{saved}");
    test.next_run().args(["--session", "s", "even more"]).run().success().stderr_lacks("damaged");
    let requests = server.finish();
    assert_eq!(contents(&requests[0]), ["2 + 2?", "4.", "more"]);
    assert_eq!(contents(&requests[1]), ["2 + 2?", "4.", "more", "5.", "even more"]);
}

/// Damaged lines are reported, skipped and kept in the file; the other lines are used.
#[test]
fn damaged_lines_are_reported_and_skipped() {
    let (test, text) = saved();
    let time = "\"time\":\"2026-11-22T10:00:00.000Z\"";
    let bad: Vec<Vec<u8>> = vec![
        b"\xff\x00\x1b[31m\xfe".to_vec(),
        b"{\"time\":\"2026-11-".to_vec(),
        format!("{{{time},\"add\":{{\"role\":\"user\"}}}}").into_bytes(),
        b"[[[[".to_vec(),
    ];
    let mut bytes = text.into_bytes();
    bytes.extend(bad.join(&b'\n'));
    // A result without its call, and a second result for one call.
    let tool = "{\"role\":\"tool\",\"id\":\"x\",\"name\":\"t\",\"text\":\"r\"}";
    let answer = "{\"role\":\"assistant\",\"text\":\"late\"}";
    bytes.extend(format!("\n{{{time},\"add\":{tool}}}\n{{{time},\"add\":{answer}}}\n").bytes());
    let test = test.file(&file("s"), &bytes);
    let server = Server::start([Reply::text("5."), Reply::text("6.")]);
    let test = test.endpoint(&server);
    let run = test.next_run().args(["--session", "s", "more"]).run().success();
    run.stderr_has("line 4 cannot be read, and 3 more");
    test.next_run().args(["--session", "s", "even more"]).run().success();
    let now = fs::read(test.path(file("s"))).unwrap();
    assert!(now.starts_with(&bytes), "the file was overwritten");
    let requests = server.finish();
    let expected = ["2 + 2?", "4.", "(a message that could not be read)", "late", "more"];
    assert_eq!(contents(&requests[0]), expected);
    assert_eq!(contents(&requests[1])[..5], expected);
    assert_eq!(contents(&requests[1])[5..], ["5.", "even more"]);
}

/// Anything else with the session's name stays unchanged, and the conversation continues without
/// saving.
#[test]
fn file_that_is_not_a_session_is_not_changed() {
    let (test, text) = saved();
    let huge = test.path(file("huge"));
    fs::File::create(&huge).unwrap().set_len((128 << 20) + 1).unwrap();
    let test = test
        .file(&file("foreign"), "dear diary\n")
        .file(&file("locked"), &text)
        .mode(&file("locked"), 0o400)
        .link(&file("link"), "s.jsonl")
        .link(&file("dangling"), "nowhere")
        .folder(&file("folder"));
    let fifo = std::process::Command::new("mkfifo").arg(test.path(file("fifo"))).status();
    assert!(fifo.unwrap().success());
    fs::write(test.path("diary"), &text).unwrap();
    fs::hard_link(test.path("diary"), test.path(file("hard"))).unwrap();
    let before = names(&test);
    for (name, cause, count) in [
        ("foreign", "it is not a session of skills-runner", 1),
        ("locked", "ermission denied", 3),
        ("link", "it is a link", 1),
        ("hard", "it has more than one name (hard link)", 1),
        ("dangling", "it is a link", 1),
        ("folder", "it is not a regular file", 1),
        ("fifo", "it is not a regular file", 1),
        ("huge", "it is larger than 128 MiB", 1),
    ] {
        let server = Server::start([Reply::text("fine")]);
        let run = test.clone().endpoint(&server).next_run();
        let run = run.args(["--session", name, "-o", "json", "more"]).run().success();
        run.check(run.stdout_json()["session"].is_null(), "it is not saved");
        run.stderr_has(&format!("failed to open the session `{name}`"))
            .stderr_has(cause)
            .stderr_has("is not saved");
        assert_eq!(contents(&server.finish()[0]).len(), count, "{name}");
    }
    assert_eq!(names(&test), before);
    for (name, expected) in [("foreign", "dear diary\n"), ("s", &text), ("locked", &text)] {
        assert_eq!(test.read(&file(name)), expected);
    }
    assert_eq!(test.read("diary"), text);
    for (name, cause) in [
        ("foreign", "it is not a session of skills-runner"),
        ("link", "it is a link"),
        ("hard", "it has more than one name (hard link)"),
        ("folder", "it is not a regular file"),
        ("fifo", "it is not a regular file"),
        ("huge", "it is larger than 128 MiB"),
    ] {
        for command in ["show", "delete"] {
            test.next_run().args(["sessions", command, name]).run().status(1).stderr_has(cause);
        }
    }
    assert_eq!(names(&test), before);
    test.next_run()
        .args(["sessions"])
        .run()
        .success()
        .stdout_has("(failed to read the session `link`: it is a link)");
}

/// The folder cannot be created, or the disk is full.
#[test]
fn write_failure_is_reported_and_the_conversation_continues() {
    let server = Server::start([Reply::text("fine")]);
    let test = Test::new().file("plain", "").endpoint(&server);
    let run = test.next_run().env("SESSIONS_PATH", "plain/below");
    let run = run.args(["--session", "s", "hi"]).run().success().stdout("fine\n");
    run.stderr_has("failed to open the session `s`")
        .stderr_has("is not saved")
        .stderr_has("Not a directory")
        .stderr_lacks("stays as it is");
    server.finish();
    // A file size limit acts like a full disk: in the middle of a line.
    let (test, text) = saved();
    let long = "x".repeat(3000);
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let line = "ulimit -f 2; skills-runner -o jsonl chat --session s";
    let run =
        test.clone().endpoint(&server).shell(line).stdin(format!("{long}\nmore\n")).run().success();
    run.stderr_has("failed to write the session `s`: File too large")
        .stderr_lacks("continues with the rest");
    assert_eq!(test.read(&file("s")), text, "a part of a line was written");
    assert_eq!(contents(&server.finish()[1])[2..], [long.as_str(), "one", "more"]);
}

/// A new session leaves a file only if it has content, and not if its first request fails.
#[test]
fn key_is_in_no_session_and_empty_sessions_leave_no_file() {
    let server = Server::start([Reply::text("fine")]);
    let test = Test::new().endpoint(&server);
    test.next_run().args(["chat", "--session", "empty"]).stdin("/help\n").run().success();
    assert_eq!(names(&test), [""; 0]);
    let prompt = format!("what is {}?", crate::harness::CANARY);
    test.next_run().args(["--session", "s", "hi"]).run().success();
    test.assert_key_not_saved();
    server.finish();
    let test = Test::new().env("LLM_API_BASE_URL", Server::refusing_connections().url());
    let test = test.env("LLM_MODEL_NAME", "m").env("LLM_API_KEY", crate::harness::CANARY);
    test.next_run().args(["--session", "s", &prompt]).run().status(75);
    assert!(test.read(&file("s")).contains("what is [secret]?"));
    test.assert_key_not_saved();
}
