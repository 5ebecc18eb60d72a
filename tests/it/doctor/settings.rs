//! Settings and credentials.

use super::{DOCUMENT, LISTED, assert_check, checks, endpoint, test, working_model};
use crate::harness::{CANARY, Reply, Server, Test, interpreter};

/// A working configuration: every line is printed, and the key is not.
#[test]
fn working_checks_are_listed_line_by_line() {
    let server = endpoint(LISTED, working_model);
    // Not a shim, whose start may be slow enough for a warning on a busy machine.
    let test = test(&server).env("SCRIPT_PYTHON", interpreter());
    let run = test.next_run().args(["-v", "doctor"]).run().success();
    let url = server.url();
    let address = format!(
        "ok       address: {url}/chat/completions, direct, from LLM_API_BASE_URL (environment)\n"
    );
    for line in [
        "ok       configuration: 4 settings are set\n",
        "           LLM_API_KEY=[secret] (environment)\n",
        "           LLM_MODEL_NAME=test-model (environment)\n",
        &address,
        "ok       connection: answered after ",
        "ok       credentials: accepted, from LLM_API_KEY (environment)\n",
        "ok       model: `test-model` is listed, one of 2\n",
        "ok       tool call: called, and its result was used: 2 requests, ",
        ", 220 tokens read, 29 written\n",
        "ok       streaming: received ",
        "ok       context: 131,072 tokens\n",
        "ok       python: ",
        ", Python 3.",
        "ok       skills: 1 skill\n           1 in ",
        "everything works",
    ] {
        run.check(run.stdout.contains(line), format!("stdout lacks {line:?}"));
    }
    run.check(!run.stdout.contains('\x1b'), "colours are only used on a terminal");
    let run = run
        .stderr_has(&format!("· GET {url}/models"))
        .stderr_has(&format!("· POST {url}/chat/completions"));
    run.stdout_lacks("warning").stdout_lacks("failure");
    let run = test.next_run().args(["doctor", "--json"]).run().success();
    let checks = checks(&run.stderr_is_empty());
    assert!(checks.iter().all(|check| check["status"] == "ok"), "{checks:?}");
    assert_eq!(checks[0]["details"]["settings"][0]["value"], "[secret]");
    assert_eq!(checks[7]["details"]["tokens"], 131_072);
    for word in ["json", "jsonl"] {
        let run = test.next_run().args(["doctor", "-o", word]).run().success();
        assert_eq!(run.stdout_json()["type"], "doctor");
    }
    // Each run makes a complete trial, with the requests of a conversation.
    let trials = server.finish();
    let trials = trials.iter().filter(|request| request.tool_names() == ["add"]);
    assert_eq!(trials.count(), 8);
}

/// Without any setting, all problems and their fixes are reported, and checks that need no setting
/// still run.
#[test]
fn missing_configuration_is_reported_with_fixes() {
    let test = Test::new().skill("s", DOCUMENT).env("SCRIPT_PYTHON", interpreter());
    let run = test.next_run().args(["doctor"]).run().status(78);
    run.stdout_has(
        "failure  configuration: LLM_API_BASE_URL is not set\n         fix: export LLM_",
    )
    .stdout_has("1 failure, no warnings: fix the first failure");
    let test = test.env("LLM_API_BASE_URL", "https://llm.test/v1");
    let run = test.next_run().args(["doctor"]).run().status(78);
    let run = run
        .stdout_has("failure  configuration: LLM_MODEL_NAME is not set\n         fix: export LLM_MODEL_NAME=NAME # as the endpoint lists it\n")
        .stdout_has("failure  configuration: LLM_API_KEY is not set\n         fix: export LLM_API_KEY=KEY # ")
        .stdout_has(
            "skipped  address, connection, credentials, model, tool call, streaming, context: ",
        )
        .stdout_has("ok       python: ")
        .stdout_has("ok       skills: 1 skill\n           1 in ")
        .stdout_has("2 failures, no warnings: fix the first failure")
        .stdout_has("`skills-runner demo`");
    run.stderr_is_empty();
    let run = test.next_run().args(["doctor", "--json"]).run().status(78);
    let checks = checks(&run);
    assert_eq!(checks[0]["details"]["findings"].as_array().unwrap().len(), 2);
    assert_eq!(checks[1]["status"], "skipped");
    assert_eq!(checks[10]["status"], "ok");
}

