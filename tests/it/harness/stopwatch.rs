//! Upper bounds of time that hold on a machine with other work, too.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// The kernel brings its sums of `/proc/pressure` up to date so often.
const REFRESH: Duration = Duration::from_millis(2100);

/// The time since a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
    stalled: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { started: Instant::now(), stalled: stalled() }
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.started.elapsed()
    }

    /// The same, but where that is more than `most`, without the time in which a
    /// process of this machine waited for a processor or a disk.
    pub(crate) fn elapsed_within(self, most: Duration) -> Duration {
        self.within(self.elapsed(), most)
    }

    /// The same of a time that passed since the start.
    pub(crate) fn within(self, took: Duration, most: Duration) -> Duration {
        if took <= most {
            return took;
        }
        thread::sleep(REFRESH);
        took.saturating_sub(stalled().saturating_sub(self.stalled))
    }
}

/// How long any process of this machine has waited, since it was started; nothing
/// where the kernel does not count that.
fn stalled() -> Duration {
    let total = |resource| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?;
        let (_, total) = text.lines().next()?.rsplit_once("total=")?;
        total.parse().ok()
    };
    let microseconds = ["cpu", "io"].into_iter().filter_map(total).sum();
    Duration::from_micros(microseconds)
}
