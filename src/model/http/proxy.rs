//! The way through a proxy: a tunnel for https (`CONNECT`, RFC 9110 9.3.6),
//! the absolute form for plain http (`forward.rs`), SOCKS 5 for both.
//!
//! `ureq` would ask for a tunnel also for plain http, which most proxies refuse
//! for ports other than 443.

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
use crate::model::http::peer::{Peer, stopped_or};
use crate::model::http::proxy_errors::{CHECK_HINT, lost, status_of, wants_login};
use crate::model::http::socks::{self, SocksDestination, SocksError};
use crate::model::http::transport::{Dialer, USER_AGENT};
use crate::secret::Secret;
use crate::world::cancellation::StopReason;
use crate::world::net::Handshake;

impl Dialer {
    /// A connection to `target` by way of a proxy.
    pub(super) fn open_through(
        &self,
        proxy: &Proxy,
        target: &Peer,
        details: &ConnectionDetails<'_>,
    ) -> Result<Box<dyn Transport>, ureq::Error> {
        let party = Peer { host: proxy.host.clone(), port: proxy.port, is_proxy: true };
        let is_encrypted = match proxy.scheme {
            ProxyScheme::Socks5 | ProxyScheme::Socks5h => {
                return self.open_socks(proxy, &party, target, details);
            }
            ProxyScheme::Http => false,
            ProxyScheme::Https => true,
        };
        let plain = (!is_encrypted).then_some(&party);
        let mut transport = self.transport(self.open(&party)?, plain, details);
        if is_encrypted {
            transport = Box::new(self.tls.wrap(transport, &party, details)?);
        }
        let login = proxy.login.as_ref().map(authorization);
        let mut stream = TransportAdapter::new(transport, details.current_time.clone());
        stream.set_timeout(details.timeout);
        if details.needs_tls() {
            open_tunnel(&mut stream, &party, target, login.as_deref())?;
            return Ok(stream.into_inner());
        }
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Box::new(HttpProxy::new(stream, buffers, party, target, login)))
    }

    /// The target's addresses, for a proxy that is given no names.
    fn look_up_here(
        &self,
        target: &Peer,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, ureq::Error> {
        self.look_up(target, deadline).map_err(|error| match error {
            ureq::Error::Io(error) => match error.downcast::<ConnectError>() {
                Ok(obstacle) => {
                    obstacle.with_hint("with socks5h:// the proxy looks names up").into()
                }
                Err(error) => error.into(),
            },
            other => other,
        })
    }

    fn open_socks(
        &self,
        proxy: &Proxy,
        party: &Peer,
        target: &Peer,
        details: &ConnectionDetails<'_>,
    ) -> Result<Box<dyn Transport>, ureq::Error> {
        let (mut connection, deadline) = self.open(party)?;
        let destination = match target.host.parse() {
            Ok(address) => SocksDestination::Address(address),
            Err(_) if proxy.scheme == ProxyScheme::Socks5h => {
                SocksDestination::Name(target.host.clone())
            }
            Err(_) => match self.look_up_here(target, deadline)?.first() {
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
            .map_err(|refusal| explain_socks(refusal, party, target))?;
        let plain = (!details.needs_tls()).then_some(target);
        Ok(self.transport((connection, deadline), plain, details))
    }
}

fn explain_socks(refusal: SocksError, party: &Peer, target: &Peer) -> ureq::Error {
    let target = target.authority();
    let obstacle = match refusal {
        SocksError::Io(error) => return unanswered(party, error),
        SocksError::WantsLogin => ConnectError::lasting(
            ErrorKind::Auth,
            format!("{party} wants a login"),
        )
        .with_hint(
            "write user and password into the proxy's address: socks5h://user:password@host:port",
        ),
        SocksError::BadLogin => {
            ConnectError::lasting(ErrorKind::Auth, format!("{party} refused the login"))
                .with_hint(CHECK_HINT)
        }
        SocksError::Unreachable(reason) => {
            ConnectError::passing(format!("{party} cannot connect to {target}: {reason}"))
        }
        SocksError::Refused(reason) => ConnectError::lasting(
            ErrorKind::Endpoint,
            format!("{party} refused to connect to {target}: {reason}"),
        ),
        SocksError::Nonsense => {
            ConnectError::lasting(ErrorKind::Endpoint, format!("{party} does not speak SOCKS 5"))
                .with_hint("if it is an HTTP proxy, its address begins with http://")
        }
        SocksError::TooLong(what) => ConnectError::lasting(
            ErrorKind::Config,
            format!("{what} is longer than the 255 bytes that SOCKS 5 allows"),
        ),
    };
    obstacle.into()
}

/// A proxy that hung up, or said nothing in time.
fn unanswered(party: &Peer, error: io::Error) -> ureq::Error {
    if let Some(StopReason::Silence(_)) = StopReason::within(&error) {
        let seconds = limits::CONNECT.as_secs();
        return ConnectError::passing(format!("{party} did not answer within {seconds} s"))
            .with_hint("does it speak what its address begins with: http, https, socks5h?")
            .into();
    }
    stopped_or(
        error,
        |error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                ConnectError::passing(format!("{party} closed the connection without an answer"))
            }
            _ => lost(party, error),
        },
        String::new,
    )
}

/// The header line that carries a login.
fn authorization((user, password): &(String, Option<Secret>)) -> String {
    let pair = format!("{user}:{}", password.as_ref().map_or("", Secret::reveal));
    format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(pair))
}

