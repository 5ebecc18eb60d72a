//! Connections through a proxy: a tunnel for https (`CONNECT`, RFC 9110 9.3.6), the absolute
//! form for plain http (`http_proxy.rs`), SOCKS 5 for both.
//!
//! `ureq` would request a tunnel for plain http too, which most proxies refuse for ports other
//! than 443.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ureq::http::StatusCode;
use ureq::unversioned::transport::{ConnectionDetails, LazyBuffers, Transport, TransportAdapter};

use crate::config::{Proxy, ProxyScheme};
use crate::error::ErrorKind;
use crate::limits;
use crate::model::http::connect_error::ConnectError;
use crate::model::http::http_proxy::HttpProxy;
use crate::model::http::peer::{Peer, connect_failure};
use crate::model::http::proxy_errors::{
    CHECK_LOGIN_HINT, connection_lost, login_error, parse_status,
};
use crate::model::http::socks::{self, SocksDestination, SocksError};
use crate::model::http::transport::{Dialer, USER_AGENT};
use crate::secret::Secret;
use crate::world::cancellation::StopReason;
use crate::world::net::Handshake;

impl Dialer {
    /// Opens a connection to `target` through a proxy.
    pub(super) fn open_through_proxy(
        &self,
        proxy: &Proxy,
        target: &Peer,
        details: &ConnectionDetails<'_>,
    ) -> Result<Box<dyn Transport>, ureq::Error> {
        let peer = Peer { host: proxy.host.clone(), port: proxy.port, is_proxy: true };
        let is_encrypted = match proxy.scheme {
            ProxyScheme::Socks5 | ProxyScheme::Socks5h => {
                return self.open_socks(proxy, &peer, target, details);
            }
            ProxyScheme::Http => false,
            ProxyScheme::Https => true,
        };
        let plain_peer = (!is_encrypted).then_some(&peer);
        let mut transport = self.new_transport(self.open(&peer)?, plain_peer, details);
        if is_encrypted {
            transport = Box::new(self.tls.handshake(transport, &peer, details)?);
        }
        let login = proxy.login.as_ref().map(authorization);
        let mut stream = TransportAdapter::new(transport, details.current_time.clone());
        stream.set_timeout(details.timeout);
        if details.needs_tls() {
            open_tunnel(&mut stream, &peer, target, login.as_deref())?;
            return Ok(stream.into_inner());
        }
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Box::new(HttpProxy::new(stream, buffers, peer, target, login)))
    }

    /// Looks up the addresses of the target, for a proxy that does not look up names (`socks5`).
    fn look_up_locally(
        &self,
        target: &Peer,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, ureq::Error> {
        self.look_up(target, deadline).map_err(|error| match error {
            ureq::Error::Io(error) => match error.downcast::<ConnectError>() {
                Ok(connect_error) => connect_error
                    .with_hint("use socks5h:// to let the proxy look up the name")
                    .into(),
                Err(error) => error.into(),
            },
            other => other,
        })
    }

    fn open_socks(
        &self,
        proxy: &Proxy,
        peer: &Peer,
        target: &Peer,
        details: &ConnectionDetails<'_>,
    ) -> Result<Box<dyn Transport>, ureq::Error> {
        let (mut connection, deadline) = self.open(peer)?;
        let destination = match target.host.parse() {
            Ok(address) => SocksDestination::Address(address),
            Err(_) if proxy.scheme == ProxyScheme::Socks5h => {
                SocksDestination::Name(target.host.clone())
            }
            Err(_) => match self.look_up_locally(target, deadline)?.first() {
                Some(address) => SocksDestination::Address(address.ip()),
                None => SocksDestination::Name(target.host.clone()),
            },
        };
        let mut handshake = Handshake {
            connection: &mut connection,
            deadline,
            cancellation: &self.shared.cancellation,
        };
        socks::connect(&mut handshake, proxy.login.as_ref(), &destination, target.port)
            .map_err(|error| socks_failure(error, peer, target))?;
        let plain_peer = (!details.needs_tls()).then_some(target);
        Ok(self.new_transport((connection, deadline), plain_peer, details))
    }
}

