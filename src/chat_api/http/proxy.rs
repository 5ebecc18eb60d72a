//! Connections through a proxy: a tunnel for https (`CONNECT`, RFC 9110 9.3.6), the absolute
//! form for plain http (`absolute_form.rs`), SOCKS 5 for both.
//!
//! `ureq` would request a tunnel for plain http too, which most proxies refuse for ports other
//! than 443.

use std::io::{self, Read, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ureq::http::StatusCode;
use ureq::unversioned::transport::{ConnectionDetails, Transport, TransportAdapter};

use crate::http::absolute_form::AbsoluteForm;
use crate::http::peer::{Peer, connect_failure};
use crate::http::socks::{self, CHECK_LOGIN_HINT};
use crate::http::transport::{Dialer, USER_AGENT};
use crate::request_failure::RequestFailure;
use crate::{Proxy, ProxyScheme};
use base::error::ErrorKind;
use base::limits;
use base::secret::Secret;
use host::cancellation::StopReason;
use host::net::Handshake;

impl Dialer {
    /// Opens a connection to `target` through a proxy.
    pub(super) fn open_through_proxy(
        &self,
        proxy: &Proxy,
        target: &Peer,
        details: &ConnectionDetails<'_>,
    ) -> Result<Box<dyn Transport>, ureq::Error> {
        let peer = Peer::from_proxy(proxy);
        if proxy.scheme == ProxyScheme::Socks {
            return self.open_socks(proxy, &peer, target, details);
        }
        let transport = self.new_transport(self.open(&peer)?, Some(&peer), details);
        if !details.needs_tls() {
            return Ok(Box::new(AbsoluteForm::new(transport, target)));
        }
        let mut stream = TransportAdapter::new(transport, details.current_time.clone());
        stream.set_timeout(details.timeout);
        open_tunnel(&mut stream, &peer, target, proxy.login.as_ref())?;
        Ok(stream.into_inner())
    }

    fn open_socks(
        &self,
        proxy: &Proxy,
        peer: &Peer,
        target: &Peer,
        details: &ConnectionDetails<'_>,
    ) -> Result<Box<dyn Transport>, ureq::Error> {
        let (mut connection, deadline) = self.open(peer)?;
        let mut handshake = Handshake {
            connection: &mut connection,
            deadline,
            cancellation: &self.shared.cancellation,
        };
        let route = socks::Route { proxy: peer, target };
        socks::connect(&mut handshake, proxy.login.as_ref(), &route)
            .map_err(|error| no_answer_failure(peer, error))?;
        let plain_peer = (!details.needs_tls()).then_some(target);
        Ok(self.new_transport((connection, deadline), plain_peer, details))
    }
}

/// Returns the error for a proxy that closed the connection or did not answer in time.
fn no_answer_failure(peer: &Peer, error: io::Error) -> ureq::Error {
    if let Some(StopReason::Silence(_)) = StopReason::from_io_error(&error) {
        let seconds = limits::CONNECT_TIMEOUT.as_secs();
        let cause = format!("{peer} did not answer within {seconds} s");
        let hint =
            "check that the proxy speaks the protocol that its address names: http or socks5h";
        return RequestFailure::temporary(cause).with_hint(hint).into();
    }
    connect_failure(
        error,
        |error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                RequestFailure::temporary(format!("{peer} closed the connection without an answer"))
            }
            _ => RequestFailure::temporary(format!("the connection to {peer} failed: {error}")),
        },
        String::new,
    )
}

/// Returns the value of the header with the login.
pub(super) fn basic_authorization((user, password): &(String, Option<Secret>)) -> String {
    let pair = format!("{user}:{}", password.as_ref().map_or("", Secret::reveal));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// Sends `CONNECT` and reads the head of the answer, and no byte more.
fn open_tunnel(
    stream: &mut (impl Read + Write),
    peer: &Peer,
    target: &Peer,
    login: Option<&(String, Option<Secret>)>,
) -> Result<(), ureq::Error> {
    let authority = target.authority();
    let login_line = login.map_or_else(String::new, |login| {
        format!("Proxy-Authorization: {}\r\n", basic_authorization(login))
    });
    let request = format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {USER_AGENT}\r\n\
         Proxy-Connection: Keep-Alive\r\n{login_line}\r\n"
    );
    let to_failure = |error| no_answer_failure(peer, error);
    stream.write_all(request.as_bytes()).map_err(to_failure)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).map_err(to_failure)?;
        head.push(byte[0]);
        let is_not_http = head.len() <= HTTP.len() && !HTTP.starts_with(&head);
        if is_not_http || head.len() > limits::PROXY_HEAD_BYTES {
            return Err(not_http_error(peer).into());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let status = parse_status(&head).ok_or_else(|| not_http_error(peer))?;
    if status.is_success() {
        return Ok(());
    }
    Err(status_error(peer, &authority, status, &head, login.is_some()).into())
}

const HTTP: &[u8] = b"HTTP/1.";

fn not_http_error(peer: &Peer) -> RequestFailure {
    RequestFailure::new(ErrorKind::Endpoint, format!("{peer} does not speak HTTP"))
        .with_hint("the address of a SOCKS proxy begins with socks5h://")
}

