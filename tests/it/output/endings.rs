//! Signals, full disks and closed readers.

use super::{LONG, SKILL, all, check_fields, checked_records, failed_records, kind, question_test};
use crate::harness::{
    CANARY, MODEL, Reply, Running, Server, Stopwatch, Test, event, last_event, seconds, wait_until,
};
use serde_json::{Value, json};

/// A phase of a run: its name, the replies of the server, and a wait until the program is in it.
type Phase = (&'static str, Vec<Reply>, fn(&mut Running, &Server, &Test));

fn phases() -> Vec<Phase> {
    let busy = Reply::status(503).header("retry-after", "30");
    vec![
        ("request", vec![Reply::empty().hang()], |_, server, _| {
            server.wait_for_requests(1);
        }),
        ("stream", vec![Reply::text("half an answer").hang()], |running, _, _| {
            running.read_stdout_until("swer\"}");
        }),
        ("script", vec![Reply::calls([("run_python_script", LONG)])], |_, _, test| {
            assert!(wait_until(seconds(10.0), || test.exists("begun")));
        }),
        ("retry", vec![busy], |running, _, _| {
            running.read_stdout_until("\"retry\"");
        }),
    ]
}

/// For each signal in each phase: a result is printed, the program dies by the signal, and no
/// process is left.
#[test]
fn signal_in_any_phase_has_a_result_record() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        for (phase, replies, wait) in phases() {
            let server = Server::start(replies);
            let test = question_test(&server);
            let mut running = test.spawn();
            wait(&mut running, &server, &test);
            running.signal(signal);
            let run = running.wait().status(-signal);
            let records = failed_records(&run, "interrupted");
            let result = records.last().unwrap();
            let answer = if phase == "stream" { "half an answer" } else { "" };
            assert_eq!(result["answer"], answer, "{phase}");
            let steps = u64::from(phase == "script");
            assert_eq!(
                (&result["steps"], &result["tool_calls"]),
                (&json!(steps), &json!(steps)),
                "{phase}"
            );
            assert!(test.processes().is_empty(), "{phase}");
            server.finish();
        }
    }
}

#[test]
fn signal_while_waiting_for_stdin_has_a_result_record() {
    let server = Server::start([]);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        for args in [["-o", "jsonl", "-"], ["-o", "jsonl", "chat"]] {
            let test = Test::new().endpoint(&server).args(args).stdin_open();
            let running = test.spawn();
            std::thread::sleep(seconds(0.4));
            running.signal(signal);
            let run = running.wait().status(-signal);
            let records = failed_records(&run, "interrupted");
            assert_eq!(records.last().unwrap()["model"], MODEL);
        }
    }
    server.finish();
}

/// A reader that stops reading does not delay a signal.
#[test]
fn blocked_reader_does_not_delay_a_signal() {
    let server = Server::start([Reply::text(&"x".repeat(300_000))]);
    let test = Test::new().endpoint(&server).stdin_null();
    // `sh` waits for the program and writes its exit status.
    let line = "{ skills-runner -o jsonl go & pid=$!; sleep 1.5; kill -TERM $pid; wait $pid; \
                echo $? >status; } | { sleep 4; cat >/dev/null; }";
    let run = test.next_run().shell(line).run().success();
    run.took_at_most(seconds(10.0));
    assert_eq!(test.read("status"), "143\n");
    server.finish();
}

#[test]
#[ignore = "long"]
fn blocked_reader_does_not_delay_the_deadline() {
    for format in ["text", "json", "jsonl"] {
        let server = Server::start([Reply::text(&"x".repeat(300_000))]);
        let test = Test::new().endpoint(&server).stdin_null();
        let run = format!("skills-runner -o {format} --timeout 1 go");
        let line = format!("{{ {run}; echo $? >status; }} | {{ sleep 3; cat >/dev/null; }}");
        let start = Stopwatch::start();
        let run = test.next_run().shell(&line).run().success();
        run.stderr_has("the time limit of the run (--timeout) is reached");
        assert!(start.elapsed_for_limit(seconds(6.0)) <= seconds(6.0), "{format}");
        assert_eq!(test.read("status"), "3\n", "{format}");
        server.finish();
    }
}

/// A signal during the wait for the end of the body is not lost.
#[test]
fn signal_after_the_answer_is_not_lost() {
    let stream = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\
                  data: {\"choices\":[{\"delta\":{\"content\":\"4\"}}]}\n\n";
    let end = "data: [DONE]\n\n";
    let server = Server::start([Reply::raw(stream).then_repeat(usize::MAX, seconds(0.005), end)]);
    let mut running = Test::new().endpoint(&server).args(["-o", "jsonl", "hi"]).spawn();
    running.read_stdout_until("delta");
    running.signal(libc::SIGTERM);
    let run = running.wait().status(-libc::SIGTERM);
    failed_records(&run, "interrupted");
}

/// A file size limit (SIGXFSZ) is a write error and does not kill the program.
#[test]
fn file_size_limit_is_a_write_error() {
    let server = Server::start([Reply::text("4")]);
    let test = Test::new().endpoint(&server).stdin_null();
    let run = test.shell("ulimit -f 0; exec skills-runner go >answer").run();
    run.status(1).stderr_has("failed to write the answer: File too large");
    server.finish();
}

#[test]
fn silent_pipe_is_noted_in_the_result() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    let test = Test::new().endpoint(&server).args(["-o", "jsonl", "hi"]);
    let run = test.stdin_open().run().success();
    let records = checked_records(&run, 1);
    assert_eq!(records.last().unwrap()["stdin"], "ignored");
    run.stderr_has("standard input had no data for");
    let test = Test::new().endpoint(&server).args(["-o", "jsonl", "hi"]);
    let run = test.stdin("text").run().success();
    assert_eq!(checked_records(&run, 1).last().unwrap().get("stdin"), None);
    server.finish();
}

