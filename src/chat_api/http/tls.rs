//! TLS on our own connections: rustls, and its errors in plain words.
//!
//! `ureq`'s own TLS is not used because it silently skips unreadable certificates, words errors
//! in its own way, and cannot accept what users most often create for their own servers: one
//! self-signed certificate.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection, InvalidMessage, StreamOwned};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use crate::CertificateFile;
use crate::http::certificates::{self, CertificateVerifier};
use crate::http::peer::{Peer, connect_failure, input_space};
use crate::request_failure::RequestFailure;
use base::error::ErrorKind;
use base::limits;
use base::text::one_line;

/// State that all TLS connections of a client share, created with the first one.
pub(super) struct TlsClient {
    roots: Option<CertificateFile>,
    config: OnceLock<Arc<ClientConfig>>,
}

impl TlsClient {
    /// Trusts the certificates in the file, or without one the built-in roots.
    pub(super) fn new(roots: Option<CertificateFile>) -> TlsClient {
        TlsClient { roots, config: OnceLock::new() }
    }

    /// Performs the handshake; `peer` is the expected other end.
    pub(super) fn handshake(
        &self,
        transport: Box<dyn Transport>,
        peer: &Peer,
        details: &ConnectionDetails<'_>,
    ) -> Result<TlsTransport, ureq::Error> {
        let name = ServerName::try_from(peer.host.clone()).map_err(|_| {
            let text = format!("`{}` is not a name that a certificate can contain", peer.host);
            RequestFailure::new(ErrorKind::Config, text)
        })?;
        let mut session = ClientConnection::new(self.config()?, name)
            .map_err(|error| self.failure(peer, &error, &[]))?;
        let mut adapter = TransportAdapter::new(transport, details.current_time.clone());
        adapter.set_timeout(details.timeout);
        let mut wire = TlsStream { adapter, first_bytes: Vec::new() };
        if let Err(error) = session.complete_io(&mut wire) {
            let error = pending_alert(&mut session, &mut wire, &error).unwrap_or(error);
            return Err(match error.get_ref().and_then(|e| e.downcast_ref()) {
                Some(error) => self.failure(peer, error, &wire.first_bytes).into(),
                None => handshake_failure(peer, error),
            });
        }
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        Ok(TlsTransport { buffers, stream: StreamOwned::new(session, wire), peer: peer.clone() })
    }

    /// The configuration, created once. An error means that the user's certificates are
    /// unusable.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, RequestFailure> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = CertificateVerifier::new(self.roots.as_ref(), &provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                RequestFailure::new(ErrorKind::Config, format!("TLS cannot be set up: {error}"))
            })?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(config))))
    }

    /// Converts an error of rustls. None of these is retried.
    fn failure(&self, peer: &Peer, error: &rustls::Error, first_bytes: &[u8]) -> RequestFailure {
        let lasting = |text: String| RequestFailure::new(ErrorKind::Endpoint, text);
        match error {
            rustls::Error::InvalidCertificate(error) => {
                certificates::certificate_error(peer, error, self.roots.as_ref())
            }
            // Small servers answer an unreadable request with a page without a head.
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)
                if first_bytes == b"HTTP/" || first_bytes.starts_with(b"<") =>
            {
                lasting(format!("{peer} speaks plain http, not https")).with_hint(format!(
                    "if that is intended, {} must begin with http://{}",
                    peer.setting,
                    peer.authority()
                ))
            }
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                lasting(format!("{peer} does not speak TLS"))
                    .with_hint("check the port, and that it serves https")
            }
            other => lasting(format!("no secure connection to {peer}: {}", describe_error(other))),
        }
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roots = self.roots.as_ref().map(|file| &file.path);
        f.debug_struct("TlsClient").field("roots", &roots).finish_non_exhaustive()
    }
}

/// Reads the alert of a server that closed the connection during a write: the alert may have
/// arrived earlier and not been read. (Reading also writes what is still to be sent.)
fn pending_alert(
    session: &mut ClientConnection,
    wire: &mut TlsStream,
    error: &io::Error,
) -> Option<io::Error> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    if !matches!(error.kind(), BrokenPipe | ConnectionReset) {
        return None;
    }
    // Session tickets may come before it; everything that was sent has arrived.
    while session.read_tls(wire).ok()? > 0 {
        if let Err(alert) = session.process_new_packets() {
            return Some(io::Error::new(io::ErrorKind::InvalidData, alert));
        }
    }
    None
}

/// The failure of a handshake that was stopped or interrupted.
fn handshake_failure(peer: &Peer, error: io::Error) -> ureq::Error {
    connect_failure(
        error,
        |error| {
            RequestFailure::temporary(if error.kind() == io::ErrorKind::UnexpectedEof {
                format!("{peer} closed the connection during the TLS handshake")
            } else {
                format!("the TLS handshake with {peer} failed: {error}")
            })
        },
        || format!("{peer} did not complete the TLS handshake"),
    )
}

/// Describes an error that is not about the certificate.
fn describe_error(error: &rustls::Error) -> String {
    match error {
        rustls::Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => {
                "the server requires a client certificate, which this program does not support".into()
            }
            AlertDescription::ProtocolVersion => OLD_VERSION.into(),
            AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
                "the server refused the handshake: it requires other ciphers or a client certificate"
                    .into()
            }
            AlertDescription::UnrecognisedName => "the server does not serve this name".into(),
            other => format!("the server refused the connection ({other:?})"),
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

/// The stream below TLS. It keeps the first bytes, which show the protocol of a server without
/// TLS.
struct TlsStream {
    adapter: TransportAdapter,
    first_bytes: Vec<u8>,
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.adapter.read(buffer)?;
        let missing = b"HTTP/".len() - self.first_bytes.len();
        self.first_bytes.extend(&buffer[..count.min(missing)]);
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
    peer: Peer,
}

impl TlsTransport {
    /// Replaces an error by the alert that explains it. A server may refuse after the
    /// handshake: in TLS 1.3 it is complete before the server has seen that a client
    /// certificate is missing.
    fn with_pending_alert(&mut self, error: io::Error) -> io::Error {
        let stream = &mut self.stream;
        let error = pending_alert(&mut stream.conn, &mut stream.sock, &error).unwrap_or(error);
        match error.get_ref().and_then(|e| e.downcast_ref()) {
            Some(error) => {
                let text =
                    format!("no secure connection to {}: {}", self.peer, describe_error(error));
                RequestFailure::new(ErrorKind::Endpoint, text).into()
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
        Ok(result.map_err(|error| self.with_pending_alert(error))?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.adapter.set_timeout(timeout);
        let result = self.stream.read(input_space(&mut self.buffers)?);
        let amount = result.map_err(|error| self.with_pending_alert(error))?;
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
        // The buffers contain headers, and so the key.
        f.debug_struct("TlsTransport").field("peer", &self.peer).finish_non_exhaustive()
    }
}
