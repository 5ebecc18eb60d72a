//! Connections to the endpoint: proxies, TLS, certificates, and the error messages when one of them
//! fails.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use crate::harness::{
    Outcome, Proxy, Reply, Server, Stopwatch, Test, TlsServer, seconds, tls_file,
};

/// The proxy login, which must not appear in any output. In base64: `dXNlcjpob3JzZS1zdGFwbGU=`.
const LOGIN: &str = "user:horse-staple";
const BASE64: &str = "dXNlcjpob3JzZS1zdGFwbGU=";

fn ask(test: Test) -> Outcome {
    let run = test.args(["hi"]).run();
    run.stderr_lacks("horse-staple").stderr_lacks(BASE64)
}

/// An endpoint behind a proxy, with a name that this machine cannot resolve.
fn behind_proxy(server: &Server, scheme: &str) -> Test {
    Test::new()
        .endpoint(server)
        .env("LLM_API_BASE_URL", format!("{scheme}://llm.test:8080/v1"))
        .env("SSL_CERT_FILE", tls_file("ca.pem"))
}

#[test]
fn http_requests_to_a_proxy_use_the_absolute_form() {
    let server = Server::start([Reply::calls([("list_skills", "{}")]), Reply::text("4")]);
    let proxy = Proxy::start(server.port());
    let test = behind_proxy(&server, "http").env("HTTP_PROXY", proxy.url("http", ""));
    ask(test.skill("a", "# A")).success().stdout("4\n");
    let request = "POST http://llm.test:8080/v1/chat/completions";
    assert_eq!(proxy.requests(), [request, request]);
    let requests = server.finish();
    assert_eq!(requests[0].header("host"), Some("llm.test:8080"));
    assert_eq!(requests[1].connection, 1, "the connection is kept");
}

#[test]
fn https_uses_a_tunnel() {
    let server = Server::start([Reply::calls([("list_skills", "{}")]), Reply::text("4")]);
    let tls = TlsServer::start("server", server.port());
    let proxy = Proxy::start(tls.port());
    let test = behind_proxy(&server, "https").env("HTTPS_PROXY", proxy.url("http", ""));
    ask(test.skill("a", "# A")).success().stdout("4\n");
    assert_eq!(proxy.requests(), ["CONNECT llm.test:8080"]);
    assert_eq!(server.finish()[1].connection, 1);
}

#[test]
fn socks_proxy_serves_http_and_https() {
    // The proxy gets the name: this machine cannot look it up.
    for (scheme, way) in [("http", "socks5h"), ("https", "socks5h"), ("https", "socks5")] {
        let server = Server::start([Reply::text("4"), Reply::text("5")]);
        let tls = TlsServer::start("server", server.port());
        let target = if scheme == "http" { server.port() } else { tls.port() };
        let proxy = Proxy::start(target);
        let test = behind_proxy(&server, scheme).env("ALL_PROXY", proxy.url(way, ""));
        ask(test).success().stdout("4\n");
        assert_eq!(proxy.requests(), ["SOCKS llm.test 8080"]);
        let proxy = Proxy::requiring_login(target, LOGIN, BASE64);
        let test = behind_proxy(&server, scheme);
        ask(test.env("ALL_PROXY", proxy.url(way, "user:horse-staple@"))).success().stdout("5\n");
        server.finish();
    }
    let server = Server::start([Reply::text("4")]);
    let proxy = Proxy::start(server.port());
    let test = behind_proxy(&server, "http").env("ALL_PROXY", proxy.url("socks5", ""));
    ask(test.env("LLM_API_BASE_URL", "http://192.0.2.1/v1")).success();
    assert_eq!(proxy.requests(), ["SOCKS 192.0.2.1 80"]);
    server.finish();
}

/// The login is sent to proxies that require it, and refusals name a remedy.
#[test]
fn proxy_logins_are_sent_and_refusals_explained() {
    let server = Server::start([Reply::text("4"), Reply::text("5")]);
    let tls = TlsServer::start("server", server.port());
    for (scheme, target) in [("http", server.port()), ("https", tls.port())] {
        let proxy = Proxy::requiring_login(target, LOGIN, BASE64);
        let run = |way: &str, login: &str| {
            ask(behind_proxy(&server, scheme).env("ALL_PROXY", proxy.url(way, login)))
        };
        run("http", "user:horse-staple@").success();
        let name = format!("the proxy 127.0.0.1:{}", proxy.port());
        run("http", "").status(77).stderr_has(&format!("{name} requires a login: status 407"))
            .stderr_has("hint: add user and password to the proxy's address: http://user:password@host:port");
        run("http", "user:horse-stapler@")
            .status(77)
            .stderr_has(&format!("{name} refused the login"));
        run("socks5h", "").status(77).stderr_has(&format!("{name} requires a login"));
        run("socks5h", "user:horse-stapler@")
            .status(77)
            .stderr_has(&format!("{name} refused the login"));
    }
    server.finish();
}

