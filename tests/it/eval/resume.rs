//! `--out`: what was measured is kept, and each run counts once.

use super::{obedient, question, results, server, test_with};
use crate::harness::{Reply, Server, Test, seconds};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn triggers(count: usize) -> Value {
    let all =
        (0..count).map(|n| json!({"query": format!("read sums\n{n}"), "should_trigger": true}));
    Value::Array(all.collect())
}

fn stored_runs(test: &Test) -> Vec<String> {
    let text = test.read("out/runs.jsonl");
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let keys = records.map(|it| format!("{}/{}/{}", it["kind"], it["case"], it["run"]));
    keys.collect()
}

/// An endpoint that refuses after ten runs: its status, what was measured is kept, and the next
/// evaluation makes only the rest.
#[test]
fn an_endpoint_that_fails_ends_the_evaluation() {
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let server = Server::always({
        let count = count.clone();
        move |request| match count.fetch_add(1, Ordering::Relaxed) {
            0..10 => obedient(request),
            _ => Reply::error(401, "the key has expired"),
        }
    });
    let test = test_with(&json!([]), &triggers(6)).endpoint(&server);
    let words = ["skills", "eval", "--json", "--out", "out", "--junit", "j.xml"];
    let run = test.next_run().args(words).run().status(77).stderr_has("the key has expired");
    let found = results(&run.stdout);
    assert_eq!((&found["runs"], &found["status"]), (&json!(10), &json!("error")));
    assert_eq!((&found["exit_code"], &found["error"]["kind"]), (&json!(77), &json!("auth")));
    assert_eq!(stored_runs(&test).len(), 10);
    run.stderr_has("stopped after 10 of 18 runs; the same command goes on from there");
    let xml = test.read("j.xml");
    assert!(xml.contains("tests=\"6\" failures=\"0\" skipped=\"0\" errors=\"0\""), "{xml}");
    // A line that was cut by a kill.
    let cut = test.read("out/runs.jsonl") + "{\"skill\":\"sums\",\"ki";
    let test = test.file("out/runs.jsonl", cut);
    count.store(0, Ordering::Relaxed);
    test.next_run().args(words).run().success();
    assert_eq!(count.load(Ordering::Relaxed), 8);
    assert_eq!(test.read("out/runs.jsonl").lines().count(), 18);
    assert_eq!(stored_runs(&test).len(), 18);
    // Everything is there; more runs are added to it.
    test.next_run().args(words).run().success();
    assert_eq!(count.load(Ordering::Relaxed), 8);
    server.finish();
}

/// A run that has ended is stored, also if another one fails at the same time.
#[test]
fn results_beside_a_failure_are_kept() {
    let server = Server::always(|request| {
        let fails = question(request).0 == "fails";
        let reply = if fails { Reply::error(401, "no") } else { obedient(request) };
        reply.delay(Duration::from_millis(500))
    });
    let cases = json!([{"query": "read sums\nfine", "should_trigger": true},
                       {"query": "fails", "should_trigger": true}]);
    let test = test_with(&json!([]), &cases).endpoint(&server);
    let words = ["skills", "eval", "--json", "--out", "out", "--runs", "1", "-j", "2"];
    let running = test.next_run().args(words).spawn();
    server.wait_for_requests(2);
    // Both end while the program is stopped, so it sees them at once.
    running.signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(2));
    running.signal(libc::SIGCONT);
    running.wait().status(77);
    assert_eq!(stored_runs(&test), ["\"trigger\"/\"triggers-1\"/1"]);
    server.finish();
}

/// If skill, tests or model have changed, earlier results do not count.
#[test]
fn changes_start_the_evaluation_over() {
    let server = server();
    let test = test_with(&json!([]), &triggers(2)).endpoint(&server);
    let words = ["skills", "eval", "--json", "--out", "out", "--runs", "1"];
    let runs = |test: &Test, more: &[&str]| {
        let run = test.next_run().args(words).args(more).run().success();
        (
            run.stderr.contains("what results depend on has changed"),
            results(&run.stdout)["runs"].clone(),
        )
    };
    assert_eq!(runs(&test, &[]), (false, json!(2)));
    assert_eq!(runs(&test, &[]), (false, json!(2)));
    assert_eq!(runs(&test, &["-m", "another"]), (true, json!(2)));
    let test = test.file("skills/sums/SKILL.md", super::SUMS.replace("Add.", "Add well."));
    assert_eq!(runs(&test, &["-m", "another"]), (true, json!(2)));
    assert_eq!(runs(&test, &["-m", "another"]), (false, json!(2)));
    let test =
        test.file("skills/sums/evals/more.json", r#"[{"query": "a", "should_trigger": false}]"#);
    assert_eq!(runs(&test, &["-m", "another"]), (true, json!(3)));
    // As before; one stored run has no case any more.
    std::fs::remove_file(test.path("skills/sums/evals/more.json")).unwrap();
    assert_eq!(runs(&test, &["-m", "another"]), (true, json!(2)));
    // The model chooses among all skills.
    let test = test.file("skills/other/SKILL.md", super::OTHER.replace("other things", "sums"));
    assert_eq!(runs(&test, &["-m", "another"]), (true, json!(2)));
    assert_eq!(runs(&test, &["-m", "another", "--max-steps", "9"]), (true, json!(2)));
    let test = test.env("LLM_EXTRA_BODY", r#"{"temperature": 1.5}"#);
    assert_eq!(runs(&test, &["-m", "another", "--max-steps", "9"]), (true, json!(2)));
    server.finish();
}

/// Ctrl+C keeps the results and ends by the signal; a second evaluation of the folder is refused.
#[test]
fn interrupt_keeps_the_results() {
    let server = Server::always(|request| {
        if request.json.to_string().contains("slow") {
            Reply::empty().hang()
        } else {
            obedient(request)
        }
    });
    let mut cases = triggers(3);
    cases.as_array_mut().unwrap().push(json!({"query": "slow", "should_trigger": true}));
    let test = test_with(&json!([]), &cases).endpoint(&server);
    let words = ["skills", "eval", "--out", "out", "--runs", "1", "-j", "2"];
    let running = test.next_run().args(words).spawn();
    while !test.exists("out/runs.jsonl") || stored_runs(&test).len() < 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = test.next_run().args(words).run().status(75);
    second.stderr_has("another evaluation uses");
    test.next_run().args(words).args(["--timeout", "0.5"]).run().status(3);
    running.signal(libc::SIGINT);
    running.wait().status(-libc::SIGINT).took_at_most(seconds(20.0));
    assert_eq!(stored_runs(&test).len(), 3);
    server.finish();
}

/// Killed at any moment, an evaluation goes on where it stopped, and counts each run once.
#[test]
#[ignore = "long"]
fn killed_evaluations_go_on() {
    for round in 0..200_u64 {
        let server = server();
        let test = test_with(&json!([]), &triggers(8)).endpoint(&server);
        let words = ["skills", "eval", "--json", "--out", "out", "-j", "4"];
        let running = test.next_run().args(words).spawn();
        std::thread::sleep(Duration::from_millis(round * 3 % 250));
        running.signal(libc::SIGKILL);
        running.wait();
        let run = test.next_run().args(words).run().success();
        assert_eq!(results(&run.stdout)["runs"], 24, "round {round}");
        let mut keys = stored_runs(&test);
        keys.sort();
        let count = keys.len();
        keys.dedup();
        assert_eq!((count, keys.len()), (24, 24), "round {round}");
        server.finish();
    }
}
