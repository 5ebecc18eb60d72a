//! Plain http through a proxy: each request names the whole address (RFC 9112 3.2.2).

use std::fmt;

use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

use crate::http::peer::Peer;

/// A connection to a proxy, for requests to one endpoint. It converts `POST /path HTTP/1.1` to
/// the absolute form.
pub(super) struct AbsoluteForm {
    proxy: Box<dyn Transport>,
    /// `http://host:port`
    prefix: String,
    /// Whether the next output starts a request. It contains the whole first line: `ureq` writes
    /// no part of one.
    is_request_start: bool,
}

impl AbsoluteForm {
    /// Creates the transport on a connection to the proxy.
    pub(super) fn new(proxy: Box<dyn Transport>, target: &Peer) -> AbsoluteForm {
        let prefix = format!("http://{}", target.authority());
        AbsoluteForm { proxy, prefix, is_request_start: true }
    }
}

impl Transport for AbsoluteForm {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.proxy.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        if !std::mem::take(&mut self.is_request_start) {
            return self.proxy.transmit_output(amount, timeout);
        }
        let output = &self.proxy.buffers().output()[..amount];
        let space = output.iter().position(|byte| *byte == b' ');
        let (method, rest) = output.split_at(space.map_or(0, |space| space + 1));
        let request = [method, self.prefix.as_bytes(), rest].concat();
        // The prefix may exceed the room in the buffer.
        let mut rest = request.as_slice();
        while !rest.is_empty() {
            let output = self.proxy.buffers().output();
            let (piece, after) = rest.split_at(rest.len().min(output.len()));
            output[..piece.len()].copy_from_slice(piece);
            self.proxy.transmit_output(piece.len(), timeout)?;
            rest = after;
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.is_request_start = true;
        self.proxy.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.proxy.is_open()
    }
}

impl fmt::Debug for AbsoluteForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The buffers of the connection contain headers, and so the key and the login.
        f.debug_struct("AbsoluteForm").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use ureq::unversioned::transport::LazyBuffers;

    /// A connection that only keeps what is sent, with little room for output.
    #[derive(Debug)]
    struct Recorder(LazyBuffers, Arc<Mutex<Vec<u8>>>);

    impl Transport for Recorder {
        fn buffers(&mut self) -> &mut dyn Buffers {
            &mut self.0
        }

        fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), ureq::Error> {
            self.1.lock().unwrap().extend(&self.0.output()[..amount]);
            Ok(())
        }

        fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
            Ok(true)
        }

        fn is_open(&mut self) -> bool {
            true
        }
    }

    #[test]
    fn each_request_gets_the_absolute_form_once() {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let recorder = Recorder(LazyBuffers::new(32, 32), Arc::clone(&sent));
        let target = Peer { host: "2001:db8::1".into(), port: 8080, is_proxy: false, setting: "" };
        let mut transport = AbsoluteForm::new(Box::new(recorder), &target);
        let timeout = NextTimeout::default();
        for _ in 0..2 {
            for piece in [&b"POST /v1/x HTTP/1.1\r\nHost: a\r\n"[..], b"\r\nbody of words"] {
                transport.buffers().output()[..piece.len()].copy_from_slice(piece);
                transport.transmit_output(piece.len(), timeout).unwrap();
            }
            transport.await_input(timeout).unwrap();
        }
        let request =
            "POST http://[2001:db8::1]:8080/v1/x HTTP/1.1\r\nHost: a\r\n\r\nbody of words";
        assert_eq!(String::from_utf8_lossy(&sent.lock().unwrap()), request.repeat(2));
    }
}