/// An unreadable or invalid `.env` is reported as a check.
#[test]
fn invalid_env_file_is_reported() {
    let server = endpoint(LISTED, working_model);
    let lines = "LLM_MODEL_NAME=test-model\nthis is no setting\nSCRIPT_LEFTOVERS=maybe\n";
    let run = test(&server).dotenv(lines).args(["doctor"]).run().status(78);
    run.stdout_has("SCRIPT_LEFTOVERS=maybe (.env line 3) is not kill or keep\n         fix: ")
        .stdout_has("warning  configuration: skipped .env line 2: ")
        .stdout_has("skipped  address, ")
        .stderr_is_empty();
    let run = test(&server).args(["doctor", "--env-file", "none.env"]).run();
    run.status(78).stdout_has("failure  configuration: failed to read `none.env`");
    assert!(server.finish().is_empty());
}

#[test]
fn key_set_as_address_is_not_shown() {
    let test = Test::new()
        .env("LLM_API_BASE_URL", "sk-abcdef123456")
        .env("LLM_API_KEY", "none")
        .env("LLM_MODEL_NAME", "m");
    for args in [&["doctor"][..], &["doctor", "--json"], &["hi"], &["chat"]] {
        let run = test.next_run().args(args).run().status(78);
        run.stdout_lacks("abcdef").stderr_lacks("abcdef");
    }
    let run = test.next_run().args(["doctor"]).run().status(78);
    run.stdout_has("  LLM_API_BASE_URL=[secret], which looks like a key (environment)\n")
        .stdout_has("  LLM_API_KEY=none (environment)\n")
        .stdout_has("LLM_API_BASE_URL (environment) is not a valid address: ")
        .stdout_has(
            "fix: set LLM_API_BASE_URL to the endpoint's address, and LLM_API_KEY to the key",
        );
}

/// A misspelt setting would otherwise be ignored silently.
#[test]
fn misspelt_settings_are_reported() {
    let server = endpoint(LISTED, working_model);
    let test = test(&server)
        .env("SCRIPT_PYTHON", interpreter())
        .env("SCRIPT_TIMEOUT", "9")
        .env("LLM_MODEL", "another program's")
        .env("SKILLS_FOLDERS_PATH", "")
        .dotenv("\n\nLLM_MODEL_NAM=x\n");
    let run = test.next_run().args(["doctor"]).run().success();
    run.stdout_has(
        "warning  configuration: LLM_MODEL_NAM (.env line 3) is not a setting; did you mean LLM_MODEL_NAME?\n         fix: ",
    )
    .stdout_has(
        "SCRIPT_TIMEOUT (environment) is not a setting; did you mean SCRIPT_TIMEOUT_SECONDS?",
    )
    .stdout_lacks("LLM_MODEL (")
    .stdout_lacks("SKILLS_FOLDERS_PATH")
    .stdout_has("no failures, 2 warnings: skills-runner works");
    let run = test.args(["-v", "hi"]).run().success();
    run.stderr_has(".env line 3) is not a setting").stderr_lacks("SCRIPT_TIMEOUT (");
    server.finish();
}

/// The trial request decides: some endpoints list models without a valid key, others
/// refuse the list to a valid key.
#[test]
fn refused_credentials_exit_77() {
    let refusal = || Reply::error(401, "Incorrect API key provided");
    let server = Server::always(move |_| refusal());
    let fix = "check LLM_API_KEY";
    assert_check(&test(&server), 77, "credentials", "failure", "status 401", fix);
    server.finish();
    let server = endpoint(LISTED, move |_| refusal());
    assert_check(&test(&server), 77, "credentials", "failure", "Incorrect API key", fix);
    let words = "not checked until the credentials are accepted";
    assert_check(&test(&server), 77, "tool_call", "skipped", words, "");
    server.finish();
    let server = Server::always(move |request| match request.method.as_str() {
        "GET" => Reply::error(403, "missing scope: model.read"),
        _ => working_model(request),
    });
    assert_check(&test(&server), 0, "credentials", "ok", "accepted", "");
    assert_check(&test(&server), 0, "model", "skipped", "cannot list the models", "");
    server.finish();
}

/// If the server quotes the key, it is masked in every format.
#[test]
fn quoted_key_is_masked() {
    let server = Server::always(|request| {
        let quoted = request.header("authorization").unwrap_or_default();
        Reply::error(401, quoted)
    });
    // The harness checks every run for the key.
    for args in [&["doctor", "-v"][..], &["doctor", "--json", "-v"]] {
        let run = test(&server).args(args).run().status(77);
        run.stdout_has("[secret]").stdout_lacks(CANARY);
    }
    server.finish();
}
