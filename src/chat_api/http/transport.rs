//! Transport for `ureq`: our own connections, where a signal or a deadline ends every wait.
//!
//! One [`Dialer`] does everything before the first request: name lookup, connecting, the proxy
//! (`proxy.rs`, `socks.rs`) and TLS (`tls.rs`), all within `limits::CONNECT_TIMEOUT`. `ureq` itself
//! does no lookup and has no proxy.
//!
//! The traits are from `ureq`'s `unversioned` module; the crate's version is pinned.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ureq::Timeout;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

use crate::http::peer::{Peer, connect_failure, input_space};
use crate::http::tls::TlsClient;
use crate::request_failure::RequestFailure;
use crate::{Endpoint, Proxy};
use base::error::{ErrorKind, FailedPart};
use base::limits;
use host::cancellation::{Cancellation, StopReason};
use host::net::{Connection, resolve, time_left};

/// The user agent, the same for servers and proxies.
pub(super) const USER_AGENT: &str = concat!("skills-runner/", env!("CARGO_PKG_VERSION"));

/// How long the server may be silent at present, and when its whole answer must have arrived;
/// shared between the reader of replies and the connection.
#[derive(Debug)]
pub(super) struct SilenceLimit(Mutex<RemainingTime>);

#[derive(Clone, Copy, Debug)]
struct RemainingTime {
    /// The longest silence.
    silence: Duration,
    /// When the whole answer, or a part that counts, must have arrived, how long that was from the
    /// start, and the reason to report otherwise.
    total: Option<(Instant, Duration, StopReason)>,
    /// When bytes were last received.
    last_received: Option<Instant>,
}

impl SilenceLimit {
    /// Creates the limit with this longest silence.
    pub(super) fn new(silence: Duration) -> SilenceLimit {
        SilenceLimit(Mutex::new(RemainingTime { silence, total: None, last_received: None }))
    }

    /// Limits only silence, however long the whole answer takes.
    pub(super) fn set_silence(&self, silence: Duration) {
        *self.lock() = RemainingTime { silence, total: None, last_received: None };
    }

    /// Limits silence and the whole answer: a server that sends single bytes is never silent.
    pub(super) fn set_total(&self, limit: Duration) {
        self.set(limit, limit, StopReason::Incomplete(limit));
    }

    /// Limits silence, and the time until the next call of this: keep-alives are not silence.
    pub(super) fn set_content(&self, silence: Duration) {
        let whole = silence * limits::KEEP_ALIVE_FACTOR;
        self.set(silence, whole, StopReason::KeepAlives(whole));
    }

    fn set(&self, silence: Duration, whole: Duration, stop: StopReason) {
        let total = Some((Instant::now() + whole, whole, stop));
        *self.lock() = RemainingTime { silence, total, last_received: None };
    }

    /// Whether bytes were received since the limit was set.
    pub(super) fn has_received(&self) -> bool {
        self.lock().last_received.is_some()
    }

    /// How long to wait now, and the reason to report if nothing arrives.
    fn current_limit(&self) -> (Duration, StopReason) {
        let remaining = *self.lock();
        let limit = remaining.silence;
        let (Some((end, whole, stop)), Some(last)) = (remaining.total, remaining.last_received)
        else {
            return (limit, StopReason::Silence(limit));
        };
        let left = end.saturating_duration_since(Instant::now());
        if limit < left {
            return (limit, StopReason::Silence(limit));
        }
        // A server that was silent for most of the time is reported as silent.
        let was_silent = end.saturating_duration_since(last) > whole / 2;
        (left, if was_silent { StopReason::Silence(whole) } else { stop })
    }

