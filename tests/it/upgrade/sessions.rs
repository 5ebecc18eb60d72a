//! Sessions of 0.1.0: listed, shown, continued, changed and deleted.

use super::{NAMES, OLD_FOLDER, SESSIONS, data, old_file, session_file, with_sessions};
use crate::harness::{Reply, Request, Server, Test};
use serde_json::{Value, json};
use std::fs;

/// The messages after the system prompt.
fn messages(request: &Request) -> &[Value] {
    &request.messages()[1..]
}

/// The file of a session as this version continues it: with the new number of its format, and
/// without an unfinished line.
fn continued(name: &str) -> String {
    let old = old_file(&format!("sessions/{name}.jsonl"));
    let whole = &old[..=old.rfind('\n').expect("a line")];
    whole.replacen("\"version\":1}", "\"version\":3}", 1)
}

#[test]
fn every_file_is_in_the_table() {
    let files = fs::read_dir(data("sessions")).unwrap();
    let mut files: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, NAMES.map(|(name, ..)| format!("{name}.jsonl")));
}

/// Listing and showing change no file.
#[test]
fn sessions_are_listed_and_shown() {
    let test = with_sessions();
    let run = test.next_run().args(["sessions", "list", "--json"]).run().success();
    let all = run.stdout_json()["sessions"].clone();
    for (name, turns, question) in NAMES {
        let listed = all.as_array().unwrap().iter().find(|session| session["name"] == name);
        let listed = listed.unwrap_or_else(|| panic!("{name} is not listed"));
        let found = [&listed["turns"], &listed["first_question"], &listed["folder"]];
        assert_eq!(found, [&json!(turns), &json!(question), &json!(OLD_FOLDER)], "{name}");
        assert!(listed["problem"].is_null(), "{listed}");
        let run = test.next_run().args(["sessions", "show", name]).run().success();
        run.stderr_is_empty();
        let run = test.next_run().args(["sessions", "show", name, "--markdown"]).run().success();
        run.stderr_is_empty();
        assert_eq!(test.read(&session_file(name)), old_file(&format!("sessions/{name}.jsonl")));
    }
    let shown = |name: &str| test.next_run().args(["sessions", "show", name]).run().success();
    shown("interrupted").stdout(
        "user: long?\n\
         assistant: The answer is, to begin\n\n(no answer: the turn was interrupted)\n\
         user: script?\n\
         → run_python_script {\"skill_name\": \"sums\", \"script\": \"import time; print('started', flush=True); time.sleep(60)\"}\n\
         ← run_python_script: {\"skill_name\":\"sums\",\"returncode\":-9,\"stdout\":\"started\\n\",\"stderr\":\"\",\"timed_out\":false,\"duration_ms\":1502,\"interpreter\":\"/usr/bin/python3\",\"error\":\"interrupted by the user\"}\n\
         assistant: (no answer: the turn was interrupted)\n\
         user: there?\n\
         assistant: Here.\n",
    );
    shown("attached").stdout_has(
        "assistant: A dot.\n\
         user: and these?\n\n<file name=\"numbers.txt\">\n3\n4\n</file>\n\
         [image/png, 67 bytes]\n[https://example.com/cat.png]\n",
    );
    shown("undone").stdout("user: 3 and 3?\nassistant: Six.\n");
}

/// The request has exactly the messages that 0.1.0 itself sent; the file keeps its lines.
#[test]
fn sessions_are_continued() {
    let requests = old_file("requests.jsonl");
    let mut requests = requests.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    for (name, ..) in NAMES {
        let expected = requests.next().unwrap();
        assert_eq!(expected["session"], name);
        let mut expected = expected["messages"].as_array().unwrap().clone();
        let server = Server::start([Reply::text("More."), Reply::text("Even more.")]);
        let test = with_sessions().endpoint(&server);
        let run = test.next_run().args(["--session", name, "more?"]).run().success();
        run.stdout("More.\n").stderr_lacks("cannot be read").stderr_lacks("is not saved");
        let now = test.read(&session_file(name));
        assert!(now.starts_with(&continued(name)), "{name}: {now}");
        test.next_run().args(["--session", name, "even more?"]).run().success();
        assert!(test.read(&session_file(name)).starts_with(&now), "{name}");
        let requests = server.finish();
        assert_eq!(messages(&requests[0]), expected, "{name}");
        expected.push(json!({"role": "assistant", "content": "More."}));
        expected.push(json!({"role": "user", "content": "even more?"}));
        assert_eq!(messages(&requests[1]), expected, "{name}");
    }
    assert!(requests.next().is_none());
}

