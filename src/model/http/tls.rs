//! TLS on our own connections: rustls, and what its refusals mean.
//!
//! It is not `ureq`'s own, because that one skips unreadable certificates
//! quietly, tells the reasons in its own words, and cannot accept what people
//! make most often for a server of their own: one self-signed certificate.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection, InvalidMessage, StreamOwned};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use crate::config::CertificateFile;
use crate::error::ErrorKind;
use crate::limits;
use crate::model::http::certificates::{self, Verifier};
use crate::model::http::connect_error::ConnectError;
use crate::model::http::peer::{Peer, room, stopped_or};
use crate::text::one_line;

/// What every TLS connection of a client shares. It costs nothing before the first one.
pub(super) struct TlsClient {
    roots: Option<CertificateFile>,
    config: OnceLock<Arc<ClientConfig>>,
}

impl TlsClient {
    /// Trusts the built-in roots, or instead of them what a file holds.
    pub(super) fn new(roots: Option<CertificateFile>) -> TlsClient {
        TlsClient { roots, config: OnceLock::new() }
    }

    /// Makes the handshake; `party` is who must be at the other end.
    pub(super) fn wrap(
        &self,
        transport: Box<dyn Transport>,
        party: &Peer,
        details: &ConnectionDetails<'_>,
    ) -> Result<TlsTransport, ureq::Error> {
        let name = ServerName::try_from(party.host.clone()).map_err(|_| {
            let text = format!("`{}` is no name that a certificate can be for", party.host);
            ConnectError::lasting(ErrorKind::Config, text)
        })?;
        let mut session = ClientConnection::new(self.config()?, name)
            .map_err(|error| self.explain(party, &error, &[]))?;
        let mut adapter = TransportAdapter::new(transport, details.current_time.clone());
        adapter.set_timeout(details.timeout);
        let mut wire = TlsStream { adapter, beginning: Vec::new() };
        if let Err(error) = session.complete_io(&mut wire) {
            let error = last_words(&mut session, &mut wire, &error).unwrap_or(error);
            return Err(match error.get_ref().and_then(|e| e.downcast_ref()) {
                Some(error) => self.explain(party, error, &wire.beginning).into(),
                None => unfinished(party, error),
            });
        }
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        Ok(TlsTransport { buffers, stream: StreamOwned::new(session, wire), party: party.clone() })
    }

    /// Made once; an error says that the user's certificates are of no use.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, ConnectError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(self.roots.as_ref(), &provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                ConnectError::lasting(ErrorKind::Config, format!("TLS cannot be set up: {error}"))
            })?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(config))))
    }

    /// What went wrong, in plain words. Nothing of it mends itself.
    fn explain(&self, party: &Peer, error: &rustls::Error, beginning: &[u8]) -> ConnectError {
        let lasting = |text: String| ConnectError::lasting(ErrorKind::Endpoint, text);
        match error {
            rustls::Error::InvalidCertificate(error) => {
                certificates::explain(party, error, self.roots.as_ref())
            }
            // Small servers send their page without a head to what they cannot read.
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)
                if beginning == b"HTTP/" || beginning.starts_with(b"<") =>
            {
                lasting(format!("{party} speaks plain http, not https")).with_hint(format!(
                    "if that is right, LLM_API_BASE_URL begins with http://{}",
                    party.authority()
                ))
            }
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                lasting(format!("{party} does not speak TLS"))
                    .with_hint("is the port right, and does it serve https?")
            }
            other => {
                lasting(format!("no secure connection to {party}: {}", explain_refusal(other)))
            }
        }
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roots = self.roots.as_ref().map(|file| &file.path);
        f.debug_struct("Tls").field("roots", &roots).finish_non_exhaustive()
    }
}

/// Why the server hung up while it was written to: its alert may have come
/// before, and not been read. (Reading writes too, what is still to be sent.)
fn last_words(
    session: &mut ClientConnection,
    wire: &mut TlsStream,
    error: &io::Error,
) -> Option<io::Error> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    if !matches!(error.kind(), BrokenPipe | ConnectionReset) {
        return None;
    }
    // Session tickets may stand before it; what was sent is all there.
    while session.read_tls(wire).ok()? > 0 {
        if let Err(alert) = session.process_new_packets() {
            return Some(io::Error::new(io::ErrorKind::InvalidData, alert));
        }
    }
    None
}

/// A handshake that was stopped, or broke off.
fn unfinished(party: &Peer, error: io::Error) -> ureq::Error {
    stopped_or(
        error,
        |error| {
            ConnectError::passing(if error.kind() == io::ErrorKind::UnexpectedEof {
                format!("{party} closed the connection during the TLS handshake")
            } else {
                format!("the TLS handshake with {party} failed: {error}")
            })
        },
        || format!("{party} did not complete the TLS handshake"),
    )
}

/// Why there is no session, where the certificate is not the reason.
fn explain_refusal(error: &rustls::Error) -> String {
    match error {
        rustls::Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => {
                "the server wants a client certificate, which this program does not have".into()
            }
            AlertDescription::ProtocolVersion => OLD_VERSION.into(),
            AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
                "the server refused the handshake: it wants other ciphers, or a client certificate"
                    .into()
            }
            AlertDescription::UnrecognisedName => "the server serves no such name".into(),
            other => format!("the server refused it ({other:?})"),
        },
        rustls::Error::PeerIncompatible(
            rustls::PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | rustls::PeerIncompatible::SupportedVersionsExtensionRequired
            | rustls::PeerIncompatible::ServerDoesNotSupportTls12Or13,
        ) => OLD_VERSION.into(),
        other => one_line(&other.to_string(), limits::QUOTED_BYTES),
    }
}

const OLD_VERSION: &str = "the server speaks only an old version of TLS; 1.2 or 1.3 is needed";

/// What TLS reads from and writes to. It keeps the first bytes, which tell who
/// is there when they are no TLS.
struct TlsStream {
    adapter: TransportAdapter,
    beginning: Vec<u8>,
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.adapter.read(buffer)?;
        let missing = b"HTTP/".len() - self.beginning.len();
        self.beginning.extend(&buffer[..count.min(missing)]);
        Ok(count)
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.adapter.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.adapter.flush()
    }
}

/// A connection with TLS.
pub(super) struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TlsStream>,
    party: Peer,
}

impl TlsTransport {
    /// A server may refuse after the handshake: in TLS 1.3 it is over before
    /// the server has seen that a client certificate is missing.
    fn explain(&mut self, error: io::Error) -> io::Error {
        let stream = &mut self.stream;
        let error = last_words(&mut stream.conn, &mut stream.sock, &error).unwrap_or(error);
        match error.get_ref().and_then(|e| e.downcast_ref()) {
            Some(error) => {
                let text =
                    format!("no secure connection to {}: {}", self.party, explain_refusal(error));
                ConnectError::lasting(ErrorKind::Endpoint, text).into()
            }
            None => error,
        }
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.adapter.set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        let result = self.stream.write_all(output);
        Ok(result.map_err(|error| self.explain(error))?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.adapter.set_timeout(timeout);
        let result = self.stream.read(room(&mut self.buffers)?);
        let amount = result.map_err(|error| self.explain(error))?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.adapter.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffers hold headers, and so the key.
        f.debug_struct("TlsTransport").field("party", &self.party).finish_non_exhaustive()
    }
}
