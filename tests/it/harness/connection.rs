//! One connection to the scripted endpoint: requests in, replies out.

use std::any::Any;
use std::io::{BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::reply::Ending;
use super::request::Request;
use super::server::Shared;

impl Shared {
    /// One connection, from its first request to its end.
    pub(super) fn serve(&self, mut stream: TcpStream, number: usize) {
        let Ok(copy) = stream.try_clone() else { return };
        let mut reader = BufReader::new(copy);
        loop {
            match Request::read(&mut reader, number) {
                Ok(Some(request)) => match self.answer(&request, &mut stream) {
                    Ending::Keep => {}
                    Ending::Hang => {
                        let _ = std::io::copy(&mut reader, &mut std::io::sink());
                        break;
                    }
                    Ending::Reset => {
                        reset_on_close(&stream);
                        break;
                    }
                    Ending::Close => break,
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
        for (pause, bytes) in &wire.pieces {
            if self.sleep(*pause) || stream.write_all(bytes).is_err() {
                return Ending::Close;
            }
        }
        wire.ending
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("panicked")
        .to_owned()
}

/// An orderly close says "that was all"; this one says "gone".
fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let size = libc::socklen_t::try_from(size_of::<libc::linger>()).expect("a few bytes");
    // SAFETY: the descriptor is open, and the structure of that size outlives the call.
    unsafe {
        let value = (&raw const linger).cast();
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            value,
            size,
        );
    }
}
