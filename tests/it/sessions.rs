//! Saved conversations: creating, continuing, listing and deleting them, and files with unexpected
//! content.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;

use crate::harness::{Reply, Request, Server, Test, seconds};

const FOLDER: &str = "home/.local/state/skills-runner/sessions";

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}.jsonl")
}

fn contents(request: &Request) -> Vec<String> {
    let text = |message: &serde_json::Value| message["content"].as_str().unwrap().to_string();
    request.messages().iter().skip(1).map(text).collect()
}

fn names(test: &Test) -> Vec<String> {
    let entries = fs::read_dir(test.path(FOLDER)).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A test with one saved session `s`: a question and its answer.
fn saved() -> (Test, String) {
    let server = Server::start([Reply::text("4.")]);
    let test = Test::new().endpoint(&server);
    test.next_run().args(["--session", "s", "2 + 2?"]).run().success().stdout("4.\n");
    server.finish();
    let text = test.read(&file("s"));
    (test, text)
}

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

#[test]
fn incomplete_last_line_is_reported_once() {
    let (test, text) = saved();
    let torn = "{\"time\":\"2026-11-22T10:00:00.000Z\",\"add\":{\"ro";
    let test = test.file(&file("s"), format!("{text}{torn}"));
    let server = Server::start([Reply::text("5."), Reply::text("6.")]);
    let test = test.endpoint(&server);
    let run = test.next_run().args(["--session", "s", "more"]).run().success();
    run.stderr_has("line 4 cannot be read");
    assert!(test.read(&file("s")).starts_with(&format!("{text}{torn}\n")));
    let run = test.next_run().args(["--session", "s", "even more"]).run().success();
    run.stderr_lacks("cannot be read");
    let requests = server.finish();
    assert_eq!(contents(&requests[0]), ["2 + 2?", "4.", "more"]);
    assert_eq!(contents(&requests[1]), ["2 + 2?", "4.", "more", "5.", "even more"]);
}

/// A session of version 0.1.0 is continued; its lines stay, and its header becomes that of the
/// current format.
#[test]
fn session_of_format_1_is_continued() {
    let time = "\"time\":\"2026-11-22T10:00:00.000Z\"";
    let old = [
        "{\"format\":\"skills-runner session\",\"automatic\":null,\"created\":\"2026-11-22T09:00:00.000Z\",\"folder\":\"/work\",\"id\":\"7\",\"model\":\"m\",\"version\":1}".to_string(),
        format!("{{{time},\"add\":{{\"role\":\"user\",\"text\":\"one\"}}}}"),
        format!("{{{time},\"replace\":[{{\"role\":\"user\",\"text\":\"[Summary of the conversation so far. What it stands for is not here any more.]\\nsum\"}},{{\"role\":\"assistant\",\"text\":\"(The conversation continues.)\"}},{{\"role\":\"user\",\"text\":\"two\"}}]}}"),
        format!("{{{time},\"add\":{{\"role\":\"assistant\",\"text\":\"Par\\n\\n{NO_ANSWER}\"}}}}"),
        format!("{{{time},\"add\":{{\"role\":\"user\",\"text\":\"failed\"}}}}"),
        format!("{{{time},\"cut\":5}}"),
    ];
    let old = old.join("\n") + "\n";
    let server = Server::start([Reply::text("a"), Reply::text("b")]);
    let test = Test::new().file(&file("old"), &old).endpoint(&server);
    let run = test.next_run().args(["--session", "old", "three"]).run().success();
    run.stderr_lacks("cannot be read");
    let now = test.read(&file("old"));
    assert!(now.starts_with(&old.replacen("\"version\":1", "\"version\":2", 1)), "{now}");
    test.next_run().args(["--session", "old", "four"]).run().success();
    let requests = server.finish();
    let mut expected = vec![
        "[Summary of the conversation so far. What it stands for is not here any more.]\nsum",
        "(The conversation continues.)",
        "two",
        "Par\n\n(no answer: the turn was interrupted)",
        "three",
    ];
    assert_eq!(contents(&requests[0]), expected);
    expected.extend(["a", "four"]);
    assert_eq!(contents(&requests[1]), expected);
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
    let newer = text.replacen("\"version\":2", "\"version\":3", 1);
    let test = test
        .file(&file("foreign"), "dear diary\n")
        .file(&file("newer"), &newer)
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
    for (name, expected) in
        [("foreign", "dear diary\n"), ("newer", &newer), ("s", &text), ("locked", &text)]
    {
        assert_eq!(test.read(&file(name)), expected);
    }
    assert_eq!(test.read("diary"), text);
    for args in [
        ["--session", "newer", "more"].as_slice(),
        &["sessions", "show", "newer"],
        &["sessions", "delete", "newer"],
    ] {
        let cause = format!("the newer version {} of skills-runner", env!("CARGO_PKG_VERSION"));
        test.next_run().args(args).run().status(78).stderr_has(&cause);
    }
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

#[test]
fn list_show_and_delete_commands() {
    let script = r#"{"skill_name":"s"}"#;
    let server = Server::start([Reply::calls([("get_skill", script)]), Reply::text("done")]);
    let test = Test::new().skill("s", "---\nname: s\ndescription: d\n---\nBody").endpoint(&server);
    test.next_run().args(["--session", "work.1", "use it"]).run().success();
    server.finish();
    let test = test.env_unset("LLM_API_BASE_URL").env_unset("LLM_API_KEY");
    let run = test.next_run().args(["sessions", "list"]).run().success();
    run.stdout_has("work.1  ").stdout_has("4 messages").stderr_is_empty();
    let run = test.next_run().args(["sessions", "list", "--json"]).run().success();
    let list = run.stdout_json();
    let one = &list["sessions"][0];
    assert_eq!((&one["name"], &one["messages"]), (&"work.1".into(), &4.into()));
    assert_eq!(one["folder"], test.path("").to_string_lossy().trim_end_matches('/'));
    assert!(one["in_use"].is_null() && one["id"].as_str().unwrap().len() == 36, "{one}");
    assert!(
        one["bytes"].as_u64() > Some(100)
            && one["created"].is_string()
            && one["last_activity"].is_string()
    );
    let run = test.next_run().args(["sessions", "show", "work.1"]).run().success();
    run.stdout_has("user: use it\n→ get_skill {\"skill_name\":\"s\"}\n← get_skill: ")
        .stdout_has("assistant: done\n");
    let run = test.next_run().args(["sessions", "show", "work.1", "--json"]).run().success();
    let shown = run.stdout_json();
    assert_eq!(shown["messages"][3]["text"], "done");
    // The fields of the list, except the number of messages.
    for (field, value) in one.as_object().unwrap() {
        assert!(field == "messages" || shown[field] == *value, "{field}: {shown}");
    }
    assert!(shown["estimate"].as_u64() > Some(20), "{shown}");
    let messages = shown["messages"].as_array().unwrap().iter();
    let places: Vec<Option<u64>> = messages.map(|message| message["index"].as_u64()).collect();
    assert_eq!(places, [Some(0), Some(1), Some(2), Some(3)]);
    let run = test.next_run().args(["sessions", "delete", "work1"]).run().status(1);
    run.stderr_has("did you mean work.1?");
    let run = test.next_run().args(["sessions", "show", "w"]).run().status(1);
    run.stderr_has("`skills-runner sessions list` lists all");
    let run = test.next_run().args(["sessions", "delete", "nothing", "--json"]).run().status(1);
    assert_eq!(run.stdout_json()["error"]["kind"], "io");
    test.next_run().args(["sessions", "delete", "work.1"]).run().success();
    assert_eq!(names(&test), [""; 0]);
    test.next_run()
        .args(["sessions"])
        .run()
        .success()
        .stdout_is_empty()
        .stderr_has("there are no sessions");
}

/// On a terminal a conversation is saved from its first message on, and shows its last turns when
/// it is continued.
#[test]
fn terminal_conversation_is_saved_automatically() {
    let server = Server::start((0..5).map(|_| Reply::text("so it is")));
    let test = Test::new().endpoint(&server);
    let mut terminal = test.next_run().spawn_on_terminal();
    terminal.expect("> ");
    assert!(!test.exists(FOLDER));
    for number in ["one", "two", "three"] {
        terminal.type_line(number).expect("so it is").expect("> ");
    }
    let all = names(&test);
    assert!(
        all.len() == 1
            && all[0].starts_with("20")
            && all[0].len() == "2026-11-22-1403-ab12.jsonl".len(),
        "{all:?}"
    );
    terminal
        .type_line("/session")
        .expect("session 20")
        .expect("id ")
        .expect("6 messages")
        .expect("> ");
    terminal.type_line("/save kept").expect("saved as `kept`").expect("> ");
    terminal.type_line("four").expect("so it is").expect("> ");
    assert_eq!(names(&test), ["kept.jsonl"]);
    terminal.type_line("/save ../x").expect("the name is not valid").expect("> ").ctrl('d');
    terminal.wait_exit().success();
    let mut terminal = test.next_run().args(["-c"]).spawn_on_terminal();
    terminal.expect("continuing session `kept`").expect("8 messages");
    terminal.expect("… 4 messages before").expect("user: three").expect("user: four").expect("> ");
    assert!(!terminal.output().contains("user: two"));
    // A second name creates a copy; another session is never replaced.
    terminal.type_line("/save copy").expect("saved as `copy`").expect("> ");
    terminal.type_line("/save kept").expect("a session with this name exists").expect("> ");
    terminal.type_line("five").expect("so it is").expect("> ").type_line("/exit");
    terminal.wait_exit().success();
    let kept = test.read(&file("kept"));
    assert!(!kept.contains("five") && test.read(&file("copy")).contains("five"));
    server.finish();
}

/// A conversation from a pipe is saved on command.
#[test]
fn piped_conversation_can_be_saved() {
    let server = Server::start([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    let test = Test::new().endpoint(&server);
    let run =
        test.next_run().args(["chat", "-o", "jsonl"]).stdin("one\n/save p\ntwo\n").run().success();
    let results = run.stdout_json_lines();
    let sessions: Vec<_> =
        results.iter().filter(|r| r["type"] == "result").map(|r| &r["session"]).collect();
    assert_eq!(sessions, [&serde_json::Value::Null, &"p".into()]);
    test.next_run().args(["--session", "p", "three"]).run().success();
    assert_eq!(contents(&server.finish()[2]), ["one", "a", "two", "b", "three"]);
}

/// If another program changes the file during a conversation, it stays as that program left it.
#[test]
fn file_that_another_program_has_changed_is_not_written() {
    for change in [|text: String| text + "a line\n", |_| String::new()] {
        let server = Server::start(["a", "b"].map(Reply::text));
        let test = Test::new().endpoint(&server);
        let mut running = test.next_run().args(["chat", "--session", "s"]).stdin_open().spawn();
        running.write_stdin("one\n");
        running.read_stdout_until("a\n");
        let now = change(test.read(&file("s")));
        fs::write(test.path(file("s")), &now).unwrap();
        running.write_stdin("two\n");
        running.read_stdout_until("b\n");
        running.close_stdin();
        let run = running.wait().success();
        run.stderr_has("another process has changed its file").stderr_has("is not saved any more");
        assert_eq!(test.read(&file("s")), now);
        server.finish();
    }
}

#[test]
fn image_is_shown_by_its_type_and_size() {
    let (test, text) = saved();
    let image = r#""text":"2 + 2?","images":["data:image/png;base64,AAAA"]"#;
    let text = text.replacen(r#""text":"2 + 2?""#, image, 1);
    let run = test.file(&file("s"), text).args(["sessions", "show", "s"]).run().success();
    run.stdout_has("user: 2 + 2?\n[image/png, 3 bytes]\n").stdout_lacks("base64");
}

/// The oldest automatically named sessions are deleted; the others stay.
#[test]
fn old_automatic_sessions_are_pruned() {
    let (test, text) = saved();
    let automatic =
        |name: &str| text.replacen("\"automatic\":null", &format!("\"automatic\":\"{name}\""), 1);
    let mut test = test;
    for number in 0..105 {
        let name = format!("2020-01-01-0000-{number:04}");
        // One of them was renamed by the user, and one is damaged.
        let stem = if number == 1 { "renamed".into() } else { name.clone() };
        let text = if number == 2 { "junk\n".into() } else { automatic(&name) };
        test = test.file(&file(&stem), text);
        let path = test.path(file(&stem));
        let time = std::time::SystemTime::UNIX_EPOCH + seconds(1e9 + f64::from(number));
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
    let server = Server::start([Reply::text("so")]);
    let mut terminal = test.clone().endpoint(&server).spawn_on_terminal();
    terminal.expect("> ").type_line("hi").expect("so").expect("> ").ctrl('d');
    terminal.wait_exit().success();
    server.finish();
    let left = names(&test);
    // 99 old ones and the new one, and `s`, `renamed`, the damaged one.
    assert_eq!(left.len(), 103, "{left:?}");
    for name in
        ["s", "renamed", "2020-01-01-0000-0002", "2020-01-01-0000-0006", "2020-01-01-0000-0104"]
    {
        assert!(left.contains(&format!("{name}.jsonl")), "{name}");
    }
    for number in [0, 3, 4, 5] {
        assert!(!left.contains(&format!("2020-01-01-0000-{number:04}.jsonl")), "{number}");
    }
}

/// SIGTERM and every other end of the program leave a complete session.
#[test]
fn terminated_conversation_leaves_a_complete_session() {
    let server = Server::start([Reply::text("a"), Reply::empty().hang(), Reply::text("b")]);
    let test = Test::new().endpoint(&server);
    let mut running = test.next_run().args(["chat", "--session", "s"]).stdin_open().spawn();
    running.write_stdin("one\ntwo\n");
    server.wait_for_requests(2);
    running.signal(libc::SIGTERM);
    running.wait().status(-libc::SIGTERM);
    let run = test.next_run().args(["--session", "s", "three"]).run().success();
    run.stderr_has("4 messages");
    // An interrupted question stays.
    let texts = contents(&server.finish()[2]);
    assert_eq!(texts, ["one", "a", "two", NO_ANSWER, "three"]);
}

const NO_ANSWER: &str = "(no answer: the turn was interrupted)";

/// An interrupted turn is closed; a new prompt replaces only a question whose request failed.
#[test]
fn interrupted_question_is_kept_and_failed_question_replaced() {
    for (signal, is_told) in [(libc::SIGINT, true), (libc::SIGHUP, true), (libc::SIGKILL, false)] {
        let server = Server::start([Reply::empty().hang(), Reply::text("b"), Reply::text("c")]);
        let test = Test::new().endpoint(&server);
        let running = test.next_run().args(["--session", "s", "first"]).spawn();
        server.wait_for_requests(1);
        running.signal(signal);
        running.wait();
        assert_eq!(test.read(&file("s")).contains("\"kind\":\"interrupted\""), is_told);
        let ask = |prompt| test.next_run().args(["--session", "s", prompt]).run().success();
        ask("go on");
        ask("more");
        let requests = server.finish();
        assert_eq!(contents(&requests[1]), ["first", NO_ANSWER, "go on"]);
        assert_eq!(contents(&requests[2])[..3], ["first", NO_ANSWER, "go on"]);
    }
    let server = Server::start([Reply::status(400), Reply::text("b")]);
    let test = Test::new().endpoint(&server);
    let run = test.next_run().args(["--session", "s", "first"]).run();
    run.check(!run.status_is(0), "it fails");
    test.next_run().args(["--session", "s", "second"]).run().success();
    assert_eq!(contents(&server.finish()[1]), ["second"]);
}

/// A question that `kill -9` left unanswered is reported on a terminal and can be sent again.
#[test]
fn unanswered_question_is_reported_and_resent() {
    let server = Server::start([Reply::empty().hang(), Reply::text("so it is")]);
    let test = Test::new().endpoint(&server);
    let running = test.next_run().args(["--session", "s", "first"]).spawn();
    server.wait_for_requests(1);
    running.kill9();
    running.wait();
    let mut terminal = test.next_run().args(["-c"]).spawn_on_terminal();
    terminal
        .expect("the last question has no answer (/retry sends it again)")
        .expect("> ")
        .type_line("/retry")
        .expect("so it is")
        .expect("> ")
        .ctrl('d');
    terminal.wait_exit().success();
    assert_eq!(contents(&server.finish()[1]), ["first"]);
}

/// Everything that the endpoint received and that was printed on stdout is in the file, whenever
/// the program is killed; `make torture-sessions` does this 10,000 times.
#[test]
fn kill_9_loses_nothing_acknowledged() {
    let long = "x".repeat(100_000);
    let server = Server::always(|request| {
        let last = request.last_message();
        let prompt = last["content"].as_str().unwrap();
        Reply::text(&format!("re: {}", prompt.split(' ').next().unwrap()))
    });
    let test = Test::new().endpoint(&server);
    let mut answered = 0;
    for cycle in 0_u32..30 {
        let lines = (0..40).map(|number| {
            let tail = if number % 5 == 4 { long.as_str() } else { "" };
            format!("q{cycle}.{number} {tail}\n")
        });
        let run = test.next_run().args(["chat", "--session", "s"]).stdin(lines.collect::<String>());
        let running = run.spawn();
        server.wait_for_requests(answered + 1);
        // Deterministic, with a different moment for each run.
        sleep(seconds(f64::from(cycle * 7 % 30) / 1000.0));
        running.kill9();
        let outcome = running.wait().status(-libc::SIGKILL);
        outcome.check(!outcome.stderr.contains("damaged"), "a line is damaged");
        let text = test.read(&file("s"));
        let whole = &text[..=text.rfind('\n').unwrap()];
        for line in whole.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
        let requests = server.requests();
        for request in &requests[answered..] {
            let question = request.last_message()["content"].to_string();
            // The request of the previous process may only be read now.
            if !question.starts_with(&format!("\"q{cycle}.")) {
                continue;
            }
            assert!(whole.contains(&format!("\"text\":{question}")), "lost: {question}");
        }
        for answer in outcome.stdout.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let answer = format!("\"text\":\"{}\"", answer.trim_end());
            assert!(whole.contains(&answer), "lost: {answer}");
        }
        answered = requests.len();
        if cycle % 5 == 4 {
            let run = test.next_run().args(["sessions", "show", "s", "--json"]).run().success();
            run.check(run.stdout_json()["problem"].is_null(), "the session is damaged");
            fs::remove_file(test.path(file("s"))).unwrap();
        }
    }
}
