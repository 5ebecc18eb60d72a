//! The only model of Ollama on this machine, if no model is set.

use super::{ollama, paths, without_settings};
use crate::harness::{Reply, Server, Test, seconds};

fn host(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

/// One request finds the model, from each variable with the address.
#[test]
fn only_installed_model_is_used() {
    let server = ollama(&["qwen3:latest"], || None);
    let test = without_settings(&server);
    let variables = [
        ("OLLAMA_HOST", format!("0.0.0.0:{}", server.port())),
        ("OPENAI_BASE_URL", server.url()),
        ("LLM_API_BASE_URL", server.url()),
    ];
    for (name, address) in &variables {
        let run = test.next_run().env(name, address).args(["-v", "hi"]).run().success();
        run.stdout("Done.\n").stderr_has("; model qwen3:latest, the only one that Ollama has\n");
    }
    let test = test.env("OLLAMA_HOST", host(&server));
    let run = test.next_run().args(["-o", "json", "hi"]).run().success();
    assert_eq!(run.stdout_json()["model"], "qwen3:latest");
    test.next_run().args(["--dry-run", "hi"]).run().success().stdout_has("qwen3:latest");
    let run = test.args(["chat"]).stdin("hi\n").run().success();
    run.stdout_has("Done.");
    let requests = server.finish();
    let one = ["GET /api/tags", "POST /v1/chat/completions"];
    let expected = [&one[..], &one, &one, &one, &one[..1], &one].concat();
    assert_eq!(paths(&requests), expected);
    assert_eq!(requests[1].json["model"], "qwen3:latest");
}

/// A model that is set is not looked for, nor is one of an endpoint elsewhere.
#[test]
fn no_model_is_looked_for_if_one_is_set_or_the_endpoint_is_remote() {
    let server = ollama(&["a", "b"], || None);
    let test = without_settings(&server).env("OLLAMA_HOST", host(&server));
    test.next_run().args(["-m", "b", "hi"]).run().success();
    let proxy = format!("http://{}", host(&server));
    let remote = test.env("OLLAMA_HOST", "ollama.test").env("HTTP_PROXY", proxy).args(["hi"]);
    remote
        .run()
        .status(78)
        .stderr_has("LLM_MODEL_NAME is not set\nhint: run `skills-runner init`, or copy");
    assert_eq!(paths(&server.finish()), ["POST /v1/chat/completions"]);
}

#[test]
fn several_models_or_none_are_reported_with_the_remedy() {
    let odd = &["qwen3:latest", "hf.co/a/b-GGUF:Q4_K_M", "x; touch '$(y)'", "a\u{1b}[2Jb"];
    let server = ollama(odd, || None);
    let test = without_settings(&server).env("OLLAMA_HOST", host(&server));
    test.next_run().args(["hi"]).run().status(78).stderr(
        "skills-runner: failed to read the configuration: LLM_MODEL_NAME is not set, and Ollama has 4 models\nhint: run `skills-runner init`, or copy what fits into the shell or .env:\n  export LLM_MODEL_NAME=qwen3\n  export LLM_MODEL_NAME=hf.co/a/b-GGUF:Q4_K_M\n  export LLM_MODEL_NAME='x; touch '\\''$(y)'\\'''\n(`skills-runner demo` needs none)\n",
    );
    let run = test.args(["doctor"]).run().status(78);
    run.stdout_has("failure  configuration: LLM_MODEL_NAME is not set, and Ollama has 4 models\n         fix: export LLM_MODEL_NAME=qwen3\n              export LLM_MODEL_NAME=hf.co/");
    server.finish();
    let server = ollama(&[], || None);
    let test = without_settings(&server).env("OLLAMA_HOST", host(&server));
    test.next_run().args(["hi"]).run().status(78).stderr(
        "skills-runner: failed to read the configuration: LLM_MODEL_NAME is not set, and Ollama has no model\nhint: `ollama pull qwen3`, or another model\n",
    );
    test.args(["doctor"]).run().status(78).stdout_has("fix: `ollama pull qwen3`");
    server.finish();
}

/// Other servers on this machine: their model must be named.
#[test]
fn model_of_another_server_is_not_chosen() {
    let list = r#"{"models":[{"name":"x.gguf"}],"data":[{"id":"x.gguf","owned_by":"llamacpp"}]}"#;
    let table = [
        (
            list,
            "LLM_MODEL_NAME is not set, and the server has 1 model\nhint: run `skills-runner init`, or copy what fits into the shell or .env:\n  export LLM_MODEL_NAME=x.gguf\n(`skills-runner demo` needs none)\n",
        ),
        (
            "<html>",
            "LLM_MODEL_NAME is not set\nhint: run `skills-runner init`, or copy what fits into the shell or .env:\n  export LLM_MODEL_NAME=NAME # as the endpoint lists it\n(`skills-runner demo` needs none)\n",
        ),
    ];
    for (body, expected) in table {
        let server = Server::start([Reply::status(200).body(body)]);
        let test = without_settings(&server).env("LLM_API_BASE_URL", server.url());
        test.args(["hi"]).run().status(78).stderr_has(expected);
        server.finish();
    }
    let server = Server::start([Reply::status(404)]);
    let test = without_settings(&server).env("LLM_API_BASE_URL", server.url());
    test.args(["hi"])
        .run()
        .status(78)
        .stderr_has("LLM_MODEL_NAME is not set\nhint: run `skills-runner init`, or copy ");
    server.finish();
}

/// A server that does not run or is slow is a temporary failure, known at once.
#[test]
fn unreachable_server_is_reported() {
    let refusing = Server::refusing_connections();
    let test = Test::new().env("OLLAMA_HOST", host(&refusing));
    let run = test.next_run().args(["hi"]).run().status(75);
    run.stderr_has("failed to find a model: LLM_MODEL_NAME is not set, and ")
        .stderr_has("Connection refused")
        .stderr_has("hint: start Ollama: `ollama serve`; for another server set LLM_MODEL_NAME\n");
    let run = test.args(["doctor"]).run().status(75);
    run.stdout_has("ok       address: ").stdout_has("failure  connection: failed to find a model");
    for server in [Server::always(|_| Reply::empty().hang()), Server::with_full_backlog()] {
        let test = Test::new().env("OLLAMA_HOST", host(&server));
        let run = test.next_run().args(["hi"]).run().status(75).took_at_most(seconds(2.0));
        run.stderr_has("/v1 did not answer within 300 ms\nhint: ");
        let run = test.args(["--timeout", "0.1", "hi"]).run().status(3);
        run.stderr_has("--timeout");
        server.finish();
    }
}
