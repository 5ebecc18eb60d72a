//! The static binary, where one has been built: `SKILLS_RUNNER_STATIC` names it.
//!
//! It needs nothing around it: its whole world is an empty folder, without
//! `/etc`, `/dev`, `/proc` and `/tmp`. What needs one of them says so.

use std::path::Path;

use serde_json::json;

use crate::harness::{Outcome, Reply, Server, Test, skipped};

const CALL: [&str; 3] = ["tool", "run_python_script", r#"{"skill_name": "s", "script": "1"}"#];

/// A folder `world` with the binary and a skill; `None` where it cannot be tried.
fn world() -> Option<Test> {
    let Some(binary) = std::env::var_os("SKILLS_RUNNER_STATIC") else {
        skipped("SKILLS_RUNNER_STATIC names no binary");
        return None;
    };
    let document = "---\nname: s\ndescription: Does S.\n---\nDo.\n";
    let test = Test::new().file("world/skills/s/SKILL.md", document);
    std::fs::copy(binary, test.path("world/skills-runner")).unwrap();
    // Waits until it can be run.
    let test = test.mode("world/skills-runner", 0o755);
    if run(&test, &["--version"], "").status != 0 {
        skipped("chroot needs root");
        return None;
    }
    Some(test)
}

/// Runs it there, without any variable but the settings and these.
fn run(test: &Test, args: &[&str], streams: &str) -> Outcome {
    let line = format!("exec chroot world /skills-runner \"$@\" {streams}");
    let test = test.again().shell(&line).args(args);
    test.env_unset("HOME").run()
}

fn endpoint(test: &Test, server: &Server, host: &str) -> Test {
    let test = test.again().endpoint(server);
    test.env("LLM_API_BASE_URL", format!("http://{host}:{}/v1", server.port()))
}

/// An endpoint by the name `localhost`, for which there is no /etc/hosts.
#[test]
fn it_answers_in_an_empty_chroot() {
    let Some(test) = world() else { return };
    run(&test, &["--help"], "").success().stdout_has("skills-runner [");
    let server = Server::always(|_| Reply::text("from the void"));
    for host in ["localhost", "127.0.0.1", "skills.localhost"] {
        let test = endpoint(&test, &server, host);
        run(&test, &["hi"], "").success().stdout("from the void\n");
    }
}

/// Without `/dev/null` nothing can take a closed stream's place but what the
/// program makes itself.
#[test]
fn it_starts_there_without_its_streams() {
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

/// What needs no endpoint works, too.
#[test]
fn everything_else_works_there_or_says_what_it_lacks() {
    let Some(test) = world() else { return };
    let skills = json!({"skills": [{"name": "s", "description": "Does S."}]});
    let listed = run(&test, &["tool", "list_skills"], "").success();
    assert_eq!(listed.stdout_json(), skills);
    run(&test, &["skills", "check"], "").success();
    run(&test, &["skills", "new", "new"], "").success();
    run(&test, &["mcp"], "").success().stdout_is_empty();
    let facts = test.again().env("MEMORY_PATH", "/facts.md");
    run(&facts, &["facts", "add", "the sky is blue"], "").success();
    assert!(test.read("world/facts.md").contains("the sky is blue"));
    let lacks = |args: &[&str], status: i32, text: &str| {
        run(&test, args, "").status(status).demand(true, "");
        let run = run(&test, args, "");
        let is_told = run.stdout.contains(text) || run.stderr.contains(text);
        run.demand(is_told, format_args!("not told: {text}"));
    };
    lacks(&CALL, 1, "no Python was found: install python3, or set SCRIPT_PYTHON");
    lacks(&["skills", "setup", "s"], 78, "no Python was found");
    lacks(&["sessions", "list"], 78, "hint: SESSIONS_PATH names a folder for them");
    lacks(&["doctor"], 78, "LLM_API_BASE_URL is not set");
    lacks(&["demo"], 1, "failed to write the skills of the demo");
}

/// A script's program without anything: the binary itself plays the Python.
#[test]
fn a_script_needs_a_temporary_folder_and_no_more() {
    let Some(test) = world() else { return };
    let server = Server::always(|request| {
        let said = request.last_message()["content"].as_str().unwrap_or_default();
        Reply::text(&format!("asked: {}", said.ends_with("/script.py")))
    });
    let test = endpoint(&test, &server, "localhost").env("SCRIPT_PYTHON", "/skills-runner");
    let failed = run(&test, &CALL, "").status(1);
    failed.stdout_has("no temporary folder (set TMPDIR): No such file or directory");
    let test = test.folder("world/tmp");
    run(&test, &CALL, "").success().stdout_has(r#""stdout":"asked: true\n""#);
    run(&test, &CALL, "<&- 2>&-").success().stdout_has("asked: true");
    let left = std::fs::read_dir(test.path("world/tmp")).unwrap().count();
    assert_eq!(left, 0, "temporary folders");
    assert!(!Path::new(&test.path("world/dev")).exists());
}
