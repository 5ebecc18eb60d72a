//! A session that is being written. Every change is one line appended to its file with one
//! write, so that `kill -9` loses at most the last line.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::conversation::{ConversationChange, Journal};
use crate::session::folder::{create, prune};
use crate::session::record::{SessionHeader, change_line, header_update};
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::secret::Secrets;
use host::lock;

/// Where a conversation is saved.
#[derive(Clone, Debug)]
pub struct SavedAs {
    /// The name.
    pub name: String,
    /// The path of the file, which may not exist yet.
    pub path: PathBuf,
    /// Whether the program chose the name.
    pub is_automatic: bool,
}

/// A session and its locked file.
#[derive(Debug)]
pub struct Session {
    pub(super) saved_as: SavedAs,
    pub(super) header: SessionHeader,
    pub(super) secrets: Secrets,
    /// The open file. It is opened only once in this process, because a second close would
    /// release the lock. `None` before the first message of an automatic session.
    pub(super) file: Option<File>,
    /// The length of the file.
    pub(super) length: u64,
    /// Whether the file stays if no message is added.
    pub(super) must_keep: bool,
}

impl Journal for Session {
    fn record(&mut self, change: ConversationChange<'_>) -> Result<()> {
        self.write(change).map_err(|error| {
            let name = &self.saved_as.name;
            let message = format!("failed to write the session `{name}`: {error}");
            Error::new(ErrorKind::Io, message)
                .with_hint("the conversation continues, but is not saved any more")
        })
    }
}

impl Session {
    /// Where it is saved.
    pub fn saved_as(&self) -> &SavedAs {
        &self.saved_as
    }

    fn write(&mut self, change: ConversationChange<'_>) -> io::Result<()> {
        if self.file.is_none() {
            if matches!(change, ConversationChange::Truncated(_)) {
                return Ok(());
            }
            self.create_file()?;
            let SavedAs { name, path, is_automatic } = &self.saved_as;
            if let (true, Some(folder)) = (is_automatic, path.parent()) {
                prune(folder, name);
            }
        }
        let line = change_line(change, SystemTime::now(), &self.secrets);
        self.append(line.as_bytes())?;
        self.must_keep = true;
        Ok(())
    }

    /// Creates the file, which must not exist, and locks it.
    pub(super) fn create_file(&mut self) -> io::Result<()> {
        let folder = self.saved_as.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = create(&self.saved_as.path)?;
        if lock::try_lock_for_process(&file)?.is_err() {
            return Err(io::Error::other("another process has just locked it"));
        }
        self.file = Some(file);
        self.write_header()
    }

    /// Writes the first line of an empty file.
    pub(super) fn write_header(&mut self) -> io::Result<()> {
        let header = self.header.to_line(&self.secrets);
        self.append(header.as_bytes())
    }

    /// Prepares a file with these contents for lines of this version: removes an unfinished line,
    /// ends the last one, and changes the version in its header, in one byte. Older lines stay as
    /// they are.
    pub(super) fn prepare(&mut self, bytes: &[u8], unfinished_bytes: usize) -> io::Result<()> {
        let bytes = &bytes[..bytes.len() - unfinished_bytes];
        if let (Some(file), 1..) = (&self.file, unfinished_bytes) {
            self.length = bytes.len() as u64;
            file.set_len(self.length)?;
        }
        if !bytes.ends_with(b"\n") {
            self.append(b"\n")?;
        }
        if let (Some(file), Some((at, version))) = (&self.file, header_update(bytes)) {
            file.write_all_at(version.as_bytes(), at)?;
        }
        Ok(())
    }

    /// Appends whole lines, or nothing.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(io::Error::other("it is not open"));
        };
        let meta = file.metadata()?;
        if meta.nlink() == 0 {
            return Err(io::Error::other("its file has been deleted"));
        }
        if meta.len() != self.length {
            return Err(io::Error::other("another process has changed its file"));
        }
        let length = self.length + lines.len() as u64;
        if length > limits::SESSION_BYTES {
            let max_mebibytes = limits::SESSION_BYTES >> 20;
            return Err(io::Error::other(format!("it would be larger than {max_mebibytes} MiB")));
        }
        if let Err(error) = file.write_all_at(lines, self.length) {
            // No line is better than an incomplete one.
            let _ = file.set_len(self.length);
            return Err(error);
        }
        self.length = length;
        Ok(())
    }
}

/// Deletes the file of an empty session.
impl Drop for Session {
    fn drop(&mut self) {
        if self.file.is_some() && !self.must_keep {
            let _ = fs::remove_file(&self.saved_as.path);
        }
    }
}
