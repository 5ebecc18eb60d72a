//! `--out DIR`: only what this user has measured counts, and no link below DIR is followed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{obedient, results, test_with};
use crate::harness::{Outcome, Reply, Server, Test};

const WORDS: [&str; 9] =
    ["skills", "eval", "--json", "--out", "out", "--runs", "2", "--min", "0.8"];

/// A model that never reads a skill once `fails` is set, and the number of its requests.
fn counting() -> (Server, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (count, fails) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let server = Server::always({
        let (count, fails) = (count.clone(), fails.clone());
        move |request| {
            count.fetch_add(1, Ordering::Relaxed);
            if fails.load(Ordering::Relaxed) == 1 { Reply::text("No.") } else { obedient(request) }
        }
    });
    (server, count, fails)
}

fn skill_test() -> Test {
    test_with(&json!([]), &json!([{"query": "read sums", "should_trigger": true}]))
}

/// Runs the evaluation, and returns the number of requests.
fn requests(test: &Test, count: &AtomicUsize) -> (Outcome, usize) {
    let before = count.load(Ordering::Relaxed);
    let run = test.next_run().args(WORDS).run();
    (run, count.load(Ordering::Relaxed) - before)
}

#[test]
fn results_of_others_and_changed_ones_are_not_used() {
    let (server, count, fails) = counting();
    let test = skill_test().endpoint(&server);
    let (run, made) = requests(&test, &count);
    run.success();
    assert!(made > 0);
    let (run, made) = requests(&test, &count);
    run.success().stderr_has("2 runs in").stderr_lacks("not used");
    assert_eq!(made, 0, "one's own results are used");
    let mode = fs::metadata(test.path("home/.local/state/skills-runner/eval.key")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let own = test.read("out/runs.jsonl");
    let without_mac = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["mac"].as_str().map(str::len), Some(64), "{record}");
        record.as_object_mut().unwrap().remove("mac");
        format!("{record}\n")
    };
    // From here on the model fails: what is measured is not what these lines say.
    fails.store(1, Ordering::Relaxed);
    let first = own.lines().next().unwrap();
    let forged = [
        own.lines().map(without_mac).collect::<String>(),
        own.replace("\"steps\":", "\"steps\": "),
        own.replace("\"run\":1", "\"run\":9")
            .replace("\"run\":2", "\"run\":1")
            .replace("\"run\":9", "\"run\":2"),
        own.replace("\"mac\":\"", "\"mac\":\"0"),
        format!("{first}\n{}\n", first.replace("\"run\":1", "\"run\":2")),
    ];
    for (number, text) in forged.iter().enumerate() {
        let test = test.clone().file("out/runs.jsonl", text);
        let (run, made) = requests(&test, &count);
        let run = run.status(1).stderr_has("not measured by this user, or changed since");
        assert!(made > 0, "{number}");
        assert_eq!(results(&run.stdout)["skills"][0]["triggers"]["runs"], 2, "{number}");
        assert!(test.read("out/runs.jsonl").starts_with(text), "{number}: the others are kept");
        assert_eq!(requests(&test, &count).1, 0, "{number}: the new ones are used");
    }
    // Another user.
    let other = test.clone().file("out/runs.jsonl", &own).env("HOME", test.path("elsewhere"));
    let (run, made) = requests(&other, &count);
    run.status(1).stderr_has("not measured by this user");
    assert!(made > 0);
    server.finish();
}

/// Without a folder for data there is no key: runs are made again each time, and that is said.
#[test]
fn without_a_home_nothing_is_used_again() {
    let (server, count, _) = counting();
    let test = skill_test().endpoint(&server).env_unset("HOME");
    for round in 0..2 {
        let (run, made) = requests(&test, &count);
        run.success().stderr_has("are not used again: HOME is not set");
        assert!(made > 0, "{round}");
    }
    let home = test.path("home");
    let damaged = test.env("HOME", home);
    let damaged = damaged.file("home/.local/state/skills-runner/eval.key", "short");
    let (run, made) = requests(&damaged, &count);
    run.success().stderr_has("it is damaged");
    assert!(made > 0);
    server.finish();
}

/// `DIR` may be a link. What links below it lead to is neither read nor changed.
#[test]
fn links_below_the_folder_are_not_followed() {
    let run_folder = "sums/eval-1/with_skill/run-1";
    for link in [
        "runs.jsonl".to_string(),
        "report.html".into(),
        "sums".into(),
        "sums/benchmark.json".into(),
        "sums/eval-1".into(),
        "sums/eval-1/with_skill".into(),
        run_folder.into(),
        format!("{run_folder}/outputs"),
        format!("{run_folder}/grading.json"),
    ] {
        let (server, _, _) = counting();
        let task = json!([{"id": 1, "prompt": "write a.txt 6\nDone", "checks": {"answer_contains": "Done"}}]);
        let test =
            test_with(&task, &json!([])).endpoint(&server).folder("real").link("out", "real");
        let is_file = link.contains('.');
        let test =
            if is_file { test.file("outside", "mine") } else { test.file("outside/x", "mine") };
        let place = test.path("real").join(&link);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(test.path("outside"), &place).unwrap();
        let run = test.next_run().args(WORDS).run();
        if link == "runs.jsonl" {
            run.status(1).stderr_has("it is a link");
        }
        assert_eq!(test.read(if is_file { "outside" } else { "outside/x" }), "mine", "{link}");
        let left = fs::read_dir(test.path("outside")).map_or(1, Iterator::count);
        assert_eq!(left, 1, "{link}: something was written there");
        server.finish();
    }
    let (server, _, _) = counting();
    let test = skill_test().endpoint(&server).folder("real").link("out", "real");
    test.next_run().args(WORDS).run().success();
    assert!(test.exists("real/runs.jsonl"));
    server.finish();
}

/// A file of this name that is not the program's keeps its content.
#[test]
fn foreign_files_are_not_emptied() {
    let (server, _, _) = counting();
    for (text, status) in [
        ("my notes", 1),
        ("my notes\n", 1),
        ("{\"a\": 1}", 1),
        ("{\"skill\":\"su", 0),
        ("\u{0}", 1),
    ] {
        let test = skill_test().endpoint(&server).file("out/runs.jsonl", text);
        test.next_run().args(WORDS).run().status(status);
        assert!(test.read("out/runs.jsonl").starts_with(text), "{text}");
    }
    // Text behind one's own results stays, too; only their last line may be one that was cut.
    let test = skill_test().endpoint(&server);
    test.next_run().args(WORDS).run().success();
    let noted = test.read("out/runs.jsonl") + "my notes";
    let test = test.file("out/runs.jsonl", &noted);
    test.next_run().args(WORDS).run().success().stderr_has("2 runs in");
    assert!(test.read("out/runs.jsonl").starts_with(&noted));
    server.finish();
}
