//! The client's side of SOCKS 5 (RFC 1928), with user name and password (RFC 1929).
//!
//! `ureq` has one, but on a connection of its own that no signal interrupts.

use std::io::{self, Read, Write};
use std::net::IpAddr;

use crate::secret::Secret;

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;
const NOTHING_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

/// Where the proxy is to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SocksDestination {
    /// An address.
    Address(IpAddr),
    /// A name that the proxy looks up.
    Name(String),
}

/// Why the proxy does not serve.
#[derive(Debug)]
pub(super) enum SocksError {
    /// Reading or writing failed, or was stopped.
    Io(io::Error),
    /// It wants a login, and there is none.
    WantsLogin,
    /// It does not take the login.
    BadLogin,
    /// It cannot reach the destination, for this reason.
    Unreachable(&'static str),
    /// It will never do that, for this reason.
    Refused(&'static str),
    /// It does not speak SOCKS 5.
    Nonsense,
    /// The request does not fit into the protocol.
    TooLong(&'static str),
}

impl From<io::Error> for SocksError {
    fn from(error: io::Error) -> SocksError {
        SocksError::Io(error)
    }
}

/// Asks the proxy at the other end of `stream` to connect to `destination`.
/// Afterwards the stream is the destination's; not a byte of it has been read.
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
    let [version, method] = read(stream)?;
    if version != VERSION {
        return Err(SocksError::Nonsense);
    }
    match (method, login) {
        (NO_LOGIN, _) => {}
        (LOGIN, Some((user, password))) => log_in(stream, user, password.as_ref())?,
        (NOTHING_ACCEPTABLE, None) => return Err(SocksError::WantsLogin),
        (NOTHING_ACCEPTABLE, Some(_)) => {
            return Err(SocksError::Refused("it wants another kind of login"));
        }
        _ => return Err(SocksError::Nonsense),
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
            push_short(&mut request, name, "the host name")?;
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
    push_short(&mut request, user, "the user name")?;
    push_short(&mut request, password.map_or("", Secret::reveal), "the password")?;
    stream.write_all(&request)?;
    match read(stream) {
        // Some answer in the version of the protocol around it.
        Ok([LOGIN_VERSION | VERSION, 0]) => Ok(()),
        Ok([LOGIN_VERSION | VERSION, _]) => Err(SocksError::BadLogin),
        Ok(_) => Err(SocksError::Nonsense),
        // The other way to say no.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(SocksError::BadLogin),
        Err(error) => Err(error.into()),
    }
}

fn read_reply(stream: &mut impl Read) -> Result<(), SocksError> {
    let [version, code] = read(stream)?;
    if version != VERSION {
        return Err(SocksError::Nonsense);
    }
    // Who reports an error may close without the rest.
    match code {
        0 => {}
        1 => return Err(SocksError::Unreachable("general failure")),
        2 => return Err(SocksError::Refused("its rules forbid it")),
        3 => return Err(SocksError::Unreachable("the network is unreachable")),
        4 => return Err(SocksError::Unreachable("the host is unreachable or unknown")),
        5 => return Err(SocksError::Unreachable("connection refused")),
        6 => return Err(SocksError::Unreachable("the time to live is over")),
        7 => return Err(SocksError::Refused("it does not know the command")),
        8 => {
            return Err(SocksError::Refused(
                "it does not know this type of address (name, IPv4 or IPv6)",
            ));
        }
        _ => return Err(SocksError::Nonsense),
    }
    let [_, form] = read(stream)?;
    // Its own address is of no use, but stands before the destination's bytes.
    let length = match form {
        IPV4 => 4,
        IPV6 => 16,
        DOMAIN => {
            let [length] = read(stream)?;
            usize::from(length)
        }
        _ => return Err(SocksError::Nonsense),
    };
    let mut rest = [0; 255 + 2];
    stream.read_exact(&mut rest[..length + 2])?;
    Ok(())
}

fn read<const COUNT: usize>(stream: &mut impl Read) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A text with its length before it, in one byte.
fn push_short(request: &mut Vec<u8>, text: &str, what: &'static str) -> Result<(), SocksError> {
    let length = u8::try_from(text.len()).map_err(|_| SocksError::TooLong(what))?;
    request.push(length);
    request.extend(text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proxy that has all its answers ready.
    struct Scripted {
        answers: io::Cursor<Vec<u8>>,
        heard: Vec<u8>,
    }

    impl Read for Scripted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.answers.read(buffer)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.heard.write(bytes)
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
        let mut stream = Scripted { answers: io::Cursor::new(answers.to_vec()), heard: Vec::new() };
        let login = login.then(|| ("user".to_string(), Secret::new("pass")));
        let destination = destination.parse().map_or_else(
            |_| SocksDestination::Name(destination.to_string()),
            SocksDestination::Address,
        );
        let result = connect(&mut stream, login.as_ref(), &destination, 443);
        let read = usize::try_from(stream.answers.position()).unwrap();
        (result, stream.heard, read)
    }

    #[test]
    fn requests_are_those_of_the_standard() {
        let served = [5, 0, 5, 0, 0, 1, 127, 0, 0, 1, 0, 80, b'!'];
        let (result, heard, read) = request_connection(&served, false, "a.test");
        result.unwrap();
        assert_eq!(heard, b"\x05\x01\x00\x05\x01\x00\x03\x06a.test\x01\xbb");
        assert_eq!(read, served.len() - 1, "the destination's bytes stay");
        let (_, heard, _) = request_connection(&served, false, "192.0.2.1");
        assert_eq!(heard[3..], *b"\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb");
        let (_, heard, _) = request_connection(&served, false, "2001:db8::1");
        assert_eq!(
            heard[3..],
            *b"\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb"
        );
        let logged_in = [5, 2, 1, 0, 5, 0, 0, 3, 2, b'a', b'b', 0, 80];
        let (result, heard, read) = request_connection(&logged_in, true, "a.test");
        result.unwrap();
        assert_eq!(
            heard,
            b"\x05\x02\x00\x02\x01\x04user\x04pass\x05\x01\x00\x03\x06a.test\x01\xbb"
        );
        assert_eq!(read, logged_in.len());
        let sixteen: Vec<u8> = [5, 0, 5, 0, 0, 4].into_iter().chain([7; 18]).collect();
        request_connection(&sixteen, false, "a.test").0.unwrap();
    }

    #[test]
    fn refusals_are_told_apart() {
        let is = |answers: &[u8], login, expected: &str| {
            let text = format!("{:?}", request_connection(answers, login, "a.test").0.unwrap_err());
            assert!(text.contains(expected), "{answers:?}: {text}");
        };
        is(&[5, 0xff], false, "WantsLogin");
        is(&[5, 0xff], true, "another kind of login");
        is(&[5, 2], false, "Nonsense");
        is(&[5, 2, 1, 1], true, "BadLogin");
        is(&[5, 2], true, "BadLogin");
        is(&[5, 2, 9, 0], true, "Nonsense");
        is(&[5, 0, 5, 2, 0, 1], false, "its rules forbid it");
        is(&[5, 0, 5, 4], false, "unknown");
        is(&[5, 0, 5, 5, 0, 1, 0, 0, 0, 0, 0, 0], false, "connection refused");
        is(&[5, 0, 5, 99], false, "Nonsense");
        is(b"HTTP/1.1 400 Bad Request", false, "Nonsense");
        is(&[4, 0], false, "Nonsense");
        is(&[5, 0, 5, 0, 0, 9], false, "Nonsense");
        for length in 0..9 {
            let answers = &[5, 0, 5, 0, 0, 1, 127, 0, 0][..length];
            is(answers, false, "UnexpectedEof");
        }
        let long = "x".repeat(256);
        let (result, ..) = request_connection(&[5, 0], false, &long);
        assert!(matches!(result, Err(SocksError::TooLong("the host name"))));
    }
}
