//! Serves one connection to the scripted endpoint.

use std::any::Any;
use std::io::{BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::DEFAULT_TIMEOUT;
use super::reply::ConnectionEnd;
use super::request::Request;
use super::server::Shared;
use super::wire::Response;

impl Shared {
    /// Serves one connection from its first request to its end.
    pub(super) fn serve(&self, mut stream: TcpStream, number: usize) {
        let Ok(copy) = stream.try_clone() else { return };
        let mut reader = BufReader::new(copy);
        if let Some(reply) = self.unsolicited_reply() {
            let wire = self.render(reply, &Request::placeholder(number));
            let ending = self.write(&wire, &mut stream);
            // Requests are read and ignored.
            self.end(ending.or_hang(), &mut reader, &stream);
            self.forget_stream(&stream);
            return;
        }
        loop {
            match Request::read(&mut reader, number) {
                Ok(Some(request)) => match self.answer(&request, &mut stream) {
                    ConnectionEnd::Keep => {}
                    ending => {
                        self.end(ending, &mut reader, &stream);
                        break;
                    }
                },
                Ok(None) => break,
                Err(error) => {
                    if error.kind() == ErrorKind::InvalidData {
                        self.add_problem(error.to_string());
                    }
                    break;
                }
            }
        }
        self.forget_stream(&stream);
    }

    fn answer(&self, request: &Request, stream: &mut TcpStream) -> ConnectionEnd {
        let reply = self.next_reply(request);
        // A failed assertion in a test's function must fail the test, not end this thread.
        let reply = catch_unwind(AssertUnwindSafe(|| reply.resolve(request)));
        let reply = reply.unwrap_or_else(|panic| self.fail_request(request, &panic_text(&*panic)));
        let reply = match reply.mismatch(request) {
            Some(reason) => self.fail_request(request, reason),
            None => reply,
        };
        let wire = self.render(reply, request);
        self.write(&wire, stream)
    }

    fn write(&self, wire: &Response, stream: &mut TcpStream) -> ConnectionEnd {
        for piece in &wire.pieces {
            for _ in 0..piece.times {
                if self.sleep(piece.pause) || stream.write_all(&piece.bytes).is_err() {
                    return ConnectionEnd::Close;
                }
            }
        }
        wire.ending
    }

    fn end(&self, ending: ConnectionEnd, reader: &mut BufReader<TcpStream>, stream: &TcpStream) {
        match ending {
            ConnectionEnd::Keep | ConnectionEnd::Close => {}
            ConnectionEnd::Hang => {
                let _ = std::io::copy(reader, &mut std::io::sink());
            }
            ConnectionEnd::Reset => reset_on_close(stream),
            ConnectionEnd::StopReading => {
                self.sleep(DEFAULT_TIMEOUT);
            }
        }
    }
}

impl ConnectionEnd {
    fn or_hang(self) -> ConnectionEnd {
        match self {
            ConnectionEnd::Keep => ConnectionEnd::Hang,
            other => other,
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

/// Makes closing the stream send RST instead of FIN.
fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = libc::socklen_t::try_from(size_of::<libc::linger>()).expect("a small structure");
    // SAFETY: the descriptor is open, and the structure of that size outlives the call.
    unsafe {
        let value = (&raw const linger).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, size);
    }
}
