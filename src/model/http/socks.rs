//! Client side of SOCKS 5 (RFC 1928), with user name and password (RFC 1929).
//!
//! `ureq` has one, but on its own connections, which signals do not interrupt.

use std::io::{self, Read, Write};
use std::net::IpAddr;

use crate::secret::Secret;

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// The destination that the proxy connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SocksDestination {
    /// An address.
    Address(IpAddr),
    /// A name that the proxy looks up.
    Name(String),
}

/// The reason why the proxy did not connect.
#[derive(Debug)]
pub(super) enum SocksError {
    /// Reading or writing failed or was stopped.
    Io(io::Error),
    /// It requires a login, and none is set.
    LoginRequired,
    /// It refused the login.
    LoginRefused,
    /// It cannot reach the destination, for this reason.
    Unreachable(&'static str),
    /// It refuses permanently, for this reason.
    Refused(&'static str),
    /// It does not speak SOCKS 5.
    NotSocks5,
    /// The named field is too long for the protocol.
    FieldTooLong(&'static str),
}

impl From<io::Error> for SocksError {
    fn from(error: io::Error) -> SocksError {
        SocksError::Io(error)
    }
}

/// Requests that the proxy at the other end of `stream` connects to `destination`. Afterwards
/// the stream belongs to the destination; none of its bytes has been read.
pub(super) fn connect(
    stream: &mut (impl Read + Write),
    login: Option<&(String, Option<Secret>)>,
    destination: &SocksDestination,
    port: u16,
) -> Result<(), SocksError> {
    let methods: &[u8] = match login {
        Some(_) => &[VERSION, 2, NO_LOGIN, LOGIN],
        None => &[VERSION, 1, NO_LOGIN],
    };
    stream.write_all(methods)?;
    let [version, method] = read_bytes(stream)?;
    if version != VERSION {
        return Err(SocksError::NotSocks5);
    }
    match (method, login) {
        (NO_LOGIN, _) => {}
        (LOGIN, Some((user, password))) => log_in(stream, user, password.as_ref())?,
        (NO_ACCEPTABLE_METHOD, None) => return Err(SocksError::LoginRequired),
        (NO_ACCEPTABLE_METHOD, Some(_)) => {
            return Err(SocksError::Refused("it requires another kind of login"));
        }
        _ => return Err(SocksError::NotSocks5),
    }
    let mut request = vec![VERSION, CONNECT, 0];
    match destination {
        SocksDestination::Address(IpAddr::V4(address)) => {
            request.push(IPV4);
            request.extend(address.octets());
        }
        SocksDestination::Address(IpAddr::V6(address)) => {
            request.push(IPV6);
            request.extend(address.octets());
        }
        SocksDestination::Name(name) => {
            request.push(DOMAIN);
            push_length_prefixed(&mut request, name, "the host name")?;
        }
    }
    request.extend(port.to_be_bytes());
    stream.write_all(&request)?;
    read_reply(stream)
}

fn log_in(
    stream: &mut (impl Read + Write),
    user: &str,
    password: Option<&Secret>,
) -> Result<(), SocksError> {
    let mut request = vec![LOGIN_VERSION];
    push_length_prefixed(&mut request, user, "the user name")?;
    push_length_prefixed(&mut request, password.map_or("", Secret::reveal), "the password")?;
    stream.write_all(&request)?;
    match read_bytes(stream) {
        // Some proxies answer with the version of the outer protocol.
        Ok([LOGIN_VERSION | VERSION, 0]) => Ok(()),
        Ok([LOGIN_VERSION | VERSION, _]) => Err(SocksError::LoginRefused),
        Ok(_) => Err(SocksError::NotSocks5),
        // Closing the connection also means a refusal.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(SocksError::LoginRefused),
        Err(error) => Err(error.into()),
    }
}

fn read_reply(stream: &mut impl Read) -> Result<(), SocksError> {
    let [version, code] = read_bytes(stream)?;
    if version != VERSION {
        return Err(SocksError::NotSocks5);
    }
    // A proxy that reports an error may close without sending the rest.
    match code {
        0 => {}
        1 => return Err(SocksError::Unreachable("general failure")),
        2 => return Err(SocksError::Refused("its rules forbid it")),
        3 => return Err(SocksError::Unreachable("the network is unreachable")),
        4 => return Err(SocksError::Unreachable("the host is unreachable or unknown")),
        5 => return Err(SocksError::Unreachable("connection refused")),
        6 => return Err(SocksError::Unreachable("the time to live expired")),
        7 => return Err(SocksError::Refused("it does not support the command")),
        8 => {
            return Err(SocksError::Refused(
                "it does not support this type of address (name, IPv4 or IPv6)",
            ));
        }
        _ => return Err(SocksError::NotSocks5),
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
        _ => return Err(SocksError::NotSocks5),
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
fn push_length_prefixed(
    request: &mut Vec<u8>,
    text: &str,
    what: &'static str,
) -> Result<(), SocksError> {
    let length = u8::try_from(text.len()).map_err(|_| SocksError::FieldTooLong(what))?;
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
    ) -> (Result<(), SocksError>, Vec<u8>, usize) {
        let mut stream = Scripted { answers: io::Cursor::new(answers.to_vec()), sent: Vec::new() };
        let login = login.then(|| ("user".to_string(), Secret::new("pass")));
        let destination = destination.parse().map_or_else(
            |_| SocksDestination::Name(destination.to_string()),
            SocksDestination::Address,
        );
        let result = connect(&mut stream, login.as_ref(), &destination, 443);
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
        is(&[5, 0xff], false, "LoginRequired");
        is(&[5, 0xff], true, "another kind of login");
        is(&[5, 2], false, "NotSocks5");
        is(&[5, 2, 1, 1], true, "LoginRefused");
        is(&[5, 2], true, "LoginRefused");
        is(&[5, 2, 9, 0], true, "NotSocks5");
        is(&[5, 0, 5, 2, 0, 1], false, "its rules forbid it");
        is(&[5, 0, 5, 4], false, "unknown");
        is(&[5, 0, 5, 5, 0, 1, 0, 0, 0, 0, 0, 0], false, "connection refused");
        is(&[5, 0, 5, 99], false, "NotSocks5");
        is(b"HTTP/1.1 400 Bad Request", false, "NotSocks5");
        is(&[4, 0], false, "NotSocks5");
        is(&[5, 0, 5, 0, 0, 9], false, "NotSocks5");
        for length in 0..9 {
            let answers = &[5, 0, 5, 0, 0, 1, 127, 0, 0][..length];
            is(answers, false, "UnexpectedEof");
        }
        let long = "x".repeat(256);
        let (result, ..) = request_connection(&[5, 0], false, &long);
        assert!(matches!(result, Err(SocksError::FieldTooLong("the host name"))));
    }
}