/// Addresses that are not proxies, or proxies that fail: one clear line that names them.
#[test]
#[ignore = "long"]
fn failing_proxies_are_named() {
    let server = Server::start([]);
    let table: [(&[u8], &str, i32, &str); 8] = [
        (
            b"HTTP/1.1 403 Forbidden\r\n\r\n",
            "http",
            1,
            "refused to connect to llm.test:8080: status 403",
        ),
        (
            b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
            "http",
            75,
            "cannot connect to llm.test:8080: status 502",
        ),
        (b"SSH-2.0-OpenSSH\r\n", "http", 1, "does not speak HTTP"),
        (b"", "http", 75, "closed the connection without an answer"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "http", 1, "speaks TLS, not plain http"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "socks5h", 1, "does not speak SOCKS 5"),
        (b"\x05\x00\x05\x05", "socks5h", 75, "cannot connect to llm.test:8080: connection refused"),
        (b"\x05\x00\x05", "socks5h", 75, "closed the connection without an answer"),
    ];
    for (answer, scheme, status, words) in table {
        let proxy = Proxy::replying_with(answer, true);
        let run = ask(behind_proxy(&server, "https").env("HTTPS_PROXY", proxy.url(scheme, "")));
        run.status(status).stderr_has(&format!("the proxy 127.0.0.1:{} {words}", proxy.port()));
    }
    let unreachable = Server::refusing_connections();
    let url = format!("http://127.0.0.1:{}", unreachable.port());
    ask(behind_proxy(&server, "https").env("HTTPS_PROXY", url)).status(75).stderr_has(&format!(
        "failed to connect to the proxy 127.0.0.1:{}: Connection refused",
        unreachable.port()
    ));
    ask(behind_proxy(&server, "https").env("HTTPS_PROXY", "http://no-such-proxy.invalid:1"))
        .status(75)
        .stderr_has("failed to look up the proxy `no-such-proxy.invalid`");
}

/// An error response of the proxy itself is attributed to the proxy.
#[test]
fn proxy_refusal_is_reported_as_the_proxys() {
    let page = "HTTP/1.1 403 Forbidden\r\nServer: squid/5.7\r\nContent-Length: 0\r\n\r\n";
    let proxy = Proxy::replying_with(page.as_bytes(), true);
    let server = Server::start([]);
    ask(behind_proxy(&server, "http").env("HTTP_PROXY", proxy.url("http", "")))
        .status(77)
        .stderr_has("hint: the proxy answered this, not the endpoint");
}