    fn lock(&self) -> MutexGuard<'_, RemainingTime> {
        // Plain values: a panic elsewhere cannot have left them half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State that all connections of a model share.
#[derive(Clone, Debug)]
pub(super) struct SharedTransport {
    /// Signals and the deadline of the run.
    pub cancellation: Cancellation,
    /// How long the server may be silent.
    pub silence: Arc<SilenceLimit>,
}

/// Resolver that leaves the lookup to the [`Dialer`], since with a proxy names are not looked up
/// here.
#[derive(Debug)]
pub(super) struct NoLookup;

impl Resolver for NoLookup {
    fn resolve(
        &self,
        _uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

/// Opens connections to one endpoint.
#[derive(Debug)]
pub(super) struct Dialer {
    pub(super) shared: SharedTransport,
    pub(super) tls: TlsClient,
    target: Peer,
    proxy: Option<Proxy>,
}

impl Dialer {
    /// Creates a dialer without connecting.
    pub(super) fn new(shared: SharedTransport, endpoint: &Endpoint) -> Dialer {
        Dialer {
            shared,
            tls: TlsClient::new(endpoint.network.roots.clone()),
            target: Peer::from_endpoint(endpoint),
            proxy: endpoint.network.proxy.clone(),
        }
    }

    /// Looks up the peer and connects; returns also the deadline for the rest of connecting.
    pub(super) fn open(&self, peer: &Peer) -> Result<(Connection, Instant), ureq::Error> {
        let deadline = Instant::now() + limits::CONNECT_TIMEOUT;
        let cancellation = &self.shared.cancellation;
        let addresses = self.look_up(peer, deadline)?;
        let left = time_left(deadline).unwrap_or(Duration::ZERO);
        let connection = Connection::open(&addresses, left, cancellation).map_err(|error| {
            connect_failure(
                error,
                |error| {
                    // The text starts with the address; a name is added before it.
                    let mut text = error.to_string();
                    if peer.is_proxy && !text.starts_with(&peer.authority()) {
                        text = format!("{} at {text}", peer.authority());
                    }
                    let name = if peer.is_proxy { "the proxy " } else { "" };
                    let failure =
                        RequestFailure::temporary(format!("failed to connect to {name}{text}"));
                    match error.kind() {
                        _ if peer.is_proxy => failure.with_hint(peer.address_hint()),
                        io::ErrorKind::ConnectionRefused => failure
                            .with_hint(format!("start the server, or correct {}", peer.setting))
                            .with_part(FailedPart::Server),
                        _ => failure,
                    }
                },
                || format!("no connection to {peer}"),
            )
        })?;
        Ok((connection, deadline))
    }

    /// Looks up the addresses of a peer.
    fn look_up(
        &self,
        peer: &Peer,
        deadline: Instant,
    ) -> Result<Vec<std::net::SocketAddr>, ureq::Error> {
        let left = time_left(deadline).unwrap_or(Duration::ZERO);
        let found = resolve(&peer.host, peer.port, left, &self.shared.cancellation);
        found.map_err(|error| {
            connect_failure(
                error,
                |error| {
                    let name = if peer.is_proxy { "the proxy " } else { "" };
                    let text = format!("failed to look up {name}`{}`: {error}", peer.host);
                    let failure = RequestFailure::temporary(text);
                    match error.kind() {
                        io::ErrorKind::NotFound => failure.with_hint(peer.address_hint()),
                        _ => failure,
                    }
                },
                || format!("the name `{}` was not found", peer.host),
            )
        })
    }

    /// Creates the transport of a connection. `plain_peer` is the peer if no TLS handshake
    /// follows.
    pub(super) fn new_transport(
        &self,
        (connection, deadline): (Connection, Instant),
        plain_peer: Option<&Peer>,
        details: &ConnectionDetails<'_>,
    ) -> Box<dyn Transport> {
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Box::new(CancellableTransport {
            connection,
            buffers,
            shared: self.shared.clone(),
            deadline,
            plain_peer: plain_peer.cloned(),
        })
    }
}

impl Connector<()> for Dialer {
    type Out = Box<dyn Transport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _chained: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let target = &self.target;
        let plain = (!details.needs_tls()).then_some(target);
        if details.needs_tls() {
            // An invalid certificate file is reported before any connection is opened.
            self.tls.config()?;
        }
        let transport = match &self.proxy {
            None => self.new_transport(self.open(target)?, plain, details),
            Some(proxy) => self.open_through_proxy(proxy, target, details)?,
        };
        Ok(Some(if details.needs_tls() {
            Box::new(self.tls.handshake(transport, target, details)?)
        } else {
            transport
        }))
    }
}

struct CancellableTransport {
    connection: Connection,
    buffers: LazyBuffers,
    shared: SharedTransport,
    /// The deadline for connecting, with proxy and TLS.
    deadline: Instant,
    /// The peer, if it is expected to answer without TLS, until its first byte is received.
    plain_peer: Option<Peer>,
}

impl CancellableTransport {
    /// The limit of the next wait: one deadline while connecting; afterwards the reader of the
    /// reply sets it.
    fn limit(&self, timeout: NextTimeout) -> Result<(Duration, StopReason), StopReason> {
        if timeout.reason == Timeout::Connect {
            let left = time_left(self.deadline)?;
            return Ok((left, StopReason::Silence(limits::CONNECT_TIMEOUT)));
        }
        let (limit, stop) = self.shared.silence.current_limit();
        Ok((limit.min(*timeout.after), stop))
    }
}

impl Transport for CancellableTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let (limit, _) = self.limit(timeout).map_err(io::Error::from)?;
        let output = &self.buffers.output()[..amount];
        self.connection.write_all(output, limit, &self.shared.cancellation)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let (limit, stop) = self.limit(timeout).map_err(io::Error::from)?;
        if limit.is_zero() {
            return Err(io::Error::from(stop).into());
        }
        let input = input_space(&mut self.buffers)?;
        let read = self.connection.read(input, limit, &self.shared.cancellation);
        let amount = read.map_err(|error| match StopReason::from_io_error(&error) {
            Some(StopReason::Silence(_)) => stop.into(),
            _ => error,
        })?;
        let is_alert = input[..amount].starts_with(&TLS_ALERT);
        match self.plain_peer.take() {
            Some(peer) if is_alert => return Err(unexpected_tls(&peer).into()),
            _ => {}
        }
        if amount > 0 && timeout.reason != Timeout::Connect {
            self.shared.silence.lock().last_received = Some(Instant::now());
        }
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.connection.is_idle()
    }
}

/// The start of the alert with which a TLS server answers plain text: version 3.x.
const TLS_ALERT: [u8; 2] = [21, 3];

fn unexpected_tls(peer: &Peer) -> RequestFailure {
    let text = format!("{peer} speaks TLS, not plain http");
    let hint = if peer.is_proxy {
        "TLS to a proxy is not supported: name its port for plain http".into()
    } else {
        format!("{} must begin with https://{}", peer.setting, peer.authority())
    };
    RequestFailure::new(ErrorKind::Endpoint, text).with_hint(hint)
}

impl fmt::Debug for CancellableTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffers contain headers, and so the key.
        f.debug_struct("CancellableTransport")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
