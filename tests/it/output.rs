//! `--output json` and `jsonl` as another program reads them: every line is an object, and the last
//! one is a result, however the run ends.

use serde_json::{Value, json};

use crate::harness::{
    CANARY, MODEL, Outcome, Reply, Running, Server, Stopwatch, Test, event, last_event, seconds,
    wait_until,
};

const SKILL: &str = "---\nname: s\ndescription: d\n---\n";

/// A script that signals its start and runs for a minute.
const LONG: &str =
    r#"{"skill_name":"s","script":"import time, os\nopen('begun', 'w').close()\ntime.sleep(60)"}"#;

/// The fields of each record type, in alphabetical order.
const FIELDS: [(&str, &[&str]); 8] = [
    ("start", &["model", "session", "skills", "type"]),
    ("text", &["delta", "type"]),
    ("reasoning", &["delta", "type"]),
    ("tool_call", &["arguments", "id", "name", "type"]),
    ("tool_result", &["content", "duration_ms", "id", "name", "ok", "type"]),
    ("retry", &["attempt", "delay_ms", "reason", "type"]),
    ("error", &["kind", "message", "type"]),
    (
        "result",
        &[
            "answer",
            "duration_ms",
            "exit_code",
            "model",
            "session",
            "status",
            "steps",
            "tool_calls",
            "type",
            "usage",
        ],
    ),
];

fn question_test(server: &Server) -> Test {
    let test = Test::new().skill("s", SKILL).endpoint(server);
    test.args(["-o", "jsonl", "go"])
}

fn kind(record: &Value) -> &str {
    record["type"].as_str().unwrap_or_default()
}

/// The records of one type.
fn all<'r>(records: &'r [Value], wanted: &str) -> Vec<&'r Value> {
    records.iter().filter(|record| kind(record) == wanted).collect()
}

/// Checks that hold for every `jsonl` output: each record and their order, with this number of
/// results.
#[track_caller]
fn checked_records(run: &Outcome, results: usize) -> Vec<Value> {
    run.check(!run.stdout.contains('\r'), "lines end with a line feed only");
    run.check(run.stdout.ends_with('\n'), "the last line has a line end");
    let records = run.stdout_json_lines();
    let (mut text, mut open) = (String::new(), Vec::new());
    for record in &records {
        check_fields(run, record);
        match kind(record) {
            "text" => text += record["delta"].as_str().unwrap(),
            "tool_call" => open.push((record["id"].clone(), record["name"].clone())),
            "tool_result" => {
                let ended = (record["id"].clone(), record["name"].clone());
                run.check(open.pop() == Some(ended), "a result follows its call");
                text.clear();
            }
            "result" => {
                run.check(record["answer"] == text.as_str(), "the deltas add up to the answer");
                run.check(open.is_empty(), "every call has its result");
                text.clear();
            }
            _ => {}
        }
    }
    run.check(
        all(&records, "result").len() == results,
        format_args!("there are {results} results"),
    );
    run.check(
        records.last().is_some_and(|last| kind(last) == "result"),
        "the last record is a result",
    );
    records
}

/// Asserts that the record has exactly its fields, with valid values.
#[track_caller]
fn check_fields(run: &Outcome, record: &Value) {
    let Some((_, fields)) = FIELDS.iter().find(|(name, _)| *name == kind(record)) else {
        return run.check(false, format_args!("{record} has an unknown type"));
    };
    let optional: &[&str] = match kind(record) {
        "error" => &["hint"],
        "result" => &["stdin", "error"],
        _ => &[],
    };
    let present = record.as_object().unwrap();
    let names: Vec<&str> =
        present.keys().map(String::as_str).filter(|name| !optional.contains(name)).collect();
    run.check(names == *fields, format_args!("{record} has the fields {fields:?}"));
    for (name, value) in present {
        let fits = match name.as_str() {
            "session" => value.is_null(),
            "model" => value.is_null() || value.is_string(),
            "skills" => value.is_array(),
            "ok" => value.is_boolean(),
            "arguments" => value.is_object() || value.is_string(),
            "usage" => value["prompt_tokens"].is_u64() && value["completion_tokens"].is_u64(),
            "error" => value["kind"].is_string() && value["message"].is_string(),
            "exit_code" | "steps" | "tool_calls" | "duration_ms" | "delay_ms" | "attempt" => {
                value.is_u64()
            }
            _ => value.is_string(),
        };
        run.check(fits, format_args!("`{name}` fits in {record}"));
    }
}

/// Checks the result of a failed run: its status is the program's exit status, and its error has
/// this kind and was printed to stderr.
#[track_caller]
fn failed_records(run: &Outcome, expected: &str) -> Vec<Value> {
    let records = checked_records(run, 1);
    let [.., error, result] = records.as_slice() else {
        run.check(false, "the last records are an error and a result");
        return records;
    };
    let status = match run.status {
        signal @ ..0 => 128 - signal,
        status => status,
    };
    run.check(result["exit_code"] == status, "exit_code is the exit status");
    run.check(result["status"] == "error", "the result is an error");
    run.check(result["error"]["kind"] == expected, format_args!("the error's kind is {expected}"));
    run.check(kind(error) == "error", "the error comes before the result");
    for field in ["kind", "message", "hint"] {
        run.check(error[field] == result["error"][field], field);
    }
    records
}

