//! What `ureq` stands on here: our own connections, which end at once for a
//! signal or a deadline, and our own name lookup, which needs no thread.
//!
//! The traits are `ureq`'s `unversioned` ones; the crate's version is pinned.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout,
    RustlsConnector, Transport,
};

use crate::limits;
use crate::world::net::{Connection, resolve};
use crate::world::patience::{Patience, Stop};

/// How long the other side may be silent just now, and until when all of what
/// it is saying has to be there; shared between the one who reads replies and
/// the connection below.
#[derive(Debug)]
pub struct SilenceLimit(Mutex<Allowance>);

#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// Longest silence.
    silence: Duration,
    /// When all has to be there, and how long that was.
    whole: Option<(Instant, Duration)>,
    /// When something came last.
    last: Option<Instant>,
}

impl SilenceLimit {
    /// Starts with this limit.
    pub fn new(silence: Duration) -> SilenceLimit {
        SilenceLimit(Mutex::new(Allowance {
            silence,
            whole: None,
            last: None,
        }))
    }

    /// From now on, however long the whole takes.
    pub fn set(&self, silence: Duration) {
        *self.lock() = Allowance {
            silence,
            whole: None,
            last: None,
        };
    }

    /// The same, and all of it has to come in that time: what drips is never silent.
    pub fn set_whole(&self, limit: Duration) {
        *self.lock() = Allowance {
            silence: limit,
            whole: Some((Instant::now() + limit, limit)),
            last: None,
        };
    }

    /// How long may be waited now, and what it means if nothing comes.
    fn now(&self) -> (Duration, Stop) {
        let allowance = *self.lock();
        let limit = allowance.silence;
        let (Some((end, whole)), Some(last)) = (allowance.whole, allowance.last) else {
            return (limit, Stop::Silence(limit));
        };
        let left = end.saturating_duration_since(Instant::now());
        // Silent for most of the time is silent.
        let stop = if end.saturating_duration_since(last) > whole / 2 {
            Stop::Silence(whole)
        } else {
            Stop::Dripping(whole)
        };
        (left.min(limit), stop)
    }

    fn lock(&self) -> MutexGuard<'_, Allowance> {
        // Plain values: a panic elsewhere cannot have left them half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every connection of a model shares.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Signals and the deadline of the run.
    pub patience: Patience,
    /// How long the other side may be silent.
    pub silence: Arc<SilenceLimit>,
}

/// The chain that opens a connection: through a proxy where one is set, plain,
/// then TLS for https.
pub fn connector(shared: Shared) -> impl Connector<()> {
    ().chain(ConnectProxyConnector::default())
        .chain(PatientConnector(shared))
        .chain(RustlsConnector::default())
}

/// Looks names up without a thread.
#[derive(Debug)]
pub struct PatientResolver(pub Shared);

impl Resolver for PatientResolver {
    fn resolve(
        &self,
        uri: &Uri,
        _config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri
            .host()
            .ok_or_else(|| ureq::Error::BadUri(uri.to_string()))?;
        let default_port = if uri.scheme_str() == Some("https") {
            443
        } else {
            80
        };
        let port = uri.port_u16().unwrap_or(default_port);
        let limit = (*timeout.after).min(limits::CONNECT);
        let found = resolve(host, port, limit, &self.0.patience).map_err(|error| {
            let text = format!("failed to look up `{host}`: {error}");
            keep_stop(error, text)
        })?;
        let mut addresses = self.empty();
        for address in found.into_iter().take(limits::HOST_ADDRESSES) {
            addresses.push(address);
        }
        Ok(addresses)
    }
}

/// The error with a text of its own, unless it says that the run is to stop.
fn keep_stop(error: io::Error, text: String) -> io::Error {
    match Stop::within(&error) {
        Some(_) => error,
        None => io::Error::new(error.kind(), text),
    }
}

#[derive(Debug)]
struct PatientConnector(Shared);

impl<In: Transport> Connector<In> for PatientConnector {
    type Out = Either<In, PatientTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        if let Some(transport) = chained {
            return Ok(Some(Either::A(transport)));
        }
        let limit = (*details.timeout.after).min(limits::CONNECT);
        let connection = Connection::open(&details.addrs, limit, &self.0.patience)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(PatientTransport {
            connection,
            buffers,
            shared: self.0.clone(),
        })))
    }
}

struct PatientTransport {
    connection: Connection,
    buffers: LazyBuffers,
    shared: Shared,
}

impl PatientTransport {
    /// During the handshake `ureq` says how long; afterwards the reply's reader does.
    fn limit(&self, timeout: NextTimeout) -> (Duration, Stop) {
        let (limit, stop) = self.shared.silence.now();
        (limit.min(*timeout.after), stop)
    }
}

impl Transport for PatientTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let (limit, _) = self.limit(timeout);
        let output = &self.buffers.output()[..amount];
        self.connection
            .write_all(output, limit, &self.shared.patience)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let (limit, stop) = self.limit(timeout);
        if limit.is_zero() {
            return Err(io::Error::from(stop).into());
        }
        let input = self.buffers.input_append_buf();
        if input.is_empty() {
            // Only a head has to fit into the buffer as a whole.
            let size = limits::READ_BYTES;
            return Err(ureq::Error::LargeResponseHeader(size, size));
        }
        let read = self.connection.read(input, limit, &self.shared.patience);
        let amount = read.map_err(|error| match Stop::within(&error) {
            Some(Stop::Silence(_)) => stop.into(),
            _ => error,
        })?;
        self.shared.silence.lock().last = Some(Instant::now());
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.connection.is_idle()
    }
}

impl fmt::Debug for PatientTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffers hold headers, and so the key.
        f.debug_struct("PatientTransport")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
