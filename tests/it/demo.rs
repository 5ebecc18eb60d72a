//! `demo`, the first command in the README.

use crate::harness::Test;
use crate::installed::copy_program;

/// The demo runs the whole loop with the example skills, without an account.
#[test]
fn demo_answers_with_three_skills() {
    let run = Test::new().args(["demo"]).run().success();
    let answer = "(scripted reply) (1/3 + 1/7)^5 is exactly 100000/4084101.";
    run.check(run.stdout.starts_with(answer), "the exact value comes first");
    run.check(run.stdout.lines().count() == 1, "the answer alone is on stdout");
    for line in [
        "scripted",
        "→ list_skills",
        "→ get_skill data-explorer",
        "→ read_file_in_skill calculator",
        "→ run_python_script text-analyzer",
        "← exit 0",
    ] {
        run.check(run.stderr.contains(line), format!("standard error shows `{line}`"));
    }
    run.check(!run.stdout.contains("failed"), "no script failed");
}

/// The binary alone works in an empty folder with an empty environment, and leaves no files.
#[test]
fn demo_needs_only_the_binary() {
    let test = Test::new().folder("empty").folder("tmp");
    let program = test.path("skills-runner");
    copy_program(&program);
    for (is_bare, words) in [(true, &["demo"][..]), (false, &["--sandbox", "demo"])] {
        let mut demo = std::process::Command::new(&program);
        demo.args(words).current_dir(test.path("empty")).env_clear();
        if !is_bare {
            demo.env("TMPDIR", test.path("tmp"));
        }
        let output = demo.output().unwrap();
        let answer = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        if !is_bare && stderr.contains("no sandbox is possible: ") {
            continue;
        }
        let expected = "is exactly 100000/4084101.";
        assert!(output.status.success() && answer.contains(expected), "{output:?}");
        assert!(stderr.contains("→ run_python_script data-explorer"), "{stderr}");
        assert!(!stderr.contains("cannot be used"), "{stderr}");
    }
    for folder in ["empty", "tmp", "home"] {
        let left = std::fs::read_dir(test.path(folder)).unwrap().count();
        assert_eq!(left, 0, "{folder}");
    }
}

/// The demo checks an installation, so it must not succeed without Python.
#[test]
fn demo_without_python_fails() {
    let run = Test::new().env("PATH", "/nonexistent").args(["demo"]).run();
    run.status(1)
        .stdout_has("There is no answer")
        .stderr_has("failed to run the scripts of the demo")
        .stderr_lacks("next:");
}

/// The example skills meet the rules of the linter.
#[test]
fn every_example_skill_is_listed_with_its_description() {
    let skills = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let run = Test::new().args(["--skills", skills, "tool", "list_skills"]).run().success();
    let list = run.stdout_json();
    let names: Vec<&str> =
        list["skills"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["calculator", "data-explorer", "table-report", "text-analyzer"]);
    for skill in list["skills"].as_array().unwrap() {
        assert!(skill["description"].as_str().unwrap().len() > 40, "{skill}");
    }
}
