//! The other end of a connection: the endpoint or a proxy.

use std::fmt;
use std::io;

use ureq::unversioned::transport::{Buffers, LazyBuffers};

use crate::request_failure::RequestFailure;
use crate::{Endpoint, Proxy};
use base::address::Authority;
use base::limits;
use host::cancellation::StopReason;

/// A host and port to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// A name or an address; an IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether it is a proxy or the endpoint itself.
    pub is_proxy: bool,
    /// The variable with the address, for hints.
    pub setting: &'static str,
}

impl Peer {
    /// The server of this endpoint.
    pub(super) fn from_endpoint(endpoint: &Endpoint) -> Peer {
        let address = &endpoint.address;
        let setting = endpoint.sources.address.name;
        Peer { host: address.host().to_string(), port: address.port(), is_proxy: false, setting }
    }

    /// The proxy itself.
    pub(super) fn from_proxy(proxy: &Proxy) -> Peer {
        let setting = "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY";
        Peer { host: proxy.host.clone(), port: proxy.port, is_proxy: true, setting }
    }

    /// Host and port, as written in an address.
    pub(super) fn authority(&self) -> String {
        Authority { host: self.host.clone(), port: Some(self.port) }.to_string()
    }

    /// The hint that names the setting with its address.
    pub(super) fn address_hint(&self) -> String {
        let part = if self.is_proxy { "proxy's address" } else { "host name" };
        format!("check the {part} in {}", self.setting)
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

/// Converts an I/O error during connecting: signals and the deadline stay what they are;
/// silence (described by `silent`) and all else (converted by `other`) become a
/// [`RequestFailure`].
pub(super) fn connect_failure(
    error: io::Error,
    other: impl FnOnce(&io::Error) -> RequestFailure,
    silent: impl FnOnce() -> String,
) -> ureq::Error {
    match StopReason::from_io_error(&error) {
        Some(StopReason::Silence(_)) => {
            let text = format!("{} within {} s", silent(), limits::CONNECT_TIMEOUT.as_secs());
            RequestFailure::temporary(text).into()
        }
        Some(_) => error.into(),
        None => match error.downcast::<RequestFailure>() {
            Ok(failure) => failure.into(),
            Err(error) => other(&error).into(),
        },
    }
}

/// The free space for input. Only the head of a response must fit into the buffer as a whole.
pub(super) fn input_space(buffers: &mut LazyBuffers) -> Result<&mut [u8], ureq::Error> {
    let input = buffers.input_append_buf();
    if input.is_empty() {
        let size = limits::READ_BYTES;
        return Err(ureq::Error::LargeResponseHeader(size, size));
    }
    Ok(input)
}
