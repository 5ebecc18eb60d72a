//! Tests of the static binary that `SKILLS_RUNNER_STATIC` names, if it was built.
//!
//! It needs no other files: it runs in an empty root folder without `/etc`, `/dev`, `/proc` and
//! `/tmp`. Features that need one of them report so.

use std::path::Path;

use serde_json::json;

use crate::harness::{Outcome, Reply, Server, Test, report_skipped};

const CALL: [&str; 3] = ["tool", "run_python_script", r#"{"skill_name": "s", "script": "1"}"#];

/// A folder `world` with the binary and a skill; `None` if this machine cannot run it.
fn world() -> Option<Test> {
    let Some(binary) = std::env::var_os("SKILLS_RUNNER_STATIC") else {
        report_skipped("SKILLS_RUNNER_STATIC names no binary");
        return None;
    };
    let document = "---\nname: s\ndescription: Does S.\n---\nDo.\n";
    let test = Test::new().file("world/skills/s/SKILL.md", document);
    std::fs::copy(binary, test.path("world/skills-runner")).unwrap();
    // Waits until it can be executed.
    let test = test.mode("world/skills-runner", 0o755);
    if run(&test, &["--version"], "").status != 0 {
        report_skipped("chroot needs root");
        return None;
    }
    Some(test)
}

/// Runs it there, with only the settings and these variables.
fn run(test: &Test, args: &[&str], streams: &str) -> Outcome {
    let line = format!("exec chroot world /skills-runner \"$@\" {streams}");
    let test = test.next_run().shell(&line).args(args);
    test.env_unset("HOME").run()
}

fn endpoint(test: &Test, server: &Server, host: &str) -> Test {
    let test = test.next_run().endpoint(server);
    test.env("LLM_API_BASE_URL", format!("http://{host}:{}/v1", server.port()))
}

/// An endpoint named `localhost`, without an `/etc/hosts`.
#[test]
fn answers_in_an_empty_chroot() {
    let Some(test) = world() else { return };
    run(&test, &["--help"], "").success().stdout_has("skills-runner [");
    let server = Server::always(|_| Reply::text("from the void"));
    for host in ["localhost", "127.0.0.1", "skills.localhost"] {
        let test = endpoint(&test, &server, host);
        run(&test, &["hi"], "").success().stdout("from the void\n");
    }
}

/// Without `/dev/null` closed streams can only be replaced by descriptors that the program creates.
#[test]
fn starts_in_an_empty_chroot_without_standard_streams() {
    let Some(test) = world() else { return };
    let server = Server::always(|_| Reply::text("from the void"));
    let test = endpoint(&test, &server, "localhost").env("SESSIONS_PATH", "/kept");
    for streams in ["<&-", "2>&-", "<&- 2>&-"] {
        run(&test, &["hi"], streams).success().stdout("from the void\n");
    }
    for streams in [">&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"] {
        let run = run(&test, &["--session", "one", "hi"], streams);
        run.success().stdout_is_empty();
    }
    for line in test.read("world/kept/one.jsonl").lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
}

#[test]
fn other_commands_work_in_an_empty_chroot_or_name_the_missing_part() {
    let Some(test) = world() else { return };
    let skills = json!({"skills": [{"name": "s", "description": "Does S."}]});
    let listed = run(&test, &["tool", "list_skills"], "").success();
    assert_eq!(listed.stdout_json(), skills);
    run(&test, &["skills", "check"], "").success();
    run(&test, &["skills", "new", "new"], "").success();
    run(&test, &["mcp"], "").success().stdout_is_empty();
    let facts = test.next_run().env("MEMORY_PATH", "/facts.md");
    run(&facts, &["facts", "add", "the sky is blue"], "").success();
    assert!(test.read("world/facts.md").contains("the sky is blue"));
    let lacks = |args: &[&str], status: i32, text: &str| {
        run(&test, args, "").status(status).check(true, "");
        let run = run(&test, args, "");
        let is_reported = run.stdout.contains(text) || run.stderr.contains(text);
        run.check(is_reported, format_args!("not reported: {text}"));
    };
    lacks(&CALL, 1, "no Python was found; tell the user: install python3, or set SCRIPT_PYTHON");
    lacks(&["skills", "setup", "s"], 78, "no Python was found");
    lacks(&["sessions", "list"], 78, "hint: set SESSIONS_PATH to a folder for sessions");
    lacks(&["doctor"], 78, "LLM_API_BASE_URL is not set");
    lacks(&["demo"], 1, "failed to write the skills of the demo");
}

/// The script's program needs no other files: the binary itself acts as the Python.
#[test]
fn script_needs_only_a_temporary_folder() {
    let Some(test) = world() else { return };
    let server = Server::always(|request| {
        let content = request.last_message()["content"].as_str().unwrap_or_default();
        Reply::text(&format!("asked: {}", content.ends_with("/script.py")))
    });
    let test = endpoint(&test, &server, "localhost").env("SCRIPT_PYTHON", "/skills-runner");
    let failed = run(&test, &CALL, "").status(1);
    failed.stdout_has("no temporary folder (set TMPDIR): No such file or directory");
    let test = test.folder("world/tmp");
    run(&test, &CALL, "").success().stdout_has(r#""stdout":"asked: true\n""#);
    run(&test, &CALL, "<&- 2>&-").success().stdout_has("asked: true");
    let left = std::fs::read_dir(test.path("world/tmp")).unwrap().count();
    assert_eq!(left, 0, "temporary folders are left");
    assert!(!Path::new(&test.path("world/dev")).exists());
}
