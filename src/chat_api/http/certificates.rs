//! Verification of server certificates, and the errors for those that are not trusted.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use webpki_roots::TLS_SERVER_ROOTS;

use crate::CertificateFile;
use crate::http::authority::may_sign;
use crate::http::peer::Peer;
use crate::request_failure::RequestFailure;
use base::error::ErrorKind;
use base::limits;
use base::text::one_line;
use host::net::system_certificates;

/// Verifies certificates by the usual rules for chains that end at an authority. A certificate
/// that is itself in the user's file needs no chain: it is trusted for its own names, within
/// its dates. webpki refuses even such a one if it is self-signed and says `CA:TRUE`, as
/// `openssl req -x509` creates it.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    anchors: TrustAnchors,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The built-in roots, or the certificates in the user's file.
#[derive(Debug)]
struct TrustAnchors {
    /// Certificates that may sign others.
    authorities: RootCertStore,
    /// Certificates that a server may present as its own: all in the file.
    trusted_servers: Vec<CertificateDer<'static>>,
}

impl CertificateVerifier {
    /// Trusts the certificates in the file, or without one the built-in roots.
    pub(super) fn new(
        roots: Option<&CertificateFile>,
        provider: &CryptoProvider,
    ) -> Result<CertificateVerifier, RequestFailure> {
        let trusted = match roots {
            Some(file) => read_roots(file)?,
            None => TrustAnchors {
                authorities: TLS_SERVER_ROOTS.iter().cloned().collect(),
                trusted_servers: Vec::new(),
            },
        };
        Ok(CertificateVerifier {
            anchors: trusted,
            algorithms: provider.signature_verification_algorithms,
        })
    }

