//! A stream that is read in the background, so that nobody ever blocks on it.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Everything that came from a stream so far.
#[derive(Clone, Default)]
pub(super) struct Capture {
    shared: Arc<(Mutex<Captured>, Condvar)>,
}

#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    ended: bool,
}

impl Capture {
    /// Starts to read a stream, in a thread that lives until the stream ends.
    pub(super) fn of(mut stream: impl Read + Send + 'static) -> Capture {
        let capture = Capture::default();
        let shared = Arc::clone(&capture.shared);
        thread::spawn(move || {
            let mut buffer = vec![0u8; 64 * 1024];
            loop {
                // An error is the end as well: a terminal that nobody has open any more says EIO.
                let count = stream.read(&mut buffer).unwrap_or(0);
                let mut captured = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
                captured.bytes.extend_from_slice(&buffer[..count]);
                captured.ended = count == 0;
                shared.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        capture
    }

    /// A stream that was not captured: empty, and at its end.
    pub(super) fn nothing() -> Capture {
        let capture = Capture::default();
        capture.lock().ended = true;
        capture
    }

    /// What has come so far.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    /// What has come so far, as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// Waits for `needle` at or after `from`; gives the place behind it, or
    /// `None` when the stream ended or the deadline passed without it.
    pub(super) fn find(&self, needle: &str, from: usize, deadline: Instant) -> Option<usize> {
        let needle = needle.as_bytes();
        let mut unsearched = from;
        self.wait(deadline, |captured| {
            let rest = captured.bytes.get(unsearched..).unwrap_or_default();
            let found = rest.windows(needle.len().max(1)).position(|window| window == needle);
            if found.is_none() {
                unsearched = captured.bytes.len().saturating_sub(needle.len()).max(unsearched);
            }
            found.map(|at| captured.bytes.len() - rest.len() + at + needle.len())
        })
    }

    /// Waits for the stream's end; whether it came in time.
    pub(super) fn end(&self, deadline: Instant) -> bool {
        self.wait(deadline, |captured| captured.ended.then_some(())).is_some()
    }

    fn wait<T>(
        &self,
        deadline: Instant,
        mut look: impl FnMut(&Captured) -> Option<T>,
    ) -> Option<T> {
        let mut captured = self.lock();
        loop {
            if let Some(found) = look(&captured) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if captured.ended || left.is_zero() {
                return None;
            }
            captured = self
                .shared
                .1
                .wait_timeout(captured, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
