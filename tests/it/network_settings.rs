//! Settings of the connection and of extra fields and headers: every problem is reported before any
//! request, with the variable, its origin and the reason, and without the secret in it.

use crate::harness::{CANARY, Outcome, Reply, Server, Test};

/// An unreachable endpoint on another machine.
fn remote_endpoint() -> Test {
    Test::new()
        .env("LLM_API_BASE_URL", "https://api.example.invalid/v1")
        .env("LLM_MODEL_NAME", "m")
        .env("LLM_API_KEY", CANARY)
}

#[track_caller]
fn refused(test: &Test, expected: &str) -> Outcome {
    let run = test.next_run().args(["hi"]).run();
    run.status(78).stdout_is_empty().stderr_has(expected)
}

/// The file may contain additions of an editor or the clipboard, such as a byte order mark.
#[test]
fn key_is_read_from_a_file() {
    let contents = [CANARY.to_string(), format!("\u{feff}Bearer {CANARY}\r\n\n")];
    let server = Server::start([Reply::text("ok"), Reply::text("ok"), Reply::text("ok")]);
    let test =
        Test::new().endpoint(&server).env_unset("LLM_API_KEY").env("LLM_API_KEY_FILE", "~/key");
    for content in contents {
        let test = test.next_run().file("home/key", content).mode("home/key", 0o600);
        let run = test.args(["hi"]).run();
        run.success().stderr_lacks("chmod");
    }
    // A relative path, and a file that other users may read.
    let test = test
        .file("keys/mine", CANARY)
        .mode("keys/mine", 0o604)
        .env("LLM_API_KEY_FILE", "keys/mine");
    let run = test.args(["hi"]).run();
    run.success()
        .stderr_has("LLM_API_KEY_FILE (environment): others may read")
        .stderr_has("chmod 600");
    for request in server.finish() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    }
}

/// `LLM_API_KEY` overrides the file, which is not even read; so does the value `none`.
#[test]
fn key_variable_overrides_the_key_file() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    let test = Test::new().endpoint(&server).env("LLM_API_KEY_FILE", "missing");
    test.next_run().args(["hi"]).run().success();
    let test = test.env("LLM_API_KEY", "none");
    test.args(["hi"]).run().success();
    let requests = server.finish();
    assert!(requests[0].header("authorization").is_some());
    assert_eq!(requests[1].header("authorization"), None);
}

#[test]
fn key_file_without_a_key_is_refused_and_not_shown() {
    let table: [(&[u8], &str); 5] = [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"letmein\nletmein\n", "it holds more than a key"),
        (b"letmein\xff", "not UTF-8"),
        (&[b'k'; 17 << 10], "larger than 16384 bytes"),
    ];
    let test = remote_endpoint().env_unset("LLM_API_KEY").env("LLM_API_KEY_FILE", "key");
    for (content, reason) in table {
        let test = test.next_run().file("key", content);
        refused(&test, "LLM_API_KEY_FILE (environment): failed to read the key")
            .stderr_has(reason)
            .stderr_has("/key`")
            .stderr_lacks("letmein")
            .stderr_lacks("LLM_API_KEY is not set");
    }
    let test = test.folder("folder");
    for (path, reason) in [
        ("missing", "No such file"),
        ("folder", "not a regular file"),
        ("key/below", "Not a directory"),
    ] {
        refused(&test.next_run().env("LLM_API_KEY_FILE", path), reason);
    }
    let fifo =
        test.next_run().shell("mkfifo fifo && LLM_API_KEY_FILE=fifo exec skills-runner hi").run();
    fifo.status(78).stderr_has("not a regular file");
}

