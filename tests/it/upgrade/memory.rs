//! Facts, daily notes and the log of 0.1.0.

use super::old_file;
use crate::harness::{Outcome, Reply, Server, Test};
use serde_json::{Value, json};
use std::process::Command;

fn facts(test: &Test, words: &[&str]) -> Outcome {
    test.next_run().args(["facts"]).args(words).run()
}

/// The lines of the facts file without `modified:`.
fn unchanged_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("modified:")).collect()
}

#[test]
fn facts_are_listed_extended_and_removed() {
    let old = old_file("facts.md");
    let test = Test::new().file("facts.md", &old).env("MEMORY_PATH", "facts.md");
    let list = facts(&test, &["list"]).success();
    list.stdout(
        "1\t2026-11-26\tReports are due on Fridays #important\n\
         2\t2026-11-26\tThe user likes short answers #important\n\
         3\t2026-11-26\tThe invoices are in ~/invoices #money\n\
         4\t2026-11-26\tThe server is called anna\n\
         5\t2026-11-26\tThe cat is called Minka #cat\n\
         6\t2026-11-26\tThe bicycle is blue\n\
         7\t2026-11-26\tThe car is red\n\
         8\t2026-11-26\tThe bus leaves at nine\n",
    );
    let listed = facts(&test, &["list", "--json"]).success().stdout_json();
    let listed = listed["facts"].as_array().unwrap().clone();
    let sources: Vec<&Value> = listed.iter().map(|fact| &fact["source"]).collect();
    assert_eq!(sources[..3], ["command line", "facts", "command line"]);
    assert!(listed.iter().all(|fact| fact["created"] == "2026-11-26T11:41:32+00:00"));
    assert_eq!(test.read("facts.md"), old, "listing changes nothing");

    facts(&test, &["add", "The boat is green"]).success();
    let extended = test.read("facts.md");
    let (kept, added) = extended.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(unchanged_lines(kept), unchanged_lines(&old));
    assert!(added.contains("] The boat is green <!-- "), "{added}");
    let replacement = json!({"content": "The car is black", "replaces": "The car is red"});
    let remember = ["tool", "remember_fact", &replacement.to_string()];
    test.next_run().args(remember).run().success();
    let known = ["add", "The invoices are in ~/invoices #money"];
    facts(&test, &known).success().stdout_has("already known");
    facts(&test, &["remove", "1"]).success().stdout_has("Reports are due on Fridays");
    let now = test.read("facts.md");
    let is_untouched = |line: &&str| !line.contains("car is") && !line.contains("Fridays");
    let kept: Vec<&str> = unchanged_lines(&old).into_iter().filter(is_untouched).collect();
    let left = unchanged_lines(&now).into_iter().filter(is_untouched);
    let left: Vec<&str> = left.filter(|line| !line.contains("boat")).collect();
    assert_eq!(left, kept);
    assert!(now.contains("] The car is black <!-- ") && !now.contains("Fridays"), "{now}");

    let server = Server::start([Reply::text("Hi.")]);
    test.next_run().endpoint(&server).args(["hi"]).run().success();
    let requests = server.finish();
    for fact in ["The user likes short answers", "The server is called anna", "The car is black"] {
        assert!(requests[0].system().contains(fact), "{fact}: {}", requests[0].system());
    }
}

/// The note of today, as if 0.1.0 had written it this morning.
#[test]
fn note_is_extended_and_read() {
    let old = old_file("note.md");
    let today = Command::new("date").arg("+%F").env("TZ", "UTC").output().unwrap().stdout;
    let path = format!("notes/{}.md", String::from_utf8(today).unwrap().trim());
    let test = Test::new().file(&path, &old).env("NOTES_FOLDER_PATH", "notes").env("TZ", "UTC");
    let entry = json!({"activity": "Paid the invoices.", "title": "Money"}).to_string();
    test.next_run().args(["tool", "write_daily_note", &entry]).run().success();
    let now = test.read(&path);
    let added = now.strip_prefix(&old).expect("the old entries are unchanged");
    assert!(added.starts_with("\n## ") && added.ends_with(" Money\n\nPaid the invoices.\n"));
    let read = test.next_run().args(["tool", "read_daily_note", "{}"]).run().success();
    read.stdout_has("Counted the invoices.").stdout_has("Paid the invoices.");
    let server = Server::start([Reply::text("Noted.")]);
    test.next_run().endpoint(&server).args(["chat"]).stdin("the car?\n").run().success();
    server.finish();
    let last = test.read(&path);
    let added = last.strip_prefix(&now).expect("the old entries are unchanged");
    assert!(added.ends_with("\n**the car?**\n\n> Noted.\n"), "{added}");
}

#[test]
fn log_is_extended() {
    let old = old_file("log.jsonl");
    let server = Server::start([Reply::text("Hi.")]);
    let test = Test::new().file("log.jsonl", &old).endpoint(&server);
    test.next_run().args(["--log", "log.jsonl", "hi"]).run().success();
    let added = test.read("log.jsonl");
    let added = added.strip_prefix(&old).expect("the old records are unchanged");
    let types = added.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let types: Vec<Value> = types.map(|record| record["type"].clone()).collect();
    assert_eq!((types.first(), types.last()), (Some(&json!("start")), Some(&json!("result"))));
    server.finish();
}
