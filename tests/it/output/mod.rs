//! `--output json` and `jsonl` as another program reads them: every line is an object, and the last
//! one is a result, however the run ends.

mod endings;
mod records;

use crate::harness::{Outcome, Server, Test};
use serde_json::Value;

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
            "asked_again",
            "calls_from_text",
            "commands_run",
            "duration_ms",
            "exit_code",
            "files_written",
            "model",
            "scripts_run",
            "session",
            "skills_read",
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
        "tool_result" => &["result"],
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
            "skills" | "skills_read" | "scripts_run" | "commands_run" | "files_written" => {
                value.is_array()
            }
            "ok" => value.is_boolean(),
            "result" => value.is_object(),
            "arguments" => value.is_object() || value.is_string(),
            "usage" => value["prompt_tokens"].is_u64() && value["completion_tokens"].is_u64(),
            "error" => value["kind"].is_string() && value["message"].is_string(),
            "exit_code" | "steps" | "tool_calls" | "duration_ms" | "delay_ms" | "attempt"
            | "asked_again" | "calls_from_text" => value.is_u64(),
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
