//! Sessions: saved conversations, one file each, with a header and one line per change. A
//! damaged file is never overwritten: the conversation continues with its readable part, or
//! without it.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::secret::Secrets;
use base::text;
use host::clock::timestamp;
use host::{lock, random};

mod file;
mod folder;
mod older_formats;
mod record;
mod restore;

pub use file::{SavedAs, Session};
pub use folder::{SessionFile, is_valid_name};
pub(crate) use record::SessionFileError;
pub use record::change_line;
pub use record::{SessionHeader, message_value};
pub use restore::RestoredSession;
pub use restore::restore;

/// The number of random letters after the time in an automatic name.
const RANDOM_LETTERS: usize = 4;

/// The minimal length of a name for which similar names are suggested.
const MIN_SUGGESTION_LETTERS: usize = 3;

/// The folder of sessions, which may not exist.
#[derive(Clone, Debug)]
pub struct Sessions {
    folder: PathBuf,
    secrets: Secrets,
}

/// The result of opening a session.
#[derive(Debug, Default)]
pub struct OpenedSession {
    /// The session that saves the conversation; `None`: it is not saved.
    pub session: Option<Session>,
    /// The restored conversation.
    pub restored: Option<RestoredSession>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Sessions {
    /// The sessions in this folder. Secrets are masked before they are written.
    pub fn new(folder: &Path, secrets: &Secrets) -> Sessions {
        Sessions { folder: folder.to_path_buf(), secrets: secrets.clone() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lists all sessions, the latest first.
    pub fn list(&self) -> Result<Vec<SessionFile>> {
        folder::list_files(&self.folder).map_err(|error| {
            let folder = self.folder.display();
            Error::new(ErrorKind::Io, format!("failed to list the sessions in `{folder}`: {error}"))
        })
    }

    /// Finds a session's file without reading it.
    pub fn find(&self, name: &str) -> Result<SessionFile> {
        let found = self.list()?.into_iter().find(|found| found.name == name);
        found.ok_or_else(|| self.unknown_session_error(name))
    }

    /// The session that was last used in this working folder, also by a newer version.
    pub fn latest(&self, user_folder: &str) -> Result<Option<SessionFile>> {
        Ok(self.list()?.into_iter().find(|found| {
            let started_in = match folder::header_at(&self.path(&found.name)) {
                Ok(header) => Some(header.folder),
                Err(SessionFileError::Newer { folder, .. }) => folder,
                Err(_) => None,
            };
            started_in.is_some_and(|folder| folder == user_folder)
        }))
    }

    /// Reads a session. Its file is not changed.
    pub fn read(&self, name: &str) -> Result<Option<RestoredSession>> {
        check_name(name)?;
        let failure = |cause: &dyn fmt::Display| {
            Error::new(ErrorKind::Io, format!("failed to read the session `{name}`: {cause}"))
        };
        let file = self.open_for_reading(name, &failure)?;
        let (bytes, modified) = folder::read(&file).map_err(|error| failure(&error))?;
        restore(&bytes, modified).map_err(|cause| file_error("read", name, &cause))
    }

    fn open_for_reading(
        &self,
        name: &str,
        failure: &dyn Fn(&dyn fmt::Display) -> Error,
    ) -> Result<File> {
        folder::open(&self.path(name), false).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.unknown_session_error(name),
            _ => failure(&error),
        })
    }

    /// Whether there is any file with this name.
    pub fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// The id of the process that is writing the session.
    pub fn holder_pid(&self, name: &str) -> Option<i32> {
        let file = folder::open(&self.path(name), false).ok()?;
        lock::holder(&file).ok().flatten()
    }

    /// A session with an automatic name. Its file is created with the first message.
    pub fn new_automatic(&self, mut header: SessionHeader) -> Result<Session> {
        let mut letters = random::name().map_err(|error| {
            Error::new(ErrorKind::Io, format!("failed to name the session: {error}"))
        })?;
        letters.truncate(RANDOM_LETTERS);
        let time = timestamp(header.created);
        let minute = time.get(..16).unwrap_or(&time);
        let name = format!("{}-{letters}", minute.replace('T', "-").replace(':', ""));
        header.automatic = Some(name.clone());
        Ok(self.new_session(&name, header, None))
    }

    /// Opens a session or creates it. A session in use or of a newer version and an invalid
    /// name are errors; any other problem is a warning, and the file stays as it is.
    pub fn open(&self, name: &str, new_header: SessionHeader) -> Result<OpenedSession> {
        check_name(name)?;
        let path = self.path(name);
        let file = match folder::open(&path, true) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut session = self.new_session(name, new_header, None);
                return match session.create_file() {
                    // Another process was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        Err(in_use_error("open", name, 0))
                    }
                    Err(error) => Ok(self.unsaved(name, &error)),
                    Ok(()) => {
                        Ok(OpenedSession { session: Some(session), ..OpenedSession::default() })
                    }
                };
            }
            Err(error) => return Ok(self.open_read_only(name, &error)),
        };
        match lock::try_lock_for_process(&file) {
            Err(error) => Ok(self.unsaved(name, &format!("no lock: {error}"))),
            Ok(Err(pid)) => Err(in_use_error("open", name, pid)
                .with_hint("end that process first, or use another name with --session")),
            // The file has been deleted or renamed.
            Ok(Ok(())) if !folder::is_still_at(&file, &path) => Err(in_use_error("open", name, 0)),
            Ok(Ok(())) => self.resume(name, new_header, file),
        }
    }

    fn resume(&self, name: &str, new_header: SessionHeader, file: File) -> Result<OpenedSession> {
        let (bytes, modified) = match folder::read(&file) {
            Ok(read) => read,
            Err(error) => return Ok(self.unsaved(name, &error)),
        };
        let restored = match restore(&bytes, modified) {
            Ok(restored) => restored,
            Err(cause @ SessionFileError::Newer { .. }) => {
                return Err(file_error("open", name, &cause));
            }
            Err(cause) => return Ok(self.unsaved(name, &cause)),
        };
        let header = restored.as_ref().map_or(new_header, |restored| restored.header.clone());
        let mut session = self.new_session(name, header, Some(file));
        session.length = bytes.len() as u64;
        session.must_keep = restored.is_some();
        let prepared = match &restored {
            Some(restored) => session.prepare(&bytes, restored.unfinished_bytes),
            None => session.write_header(),
        };
        let mut opened = match prepared {
            Ok(()) => OpenedSession { session: Some(session), ..OpenedSession::default() },
            Err(error) => self.unsaved(name, &error),
        };
        opened
            .warnings
            .extend(restored.as_ref().and_then(|restored| restored.damage_warning(name)));
        opened.restored = restored;
        Ok(opened)
    }

    /// Reads a session that cannot be written.
    fn open_read_only(&self, name: &str, error: &io::Error) -> OpenedSession {
        let mut opened = self.unsaved(name, error);
        if matches!(
            error.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        ) && let Ok(Some(restored)) = self.read(name)
        {
            opened.warnings.extend(restored.damage_warning(name));
            opened.restored = Some(restored);
        }
        opened
    }

    fn unsaved(&self, name: &str, cause: &dyn fmt::Display) -> OpenedSession {
        let mut warning =
            format!("failed to open the session `{name}`: {cause}; the conversation is not saved");
        if self.exists(name) {
            warning += &format!(", and `{}` stays as it is", self.path(name).display());
        }
        OpenedSession { warnings: vec![warning], ..OpenedSession::default() }
    }

    /// The error for a name that another session has.
    pub fn name_taken_error(name: &str) -> Error {
        let message =
            format!("failed to save the session as `{name}`: a session with this name exists");
        Error::new(ErrorKind::Io, message).with_hint(format!(
            "use another name, or run `skills-runner sessions delete {name}` first"
        ))
    }

    /// Deletes a session that is not in use.
    pub fn delete(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let path = self.path(name);
        let failure = |cause: &dyn fmt::Display| {
            Error::new(ErrorKind::Io, format!("failed to delete the session `{name}`: {cause}"))
        };
        let file = self.open_for_reading(name, &failure)?;
        if let Ok(Some(pid)) = lock::holder(&file) {
            return Err(in_use_error("delete", name, pid).with_hint("end that process first"));
        }
        if file.metadata().is_ok_and(|meta| meta.len() > 0)
            && let Err(cause) = folder::read_header(&file)
        {
            let hint = format!("its file is `{}`", path.display());
            return Err(file_error("delete", name, &cause).with_hint(hint));
        }
        fs::remove_file(&path).map_err(|error| failure(&error))
    }

    fn unknown_session_error(&self, name: &str) -> Error {
        let mut all = self.list().unwrap_or_default();
        if name.len() < MIN_SUGGESTION_LETTERS {
            all.clear();
        }
        let near = text::similar_names(
            name,
            all.iter().map(|found| found.name.as_str()),
            limits::SIMILAR_NAMES,
        );
        let error = Error::new(
            ErrorKind::Io,
            format!(
                "failed to find the session `{name}`: there is no such session in `{}`",
                self.folder.display()
            ),
        );
        error.with_hint(if near.is_empty() {
            "`skills-runner sessions list` lists all".to_string()
        } else {
            format!("did you mean `{}`?", near.join("` or `"))
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        folder::session_path(&self.folder, name)
    }

    fn new_session(&self, name: &str, header: SessionHeader, file: Option<File>) -> Session {
        Session {
            saved_as: SavedAs {
                name: name.to_string(),
                path: self.path(name),
                is_automatic: header.automatic.as_deref() == Some(name),
            },
            header,
            secrets: self.secrets.clone(),
            file,
            length: 0,
            must_keep: false,
        }
    }
}

/// Checks the name of a session; an invalid one is a usage error.
pub fn check_name(name: &str) -> Result<()> {
    if is_valid_name(name) {
        return Ok(());
    }
    let shown = text::one_line(&text::one_line_name(name), limits::SUMMARY_CHARS);
    let message = format!("failed to use the session name `{shown}`: the name is not valid");
    Err(Error::new(ErrorKind::Usage, message).with_hint(format!(
        "use only letters, digits, `.`, `_` and `-`, at most {} characters, and not `-` as the first",
        limits::SESSION_NAME_CHARS
    )))
}

fn in_use_error(verb: &str, name: &str, pid: i32) -> Error {
    let process = match pid {
        0 => "another process".to_string(),
        pid => format!("process {pid}"),
    };
    let message = format!("failed to {verb} the session `{name}`: {process} is using it");
    Error::new(ErrorKind::Temporary, message)
}

/// The error for a file that cannot be used as a session.
fn file_error(verb: &str, name: &str, cause: &SessionFileError) -> Error {
    let message = format!("failed to {verb} the session `{name}`: {cause}");
    match cause {
        SessionFileError::Newer { .. } => Error::new(ErrorKind::Config, message)
            .with_hint("use that version of skills-runner, or another session"),
        SessionFileError::Foreign | SessionFileError::Damaged => Error::new(ErrorKind::Io, message),
    }
}

/// The time since `since` in a short form, such as `5 min`.
pub fn format_age(since: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(since).unwrap_or_default().as_secs();
    let (hour, day) = (3600, 86_400); // not a limit
    match seconds {
        0..60 => format!("{seconds} s"),
        60.. if seconds < hour => format!("{} min", seconds / 60),
        _ if seconds < day => format!("{} h", seconds / hour),
        _ => text::counted(usize::try_from(seconds / day).unwrap_or(usize::MAX), "day"),
    }
}