#[test]
fn invalid_extra_fields_are_refused() {
    let table = [
        ("[1]", "is not a JSON object"),
        ("\"temperature\"", "is not a JSON object"),
        ("{\"temperature\": }", "line 1 column 17"),
        ("{temperature: 0}", "line 1 column 2"),
        ("{'a': 1}", "single quotes"),
        ("{\"model\": \"x\"}", "the field `model`: LLM_MODEL_NAME"),
        ("{\"messages\": []}", "the field `messages`"),
        ("{\"tools\": []}", "the field `tools`"),
        ("{\"stream\": false}", "the field `stream`: --no-stream"),
    ];
    for (value, reason) in table {
        let test = remote_endpoint().env("LLM_EXTRA_BODY", value);
        refused(&test, "LLM_EXTRA_BODY (environment)").stderr_has(reason);
    }
    let deep = "[".repeat(100_000);
    let test = remote_endpoint().env("LLM_EXTRA_BODY", deep);
    refused(&test, "recursion limit").stderr_lacks("[[");
}

#[test]
fn invalid_extra_headers_are_refused_by_name() {
    let table = [
        ("letmein", "is not valid JSON"),
        ("[\"letmein\"]", "is not a JSON object"),
        ("{\"x-token\": letmein}", "line 1 column 13"),
        ("{\"x-token\": \"let\\nmein\"}", "the header `x-token`: its value holds a line break"),
        ("{\"x-token\": [\"letmein\"]}", "the header `x-token`: its value is not text"),
        ("{\"x token\": \"letmein\"}", "the header `x token`: this is not a valid header name"),
        (
            "{\"x\\u001b[1m\": \"letmein\"}",
            "the header `x\\u{1b}[1m`: this is not a valid header name",
        ),
        ("{\"Host\": \"letmein\"}", "the header `Host`: the program sets it itself"),
        ("{\"content-length\": 1}", "the header `content-length`"),
        ("{\"Transfer-Encoding\": \"chunked\"}", "the header `Transfer-Encoding`"),
        ("{\"content-type\": \"letmein\"}", "the header `content-type`"),
        ("{\"connection\": \"close\"}", "the header `connection`"),
        ("{\"X-A\": \"letmein\", \"x-a\": \"letmein\"}", "the header `x-a`: it is given twice"),
    ];
    for (value, reason) in table {
        let test = remote_endpoint().env_unset("LLM_API_KEY").env("LLM_EXTRA_HEADERS", value);
        refused(&test, "LLM_EXTRA_HEADERS (environment)")
            .stderr_has(reason)
            .stderr_lacks("letmein");
    }
}

/// A user-defined `Authorization` header makes the key unnecessary; other headers do not.
#[test]
fn authorization_header_replaces_the_key() {
    let test = remote_endpoint().env_unset("LLM_API_KEY");
    let other = test.next_run().env("LLM_EXTRA_HEADERS", "{\"x-a\": \"b\"}");
    refused(&other, "LLM_API_KEY is not set");
    let own_header = test
        .next_run()
        .env("LLM_EXTRA_HEADERS", "{\"Authorization\": \"Basic letmein\"}")
        .env_unset("LLM_MODEL_NAME");
    refused(&own_header, "LLM_MODEL_NAME is not set")
        .stderr_lacks("LLM_API_KEY")
        .stderr_lacks("letmein");
}

#[test]
fn invalid_proxy_is_refused_without_showing_its_login() {
    let table = [
        ("HTTPS_PROXY", "socks4://letmein:letmein@proxy", "`socks4` is not http"),
        ("HTTPS_PROXY", "https://letmein:letmein@proxy", "TLS to a proxy is not supported"),
        ("https_proxy", "ftp://letmein:letmein@proxy", "`ftp` is not http"),
        ("ALL_PROXY", "http://letmein:letmein@proxy:99999", "1 to 65535"),
        ("all_proxy", "http://letmein:letmein", "not a port"),
        ("HTTPS_PROXY", "http://letmein:let/letmein@proxy", "%2F"),
        ("HTTPS_PROXY", "http://letmein:letmein@", "no host"),
    ];
    for (name, value, reason) in table {
        refused(
            &remote_endpoint().env(name, value),
            &format!("{name} (environment) is not a valid proxy: "),
        )
        .stderr_has(reason)
        .stderr_lacks("letmein");
    }
    // The result is the same for a file and the environment.
    let test = remote_endpoint().dotenv("A=1\nHTTPS_PROXY=rubbish rubbish\n");
    refused(&test, "HTTPS_PROXY (.env line 2) is not a valid proxy");
}

