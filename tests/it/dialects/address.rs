//! Addresses, keys and redirects. Certificates are tested in `network_settings.rs`.

use super::{skills, talk, talk_with};
use crate::harness::{CANARY, Reply, Server, Test};

fn at(server: &Server, base: &str) -> Test {
    let base = base.replace("HOST", &format!("http://127.0.0.1:{}", server.port()));
    skills().endpoint(server).env("LLM_API_BASE_URL", base).args(["go"])
}

#[test]
fn pasted_addresses_are_normalized_without_additions() {
    let table = [
        ("HOST/v1", "/v1/chat/completions"),
        ("HOST/v1/", "/v1/chat/completions"),
        ("HOST/v1///", "/v1/chat/completions"),
        (" \t\"HOST/v1/\" ", "/v1/chat/completions"),
        ("'HOST/v1'", "/v1/chat/completions"),
        ("HOST/v1/chat/completions", "/v1/chat/completions"),
        ("HOST/v1/chat/completions/", "/v1/chat/completions"),
        ("\"HOST/v1/chat/completions\"", "/v1/chat/completions"),
        ("HOST/v1/v1", "/v1/v1/chat/completions"),
        ("HOST", "/chat/completions"),
        ("HOST/", "/chat/completions"),
        ("HOST/v1beta/openai/", "/v1beta/openai/chat/completions"),
        ("HOST/compatible-mode/v1", "/compatible-mode/v1/chat/completions"),
        ("HOST/api/v1", "/api/v1/chat/completions"),
        ("HOST/v1?a=b&c=d%20e", "/v1/chat/completions?a=b&c=d%20e"),
    ];
    for (base, path) in table {
        let server = Server::start([Reply::text("4")]);
        at(&server, base).run().success().stdout("4\n");
        assert_eq!(server.finish()[0].path, path, "{base}");
    }
}

#[test]
fn address_without_an_endpoint_is_reported_with_a_suggestion() {
    let page = "<html><head><title>Welcome</title></head></html>";
    let answers = [
        ("404", Reply::status(404).body("404 page not found")),
        ("405", Reply::status(405).body("Method Not Allowed")),
        ("Welcome", Reply::status(200).body(page)),
    ];
    for (words, answer) in answers {
        let server = Server::always(move |_| answer.clone());
        let tried = format!("http://127.0.0.1:{}/chat/completions", server.port());
        let guess = format!("did you mean http://127.0.0.1:{}/v1", server.port());
        let run = at(&server, "HOST/").run();
        run.status(1).stdout_is_empty().stderr_has(words).stderr_has(&tried).stderr_has(&guess);
        // An address with a version gets no suggestion with another version.
        let run = at(&server, "HOST/api/v1").run();
        run.status(1).stderr_has("/api/v1/chat/completions").stderr_lacks("did you mean");
        server.finish();
    }
}

#[test]
fn azure_address_keeps_its_query_and_gets_the_api_key_header() {
    let base = "http://x.openai.azure.com/openai/deployments/d";
    let table = [
        (
            format!("{base}?api-version=2024-10-21"),
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
        ),
        (
            format!("{base}/chat/completions?api-version=2024-10-21"),
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
        ),
        ("http://x.openai.azure.com/openai/v1/".to_string(), "/openai/v1/chat/completions"),
    ];
    for (base, path) in table {
        // The scripted server is the proxy, and so sees the request that Azure would get.
        let tunnel = |request: &crate::harness::Request| match request.method.as_str() {
            "CONNECT" => Reply::raw("HTTP/1.1 200 OK\r\n\r\n"),
            _ => Reply::text("4"),
        };
        let server = Server::always(tunnel);
        let proxy = format!("http://127.0.0.1:{}", server.port());
        let test =
            skills().endpoint(&server).env("LLM_API_BASE_URL", &base).env("HTTP_PROXY", proxy);
        test.args(["go"]).run().success().stdout("4\n");
        let requests = server.finish();
        let request = requests.last().unwrap();
        assert!(request.path.ends_with(path), "{}", request.path);
        assert_eq!(request.header("api-key"), Some(CANARY), "{base}");
        assert_eq!(request.header("authorization"), None, "{base}");
    }
    // Other endpoints do not get this header.
    let elsewhere = talk(&[], [Reply::text("4")]);
    assert_eq!(elsewhere.requests[0].header("api-key"), None);
}

#[test]
fn key_is_trimmed_and_an_empty_key_is_not_sent() {
    let table = [
        ("", None),
        ("  ", None),
        ("none", None),
        ("sk-some-key-123456", Some("Bearer sk-some-key-123456")),
        (" sk-some-key-123456\r\n", Some("Bearer sk-some-key-123456")),
        ("\tsk-some-key-123456\n\n", Some("Bearer sk-some-key-123456")),
    ];
    for (key, header) in table {
        let server = Server::start([Reply::text("4")]);
        let run = skills().endpoint(&server).env("LLM_API_KEY", key).args(["go"]).run();
        run.success().stdout("4\n");
        let requests = server.finish();
        assert_eq!(requests[0].header("authorization"), header, "{key:?}");
    }
    let server = Server::start([Reply::text("4")]);
    skills().endpoint(&server).env_unset("LLM_API_KEY").args(["go"]).run().success();
    assert_eq!(server.finish()[0].header("authorization"), None);
}

#[test]
fn key_invalid_in_a_header_is_reported_before_any_request() {
    for key in [
        "sk-one\nsk-two-and-more",
        "sk-one\rsk-two-and-more",
        "sk-one\u{1}sk-two",
        "sk-schlüssel-123",
    ] {
        let server = Server::start([]);
        let run = skills().endpoint(&server).env("LLM_API_KEY", key).args(["go"]).run();
        run.status(78).stdout_is_empty().stderr_has("LLM_API_KEY").stderr_lacks("sk-one");
        assert!(server.finish().is_empty());
    }
}

#[test]
fn redirect_not_followed_and_target_named() {
    let other = Server::start([]);
    let elsewhere = format!("http://127.0.0.1:{}/v1", other.port());
    let table = [
        (format!("{elsewhere}/chat/completions"), format!("LLM_API_BASE_URL to {elsewhere}\n")),
        (
            format!("{elsewhere}/chat/completions/?a=b"),
            format!("LLM_API_BASE_URL to {elsewhere}\n"),
        ),
        (
            "https://secure.example/v1/chat/completions".into(),
            "LLM_API_BASE_URL to https://secure.example/v1\n".into(),
        ),
        (
            "//secure.example/v1/chat/completions".into(),
            "LLM_API_BASE_URL to http://secure.example/v1\n".into(),
        ),
        ("/api/v1/chat/completions".into(), "LLM_API_BASE_URL to HOST/api/v1\n".into()),
    ];
    for (location, hint) in table {
        for status in [301, 302, 307, 308] {
            let server = Server::start([Reply::status(status).header("Location", &location)]);
            let hint = hint.replace("HOST", &format!("http://127.0.0.1:{}", server.port()));
            let run = at(&server, "HOST/v1").run();
            run.status(1)
                .stdout_is_empty()
                .stderr_has(&format!("status {status}"))
                .stderr_has(&hint);
            assert_eq!(server.finish().len(), 1);
        }
    }
    assert!(other.finish().is_empty(), "no request goes to the target");
    // A redirect without a target.
    let lost = talk_with(skills(), &[], [Reply::status(302)]);
    lost.run.status(1).stderr_has("302");
}
