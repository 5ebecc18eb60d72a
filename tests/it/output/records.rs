//! The records of a run.

use super::{LONG, SKILL, all, check_fields, checked_records, failed_records, kind, question_test};
use crate::harness::{MODEL, Outcome, Reply, Server, Test, seconds};
use serde_json::{Value, json};

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
    let content = tools[1]["content"].as_str().unwrap();
    assert!(content.ends_with("\n--- stdout (2 bytes)\n4\n--- stderr (0 bytes)\n"), "{content}");
    assert_eq!(tools[1]["result"]["stdout"], "4\n");
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
        (vec![Reply::text(""), Reply::text("")], 1, "protocol", "", 2),
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
