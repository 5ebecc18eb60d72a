//! Rates, workspaces and files.

use super::{OTHER, SUMS, results, server, test_with};
use crate::harness::{Reply, Server, Test, processes_with_marker};
use serde_json::{Value, json};
use std::fs;

/// Rates, recall, precision, intervals and the difference to the baseline are those of the runs.
#[test]
fn rates_are_those_of_the_runs() {
    let server = server();
    let evals = json!({"skill_name": "sums", "evals": [
        {"id": 1, "prompt": "read sums\nwrite out/sum.txt 6\nthe sum is 6",
         "files": ["evals/files/in/numbers.txt"],
         "checks": {"answer_contains": ["sum", "6"], "answer_matches": "^the \\w+ is \\d$",
                    "files": [{"path": "out/sum.txt", "contains": "6", "matches": "^6$"},
                              {"path": "in/numbers.txt"}],
                    "skill": "sums"}},
        {"id": "fails", "prompt": "run raise SystemExit(3)\ndone",
         "checks": {"returncode": 0}},
        {"id": "script", "prompt": "file scripts/add.py\ndone",
         "checks": {"script": "add.py", "returncode": 0}},
        {"id": "prose", "prompt": "hello", "assertions": ["It is friendly"]},
    ]});
    let triggers = json!([
        {"query": "read sums\nyes", "should_trigger": true},
        {"query": "read other\nyes", "should_trigger": true},
        {"query": "no skill", "should_trigger": false},
        {"query": "read sums\nno", "should_trigger": false},
        {"question": "read other", "expected_skill": "other"},
        {"question": "none", "expected_skill": null},
    ]);
    let test = test_with(&evals, &triggers).file("skills/sums/scripts/add.py", "print(6)\n");
    let test = test.endpoint(&server);
    let run = test.next_run().args(["skills", "eval", "--json", "--runs", "2", "--baseline"]);
    let run = run.args(["--out", "kept", "--junit", "j.xml", "-j", "4"]).run().success();
    let found = results(&run.stdout);
    assert_eq!(
        (&found["type"], &found["status"], &found["runs"]),
        (&json!("eval"), &json!("ok"), &json!(28))
    );
    let skill = &found["skills"][0];
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    };
    let triggers = &skill["triggers"];
    assert_eq!((&triggers["runs"], &triggers["passed"]), (&json!(12), &json!(8)));
    near(&triggers["rate"], 8.0 / 12.0);
    near(&triggers["recall"], 0.5);
    near(&triggers["precision"], 0.5);
    let tasks = &skill["tasks"];
    assert_eq!(
        (&tasks["runs"], &tasks["passed"], &tasks["not_judged"]),
        (&json!(8), &json!(4), &json!(2))
    );
    near(&tasks["rate"], 4.0 / 6.0);
    // As scipy has it.
    near(&tasks["interval"][0], 0.299_993_315_138_392);
    near(&tasks["interval"][1], 0.903_228_588_894_219_5);
    let baseline = &skill["baseline"];
    // Without the skill the checks of the result count; what only the skill can do is not judged.
    assert_eq!((&baseline["runs"], &baseline["passed"]), (&json!(8), &json!(2)));
    assert_eq!(baseline["not_judged"], 6);
    let json = |path: &str| -> Value { serde_json::from_str(&test.read(path)).expect(path) };
    let grading = json("kept/sums/eval-1/with_skill/run-2/grading.json");
    assert_eq!(grading["summary"], json!({"passed": 8, "failed": 0, "total": 8, "pass_rate": 1.0}));
    assert_eq!(grading["expectations"][0]["text"], "the answer contains `sum`");
    assert!(json("kept/sums/eval-1/with_skill/run-2/timing.json")["total_tokens"].is_number());
    assert_eq!(test.read("kept/sums/eval-1/with_skill/run-1/outputs/out/sum.txt"), "6");
    let benchmark = json("kept/sums/benchmark.json");
    assert_eq!(benchmark["runs"].as_array().unwrap().len(), 16);
    assert!(benchmark["run_summary"]["delta"]["pass_rate"].is_number(), "{benchmark}");
    let page = test.read("kept/report.html");
    assert!(page.contains("67 %") && page.contains("it ended with 3"), "{page}");
    let xml = test.read("j.xml");
    assert!(xml.contains("tests=\"6\" failures=\"2\""), "{xml}");
    assert!(xml.contains("skipped=\"1\""), "{xml}");
    // Nothing names the skill to a model that does not have it.
    for request in server.finish() {
        let system = request.messages()[0]["content"].as_str().unwrap();
        assert!(system.contains("- sums: ") || !system.contains("sums"), "{system}");
    }
}

