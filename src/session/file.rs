//! A session that is being written. Every change is one line appended to its file with one
//! write, so that `kill -9` loses at most the last line.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use crate::conversation::{ConversationChange, Journal};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::secret::Secrets;
use crate::session::folder::{HARD_LINK_CAUSE, create, prune, read_header, torn_path};
use crate::session::record::{SessionHeader, change_line};
use crate::world::lock;

/// A session and its locked file.
#[derive(Debug)]
pub struct Session {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) header: SessionHeader,
    pub(super) secrets: Secrets,
    /// The open file. It is opened only once in this process, because a second close would
    /// release the lock. `None` before the first message of an automatic session.
    pub(super) file: Option<File>,
    /// The length of the file.
    pub(super) length: u64,
    /// A warning that another process has changed the file.
    pub(super) warning: Option<String>,
    /// Whether the file stays if no message is added.
    pub(super) must_keep: bool,
}

/// A session that is shared by the conversation and the command that names it.
pub(crate) type SharedSession = Rc<RefCell<Session>>;

impl Journal for SharedSession {
    fn record(&mut self, change: ConversationChange<'_>) -> Result<()> {
        // No borrow lasts while a change is recorded.
        match self.try_borrow_mut() {
            Ok(mut session) => session.note(change),
            Err(_) => Err(Error::new(ErrorKind::Io, "failed to write the session: it is in use")),
        }
    }

    fn take_warning(&mut self) -> Option<String> {
        self.try_borrow_mut().ok()?.warning.take()
    }
}

impl Session {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of the file, which may not exist yet.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header: the first line of the file.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Whether the program chose the name.
    pub fn is_automatic(&self) -> bool {
        self.header.automatic.as_ref() == Some(&self.name)
    }

    fn note(&mut self, change: ConversationChange<'_>) -> Result<()> {
        self.write(change).map_err(|error| session_error("write", &self.name, &error))
    }

    fn write(&mut self, change: ConversationChange<'_>) -> io::Result<()> {
        if self.file.is_none() {
            if matches!(change, ConversationChange::Truncated(_)) {
                return Ok(());
            }
            self.create_file()?;
            if let (true, Some(folder)) = (self.is_automatic(), self.path.parent()) {
                prune(folder, &self.name);
            }
        }
        let line = change_line(change, SystemTime::now(), &self.secrets);
        self.append(line.as_bytes())?;
        self.must_keep = true;
        Ok(())
    }

    /// Creates the file, which must not exist, and locks it.
    pub(super) fn create_file(&mut self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = create(&self.path)?;
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

    /// Handles a file that another process has changed. If it is still this session, its
    /// contents stay and `given` lines are appended. Returns what must come first: a line
    /// end, or nothing.
    fn accept_foreign_change(&mut self, length: u64) -> io::Result<&'static str> {
        let Some(file) = &mut self.file else {
            return Ok("");
        };
        let change = if length < self.length { "shortened" } else { "written in" };
        file.seek(SeekFrom::Start(0))?;
        if read_header(file).map(|header| header.id).as_ref() != Ok(&self.header.id) {
            let cause = format!(
                "another process has {change} its file, and it is not this session any more"
            );
            return Err(io::Error::other(cause));
        }
        self.warning = Some(format!(
            "another process has {change} the file of the session `{}`: its contents stay, and the whole conversation is appended",
            self.name
        ));
        let mut last = [0];
        file.read_exact_at(&mut last, length - 1)?;
        self.length = length;
        Ok(if last == *b"\n" { "" } else { "\n" })
    }

    /// Appends whole lines, or nothing.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(io::Error::other("it is not open"));
        };
        let meta = file.metadata()?;
        match meta.nlink() {
            0 => return Err(io::Error::other("its file has been deleted")),
            1 => {}
            _ => return Err(io::Error::other(HARD_LINK_CAUSE)),
        }
        let mut lines = Cow::Borrowed(lines);
        if meta.len() != self.length {
            let between = self.accept_foreign_change(meta.len())?;
            lines = [between.as_bytes(), &lines].concat().into();
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let length = self.length + lines.len() as u64;
        if length > limits::SESSION_BYTES {
            let max_mebibytes = limits::SESSION_BYTES >> 20;
            return Err(io::Error::other(format!("it would be larger than {max_mebibytes} MiB")));
        }
        if let Err(error) = file.write_all(&lines) {
            // No line is better than an incomplete one.
            let _ = file.set_len(self.length);
            return Err(error);
        }
        self.length = length;
        Ok(())
    }

    /// Gives an automatic session the name that the user chose.
    pub(super) fn rename(&mut self, name: &str, path: PathBuf) -> io::Result<()> {
        if self.file.is_some() {
            // Unlike a rename, a hard link never replaces a file.
            fs::hard_link(&self.path, &path)?;
            fs::remove_file(&self.path)?;
            let _ = fs::rename(torn_path(&self.path), torn_path(&path));
        }
        self.name = name.to_string();
        self.path = path;
        Ok(())
    }
}

/// Deletes the file of an empty session.
impl Drop for Session {
    fn drop(&mut self) {
        if self.file.is_some() && !self.must_keep {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The error of a session that cannot be saved; the conversation continues.
pub(super) fn session_error(verb: &str, name: &str, cause: &dyn std::fmt::Display) -> Error {
    let message = format!("failed to {verb} the session `{name}`: {cause}");
    Error::new(ErrorKind::Io, message)
        .with_hint("the conversation continues, but is not saved any more")
}
