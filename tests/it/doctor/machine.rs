//! Skills, Python, time limits and the terminal.

use super::{DOCUMENT, LISTED, NAMES, OLLAMA, assert_check, checks, endpoint, test, working_model};
use crate::harness::{Reply, Server, Stopwatch, Test, interpreter, seconds, wait_until};
use serde_json::{Value, json};

/// Each skill with problems is listed with a remedy.
#[test]
fn skills_with_problems_are_reported() {
    let server = endpoint(LISTED, working_model);
    let test = test(&server)
        .folder("skills/empty")
        .skill("odd", "---\nname: odd\ndescription: d\ntext\n")
        .skill("broken", DOCUMENT)
        .link("skills/broken/venv", "nowhere");
    let run = test.next_run().args(["doctor"]).run().success();
    run.stdout_has("ok       skills: 3 of 4 skills can be used\n           3 in ")
        .stdout_has(
            "warning  skills: `empty`: cannot be used: it has no SKILL.md\n         fix: add a SKILL.md",
        )
        .stdout_has("warning  skills: `odd`: SKILL.md line ")
        .stdout_has("`skills-runner skills setup broken` creates ")
        .stdout_has("warning  skills: `broken`: the venv of the skill `broken` is broken: ")
        .stdout_has("         fix: `rm -r /");
    let run = test.next_run().args(["doctor", "--json"]).run().success();
    let skills = checks(&run).swap_remove(10);
    let venvs: Vec<&Value> = skills["details"]["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| &skill["venv"])
        .collect();
    assert_eq!(venvs, [&json!(false), &Value::Null, &Value::Null, &Value::Null]);
    for folders in [&["--skills", "none"][..], &["--skills", "skills", "--skills", "none"]] {
        let run = test.next_run().args(["doctor"]).args(folders).run();
        run.status(78)
            .stdout_has("failure  skills: failed to read the configuration: ")
            .stdout_has(
                "none does not exist\n         fix: create the folder, or name another one with ",
            );
    }
    let test = test.env("SKILLS_FOLDER_PATH", "skills:none");
    let run = test.next_run().args(["doctor"]).run().success();
    run.stdout_has(
        "none does not exist\n         fix: create the folder, or name another one in SKILLS_FOLDER_PATH\n",
    );
    server.finish();
}

/// An unusable skill is reported with the remedy that `skills check` gives.
#[test]
fn unusable_skill_has_the_remedy_of_its_cause() {
    let server = endpoint(LISTED, working_model);
    let test = test(&server)
        .file("skills/more/inner/SKILL.md", DOCUMENT)
        .file("elsewhere.md", DOCUMENT)
        .folder("skills/led-out")
        .link("skills/led-out/SKILL.md", "../../elsewhere.md");
    let run = test.next_run().args(["doctor"]).run().success();
    run.stdout_has("ok       skills: 1 of 3 skills can be used\n           1 in ")
        .stdout_has(": the skills below `more` are not used")
        .stdout_has(&format!("fix: name the folder: --skills {}\n", test.path("skills").display()))
        .stdout_has("warning  skills: `led-out`: cannot be used: ")
        .stdout_has("fix: remove the link, or replace it with a copy of its target")
        .stdout_has("fix: add a SKILL.md");
    server.finish();
}

/// A skill without a venv needs a Python. If every skill has a venv, a missing Python is not
/// reported.
#[test]
fn missing_python_is_reported() {
    let server = endpoint(LISTED, working_model);
    let test = test(&server);
    let without_python = test.clone().env("PATH", "/nowhere");
    assert_check(&without_python, 1, "python", "failure", "no Python was found", "install python3");
    let wrong = test.clone().env("SCRIPT_PYTHON", "/bin/false");
    assert_check(&wrong, 1, "python", "failure", "is not a working Python", "SCRIPT_PYTHON");
    let off = test.clone().env("SCRIPT_PYTHON", "off");
    assert_check(&off, 0, "python", "ok", "only skills with a venv", "");
    let run = test.next_run().args(["doctor", "--no-scripts"]).run().success();
    run.stdout_has("skipped  python: --no-scripts");
    let with_venv = without_python.venv("s");
    assert_check(&with_venv, 0, "python", "warning", "no Python was found", "install python3");
    server.finish();
}

/// The interpreter is not started in the working folder, which it may be unable to access.
#[test]
fn python_does_not_start_in_the_working_folder() {
    let python = interpreter().display();
    let test = Test::new().skill("s", DOCUMENT);
    let output = test.path("folder").display().to_string();
    let shim = format!("#!/bin/sh\npwd > {output}\nexec {python} \"$@\"\n");
    let test = test.executable("shim", &shim);
    let run = test.next_run().env("SCRIPT_PYTHON", "./shim");
    run.args(["doctor"]).run().status(78);
    assert_eq!(test.read("folder"), "/\n");
}

/// A slow shim is reported, and the fix names the interpreter that it starts.
#[test]
fn slow_shim_is_reported() {
    let server = endpoint(LISTED, working_model);
    let python = interpreter();
    let shim = format!("#!/bin/sh\nsleep 0.35\nexec {} \"$@\"\n", python.display());
    let test = test(&server).executable("shim", &shim);
    let test = test.env("SCRIPT_PYTHON", "./shim");
    assert_check(&test, 0, "python", "warning", "which delays every script", "SCRIPT_PYTHON=/");
    server.finish();
}

/// `--timeout` ends every phase, and the report is complete.
#[test]
fn timeout_ends_a_silent_server() {
    for silent in ["GET", "POST"] {
        let server = Server::always(move |request| match request.method == silent {
            true => Reply::empty().hang(),
            false => Reply::status(404),
        });
        let run = test(&server).args(["doctor", "--json", "--timeout", "1"]).run();
        let run = run.status(3).took_at_most(seconds(2.0));
        let checks = checks(&run);
        let index = if silent == "GET" { 2 } else { 5 };
        assert_eq!(checks[index]["status"], "failure");
        let message = checks[index]["message"].as_str().unwrap();
        assert!(message.contains("--timeout"), "{message}");
        assert_eq!(checks[index + 1]["status"], "skipped");
        server.finish();
    }
}

/// If the server does not answer the model list, the trial request is still made.
#[test]
fn unanswered_model_list_is_not_a_failure() {
    let server = Server::always(|request| match request.method.as_str() {
        "GET" if request.path == "/v1/models" => Reply::empty().hang(),
        "GET" => Reply::status(404),
        _ => working_model(request),
    });
    let test = test(&server).env("LLM_TIMEOUT_SECONDS", "1");
    let run = test.args(["doctor"]).run().success();
    run.stdout_has("warning  connection: connected, but no data arrived for 5 s")
        .stdout_has("ok       tool call");
    server.finish();
}

/// Ctrl+C ends each phase immediately, by the signal, and the results so far are printed.
#[test]
fn signal_ends_every_phase() {
    for (silent, requests, finished) in [("GET", 1, 2), ("POST", 3, 3)] {
        for (signal, name) in [(libc::SIGINT, "interrupted"), (libc::SIGTERM, "terminated")] {
            let server = Server::always(move |request| match request.method == silent {
                true => Reply::empty().hang(),
                false => Reply::status(404),
            });
            let stop = |args: &[&str], requests| {
                let running = test(&server).args(args).spawn();
                server.wait_for_requests(requests);
                let start = Stopwatch::start();
                running.signal(signal);
                let run = running.wait().status(-signal);
                let took = start.elapsed_for_limit(seconds(0.5));
                assert!(took <= seconds(0.5), "{took:?}");
                run.stderr_is_empty()
            };
            let left = NAMES.len() - finished;
            stop(&["doctor"], requests)
                .stdout_has("ok       address: ")
                .stdout_has(&format!("\n{name}: {left} of 11 checks were skipped\n"))
                .stdout_lacks("skipped  ");
            let checks = checks(&stop(&["doctor", "--json"], 2 * requests));
            for (index, check) in checks.iter().enumerate() {
                let status = if index < finished { "ok" } else { "skipped" };
                assert_eq!(check["status"], status, "{check}");
                assert!(index < finished || check["message"] == name, "{check}");
            }
            server.finish();
        }
    }
}

#[test]
fn signal_ends_the_start_of_python() {
    let test = Test::new().skill("s", DOCUMENT);
    let started = test.path("started").display().to_string();
    let slow = format!("#!/bin/sh\n: > {started}\nexec sleep 60\n");
    let test = test.executable("slow", &slow);
    let running = test.next_run().env("SCRIPT_PYTHON", "./slow").args(["doctor", "--json"]).spawn();
    let has_started = wait_until(seconds(5.0), || test.exists("started"));
    assert!(has_started);
    running.signal(libc::SIGTERM);
    let run = running.wait().status(-libc::SIGTERM);
    let checks = checks(&run.took_at_most(seconds(6.0)));
    assert_eq!(checks[0]["status"], "failure");
    assert_eq!(checks[8]["message"], "terminated");
    assert!(test.processes().is_empty());
}

#[test]
fn stdin_is_not_read_and_arguments_are_refused() {
    let server = endpoint(LISTED, working_model);
    let running = test(&server).args(["doctor"]).stdin_open().spawn();
    running.wait().success().took_at_most(seconds(10.0));
    server.finish();
    let test = Test::new();
    let run = test.next_run().args(["doctor", "who?"]).run().status(2);
    run.stdout_is_empty()
        .stderr_has("doctor takes no arguments")
        .stderr_has("skills-runner -- doctor");
}

/// On a terminal the status words are coloured, and no line is longer than 80 columns.
#[test]
fn terminal_output_is_wrapped() {
    let server = endpoint(OLLAMA, working_model);
    let test = test(&server).env("TERM", "xterm").env("SCRIPT_PYTHON", interpreter());
    let run = test.args(["doctor"]).spawn_on_terminal().wait_exit().success();
    for words in [
        "\u{1b}[32mok       \u{1b}[0mconfiguration: ",
        "\u{1b}[33mwarning  \u{1b}[0mcontext: 4,096 tokens",
        "skills-runner: requesting a tool call from `test-model`",
        "no failures, 1 warning: skills-runner works",
    ] {
        run.check(run.terminal.contains(words), format!("{words:?} is not there"));
    }
    for line in run.terminal.lines() {
        let shown = line.replace("\u{1b}[0m", "").replace("\u{1b}[2m", "");
        let shown = shown.replace("\u{1b}[32m", "").replace("\u{1b}[33m", "");
        let is_report = !shown.starts_with("skills-runner: ") && shown.contains(' ');
        let has_path = shown.contains("/skills-runner-it-");
        assert!(!is_report || has_path || shown.chars().count() <= 80, "{shown}");
    }
    server.finish();
}

/// A skill whose document `get_skill` refuses is reported, wherever the cause is in the document.
#[test]
fn documents_that_get_skill_refuses_are_reported() {
    let document = |rest: &[u8]| [DOCUMENT.as_bytes(), rest].concat();
    let late = document(&[&b"x\n".repeat(4000)[..], b"\xe9\n"].concat());
    let test = Test::new()
        .file("skills/early/SKILL.md", document(b"\xe9\n"))
        .file("skills/late/SKILL.md", late)
        .file("skills/large/SKILL.md", document(&b"x".repeat(1 << 20)))
        .file("skills/fine/SKILL.md", document(b"Text.\n"));
    let run = test.next_run().args(["doctor", "--json"]).run();
    let report = run.stdout_json();
    let checks = report["checks"].as_array().unwrap();
    let skills = checks.iter().find(|check| check["name"] == "skills");
    let skills = skills.unwrap();
    assert_eq!(skills["status"], "warning");
    let lines = DOCUMENT.lines().count();
    for (skill, cause, fix) in [
        ("early", format!("SKILL.md line {}: bytes that", lines + 1), "save the document as UTF-8"),
        (
            "late",
            format!("SKILL.md line {}: bytes that", lines + 4001),
            "save the document as UTF-8",
        ),
        ("large", "SKILL.md: it is larger than 1 MiB".to_owned(), "move parts of it"),
    ] {
        let rows = skills["details"]["skills"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == skill).unwrap();
        let reported: Vec<&str> = row["problems"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .filter(|reported| reported.starts_with(&cause))
            .collect();
        assert_eq!(reported.len(), 1, "{row}");
        assert!(skills["fix"].as_str().unwrap().contains(fix), "{skills}");
    }
}