fn socks_failure(error: SocksError, peer: &Peer, target: &Peer) -> ureq::Error {
    let target = target.authority();
    let connect_error = match error {
        SocksError::Io(error) => return no_answer_failure(peer, error),
        SocksError::LoginRequired => {
            ConnectError::new(ErrorKind::Auth, format!("{peer} requires a login")).with_hint(
                "add user and password to the proxy's address: socks5h://user:password@host:port",
            )
        }
        SocksError::LoginRefused => {
            ConnectError::new(ErrorKind::Auth, format!("{peer} refused the login"))
                .with_hint(CHECK_LOGIN_HINT)
        }
        SocksError::Unreachable(reason) => {
            ConnectError::transient(format!("{peer} cannot connect to {target}: {reason}"))
        }
        SocksError::Refused(reason) => ConnectError::new(
            ErrorKind::Endpoint,
            format!("{peer} refused to connect to {target}: {reason}"),
        ),
        SocksError::NotSocks5 => {
            ConnectError::new(ErrorKind::Endpoint, format!("{peer} does not speak SOCKS 5"))
                .with_hint("the address of an HTTP proxy begins with http://")
        }
        SocksError::FieldTooLong(what) => ConnectError::new(
            ErrorKind::Config,
            format!("{what} is longer than the 255 bytes that SOCKS 5 allows"),
        ),
    };
    connect_error.into()
}

/// Returns the error for a proxy that closed the connection or did not answer in time.
fn no_answer_failure(peer: &Peer, error: io::Error) -> ureq::Error {
    if let Some(StopReason::Silence(_)) = StopReason::from_io_error(&error) {
        let seconds = limits::CONNECT_TIMEOUT.as_secs();
        return ConnectError::transient(format!("{peer} did not answer within {seconds} s"))
            .with_hint("check that the proxy speaks the protocol that its address names: http, https or socks5h")
            .into();
    }
    connect_failure(
        error,
        |error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                ConnectError::transient(format!("{peer} closed the connection without an answer"))
            }
            _ => connection_lost(peer, error),
        },
        String::new,
    )
}

/// Returns the header line with the login.
fn authorization((user, password): &(String, Option<Secret>)) -> String {
    let pair = format!("{user}:{}", password.as_ref().map_or("", Secret::reveal));
    format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(pair))
}

