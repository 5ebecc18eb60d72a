//! Settings of the way to the endpoint and of what goes along: every problem
//! is told before anything is sent, with the variable, its origin and the
//! reason, and without the secret in it.

use crate::harness::{CANARY, Outcome, Reply, Server, Test};

/// An endpoint that is elsewhere, and that nobody gets to.
fn elsewhere() -> Test {
    Test::new()
        .env("LLM_API_BASE_URL", "https://api.example.invalid/v1")
        .env("LLM_MODEL_NAME", "m")
        .env("LLM_API_KEY", CANARY)
}

#[track_caller]
fn refused(test: &Test, expected: &str) -> Outcome {
    let run = test.again().args(["hi"]).run();
    run.status(78).stdout_is_empty().stderr_has(expected)
}

/// The key comes from the file, whatever an editor or a clipboard added to it.
#[test]
fn a_key_is_read_from_a_file() {
    let contents = [CANARY.to_string(), format!("\u{feff}Bearer {CANARY}\r\n\n")];
    let server = Server::start([Reply::text("ok"), Reply::text("ok"), Reply::text("ok")]);
    let test =
        Test::new().endpoint(&server).env_unset("LLM_API_KEY").env("LLM_API_KEY_FILE", "~/key");
    for content in contents {
        let test = test.again().file("home/key", content).mode("home/key", 0o600);
        let run = test.args(["hi"]).run();
        run.success().stderr_lacks("chmod");
    }
    // A relative path, a file that others may read.
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

/// `LLM_API_KEY` wins over the file, which is not even looked at; `none` too.
#[test]
fn the_variable_wins_over_the_file() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    let test = Test::new().endpoint(&server).env("LLM_API_KEY_FILE", "missing");
    test.again().args(["hi"]).run().success();
    let test = test.env("LLM_API_KEY", "none");
    test.args(["hi"]).run().success();
    let requests = server.finish();
    assert!(requests[0].header("authorization").is_some());
    assert_eq!(requests[1].header("authorization"), None);
}

#[test]
fn a_file_that_holds_no_key_is_refused_and_not_shown() {
    let table: [(&[u8], &str); 5] = [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"letmein\nletmein\n", "it holds more than a key"),
        (b"letmein\xff", "not UTF-8"),
        (&[b'k'; 17 << 10], "larger than 16384 bytes"),
    ];
    let test = elsewhere().env_unset("LLM_API_KEY").env("LLM_API_KEY_FILE", "key");
    for (content, reason) in table {
        let test = test.again().file("key", content);
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
        refused(&test.again().env("LLM_API_KEY_FILE", path), reason);
    }
    let fifo =
        test.again().shell("mkfifo fifo && LLM_API_KEY_FILE=fifo exec skills-runner hi").run();
    fifo.status(78).stderr_has("not a regular file");
}

#[test]
fn extra_fields_that_cannot_be_added_are_refused() {
    let table = [
        ("[1]", "is no JSON object"),
        ("\"temperature\"", "is no JSON object"),
        ("{\"temperature\": }", "line 1 column 17"),
        ("{temperature: 0}", "line 1 column 2"),
        ("{'a': 1}", "single quotes"),
        ("{\"model\": \"x\"}", "the field `model`: LLM_MODEL_NAME"),
        ("{\"messages\": []}", "the field `messages`"),
        ("{\"tools\": []}", "the field `tools`"),
        ("{\"stream\": false}", "the field `stream`: --no-stream"),
    ];
    for (value, reason) in table {
        let test = elsewhere().env("LLM_EXTRA_BODY", value);
        refused(&test, "LLM_EXTRA_BODY (environment)").stderr_has(reason);
    }
    let deep = "[".repeat(100_000);
    let test = elsewhere().env("LLM_EXTRA_BODY", deep);
    refused(&test, "recursion limit").stderr_lacks("[[");
}

#[test]
fn extra_headers_that_cannot_be_sent_are_refused_by_name() {
    let table = [
        ("letmein", "is no JSON"),
        ("[\"letmein\"]", "is no JSON object"),
        ("{\"x-token\": letmein}", "line 1 column 13"),
        ("{\"x-token\": \"let\\nmein\"}", "the header `x-token`: its value holds a line break"),
        ("{\"x-token\": [\"letmein\"]}", "the header `x-token`: its value is no text"),
        ("{\"x token\": \"letmein\"}", "the header `x token`: this is no name"),
        ("{\"x\\u001b[1m\": \"letmein\"}", "the header `x\\u{1b}[1m`: this is no name"),
        ("{\"Host\": \"letmein\"}", "the header `Host`: the program sets it itself"),
        ("{\"content-length\": 1}", "the header `content-length`"),
        ("{\"Transfer-Encoding\": \"chunked\"}", "the header `Transfer-Encoding`"),
        ("{\"content-type\": \"letmein\"}", "the header `content-type`"),
        ("{\"connection\": \"close\"}", "the header `connection`"),
        ("{\"X-A\": \"letmein\", \"x-a\": \"letmein\"}", "the header `x-a`: it is given twice"),
    ];
    for (value, reason) in table {
        let test = elsewhere().env_unset("LLM_API_KEY").env("LLM_EXTRA_HEADERS", value);
        refused(&test, "LLM_EXTRA_HEADERS (environment)")
            .stderr_has(reason)
            .stderr_lacks("letmein");
    }
}

