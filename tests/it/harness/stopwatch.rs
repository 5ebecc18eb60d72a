//! Measures time for upper limits that must hold on a busy machine, too.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the kernel updates the totals in `/proc/pressure`.
const REFRESH: Duration = Duration::from_millis(2100);

/// Measures the time since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
    stalled_at_start: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { started: Instant::now(), stalled_at_start: stalled() }
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.started.elapsed()
    }

    /// The elapsed time. If it exceeds `limit`, the time in which processes of this machine waited
    /// for a processor or a disk is subtracted.
    pub(crate) fn elapsed_for_limit(self, limit: Duration) -> Duration {
        self.adjusted_for_limit(self.elapsed(), limit)
    }

    /// Like [`Stopwatch::elapsed_for_limit`], for a time that was measured since the start.
    pub(crate) fn adjusted_for_limit(self, took: Duration, limit: Duration) -> Duration {
        if took <= limit {
            return took;
        }
        thread::sleep(REFRESH);
        took.saturating_sub(stalled().saturating_sub(self.stalled_at_start))
    }
}

/// How long processes of this machine have waited since it was started; zero if the kernel does
/// not measure that.
fn stalled() -> Duration {
    let total = |resource| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?;
        let (_, total) = text.lines().next()?.rsplit_once("total=")?;
        total.parse().ok()
    };
    let microseconds = ["cpu", "io"].into_iter().filter_map(total).sum();
    Duration::from_micros(microseconds)
}
