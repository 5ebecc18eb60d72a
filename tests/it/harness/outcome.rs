//! The outcome of a run, with the assertions that tests make on it.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::CANARY;
use super::command::ExitRecord;
use super::server::Shared;
use super::stopwatch::Stopwatch;
use super::workspace::Folder;

/// A finished run. Each assertion returns the outcome; a failed one fails the test and prints
/// arguments, status, streams and requests.
pub(crate) struct Outcome {
    /// The exit status, or -N when signal N ended the program.
    pub status: i32,
    /// Standard output, as text.
    pub stdout: String,
    /// Standard error, as text.
    pub stderr: String,
    /// Standard output as bytes.
    pub stdout_bytes: Vec<u8>,
    /// Terminal output, if the program ran on a terminal.
    pub terminal: String,
    /// Time from the start to the end of the program.
    pub elapsed: Duration,
    watch: Stopwatch,
    /// Highest memory use of the program, without its children, polled every few milliseconds;
    /// 0 if the program ended before the first poll. `wait4` cannot be used for this: it counts
    /// the memory of the test process at the fork as well.
    pub peak_memory_kib: u64,
    picture: Transcript,
    _folder: Arc<Folder>,
}

/// Description of a run that is printed when a test fails.
pub(super) struct Transcript {
    pub(super) args: Vec<OsString>,
    pub(super) status: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) terminal: Vec<u8>,
    pub(super) servers: Vec<Arc<Shared>>,
}

impl Outcome {
    /// Creates the outcome and makes the checks that apply to every run.
    #[track_caller]
    pub(super) fn new(ended: ExitRecord, picture: Transcript, folder: Arc<Folder>) -> Outcome {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let outcome = Outcome {
            status: ended.status,
            stdout: text(&picture.stdout),
            stderr: text(&picture.stderr),
            stdout_bytes: picture.stdout.clone(),
            terminal: text(&picture.terminal),
            elapsed: ended.elapsed,
            watch: ended.watch,
            peak_memory_kib: ended.peak_memory_kib,
            picture,
            _folder: folder,
        };
        for stream in [&outcome.stdout, &outcome.stderr, &outcome.terminal] {
            outcome.check(!stream.contains(CANARY), "the output contains the key");
            outcome.check(!stream.contains("panicked at"), "the program panicked");
        }
        outcome
    }

    /// It ended with 0.
    #[track_caller]
    pub(crate) fn success(self) -> Outcome {
        self.status(0)
    }

    /// Whether it ended with this status; nothing is demanded.
    pub(crate) fn status_is(&self, status: i32) -> bool {
        self.status == status
    }

    /// It ended with this status; -N: by signal N.
    #[track_caller]
    pub(crate) fn status(self, status: i32) -> Outcome {
        self.check(self.status == status, format_args!("the status is not {status}"));
        self
    }

    /// Standard output is this, byte for byte.
    #[track_caller]
    pub(crate) fn stdout(self, text: &str) -> Outcome {
        let met = self.stdout_bytes == text.as_bytes();
        self.check(met, format_args!("stdout is not {text:?}"));
        self
    }

    /// Nothing was written to standard output.
    #[track_caller]
    pub(crate) fn stdout_is_empty(self) -> Outcome {
        self.stdout("")
    }

    /// Standard output contains this.
    #[track_caller]
    pub(crate) fn stdout_has(self, text: &str) -> Outcome {
        self.check(self.stdout.contains(text), format_args!("stdout lacks {text:?}"));
        self
    }

    /// Standard output does not contain this.
    #[track_caller]
    pub(crate) fn stdout_lacks(self, text: &str) -> Outcome {
        self.check(!self.stdout.contains(text), format_args!("stdout has {text:?}"));
        self
    }

    /// Standard error is exactly this.
    #[track_caller]
    pub(crate) fn stderr(self, text: &str) -> Outcome {
        self.check(self.stderr == text, format_args!("stderr is not {text:?}"));
        self
    }

    /// Nothing was written to standard error.
    #[track_caller]
    pub(crate) fn stderr_is_empty(self) -> Outcome {
        self.stderr("")
    }

