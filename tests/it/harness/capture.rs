//! Captures a stream in a background thread, so that neither the program nor the test blocks.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// All bytes read from a stream so far.
#[derive(Clone, Default)]
pub(super) struct Capture {
    shared: Arc<(Mutex<Captured>, Condvar)>,
}

#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    has_ended: bool,
}

impl Capture {
    /// Starts a thread that reads the stream to its end.
    pub(super) fn start(mut stream: impl Read + Send + 'static) -> Capture {
        let capture = Capture::default();
        let shared = Arc::clone(&capture.shared);
        thread::spawn(move || {
            let mut buffer = vec![0u8; 64 * 1024];
            loop {
                // An error ends the stream, too: reading a terminal fails with EIO once no
                // process has it open.
                let count = stream.read(&mut buffer).unwrap_or(0);
                let mut captured = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
                captured.bytes.extend_from_slice(&buffer[..count]);
                captured.has_ended = count == 0;
                shared.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        capture
    }

    /// An empty stream that has ended, for a stream that is not captured.
    pub(super) fn empty() -> Capture {
        let capture = Capture::default();
        capture.lock().has_ended = true;
        capture
    }

    /// The bytes read so far.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    /// The bytes read so far, as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// Waits for `needle` at or after `from`. Returns the position after it, or `None` if
    /// the stream ended or the deadline passed first.
    pub(super) fn wait_for(&self, needle: &str, from: usize, deadline: Instant) -> Option<usize> {
        let needle = needle.as_bytes();
        let mut unsearched = from;
        self.wait_until(deadline, |captured| {
            let rest = captured.bytes.get(unsearched..).unwrap_or_default();
            let found = rest.windows(needle.len().max(1)).position(|window| window == needle);
            if found.is_none() {
                unsearched = captured.bytes.len().saturating_sub(needle.len()).max(unsearched);
            }
            found.map(|at| captured.bytes.len() - rest.len() + at + needle.len())
        })
    }

    /// Waits for the end of the stream. Returns whether it came before the deadline.
    pub(super) fn wait_for_end(&self, deadline: Instant) -> bool {
        self.wait_until(deadline, |captured| captured.has_ended.then_some(())).is_some()
    }

    fn wait_until<T>(
        &self,
        deadline: Instant,
        mut check: impl FnMut(&Captured) -> Option<T>,
    ) -> Option<T> {
        let mut captured = self.lock();
        loop {
            if let Some(found) = check(&captured) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if captured.has_ended || left.is_zero() {
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
