//! Reply heads that are not HTTP, or unusual HTTP, and wrong lengths.

use std::time::Duration;

use super::fault::{Fault, answers};
use super::streams::{DONE, HEAD, STOP, TEXT};
use crate::harness::{Reply, seconds};

const FOREVER: usize = usize::MAX;

/// A complete answer of more than 64 bytes.
const ANSWER: &str = r#"{"choices":[{"message":{"content":"The answer"},"finish_reason":"stop"}]}"#;

pub(super) fn table() -> Vec<Fault> {
    let mut table = not_http();
    table.extend(too_much());
    table.extend(strange());
    table.extend(lengths());
    table.extend(chunks());
    table
}

/// A complete answer with this head.
fn headed(head: &str) -> Reply {
    let length = ANSWER.len();
    Reply::raw(format!("{head}\r\nContent-Length: {length}\r\n\r\n{ANSWER}")).then_close()
}

/// Replies in another protocol, or in none, for which a retry is useless.
fn not_http() -> Vec<Fault> {
    let told = |name, bytes: &[u8]| {
        answers(name, Reply::raw(bytes).hang()).fails_permanently().says("the reply is not HTTP")
    };
    vec![
        told("a status line of garbage", b"\x00\xff\x13garbage\r\n\r\n"),
        told("a page without a head (HTTP/0.9)", b"<html><title>Hi</title></html>\r\n\r\n"),
        told("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        told("frames of HTTP/2", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80"),
        answers("TLS instead of plain HTTP", Reply::raw([0x15, 3, 1, 0, 2, 2, 22]).hang())
            .fails_permanently()
            .says("speaks TLS, not plain http"),
        told("a banner of SSH", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
        told("a banner of SMTP", b"220 mail.example ESMTP\r\n"),
        told("an error of Redis", b"-ERR unknown command 'POST'\r\n"),
        told("HTTP of another version", b"HTTP/3.7 200 OK\r\n\r\n"),
        told("a status of letters", b"HTTP/1.1 abc OK\r\n\r\n"),
        told("a status of two digits", b"HTTP/1.1 99 Low\r\n\r\n"),
        told("a header without a colon", b"HTTP/1.1 200 OK\r\nthis is no header\r\n\r\n"),
        told("a NUL in a header", b"HTTP/1.1 200 OK\r\nX-Nul: a\x00b\r\n\r\n"),
    ]
}

/// Heads beyond every limit. The message contains "header" or "head", which distinguishes it from
/// errors in the body.
fn too_much() -> Vec<Fault> {
    let head = || Reply::raw("HTTP/1.1 200 OK\r\n");
    vec![
        answers("a header of 1 MB", {
            head().then(format!("X-Large: {}\r\n\r\n{ANSWER}", "a".repeat(1 << 20))).then_close()
        })
        .fails_permanently()
        .says("head"),
        answers("10,000 headers", {
            head().then("X-Many: a\r\n".repeat(10_000)).then(format!("\r\n{ANSWER}")).then_close()
        })
        .fails_permanently()
        .says("head"),
        answers("headers without end", {
            head().then_repeat(FOREVER, Duration::ZERO, "X-Many: a\r\n".repeat(1000))
        })
        .fails_permanently()
        .says("head"),
        answers("a status line without end", {
            Reply::raw("HTTP/1.1 200 ").then_repeat(FOREVER, Duration::ZERO, "a".repeat(10_000))
        })
        .fails_permanently()
        .says("head"),
        // The run timeout ends it if no other limit does.
        answers("interim replies without end", {
            let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
            Reply::empty().then_repeat(FOREVER, Duration::ZERO, interim)
        })
        .args(["--timeout", "2"])
        .reaches_a_limit()
        .or_status(1)
        .within(4.5),
    ]
}

/// Unusual heads that are accepted.
fn strange() -> Vec<Fault> {
    let understood = |name, head: &str| answers(name, headed(head)).answers_with("The answer");
    let interim = |status| format!("HTTP/1.1 {status}\r\n\r\nHTTP/1.1 200 OK");
    vec![
        understood("HTTP/1.0", "HTTP/1.0 200 OK"),
        understood("a status without a reason", "HTTP/1.1 200"),
        understood("a reason that is not ASCII", "HTTP/1.1 200 d’accord"),
        understood("100 before the reply", &interim("100 Continue")),
        understood("103 before the reply", &interim("103 Early Hints")),
        understood("a wrong content type", "HTTP/1.1 200 OK\r\nContent-Type: text/html"),
        understood("a broken content type", "HTTP/1.1 200 OK\r\nContent-Type: ;;/=\"charset"),
        understood("a header of bytes", "HTTP/1.1 200 OK\r\nX-Bytes: \u{fffd}é"),
        understood("a cookie", "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/"),
        answers("lines of the head end with LF", {
            Reply::raw(format!("HTTP/1.1 200 OK\nContent-Type: text/plain\n\n{ANSWER}"))
                .then_close()
        })
        .answers_with("The answer"),
        answers("another protocol is switched to", {
            Reply::raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
                .then_close()
        })
        .fails_permanently(),
    ]
}

/// Wrong `Content-Length`. The header decides, as in every HTTP client (RFC 9112, 6.3): a shorter
/// body was cut in transit.
fn lengths() -> Vec<Fault> {
    let sized = |length: &str, body: &str| {
        Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"))
    };
    let whole_stream = format!("{TEXT}{STOP}{DONE}");
    vec![
        answers("a length that is too long, closed", sized("5000", ANSWER).then_close())
            .fails_temporarily(),
        answers("a length that is too long, silent", sized("5000", ANSWER).hang())
            .stays_silent("1 s")
            .within(3.5),
        // After `[DONE]` nothing more is expected, whatever the length.
        answers("a stream whose length is too long", sized("5000", &whole_stream).hang())
            .answers_with("The answer"),
        answers("a length that is too short", sized("20", ANSWER).then_close()).fails_permanently(),
        answers("a stream whose length is too short", {
            sized(&(TEXT.len() + 10).to_string(), &whole_stream).then_close()
        })
        .cut_off_after("The answer"),
        answers("a length below zero", sized("-1", ANSWER).then_close()).fails_permanently(),
        answers("a length of words", sized("many", ANSWER).then_close()).fails_permanently(),
        answers(
            "a length beyond all numbers",
            sized("99999999999999999999999", ANSWER).then_close(),
        )
        .fails_permanently(),
        // Not the same as a missing length: it enables response smuggling.
        answers("two different lengths", {
            sized(&format!("{}\r\nContent-Length: 20", ANSWER.len()), ANSWER).then_close()
        })
        .fails_permanently(),
        answers("a length of exabytes, silent", sized("9000000000000000000", "{").hang())
            .stays_silent("1 s")
            .within(3.5),
        answers("a JSON body that ends with the connection", {
            Reply::raw(format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{ANSWER}")).then_close()
        })
        .answers_with("The answer"),
        // A cut connection and the end of such a body cannot be distinguished, and the
        // former is more likely: it is retried.
        answers("a JSON body that is cut with the connection", {
            let half = &ANSWER[..40];
            Reply::raw(format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{half}")).then_close()
        })
        .fails_temporarily(),
    ]
}

fn chunks() -> Vec<Fault> {
    let chunked = |bytes: String| {
        Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").then(bytes)
    };
    let framed = |bytes: &str| format!("{:x}\r\n{bytes}\r\n", bytes.len());
    let end = "0\r\n\r\n";
    vec![
        answers("a chunk size that is not a number", chunked(format!("zz\r\n{ANSWER}")).hang())
            .fails_permanently(),
        answers("a chunk's size below zero", chunked(format!("-5\r\n{ANSWER}")).hang())
            .fails_permanently(),
        answers("a chunk's size beyond all numbers", {
            chunked(format!("{}\r\n{ANSWER}", "f".repeat(40))).hang()
        })
        .fails_permanently(),
        answers("a chunk's size without end", {
            chunked(String::new()).then_repeat(FOREVER, Duration::ZERO, "0".repeat(10_000))
        })
        .fails_permanently()
        .or_status(75)
        .attempts(1..=3),
        answers("a chunk of exabytes", chunked(format!("7fffffffffffffff\r\n{TEXT}")).then_close())
            .cut_off_after("The answer"),
        answers("a chunk that does not end where it should", {
            // Counts as invalid or as silence, depending on which layer waits for the end of line.
            chunked(format!("5\r\n{TEXT}")).hang()
        })
        .fails_permanently()
        .or_status(75),
        answers("a stream without its last chunk", {
            chunked(framed(&format!("{TEXT}{STOP}"))).then_close()
        })
        .answers_with("The answer"),
        answers("a JSON body without its last chunk", chunked(framed(ANSWER)).then_close())
            .fails_temporarily(),
        answers(
            "a bad chunk after text",
            chunked(framed(TEXT)).then_repeat(1, seconds(0.1), "zz\r\n").hang(),
        )
        .cut_off_after("The answer"),
        answers("extensions and trailers of chunks", {
            let length = ANSWER.len();
            chunked(format!("{length:x};a=b\r\n{ANSWER}\r\n0\r\nX-Trailer: a\r\n\r\n")).then_close()
        })
        .answers_with("The answer"),
        // With both headers, chunks have precedence (RFC 9112, 6.3).
        answers("chunks and a length", {
            let body = framed(ANSWER);
            let head =
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 20\r\n\r\n";
            Reply::raw(format!("{head}{body}{end}")).then_close()
        })
        .answers_with("The answer"),
        answers("one byte a chunk", {
            let body: String =
                format!("{TEXT}{STOP}{DONE}").chars().map(|c| framed(&c.to_string())).collect();
            chunked(body + end)
        })
        .answers_with("The answer"),
        answers("a compressed body that was not requested", {
            let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0];
            Reply::status(200).header("Content-Encoding", "gzip").body(gzip)
        })
        .fails_permanently(),
        answers("a stream that ends with the connection", {
            Reply::raw(HEAD).then(format!("{TEXT}{STOP}")).then_close()
        })
        .answers_with("The answer"),
    ]
}
