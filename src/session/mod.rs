//! Saved conversations: a folder of files, each a header and one change of the
//! conversation a line. Whatever is wrong with a file, nothing of it is
//! overwritten: a conversation goes on with what can be read, or without it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::secret::Secrets;
use crate::text;
use crate::world::clock::timestamp;
use crate::world::{lock, random};

mod file;
mod folder;
mod record;
mod restore;

pub(crate) use file::{Session, SharedSession};
pub(crate) use folder::{SessionFile, is_name};
pub use record::line;
pub(crate) use record::{SessionHeader, value};
pub(crate) use restore::RestoredSession;
pub use restore::restore;

/// Letters behind the time in a name that the program makes.
const LETTERS: usize = 4;

/// A shorter name is like every other that is short.
const NEAR_LETTERS: usize = 3;

/// The folder of sessions; it need not exist.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    folder: PathBuf,
    secrets: Secrets,
}

/// What came of opening a session.
#[derive(Debug, Default)]
pub(crate) struct OpenedSession {
    /// What keeps the conversation from now on; `None`: nothing does.
    pub session: Option<Session>,
    /// What was said before.
    pub restored: Option<RestoredSession>,
    /// What a person has to know, a sentence each.
    pub warnings: Vec<String>,
}

impl Sessions {
    /// The sessions of this folder, into which no secret is written.
    pub(crate) fn new(folder: &Path, secrets: &Secrets) -> Sessions {
        Sessions { folder: folder.to_path_buf(), secrets: secrets.clone() }
    }

    /// Where they are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// All of them, the latest first.
    pub(crate) fn all(&self) -> Result<Vec<SessionFile>> {
        folder::found(&self.folder).map_err(|error| {
            let folder = self.folder.display();
            Error::new(ErrorKind::Io, format!("failed to list the sessions in `{folder}`: {error}"))
        })
    }

    /// The session's file, of which nothing is read.
    pub(crate) fn found(&self, name: &str) -> Result<SessionFile> {
        check_name(name)?;
        let meta = self.path(name).symlink_metadata();
        let found = meta.map(|meta| SessionFile::of(name, &meta));
        found.map_err(|_| self.unknown(name))
    }

    /// The session that was used last by somebody in this folder.
    pub(crate) fn latest(&self, user_folder: &str) -> Result<Option<SessionFile>> {
        Ok(self.all()?.into_iter().find(|found| {
            let header = folder::header(&self.path(&found.name));
            header.is_some_and(|header| header.folder == user_folder)
        }))
    }

