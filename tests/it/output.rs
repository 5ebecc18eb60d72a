//! `--output json` and `jsonl`, as another program reads them: every line an
//! object, nothing but objects, and a result last, whatever happened.

use serde_json::{Value, json};

use crate::harness::{
    CANARY, MODEL, Outcome, Reply, Running, Server, Stopwatch, Test, event, last_event, seconds,
    wait_until,
};

const SKILL: &str = "---\nname: s\ndescription: d\n---\n";

/// A script that says that it runs, and goes on for a minute.
const LONG: &str =
    r#"{"skill_name":"s","script":"import time, os\nopen('begun', 'w').close()\ntime.sleep(60)"}"#;

/// The fields of each record, in the order of their names.
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

fn asking(server: &Server) -> Test {
    let test = Test::new().skill("s", SKILL).endpoint(server);
    test.args(["-o", "jsonl", "go"])
}

fn kind(record: &Value) -> &str {
    record["type"].as_str().unwrap_or_default()
}

/// The records of a type.
fn all<'r>(records: &'r [Value], wanted: &str) -> Vec<&'r Value> {
    records.iter().filter(|record| kind(record) == wanted).collect()
}

/// What holds for every output in `jsonl`: its records, checked one by one and
/// as a whole, with this many results.
#[track_caller]
fn checked(run: &Outcome, results: usize) -> Vec<Value> {
    run.demand(!run.stdout.contains('\r'), "line feeds alone end lines");
    run.demand(run.stdout.ends_with('\n'), "the last line is ended");
    let records = run.stdout_json_lines();
    let (mut said, mut open) = (String::new(), Vec::new());
    for record in &records {
        check_fields(run, record);
        match kind(record) {
            "text" => said += record["delta"].as_str().unwrap(),
            "tool_call" => open.push((record["id"].clone(), record["name"].clone())),
            "tool_result" => {
                let ended = (record["id"].clone(), record["name"].clone());
                run.demand(open.pop() == Some(ended), "a result follows its call");
                said.clear();
            }
            "result" => {
                run.demand(record["answer"] == said.as_str(), "the deltas are the answer");
                run.demand(open.is_empty(), "every call has its result");
                said.clear();
            }
            _ => {}
        }
    }
    run.demand(
        all(&records, "result").len() == results,
        format_args!("there are {results} results"),
    );
    run.demand(records.last().is_some_and(|last| kind(last) == "result"), "a result is last");
    records
}

/// The record has its fields, no others, and what is in them fits.
#[track_caller]
fn check_fields(run: &Outcome, record: &Value) {
    let Some((_, fields)) = FIELDS.iter().find(|(name, _)| *name == kind(record)) else {
        return run.demand(false, format_args!("{record} is of no known type"));
    };
    let optional: &[&str] = match kind(record) {
        "error" => &["hint"],
        "result" => &["stdin", "error"],
        _ => &[],
    };
    let present = record.as_object().unwrap();
    let names: Vec<&str> =
        present.keys().map(String::as_str).filter(|name| !optional.contains(name)).collect();
    run.demand(names == *fields, format_args!("{record} has the fields {fields:?}"));
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
        run.demand(fits, format_args!("`{name}` fits in {record}"));
    }
}

/// The result of a run that failed: its status is the program's own, its error
/// is of this kind and was told before.
#[track_caller]
fn failed(run: &Outcome, expected: &str) -> Vec<Value> {
    let records = checked(run, 1);
    let [.., error, result] = records.as_slice() else {
        run.demand(false, "an error and a result are told");
        return records;
    };
    let status = match run.status {
        signal @ ..0 => 128 - signal,
        status => status,
    };
    run.demand(result["exit_code"] == status, "the status is the real one");
    run.demand(result["status"] == "error", "the result is an error");
    run.demand(result["error"]["kind"] == expected, format_args!("the error's kind is {expected}"));
    run.demand(kind(error) == "error", "the error comes before the result");
    for field in ["kind", "message", "hint"] {
        run.demand(error[field] == result["error"][field], field);
    }
    records
}

