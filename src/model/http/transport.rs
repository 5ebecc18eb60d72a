//! What `ureq` stands on here: our own connections, which end at once for a
//! signal or a deadline, and our own name lookup, which needs no thread.
//!
//! The traits are `ureq`'s `unversioned` ones; the crate's version is pinned.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout,
    RustlsConnector, Transport,
};

use crate::limits;
use crate::world::net::{Connection, resolve};
use crate::world::patience::Patience;

/// How long the other side may be silent just now; shared between the one who
/// reads replies and the connection below.
#[derive(Debug)]
pub struct SilenceLimit(AtomicU64);

impl SilenceLimit {
    /// Starts with this limit.
    pub fn new(limit: Duration) -> SilenceLimit {
        let silence = SilenceLimit(AtomicU64::new(0));
        silence.set(limit);
        silence
    }

    /// From now on.
    pub fn set(&self, limit: Duration) {
        let milliseconds = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.0.store(milliseconds, Ordering::Relaxed);
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
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
    match crate::world::patience::Stop::within(&error) {
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
    fn limit(&self, timeout: NextTimeout) -> Duration {
        self.shared.silence.now().min(*timeout.after)
    }
}

impl Transport for PatientTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let limit = self.limit(timeout);
        let output = &self.buffers.output()[..amount];
        self.connection
            .write_all(output, limit, &self.shared.patience)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let limit = self.limit(timeout);
        let input = self.buffers.input_append_buf();
        let amount = self.connection.read(input, limit, &self.shared.patience)?;
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
