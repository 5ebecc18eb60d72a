//! One connection to the scripted endpoint: requests in, replies out.

use std::any::Any;
use std::io::{BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::PATIENCE;
use super::reply::Ending;
use super::request::Request;
use super::server::Shared;
use super::wire::Wire;

impl Shared {
    /// One connection, from its first request to its end.
    pub(super) fn serve(&self, mut stream: TcpStream, number: usize) {
        let Ok(copy) = stream.try_clone() else { return };
        let mut reader = BufReader::new(copy);
        if let Some(reply) = self.said_unasked() {
            let wire = self.render(reply, &Request::unread(number));
            let ending = self.write(&wire, &mut stream);
            // There is nothing to answer: what comes is read, and no more.
            self.end(ending.unless_kept(), &mut reader, &stream);
            self.forget(&stream);
            return;
        }
        loop {
            match Request::read(&mut reader, number) {
                Ok(Some(request)) => match self.answer(&request, &mut stream) {
                    Ending::Keep => {}
                    ending => {
                        self.end(ending, &mut reader, &stream);
                        break;
                    }
                },
                Ok(None) => break,
                Err(error) => {
                    if error.kind() == ErrorKind::InvalidData {
                        self.problem(error.to_string());
                    }
                    break;
                }
            }
        }
        self.forget(&stream);
    }

    fn answer(&self, request: &Request, stream: &mut TcpStream) -> Ending {
        let reply = self.take_reply(request);
        // An assertion in a test's function is a failed test, not a lost thread.
        let reply = catch_unwind(AssertUnwindSafe(|| reply.resolve(request)));
        let reply = reply.unwrap_or_else(|panic| self.refuse(request, &panic_text(&*panic)));
        let reply = match reply.mismatch(request) {
            Some(reason) => self.refuse(request, reason),
            None => reply,
        };
        let wire = self.render(reply, request);
        self.write(&wire, stream)
    }

    fn write(&self, wire: &Wire, stream: &mut TcpStream) -> Ending {
        for piece in &wire.pieces {
            for _ in 0..piece.times {
                if self.sleep(piece.pause) || stream.write_all(&piece.bytes).is_err() {
                    return Ending::Close;
                }
            }
        }
        wire.ending
    }

    fn end(&self, ending: Ending, reader: &mut BufReader<TcpStream>, stream: &TcpStream) {
        match ending {
            Ending::Keep | Ending::Close => {}
            Ending::Hang => {
                let _ = std::io::copy(reader, &mut std::io::sink());
            }
            Ending::Reset => reset_on_close(stream),
            Ending::Deaf => {
                self.sleep(PATIENCE);
            }
        }
    }
}

impl Ending {
    fn unless_kept(self) -> Ending {
        match self {
            Ending::Keep => Ending::Hang,
            other => other,
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

/// An orderly close says "that was all"; this one says "gone".
fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = libc::socklen_t::try_from(size_of::<libc::linger>()).expect("a few bytes");
    // SAFETY: the descriptor is open, and the structure of that size outlives the call.
    unsafe {
        let value = (&raw const linger).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, size);
    }
}