/// The key appears in pieces, within reasoning, in script output, in arguments and in an error. The
/// harness checks the whole output for it; this test also joins the pieces.
#[test]
fn key_appears_nowhere() {
    let (one, rest) = CANARY.split_at(9);
    let (two, three) = rest.split_at(5);
    let pieces = |field: &str, other: &str| {
        let mut events = Vec::new();
        for piece in ["the key: ", one, two, three, " and half: ", one] {
            events.push(event(&json!({ field: piece })));
            events.push(event(&json!({ other: "so " })));
        }
        events.push(last_event("stop"));
        events
    };
    let backwards: String = CANARY.chars().rev().collect();
    let print = json!({"skill_name": "s", "script": format!("print('{backwards}'[::-1])")});
    let script_with_key = json!({"skill_name": "s", "script": format!("k = '{CANARY}'; print(k)")});
    let server = Server::start([
        Reply::calls([("run_python_script", print.to_string().as_str())]),
        Reply::sse(pieces("content", "reasoning_content")),
        Reply::sse(pieces("reasoning_content", "content")),
        Reply::error(400, &format!("bad key {CANARY}")),
    ]);
    let mut texts = Vec::new();
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    for _ in 0..3 {
        let run = test.next_run().args(["-v", "-o", "jsonl", "go"]).run();
        for record in checked_records(&run, 1) {
            if let Some(delta) = record["delta"].as_str() {
                texts.push((kind(&record).to_string(), delta.to_string()));
            }
        }
        run.stderr_lacks(two).stdout_lacks(two);
    }
    for name in ["text", "reasoning"] {
        let all: String = texts
            .iter()
            .filter(|(kind, _)| kind == name)
            .map(|(_, delta)| delta.as_str())
            .collect();
        assert!(all.contains("the key: [secret] and half: "), "{all}");
        assert!(!all.contains(CANARY), "{all}");
    }
    server.finish();
    // The model gets the key from another source and writes it into a call.
    let server = Server::start([Reply::calls([(
        "run_python_script",
        script_with_key.to_string().as_str(),
    )])
    .with_ids([CANARY])]);
    let run = question_test(&server).args(["--max-steps", "1"]).run().status(3);
    run.check(run.stdout.contains("k = '[secret]'"), "arguments are masked");
}

