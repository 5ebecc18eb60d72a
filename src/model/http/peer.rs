//! Who is at the other end of a connection, and what went wrong with them.

use std::fmt;
use std::io;

use ureq::http::Uri;
use ureq::unversioned::transport::{Buffers, LazyBuffers};

use crate::limits;
use crate::model::http::connect_error::ConnectError;
use crate::world::cancellation::StopReason;

/// Somebody to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// A name or an address; an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// A proxy, or the endpoint itself.
    pub is_proxy: bool,
}

impl Peer {
    /// Who an address names.
    pub(super) fn of(uri: &Uri) -> Result<Peer, ureq::Error> {
        let host = uri.host().ok_or_else(|| ureq::Error::BadUri(uri.to_string()))?;
        let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        Ok(Peer {
            host: host.trim_matches(['[', ']']).to_string(),
            port: uri.port_u16().unwrap_or(default_port),
            is_proxy: false,
        })
    }

    /// Host and port, as they stand in an address.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Where its address is set.
    pub(super) fn hint(&self) -> &'static str {
        if self.is_proxy {
            "check the proxy's address in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"
        } else {
            "check the host name in LLM_API_BASE_URL"
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_proxy {
            f.write_str("the proxy ")?;
        }
        f.write_str(&self.authority())
    }
}

/// What failed while a connection was made: a stop stays one, silence and
/// everything else become an [`ConnectError`].
pub(super) fn stopped_or(
    error: io::Error,
    other: impl FnOnce(&io::Error) -> ConnectError,
    silent: impl FnOnce() -> String,
) -> ureq::Error {
    match StopReason::within(&error) {
        Some(StopReason::Silence(_)) => {
            let text = format!("{} within {} s", silent(), limits::CONNECT.as_secs());
            ConnectError::passing(text).into()
        }
        Some(_) => error.into(),
        None => match error.downcast::<ConnectError>() {
            Ok(obstacle) => obstacle.into(),
            Err(error) => other(&error).into(),
        },
    }
}

/// Where input goes. Only a head has to fit into the buffer as a whole.
pub(super) fn room(buffers: &mut LazyBuffers) -> Result<&mut [u8], ureq::Error> {
    let input = buffers.input_append_buf();
    if input.is_empty() {
        let size = limits::READ_BYTES;
        return Err(ureq::Error::LargeResponseHeader(size, size));
    }
    Ok(input)
}