/// Order, fields and texts of all records.
#[test]
fn run_with_tools_prints_records_in_order() {
    let script = r#"{"skill_name":"s","script":"print(2 + 2)"}"#;
    let server = Server::start([
        Reply::calls([("list_skills", "{}"), ("run_python_script", script)])
            .with_text("Let me look.\r\n")
            .with_reasoning("hm")
            .with_usage(10, 1),
        Reply::calls([
            ("fly", "{}"),
            ("list_skills", "{"),
            ("run_python_script", r#"{"skill_name":"s","script":"exit(3)"}"#),
        ])
        .with_usage(20, 2),
        Reply::text("It is 4.\r\nä😀\u{1b}[1m\r").with_usage(30, 3),
    ]);
    let run = question_test(&server).run().success();
    let records = checked_records(&run, 1);
    let kinds: Vec<&str> = records.iter().map(kind).collect();
    let mut order = kinds.clone();
    order.dedup();
    let pair = ["tool_call", "tool_result"];
    let expected = [
        &["start", "reasoning", "text"],
        pair.as_slice(),
        &pair,
        &pair,
        &pair,
        &pair,
        &["text", "result"],
    ];
    assert_eq!(order, expected.concat());
    assert_eq!(
        records[0],
        json!({"type": "start", "session": null, "model": MODEL, "skills": ["s"]})
    );
    let ids: Vec<&Value> = all(&records, "tool_call").iter().map(|call| &call["id"]).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3", "call_4", "call_5"]);
    let arguments: Vec<&Value> =
        all(&records, "tool_call").iter().map(|call| &call["arguments"]).collect();
    assert_eq!(arguments[1], &json!({"skill_name": "s", "script": "print(2 + 2)"}));
    assert_eq!(arguments[3], &json!("{"), "invalid JSON is passed as text");
    let tools = all(&records, "tool_result");
    let oks: Vec<&Value> = tools.iter().map(|result| &result["ok"]).collect();
    assert_eq!(oks, [true, true, false, false, false]);
    let content: Value = serde_json::from_str(tools[1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(content["stdout"], "4\n");
    let result = records.last().unwrap();
    assert_eq!(result["answer"], "It is 4.\r\nä😀\u{1b}[1m\r");
    assert_eq!(
        (&result["status"], &result["exit_code"], &result["model"]),
        (&json!("ok"), &json!(0), &json!(MODEL))
    );
    assert_eq!(
        (&result["steps"], &result["tool_calls"], &result["usage"]),
        (&json!(3), &json!(5), &json!({"prompt_tokens": 60, "completion_tokens": 6}))
    );
    assert!(result.get("error").is_none() && result.get("stdin").is_none());
    // Standard error is the same as with text output.
    run.stderr_has("→ run_python_script").stderr_has("← exit 0");
    server.finish();
}

#[test]
fn json_prints_only_the_result_and_quiet_nothing_else() {
    let server = Server::start([
        Reply::calls([("list_skills", "{}")]).with_text("Let me look."),
        Reply::text("Done.\n"),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let run = test.args(["-q", "--output=json", "go"]).run().success();
    let records = checked_result(&run);
    assert_eq!(records["answer"], "Done.\n");
    assert_eq!((&records["steps"], &records["tool_calls"]), (&json!(2), &json!(1)));
    run.stderr("");
    server.finish();
}

/// Checks that the output is one line with one result.
#[track_caller]
fn checked_result(run: &Outcome) -> Value {
    run.check(run.stdout.lines().count() == 1, "there is exactly one line");
    let result = run.stdout_json();
    run.check(kind(&result) == "result", "it is a result");
    check_fields(run, &result);
    result
}

/// However the endpoint fails, the last record is a result with the error.
#[test]
fn every_failure_ends_with_a_result_record() {
    let table: [(Vec<Reply>, i32, &str, &str, u64); 8] = [
        (vec![Reply::error(401, "no")], 77, "auth", "", 0),
        (vec![Reply::error(400, "no")], 1, "endpoint", "", 0),
        (vec![Reply::status(503), Reply::status(503), Reply::status(503)], 75, "temporary", "", 0),
        (vec![Reply::text("half an answer").cut_off()], 4, "truncated", "half an answer", 1),
        (
            vec![Reply::text("half").finish_reason("length").with_usage(7, 1)],
            4,
            "truncated",
            "half",
            1,
        ),
        (vec![Reply::text("half").finish_reason("content_filter")], 1, "endpoint", "half", 1),
        (vec![Reply::text("")], 1, "protocol", "", 0),
        (vec![Reply::status(200).body("<html>hello</html>")], 1, "endpoint", "", 0),
    ];
    for (replies, status, kind, answer, steps) in table {
        let first = Reply::calls([("list_skills", "{}")]).with_usage(5, 2);
        let server = Server::start([first].into_iter().chain(replies));
        let run = question_test(&server).run().status(status);
        let records = failed_records(&run, kind);
        let result = records.last().unwrap();
        assert_eq!(result["answer"], answer);
        assert_eq!(
            (&result["steps"], &result["tool_calls"]),
            (&json!(1 + steps), &json!(1)),
            "{result}"
        );
        assert!(result["usage"]["prompt_tokens"].as_u64() >= Some(5));
        let retries = if kind == "temporary" { 2 } else { 0 };
        assert_eq!(all(&records, "retry").len(), retries);
        server.finish();
    }
}

#[test]
fn failure_in_json_is_one_line() {
    let server = Server::start([Reply::error(403, "no")]);
    let test = Test::new().endpoint(&server).args(["-o", "json", "go"]);
    let run = test.run().status(77);
    let result = checked_result(&run);
    assert_eq!(
        (&result["exit_code"], &result["error"]["kind"], &result["model"]),
        (&json!(77), &json!("auth"), &json!(MODEL))
    );
    server.finish();
}

#[test]
fn invalid_configuration_has_a_result_record() {
    for command in [["-o", "jsonl", "hi"], ["-o", "jsonl", "chat"]] {
        let run = Test::new().args(command).stdin("hi\n").run().status(78);
        let records = failed_records(&run, "config");
        assert_eq!(records.len(), 2);
        assert_eq!(records[1]["model"], Value::Null);
        assert!(records[1]["error"]["hint"].is_string());
    }
    let server = Server::start([]);
    let test = Test::new().endpoint(&server).dotenv("A='\u{0}");
    failed_records(&test.next_run().args(["-o", "jsonl", "hi"]).run().status(78), "config");
    let test = test.next_run().args(["-o", "jsonl", "--env-file", "no", "hi"]);
    failed_records(&test.run().status(78), "config");
    failed_records(
        &Test::new().args(["--skills", "gone", "demo", "-o", "jsonl"]).run().status(78),
        "config",
    );
    server.finish();
}

/// Wrong usage starts no run, whether it is detected early or late.
#[test]
fn wrong_usage_has_no_result_record() {
    let server = Server::start([]);
    let table: [&[&str]; 8] = [
        &["-o", "xml", "hi"],
        &["-o", "jsonl", "--modle", "x", "hi"],
        &["-o", "jsonl"],
        &["-o", "json", "-n"],
        &["-o", "jsonl", "-s", "@missing", "hi"],
        &["-o", "jsonl", "chat", "-s", "@missing"],
        &["-o", "jsonl", "demo", "word"],
        &["-o", "jsonl", "tool", "fly"],
    ];
    for args in table {
        let run = Test::new().endpoint(&server).args(args).stdin(" ").run();
        run.status(2).stdout_is_empty().stderr_has("failed to");
    }
    Test::new().args(["-o", "xml", "hi"]).run().stderr_has("text, json, jsonl");
    server.finish();
}

/// Commands without an answer have no output format.
#[test]
fn other_commands_ignore_the_format() {
    let test = Test::new().skill("s", SKILL);
    test.args(["-o", "jsonl", "tool", "list_skills"]).run().success().stdout_has("{\"skills\":[");
    Test::new().args(["-o", "json", "--version"]).run().success().stdout_has("skills-runner ");
    let server = Server::start([]);
    let test = Test::new().endpoint(&server);
    let run = test.args(["-o", "jsonl", "--dry-run", "hi"]).run().success();
    run.stdout_has("\"messages\"").stdout_lacks("\"result\"");
    server.finish();
}

#[test]
fn limits_have_a_result_record() {
    let server = Server::always(|_| Reply::calls([("list_skills", "{}")]).with_usage(3, 1));
    let run = question_test(&server).args(["--max-steps", "3"]).run().status(3);
    let records = failed_records(&run, "limit");
    let result = records.last().unwrap();
    assert_eq!((&result["steps"], &result["tool_calls"]), (&json!(3), &json!(3)));
    assert_eq!(result["usage"]["prompt_tokens"], 9);
    server.finish();

    for reply in [
        Reply::empty().hang(),
        Reply::text("half").hang(),
        Reply::calls([("run_python_script", LONG)]),
    ] {
        let server = Server::start([reply]);
        let test = question_test(&server).args(["--timeout", "1"]);
        let run = test.run().status(3).took_at_most(seconds(2.5));
        failed_records(&run, "limit");
        assert!(test.processes().is_empty());
        server.finish();
    }
}

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
            assert!(wait_until(seconds(10.0), || test.exists("skills/s/begun")));
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
                  { read start; read call; while [ ! -e skills/s/begun ]; do sleep 0.05; done; }";
    let run = test.next_run().shell(line_2).run().success();
    run.stderr_lacks("failed").took_at_most(seconds(8.0));
    assert_eq!(test.read("status"), "0\n");
    assert!(test.exists("skills/s/begun") && test.processes().is_empty());
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
