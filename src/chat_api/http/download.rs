//! Downloads of files, such as archives of skills. No credentials are sent, except the login of a
//! proxy to that proxy.

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use ureq::http::HeaderMap;

use crate::http::client::{Client, without_query};
use crate::http::failure::transport_failure;
use crate::request_failure::RequestFailure;
use crate::{Endpoint, Network};
use base::address::Address;
use base::error::{Error, ErrorKind, Result};
use base::event::{Event, EventSink};
use base::limits;
use base::secret::mask_url_logins;
use base::text::one_line;
use host::cancellation::Cancellation;

/// Downloads a file of at most [`limits::ARCHIVE_BYTES`]. Redirects are followed if they are
/// encrypted. `network` gives the route to each address.
pub fn download(
    address: &Address,
    network: &dyn Fn(&Address) -> Result<Network>,
    into: &mut File,
    cancellation: &Cancellation,
    sink: &mut EventSink<'_>,
) -> Result<()> {
    let mut address = address.clone();
    for _ in 0..=limits::REDIRECTS {
        let url = address.url();
        let failed = |failure: RequestFailure| download_error(&url, failure);
        let endpoint = Endpoint::for_download(address.clone(), network(&address)?, "SOURCE");
        let client = Client::new(endpoint, cancellation.clone());
        sink(Event::Request { method: "GET", url: without_query(&url), bytes: 0 });
        let start = Instant::now();
        let response = client.get(&url).map_err(|error| failed(transport_failure(error)))?;
        sink(Event::Response { duration: start.elapsed(), usage: None });
        let (parts, mut body) = response.into_parts();
        let refuse = |kind, cause: String| Err(failed(RequestFailure::new(kind, cause)));
        match parts.status.as_u16() {
            200 => {
                client.limit_silence();
                let reader = PacedReader::new(body.as_reader(), limits::DOWNLOAD_WINDOW);
                let mut reader = reader.take(limits::ARCHIVE_BYTES + 1);
                let copied = io::copy(&mut reader, into);
                let length = copied.map_err(|error| match error.kind() {
                    // Of the file, not of the connection.
                    io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::FileTooLarge => {
                        failed(RequestFailure::new(ErrorKind::Io, error.to_string()))
                            .with_hint("set TMPDIR to a folder with enough space")
                    }
                    _ => failed(transport_failure(error.into())),
                })?;
                if length > limits::ARCHIVE_BYTES {
                    return refuse(ErrorKind::Endpoint, "it is larger than 1 GiB".into());
                }
                return Ok(());
            }
            301 | 302 | 303 | 307 | 308 => match redirect(&address, &parts.headers) {
                Ok(next) => address = next,
                Err(cause) => return refuse(ErrorKind::Endpoint, cause),
            },
            status @ (401 | 403) => {
                return refuse(ErrorKind::Auth, format!("the server answered {status}"));
            }
            status @ (408 | 429 | 500..=599) => {
                return refuse(ErrorKind::Temporary, format!("the server answered {status}"));
            }
            status => return refuse(ErrorKind::Endpoint, format!("the server answered {status}")),
        }
    }
    let cause = format!("more than {} redirects", limits::REDIRECTS);
    Err(download_error(&address.url(), RequestFailure::new(ErrorKind::Endpoint, cause)))
}

/// Refuses a download that is too slow.
struct PacedReader<R> {
    reader: R,
    /// In each of these times [`limits::DOWNLOADED_BYTES`] have to arrive.
    window: Duration,
    start: Instant,
    bytes: u64,
}

impl<R> PacedReader<R> {
    fn new(reader: R, window: Duration) -> PacedReader<R> {
        PacedReader { reader, window, start: Instant::now(), bytes: 0 }
    }
}

impl<R: Read> Read for PacedReader<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(room)?;
        self.bytes += length as u64;
        if length > 0 && self.start.elapsed() >= self.window {
            if self.bytes < limits::DOWNLOADED_BYTES {
                let cause = format!("less than 1 KiB/s arrived for {} s", self.window.as_secs());
                return Err(io::Error::other(RequestFailure::temporary(cause)));
            }
            (self.start, self.bytes) = (Instant::now(), 0);
        }
        Ok(length)
    }
}

/// The address that a redirect leads to. The error is the cause.
fn redirect(address: &Address, headers: &HeaderMap) -> std::result::Result<Address, String> {
    let location = headers.get("location").and_then(|value| value.to_str().ok()).unwrap_or("");
    let shown = one_line(&mask_url_logins(without_query(location)), limits::QUOTED_BYTES);
    if shown != one_line(without_query(location), limits::QUOTED_BYTES) {
        return Err(format!("it redirects to `{shown}`, which has a login"));
    }
    let next = address.redirected(location);
    let next = next.map_err(|cause| format!("it redirects to `{shown}`, but {cause}"))?;
    if next.is_encrypted() {
        Ok(next)
    } else {
        Err(format!("it redirects to `{shown}`, which is not https"))
    }
}

fn download_error(url: &str, failure: RequestFailure) -> Error {
    if failure.is_stop() {
        return Error::new(failure.kind, failure.cause);
    }
    let url = one_line(without_query(url), limits::QUOTED_BYTES);
    let error = Error::new(failure.kind, format!("failed to download {url}: {}", failure.cause));
    // After silence the hint is about models.
    let is_silence = failure.kind == ErrorKind::Temporary && !failure.is_retryable;
    match failure.hint.filter(|_| !is_silence) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    /// Gives this many bytes at a time, each after a pause.
    struct Drip(usize, Duration);

    impl Read for Drip {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            sleep(self.1);
            Ok(self.0.min(room.len()))
        }
    }

    #[test]
    fn downloads_below_the_lowest_rate_end() {
        let window = Duration::from_millis(20);
        let read = |bytes: usize, times: usize| {
            let mut reader = PacedReader::new(Drip(bytes, window), window);
            let mut room = vec![0; 64 << 10];
            (0..times).try_for_each(|_| reader.read(&mut room).map(|_| ()))
        };
        let failure = read(1000, 1).unwrap_err().downcast::<RequestFailure>().unwrap();
        assert_eq!(failure.kind, ErrorKind::Temporary);
        // Enough in each window, however long all of it takes, and nothing after the end.
        read(64 << 10, 5).unwrap();
        let mut ended = PacedReader::new(io::empty(), Duration::ZERO);
        assert_eq!(ended.read(&mut [0; 9]).unwrap(), 0);
    }
}
