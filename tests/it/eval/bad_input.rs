//! Files and models that are of no use.

use super::{obedient, results, test_with};
use crate::harness::{Reply, Server, Test};
use serde_json::{Value, json};

/// Each problem is reported with file and place; nothing is asked of the model.
#[test]
fn invalid_files_are_reported() {
    let text = |value: Value| value.to_string();
    let case = |case: Value| text(json!({"evals": [case]}));
    let table = [
        ("{\"evals\": [".to_string(), "evals/evals.json: it is not JSON: EOF"),
        ("[1]".into(), "evals.json: [0]: it is not an object"),
        ("{}".into(), "there is no list of cases"),
        (text(json!({"evals": [], "cases": []})), "there are several lists of cases"),
        (
            text(json!({"evals": [], "more": [1]})),
            "more: it is not defined beside the cases in `evals`",
        ),
        (text(json!({"evals": [], "chekcs": {}})), "chekcs: it is not defined beside"),
        (
            case(json!({"prompt": "x", "files": ["evals/evals.json", "evals/files/evals.json"]})),
            "another file has the place `evals.json`",
        ),
        (case(json!({"id": 1})), "evals[0]: it has neither `prompt` nor"),
        (case(json!({"input": "x", "id": 1})), "but id, input"),
        (case(json!({"prompt": ""})), "evals[0].prompt: it is not a text, or empty"),
        (
            case(json!({"prompt": "x", "forbidden": ["y"]})),
            "evals[0].forbidden: this key is not defined",
        ),
        (case(json!({"prompt": "x", "files": [{}]})), "evals[0].files[0]: it is not a path"),
        (
            case(json!({"prompt": "x", "files": ["../other/SKILL.md"]})),
            "evals[0].files[0]: `../other/SKILL.md` cannot be opened",
        ),
        (case(json!({"prompt": "x", "files": ["/etc/passwd"]})), "evals[0].files[0]: "),
        (case(json!({"prompt": "x", "files": ["evals"]})), "it is a folder; name its files"),
        (
            case(json!({"prompt": "x", "files": ["evals/link"]})),
            "evals[0].files[0]: `evals/link` cannot",
        ),
        (
            case(json!({"prompt": "x", "assertions": [{"type": "regex", "text": "t"}]})),
            "`type` is not defined for an assertion",
        ),
        (
            case(json!({"prompt": "x", "expectations": [1]})),
            "evals[0].expectations[0]: it has no text",
        ),
        (
            case(json!({"prompt": "x", "checks": {"answer_matches": "("}})),
            ".checks.answer_matches: it is not a regular expression",
        ),
        (
            case(json!({"prompt": "x", "checks": {"anser": "("}})),
            "evals[0].checks.anser: this key is not defined",
        ),
        (case(json!({"prompt": "x", "checks": {"returncode": "0"}})), "it is not a whole number"),
        (
            case(json!({"prompt": "x", "checks": {"files": [{"contains": "x"}]}})),
            "it has no `path`",
        ),
        (case(json!({"query": "x", "should_trigger": "yes"})), "it is neither true nor false"),
        (
            case(json!({"query": "x", "should_trigger": true, "expected_skill": null})),
            "it contradicts",
        ),
        (
            text(json!([{"id": 1, "prompt": "x"}, {"id": 1, "prompt": "y"}])),
            "[1].id: another case has the id `1`",
        ),
        ("[".repeat(5_000_000), "it is larger than 4 MiB"),
    ];
    let server = Server::start([]);
    for (evals, message) in table {
        let test = test_with(&json!([]), &json!([]));
        let test = test.file("skills/sums/evals/evals.json", evals).endpoint(&server);
        let test = test.file("skills/sums/evals/files/evals.json", "{}");
        std::os::unix::fs::symlink("/etc/passwd", test.path("skills/sums/evals/link")).unwrap();
        let run = test.next_run().args(["skills", "eval", "--json"]).run().status(1);
        run.stderr_has("sums: evals/evals.json").stderr_has(message);
        let run = test.next_run().args(["skills", "check"]).run();
        run.stdout_has("invalid-evals");
    }
    // A link is not followed, and not left out silently.
    let test = Test::new().skill("s", super::OTHER).file("skills/s/real.json", "[]");
    std::fs::create_dir(test.path("skills/s/evals")).unwrap();
    std::os::unix::fs::symlink("../real.json", test.path("skills/s/evals/evals.json")).unwrap();
    test.next_run()
        .args(["skills", "check"])
        .run()
        .stdout_has("it is a link, which is not followed");
    // Cases without an id in several files, and a list with a mistyped key.
    let list = |key: &str| text(json!([{"query": "x", key: true}]));
    let test = Test::new().skill("s", super::OTHER);
    let test = test.file("skills/s/evals/train.json", list("should_trigger"));
    let test = test.file("skills/s/evals/validation.json", list("should_trigger"));
    test.next_run().args(["skills", "check"]).run().stdout_lacks("evals");
    let test = test.file("skills/s/evals/validation.json", list("should_tigger"));
    let run = test.next_run().args(["skills", "check"]).run();
    run.stdout_has("evals/validation.json").stdout_has("should_tigger");
    let lists = text(json!({"evals": [{"query": "x", "should_trigger": true}], "cases": []}));
    let test = Test::new().skill("s", super::OTHER).file("skills/s/evals/two.json", lists);
    test.next_run().args(["skills", "check"]).run().stdout_has("there are several lists of cases");
    // Other JSON files are data, if they are JSON.
    let test = Test::new().skill("s", super::OTHER).file("skills/s/evals/data.json", "{\"a\": [");
    test.next_run().args(["skills", "check"]).run().stdout_has("evals/data.json");
    let test =
        Test::new().skill("s", super::OTHER).file("skills/s/evals/data.json", "[{\"a\": 1}]");
    test.next_run().args(["skills", "check"]).run().stdout_lacks("evals");
}

/// A model that always calls a tool, or answers nothing, has failed; the others go on.
#[test]
fn models_that_do_not_answer_have_failed() {
    let server = Server::always(|request| {
        let (text, done) = super::question(request);
        match text.as_str() {
            "loop" => Reply::call("list_skills", &json!({"query": format!("x{done}")})),
            "nothing" => Reply::text(""),
            _ => obedient(request),
        }
    });
    let prompts = ["loop", "nothing", "fine"];
    let evals = prompts.map(|it| json!({"prompt": it, "checks": {"answer_contains": "fine"}}));
    let test = test_with(&json!(evals), &json!([])).endpoint(&server);
    let words = ["skills", "eval", "--json", "--runs", "1", "--max-steps", "5"];
    let run = test.next_run().args(words).run().success();
    let tasks = &results(&run.stdout)["skills"][0]["tasks"];
    assert_eq!((&tasks["runs"], &tasks["passed"]), (&json!(3), &json!(1)));
    run.stderr_has("no answer after 5 steps");
    server.finish();
}

/// A folder with other files is no folder for results.
#[test]
fn folders_with_other_files_are_refused() {
    let server = Server::start([]);
    let test = test_with(&json!({"evals": [{"prompt": "x"}]}), &json!([])).endpoint(&server);
    let test = test.file("out/report.html", "mine").file("out/eval-1/run-1/outputs/a", "mine");
    let run = test.next_run().args(["skills", "eval", "--out", "out"]).run().status(1);
    run.stdout_is_empty().stderr_has("the folder has other files");
    assert_eq!(test.read("out/report.html"), "mine");
    assert!(test.exists("out/eval-1/run-1/outputs/a") && !test.exists("out/runs.jsonl"));
}
