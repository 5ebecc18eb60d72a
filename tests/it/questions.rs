//! What an interpreter is asked by commands that run no script is asked in the
//! sandbox too; and what is said of a sandbox that cannot be had.

use std::fs;

use serde_json::Value;

use crate::harness::{Outcome, Test, interpreter};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";

/// A skill that lacks a module.
fn bench() -> Test {
    Test::new().skill("s", DOCUMENT).file("skills/s/a.py", "import nobody_a\n").folder("outside")
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

#[track_caller]
fn finding<'r>(report: &'r Value, check: &str) -> &'r Value {
    let checks = report["checks"].as_array().unwrap().iter();
    let mut named = checks.filter(|one| one["name"] == check);
    named.next().expect("the check is there")
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

/// Where there can be no sandbox nothing is asked, and the cause is told once with
/// its own remedy.
#[test]
fn without_a_sandbox_nothing_is_asked() {
    if !is_possible() {
        return;
    }
    let test = evil(bench(), "evil").env("SCRIPT_PYTHON", "evil");
    let test = test.env("SCRIPT_SANDBOX", "on");
    let cases = [
        ("gone", "which does not exist", "make it first"),
        ("skills/s/a.py", "which is no folder", "name one"),
        (".", "which scripts must not touch", "name a folder beside"),
    ];
    for (folder, cause, fix) in cases {
        let test = test.again().dotenv("").env("SCRIPT_SANDBOX_WRITE", test.path(folder));
        let run = test.again().args(["skills", "check"]).run();
        let run = run.stdout_has("its Python files were not looked at: ");
        run.stdout_has(cause).stdout_has(fix);
        let report = test.again().args(["doctor", "--json"]).run().stdout_json();
        let sandbox = finding(&report, "sandbox").to_string();
        assert!(sandbox.contains(cause) && sandbox.contains(fix), "{sandbox}");
        assert!(!sandbox.contains("on: Landlock"), "{sandbox}");
        assert!(!sandbox.contains("SCRIPT_PYTHON"), "{sandbox}");
        let python = finding(&report, "python");
        assert_eq!(python["status"], "skipped", "{python}");
        assert!(!test.exists("outside/mark"), "it was started");
    }
}

/// Grants that grant nothing are told.
#[test]
fn doctor_tells_grants_in_vain() {
    let test = bench().env("SCRIPT_PYTHON", interpreter());
    let warned = |test: Test, text: &str| {
        let run: Outcome = test.args(["doctor"]).run();
        run.stdout_has(text);
    };
    let off = test.again().env("SCRIPT_SANDBOX_WRITE", test.path("outside"));
    warned(off, "SCRIPT_SANDBOX_WRITE is set, and without a sandbox");
    let off = test.again().env("SCRIPT_SANDBOX_READ", test.path("outside"));
    warned(off, "SCRIPT_SANDBOX_READ is set, and without a sandbox");
    let on = test.again().env("SCRIPT_SANDBOX", "on");
    warned(on.env("SCRIPT_SANDBOX_READ", test.path("gone")), "/gone, which is not there");
}

/// A setup needs the network: the option is wrong there, the setting is not.
#[test]
fn a_setup_is_not_confined() {
    let test = bench().env("SCRIPT_PYTHON", interpreter());
    let wrong = test.again().args(["skills", "setup", "s", "--sandbox"]).run();
    wrong.status(2).stderr_has("--sandbox does not go with `skills setup`");
    assert!(!test.exists("skills/s/venv"));
    let test = test.skill("s", "# S\n");
    let test = test.file("skills/s/a.py", "import json\n");
    let set = test.env("SCRIPT_SANDBOX", "on");
    set.args(["skills", "setup", "s"]).run().success();
}

/// A file of settings that cannot be read is told with a way around it; a line that
/// is a key and nothing else is not shown.
#[test]
fn env_files_that_cannot_be_used() {
    let test = bench().dotenv("LLM_API_KEY=\u{0}\n");
    let run = test.args(["hi"]).run().status(78);
    run.stderr_has("hint: --no-env-file reads none, --env-file FILE another");
    let folder = bench().args(["--env-file", "outside", "hi"]).run();
    folder.status(78).stderr_has("outside: it is a folder");
    let key = "sk-4f1c-very-secret";
    for line in [key.to_string(), key.replace('-', ""), format!("{key} {key}")] {
        let test = bench().file("in", line + "\n");
        for command in ["hi", "doctor", "--dry-run hi"] {
            let shell = format!("bash -c 'exec skills-runner --env-file <(cat in) {command}'");
            let run = test.again().shell(&shell).run();
            let run = run.stderr_lacks("very").stdout_lacks("very");
            let told = run.stdout.contains(" line 1: ") || run.stderr.contains(" line 1: ");
            run.demand(told, "the line is not told as skipped");
        }
    }
}