/// Returns the error for a status. It omits the proxy's own text, which may quote the login.
fn status_error(
    peer: &Peer,
    target: &str,
    status: StatusCode,
    head: &str,
    has_login: bool,
) -> RequestFailure {
    let text = format!("status {status}");
    match status.as_u16() {
        407 => {
            let headers = head.lines().filter_map(|line| line.split_once(':'));
            let offers = headers
                .filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authenticate"))
                .map(|(_, value)| value);
            login_failure(peer, offers, has_login)
        }
        // tinyproxy answers a wrong login with this status.
        401 if has_login => {
            RequestFailure::new(ErrorKind::Auth, format!("{peer} refused the login: {text}"))
                .with_hint(CHECK_LOGIN_HINT)
        }
        500.. => RequestFailure::temporary(format!("{peer} cannot connect to {target}: {text}")),
        400 | 404 | 405 => RequestFailure::new(
            ErrorKind::Endpoint,
            format!("{peer} does not open tunnels to {target}: {text}"),
        )
        .with_hint("check that this is the address of a proxy that supports https"),
        _ => RequestFailure::new(
            ErrorKind::Endpoint,
            format!("{peer} refused to connect to {target}: {text}"),
        )
        .with_hint("the rules of the proxy decide which hosts and ports it connects to"),
    }
}

/// Returns the failure for status 407: the proxy requires a login, requires another kind of login
/// (`offers` are those that it accepts), or refused this one.
pub(super) fn login_failure<'o>(
    peer: &Peer,
    offers: impl Iterator<Item = &'o str>,
    has_login: bool,
) -> RequestFailure {
    let kinds: Vec<&str> = offers.filter_map(|offer| offer.split_whitespace().next()).collect();
    let offers_basic = kinds.is_empty() || kinds.iter().any(|k| k.eq_ignore_ascii_case("basic"));
    let (cause, hint) = match (offers_basic, has_login) {
        (false, _) => (
            "requires a kind of login that this program does not support",
            "only Basic is supported; a local proxy in between can add other kinds",
        ),
        (true, false) => (
            "requires a login",
            "add user and password to the proxy's address: http://user:password@host:port",
        ),
        (true, true) => ("refused the login", CHECK_LOGIN_HINT),
    };
    let cause = format!("{peer} {cause}: status 407 Proxy Authentication Required");
    RequestFailure::new(ErrorKind::Auth, cause).with_hint(hint)
}

/// Parses the status in the first line of a response.
fn parse_status(head: &str) -> Option<StatusCode> {
    let code = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?;
    StatusCode::from_bytes(code.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a proxy, and the request that it received.
    struct Answer<'a>(&'a [u8], Vec<u8>);

    impl Read for Answer<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl Write for Answer<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn peer(host: &str, port: u16, is_proxy: bool) -> Peer {
        Peer { host: host.into(), port, is_proxy, setting: "" }
    }

    fn login() -> (String, Option<Secret>) {
        ("me".into(), Secret::new("it: is"))
    }

    fn tunnel(answer: &[u8], has_login: bool) -> (Result<(), String>, String, usize) {
        let mut stream = Answer(answer, Vec::new());
        let proxy = peer("192.0.2.1", 3128, true);
        let target = peer("2001:db8::1", 443, false);
        let result = open_tunnel(&mut stream, &proxy, &target, has_login.then(login).as_ref());
        let result = result.map_err(|error| match error {
            ureq::Error::Io(error) => {
                let failure = error.downcast::<RequestFailure>().unwrap();
                format!("{:?} {}", failure.is_retryable, failure.error("url"))
            }
            other => panic!("{other}"),
        });
        (result, String::from_utf8(stream.1).unwrap(), stream.0.len())
    }

    #[test]
    fn logins_are_sent_as_basic() {
        assert_eq!(basic_authorization(&login()), "Basic bWU6aXQ6IGlz");
        assert_eq!(basic_authorization(&("token".into(), None)), "Basic dG9rZW46");
    }

    #[test]
    fn a_tunnel_is_requested_and_only_the_answer_is_read() {
        let answer = b"HTTP/1.0 200 Connection established\r\nA: b\r\n\r\n\x16\x03";
        let (result, request, left) = tunnel(answer, true);
        result.unwrap();
        assert_eq!(left, 2);
        assert!(
            request
                .starts_with("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n")
        );
        assert!(request.ends_with("\r\nProxy-Authorization: Basic bWU6aXQ6IGlz\r\n\r\n"));
        tunnel(b"HTTP/1.1 204 \n\n", false).0.unwrap();
    }

    #[test]
    fn errors_of_refused_tunnels_have_a_reason() {
        let assert_error = |answer: &str, has_login, expected: &[&str]| {
            let text = tunnel(answer.as_bytes(), has_login).0.unwrap_err();
            for words in expected.iter().chain(&["the proxy 192.0.2.1:3128"]) {
                assert!(text.contains(words), "{answer}: {text}");
            }
        };
        let login_required = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n";
        assert_error(
            login_required,
            false,
            &["false", "requires a login: status 407", "http://user:password@"],
        );
        assert_error(login_required, true, &["refused the login", "check user"]);
        let other = "HTTP/1.1 407 No\r\nproxy-authenticate: NTLM\r\n\r\n";
        assert_error(other, false, &["only Basic"]);
        assert_error(
            "HTTP/1.1 403 No\r\n\r\n",
            false,
            &["false", "refused to connect", "status 403 Forbidden"],
        );
        assert_error(
            "HTTP/1.1 502 No\r\n\r\n",
            false,
            &["true", "cannot connect to [2001:db8::1]:443: status 502"],
        );
        assert_error("HTTP/1.1 405 No\r\n\r\n", false, &["the address of a proxy"]);
        assert_error("HTTP/1.1 xyz\r\n\r\n", false, &["does not speak HTTP"]);
        assert_error("\x05\u{ff}", false, &["does not speak HTTP", "socks5h://"]);
        assert_error("", false, &["true", "closed the connection"]);
        assert_error("HTTP/1.1 200 OK\r\n", false, &["closed the connection"]);
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(5000));
        assert_error(&endless, false, &["does not speak HTTP"]);
    }
}
