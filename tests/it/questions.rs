//! Commands that run no script also start interpreters only in the sandbox, and they report a
//! sandbox that is not available.

use std::fs;

use serde_json::Value;

use crate::harness::{Outcome, Test, interpreter};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";

/// A skill with a missing module.
fn test_with_skill() -> Test {
    Test::new().skill("s", DOCUMENT).file("skills/s/a.py", "import nobody_a\n").folder("outside")
}

/// An interpreter that creates a mark outside the sandbox when it is started.
fn with_marking_interpreter(test: Test, path: &str) -> Test {
    let mark = test.path("outside/mark");
    let (mark, real) = (mark.display(), interpreter().display());
    let text = format!("#!/bin/sh\necho x 2>/dev/null >'{mark}'\nexec '{real}' \"$@\"\n");
    test.file(path, text).mode(path, 0o755)
}

fn confined(test: &Test) -> Test {
    let prefix = interpreter().ancestors().nth(2).unwrap();
    let test = test.next_run().env("SCRIPT_SANDBOX", "on");
    test.env("SCRIPT_SANDBOX_READ", prefix)
}

/// Whether the sandbox is available on this machine. If not, the skip is reported.
fn is_sandbox_available() -> bool {
    let output = test_with_skill().env("SCRIPT_SANDBOX", "on").args(["doctor"]).run();
    let is_sandbox_available = output.stdout.contains("sandbox: on: ");
    if !is_sandbox_available {
        println!("skipped: no sandbox is possible");
    }
    is_sandbox_available
}

#[track_caller]
fn finding<'r>(report: &'r Value, check: &str) -> &'r Value {
    let checks = report["checks"].as_array().unwrap().iter();
    let mut named = checks.filter(|one| one["name"] == check);
    named.next().expect("the report has the check")
}

/// `skills check` and `doctor` start no interpreter outside the sandbox, neither one from a
/// folder's `.env` nor one in a venv that a script has changed.
#[test]
fn interpreters_are_probed_in_the_sandbox() {
    if !is_sandbox_available() {
        return;
    }
    let chosen = with_marking_interpreter(test_with_skill(), "evil").env("SCRIPT_PYTHON", "./evil");
    let in_venv = test_with_skill().venv("s");
    fs::remove_file(in_venv.path("skills/s/venv/bin/python")).unwrap();
    let in_venv = with_marking_interpreter(in_venv, "skills/s/venv/bin/python")
        .env("SCRIPT_PYTHON", interpreter());
    for test in [chosen, in_venv] {
        for command in [&["skills", "check"][..], &["doctor"]] {
            let run = confined(&test).args(command).run();
            run.check(!test.exists("outside/mark"), "the interpreter wrote outside the sandbox");
            let run = test.next_run().args(command).run();
            run.check(test.exists("outside/mark"), "the interpreter was not started");
            fs::remove_file(test.path("outside/mark")).unwrap();
        }
    }
}

#[test]
fn sandboxed_probes_give_the_same_results() {
    if !is_sandbox_available() {
        return;
    }
    let plain = test_with_skill().env("SCRIPT_PYTHON", interpreter());
    for test in [plain.clone(), plain.venv("s")] {
        let check = |test: Test| test.args(["skills", "check", "--json"]).run().stdout_json();
        let found = check(confined(&test))["problems"].clone();
        assert_eq!(found, check(test.next_run())["problems"]);
        assert!(found.to_string().contains("nobody_a"), "{found}");
    }
}

