//! `--log FILE`: the records of a run, kept in a private file.
//!
//! It is an audit: what cannot be written down must not happen. So a record
//! that cannot be written asks the run to stop, as a signal does, and nothing
//! more is tried. Several runners may share a file: every record is one write,
//! under a lock, and what a crash left of a line stays a line of its own.

use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Instant, SystemTime};

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::world::clock::timestamp;
use crate::world::files::user;
use crate::world::output::records::RunEnvironment;
use crate::world::output::report::TextReport;
use crate::world::random;
use crate::world::signal::{Interrupt, Signal};

/// Letters that tell a run from others.
const RUN_LETTERS: usize = 8;

/// The file, and what is to be written there.
#[derive(Debug)]
pub(super) struct Log {
    /// The run as the log tells it: always all of it.
    pub report: TextReport,
    path: PathBuf,
    file: File,
    /// Some logs may be written only.
    is_readable: bool,
    run: String,
    interrupt: Interrupt,
    failure: Option<io::Error>,
    is_told: bool,
}

impl Log {
    /// Opens the file, or makes it. Should writing fail later, it is the
    /// `interrupt` that is raised.
    pub(super) fn open(
        path: &Path,
        circumstances: RunEnvironment,
        interrupt: Interrupt,
    ) -> Result<Log> {
        let failure = |cause: &dyn std::fmt::Display| {
            let path = path.display();
            Error::new(ErrorKind::Usage, format!("failed to open the log `{path}`: {cause}"))
        };
        // Looked at first: opening a device may do something.
        let is_special = |meta: &Metadata| !meta.is_file() && !meta.is_symlink();
        if path.symlink_metadata().is_ok_and(|meta| is_special(&meta)) {
            return Err(failure(&"it is no regular file"));
        }
        let (file, is_readable) = open_private(path).map_err(|error| {
            if path.is_symlink() {
                failure(&"it is a link").with_hint("name the file itself")
            } else {
                failure(&error)
            }
        })?;
        let meta = file.metadata().map_err(|error| failure(&error))?;
        if !meta.is_file() {
            return Err(failure(&"it is no regular file"));
        }
        let hint = "name a file that is only yours";
        if meta.uid() != user() {
            return Err(failure(&"it belongs to another user").with_hint(hint));
        }
        if meta.nlink() > 1 {
            return Err(failure(&"it has another name too, a hard link").with_hint(hint));
        }
        if meta.mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))
                .map_err(|error| failure(&format!("others have access to it: {error}")))?;
        }
        let mut run = random::name().map_err(|error| failure(&error))?;
        run.truncate(RUN_LETTERS);
        Ok(Log {
            report: TextReport::for_log(circumstances),
            path: path.to_path_buf(),
            file,
            is_readable,
            run,
            interrupt,
            failure: None,
            is_told: false,
        })
    }

    /// Writes lines of records, each with the time and the run in front.
    pub(super) fn write(&mut self, lines: &str) {
        for line in lines.split_inclusive('\n') {
            if self.failure.is_none() {
                let time = timestamp(SystemTime::now());
                let fields = line.strip_prefix('{').unwrap_or(line);
                let line = format!("{{\"time\":\"{time}\",\"run\":\"{}\",{fields}", self.run);
                self.failure = self.append(&line).err();
            }
            if self.failure.is_some() {
                self.interrupt.raise(Signal::PIPE);
                return;
            }
        }
    }

    /// Whether everything was written.
    pub(super) fn is_whole(&self) -> bool {
        self.failure.is_none()
    }

    /// Why not everything could be written, told once.
    pub(super) fn outcome(&mut self) -> Result<()> {
        match &self.failure {
            Some(error) if !std::mem::replace(&mut self.is_told, true) => {
                let path = self.path.display();
                let message = format!("failed to write the log `{path}`: {error}");
                Err(Error::new(ErrorKind::Io, message)
                    .with_hint("what cannot be written down is not run"))
            }
            _ => Ok(()),
        }
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let is_locked = self.lock()?;
        let done = self.append_alone(line, is_locked);
        if is_locked {
            let _ = self.file.unlock();
        }
        done
    }

    /// Whether nobody else writes now; some network file systems lock nothing.
    fn lock(&self) -> io::Result<bool> {
        let began = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::Error(_)) => return Ok(false),
                Err(TryLockError::WouldBlock) if began.elapsed() < limits::LOG_LOCK => {
                    thread::sleep(limits::LOG_LOCK_ROUND);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("somebody else keeps it locked"));
                }
            }
        }
    }

    fn append_alone(&mut self, line: &str, is_locked: bool) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let mut last = *b"\n";
        if self.is_readable && length > 0 {
            self.file.read_at(&mut last, length - 1)?;
        }
        let done = match &last {
            b"\n" => self.file.write_all(line.as_bytes()),
            // Somebody was killed while writing.
            _ => self.file.write_all(format!("\n{line}").as_bytes()),
        };
        if done.is_err() && is_locked {
            // Rather no record than a part of one.
            let _ = self.file.set_len(length);
        }
        done
    }
}

/// The file, and whether it can be read too. Never through a link; a device
/// that took a file's place does not hold us up.
fn open_private(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    match options.clone().read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok((options.open(path)?, false))
        }
        file => Ok((file?, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::scratch::Scratch;

    #[test]
    fn a_locked_log_is_a_failure_and_not_a_wait_for_ever() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path().join("log");
        let mut log = Log::open(&path, RunEnvironment::default(), Interrupt::never()).unwrap();
        let other = File::open(&path).unwrap();
        other.lock().unwrap();
        log.write("{\"a\":1}\n");
        let error = log.outcome().unwrap_err();
        assert!(error.to_string().contains("keeps it locked"), "{error}");
        assert!(log.outcome().is_ok(), "it has been told");
        other.unlock().unwrap();
        log.write("{\"a\":1}\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"", "nothing more is tried");
    }
}