/// The whole of it: order, fields, texts.
#[test]
fn a_run_with_tools_is_told_as_it_happens() {
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
    let run = asking(&server).run().success();
    let records = checked(&run, 1);
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
    assert_eq!(arguments[3], &json!("{"), "what is no object is a text");
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
    // Standard error is as with text.
    run.stderr_has("→ run_python_script").stderr_has("← exit 0");
    server.finish();
}

#[test]
fn json_is_the_result_alone_and_quiet_is_quiet() {
    let server = Server::start([
        Reply::calls([("list_skills", "{}")]).with_text("Let me look."),
        Reply::text("Done.\n"),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let run = test.args(["-q", "--output=json", "go"]).run().success();
    let records = checked_alone(&run);
    assert_eq!(records["answer"], "Done.\n");
    assert_eq!((&records["steps"], &records["tool_calls"]), (&json!(2), &json!(1)));
    run.stderr("");
    server.finish();
}

/// One line, one object, a result.
#[track_caller]
fn checked_alone(run: &Outcome) -> Value {
    run.demand(run.stdout.lines().count() == 1, "there is one line");
    let result = run.stdout_json();
    run.demand(kind(&result) == "result", "it is a result");
    check_fields(run, &result);
    result
}

/// Whatever the endpoint does, a result is last and says it.
#[test]
fn every_failure_has_its_result() {
    let table: [(Vec<Reply>, i32, &str, &str, u64); 8] = [
        (vec![Reply::error(401, "no")], 77, "auth", "", 0),
        (vec![Reply::error(400, "no")], 1, "endpoint", "", 0),
        (vec![Reply::status(503), Reply::status(503), Reply::status(503)], 75, "temporary", "", 0),
        (vec![Reply::text("half an answer").cut()], 4, "truncated", "half an answer", 1),
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
        let run = asking(&server).run().status(status);
        let records = failed(&run, kind);
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

/// The same in `json`, where it is the only line.
#[test]
fn a_failure_in_json_is_one_line() {
    let server = Server::start([Reply::error(403, "no")]);
    let test = Test::new().endpoint(&server).args(["-o", "json", "go"]);
    let run = test.run().status(77);
    let result = checked_alone(&run);
    assert_eq!(
        (&result["exit_code"], &result["error"]["kind"], &result["model"]),
        (&json!(77), &json!("auth"), &json!(MODEL))
    );
    server.finish();
}

#[test]
fn a_configuration_that_fails_has_its_result_too() {
    for command in [["-o", "jsonl", "hi"], ["-o", "jsonl", "chat"]] {
        let run = Test::new().args(command).stdin("hi\n").run().status(78);
        let records = failed(&run, "config");
        assert_eq!(records.len(), 2);
        assert_eq!(records[1]["model"], Value::Null);
        assert!(records[1]["error"]["hint"].is_string());
    }
    let server = Server::start([]);
    let test = Test::new().endpoint(&server).dotenv("A='\u{0}");
    failed(&test.again().args(["-o", "jsonl", "hi"]).run().status(78), "config");
    let test = test.again().args(["-o", "jsonl", "--env-file", "no", "hi"]);
    failed(&test.run().status(78), "config");
    failed(
        &Test::new().args(["--skills", "skills", "demo", "-o", "jsonl"]).run().status(78),
        "config",
    );
    server.finish();
}

/// Wrong usage is no run, early or late.
#[test]
fn wrong_usage_has_no_result() {
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

/// What has no answer has no format.
#[test]
fn other_commands_do_not_mind_the_format() {
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
fn limits_have_their_result() {
    let server = Server::always(|_| Reply::calls([("list_skills", "{}")]).with_usage(3, 1));
    let run = asking(&server).args(["--max-steps", "3"]).run().status(3);
    let records = failed(&run, "limit");
    let result = records.last().unwrap();
    assert_eq!((&result["steps"], &result["tool_calls"]), (&json!(3), &json!(3)));
    assert_eq!(result["usage"]["prompt_tokens"], 9);
    server.finish();

    for reply in [
        Reply::nothing().hang(),
        Reply::text("half").hang(),
        Reply::calls([("run_python_script", LONG)]),
    ] {
        let server = Server::start([reply]);
        let test = asking(&server).args(["--timeout", "1"]);
        let run = test.run().status(3).took_at_most(seconds(2.5));
        failed(&run, "limit");
        assert!(test.processes().is_empty());
        server.finish();
    }
}

/// A phase of a run: what the server says, and how the test knows that the
/// program is in it.
type Phase = (&'static str, Vec<Reply>, fn(&mut Running, &Server, &Test));

fn phases() -> Vec<Phase> {
    let busy = Reply::status(503).header("retry-after", "30");
    vec![
        ("request", vec![Reply::nothing().hang()], |_, server, _| {
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

/// Each signal in each phase: the result is there, the program dies by the
/// signal, and nothing of it is left.
#[test]
fn a_signal_in_any_phase_has_its_result() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        for (phase, replies, wait) in phases() {
            let server = Server::start(replies);
            let test = asking(&server);
            let mut running = test.spawn();
            wait(&mut running, &server, &test);
            running.signal(signal);
            let run = running.wait().status(-signal);
            let records = failed(&run, "interrupted");
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
fn a_signal_while_stdin_is_waited_for_has_its_result() {
    let server = Server::start([]);
    for signal in [libc::SIGINT, libc::SIGTERM] {
        for args in [["-o", "jsonl", "-"], ["-o", "jsonl", "chat"]] {
            let test = Test::new().endpoint(&server).args(args).stdin_open();
            let running = test.spawn();
            std::thread::sleep(seconds(0.4));
            running.signal(signal);
            let run = running.wait().status(-signal);
            let records = failed(&run, "interrupted");
            assert_eq!(records.last().unwrap()["model"], MODEL);
        }
    }
    server.finish();
}

/// A reader that neither reads nor goes away holds no signal up.
#[test]
fn a_reader_that_does_not_read_holds_no_signal_up() {
    let server = Server::start([Reply::text(&"x".repeat(300_000))]);
    let test = Test::new().endpoint(&server).stdin_null();
    // `sh` waits for the program, and tells how it ended.
    let line = "{ skills-runner -o jsonl go & pid=$!; sleep 1.5; kill -TERM $pid; wait $pid; \
                echo $? >status; } | { sleep 4; cat >/dev/null; }";
    let run = test.again().shell(line).run().success();
    run.took_at_most(seconds(10.0));
    assert_eq!(test.read("status"), "143\n");
    server.finish();
}

/// Nor does it hold up the end of the run's time.
#[test]
fn a_reader_that_does_not_read_holds_no_deadline_up() {
    for format in ["text", "json", "jsonl"] {
        let server = Server::start([Reply::text(&"x".repeat(300_000))]);
        let test = Test::new().endpoint(&server).stdin_null();
        let run = format!("skills-runner -o {format} --timeout 1 go");
        let line = format!("{{ {run}; echo $? >status; }} | {{ sleep 3; cat >/dev/null; }}");
        let start = Stopwatch::start();
        let run = test.again().shell(&line).run().success();
        run.stderr_has("the time for the whole run (--timeout) is over");
        assert!(start.elapsed_within(seconds(6.0)) <= seconds(6.0), "{format}");
        assert_eq!(test.read("status"), "3\n", "{format}");
        server.finish();
    }
}

/// A signal while only the end of the body is waited for is not lost.
#[test]
fn a_signal_after_the_answer_still_ends_by_itself() {
    let stream = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\
                  data: {\"choices\":[{\"delta\":{\"content\":\"4\"}}]}\n\n";
    let end = "data: [DONE]\n\n";
    let server = Server::start([Reply::raw(stream).then_repeat(usize::MAX, seconds(0.005), end)]);
    let mut running = Test::new().endpoint(&server).args(["-o", "jsonl", "hi"]).spawn();
    running.read_stdout_until("delta");
    running.signal(libc::SIGTERM);
    let run = running.wait().status(-libc::SIGTERM);
    failed(&run, "interrupted");
}

/// A file that may not grow is a failure to write, not a death.
#[test]
fn a_file_that_may_not_grow_is_told() {
    let server = Server::start([Reply::text("4")]);
    let test = Test::new().endpoint(&server).stdin_null();
    let run = test.shell("ulimit -f 0; exec skills-runner go >answer").run();
    run.status(1).stderr_has("failed to write the answer: File too large");
    server.finish();
}

#[test]
fn a_silent_pipe_is_in_the_result() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    let test = Test::new().endpoint(&server).args(["-o", "jsonl", "hi"]);
    let run = test.stdin_open().run().success();
    let records = checked(&run, 1);
    assert_eq!(records.last().unwrap()["stdin"], "ignored");
    run.stderr_has("stayed silent");
    let test = Test::new().endpoint(&server).args(["-o", "jsonl", "hi"]);
    let run = test.stdin("text").run().success();
    assert_eq!(checked(&run, 1).last().unwrap().get("stdin"), None);
    server.finish();
}

/// The key in pieces, between thoughts, printed by a script, in arguments and
/// in a refusal. The harness looks for it; that the pieces do not add up to it
/// is looked at here.
#[test]
fn the_key_shows_nowhere() {
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
    let steal = json!({"skill_name": "s", "script": format!("k = '{CANARY}'; print(k)")});
    let server = Server::start([
        Reply::calls([("run_python_script", print.to_string().as_str())]),
        Reply::sse(pieces("content", "reasoning_content")),
        Reply::sse(pieces("reasoning_content", "content")),
        Reply::error(400, &format!("bad key {CANARY}")),
    ]);
    let mut texts = Vec::new();
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    for _ in 0..3 {
        let run = test.again().args(["-v", "-o", "jsonl", "go"]).run();
        for record in checked(&run, 1) {
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
    // The model has the key from elsewhere and writes it into a call.
    let server = Server::start([
        Reply::calls([("run_python_script", steal.to_string().as_str())]).with_ids([CANARY])
    ]);
    let run = asking(&server).args(["--max-steps", "1"]).run().status(3);
    run.demand(run.stdout.contains("k = '[secret]'"), "arguments are masked");
}

/// The reader goes away: the run ends soon and quietly, a script with it.
#[test]
fn a_reader_that_went_away_ends_the_run() {
    let script = json!({"skill_name": "s", "script":
        "import time\nopen('begun', 'w').close()\ntime.sleep(60)"});
    let call = Reply::call("run_python_script", &script);
    let server = Server::always(move |_| call.clone());
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let line = "{ skills-runner -o jsonl go; echo $? >status; } | head -n 1";
    let run = test.again().shell(line).run().success();
    run.demand(run.stdout.contains("\"start\""), "the first line came");
    run.stderr_lacks("failed").took_at_most(seconds(3.0));
    assert_eq!(test.read("status"), "0\n");
    assert!(test.processes().is_empty());
    assert!(server.finish().len() <= 1);

    // While nothing is written, too: the script runs already.
    let server = Server::start([Reply::call("run_python_script", &script)]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let line_2 = "{ skills-runner -o jsonl go; echo $? >status; } | \
                  { read start; read call; while [ ! -e skills/s/begun ]; do sleep 0.05; done; }";
    let run = test.again().shell(line_2).run().success();
    run.stderr_lacks("failed").took_at_most(seconds(8.0));
    assert_eq!(test.read("status"), "0\n");
    assert!(test.exists("skills/s/begun") && test.processes().is_empty());
    server.finish();

    // In the middle of a stream that would go on for long.
    let words = (0..200).map(|_| (seconds(0.05), stream_piece("word ")));
    let server = Server::start([Reply::chunks(words)]);
    let test = Test::new().endpoint(&server);
    let line = "{ skills-runner -o jsonl go; echo $? >status; } | head -n 3";
    let run = test.again().shell(line).run().success();
    run.stderr_lacks("failed").took_at_most(seconds(4.0));
    assert_eq!(test.read("status"), "0\n");
    server.finish();

    // Nobody from the beginning.
    let server = Server::always(|_| Reply::text("x"));
    for format in ["json", "jsonl"] {
        let test = Test::new().endpoint(&server).args(["-o", format, "go"]);
        test.stdout_closed().run().success().stderr_lacks("failed");
    }
    let test = Test::new().endpoint(&server).args(["-o", "jsonl", "chat"]);
    let run = test.stdin("a\nb\nc\n").stdout_closed().run().success();
    run.stderr_lacks("failed");
    assert!(server.requests().len() <= 1, "only `json` had to ask");
    server.finish();
}

fn stream_piece(text: &str) -> Vec<u8> {
    format!("{}\n\n", event(&json!({"content": text}))).into_bytes()
}

#[test]
fn a_full_disk_is_told() {
    let server = Server::always(|_| Reply::text("x"));
    for format in ["json", "jsonl"] {
        for command in [vec!["go"], vec!["chat", "go"]] {
            let test = Test::new().endpoint(&server).args(["-o", format]);
            let run = test.args(command).stdout_file("/dev/full").run().status(1);
            run.demand(
                run.stderr.matches("failed to write the answer").count() == 1,
                "it is told once",
            );
        }
    }
    server.finish();
}

/// A conversation: one start, one result a turn, a failed one too.
#[test]
fn a_conversation_has_one_result_a_turn() {
    let server = Server::start([
        Reply::calls([("list_skills", "{}")]).with_usage(4, 1),
        Reply::text("one").with_usage(5, 1),
        Reply::error(401, "no"),
        Reply::text("three").with_usage(6, 2),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let test = test.args(["-o", "jsonl", "chat"]);
    let run = test.stdin("a\n\nb\n/help\nc\n").run().status(77);
    let records = checked(&run, 3);
    assert_eq!(all(&records, "start").len(), 1);
    let results = all(&records, "result");
    let told: Vec<Value> = results
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
        told,
        [
            json!(["ok", 0, "one", 2, 1, 9, null]),
            json!(["error", 77, "", 0, 0, 0, "auth"]),
            json!(["ok", 0, "three", 1, 0, 6, null]),
        ]
    );
    server.finish();
    // In `json` the results alone.
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

/// A signal during a turn of a conversation ends that turn, and it.
#[test]
fn a_signal_during_a_turn_writes_its_result() {
    let server = Server::start([Reply::text("one"), Reply::text("half").hang()]);
    let test = Test::new().endpoint(&server).args(["-o", "jsonl", "chat"]);
    let mut running = test.stdin("a\nb\nc\n").spawn();
    running.read_stdout_until("lf\"}");
    running.signal(libc::SIGTERM);
    let run = running.wait().status(-libc::SIGTERM);
    let records = checked(&run, 2);
    let result = records.last().unwrap();
    assert_eq!(
        (&result["exit_code"], &result["answer"], &result["error"]["kind"]),
        (&json!(143), &json!("half"), &json!("interrupted"))
    );
    server.finish();
}

/// The demo speaks the same language.
#[test]
fn the_demo_as_records() {
    let skills = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let test = Test::new().args(["--skills", skills, "demo", "-o", "jsonl"]);
    let records = checked(&test.run().success(), 1);
    let mut ids: Vec<&str> =
        all(&records, "tool_call").iter().filter_map(|call| call["id"].as_str()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 8, "every call has an id of its own");
    let result = records.last().unwrap();
    assert_eq!((&result["steps"], &result["tool_calls"]), (&json!(5), &json!(8)));
}

/// With `-v`: masked before it is cut, and nothing in it commands a terminal.
#[test]
fn the_beginning_of_a_result_is_shown_to_who_wants_to_know() {
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
    let run = test.again().args(["-v", "go"]).run().success();
    run.stderr_has(&format!(
        "\n\u{b7} first \u{fffd}[2J\n\u{b7} {long} [secret] and more\n\u{b7} third\n\u{b7} \u{2026} "
    ))
    .stderr_lacks("fourth");
    let run = test.again().args(["go"]).run().success();
    run.stderr_lacks("third");
    server.finish();
}