/// `-c` finds the latest session of the folder by what 0.1.0 noted in it.
#[test]
fn latest_session_of_the_folder_is_continued() {
    let server = Server::start([Reply::text("More.")]);
    let test = Test::new().endpoint(&server);
    let here = test.path("").canonicalize().unwrap();
    let own = old_file("sessions/saved.jsonl").replace(OLD_FOLDER, &here.to_string_lossy());
    let test = test.file(&session_file("own"), own);
    let test = test.file(&session_file("other"), old_file("sessions/undone.jsonl"));
    test.next_run().args(["-c", "more?"]).run().success().stderr_has("`own`");
    let requests = server.finish();
    let texts: Vec<&Value> = messages(&requests[0]).iter().map(|it| &it["content"]).collect();
    assert_eq!(texts, ["2 and 2?", "Four.", "more?"]);
}

/// The texts that were sent after the system prompt.
fn texts(request: &Request) -> Vec<&str> {
    messages(request).iter().map(|it| it["content"].as_str().unwrap_or_default()).collect()
}

/// Continues a session of 0.1.0 with these lines, and returns the requests.
#[track_caller]
fn chat(name: &str, lines: &str, replies: &[&str]) -> (Test, Vec<Request>) {
    let server = Server::start(replies.iter().map(|text| Reply::text(text)));
    let test = with_sessions().endpoint(&server);
    test.next_run().args(["chat", "--session", name]).stdin(lines).run().success();
    (test, server.finish())
}

/// `/retry` sends the question that had failed, `/undo` takes the last turn of 0.1.0 back, `/save`
/// writes all of it, and a summary replaces the one of 0.1.0.
#[test]
fn commands_of_a_conversation_work_in_it() {
    let (_, requests) = chat("failed", "/retry\n", &["Eight."]);
    assert_eq!(texts(&requests[0]), ["2 and 2?", "Four.", "4 and 4?"]);
    let (test, requests) = chat("invoked", "/undo\n/undo\nagain?\n/save copy\n", &["Again."]);
    let sent = texts(&requests[0]);
    assert_eq!(sent[1..], ["Ready.", "again?"]);
    assert!(sent[0].contains("with the numbers: 3 4\n"), "{}", sent[0]);
    let shown = |name: &str| test.next_run().args(["sessions", "show", name]).run().stdout;
    let copy = shown("copy");
    assert!(copy.starts_with("user: I invoke the skill `sums`. "), "{copy}");
    assert!(copy.ends_with("assistant: Ready.\nuser: again?\nassistant: Again.\n"), "{copy}");
    assert_eq!(copy, shown("invoked"));
    let (_, requests) = chat("compacted", "/compact\nthen?\n", &["The user adds.", "Then."]);
    let asked = requests[0].last_message()["content"].to_string();
    assert!(asked.contains("3 + 3 was 6"), "{asked}");
    let sent = texts(&requests[1]);
    assert!(sent[0].ends_with(" any more.]\nThe user adds."), "{sent:?}");
    assert!(sent.iter().any(|text| text.contains("# Sums")), "the document is kept");
}

#[test]
fn sessions_are_deleted() {
    let test = with_sessions();
    for (name, ..) in NAMES {
        test.next_run().args(["sessions", "delete", name]).run().success();
    }
    assert_eq!(fs::read_dir(test.path(SESSIONS)).unwrap().count(), 0);
}
