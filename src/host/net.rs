//! Network connections whose waits end on a signal, at the deadline, or at a limit.
//!
//! `ureq` by itself repeats reads that a signal interrupts, and resolves names in a
//! thread. It uses this module instead: name lookup, connecting, reading and writing, all
//! under a [`Cancellation`]. Knows nothing of the protocols above TCP.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cancellation::{Cancellation, Readiness, StopReason};
use crate::signal::Signal;
use crate::worker::Worker;
use base::limits;
use nix::errno::Errno;

/// Returns the addresses of a host, at least one. Literal addresses and `localhost` need
/// no resolver: an empty `chroot` has no `/etc/hosts`.
pub fn resolve(
    host: &str,
    port: u16,
    limit: Duration,
    cancellation: &Cancellation,
) -> io::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if base::address::is_loopback(bare) {
        let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        return Ok(addresses.map(|address| SocketAddr::new(address, port)).to_vec());
    }
    look_up_in_child(bare, port, limit, cancellation)
}

/// Calls the system's resolver in a child process: `getaddrinfo` cannot be interrupted,
/// but a process can be killed.
fn look_up_in_child(
    host: &str,
    port: u16,
    limit: Duration,
    cancellation: &Cancellation,
) -> io::Result<Vec<SocketAddr>> {
    let mut child = Worker::start(Signal::KILL, || look_up(host, port).into_bytes())?;
    let answer = child.wait(limit, cancellation).map_err(|error| {
        if let Some(StopReason::Silence(_)) = StopReason::from_io_error(&error) {
            let text = format!("the name was not found within {} s", limit.as_secs());
            return io::Error::new(io::ErrorKind::TimedOut, text);
        }
        error
    })?;
    parse_answer(&String::from_utf8_lossy(&answer))
}

/// Runs in the child. Returns one address a line, or `!` and the error.
fn look_up(host: &str, port: u16) -> String {
    match (host, port).to_socket_addrs() {
        Ok(addresses) => {
            let addresses = addresses.take(limits::HOST_ADDRESSES);
            addresses.map(|address| address.to_string() + "\n").collect()
        }
        Err(error) => format!("!{error}"),
    }
}

fn parse_answer(answer: &str) -> io::Result<Vec<SocketAddr>> {
    if let Some(reason) = answer.strip_prefix('!') {
        let reason = reason.trim_start_matches("failed to lookup address information: ");
        return Err(io::Error::new(io::ErrorKind::NotFound, reason.to_string()));
    }
    let addresses: Vec<SocketAddr> = answer.lines().filter_map(|line| line.parse().ok()).collect();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(addresses)
}

/// A connected socket that does not block.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects to the first address that accepts, within `limit` for all addresses. The
    /// error starts with the address that failed.
    pub fn open(
        addresses: &[SocketAddr],
        limit: Duration,
        cancellation: &Cancellation,
    ) -> io::Result<Connection> {
        let start = Instant::now();
        let mut failure: Option<io::Error> = None;
        for (index, address) in addresses.iter().enumerate() {
            // Each address may take half of the time left, the last one all of it.
            let left = limit.saturating_sub(start.elapsed());
            let share = if index + 1 == addresses.len() { left } else { left / 2 };
            match connect(*address, share, cancellation) {
                Ok(stream) => return Ok(Connection { stream }),
                Err(error)
                    if matches!(
                        StopReason::from_io_error(&error),
                        Some(StopReason::Interrupted(_) | StopReason::Deadline)
                    ) =>
                {
                    return Err(error);
                }
                // An error of the peer is more useful than a network this machine lacks.
                Err(error) if failure.is_some() && is_unreachable(&error) => {}
                Err(error) => {
                    let text = format!("{address}: {error}");
                    failure = Some(io::Error::new(error.kind(), text));
                }
            }
        }
        Err(failure
            .unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the host has no address")))
    }

    /// Reads some bytes; 0 at the end. Waits up to `limit` for the first byte.
    pub fn read(
        &mut self,
        buffer: &mut [u8],
        limit: Duration,
        cancellation: &Cancellation,
    ) -> io::Result<usize> {
        loop {
            // While data keeps arriving there is no wait that would check this.
            cancellation.check()?;
            match self.stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    cancellation.wait(Some((self.stream.as_fd(), Readiness::Read)), Some(limit))?;
                }
                other => return other,
            }
        }
    }

    /// Writes all bytes. Waits up to `limit` each time the peer does not accept more.
    pub fn write_all(
        &mut self,
        mut bytes: &[u8],
        limit: Duration,
        cancellation: &Cancellation,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => cancellation.check()?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    cancellation
                        .wait(Some((self.stream.as_fd(), Readiness::Write)), Some(limit))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether a connection on which no data is expected is still open.
    pub fn is_idle(&mut self) -> bool {
        let mut byte = [0u8; 1];
        matches!(self.stream.read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Whether this machine has no network for this kind of address, such as IPv6.
fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETUNREACH | libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT)
    )
}

/// Connection during a handshake: at the deadline it fails with [`StopReason::Silence`],
/// even if data keeps arriving.
#[derive(Debug)]
pub struct Handshake<'c> {
    /// The connection to the peer.
    pub connection: &'c mut Connection,
    /// Deadline of the handshake.
    pub deadline: Instant,
    /// Signals and the deadline of the run.
    pub cancellation: &'c Cancellation,
}

impl Read for Handshake<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = time_left(self.deadline)?;
        self.connection.read(buffer, left, self.cancellation)
    }
}

impl Write for Handshake<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = time_left(self.deadline)?;
        self.connection.write_all(bytes, left, self.cancellation)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time left until the deadline; an error if it has passed.