/// Sends `CONNECT` and reads the head of the answer, not a byte more.
fn open_tunnel(
    stream: &mut (impl Read + Write),
    party: &Peer,
    target: &Peer,
    login: Option<&str>,
) -> Result<(), ureq::Error> {
    let authority = target.authority();
    let request = format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {USER_AGENT}\r\n\
         Proxy-Connection: Keep-Alive\r\n{}\r\n",
        login.unwrap_or_default()
    );
    let failed = |error| unanswered(party, error);
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).map_err(failed)?;
        head.push(byte[0]);
        let is_other = head.len() <= HTTP.len() && !HTTP.starts_with(&head);
        if is_other || head.len() > limits::PROXY_HEAD_BYTES {
            return Err(no_proxy(party).into());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let status = status_of(&head).ok_or_else(|| no_proxy(party))?;
    if status.is_success() {
        return Ok(());
    }
    Err(refused(party, &authority, status, &head, login.is_some()).into())
}

const HTTP: &[u8] = b"HTTP/1.";

fn no_proxy(party: &Peer) -> ConnectError {
    ConnectError::lasting(ErrorKind::Endpoint, format!("{party} does not speak HTTP"))
        .with_hint("if it is a SOCKS proxy, its address begins with socks5h://")
}

/// The words for a status. The proxy's own are left out: they may quote the login.
fn refused(
    party: &Peer,
    target: &str,
    status: StatusCode,
    head: &str,
    has_login: bool,
) -> ConnectError {
    let text = format!("status {status}");
    match status.as_u16() {
        407 => wants_login(party, head, has_login),
        // tinyproxy's answer to a wrong login.
        401 if has_login => {
            ConnectError::lasting(ErrorKind::Auth, format!("{party} refused the login: {text}"))
                .with_hint(CHECK_HINT)
        }
        500.. => ConnectError::passing(format!("{party} cannot connect to {target}: {text}")),
        400 | 404 | 405 => ConnectError::lasting(
            ErrorKind::Endpoint,
            format!("{party} does not make tunnels to {target}: {text}"),
        )
        .with_hint("is it a proxy at all, and one for https?"),
        _ => ConnectError::lasting(
            ErrorKind::Endpoint,
            format!("{party} refused to connect to {target}: {text}"),
        )
        .with_hint("its rules decide which hosts and ports it connects to"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a proxy answers, and what it was asked.
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

    fn party(host: &str, port: u16, is_proxy: bool) -> Peer {
        Peer { host: host.into(), port, is_proxy }
    }

    fn tunnel(answer: &[u8], login: Option<&str>) -> (Result<(), String>, String, usize) {
        let mut stream = Answer(answer, Vec::new());
        let proxy = party("192.0.2.1", 3128, true);
        let target = party("2001:db8::1", 443, false);
        let result = open_tunnel(&mut stream, &proxy, &target, login);
        let result = result.map_err(|error| match error {
            ureq::Error::Io(error) => {
                let failure = error.downcast::<ConnectError>().unwrap().into_failure("url");
                format!("{:?} {}", failure.retryable, failure.error)
            }
            other => panic!("{other}"),
        });
        (result, String::from_utf8(stream.1).unwrap(), stream.0.len())
    }

    #[test]
    fn logins_are_sent_as_basic() {
        let with = authorization(&("me".into(), Secret::new("it: is")));
        assert_eq!(with, "Proxy-Authorization: Basic bWU6aXQ6IGlz\r\n");
        let without = authorization(&("token".into(), None));
        assert_eq!(without, "Proxy-Authorization: Basic dG9rZW46\r\n");
    }

    #[test]
    fn a_tunnel_is_asked_for_and_nothing_behind_the_answer_is_read() {
        let answer = b"HTTP/1.0 200 Connection established\r\nA: b\r\n\r\n\x16\x03";
        let (result, asked, left) = tunnel(answer, Some("Proxy-Authorization: x\r\n"));
        result.unwrap();
        assert_eq!(left, 2);
        assert!(
            asked.starts_with("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n")
        );
        assert!(asked.ends_with("\r\nProxy-Authorization: x\r\n\r\n"));
        tunnel(b"HTTP/1.1 204 \n\n", None).0.unwrap();
    }

    #[test]
    fn a_refused_tunnel_says_why() {
        let is = |answer: &str, login, expected: &[&str]| {
            let text = tunnel(answer.as_bytes(), login).0.unwrap_err();
            for words in expected.iter().chain(&["the proxy 192.0.2.1:3128"]) {
                assert!(text.contains(words), "{answer}: {text}");
            }
        };
        let wants = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n";
        is(wants, None, &["false", "wants a login: status 407", "http://user:password@"]);
        is(wants, Some("x"), &["refused the login", "check user"]);
        let other = "HTTP/1.1 407 No\r\nproxy-authenticate: NTLM\r\n\r\n";
        is(other, None, &["only do Basic"]);
        is(
            "HTTP/1.1 403 No\r\n\r\n",
            None,
            &["false", "refused to connect", "status 403 Forbidden"],
        );
        is(
            "HTTP/1.1 502 No\r\n\r\n",
            None,
            &["true", "cannot connect to [2001:db8::1]:443: status 502"],
        );
        is("HTTP/1.1 405 No\r\n\r\n", None, &["is it a proxy at all"]);
        is("HTTP/1.1 xyz\r\n\r\n", None, &["does not speak HTTP"]);
        is("\x05\u{ff}", None, &["does not speak HTTP", "socks5h://"]);
        is("", None, &["true", "closed the connection"]);
        is("HTTP/1.1 200 OK\r\n", None, &["closed the connection"]);
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(5000));
        is(&endless, None, &["does not speak HTTP"]);
    }
}
