//! Which certificates in `SSL_CERT_FILE` may sign others, and which are trusted only as themselves.
//! curl and OpenSSL trust the same certificates.

use std::fs;

use crate::harness::{Outcome, Proxy, Reply, Server, Test, TlsServer, tls_file};

const UNKNOWN: &str = "is not trusted: it is self-signed, or its authority is unknown";

/// Sends a question to `https://{host}`, which presents this certificate. The certificates in the
/// files `roots` are trusted.
fn ask(server: &Server, roots: &[&str], certificate: &str, host: &str) -> Outcome {
    let tls = TlsServer::start(certificate, server.port());
    let proxy = Proxy::start(tls.port());
    let url = format!("https://{host}/v1");
    trusting(server, roots)
        .env("LLM_API_BASE_URL", url)
        .env("HTTPS_PROXY", proxy.url("http", ""))
        .args(["hi"])
        .run()
}

fn trusting(server: &Server, roots: &[&str]) -> Test {
    let pem =
        roots.iter().map(|name| fs::read_to_string(tls_file(&format!("{name}.pem"))).unwrap());
    let test = Test::new().endpoint(server);
    let test = test.file("roots.pem", pem.collect::<String>());
    let path = test.path("roots.pem");
    test.env("SSL_CERT_FILE", path)
}

/// The attack: a certificate that is not an authority's signs one for another name.
#[test]
fn only_an_authority_can_sign_certificates() {
    let server = Server::start([]);
    let table = [
        ("other-name", "by-other-name"),
        ("v1-leaf", "by-v1-leaf"),
        ("ca-unsigning", "by-ca-unsigning"),
        ("ca-mail", "by-ca-mail"),
        // The same key and subject, and also self-signed.
        ("self-leaf", "self-leaf-again"),
    ];
    for (roots, certificate) in table {
        // A trusted authority in the same file does not make it one.
        for roots in [&[roots][..], &["ca", roots]] {
            ask(&server, roots, certificate, "llm.test")
                .status(1)
                .stdout_is_empty()
                .stderr_has(&format!("the certificate of llm.test:443 {UNKNOWN}"));
        }
    }
    assert!(server.finish().is_empty(), "nothing was sent");
}

#[test]
fn authority_next_to_other_certificates_can_sign() {
    let table: [(&[&str], &str); 5] = [
        (&["ca"], "server"),
        (&["v1"], "by-v1"),
        (&["self-leaf", "ca", "other-name"], "server"),
        (&["v1-leaf", "v1", "ca-mail"], "by-v1"),
        (&["v1", "ca", "self-leaf"], "self-leaf"),
    ];
    let server = Server::start(table.map(|_| Reply::text("4")));
    for (roots, certificate) in table {
        ask(&server, roots, certificate, "llm.test").success().stdout("4\n");
    }
    server.finish();
}

#[test]
fn other_certificates_are_trusted_as_themselves() {
    let server = Server::start(["1", "2", "3"].map(Reply::text));
    for certificate in ["server", "self-leaf", "self-signed"] {
        ask(&server, &[certificate], certificate, "llm.test").success();
        // Not for a name that is not in the certificate.
        ask(&server, &[certificate], certificate, "other.test")
            .status(1)
            .stderr_has("is for localhost, llm.test, 127.0.0.1, not for other.test");
    }
    for (certificate, words) in [("expired", "expired"), ("future", "is not valid yet")] {
        ask(&server, &[certificate], certificate, "llm.test")
            .status(1)
            .stderr_has(&format!("the certificate of llm.test:443 {words}"));
    }
    // Its issuer is not trusted.
    ask(&server, &["server"], "other-name", "other.test")
        .status(1)
        .stderr_has(&format!("the certificate of other.test:443 {UNKNOWN}"))
        .stderr_has("roots.pem, which holds neither that certificate nor its authority's");
    server.finish();
}
