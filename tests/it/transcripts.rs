//! What models and servers really send: `tests/data/transcripts.jsonl` cites the thread of each
//! form, and `lookalikes.jsonl` has replies that only look like calls.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Request, Server, Test};

const DOCUMENT: &str =
    "---\nname: calculator\ndescription: Calculates.\n---\nRun scripts/calc.py.\n";

/// The lines of a file of transcripts.
fn transcripts(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A reply of a transcript: text, native calls, reasoning.
fn reply(recorded: &Value) -> Reply {
    let content = recorded["content"].as_str();
    let calls = recorded["calls"].as_array().into_iter().flatten();
    let calls: Vec<_> = calls
        .map(|call| (call["name"].as_str().unwrap(), call["arguments"].as_str().unwrap()))
        .collect();
    let mut reply = match calls.is_empty() {
        true => Reply::text(content.unwrap_or_default()),
        false => Reply::calls(calls),
    };
    if let (Some(text), true) = (content, recorded["calls"].is_array()) {
        reply = reply.with_text(text);
    }
    match recorded["reasoning"].as_str() {
        Some(reasoning) => reply.with_reasoning(reasoning),
        None => reply,
    }
}

/// The wanted calls with the mark that the question asks for.
fn marked_calls(request: &Request, calls: &Value) -> Option<Reply> {
    let start = request.with_mark("open it with <tool_call>");
    let is_asked = request.last_message()["content"].as_str()?.contains(&start);
    let calls = calls.as_array()?.iter().map(|call| format!("<tool_call>{call}</tool_call>"));
    let calls: Vec<String> = calls.collect();
    is_asked.then(|| Reply::text(&request.with_mark(&calls.concat())))
}

/// Plays the replies of a transcript, then `Done.`. In text the calls were recorded without a mark,
/// so the model is asked about them, and makes them with it.
fn play(transcript: &Value, options: &[&str]) -> Outcome {
    let replies: Vec<Reply> = transcript["replies"].as_array().unwrap().iter().map(reply).collect();
    let next = AtomicUsize::new(0);
    let is_prompted = transcript["mode"] == "prompted";
    let calls = transcript["calls"].clone();
    let server = Server::always(move |request| {
        let reply = replies.get(next.fetch_add(1, Ordering::Relaxed)).cloned();
        let marked = || is_prompted.then(|| marked_calls(request, &calls)).flatten();
        reply.or_else(marked).unwrap_or_else(|| Reply::text("Done."))
    });
    let mut test = Test::new()
        .skill("calculator", DOCUMENT)
        .file("skills/calculator/references/functions.md", "# Functions\n")
        .file("skills/calculator/scripts/calc.py", "print(5)\n")
        .file("work/data.csv", "a\n")
        .cwd("work")
        .env("SKILLS_FOLDER_PATH", "../skills")
        .env("LLM_TOOLS", transcript["mode"].as_str().unwrap());
    if let Some(path) = transcript["file"]["path"].as_str() {
        let content = transcript["file"]["content"].as_str().unwrap();
        test = test.file(&format!("work/{path}"), content);
    }
    let prompt = transcript["prompt"].as_str().unwrap_or("add 2 and 3");
    let run = test.endpoint(&server).args(["-o", "jsonl"]).args(options).args([prompt]);
    let run = match transcript["stdin"].as_str() {
        Some(text) => run.stdin(text),
        None => run,
    };
    let outcome = run.run();
    server.finish();
    outcome
}

/// The calls that were run and did not fail, in order, and the answer.
fn result(outcome: &Outcome) -> (Vec<Value>, Value) {
    let records = outcome.stdout_json_lines();
    let mut calls = Vec::new();
    for record in
        records.iter().filter(|record| record["type"] == "tool_result" && record["ok"] == true)
    {
        let of_result = |it: &&Value| it["type"] == "tool_call" && it["id"] == record["id"];
        let call = records.iter().find(of_result).unwrap();
        calls.push(json!({"name": call["name"], "arguments": call["arguments"]}));
    }
    (calls, records.last().unwrap()["answer"].clone())
}

/// What differs from the wanted calls and answer, transcript by transcript. One that is marked as
/// missed (`is_missed`) must differ: the mark goes once it is read.
fn differences(transcripts: &[Value]) -> Vec<String> {
    let differs = |transcript: &Value| {
        let (calls, answer) = result(&play(transcript, &[]));
        let is_wanted = json!(calls) == transcript["calls"] && answer == transcript["answer"];
        let is_missed = transcript["is_missed"] == true;
        (is_wanted == is_missed).then(|| format!("{transcript}: {} {answer}", json!(calls)))
    };
    transcripts.iter().filter_map(differs).collect()
}

/// How many of the transcripts are not marked as missed.
fn count_read(transcripts: &[Value]) -> usize {
    transcripts.iter().filter(|transcript| transcript["is_missed"] != true).count()
}

#[test]
fn every_transcript_ends_as_wanted() {
    let transcripts = transcripts("transcripts.jsonl");
    let differences = differences(&transcripts);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!((count_read(&transcripts), transcripts.len()), (141, 150));
}

#[test]
fn what_only_looks_like_a_call_stays_an_answer() {
    let transcripts = transcripts("lookalikes.jsonl");
    let differences = differences(&transcripts);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!((count_read(&transcripts), transcripts.len()), (56, 60));
}
