//! Client side of SOCKS 5 (RFC 1928), with user name and password (RFC 1929).
//!
//! `ureq` has one, but on its own connections, which signals do not interrupt.

use std::io::{self, Read, Write};
use std::net::IpAddr;

use crate::http::peer::Peer;
use crate::request_failure::RequestFailure;
use base::error::ErrorKind;
use base::secret::Secret;

pub(super) const CHECK_LOGIN_HINT: &str =
    "check user and password in the proxy's address; a character such as @ is written as %40 there";

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// A proxy and what it is to connect to.
#[derive(Debug)]
pub(super) struct Route<'r> {
    /// The proxy.
    pub proxy: &'r Peer,
    /// The destination: an address, or a name that the proxy looks up.
    pub target: &'r Peer,
}

impl Route<'_> {
    fn not_socks5(&self) -> io::Error {
        let cause = format!("{} does not speak SOCKS 5", self.proxy);
        RequestFailure::new(ErrorKind::Endpoint, cause)
            .with_hint("the address of an HTTP proxy begins with http://")
            .into()
    }

    fn login_required(&self) -> io::Error {
        RequestFailure::new(ErrorKind::Auth, format!("{} requires a login", self.proxy))
            .with_hint(
                "add user and password to the proxy's address: socks5h://user:password@host:port",
            )
            .into()
    }

    fn login_refused(&self) -> io::Error {
        RequestFailure::new(ErrorKind::Auth, format!("{} refused the login", self.proxy))
            .with_hint(CHECK_LOGIN_HINT)
            .into()
    }

    /// The proxy cannot reach the destination at present.
    fn unreachable(&self, reason: &str) -> io::Error {
        let target = self.target.authority();
        let cause = format!("{} cannot connect to {target}: {reason}", self.proxy);
        RequestFailure::temporary(cause).into()
    }

    /// The proxy will never connect.
    fn refused(&self, reason: &str) -> io::Error {
        let target = self.target.authority();
        let cause = format!("{} refused to connect to {target}: {reason}", self.proxy);
        RequestFailure::new(ErrorKind::Endpoint, cause).into()
    }
}

/// Requests that the proxy at the other end of `stream` connects to the destination. Afterwards
/// the stream belongs to the destination; none of its bytes has been read.
pub(super) fn connect(
    stream: &mut (impl Read + Write),
    login: Option<&(String, Option<Secret>)>,
    route: &Route<'_>,
) -> io::Result<()> {
    let methods: &[u8] = match login {
        Some(_) => &[VERSION, 2, NO_LOGIN, LOGIN],
        None => &[VERSION, 1, NO_LOGIN],
    };
    stream.write_all(methods)?;
    let [version, method] = read_bytes(stream)?;
    if version != VERSION {
        return Err(route.not_socks5());
    }
    match (method, login) {
        (NO_LOGIN, _) => {}
        (LOGIN, Some((user, password))) => log_in(stream, user, password.as_ref(), route)?,
        (NO_ACCEPTABLE_METHOD, None) => return Err(route.login_required()),
        (NO_ACCEPTABLE_METHOD, Some(_)) => {
            return Err(route.refused("it requires another kind of login"));
        }
        _ => return Err(route.not_socks5()),
    }
    let mut request = vec![VERSION, CONNECT, 0];
    match route.target.host.parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(IPV4);
            request.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(IPV6);
            request.extend(address.octets());
        }
        Err(_) => {
            request.push(DOMAIN);
            push_length_prefixed(&mut request, &route.target.host, "the host name")?;
        }
    }
    request.extend(route.target.port.to_be_bytes());
    stream.write_all(&request)?;
    read_reply(stream, route)
}

fn log_in(
    stream: &mut (impl Read + Write),
    user: &str,
    password: Option<&Secret>,
    route: &Route<'_>,
) -> io::Result<()> {
    let mut request = vec![LOGIN_VERSION];
    push_length_prefixed(&mut request, user, "the user name")?;
    push_length_prefixed(&mut request, password.map_or("", Secret::reveal), "the password")?;
    stream.write_all(&request)?;
    match read_bytes(stream) {
        // Some proxies answer with the version of the outer protocol.
        Ok([LOGIN_VERSION | VERSION, 0]) => Ok(()),
        Ok([LOGIN_VERSION | VERSION, _]) => Err(route.login_refused()),
        Ok(_) => Err(route.not_socks5()),
        // Closing the connection also means a refusal.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(route.login_refused()),
        Err(error) => Err(error),
    }
}