    /// Standard error contains this.
    #[track_caller]
    pub(crate) fn stderr_has(self, text: &str) -> Outcome {
        self.check(self.stderr.contains(text), format_args!("stderr lacks {text:?}"));
        self
    }

    /// Standard error does not contain this.
    #[track_caller]
    pub(crate) fn stderr_lacks(self, text: &str) -> Outcome {
        self.check(!self.stderr.contains(text), format_args!("stderr has {text:?}"));
        self
    }

    /// The terminal's output contains this.
    #[track_caller]
    pub(crate) fn terminal_has(self, text: &str) -> Outcome {
        self.check(self.terminal.contains(text), format_args!("the terminal lacks {text:?}"));
        self
    }

    /// It took no longer than this, see [`Stopwatch::elapsed_for_limit`].
    #[track_caller]
    pub(crate) fn took_at_most(self, time: Duration) -> Outcome {
        let took = self.watch.adjusted_for_limit(self.elapsed, time);
        self.check(took <= time, format_args!("it took {took:?}, more than {time:?}"));
        self
    }

    /// It took this long, or longer.
    #[track_caller]
    pub(crate) fn took_at_least(self, time: Duration) -> Outcome {
        let took = self.elapsed;
        self.check(took >= time, format_args!("it took {took:?}, less than {time:?}"));
        self
    }

    /// The program itself was never seen to hold more memory than this.
    #[track_caller]
    pub(crate) fn memory_at_most(self, kib: u64) -> Outcome {
        let held = self.peak_memory_kib;
        self.check(held <= kib, format_args!("it held {held} KiB, more than {kib}"));
        self
    }

    /// Standard output as one piece of JSON (`--output json`).
    #[track_caller]
    pub(crate) fn stdout_json(&self) -> Value {
        self.parse(&self.stdout)
    }

    /// Standard output as one piece of JSON a line (`--output jsonl`, MCP).
    #[track_caller]
    pub(crate) fn stdout_json_lines(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for line in self.stdout.lines() {
            lines.push(self.parse(line));
        }
        lines
    }

    /// Any other demand, with the picture when it is not met.
    #[track_caller]
    pub(crate) fn check(&self, met: bool, otherwise: impl fmt::Display) {
        assert!(met, "{otherwise}{}", self.picture);
    }

    #[track_caller]
    fn parse(&self, text: &str) -> Value {
        match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => panic!("stdout is no JSON: {error}: {text:?}{}", self.picture),
        }
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n--- skills-runner")?;
        for arg in &self.args {
            write!(f, " {}", printable(arg.as_encoded_bytes()))?;
        }
        match self.status {
            Some(status) => write!(f, "\n--- ended with {status}")?,
            None => write!(f, "\n--- still running")?,
        }
        for (name, bytes) in
            [("stdout", &self.stdout), ("stderr", &self.stderr), ("terminal", &self.terminal)]
        {
            if !bytes.is_empty() || name != "terminal" {
                write!(f, "\n--- {name}, {} bytes\n{}", bytes.len(), printable(bytes))?;
            }
        }
        for server in &self.servers {
            write!(f, "{}", server.transcript())?;
        }
        writeln!(f, "\n---")
    }
}

/// Text with its line ends, other control characters escaped, the middle of a
/// long one left out.
fn printable(bytes: &[u8]) -> String {
    const HALF: usize = 8000;
    let show = |bytes: &[u8]| {
        let mut text = String::new();
        for character in String::from_utf8_lossy(bytes).chars() {
            match character {
                '\n' | '\t' => text.push(character),
                character if character.is_control() => text.extend(character.escape_default()),
                character => text.push(character),
            }
        }
        text
    };
    if bytes.len() <= 2 * HALF {
        return show(bytes);
    }
    let left_out = bytes.len() - 2 * HALF;
    let (head, tail) = (&bytes[..HALF], &bytes[bytes.len() - HALF..]);
    format!("{}\n[… {left_out} bytes …]\n{}", show(head), show(tail))
}