/// A header of one's own makes the key unnecessary; another one does not.
#[test]
fn a_header_can_take_the_place_of_the_key() {
    let test = elsewhere().env_unset("LLM_API_KEY");
    let other = test.again().env("LLM_EXTRA_HEADERS", "{\"x-a\": \"b\"}");
    refused(&other, "LLM_API_KEY is not set");
    let own = test
        .again()
        .env("LLM_EXTRA_HEADERS", "{\"Authorization\": \"Basic letmein\"}")
        .env_unset("LLM_MODEL_NAME");
    refused(&own, "LLM_MODEL_NAME is not set").stderr_lacks("LLM_API_KEY").stderr_lacks("letmein");
}

#[test]
fn a_proxy_that_cannot_be_used_is_refused_without_its_login() {
    let table = [
        ("HTTPS_PROXY", "socks4://letmein:letmein@proxy", "SOCKS 4"),
        ("https_proxy", "ftp://letmein:letmein@proxy", "`ftp` is none of"),
        ("ALL_PROXY", "http://letmein:letmein@proxy:99999", "1 to 65535"),
        ("all_proxy", "http://letmein:letmein", "no port"),
        ("HTTPS_PROXY", "http://letmein:let/letmein@proxy", "%2F"),
        ("HTTPS_PROXY", "http://letmein:letmein@", "no host"),
    ];
    for (name, value, reason) in table {
        refused(
            &elsewhere().env(name, value),
            &format!("{name} (environment) is no usable proxy: "),
        )
        .stderr_has(reason)
        .stderr_lacks("letmein");
    }
    // From a file as from the environment.
    let test = elsewhere().dotenv("A=1\nHTTPS_PROXY=rubbish rubbish\n");
    refused(&test, "HTTPS_PROXY (.env line 2) is no usable proxy");
}

/// An endpoint on this machine has no proxy, so a broken one is no problem.
#[test]
fn a_local_endpoint_has_no_proxy() {
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
fn a_certificate_file_that_holds_none_is_refused() {
    let test = elsewhere()
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
        refused(&test.again().env(name, path), &expected)
            .stderr_has(reason)
            .stderr_lacks("letmein");
    }
    // Its own name wins over those of other tools.
    let test = test.env("CURL_CA_BUNDLE", "c.pem").env("REQUESTS_CA_BUNDLE", "r.pem");
    refused(&test, "REQUESTS_CA_BUNDLE (environment)").stderr_lacks("CURL_CA_BUNDLE");
    let test = test.env("SSL_CERT_FILE", "s.pem");
    refused(&test, "SSL_CERT_FILE (environment)").stderr_lacks("REQUESTS_CA_BUNDLE");
    // Without TLS nobody reads it.
    let server = Server::start([Reply::text("ok")]);
    let plain = test.again().endpoint(&server).args(["hi"]).run();
    plain.success();
    server.finish();
}

/// The folder's own `.env` must not be able to listen in.
#[test]
fn nothing_of_the_users_goes_where_only_the_folder_sends_it() {
    let pem = "-----BEGIN CERTIFICATE-----\n";
    let theirs = "LLM_API_BASE_URL=https://collector.example/v1\nLLM_MODEL_NAME=m\n";
    let with_key = format!("{theirs}LLM_API_KEY=theirs\n");
    let headers = r#"{"x-gateway": "letmein"}"#;
    let table = [
        (
            elsewhere().dotenv("HTTPS_PROXY=http://user:letmein@collector.example:8080\n"),
            "LLM_API_KEY (environment) is not sent through the proxy http://collector.example:8080, which only \
             .env line 1 names",
        ),
        (
            elsewhere().file("ca.pem", pem).dotenv("\nSSL_CERT_FILE=ca.pem\n"),
            "ca.pem`, which only .env line 2 names: set SSL_CERT_FILE",
        ),
        (
            Test::new().env("LLM_EXTRA_HEADERS", headers).dotenv(&with_key),
            "LLM_EXTRA_HEADERS (environment) is not sent to collector.example",
        ),
        (
            Test::new()
                .file("home/key", "letmein")
                .dotenv(&format!("{theirs}LLM_API_KEY_FILE=~/key\n")),
            "LLM_API_KEY_FILE (.env line 3) is not sent to collector.example",
        ),
        (
            Test::new()
                .env("PRIVATE", "letmein")
                .dotenv(&format!("{with_key}LLM_EXTRA_BODY='{{\"user\": \"${{PRIVATE}}\"}}'\n")),
            "LLM_EXTRA_BODY (.env line 4) puts environment variables into what is sent to collector.example",
        ),
        (
            Test::new().env("PRIVATE", "letmein").dotenv(&format!(
                "{with_key}LLM_EXTRA_HEADERS='{{\"x-user\": \"${{PRIVATE}}\"}}'\n"
            )),
            "LLM_EXTRA_HEADERS (.env line 4) is not sent to collector.example",
        ),
        (
            Test::new()
                .env("PRIVATE", "letmein")
                .dotenv(&format!("{with_key}https_proxy=http://${{PRIVATE}}@collector.example\n")),
            "https_proxy (.env line 4) puts environment variables into what is sent",
        ),
    ];
    for (test, expected) in table {
        refused(&test, expected).stderr_has("--env-file").stderr_lacks("letmein");
    }
}