/// The table for people; `--min` and the selection of kinds and skills.
#[test]
fn table_and_status() {
    let server = server();
    let evals = json!([{"prompt": "six", "checks": {"answer_contains": "six"}}]);
    let triggers = json!([{"query": "read other", "should_trigger": true}]);
    let test = test_with(&evals, &triggers).endpoint(&server);
    let run = test.next_run().args(["skills", "eval", "sums", "--runs", "1"]).run().success();
    run.stdout_has("skill  kind      passed  rate   95 % interval  tokens  seconds\n")
        .stdout_has("sums   triggers  0/1     0 %    0–79 %\n")
        .stdout_has("sums, triggers: recall 0 %\n")
        .stdout_has("       tasks     1/1     100 %  21–100 %")
        .stderr_has("failed: sums, trigger triggers-1, run 1: the model used `other`");
    let run =
        test.next_run().args(["skills", "eval", "--min", "0.5", "--runs", "1"]).run().status(1);
    run.stderr_has("sums: below --min");
    let run =
        test.next_run().args(["skills", "eval", "--min", "1", "--tasks", "--runs", "1"]).run();
    run.success().stdout_lacks("triggers");
    let run = test.next_run().args(["skills", "eval", "--min", "2"]).run().status(2);
    run.stderr_has("--min takes a number from 0 to 1, not `2`");
    let run = test.next_run().args(["skills", "eval", "other"]).run().status(1);
    run.stderr_has("the skill `other` has no such tests");
    let alone = Test::new().skill("s", SUMS).endpoint(&server);
    let alone = alone.file("skills/s/evals/evals.json", evals.to_string());
    let run = alone.next_run().args(["skills", "eval", "s", "--triggers", "--min", "1"]).run();
    run.status(1).stderr_has("the skill `s` has no such tests");
    // Two skills of one name, one of which fails.
    let wrong = json!([{"prompt": "six", "checks": {"answer_contains": "seven"}}]);
    let both = Test::new().file("a/s/SKILL.md", SUMS).file("b/s/SKILL.md", SUMS).endpoint(&server);
    let both = both.file("a/s/evals/evals.json", evals.to_string());
    let both = both.file("b/s/evals/evals.json", wrong.to_string());
    let run = both.next_run().args(["skills", "eval", "./a/s", "./b/s", "--out", "out"]).run();
    run.success().stdout_has("tasks  3/3").stdout_has("tasks  0/3");
    // A folder names none of its skills.
    test.next_run().args(["skills", "eval", "./skills", "--runs", "1"]).run().success();
    // A path selects a skill in no skills folder.
    let moved = Test::new().file("mine/s/SKILL.md", SUMS.replace("sums", "s"));
    let moved = moved.file("mine/s/evals/evals.json", evals.to_string()).endpoint(&server);
    moved.next_run().args(["skills", "eval", "./mine/s"]).run().success().stdout_has("3/3");
    let none = Test::new().skill("other", OTHER).endpoint(&server);
    none.next_run()
        .args(["skills", "eval"])
        .run()
        .status(1)
        .stderr_has("no skill has such tests in evals/");
    server.finish();
}

/// A case of which a run was not judged does not count, also not its failed runs.
#[test]
fn cases_that_are_judged_in_part_do_not_count() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::always(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Reply::text(if number == 0 { "wrong" } else { "right" })
    });
    let evals = json!([{"prompt": "a", "checks": {"answer_contains": "right"}, "assertions": ["x"]},
                       {"prompt": "b", "checks": {"answer_contains": "right"}}]);
    let test = test_with(&evals, &json!([])).endpoint(&server);
    let words = ["skills", "eval", "--runs", "2", "--junit", "j.xml"];
    let run = test.next_run().args(words).run().success();
    run.stdout_has("tasks  2/2, 2 not judged  100 %")
        .stderr_has("not judged")
        .stderr_has("no --judge");
    let run = test.next_run().args(["skills", "eval", "--min", "0.1", "--tasks"]).run();
    run.success();
    let xml = test.read("j.xml");
    assert!(xml.contains("failures=\"1\" skipped=\"0\""), "{xml}");
    server.finish();
}

