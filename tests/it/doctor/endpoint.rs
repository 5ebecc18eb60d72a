//! The endpoint and the model.

use super::{LISTED, OLLAMA, assert_check, checks, endpoint, test, working_model};
use crate::harness::{MODEL, Proxy, Reply, Request, Server, Test, TlsServer, tls_file};
use serde_json::json;

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

/// Names of models and words of servers reach no terminal as they are, nor do they look like lines
/// of the report.
#[test]
fn names_of_models_are_escaped() {
    const NAME: &str = r"test-model\u001b[31m\u001b]0;x\u0007\n         fix: run x\u202e\u009b";
    const LIST: &str = r#"{"data":[{"id":"NAME"},{"id":"zeta"}]}"#;
    let list: &'static str = Box::leak(LIST.replace("NAME", NAME).into_boxed_str());
    let paths: &'static [(&str, &str)] = Box::leak(Box::new([("/v1/models", list)]));
    let server = endpoint(paths, |_| Reply::error(404, "no model \u{1b}[31m here \u{202e}"));
    for model in ["test-model", "test-model\u{1b}[31m\u{1b}]0;x", "other"] {
        let test = test(&server).env("LLM_MODEL_NAME", model);
        let run = test.next_run().args(["doctor"]).run();
        let is_raw = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        run.check(!run.stdout.contains(is_raw), model);
        run.check(
            !run.stdout.lines().any(|line| line.trim_start().starts_with("fix: run x")),
            model,
        );
        let run = run.stdout_has("\u{fffd}[31m");
        let near = checks(&test.next_run().args(["doctor", "--json"]).run())[4].to_string();
        run.check(!near.contains("\\u001b[31m\\u001b]0;x\\u0007"), near);
    }
    let run = Test::new().args(["init", "--base-url", &server.url()]).env_unset("LLM_MODEL_NAME");
    let run = run.run().stderr_has("the only model is zeta\n");
    run.check(!run.stdout.contains(|c: char| c.is_control() && c != '\n'), "init");
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
    assert_check(&test(&server), 1, "tool_call", "failure", words, "LLM_TOOLS=prompted");
    server.finish();
    let server = endpoint(LISTED, |_| Reply::error(400, "no such thing"));
    let fix = "documentation of the endpoint";
    assert_check(&test(&server), 1, "tool_call", "failure", "no such thing", fix);
    server.finish();
}

/// A field that every run would learn from a refusal is named, with its value.
#[test]
fn demanded_fields_are_named() {
    let words = "set reasoning_effort to 'none'";
    let server = endpoint(LISTED, move |request| match request.json["reasoning_effort"].as_str() {
        Some("none") => working_model(request),
        _ => Reply::error(400, words),
    });
    let fix = r#"add {"reasoning_effort":"none"} to LLM_EXTRA_BODY"#;
    assert_check(&test(&server), 0, "tool_call", "warning", "the endpoint demands", fix);
    let set = test(&server).env("LLM_EXTRA_BODY", r#"{"reasoning_effort":"none"}"#);
    assert_check(&set, 0, "tool_call", "ok", "its result was used", "");
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
        run.stdout_has("direct, from LLM_API_BASE_URL (environment)\nok       connection: ")
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
    run.stdout_has("/v1/chat/completions, direct, from LLM_API_BASE_URL (environment)\n");
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
            0,
            "warning",
            "the model's call came as text (1 request",
            "--tool-call-parser",
        ),
        (
            |_| Reply::error(400, "registry.ollama.ai/library/x does not support tools"),
            1,
            "failure",
            "does not support tools",
            "LLM_TOOLS=prompted",
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

/// A model that calls the tool in text, if the system message describes it.
fn prompted_model(request: &Request) -> Reply {
    let last = request.last_message()["content"].as_str().unwrap();
    if last.starts_with("<tool_result name=\"add\">\n{\"sum\":905}") {
        return Reply::text("It is 905.");
    }
    match request.messages()[0]["role"] == "system"
        && request.system().contains("- add {\"a\": integer")
    {
        true => Reply::text(&request.with_mark(
            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 317, \"b\": 588}}\n</tool_call>",
        )),
        false => Reply::text("one two three four five"),
    }
}

/// Both ways of calling tools are tried if the first one does not work, or is the exception.
#[test]
fn the_other_way_of_calling_tools_is_tried() {
    type Row = (
        Option<&'static str>,
        fn(&Request) -> Reply,
        i32,
        &'static str,
        &'static str,
        &'static str,
    );
    let no_tools = |request: &Request| match request.tool_names().is_empty() {
        false => Reply::error(400, "registry.ollama.ai/library/x does not support tools"),
        true => prompted_model(request),
    };
    let both = |request: &Request| match request.tool_names().is_empty() {
        false => working_model(request),
        true if request.last_message()["role"] == "tool" => working_model(request),
        true => prompted_model(request),
    };
    let mute = |_: &Request| Reply::text("I have no tools.");
    let constrained = |request: &Request| {
        let is_constrained = request.json.get("response_format").is_some();
        let has_result = request.messages().len() > 2;
        Reply::text(match (is_constrained, has_result) {
            (false, _) => "One could call `add`.",
            (_, false) => r#"{"thought": "x", "tool": "add", "a": 317, "b": 588}"#,
            (_, true) => r#"{"thought": "x", "tool": "answer", "text": "905"}"#,
        })
    };
    let table: [Row; 9] = [
        (
            None,
            constrained,
            0,
            "warning",
            "without calling the tool; in constrained replies it works",
            "set LLM_TOOLS=schema",
        ),
        (Some("schema"), constrained, 0, "ok", "called in a constrained reply, and its result", ""),
        (None, no_tools, 0, "ok", "called in text, and its result was used", ""),
        (
            None,
            prompted_model,
            0,
            "warning",
            "without calling the tool; in text it works",
            "set LLM_TOOLS=prompted",
        ),
        (
            Some("native"),
            no_tools,
            1,
            "failure",
            "does not support tools",
            "set LLM_TOOLS=prompted",
        ),
        (
            Some("native"),
            prompted_model,
            0,
            "warning",
            "in text it works",
            "set LLM_TOOLS=prompted",
        ),
        (Some("prompted"), prompted_model, 0, "ok", "called in text, and its result was used", ""),
        (Some("prompted"), both, 0, "ok", "work, too (LLM_TOOLS=native)", ""),
        (
            Some("prompted"),
            mute,
            0,
            "warning",
            "without calling the tool (1 request",
            "trained for tool calls",
        ),
    ];
    for (tools, model, exit, status, words, fix) in table {
        let server = endpoint(LISTED, model);
        let test = tools.map_or(test(&server), |tools| test(&server).env("LLM_TOOLS", tools));
        assert_check(&test, exit, "tool_call", status, words, fix);
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
    let empty = ("/v1/models", r#"{"object":"list","data":null}"#);
    let paths: &'static [(&str, &str)] = Box::leak(Box::new([empty, OLLAMA[1]]));
    let server = endpoint(paths, working_model);
    assert_check(&test(&server), 1, "model", "failure", "does not have", "ollama pull");
    server.finish();
    // The model is not loaded and its file sets no context size.
    let server = endpoint(UNLOADED, working_model);
    assert_check(&test(&server), 0, "context", "warning", "as little as 4,096", fix);
    server.finish();
    let set = r#"{"parameters":"num_ctx     65536\ntemperature 1"}"#;
    let server = Server::of_all_requests(move |request| match request.path.as_str() {
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