/// An endpoint on this machine has no proxy, so an invalid proxy is not a problem.
#[test]
fn local_endpoint_ignores_the_proxy() {
    let server = Server::start([Reply::text("ok")]);
    let run = Test::new()
        .endpoint(&server)
        .env("ALL_PROXY", "socks4://letmein@proxy")
        .env("http_proxy", "http://127.0.0.1:1")
        .env("HTTP_PROXY", "http://proxy.invalid")
        .args(["hi"])
        .run();
    run.success().stdout("ok\n");
    server.finish();
}

#[test]
fn certificate_file_without_certificates_is_refused() {
    let test = remote_endpoint()
        .file("empty.pem", "")
        .file("key.pem", "-----BEGIN PRIVATE KEY-----\nletmein\n")
        .file("der.crt", b"\x30\x82\x01\x0a\x02")
        .file("huge.pem", vec![b'#'; 5 << 20])
        .folder("folder");
    let table = [
        ("SSL_CERT_FILE", "missing.pem", "No such file"),
        ("SSL_CERT_FILE", "~/missing.pem", "home/missing.pem`: No such file"),
        ("SSL_CERT_FILE", "empty.pem", "no certificate in PEM form"),
        ("REQUESTS_CA_BUNDLE", "key.pem", "no certificate in PEM form"),
        ("CURL_CA_BUNDLE", "der.crt", "no certificate in PEM form"),
        ("SSL_CERT_FILE", "huge.pem", "larger than 4194304 bytes"),
        ("SSL_CERT_FILE", "folder", "not a regular file"),
    ];
    for (name, path, reason) in table {
        let expected = format!("{name} (environment): failed to read the certificates `");
        refused(&test.next_run().env(name, path), &expected)
            .stderr_has(reason)
            .stderr_lacks("letmein");
    }
    // The program's own variable overrides those of other tools.
    let test = test.env("CURL_CA_BUNDLE", "c.pem").env("REQUESTS_CA_BUNDLE", "r.pem");
    refused(&test, "REQUESTS_CA_BUNDLE (environment)").stderr_lacks("CURL_CA_BUNDLE");
    let test = test.env("SSL_CERT_FILE", "s.pem");
    refused(&test, "SSL_CERT_FILE (environment)").stderr_lacks("REQUESTS_CA_BUNDLE");
    // Without TLS the file is not read.
    let server = Server::start([Reply::text("ok")]);
    let plain = test.next_run().endpoint(&server).args(["hi"]).run();
    plain.success();
    server.finish();
}

/// The `.env` file of the folder must not be able to intercept credentials.
#[test]
fn credentials_are_not_sent_to_an_address_of_the_folders_env_file() {
    let pem = "-----BEGIN CERTIFICATE-----\n";
    let folder_settings = "LLM_API_BASE_URL=https://collector.example/v1\nLLM_MODEL_NAME=m\n";
    let with_key = format!("{folder_settings}LLM_API_KEY=theirs\n");
    let headers = r#"{"x-gateway": "letmein"}"#;
    let table = [
        (
            remote_endpoint().dotenv("HTTPS_PROXY=http://user:letmein@collector.example:8080\n"),
            "LLM_API_KEY (environment) is not sent through the proxy http://collector.example:8080, which only \
             .env line 1 sets",
        ),
        (
            remote_endpoint().file("ca.pem", pem).dotenv("\nSSL_CERT_FILE=ca.pem\n"),
            "ca.pem`, which only .env line 2 sets: set SSL_CERT_FILE",
        ),
        (
            Test::new().env("LLM_EXTRA_HEADERS", headers).dotenv(&with_key),
            "LLM_EXTRA_HEADERS (environment) is not sent to collector.example",
        ),
        (
            Test::new()
                .file("home/key", "letmein")
                .dotenv(&format!("{folder_settings}LLM_API_KEY_FILE=~/key\n")),
            "LLM_API_KEY_FILE (.env line 3) is not sent to collector.example",
        ),
    ];
    for (test, expected) in table {
        refused(&test, expected).stderr_has("skills-runner trust").stderr_lacks("letmein");
    }
}
