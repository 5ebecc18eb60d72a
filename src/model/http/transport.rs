//! What `ureq` stands on here: our own connections, which end at once for a
//! signal or a deadline.
//!
//! One [`Dialer`] does everything that comes before the first request: name
//! lookup, connecting, the proxy (`proxy.rs`, `socks.rs`) and TLS (`tls.rs`),
//! all within `limits::CONNECT`. `ureq` itself looks nothing up and knows of no proxy.
//!
//! The traits are `ureq`'s `unversioned` ones; the crate's version is pinned.

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

use crate::config::{Network, Proxy};
use crate::error::ErrorKind;
use crate::limits;
use crate::model::http::connect_error::ConnectError;
use crate::model::http::peer::{Peer, room, stopped_or};
use crate::model::http::tls::TlsClient;
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::net::{Connection, left_until, resolve};

/// Who asks: servers and proxies are told the same.
pub(super) const USER_AGENT: &str = concat!("skills-runner/", env!("CARGO_PKG_VERSION"));

/// How long the other side may be silent just now, and until when all of what
/// it is saying has to be there; shared between the one who reads replies and
/// the connection below.
#[derive(Debug)]
pub(super) struct SilenceLimit(Mutex<RemainingTime>);

#[derive(Clone, Copy, Debug)]
struct RemainingTime {
    /// Longest silence.
    silence: Duration,
    /// When all has to be there, and how long that was.
    whole: Option<(Instant, Duration)>,
    /// When something came last.
    last: Option<Instant>,
}

impl SilenceLimit {
    /// Starts with this limit.
    pub(super) fn new(silence: Duration) -> SilenceLimit {
        SilenceLimit(Mutex::new(RemainingTime { silence, whole: None, last: None }))
    }

    /// From now on, however long the whole takes.
    pub(super) fn set(&self, silence: Duration) {
        *self.lock() = RemainingTime { silence, whole: None, last: None };
    }

    /// The same, and all of it has to come in that time: what drips is never silent.
    pub(super) fn set_whole(&self, limit: Duration) {
        *self.lock() = RemainingTime {
            silence: limit,
            whole: Some((Instant::now() + limit, limit)),
            last: None,
        };
    }

    /// Whether anything has come since the limit was set.
    pub(super) fn has_been_broken(&self) -> bool {
        self.lock().last.is_some()
    }

    /// How long may be waited now, and what it means if nothing comes.
    fn now(&self) -> (Duration, StopReason) {
        let allowance = *self.lock();
        let limit = allowance.silence;
        let (Some((end, whole)), Some(last)) = (allowance.whole, allowance.last) else {
            return (limit, StopReason::Silence(limit));
        };
        let left = end.saturating_duration_since(Instant::now());
        // Silent for most of the time is silent.
        let stop = if end.saturating_duration_since(last) > whole / 2 {
            StopReason::Silence(whole)
        } else {
            StopReason::Dripping(whole)
        };
        (left.min(limit), stop)
    }

    fn lock(&self) -> MutexGuard<'_, RemainingTime> {
        // Plain values: a panic elsewhere cannot have left them half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every connection of a model shares.
#[derive(Clone, Debug)]
pub(super) struct SharedTransport {
    /// Signals and the deadline of the run.
    pub cancellation: Cancellation,
    /// How long the other side may be silent.
    pub silence: Arc<SilenceLimit>,
}

/// Leaves the lookup to the [`Dialer`]: who looks a name up depends on the proxy.
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
    proxy: Option<Proxy>,
}

impl Dialer {
    /// A dialer that has not connected yet.
    pub(super) fn new(shared: SharedTransport, network: &Network) -> Dialer {
        Dialer { shared, tls: TlsClient::new(network.roots.clone()), proxy: network.proxy.clone() }
    }

    /// Looks up and connects; gives also the moment when everything else that
    /// belongs to connecting must be over.
    pub(super) fn open(&self, party: &Peer) -> Result<(Connection, Instant), ureq::Error> {
        let deadline = Instant::now() + limits::CONNECT;
        let cancellation = &self.shared.cancellation;
        let addresses = self.look_up(party, deadline)?;
        let left = left_until(deadline).unwrap_or(Duration::ZERO);
        let connection = Connection::open(&addresses, left, cancellation).map_err(|error| {
            stopped_or(
                error,
                |error| {
                    // The text begins with the address; a name stands before it.
                    let mut text = error.to_string();
                    if party.is_proxy && !text.starts_with(&party.authority()) {
                        text = format!("{} at {text}", party.authority());
                    }
                    let who = if party.is_proxy { "the proxy " } else { "" };
                    let obstacle =
                        ConnectError::passing(format!("failed to connect to {who}{text}"));
                    match error.kind() {
                        _ if party.is_proxy => obstacle.with_hint(party.hint()),
                        io::ErrorKind::ConnectionRefused => obstacle.with_hint(
                            "is the server running, and is LLM_API_BASE_URL its address?",
                        ),
                        _ => obstacle,
                    }
                },
                || format!("no connection to {party}"),
            )
        })?;
        Ok((connection, deadline))
    }

