//! `doctor`: its checks, their results and remedies.

use serde_json::{Value, json};

use crate::harness::{
    CANARY, MODEL, Outcome, Proxy, Reply, Request, Server, Stopwatch, Test, TlsServer, interpreter,
    seconds, tls_file, wait_until,
};

const DOCUMENT: &str = "---\nname: s\ndescription: A skill for tests.\n---\nDo it.\n";

/// The names of the checks, in order.
const NAMES: [&str; 11] = [
    "configuration",
    "address",
    "connection",
    "credentials",
    "model",
    "tool_call",
    "streaming",
    "context",
    "python",
    "sandbox",
    "skills",
];

/// A model that calls `add` as requested and reports the result.
fn working_model(request: &Request) -> Reply {
    let last = request.last_message();
    if last["role"] == "tool" {
        let id = last["tool_call_id"].as_str().unwrap();
        let sum = request.tool_json(id)["sum"].clone();
        return Reply::text(&format!("The sum is {sum}.")).with_usage(120, 9);
    }
    if request.tool_names() == ["add"] {
        return Reply::call("add", &json!({"a": 317, "b": 588})).with_usage(100, 20);
    }
    Reply::text("one two three four five six seven eight nine ten")
}

/// An endpoint that answers GET requests by path (404 for other paths), and whose model is
/// `model`.
fn endpoint(
    paths: &'static [(&'static str, &'static str)],
    model: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Server {
    Server::always(move |request| {
        let path = request.path.as_str();
        if path == "/v1/chat/completions" {
            assert_eq!(request.method, "POST");
            return model(request);
        }
        match paths.iter().find(|(known, _)| *known == path) {
            Some((_, body)) => Reply::status(200).body(*body),
            None => Reply::status(404).body("404 page not found"),
        }
    })
}

const LISTED: &[(&str, &str)] =
    &[("/v1/models", r#"{"data":[{"id":"other"},{"id":"test-model","context_length":131072}]}"#)];

fn test(server: &Server) -> Test {
    Test::new().endpoint(server).skill("s", DOCUMENT)
}

/// Returns the checks of `doctor --json`, in the order of [`NAMES`]. Asserts the rules for every
/// report.
#[track_caller]
fn checks(run: &Outcome) -> Vec<Value> {
    let report = run.stdout_json();
    assert_eq!(report["type"], "doctor");
    let status = match run.status {
        signal if signal < 0 => 128 - signal,
        status => status,
    };
    assert_eq!(report["exit_code"], status);
    assert_eq!(report["status"], if run.status == 0 { "ok" } else { "error" });
    let checks = report["checks"].as_array().unwrap().clone();
    let names: Vec<&str> = checks.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    for check in &checks {
        let status = check["status"].as_str().unwrap();
        let is_bad = match status {
            "ok" | "skipped" => false,
            "warning" | "failure" => true,
            other => panic!("{other}"),
        };
        assert!(!check["message"].as_str().unwrap().is_empty());
        assert_eq!(check["fix"].is_string(), is_bad, "{check}");
    }
    checks
}

/// Asserts a check's status and parts of its message and fix, as JSON and as text.
#[track_caller]
fn assert_check(test: &Test, exit: i32, name: &str, status: &str, words: &str, fix: &str) {
    let run = test.next_run().args(["doctor", "--json"]).run().status(exit);
    let index = NAMES.iter().position(|known| *known == name).unwrap();
    let check = checks(&run).swap_remove(index);
    assert_eq!(check["status"], status, "{check}");
    assert!(check["message"].as_str().unwrap().contains(words), "{check}");
    assert!(check["fix"].as_str().unwrap_or_default().contains(fix), "{check}");
    let run = test.next_run().args(["doctor"]).run().status(exit);
    let run = run.stdout_has(words).stdout_has(status);
    if !fix.is_empty() {
        run.stdout_has(&format!("         fix: {}", check["fix"].as_str().unwrap()));
    }
}

/// A working configuration: every line is printed, and the key is not.
#[test]
fn working_checks_are_listed_line_by_line() {
    let server = endpoint(LISTED, working_model);
    // Not a shim, whose start may be slow enough for a warning on a busy machine.
    let test = test(&server).env("SCRIPT_PYTHON", interpreter());
    let run = test.next_run().args(["-v", "doctor"]).run().success();
    let url = server.url();
    let address = format!("ok       address: {url}/chat/completions, direct\n");
    for line in [
        "ok       configuration: 4 settings are set\n",
        "           LLM_API_KEY=[secret] (environment)\n",
        "           LLM_MODEL_NAME=test-model (environment)\n",
        &address,
        "ok       connection: answered after ",
        "ok       credentials: accepted\n",
        "ok       model: `test-model` is listed, one of 2\n",
        "ok       tool call: called, and its result was used: 2 requests, ",
        ", 220 tokens read, 29 written\n",
        "ok       streaming: received ",
        "ok       context: 131,072 tokens\n",
        "ok       python: ",
        ", Python 3.",
        "ok       skills: 1 skill in ",
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
    let run = run
        .stdout_has("failure  configuration: LLM_API_BASE_URL is not set\n         fix: set it in")
        .stdout_has("failure  configuration: LLM_MODEL_NAME is not set\n         fix: set it in")
        .stdout_has("failure  configuration: LLM_API_KEY is not set\n         fix: set it in")
        .stdout_has(
            "skipped  address, connection, credentials, model, tool call, streaming, context: ",
        )
        .stdout_has("ok       python: ")
        .stdout_has("ok       skills: 1 skill in ")
        .stdout_has("3 failures, no warnings: fix the first failure")
        .stdout_has("`skills-runner demo`");
    run.stderr_is_empty();
    let run = test.next_run().args(["doctor", "--json"]).run().status(78);
    let checks = checks(&run);
    assert_eq!(checks[0]["details"]["findings"].as_array().unwrap().len(), 3);
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
    run.stderr_lacks("did you mean");
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

#[test]
fn unlisted_model_is_reported_with_similar_names() {
    let server = endpoint(
        &[("/v1/models", r#"{"data":[{"id":"test-model-2"},{"id":"zeta"}]}"#)],
        working_model,
    );
    let words = "`test-model` is not among the 2 models listed; similar names: `test-model-2`";
    let fix = "set LLM_MODEL_NAME to `test-model-2`";
    assert_check(&test(&server), 0, "model", "warning", words, fix);
    server.finish();
    // If the trial is refused, its fix refers to the warning about the model.
    let server = endpoint(&[("/v1/models", r#"{"data":[{"id":"zeta"}]}"#)], |_| {
        Reply::error(404, "The model `test-model` does not exist")
    });
    assert_check(&test(&server), 1, "model", "warning", "the endpoint lists `zeta`", "the list");
    assert_check(
        &test(&server),
        1,
        "tool_call",
        "failure",
        "does not exist",
        "correct LLM_MODEL_NAME",
    );
    server.finish();
}

/// Servers refuse an unknown model with many different messages.
#[test]
fn refused_unlisted_model_is_reported_with_a_similar_name() {
    let list = &[("/v1/models", r#"{"data":[{"id":"test-model-2"},{"id":"zeta"}]}"#)];
    let table: [(fn() -> Reply, i32); 4] = [
        (|| Reply::error(400, "invalid model ID"), 1),
        (|| Reply::error(404, "The model does not exist"), 1),
        (|| Reply::error(422, ""), 1),
        (|| Reply::error(503, "no channel for test-model").header("retry-after", "0"), 75),
    ];
    for (refusal, exit) in table {
        let server = endpoint(list, move |_| refusal());
        let run = test(&server).args(["doctor"]).run().status(exit);
        run.stdout_has("failure  tool call: ")
            .stdout_has("\n         fix: set LLM_MODEL_NAME to `test-model-2`\nskipped  ");
        server.finish();
    }
    // A more specific cause is kept, as is the refusal of a listed model.
    let server = endpoint(list, |_| Reply::error(400, "does not support tools"));
    let words = "does not support tools";
    assert_check(&test(&server), 1, "tool_call", "failure", words, "cannot call tools");
    server.finish();
    let server = endpoint(LISTED, |_| Reply::error(400, "no such thing"));
    let fix = "documentation of the endpoint";
    assert_check(&test(&server), 1, "tool_call", "failure", "no such thing", fix);
    server.finish();
}

/// A wrong address is reported by the address check, not by the tool check.
#[test]
fn wrong_address_is_reported_by_the_address_check() {
    type Row = (fn() -> Reply, &'static str, &'static str);
    let table: [Row; 5] = [
        (|| Reply::status(404), "status 404", "its path is not that of an endpoint"),
        (|| Reply::status(405), "status 405", "its path is not that of an endpoint"),
        (
            || Reply::status(200).body("<html><title>Welcome</title></html>"),
            "“Welcome”",
            "no API is at this address",
        ),
        (
            || Reply::status(301).header("location", "https://llm.test/v1/chat/completions"),
            "status 301",
            "set LLM_API_BASE_URL to https://llm.test/v1",
        ),
        (
            || Reply::status(400).body("The plain HTTP request was sent to HTTPS port"),
            "HTTPS port",
            "the same address with https://",
        ),
    ];
    for (reply, words, fix) in table {
        let server = Server::always(move |_| reply());
        let test = test(&server);
        assert_check(&test, 1, "address", "failure", words, fix);
        let reason = "not checked until the address works";
        assert_check(&test, 1, "connection", "ok", "answered after", "");
        assert_check(&test, 1, "tool_call", "skipped", reason, "");
        let run = test.next_run().args(["doctor"]).run().status(1);
        run.stdout_has("/v1/chat/completions, direct\nok       connection: ")
            .stdout_has("failure  address: failed to get an answer from ")
            .stdout_has("skipped  credentials, model, tool call, streaming, context: not checked");
        server.finish();
    }
    // An address that lists the model is right.
    let server = endpoint(LISTED, |_| Reply::status(404));
    assert_check(&test(&server), 1, "address", "ok", "direct", "");
    assert_check(&test(&server), 1, "tool_call", "failure", "status 404", "LLM_API_BASE_URL");
    server.finish();
}

/// A refusal by the proxy belongs to the connection check, not to the credentials.
#[test]
fn proxy_refusal_is_reported_by_the_connection_check() {
    let server = Server::always(|_| Reply::status(403).header("server", "squid/6"));
    let test = test(&server)
        .env("LLM_API_BASE_URL", "http://llm.test/v1")
        .env("HTTP_PROXY", format!("http://127.0.0.1:{}", server.port()));
    let fix = "the proxy answered this";
    assert_check(&test, 77, "connection", "failure", "status 403", fix);
    let reason = "not checked until the connection works";
    assert_check(&test, 77, "credentials", "skipped", reason, "");
    server.finish();
}

/// If a configured proxy is not used, the report says why.
#[test]
fn unused_proxy_is_reported_with_the_reason() {
    let server = endpoint(LISTED, working_model);
    let local = test(&server);
    let with_proxy = local.clone().env("HTTPS_PROXY", "http://127.0.0.1:9");
    assert_check(&with_proxy, 0, "address", "ok", "/chat/completions, direct (loopback)", "");
    server.finish();
    let remote =
        local.env("LLM_API_BASE_URL", "https://no-such-host.invalid/v1").env("LLM_API_KEY", "none");
    let table = [
        (("HTTPS_PROXY", "http://127.0.0.1:9"), "direct (NO_PROXY)"),
        (("ALL_PROXY", "http://127.0.0.1:9"), "direct (NO_PROXY)"),
        (("HTTP_PROXY", "http://127.0.0.1:9"), "direct (no proxy for https is set)"),
    ];
    for ((name, proxy), words) in table {
        let test = remote.clone().env(name, proxy).env("NO_PROXY", ".invalid");
        assert_check(&test, 75, "address", "ok", words, "");
    }
    let run = remote.env("NO_PROXY", "*").args(["doctor"]).run().status(75);
    run.stdout_has("/v1/chat/completions, direct\n");
}

#[test]
fn endpoint_without_model_list_passes() {
    for status in [404, 405] {
        let server = Server::always(move |request| match request.method.as_str() {
            "GET" => Reply::status(status),
            _ => working_model(request),
        });
        let words = "list of models";
        assert_check(&test(&server), 0, "model", "skipped", words, "");
        assert_check(&test(&server), 0, "context", "skipped", "unknown", "");
        server.finish();
    }
    let server = endpoint(&[("/v1/models", "<html>welcome</html>")], working_model);
    assert_check(&test(&server), 0, "model", "skipped", "is not a list of models", "");
    server.finish();
}

#[test]
fn model_without_tool_calling_is_reported() {
    type Row = (fn(&Request) -> Reply, i32, &'static str, &'static str, &'static str);
    let table: [Row; 6] = [
        (
            |_| Reply::text("The sum is 905."),
            0,
            "warning",
            "answered without calling the tool",
            "trained for tool calls",
        ),
        (
            |request| match request.tool_names().is_empty() {
                false => Reply::text("<tool_call>{\"name\": \"add\"}</tool_call>"),
                true => working_model(request),
            },
            1,
            "failure",
            "returned the call as text",
            "--tool-call-parser",
        ),
        (
            |_| Reply::error(400, "registry.ollama.ai/library/x does not support tools"),
            1,
            "failure",
            "does not support tools",
            "cannot call tools",
        ),
        (
            |request| match request.last_message()["role"] == "tool" {
                true => Reply::text("I do not know."),
                false => working_model(request),
            },
            0,
            "warning",
            "did not report its result",
            "LLM_MODEL_NAME",
        ),
        (
            |request| match request.last_message()["role"] == "tool" {
                true => Reply::text("905"),
                false => Reply::call("add", &json!({"a": "many"})),
            },
            0,
            "warning",
            "a and b must be whole numbers",
            "LLM_MODEL_NAME",
        ),
        (
            |request| match request.tool_names().is_empty() {
                false => Reply::call("add", &json!({"a": 317, "b": 588})),
                true => working_model(request),
            },
            0,
            "warning",
            "keeps calling the tool",
            "LLM_MODEL_NAME",
        ),
    ];
    for (model, exit, status, words, fix) in table {
        let server = endpoint(LISTED, model);
        assert_check(&test(&server), exit, "tool_call", status, words, fix);
        server.finish();
    }
}

#[test]
fn endpoint_without_streams_is_reported() {
    let server = endpoint(LISTED, |request| match request.requests_stream() {
        true => Reply::error(400, "streaming is not supported"),
        false => working_model(request),
    });
    let words = "the endpoint does not stream";
    assert_check(&test(&server), 0, "streaming", "warning", words, "--no-stream");
    server.finish();
    let server = endpoint(LISTED, |request| working_model(request).not_streamed());
    assert_check(&test(&server), 0, "streaming", "ok", "received in one piece", "");
    server.finish();
    let server = endpoint(LISTED, working_model);
    let run = test(&server).args(["doctor", "--no-stream"]).run().success();
    run.stdout_has("skipped  streaming: --no-stream");
    assert!(server.finish().iter().all(|request| !request.requests_stream()));
}

const OLLAMA: &[(&str, &str)] = &[
    ("/v1/models", r#"{"object":"list","data":[{"id":"test-model:latest","owned_by":"library"}]}"#),
    ("/", "Ollama is running"),
    (
        "/api/ps",
        r#"{"models":[{"name":"test-model:latest","model":"test-model:latest","context_length":4096}]}"#,
    ),
    ("/api/show", r#"{"parameters":"temperature 1","model_info":{"qwen3.context_length":40960}}"#),
];

/// Ollama while no model is loaded.
const UNLOADED: &[(&str, &str)] = &[OLLAMA[0], OLLAMA[3]];

#[test]
fn small_ollama_context_and_missing_models_are_reported() {
    let server = endpoint(OLLAMA, working_model);
    let fix = "OLLAMA_CONTEXT_LENGTH=32768";
    assert_check(&test(&server), 0, "context", "warning", "4,096 tokens", fix);
    assert_check(&test(&server), 0, "model", "ok", "`test-model:latest`", "");
    let absent = test(&server).env("LLM_MODEL_NAME", "test-modle");
    let words = "Ollama does not have `test-modle`; similar names: `test-model`";
    assert_check(&absent, 1, "model", "failure", words, "`ollama pull test-modle`");
    let requests = server.finish();
    let to_missing = requests.iter().filter(|request| request.json["model"] == "test-modle");
    assert_eq!(to_missing.count(), 0, "no request to a missing model");
    // Ollama has no model at all.
    let server = endpoint(
        &[("/v1/models", r#"{"object":"list","data":null}"#), ("/", "Ollama is running")],
        working_model,
    );
    assert_check(&test(&server), 1, "model", "failure", "does not have", "ollama pull");
    server.finish();
    // The model is not loaded and its file sets no context size.
    let server = endpoint(UNLOADED, working_model);
    assert_check(&test(&server), 0, "context", "warning", "as little as 4,096", fix);
    server.finish();
    let set = r#"{"parameters":"num_ctx     65536\ntemperature 1"}"#;
    let server = Server::always(move |request| match request.path.as_str() {
        "/api/show" => Reply::status(200).body(set),
        "/v1/models" => Reply::status(200).body(OLLAMA[0].1),
        "/v1/chat/completions" => working_model(request),
        _ => Reply::status(404),
    });
    assert_check(&test(&server), 0, "context", "ok", "65,536 tokens", "");
    let shown = server.finish();
    let shown = shown.iter().find(|request| request.path == "/api/show");
    assert_eq!(shown.unwrap().json["model"], MODEL);
}

#[test]
fn llama_cpp_context_is_read_from_its_properties() {
    let server = endpoint(
        &[
            (
                "/v1/models",
                r#"{"models":[{"name":"test-model"}],"data":[{"id":"test-model","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}"#,
            ),
            ("/props", r#"{"default_generation_settings":{"n_ctx":8192}}"#),
        ],
        working_model,
    );
    assert_check(&test(&server), 0, "context", "warning", "8,192 tokens", "-c 32768");
    server.finish();
    let server = endpoint(
        &[(
            "/v1/models",
            r#"{"data":[{"id":"test-model","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}"#,
        )],
        working_model,
    );
    let words = "unknown; the model was trained for 131,072 tokens";
    assert_check(&test(&server), 0, "context", "skipped", words, "");
    server.finish();
}

/// An endless list does not exhaust memory.
#[test]
fn endless_model_list_is_limited() {
    let entries = r#"{"id":"some-model"},"#.repeat(400_000);
    let list = format!("{{\"data\":[{entries}{{\"id\":\"test-model\"}}]}}");
    let server = Server::always(move |request| match request.method.as_str() {
        "GET" if request.path == "/v1/models" => Reply::status(200).body(list.as_str()),
        "GET" => Reply::status(404),
        _ => working_model(request),
    });
    let run = test(&server).args(["doctor"]).run().success();
    run.stdout_has("skipped  model: `test-model`; the list is too long").memory_at_most(32 << 10);
    server.finish();
}

#[test]
fn unreachable_endpoint_exits_75_and_other_checks_run() {
    let server = Server::refusing_connections();
    let test = test(&server);
    let fix = "start the server, or correct LLM_API_BASE_URL";
    assert_check(&test, 75, "connection", "failure", "Connection refused", fix);
    let run = test.next_run().args(["doctor"]).run().status(75);
    run.stdout_has(
        "skipped  credentials, model, tool call, streaming, context: there is no connection",
    )
    .stdout_has("ok       skills: 1 skill");
}

/// `doctor` connects as a question does: with the configured proxy and certificates.
#[test]
fn connection_and_untrusted_certificate_are_reported() {
    let server = endpoint(LISTED, working_model);
    let tls = TlsServer::start("server", server.port());
    let proxy = Proxy::start(tls.port());
    let test = test(&server)
        .env("LLM_API_BASE_URL", "https://llm.test:8080/v1")
        .env("HTTPS_PROXY", proxy.url("http", "user:horse-staple@"))
        .env("SSL_CERT_FILE", tls_file("ca.pem"));
    let run = test.next_run().args(["doctor", "-v"]).run().success();
    run.stdout_has(
        "https://llm.test:8080/v1/chat/completions, through the proxy http://127.0.0.1:",
    )
    .stdout_has(", encrypted, certificate trusted\n")
    .stdout_lacks("horse-staple")
    .stderr_lacks("horse-staple");
    let distrusting = test.clone().env("SSL_CERT_FILE", tls_file("self-signed.pem"));
    assert_check(&distrusting, 1, "connection", "failure", "the certificate of llm.test", "");
    drop(tls);
    server.finish();
}

/// Each skill with problems is listed with a remedy.
#[test]
fn skills_with_problems_are_reported() {
    let server = endpoint(LISTED, working_model);
    let test = test(&server)
        .folder("skills/empty")
        .skill("odd", "---\ndescription: [unclosed\n---\ntext\n")
        .skill("broken", DOCUMENT)
        .link("skills/broken/venv", "nowhere");
    let run = test.next_run().args(["doctor"]).run().success();
    run.stdout_has("ok       skills: 3 of 4 skills in ")
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
    let option = format!("--skills {}", test.path("skills/more").display());
    run.stdout_has("ok       skills: 1 of 3 skills in ")
        .stdout_has(&format!("fix: name it as a skills folder: {option}\n"))
        .stdout_has("warning  skills: `led-out`: cannot be used: ")
        .stdout_has("fix: remove the link, or replace it with a copy of its target")
        .stdout_lacks("fix: add a SKILL.md");
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
            .filter(|reported| reported.contains("get_skill refuses"))
            .collect();
        assert_eq!(reported.len(), 1, "{row}");
        let expected = format!("get_skill refuses its document: {cause}");
        assert!(reported[0].starts_with(&expected), "{reported:?}");
        assert!(skills["fix"].as_str().unwrap().contains(fix), "{skills}");
    }
}
