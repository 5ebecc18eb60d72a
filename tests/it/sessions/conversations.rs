//! Commands, and conversations that save themselves.

use super::{FOLDER, NO_ANSWER, contents, file, names, saved};
use crate::harness::{Reply, Server, Test, seconds};
use std::fs;
use std::thread::sleep;

#[test]
fn list_show_and_delete_commands() {
    let script = r#"{"skill_name":"s"}"#;
    let server = Server::start([Reply::calls([("get_skill", script)]), Reply::text("done")]);
    let test = Test::new().skill("s", "---\nname: s\ndescription: d\n---\nBody").endpoint(&server);
    test.next_run().args(["--session", "work.1", "use it"]).run().success();
    server.finish();
    let test = test.env_unset("LLM_API_BASE_URL").env_unset("LLM_API_KEY");
    let run = test.next_run().args(["sessions", "list"]).run().success();
    run.stdout_has("work.1  ").stdout_has("    1 turn  use it\n").stderr_is_empty();
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
    let run = test.next_run().args(["sessions", "show", "work.1", "--markdown"]).run().success();
    run.stdout_has(
        "## User\n\nuse it\n\n## Assistant\n\n\n\n`get_skill`\n\n```\n{\"skill_name\":\"s\"}\n```\n",
    )
    .stdout_has("## Result of `get_skill`\n\n```\nBase directory")
    .stdout_has("## Assistant\n\ndone\n");
    assert_eq!((&one["turns"], &one["first_question"]), (&1.into(), &"use it".into()));
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
    run.stderr_has("did you mean `work.1`?");
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
        // One of them was renamed by the user, one is damaged, one is of a newer version.
        let stem = if number == 1 { "renamed".into() } else { name.clone() };
        let text = match number {
            2 => "junk\n".into(),
            3 => automatic(&name).replacen("\"version\":3", "\"version\":4", 1),
            _ => automatic(&name),
        };
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
    // 99 old ones and the new one, and `s`, `renamed`, the damaged one, the newer one.
    assert_eq!(left.len(), 104, "{left:?}");
    for name in ["s", "renamed"] {
        assert!(left.contains(&format!("{name}.jsonl")), "{name}");
    }
    for number in [2, 3, 6, 104] {
        assert!(left.contains(&format!("2020-01-01-0000-{number:04}.jsonl")), "{number}");
    }
    for number in [0, 4, 5] {
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
        // So that the requests of this process are not counted as those of the next one.
        server.wait_for_disconnect();
        let text = test.read(&file("s"));
        let whole = &text[..=text.rfind('\n').unwrap()];
        for line in whole.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
        let requests = server.requests();
        for request in &requests[answered..] {
            let question = request.last_message()["content"].to_string();
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