/// When the reader closes stdout, the run ends soon and quietly, with its script.
#[test]
fn closed_stdout_ends_the_run() {
    let script = json!({"skill_name": "s", "script":
        "import time\nopen('begun', 'w').close()\ntime.sleep(60)"});
    let call = Reply::call("run_python_script", &script);
    let server = Server::always(move |_| call.clone());
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let line = "{ skills-runner -o jsonl go; echo $? >status; } | head -n 1";
    let run = test.next_run().shell(line).run().success();
    run.check(run.stdout.contains("\"start\""), "the first line was printed");
    run.stderr_lacks("failed").took_at_most(seconds(3.0));
    assert_eq!(test.read("status"), "0\n");
    assert!(test.processes().is_empty());
    assert!(server.finish().len() <= 1);

    // It ends also while nothing is written: the script is already running.
    let server = Server::start([Reply::call("run_python_script", &script)]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let line_2 = "{ skills-runner -o jsonl go; echo $? >status; } | \
                  { read start; read call; while [ ! -e begun ]; do sleep 0.05; done; }";
    let run = test.next_run().shell(line_2).run().success();
    run.stderr_lacks("failed").took_at_most(seconds(8.0));
    assert_eq!(test.read("status"), "0\n");
    assert!(test.exists("begun") && test.processes().is_empty());
    server.finish();

    // In the middle of a long stream.
    let words = (0..200).map(|_| (seconds(0.05), stream_piece("word ")));
    let server = Server::start([Reply::chunks(words)]);
    let test = Test::new().endpoint(&server);
    let line = "{ skills-runner -o jsonl go; echo $? >status; } | head -n 3";
    let run = test.next_run().shell(line).run().success();
    run.stderr_lacks("failed").took_at_most(seconds(4.0));
    assert_eq!(test.read("status"), "0\n");
    server.finish();

    // Closed from the start.
    let server = Server::always(|_| Reply::text("x"));
    for format in ["json", "jsonl"] {
        let test = Test::new().endpoint(&server).args(["-o", format, "go"]);
        test.stdout_closed().run().success().stderr_lacks("failed");
    }
    let test = Test::new().endpoint(&server).args(["-o", "jsonl", "chat"]);
    let run = test.stdin("a\nb\nc\n").stdout_closed().run().success();
    run.stderr_lacks("failed");
    assert!(server.requests().len() <= 1, "only `json` needs a request");
    server.finish();
}

fn stream_piece(text: &str) -> Vec<u8> {
    format!("{}\n\n", event(&json!({"content": text}))).into_bytes()
}

#[test]
fn full_disk_is_reported() {
    let server = Server::always(|_| Reply::text("x"));
    for format in ["json", "jsonl"] {
        for command in [vec!["go"], vec!["chat", "go"]] {
            let test = Test::new().endpoint(&server).args(["-o", format]);
            let run = test.args(command).stdout_file("/dev/full").run().status(1);
            run.check(
                run.stderr.matches("failed to write the answer").count() == 1,
                "it is told once",
            );
        }
    }
    server.finish();
}

/// A conversation has one start record and one result for each turn, also for a failed one.
#[test]
fn conversation_has_one_result_record_for_each_turn() {
    let server = Server::start([
        Reply::calls([("list_skills", "{}")]).with_usage(4, 1),
        Reply::text("one").with_usage(5, 1),
        Reply::error(401, "no"),
        Reply::text("three").with_usage(6, 2),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let test = test.args(["-o", "jsonl", "chat"]);
    let run = test.stdin("a\n\nb\n/help\nc\n").run().status(77);
    let records = checked_records(&run, 3);
    assert_eq!(all(&records, "start").len(), 1);
    let results = all(&records, "result");
    let reported: Vec<Value> = results
        .iter()
        .map(|result| {
            json!([
                result["status"],
                result["exit_code"],
                result["answer"],
                result["steps"],
                result["tool_calls"],
                result["usage"]["prompt_tokens"],
                result["error"]["kind"]
            ])
        })
        .collect();
    assert_eq!(
        reported,
        [
            json!(["ok", 0, "one", 2, 1, 9, null]),
            json!(["error", 77, "", 0, 0, 0, "auth"]),
            json!(["ok", 0, "three", 1, 0, 6, null]),
        ]
    );
    server.finish();
    // With `json` only the results are printed.
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let test = Test::new().endpoint(&server).args(["-o", "json", "chat"]);
    let run = test.stdin("a\nb").run().success();
    let answers: Vec<Value> = run
        .stdout_json_lines()
        .iter()
        .inspect(|result| check_fields(&run, result))
        .map(|result| result["answer"].clone())
        .collect();
    assert_eq!(answers, ["one", "two"]);
    server.finish();
}

/// A signal during a turn ends the turn and the conversation.
#[test]
fn signal_during_a_turn_writes_its_result_record() {
    let server = Server::start([Reply::text("one"), Reply::text("half").hang()]);
    let test = Test::new().endpoint(&server).args(["-o", "jsonl", "chat"]);
    let mut running = test.stdin("a\nb\nc\n").spawn();
    running.read_stdout_until("lf\"}");
    running.signal(libc::SIGTERM);
    let run = running.wait().status(-libc::SIGTERM);
    let records = checked_records(&run, 2);
    let result = records.last().unwrap();
    assert_eq!(
        (&result["exit_code"], &result["answer"], &result["error"]["kind"]),
        (&json!(143), &json!("half"), &json!("interrupted"))
    );
    server.finish();
}

#[test]
fn demo_prints_the_same_records() {
    let test = Test::new().args(["demo", "-o", "jsonl"]);
    let records = checked_records(&test.run().success(), 1);
    let mut ids: Vec<&str> =
        all(&records, "tool_call").iter().filter_map(|call| call["id"].as_str()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 8, "every call has its own id");
    let result = records.last().unwrap();
    assert_eq!((&result["steps"], &result["tool_calls"]), (&json!(5), &json!(8)));
}

/// Tool results are masked before they are shortened and contain no terminal control characters.
#[test]
fn verbose_shows_the_start_of_tool_results() {
    let long = "x".repeat(150);
    let file = format!("first \u{1b}[2J\n\n{long} {CANARY} and more\nthird\nfourth\nfifth\n");
    let call = json!({"skill_name": "s", "file_path": "a.txt"});
    let server = Server::always(move |request| match request.messages().len() {
        2 => Reply::call("read_file_in_skill", &call),
        _ => Reply::text("done"),
    });
    let test = Test::new()
        .skill("s", "---\nname: s\ndescription: d\n---\n")
        .file("skills/s/a.txt", file)
        .endpoint(&server);
    let run = test.next_run().args(["-v", "go"]).run().success();
    run.stderr_has(&format!(
        "\n\u{b7} first \u{fffd}[2J\n\u{b7} {long} [secret] and more\n\u{b7} third\n\u{b7} \u{2026} "
    ))
    .stderr_lacks("fourth");
    let run = test.next_run().args(["go"]).run().success();
    run.stderr_lacks("third");
    server.finish();
}