    /// What a session holds, and how many bytes it has. Its file is not changed.
    pub(crate) fn read(&self, name: &str) -> Result<Option<RestoredSession>> {
        check_name(name)?;
        let failure = |cause: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Io, format!("failed to read the session `{name}`: {cause}"))
        };
        let file = match folder::open(&self.path(name), false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.unknown(name)),
            file => file.map_err(|error| failure(&error))?,
        };
        let bytes = folder::read(&file).map_err(|error| failure(&error))?;
        restore(&bytes).map_err(|cause| failure(&cause))
    }

    /// Whether there is anything of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// The number of the process that writes a session now.
    pub(crate) fn holder(&self, name: &str) -> Option<i32> {
        let file = folder::open(&self.path(name), false).ok()?;
        lock::holder(&file).ok().flatten()
    }

    /// A session that begins with its first message, under a name of its own.
    pub(crate) fn automatic(&self, mut header: SessionHeader) -> Result<Session> {
        let mut letters = random::name().map_err(|error| {
            Error::new(ErrorKind::Io, format!("failed to name the session: {error}"))
        })?;
        letters.truncate(LETTERS);
        let time = timestamp(header.created);
        let minute = time.get(..16).unwrap_or(&time);
        let name = format!("{}-{letters}", minute.replace('T', "-").replace(':', ""));
        header.automatic = Some(name.clone());
        Ok(self.session(&name, header, None))
    }

    /// Goes on with a session, or begins it. An error where it is in use, or
    /// the name is none; whatever else is wrong is a warning, and the file
    /// stays as it is.
    pub(crate) fn open(&self, name: &str, fresh: SessionHeader) -> Result<OpenedSession> {
        check_name(name)?;
        let path = self.path(name);
        for _ in 0..limits::SESSION_TRIES {
            let file = match folder::open(&path, true) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let mut session = self.session(name, fresh.clone(), None);
                    match session.begin() {
                        // Somebody else was faster.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                        Err(error) => return Ok(self.useless(name, &error)),
                        Ok(()) => {
                            return Ok(OpenedSession {
                                session: Some(session),
                                ..OpenedSession::default()
                            });
                        }
                    }
                }
                Err(error) => return Ok(self.only_read(name, &error)),
            };
            match lock::hold(&file) {
                Err(error) => return Ok(self.useless(name, &format!("no lock: {error}"))),
                Ok(Err(pid)) => {
                    return Err(in_use("open", name, pid)
                        .with_hint("end that one first, or take another name with --session"));
                }
                Ok(Ok(())) if folder::is_at(&file, &path) => {
                    return Ok(self.go_on(name, fresh, file));
                }
                // It has been deleted or renamed since.
                Ok(Ok(())) => {}
            }
        }
        Ok(self.useless(name, &"it changes all the time"))
    }

    fn go_on(&self, name: &str, fresh: SessionHeader, file: File) -> OpenedSession {
        let bytes = match folder::read(&file) {
            Ok(bytes) => bytes,
            Err(error) => return self.useless(name, &error),
        };
        let restored = match restore(&bytes) {
            Ok(restored) => restored,
            Err(cause) => return self.useless(name, &cause),
        };
        let torn = restored.as_ref().map_or(bytes.len(), |restored| restored.torn_bytes);
        let mut opened = OpenedSession::default();
        let whole = bytes.len() - torn;
        if torn > 0 {
            let path = folder::torn_path(&self.path(name));
            let shown = path.display();
            match set_aside(&path, &bytes[whole..], &file, whole as u64) {
                Ok(()) => opened.warnings.push(format!(
                    "the end of the session `{name}` was torn: {} moved to `{shown}`",
                    text::counted(torn, "byte")
                )),
                Err(error) => {
                    opened = self.useless(
                        name,
                        &format!("its end is torn, and `{shown}` cannot take it: {error}"),
                    );
                    opened.restored = restored;
                    return opened;
                }
            }
        }
        opened.warnings.extend(restored.as_ref().and_then(|restored| restored.told(name)));
        let header = restored.as_ref().map_or(fresh, |restored| restored.header.clone());
        let mut session = self.session(name, header, Some(file));
        session.length = whole as u64;
        session.is_of_use = restored.is_some() || torn > 0;
        if restored.is_none()
            && let Err(error) = session.write_header()
        {
            return self.useless(name, &error);
        }
        opened.session = Some(session);
        opened.restored = restored;
        opened
    }

    /// A session that cannot be written may still be read.
    fn only_read(&self, name: &str, error: &io::Error) -> OpenedSession {
        let mut opened = self.useless(name, error);
        if matches!(
            error.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        ) && let Ok(Some(restored)) = self.read(name)
        {
            opened.warnings.extend(restored.told(name));
            opened.restored = Some(restored);
        }
        opened
    }

    fn useless(&self, name: &str, cause: &dyn std::fmt::Display) -> OpenedSession {
        let mut warning =
            format!("failed to open the session `{name}`: {cause}; the conversation is not saved");
        let file = |path: &&Path| path.exists() && !path.is_dir();
        if self.has(name) {
            warning += &format!(", and `{}` stays as it is", self.path(name).display());
        } else if let Some(file) = self.folder.ancestors().find(file) {
            warning += &format!(
                ": `{}` is a file, not a folder; SESSIONS_PATH names a folder for sessions",
                file.display()
            );
        }
        OpenedSession { warnings: vec![warning], ..OpenedSession::default() }
    }

    /// Gives a session that saved itself the name that a person chose.
    pub(crate) fn rename(&self, session: &mut Session, name: &str) -> Result<()> {
        check_name(name)?;
        let done = if self.has(name) {
            Err(io::ErrorKind::AlreadyExists.into())
        } else {
            session.rename(name, self.path(name))
        };
        done.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Sessions::taken(name),
            _ => Error::new(
                ErrorKind::Io,
                format!("failed to save the session as `{name}`: {error}"),
            ),
        })
    }

    /// That another session has this name.
    pub(crate) fn taken(name: &str) -> Error {
        let message = format!("failed to save the session as `{name}`: there is one of this name");
        Error::new(ErrorKind::Io, message)
            .with_hint(format!("another name, or `skills-runner sessions delete {name}` first"))
    }

    /// Deletes a session that nobody uses.
    pub(crate) fn delete(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let path = self.path(name);
        let failure = |cause: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Io, format!("failed to delete the session `{name}`: {cause}"))
        };
        let file = match folder::open(&path, true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.unknown(name)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                folder::open(&path, false)
            }
            file => file,
        };
        let file = file.map_err(|error| failure(&error))?;
        // One that can only be read nobody writes.
        if let Ok(Err(pid)) = lock::hold(&file) {
            return Err(in_use("delete", name, pid).with_hint("end that one first"));
        }
        // Not opened a second time: that would end the lock.
        if file.metadata().is_ok_and(|meta| meta.len() > 0)
            && let Err(cause) = folder::header_of(&file)
        {
            return Err(failure(&cause).with_hint(format!("its file is `{}`", path.display())));
        }
        folder::remove(&path).map_err(|error| failure(&error))
    }

    fn unknown(&self, name: &str) -> Error {
        let mut all = self.all().unwrap_or_default();
        if name.len() < NEAR_LETTERS {
            all.clear();
        }
        let near =
            text::nearest(name, all.iter().map(|found| found.name.as_str()), limits::NEAR_NAMES);
        let error = Error::new(
            ErrorKind::Io,
            format!(
                "failed to find the session `{name}`: there is none in `{}`",
                self.folder.display()
            ),
        );
        error.with_hint(if near.is_empty() {
            "`skills-runner sessions list` gives all".to_string()
        } else {
            format!("did you mean {}?", near.join(" or "))
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        folder::path_of(&self.folder, name)
    }

    fn session(&self, name: &str, header: SessionHeader, file: Option<File>) -> Session {
        Session {
            name: name.to_string(),
            path: self.path(name),
            header,
            secrets: self.secrets.clone(),
            file,
            length: 0,
            warning: None,
            is_of_use: false,
        }
    }
}

/// Wrong usage, if it is no name of a session.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    let shown = text::one_line(&text::one_name(name), limits::SUMMARY_CHARS);
    let message = format!("failed to name a session `{shown}`: it is no name");
    Err(Error::new(ErrorKind::Usage, message).with_hint(format!(
        "letters, digits, `.`, `_` and `-`, at most {} of them, and no `-` in front",
        limits::SESSION_NAME_CHARS
    )))
}

fn in_use(verb: &str, name: &str, pid: i32) -> Error {
    let who = match pid {
        0 => "another process".to_string(),
        pid => format!("process {pid}"),
    };
    let message = format!("failed to {verb} the session `{name}`: {who} uses it");
    Error::new(ErrorKind::Temporary, message)
}

/// Moves the beginning of a line behind those that were torn before, and cuts
/// it off the session's file: first the one, then the other.
fn set_aside(path: &Path, torn: &[u8], file: &File, whole: u64) -> io::Result<()> {
    let mut aside = match folder::open(path, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => folder::create(path)?,
        file => file?,
    };
    aside.write_all(&[torn, b"\n"].concat())?;
    file.set_len(whole)
}

/// How long ago something was, as short as people say it.
pub(crate) fn age(since: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(since).unwrap_or_default().as_secs();
    let (hour, day) = (3600, 86_400); // not a bound
    match seconds {
        0..60 => format!("{seconds} s"),
        60.. if seconds < hour => format!("{} min", seconds / 60),
        _ if seconds < day => format!("{} h", seconds / hour),
        _ => text::counted(usize::try_from(seconds / day).unwrap_or(usize::MAX), "day"),
    }
}