pub fn time_left(deadline: Instant) -> Result<Duration, StopReason> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(StopReason::Silence(limits::CONNECT_TIMEOUT));
    }
    Ok(left)
}

/// The system's file of root certificates, looked up where the usual distributions have
/// it.
pub fn system_certificates() -> Option<&'static str> {
    const PLACES: [&str; 5] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    PLACES.into_iter().find(|place| Path::new(place).is_file())
}

/// Calls `connect(2)` on a non-blocking socket, which std does not offer.
fn connect(
    address: SocketAddr,
    limit: Duration,
    cancellation: &Cancellation,
) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: plain numbers; the descriptor is checked before it gets its owner.
    let socket = unsafe { OwnedFd::from_raw_fd(Errno::result(libc::socket(family, kind, 0))?) };
    let result = start_connecting(&socket, address);
    let stream = TcpStream::from(socket);
    if let Err(error) = result {
        if !matches!(error, Errno::EINPROGRESS | Errno::EINTR) {
            return Err(error.into());
        }
        match cancellation.wait(Some((stream.as_fd(), Readiness::Write)), Some(limit)) {
            Ok(()) => {}
            Err(StopReason::Silence(_)) => {
                let text = format!("no connection within {:.1} s", limit.as_secs_f32());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Err(stop) => return Err(stop.into()),
        }
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Calls `connect` with the address in the kernel's format.
#[allow(clippy::cast_possible_truncation, reason = "small numbers in the kernel's narrow types")]
fn start_connecting(socket: &OwnedFd, address: SocketAddr) -> nix::Result<()> {
    // SAFETY: the descriptor is open, and the address has the size that is passed.
    let connect = |form: *const libc::sockaddr, size: usize| unsafe {
        libc::connect(socket.as_raw_fd(), form, size as libc::socklen_t)
    };
    let answer = match address {
        SocketAddr::V4(address) => {
            let form = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            connect((&raw const form).cast(), size_of_val(&form))
        }
        SocketAddr::V6(address) => {
            let form = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            connect((&raw const form).cast(), size_of_val(&form))
        }
    };
    Errno::result(answer).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener};

    /// An address that refuses connections while the streams are open: the near end of a
    /// connection. A closed listener would not do: it may still listen in a process that
    /// another test has just forked, and its port may be reused.
    fn refusing() -> (SocketAddr, [TcpStream; 2]) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, address) = listener.accept().unwrap();
        (address, [near, far])
    }

    #[test]
    fn literal_addresses_and_localhost_need_no_resolver() {
        let cancellation = Cancellation::never();
        let resolve = |host| resolve(host, 80, limits::CONNECT_TIMEOUT, &cancellation).unwrap();
        assert_eq!(resolve("192.0.2.1"), ["192.0.2.1:80".parse().unwrap()]);
        assert_eq!(resolve("[2001:db8::1]"), ["[2001:db8::1]:80".parse().unwrap()]);
        assert_eq!(resolve("localhost").len(), 2);
    }

    #[test]
    fn a_name_without_address_is_an_error() {
        let error =
            resolve("no-such-host.invalid", 80, limits::CONNECT_TIMEOUT, &Cancellation::never())
                .unwrap_err();
        assert!(!error.to_string().is_empty());
    }

    #[test]
    fn the_second_address_is_used_when_the_first_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (closed, _streams) = refusing();
        let addresses = [closed, listener.local_addr().unwrap()];
        let cancellation = Cancellation::never();
        let mut connection =
            Connection::open(&addresses, limits::CONNECT_TIMEOUT, &cancellation).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        assert!(connection.is_idle());
        connection.write_all(b"ping", limits::CONNECT_TIMEOUT, &cancellation).unwrap();
        let mut got = [0; 4];
        other.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"ping");
        let limit = Duration::from_millis(10);
        let error = connection.read(&mut got, limit, &cancellation).unwrap_err();
        assert_eq!(StopReason::from_io_error(&error), Some(StopReason::Silence(limit)));
        other.shutdown(Shutdown::Both).unwrap();
        assert_eq!(connection.read(&mut got, limit, &cancellation).unwrap(), 0);
    }

    /// Single bytes that keep arriving do not extend a handshake.
    #[test]
    fn a_handshake_ends_at_its_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cancellation = Cancellation::never();
        let addresses = [listener.local_addr().unwrap()];
        let mut connection =
            Connection::open(&addresses, limits::CONNECT_TIMEOUT, &cancellation).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let dripping = std::thread::spawn(move || {
            while other.write_all(b".").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let start = Instant::now();
        let mut handshake = Handshake {
            connection: &mut connection,
            deadline: start + Duration::from_millis(60),
            cancellation: &cancellation,
        };
        let error = handshake.read_exact(&mut [0; 4096]).unwrap_err();
        assert!(matches!(StopReason::from_io_error(&error), Some(StopReason::Silence(_))));
        assert!(start.elapsed() < Duration::from_secs(5));
        drop(connection);
        dripping.join().unwrap();
    }

    #[test]
    fn the_error_names_the_address_that_failed() {
        let (address, _streams) = refusing();
        // The second is not a valid address to connect to, which is the less useful error.
        let addresses = [address, "255.255.255.255:9".parse().unwrap()];
        let limit = Duration::from_millis(50);
        let error = Connection::open(&addresses[..1], limit, &Cancellation::never()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(error.to_string().starts_with(&address.to_string()));
        let error = Connection::open(&addresses, limit, &Cancellation::never()).unwrap_err();
        assert!(!is_unreachable(&error), "{error}");
    }
}