/// Without an available sandbox no interpreter is started, and the cause is reported once with a
/// remedy.
#[test]
fn unavailable_sandbox_stops_all_probes_with_one_message() {
    if !is_sandbox_available() {
        return;
    }
    let test = with_marking_interpreter(test_with_skill(), "evil").env("SCRIPT_PYTHON", "evil");
    let test = test.env("SCRIPT_SANDBOX", "on");
    let cases = [
        ("gone", "which does not exist", "create it first"),
        ("skills/s/a.py", "which is not a folder", "name a folder"),
        (".", "which scripts must not access", "name a folder next to it"),
    ];
    for (folder, cause, fix) in cases {
        let test = test.next_run().dotenv("").env("SCRIPT_SANDBOX_WRITE", test.path(folder));
        let run = test.next_run().args(["skills", "check"]).run();
        let run = run.stdout_has("its Python files were not checked: ");
        run.stdout_has(cause).stdout_has(fix);
        let report = test.next_run().args(["doctor", "--json"]).run().stdout_json();
        let sandbox = finding(&report, "sandbox").to_string();
        assert!(sandbox.contains(cause) && sandbox.contains(fix), "{sandbox}");
        assert!(!sandbox.contains("on: Landlock"), "{sandbox}");
        assert!(!sandbox.contains("SCRIPT_PYTHON"), "{sandbox}");
        let python = finding(&report, "python");
        assert_eq!(python["status"], "skipped", "{python}");
        assert!(!test.exists("outside/mark"), "the interpreter was started");
    }
}

#[test]
fn doctor_reports_grants_without_effect() {
    let test = test_with_skill().env("SCRIPT_PYTHON", interpreter());
    let warned = |test: Test, text: &str| {
        let run: Outcome = test.args(["doctor"]).run();
        run.stdout_has(text);
    };
    let off = test.next_run().env("SCRIPT_SANDBOX_WRITE", test.path("outside"));
    warned(off, "SCRIPT_SANDBOX_WRITE is set, but has no effect without a sandbox");
    let off = test.next_run().env("SCRIPT_SANDBOX_READ", test.path("outside"));
    warned(off, "SCRIPT_SANDBOX_READ is set, but has no effect without a sandbox");
    let on = test.next_run().env("SCRIPT_SANDBOX", "on");
    warned(on.env("SCRIPT_SANDBOX_READ", test.path("gone")), "/gone, which does not exist");
}

/// A setup needs the network, so the option is refused and the setting is ignored.
#[test]
#[ignore = "long"]
fn setup_runs_without_the_sandbox() {
    let test = test_with_skill().env("SCRIPT_PYTHON", interpreter());
    let wrong = test.next_run().args(["skills", "setup", "s", "--sandbox"]).run();
    wrong.status(2).stderr_has("--sandbox does not work with `skills setup`");
    assert!(!test.exists("skills/s/venv"));
    let test = test.skill("s", "# S\n");
    let test = test.file("skills/s/a.py", "import json\n");
    let set = test.env("SCRIPT_SANDBOX", "on");
    set.args(["skills", "setup", "s"]).run().success();
}

/// An unreadable `.env` file is reported with a workaround; a line that only contains a key is not
/// shown.
#[test]
fn unusable_env_files_are_reported_without_showing_keys() {
    let test = test_with_skill().dotenv("LLM_API_KEY=\u{0}\n");
    let run = test.args(["hi"]).run().status(78);
    run.stderr_has("hint: --no-env-file reads no file, --env-file FILE reads another one");
    let folder = test_with_skill().args(["--env-file", "outside", "hi"]).run();
    folder.status(78).stderr_has("outside`: it is a folder");
    let key = "sk-4f1c-very-secret";
    for line in [key.to_string(), key.replace('-', ""), format!("{key} {key}")] {
        let test = test_with_skill().file("in", line + "\n");
        for command in ["hi", "doctor", "--dry-run hi"] {
            let shell = format!("bash -c 'exec skills-runner --env-file <(cat in) {command}'");
            let run = test.next_run().shell(&shell).run();
            let run = run.stderr_lacks("4f1c-very").stdout_lacks("4f1c-very");
            let is_reported = run.stdout.contains(" line 1: ") || run.stderr.contains(" line 1: ");
            run.check(is_reported, "the skipped line is not reported");
        }
    }
}
