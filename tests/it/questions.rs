//! What an interpreter is asked by commands that run no script is asked in the
//! sandbox too; and what is said of a sandbox that cannot be had.

use std::fs;

use crate::harness::{Test, interpreter};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";

/// A skill that lacks a module.
fn bench() -> Test {
    Test::new()
        .skill("s", DOCUMENT)
        .file("skills/s/a.py", "import nobody_a\n")
        .folder("outside")
}

/// An interpreter that leaves a mark outside whenever it is started.
fn evil(test: Test, path: &str) -> Test {
    let mark = test.path("outside/mark");
    let (mark, real) = (mark.display(), interpreter().display());
    let text = format!("#!/bin/sh\necho x 2>/dev/null >'{mark}'\nexec '{real}' \"$@\"\n");
    test.file(path, text).mode(path, 0o755)
}

fn confined(test: &Test) -> Test {
    let prefix = interpreter().ancestors().nth(2).unwrap();
    let test = test.again().env("SCRIPT_SANDBOX", "on");
    test.env("SCRIPT_SANDBOX_READ", prefix)
}

/// Whether this machine can have a sandbox; said where it cannot.
fn is_possible() -> bool {
    let said = bench().env("SCRIPT_SANDBOX", "on").args(["doctor"]).run();
    let is_possible = said.stdout.contains("sandbox: on: ");
    if !is_possible {
        println!("skipped: there can be no sandbox");
    }
    is_possible
}

/// `skills check` and `doctor` start no interpreter outside the sandbox, be it a
/// stranger's `SCRIPT_PYTHON` or that of a venv that a script has changed.
#[test]
fn questions_are_asked_in_the_sandbox() {
    if !is_possible() {
        return;
    }
    let chosen = evil(bench(), "evil").dotenv("SCRIPT_PYTHON=./evil\n");
    let in_venv = bench().venv("s");
    fs::remove_file(in_venv.path("skills/s/venv/bin/python")).unwrap();
    let in_venv = evil(in_venv, "skills/s/venv/bin/python").env("SCRIPT_PYTHON", interpreter());
    for test in [chosen, in_venv] {
        for command in [&["skills", "check"][..], &["doctor"]] {
            let run = confined(&test).args(command).run();
            run.demand(!test.exists("outside/mark"), "it wrote outside");
            let run = test.again().args(command).run();
            run.demand(test.exists("outside/mark"), "it was not even started");
            fs::remove_file(test.path("outside/mark")).unwrap();
        }
    }
}

/// In the sandbox they get the same answers.
#[test]
fn answers_are_the_same_in_the_sandbox() {
    if !is_possible() {
        return;
    }
    let plain = bench().env("SCRIPT_PYTHON", interpreter());
    for test in [plain.clone(), plain.venv("s")] {
        let check = |test: Test| test.args(["skills", "check", "--json"]).run().stdout_json();
        let found = check(confined(&test))["problems"].clone();
        assert_eq!(found, check(test.again())["problems"]);
        assert!(found.to_string().contains("nobody_a"), "{found}");
    }
}
