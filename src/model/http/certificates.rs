//! Whose certificates are trusted, and what is wrong with one that is not.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use webpki_roots::TLS_SERVER_ROOTS;

use crate::config::RootFile;
use crate::error::Kind;
use crate::limits;
use crate::model::http::obstacle::Obstacle;
use crate::model::http::party::Party;
use crate::text::one_line;
use crate::world::net::system_certificates;

/// The usual rules, and one more: a self-signed certificate that stands itself
/// in the user's file is trusted, as OpenSSL does, although `openssl req -x509`
/// marks it as an authority's, which webpki refuses of a server.
#[derive(Debug)]
pub struct Verifier {
    chains: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Trusts the built-in roots, or instead of them what a file holds.
    pub fn new(
        roots: Option<&RootFile>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, Obstacle> {
        let (store, pinned) = match roots {
            Some(file) => read_roots(file)?,
            None => (TLS_SERVER_ROOTS.iter().cloned().collect(), Vec::new()),
        };
        WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
            .build()
            .map(|chains| Verifier { chains, pinned })
            .map_err(|error| {
                Obstacle::lasting(Kind::Config, format!("no roots can be trusted: {error}"))
            })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let result = self.chains.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match result {
            // The dates have been checked before; the name is checked now.
            Err(rustls::Error::InvalidCertificate(error))
                if is_authority(&error) && self.pinned.contains(end_entity) =>
            {
                let certificate = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&certificate, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// What is wrong with a party's certificate, and what can be done. `roots` is
/// the user's own file.
pub fn explain(party: &Party, error: &CertificateError, roots: Option<&RootFile>) -> Obstacle {
    let host = &party.host;
    let (text, hint) = match error {
        CertificateError::UnknownIssuer => (
            "is not trusted: it is self-signed, or its authority is unknown".into(),
            Some(trust_hint(roots)),
        ),
        error if is_authority(error) => (
            "is not trusted: it is self-signed".into(),
            Some("if you trust it, put it into the file that SSL_CERT_FILE names".into()),
        ),
        CertificateError::ExpiredContext { time, not_after } => (
            format!("expired {} ago", days(*not_after, *time)),
            Some(CLOCK_HINT.into()),
        ),
        CertificateError::NotValidYetContext { time, not_before } => (
            format!(
                "is not valid yet: it will be in {}",
                days(*time, *not_before)
            ),
            Some(CLOCK_HINT.into()),
        ),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => (
            format!("is not for {host}: it names no host at all (in its subjectAltName)"),
            None,
        ),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names = presented.iter().take(limits::NAMES).map(|name| bare(name));
            let names = names.collect::<Vec<_>>().join(", ");
            let names = one_line(&names, limits::QUOTED_BYTES);
            (
                format!("is not for {host}, but for {names}"),
                Some(
                    "ask it by such a name in LLM_API_BASE_URL, or give it another certificate"
                        .into(),
                ),
            )
        }
        CertificateError::BadEncoding => ("cannot be read".into(), None),
        CertificateError::BadSignature => ("has a wrong signature".into(), None),
        other => {
            let reason = one_line(&other.to_string(), limits::QUOTED_BYTES);
            (format!("is not accepted: {reason}"), None)
        }
    };
    let text = format!("the certificate of {party} {text}");
    let obstacle = Obstacle::lasting(Kind::Endpoint, text);
    match hint {
        Some(hint) => obstacle.with_hint(hint),
        None => obstacle,
    }
}

const CLOCK_HINT: &str =
    "the server needs another certificate, unless the clock of this machine is wrong";

fn days(from: UnixTime, to: UnixTime) -> String {
    let day = 24 * 60 * 60;
    match to.as_secs().saturating_sub(from.as_secs()) / day {
        0 => "less than a day".into(),
        1 => "1 day".into(),
        days => format!("{days} days"),
    }
}

fn trust_hint(roots: Option<&RootFile>) -> String {
    if let Some(file) = roots {
        let path = file.path.display();
        return format!(
            "SSL_CERT_FILE is {path}, which does not contain that authority: add its certificate (PEM)"
        );
    }
    let example = system_certificates()
        .map(|path| format!(", for example SSL_CERT_FILE={path}"))
        .unwrap_or_default();
    format!("if you trust that server's authority, set SSL_CERT_FILE{example}")
}

/// What a file vouches for: the authorities, and the certificates themselves.
fn read_roots(file: &RootFile) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), Obstacle> {
    let mut store = RootCertStore::empty();
    let mut pinned = Vec::new();
    let mut skipped = 0;
    for certificate in CertificateDer::pem_slice_iter(&file.pem) {
        match certificate {
            Ok(certificate) if store.add(certificate.clone()).is_ok() => pinned.push(certificate),
            _ => skipped += 1,
        }
    }
    if store.is_empty() {
        let reason = match skipped {
            0 => "holds no certificate in PEM form".to_string(),
            1 => "holds one certificate, which cannot be read".to_string(),
            _ => format!("holds {skipped} certificates, none of which can be read"),
        };
        let text = format!(
            "the file of SSL_CERT_FILE, {}, {reason}",
            file.path.display()
        );
        return Err(Obstacle::lasting(Kind::Config, text)
            .with_hint("a PEM file has lines `-----BEGIN CERTIFICATE-----`"));
    }
    Ok((store, pinned))
}

/// Whether a server was refused because its certificate is an authority's.
fn is_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// A name without what rustls puts around it: `DnsName("a.test")`, `IpAddress(::1)`.
fn bare(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .unwrap_or(name);
    inner.trim_matches('"')
}