    fn verify_chain(
        &self,
        certificate: &ParsedCertificate<'_>,
        authorities: &RootCertStore,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            certificate,
            authorities,
            intermediates,
            now,
            algorithms,
        )
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if self.anchors.trusted_servers.contains(end_entity) {
            // The dates are checked first. Without authorities, a missing chain is the only
            // other error.
            match self.verify_chain(&certificate, &RootCertStore::empty(), &[], now) {
                Err(rustls::Error::InvalidCertificate(error))
                    if error == CertificateError::UnknownIssuer || is_authority_error(&error) => {}
                other => other?,
            }
        } else {
            let authorities = &self.anchors.authorities;
            self.verify_chain(&certificate, authorities, intermediates, now)?;
        }
        verify_server_name(&certificate, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The error for a peer's invalid certificate, with a hint. `roots` is the user's own file.
pub(super) fn certificate_error(
    peer: &Peer,
    error: &CertificateError,
    roots: Option<&CertificateFile>,
) -> RequestFailure {
    let host = &peer.host;
    let (text, hint) = match error {
        CertificateError::UnknownIssuer => (
            "is not trusted: it is self-signed, or its authority is unknown".into(),
            Some(trust_hint(roots)),
        ),
        error if is_authority_error(error) => (
            "is not trusted: it is self-signed".into(),
            Some("if you trust it, put it into the file that SSL_CERT_FILE names".into()),
        ),
        CertificateError::ExpiredContext { time, not_after } => {
            (format!("expired {} ago", days_between(*not_after, *time)), Some(CLOCK_HINT.into()))
        }
        CertificateError::NotValidYetContext { time, not_before } => (
            format!("is not valid yet: it becomes valid in {}", days_between(*time, *not_before)),
            Some(CLOCK_HINT.into()),
        ),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            (format!("is not for {host}: it names no host at all (in its subjectAltName)"), None)
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names = presented.iter().take(limits::LISTED_NAMES).map(|name| unwrap_name(name));
            let names = names.collect::<Vec<_>>().join(", ");
            let names = one_line(&names, limits::QUOTED_BYTES);
            (
                format!("is for {names}, not for {host}"),
                Some(format!(
                    "use one of these names in {}, or install another certificate there",
                    peer.setting
                )),
            )
        }
        CertificateError::BadEncoding => ("cannot be read".into(), None),
        CertificateError::BadSignature => ("has a wrong signature".into(), None),
        other => {
            let reason = one_line(&other.to_string(), limits::QUOTED_BYTES);
            (format!("is not accepted: {reason}"), None)
        }
    };
    let text = format!("the certificate of {peer} {text}");
    let failure = RequestFailure::new(ErrorKind::Endpoint, text);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

const CLOCK_HINT: &str =
    "the server needs a new certificate, unless the clock of this machine is wrong";

fn days_between(from: UnixTime, to: UnixTime) -> String {
    let day = 24 * 60 * 60;
    match to.as_secs().saturating_sub(from.as_secs()) / day {
        0 => "less than a day".into(),
        1 => "1 day".into(),
        days => format!("{days} days"),
    }
}

fn trust_hint(roots: Option<&CertificateFile>) -> String {
    if let Some(file) = roots {
        let path = file.path.display();
        return format!(
            "SSL_CERT_FILE is {path}, which holds neither that certificate nor its authority's: add one of them (PEM)"
        );
    }
    let example = system_certificates()
        .map(|path| format!(", for example SSL_CERT_FILE={path}"))
        .unwrap_or_default();
    format!("if you trust that server's authority, set SSL_CERT_FILE{example}")
}

/// Reads the certificates in the user's file.
fn read_roots(file: &CertificateFile) -> Result<TrustAnchors, RequestFailure> {
    let mut authorities = RootCertStore::empty();
    let mut themselves = Vec::new();
    let mut skipped = 0;
    for certificate in CertificateDer::pem_slice_iter(&file.pem) {
        match certificate {
            // The store accepts every certificate that can be parsed.
            Ok(certificate) if authorities.add(certificate.clone()).is_ok() => {
                if !may_sign(&certificate) {
                    authorities.roots.pop();
                }
                themselves.push(certificate);
            }
            _ => skipped += 1,
        }
    }
    if themselves.is_empty() {
        let reason = match skipped {
            0 => "holds no certificate in PEM form".to_string(),
            1 => "holds one certificate, which cannot be read".to_string(),
            _ => format!("holds {skipped} certificates, none of which can be read"),
        };
        let text = format!("the file of SSL_CERT_FILE, {}, {reason}", file.path.display());
        return Err(RequestFailure::new(ErrorKind::Config, text)
            .with_hint("a PEM file has lines `-----BEGIN CERTIFICATE-----`"));
    }
    Ok(TrustAnchors { authorities, trusted_servers: themselves })
}

/// Whether a server was refused because its certificate is that of an authority.
fn is_authority_error(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// Removes what rustls writes around a name: `DnsName("a.test")`, `IpAddress(::1)`.
fn unwrap_name(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use rustls::pki_types::PrivateKeyDer;
    use rustls::sign::{CertifiedKey, SingleCertAndKey};
    use rustls::{
        ClientConfig, ClientConnection, ServerConfig, ServerConnection, SupportedProtocolVersion,
    };

    fn read(name: &str) -> Vec<u8> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        std::fs::read(format!("{root}/tests/data/tls/{name}")).unwrap()
    }

    /// Performs a handshake with a server that presents a trusted certificate and has this key.
    fn handshake(key: &str, version: &'static SupportedProtocolVersion) -> Result<(), String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = CertificateFile { path: "roots.pem".into(), pem: read("self-leaf.pem") };
        let verifier = CertificateVerifier::new(Some(&roots), &provider).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let key = PrivateKeyDer::from_pem_slice(&read(key)).unwrap();
        let key = provider.key_provider.load_private_key(key).unwrap();
        let shown = CertificateDer::from_pem_slice(&roots.pem).unwrap();
        let shown = SingleCertAndKey::from(CertifiedKey::new(vec![shown], key));
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(shown));
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).unwrap();
            }
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            wire.clear();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Every server can present a certificate; only its owner has the key.
    #[test]
    fn a_trusted_certificate_needs_its_key() {
        for version in rustls::ALL_VERSIONS {
            assert_eq!(handshake("self-leaf.key", version), Ok(()));
            let refused = handshake("server.key", version).unwrap_err();
            assert!(refused.contains("BadSignature"), "{refused}");
        }
    }
}