/// Sends `CONNECT` and reads the head of the answer, and no byte more.
fn open_tunnel(
    stream: &mut (impl Read + Write),
    peer: &Peer,
    target: &Peer,
    login: Option<&str>,
) -> Result<(), ureq::Error> {
    let authority = target.authority();
    let request = format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {USER_AGENT}\r\n\
         Proxy-Connection: Keep-Alive\r\n{}\r\n",
        login.unwrap_or_default()
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

fn not_http_error(peer: &Peer) -> ConnectError {
    ConnectError::new(ErrorKind::Endpoint, format!("{peer} does not speak HTTP"))
        .with_hint("the address of a SOCKS proxy begins with socks5h://")
}

/// Returns the error for a status. It omits the proxy's own text, which may quote the login.
fn status_error(
    peer: &Peer,
    target: &str,
    status: StatusCode,
    head: &str,
    has_login: bool,
) -> ConnectError {
    let text = format!("status {status}");
    match status.as_u16() {
        407 => login_error(peer, head, has_login),
        // tinyproxy answers a wrong login with this status.
        401 if has_login => {
            ConnectError::new(ErrorKind::Auth, format!("{peer} refused the login: {text}"))
                .with_hint(CHECK_LOGIN_HINT)
        }
        500.. => ConnectError::transient(format!("{peer} cannot connect to {target}: {text}")),
        400 | 404 | 405 => ConnectError::new(
            ErrorKind::Endpoint,
            format!("{peer} does not open tunnels to {target}: {text}"),
        )
        .with_hint("check that this is the address of a proxy that supports https"),
        _ => ConnectError::new(
            ErrorKind::Endpoint,
            format!("{peer} refused to connect to {target}: {text}"),
        )
        .with_hint("the rules of the proxy decide which hosts and ports it connects to"),
    }
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
        Peer { host: host.into(), port, is_proxy }
    }

    fn tunnel(answer: &[u8], login: Option<&str>) -> (Result<(), String>, String, usize) {
        let mut stream = Answer(answer, Vec::new());
        let proxy = peer("192.0.2.1", 3128, true);
        let target = peer("2001:db8::1", 443, false);
        let result = open_tunnel(&mut stream, &proxy, &target, login);
        let result = result.map_err(|error| match error {
            ureq::Error::Io(error) => {
                let failure = error.downcast::<ConnectError>().unwrap().into_failure();
                format!("{:?} {}", failure.is_retryable, failure.error("url"))
            }
            other => panic!("{other}"),
        });
        (result, String::from_utf8(stream.1).unwrap(), stream.0.len())
    }

    #[test]
    fn logins_are_sent_as_basic() {
        let with_password = authorization(&("me".into(), Secret::new("it: is")));
        assert_eq!(with_password, "Proxy-Authorization: Basic bWU6aXQ6IGlz\r\n");
        let without_password = authorization(&("token".into(), None));
        assert_eq!(without_password, "Proxy-Authorization: Basic dG9rZW46\r\n");
    }

    #[test]
    fn a_tunnel_is_requested_and_only_the_answer_is_read() {
        let answer = b"HTTP/1.0 200 Connection established\r\nA: b\r\n\r\n\x16\x03";
        let (result, request, left) = tunnel(answer, Some("Proxy-Authorization: x\r\n"));
        result.unwrap();
        assert_eq!(left, 2);
        assert!(
            request
                .starts_with("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n")
        );
        assert!(request.ends_with("\r\nProxy-Authorization: x\r\n\r\n"));
        tunnel(b"HTTP/1.1 204 \n\n", None).0.unwrap();
    }

    #[test]
    fn errors_of_refused_tunnels_have_a_reason() {
        let assert_error = |answer: &str, login, expected: &[&str]| {
            let text = tunnel(answer.as_bytes(), login).0.unwrap_err();
            for words in expected.iter().chain(&["the proxy 192.0.2.1:3128"]) {
                assert!(text.contains(words), "{answer}: {text}");
            }
        };
        let login_required = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n";
        assert_error(
            login_required,
            None,
            &["false", "requires a login: status 407", "http://user:password@"],
        );
        assert_error(login_required, Some("x"), &["refused the login", "check user"]);
        let other = "HTTP/1.1 407 No\r\nproxy-authenticate: NTLM\r\n\r\n";
        assert_error(other, None, &["only Basic"]);
        assert_error(
            "HTTP/1.1 403 No\r\n\r\n",
            None,
            &["false", "refused to connect", "status 403 Forbidden"],
        );
        assert_error(
            "HTTP/1.1 502 No\r\n\r\n",
            None,
            &["true", "cannot connect to [2001:db8::1]:443: status 502"],
        );
        assert_error("HTTP/1.1 405 No\r\n\r\n", None, &["the address of a proxy"]);
        assert_error("HTTP/1.1 xyz\r\n\r\n", None, &["does not speak HTTP"]);
        assert_error("\x05\u{ff}", None, &["does not speak HTTP", "socks5h://"]);
        assert_error("", None, &["true", "closed the connection"]);
        assert_error("HTTP/1.1 200 OK\r\n", None, &["closed the connection"]);
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(5000));
        assert_error(&endless, None, &["does not speak HTTP"]);
    }
}
