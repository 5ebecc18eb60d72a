//! `--log FILE`: the records of a run in a private file.
//!
//! The log is an audit: nothing may happen that is not logged. So a failed write stops
//! the run, as a signal does, and nothing more is written. Several runners may share a
//! file: each record is one write under a lock, and a line that a crash left incomplete
//! stays a separate line.

use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Instant, SystemTime};

use crate::ui::records::RunEnvironment;
use crate::ui::report::TextReport;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use host::clock::timestamp;
use host::files::effective_user;
use host::random;
use host::signal::{Interrupt, Signal};

/// Length of the id of a run.
const RUN_ID_CHARS: usize = 8;

/// Open log file.
#[derive(Debug)]
pub(super) struct Log {
    /// Records for the log: always all of them.
    pub report: TextReport,
    path: PathBuf,
    file: File,
    /// False for a file that may only be written.
    is_readable: bool,
    run: String,
    interrupt: Interrupt,
    failure: Option<io::Error>,
    is_reported: bool,
}

impl Log {
    /// Opens or creates the file. If writing fails later, `interrupt` is raised.
    pub(super) fn open(
        path: &Path,
        run_environment: RunEnvironment,
        interrupt: Interrupt,
    ) -> Result<Log> {
        let failure = |cause: &dyn std::fmt::Display| {
            let path = path.display();
            Error::new(ErrorKind::Usage, format!("failed to open the log `{path}`: {cause}"))
        };
        // Checked first, since opening a device may have effects.
        let is_special = |meta: &Metadata| !meta.is_file() && !meta.is_symlink();
        if path.symlink_metadata().is_ok_and(|meta| is_special(&meta)) {
            return Err(failure(&"it is not a regular file"));
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
            return Err(failure(&"it is not a regular file"));
        }
        let hint = "name a file that only you own";
        if meta.uid() != effective_user() {
            return Err(failure(&"it belongs to another user").with_hint(hint));
        }
        if meta.nlink() > 1 {
            return Err(failure(&"it has more than one hard link").with_hint(hint));
        }
        if meta.mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))
                .map_err(|error| failure(&format!("other users have access to it: {error}")))?;
        }
        let mut run = random::name().map_err(|error| failure(&error))?;
        run.truncate(RUN_ID_CHARS);
        Ok(Log {
            report: TextReport::for_log(run_environment),
            path: path.to_path_buf(),
            file,
            is_readable,
            run,
            interrupt,
            failure: None,
            is_reported: false,
        })
    }

    /// Writes lines of records, and adds the time and the run's id to each.
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

    /// Whether all records were written.
    pub(super) fn is_complete(&self) -> bool {
        self.failure.is_none()
    }

    /// Returns the error of a failed write once.
    pub(super) fn take_write_error(&mut self) -> Result<()> {
        match &self.failure {
            Some(error) if !std::mem::replace(&mut self.is_reported, true) => {
                let path = self.path.display();
                let message = format!("failed to write the log `{path}`: {error}");
                Err(Error::new(ErrorKind::Io, message)
                    .with_hint("nothing runs that cannot be logged"))
            }
            _ => Ok(()),
        }
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let is_locked = self.lock()?;
        let done = self.append_unlocked(line, is_locked);
        if is_locked {
            let _ = self.file.unlock();
        }
        done
    }

    /// Locks the file; false on network file systems without locks.
    fn lock(&self) -> io::Result<bool> {
        let start = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::Error(_)) => return Ok(false),
                Err(TryLockError::WouldBlock) if start.elapsed() < limits::LOG_LOCK => {
                    thread::sleep(limits::LOG_LOCK_POLL);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process keeps it locked"));
                }
            }
        }
    }

    fn append_unlocked(&mut self, line: &str, is_locked: bool) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let mut last = *b"\n";
        if self.is_readable && length > 0 {
            self.file.read_at(&mut last, length - 1)?;
        }
        let done = match &last {
            b"\n" => self.file.write_all(line.as_bytes()),
            // A process was killed while it wrote.
            _ => self.file.write_all(format!("\n{line}").as_bytes()),
        };
        if done.is_err() && is_locked {
            // No record is better than a part of one.
            let _ = self.file.set_len(length);
        }
        done
    }
}

/// Opens the file, and returns whether it can be read, too. Does not follow a link, and
/// does not block on a device that replaced the file.
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
    use host::scratch::Scratch;

    #[test]
    fn a_locked_log_fails_after_a_limited_wait() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path().join("log");
        let mut log = Log::open(&path, RunEnvironment::default(), Interrupt::never()).unwrap();
        let other = File::open(&path).unwrap();
        other.lock().unwrap();
        log.write("{\"a\":1}\n");
        let error = log.take_write_error().unwrap_err();
        assert!(error.to_string().contains("keeps it locked"), "{error}");
        assert!(log.take_write_error().is_ok(), "the error is returned once");
        other.unlock().unwrap();
        log.write("{\"a\":1}\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"", "nothing more is written");
    }
}