fn read_reply(stream: &mut impl Read, route: &Route<'_>) -> io::Result<()> {
    let [version, code] = read_bytes(stream)?;
    if version != VERSION {
        return Err(route.not_socks5());
    }
    // A proxy that reports an error may close without sending the rest.
    match code {
        0 => {}
        1 => return Err(route.unreachable("general failure")),
        2 => return Err(route.refused("its rules forbid it")),
        3 => return Err(route.unreachable("the network is unreachable")),
        4 => return Err(route.unreachable("the host is unreachable or unknown")),
        5 => return Err(route.unreachable("connection refused")),
        6 => return Err(route.unreachable("the time to live expired")),
        7 => return Err(route.refused("it does not support the command")),
        8 => {
            return Err(
                route.refused("it does not support this type of address (name, IPv4 or IPv6)")
            );
        }
        _ => return Err(route.not_socks5()),
    }
    let [_, form] = read_bytes(stream)?;
    // The address of the proxy is not needed, but comes before the bytes of the destination.
    let length = match form {
        IPV4 => 4,
        IPV6 => 16,
        DOMAIN => {
            let [length] = read_bytes(stream)?;
            usize::from(length)
        }
        _ => return Err(route.not_socks5()),
    };
    let mut rest = [0; 255 + 2];
    stream.read_exact(&mut rest[..length + 2])?;
    Ok(())
}

fn read_bytes<const COUNT: usize>(stream: &mut impl Read) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Appends a text after its length in one byte.
fn push_length_prefixed(request: &mut Vec<u8>, text: &str, what: &str) -> io::Result<()> {
    let length = u8::try_from(text.len()).map_err(|_| {
        let cause = format!("{what} is longer than the 255 bytes that SOCKS 5 allows");
        RequestFailure::new(ErrorKind::Config, cause)
    })?;
    request.push(length);
    request.extend(text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proxy with prepared answers.
    struct Scripted {
        answers: io::Cursor<Vec<u8>>,
        sent: Vec<u8>,
    }

    impl Read for Scripted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.answers.read(buffer)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.sent.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn request_connection(
        answers: &[u8],
        login: bool,
        destination: &str,
    ) -> (io::Result<()>, Vec<u8>, usize) {
        let mut stream = Scripted { answers: io::Cursor::new(answers.to_vec()), sent: Vec::new() };
        let login = login.then(|| ("user".to_string(), Secret::new("pass")));
        let proxy = Peer { host: "proxy.test".into(), port: 1080, is_proxy: true, setting: "" };
        let target = Peer { host: destination.into(), port: 443, is_proxy: false, setting: "" };
        let route = Route { proxy: &proxy, target: &target };
        let result = connect(&mut stream, login.as_ref(), &route);
        let read = usize::try_from(stream.answers.position()).unwrap();
        (result, stream.sent, read)
    }

    #[test]
    fn requests_follow_the_standard() {
        let served = [5, 0, 5, 0, 0, 1, 127, 0, 0, 1, 0, 80, b'!'];
        let (result, sent, read) = request_connection(&served, false, "a.test");
        result.unwrap();
        assert_eq!(sent, b"\x05\x01\x00\x05\x01\x00\x03\x06a.test\x01\xbb");
        assert_eq!(read, served.len() - 1, "the destination's bytes stay");
        let (_, sent, _) = request_connection(&served, false, "192.0.2.1");
        assert_eq!(sent[3..], *b"\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb");
        let (_, sent, _) = request_connection(&served, false, "2001:db8::1");
        assert_eq!(
            sent[3..],
            *b"\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb"
        );
        let logged_in = [5, 2, 1, 0, 5, 0, 0, 3, 2, b'a', b'b', 0, 80];
        let (result, sent, read) = request_connection(&logged_in, true, "a.test");
        result.unwrap();
        assert_eq!(sent, b"\x05\x02\x00\x02\x01\x04user\x04pass\x05\x01\x00\x03\x06a.test\x01\xbb");
        assert_eq!(read, logged_in.len());
        let sixteen: Vec<u8> = [5, 0, 5, 0, 0, 4].into_iter().chain([7; 18]).collect();
        request_connection(&sixteen, false, "a.test").0.unwrap();
    }

    #[test]
    fn refusals_are_distinguished() {
        let is = |answers: &[u8], login, expected: &str| {
            let text = format!("{:?}", request_connection(answers, login, "a.test").0.unwrap_err());
            assert!(text.contains(expected), "{answers:?}: {text}");
        };
        is(&[5, 0xff], false, "requires a login");
        is(&[5, 0xff], true, "another kind of login");
        is(&[5, 2], false, "does not speak SOCKS 5");
        is(&[5, 2, 1, 1], true, "refused the login");
        is(&[5, 2], true, "refused the login");
        is(&[5, 2, 9, 0], true, "does not speak SOCKS 5");
        is(&[5, 0, 5, 2, 0, 1], false, "its rules forbid it");
        is(&[5, 0, 5, 4], false, "unknown");
        is(&[5, 0, 5, 5, 0, 1, 0, 0, 0, 0, 0, 0], false, "connection refused");
        is(&[5, 0, 5, 99], false, "does not speak SOCKS 5");
        is(b"HTTP/1.1 400 Bad Request", false, "does not speak SOCKS 5");
        is(&[4, 0], false, "does not speak SOCKS 5");
        is(&[5, 0, 5, 0, 0, 9], false, "does not speak SOCKS 5");
        for length in 0..9 {
            let answers = &[5, 0, 5, 0, 0, 1, 127, 0, 0][..length];
            is(answers, false, "UnexpectedEof");
        }
        let long = "x".repeat(256);
        let error = request_connection(&[5, 0], false, &long).0.unwrap_err();
        assert!(error.to_string().starts_with("the host name is longer than"), "{error}");
    }
}