/// Where results cannot be written is reported before any request.
#[test]
fn places_of_results_are_checked_first() {
    let server = Server::start([]);
    let test = test_with(&json!([{"prompt": "a"}]), &json!([])).endpoint(&server);
    let run = test.next_run().args(["skills", "eval", "--out", "skills/sums/out"]).run().status(2);
    run.stderr_has("--out is in the skill `sums`");
    let out = "skills/other/../sums/out";
    test.next_run().args(["skills", "eval", "--out", out]).run().status(2);
    let run = test.next_run().args(["skills", "eval", "--junit", "skills/sums/j.xml"]).run();
    run.status(2).stderr_has("--junit is in the skill");
    let test = test.file("mine/runs.jsonl", "not ours\nlast");
    let run = test.next_run().args(["skills", "eval", "--out", "mine"]).run().status(1);
    run.stderr_has("it has no results of runs");
    assert_eq!(test.read("mine/runs.jsonl"), "not ours\nlast");
    let run = test.next_run().args(["skills", "eval", "--junit", "none/j.xml"]).run().status(1);
    run.stderr_has("failed to write");
    let made = std::process::Command::new("mkfifo").arg(test.path("fifo")).status().unwrap();
    assert!(made.success());
    let run = test.next_run().args(["skills", "eval", "--junit", "fifo"]).run().status(1);
    run.stderr_has("is not a regular file");
    server.finish();
}

/// A run has a folder of its own, without the memory, notes, settings and skills of the copy, and
/// what it leaves behind ends with it.
#[test]
fn each_run_starts_in_a_fresh_folder() {
    let server = server();
    let code = "run import os,subprocess;print(sorted(os.listdir()));\
                open('left','w');subprocess.Popen(['sleep','300'],env={'MARKER':'eval-leftover'})";
    let evals = json!([{"prompt": format!("{code}\nok"), "files": ["evals/files/.env"],
                        "checks": {"returncode": 0, "files": [{"path": "left"}]}}]);
    let test = test_with(&evals, &json!([]))
        .file("skills/sums/evals/files/.env", "LLM_MODEL_NAME=foreign\n")
        .env("MEMORY_PATH", "facts.md")
        .file("facts.md", "---\ntype: memory\n---\n## Recent\n- a fact of the user\n")
        .endpoint(&server);
    let run = test.next_run().args(["skills", "eval", "--runs", "2"]).run().success();
    run.stdout_has("2/2");
    let requests = server.finish();
    for request in &requests {
        assert_eq!(request.json["model"], "test-model");
        let text = request.json.to_string();
        assert!(!text.contains("a fact of the user") && !text.contains("remember_fact"), "{text}");
        for result in request.messages().iter().filter(|message| message["role"] == "tool") {
            // No file of another run.
            assert!(result["content"].as_str().unwrap().contains("['.env']\n"), "{result}");
        }
    }
    let left = fs::read_dir(test.path(".")).unwrap().filter_map(Result::ok);
    assert!(left.map(|entry| entry.file_name()).all(|name| name != "left"));
    assert!(processes_with_marker("eval-leftover").is_empty(), "a process is left");
}

/// The tests of a new skill are valid.
#[test]
fn a_new_skill_has_tests_to_begin_with() {
    let server = server();
    let test = Test::new().endpoint(&server);
    test.next_run().args(["skills", "new", "my-skill"]).run().success();
    assert!(test.exists("skills/my-skill/evals/evals.json"));
    let run = test.next_run().args(["skills", "check", "--strict"]).run().success();
    run.stdout_lacks("evals");
    test.next_run().args(["skills", "eval", "my-skill", "--runs", "1"]).run().stdout_has("tasks");
    server.finish();
}