/// Every phase of connecting ends immediately on a signal and at `--timeout`.
#[test]
fn connecting_ends_immediately_by_signal_and_timeout() {
    let silent = Proxy::replying_with(b"", false);
    let half = Proxy::replying_with(b"\x05\x00", false);
    let server = Server::start([]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let full = listener.local_addr().unwrap();
    // SAFETY: shortens the queue of an open socket that listens.
    unsafe { libc::listen(listener.as_raw_fd(), 0) };
    let _in_the_queue = TcpStream::connect(full).unwrap();
    let ways = [
        behind_proxy(&server, "https").env("HTTPS_PROXY", silent.url("http", "")),
        behind_proxy(&server, "http").env("HTTP_PROXY", silent.url("http", "")),
        behind_proxy(&server, "https").env("HTTPS_PROXY", silent.url("socks5h", "")),
        behind_proxy(&server, "https").env("HTTPS_PROXY", half.url("socks5h", "")),
        // TLS with a peer that sends nothing.
        Test::new().endpoint(&server).env("LLM_API_BASE_URL", silent.url("https", "")),
        // An address that does not answer at all.
        Test::new().endpoint(&server).env("LLM_API_BASE_URL", format!("http://{full}/v1")),
        behind_proxy(&server, "https").env("HTTPS_PROXY", format!("http://{full}")),
    ];
    let runs = ways.each_ref().map(|test| test.next_run().args(["--timeout", "1", "hi"]).spawn());
    for run in runs {
        let run = run.wait().status(3);
        run.took_at_least(seconds(1.0)).took_at_most(seconds(1.5));
    }
    let runs = ways.each_ref().map(|test| test.next_run().args(["hi"]).spawn());
    std::thread::sleep(seconds(0.5));
    for run in runs {
        let start = Stopwatch::start();
        run.signal(libc::SIGINT);
        run.wait().status(-libc::SIGINT);
        let took = start.elapsed_for_limit(seconds(0.3));
        assert!(took <= seconds(0.3), "{took:?}");
    }
}

/// Certificate errors name the cause, are not retried, and exit with status 1.
#[test]
fn refused_certificates_are_explained() {
    let server = Server::start([]);
    let table = [
        ("server", None, "is not trusted: it is self-signed, or its authority is unknown"),
        ("self-signed", None, "is not trusted: it is self-signed"),
        ("server", Some("self-signed.pem"), "is not trusted"),
        ("self-signed", Some("ca.pem"), "is not trusted: it is self-signed"),
        ("expired", Some("ca.pem"), "expired"),
        ("future", Some("ca.pem"), "is not valid yet"),
        ("other-name", Some("ca.pem"), "is for other.test, not for localhost"),
    ];
    for (certificate, roots, words) in table {
        let tls = TlsServer::start(certificate, server.port());
        let mut test = Test::new()
            .endpoint(&server)
            .env("LLM_API_BASE_URL", format!("https://localhost:{}/v1", tls.port()));
        if let Some(roots) = roots {
            test = test.env("SSL_CERT_FILE", tls_file(roots));
        }
        let run = ask(test.env("LLM_API_KEY", "none"));
        let run = run
            .status(1)
            .stdout_is_empty()
            .stderr_lacks("try 2")
            .stderr_has(&format!("the certificate of localhost:{} {words}", tls.port()));
        let system = "hint: if you trust that server's authority, set SSL_CERT_FILE";
        match roots {
            _ if words.ends_with("it is self-signed") => {
                run.stderr_has("hint: if you trust it, put it")
            }
            None => run.stderr_has(system),
            Some(roots) if words.contains("unknown") => run.stderr_has(&format!(
                "{roots}, which holds neither that certificate nor its authority's"
            )),
            Some(_) => run,
        };
    }
}

#[test]
fn certificates_of_the_user_are_trusted() {
    let server = Server::start([Reply::text("1"), Reply::text("2"), Reply::text("3")]);
    let run = |certificate: &str, roots: &str, host: &str| {
        let tls = TlsServer::start(certificate, server.port());
        let test = Test::new().endpoint(&server).env("SSL_CERT_FILE", tls_file(roots));
        ask(test.env("LLM_API_BASE_URL", format!("https://{host}:{}/v1", tls.port())))
    };
    run("server", "ca.pem", "localhost").success().stdout("1\n");
    run("server", "ca.pem", "127.0.0.1").success().stdout("2\n");
    // A certificate as `openssl req -x509` creates it and OpenSSL accepts it.
    run("self-signed", "self-signed.pem", "localhost").success().stdout("3\n");
    let tls = TlsServer::start("self-signed", server.port());
    let proxy = Proxy::start(tls.port());
    let test = behind_proxy(&server, "https").env("SSL_CERT_FILE", tls_file("self-signed.pem"));
    ask(test
        .env("LLM_API_BASE_URL", "https://other.test/v1")
        .env("HTTPS_PROXY", proxy.url("http", "")))
    .status(1)
    .stderr_has("is for localhost, llm.test, 127.0.0.1, not for other.test");
    server.finish();
}

#[test]
fn file_without_readable_certificates_exits_78() {
    let server = Server::start([]);
    let pem = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let test = Test::new().endpoint(&server).file("bad.pem", pem.repeat(2));
    let path = test.path("bad.pem");
    ask(test.env("SSL_CERT_FILE", path).env("LLM_API_BASE_URL", "https://127.0.0.1:1/v1"))
        .status(78)
        .stderr_has("holds 2 certificates, none of which can be read");
}

/// Requirements of the server that are not met; http and https confused.
#[test]
fn failed_handshakes_are_explained() {
    let server = Server::start([]);
    let at = |port: u16, scheme: &str| {
        let test = Test::new().endpoint(&server).env("SSL_CERT_FILE", tls_file("ca.pem"));
        ask(test.env("LLM_API_BASE_URL", format!("{scheme}://localhost:{port}/v1")))
    };
    let wants = "context.verify_mode = ssl.CERT_REQUIRED; context.load_verify_locations(ca)";
    let tls = TlsServer::start_with_context("server", server.port(), wants);
    at(tls.port(), "https").status(1).stderr_has("requires a client certificate");
    let old = format!("{wants}; context.maximum_version = ssl.TLSVersion.TLSv1_2");
    let tls = TlsServer::start_with_context("server", server.port(), &old);
    at(tls.port(), "https").status(1).stderr_has("client certificate");
    let plain =
        Proxy::replying_with(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", true);
    at(plain.port(), "https")
        .status(1)
        .stderr_has(&format!("localhost:{} speaks plain http, not https", plain.port()))
        .stderr_has(&format!("LLM_API_BASE_URL must begin with http://localhost:{}", plain.port()));
    let other = Proxy::replying_with(b"SSH-2.0-OpenSSH_9.2\r\n", true);
    at(other.port(), "https").status(1).stderr_has("does not speak TLS");
    let closing = Proxy::replying_with(b"", true);
    at(closing.port(), "https")
        .status(75)
        .stderr_has("closed the connection during the TLS handshake");
    let alert = Proxy::replying_with(b"\x15\x03\x01\x00\x02\x02\x46", true);
    at(alert.port(), "https").status(1).stderr_has("only an old version of TLS");
    at(alert.port(), "http")
        .status(1)
        .stderr_has(&format!("localhost:{} speaks TLS, not plain http", alert.port()))
        .stderr_has("LLM_API_BASE_URL must begin with https://localhost:");
}
