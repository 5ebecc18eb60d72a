//! A session that is being written: every change is one line at the end of its
//! file, and one write. So `kill -9` costs at most the line that it falls into.

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
use crate::session::folder::{LINKED, create, header_of, prune, torn_path};
use crate::session::record::{SessionHeader, line};
use crate::world::lock;

/// A session whose file nobody else writes.
#[derive(Debug)]
pub struct Session {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) header: SessionHeader,
    pub(super) secrets: Secrets,
    /// Open once in this process, or the lock would be lost. None before the
    /// first message of a conversation that saves itself.
    pub(super) file: Option<File>,
    /// How long the file is.
    pub(super) length: u64,
    /// That somebody else has written it.
    pub(super) warning: Option<String>,
    /// There is something in it that must not go when nothing is said.
    pub(super) is_of_use: bool,
}

/// A conversation keeps it, and so does who names it.
pub(crate) type SharedSession = Rc<RefCell<Session>>;

impl Journal for SharedSession {
    fn note(&mut self, change: ConversationChange<'_>) -> Result<()> {
        // Nobody holds it across a change.
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
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file, which may not be there yet.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its first line says.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Whether the program gave it its name.
    pub fn is_automatic(&self) -> bool {
        self.header.automatic.as_ref() == Some(&self.name)
    }

    fn note(&mut self, change: ConversationChange<'_>) -> Result<()> {
        self.write(change).map_err(|error| failure("write", &self.name, &error))
    }

    fn write(&mut self, change: ConversationChange<'_>) -> io::Result<()> {
        if self.file.is_none() {
            if matches!(change, ConversationChange::Cut(_)) {
                return Ok(());
            }
            self.begin()?;
            if let (true, Some(folder)) = (self.is_automatic(), self.path.parent()) {
                prune(folder, &self.name);
            }
        }
        let line = line(change, SystemTime::now(), &self.secrets);
        self.append(line.as_bytes())?;
        self.is_of_use = true;
        Ok(())
    }

    /// Makes the file, which must not be there.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = create(&self.path)?;
        if lock::hold(&file)?.is_err() {
            return Err(io::Error::other("somebody else has just locked it"));
        }
        self.file = Some(file);
        self.write_header()
    }

    /// Writes the first line of an empty file.
    pub(super) fn write_header(&mut self) -> io::Result<()> {
        let header = self.header.line(&self.secrets);
        self.append(header.as_bytes())
    }

    /// Somebody else has made the file longer or shorter: what is there stays, and
    /// goes on with what is given, if it is still a session and this one.
    fn meet(&mut self, length: u64) -> io::Result<&'static str> {
        let Some(file) = &mut self.file else {
            return Ok("");
        };
        let change = if length < self.length { "shortened" } else { "written in" };
        file.seek(SeekFrom::Start(0))?;
        if header_of(file).map(|header| header.id).as_ref() != Ok(&self.header.id) {
            let fault =
                format!("somebody else has {change} its file, and it is no such session now");
            return Err(io::Error::other(fault));
        }
        self.warning = Some(format!(
            "somebody else has {change} the file of the session `{}`: what is there stays, and the whole conversation is written behind it",
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
            _ => return Err(io::Error::other(LINKED)),
        }
        let mut lines = Cow::Borrowed(lines);
        if meta.len() != self.length {
            let between = self.meet(meta.len())?;
            lines = [between.as_bytes(), &lines].concat().into();
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let length = self.length + lines.len() as u64;
        if length > limits::SESSION_BYTES {
            let most = limits::SESSION_BYTES >> 20;
            return Err(io::Error::other(format!("it would be larger than {most} MiB")));
        }
        if let Err(error) = file.write_all(&lines) {
            // Rather no line than a part of one.
            let _ = file.set_len(self.length);
            return Err(error);
        }
        self.length = length;
        Ok(())
    }

    /// Gives a session that saved itself the name that a person chose.
    pub(super) fn rename(&mut self, name: &str, path: PathBuf) -> io::Result<()> {
        if self.file.is_some() {
            // Other than a renaming, a link never takes the place of a file.
            fs::hard_link(&self.path, &path)?;
            fs::remove_file(&self.path)?;
            let _ = fs::rename(torn_path(&self.path), torn_path(&path));
        }
        self.name = name.to_string();
        self.path = path;
        Ok(())
    }
}

/// A session of which nothing came leaves no file.
impl Drop for Session {
    fn drop(&mut self) {
        if self.file.is_some() && !self.is_of_use {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Why a session could not be kept; the conversation goes on without.
pub(super) fn failure(verb: &str, name: &str, cause: &dyn std::fmt::Display) -> Error {
    let message = format!("failed to {verb} the session `{name}`: {cause}");
    Error::new(ErrorKind::Io, message)
        .with_hint("the conversation goes on, and is not saved from here on")
}