    /// The addresses of a name.
    pub(super) fn look_up(
        &self,
        party: &Peer,
        deadline: Instant,
    ) -> Result<Vec<std::net::SocketAddr>, ureq::Error> {
        let left = left_until(deadline).unwrap_or(Duration::ZERO);
        let found = resolve(&party.host, party.port, left, &self.shared.cancellation);
        let mut addresses = found.map_err(|error| {
            stopped_or(
                error,
                |error| {
                    let who = if party.is_proxy { "the proxy " } else { "" };
                    let text = format!("failed to look up {who}`{}`: {error}", party.host);
                    let obstacle = ConnectError::passing(text);
                    match error.kind() {
                        io::ErrorKind::NotFound => obstacle.with_hint(party.hint()),
                        _ => obstacle,
                    }
                },
                || format!("the name `{}` was not found", party.host),
            )
        })?;
        addresses.truncate(limits::HOST_ADDRESSES);
        Ok(addresses)
    }

    /// What sends and receives on a connection. `plain` is who is expected at
    /// the other end where no TLS follows at once.
    pub(super) fn transport(
        &self,
        (connection, deadline): (Connection, Instant),
        plain: Option<&Peer>,
        details: &ConnectionDetails<'_>,
    ) -> Box<dyn Transport> {
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Box::new(CancellableTransport {
            connection,
            buffers,
            shared: self.shared.clone(),
            deadline,
            plain: plain.cloned(),
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
        let target = Peer::of(details.uri)?;
        let plain = (!details.needs_tls()).then_some(&target);
        if details.needs_tls() {
            // A bad file of certificates is told before anybody is troubled.
            self.tls.config()?;
        }
        let transport = match &self.proxy {
            None => self.transport(self.open(&target)?, plain, details),
            Some(proxy) => self.open_through(proxy, &target, details)?,
        };
        Ok(Some(if details.needs_tls() {
            Box::new(self.tls.wrap(transport, &target, details)?)
        } else {
            transport
        }))
    }
}

struct CancellableTransport {
    connection: Connection,
    buffers: LazyBuffers,
    shared: SharedTransport,
    /// The end of everything that belongs to connecting.
    deadline: Instant,
    /// Who is expected to speak without TLS, until its first byte has come.
    plain: Option<Peer>,
}

impl CancellableTransport {
    /// While connecting there is one deadline; afterwards the reply's reader
    /// says how long silence may last.
    fn limit(&self, timeout: NextTimeout) -> Result<(Duration, StopReason), StopReason> {
        if timeout.reason == Timeout::Connect {
            let left = left_until(self.deadline)?;
            return Ok((left, StopReason::Silence(limits::CONNECT)));
        }
        let (limit, stop) = self.shared.silence.now();
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
        let input = room(&mut self.buffers)?;
        let read = self.connection.read(input, limit, &self.shared.cancellation);
        let amount = read.map_err(|error| match StopReason::within(&error) {
            Some(StopReason::Silence(_)) => stop.into(),
            _ => error,
        })?;
        let is_alert = input[..amount].starts_with(&TLS_ALERT);
        match self.plain.take() {
            Some(party) if is_alert => return Err(speaks_tls(&party).into()),
            _ => {}
        }
        if amount > 0 && timeout.reason != Timeout::Connect {
            self.shared.silence.lock().last = Some(Instant::now());
        }
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.connection.is_idle()
    }
}

/// How a TLS server answers what is no TLS: an alert of version 3.x.
const TLS_ALERT: [u8; 2] = [21, 3];

fn speaks_tls(party: &Peer) -> ConnectError {
    let text = format!("{party} speaks TLS, not plain http");
    ConnectError::lasting(ErrorKind::Endpoint, text)
        .with_hint(format!("LLM_API_BASE_URL begins with https://{}", party.authority()))
}

impl fmt::Debug for CancellableTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffers hold headers, and so the key.
        f.debug_struct("PatientTransport")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
