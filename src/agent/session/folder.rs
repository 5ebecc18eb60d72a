//! The folder of sessions: private files, opened without following links.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::session::record::{SessionFileError, SessionHeader};
use base::limits;
use host::files::effective_user;
use host::lock;

const SUFFIX: &str = ".jsonl";

/// A file with the name of a session.
#[derive(Clone, Debug)]
pub struct SessionFile {
    /// The name of the session.
    pub name: String,
    /// The length of the file.
    pub bytes: u64,
    /// When the file was last modified.
    pub modified: SystemTime,
}

/// Whether this is a valid name for a session, and so for its file.
pub fn is_valid_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=limits::SESSION_NAME_CHARS).contains(&name.len())
        && name.chars().all(is_allowed)
        && !name.starts_with('-')
        && name != "."
        && name != ".."
}

/// The path of a session's file.
pub(super) fn session_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{SUFFIX}"))
}

/// Lists all files with the name of a session, the latest first.
pub(super) fn list_files(folder: &Path) -> io::Result<Vec<SessionFile>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut all = Vec::new();
    for entry in entries.take(limits::ENTRIES_READ).flatten() {
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        // The metadata of the entry itself: links are not followed.
        if let (Some(name), Ok(meta)) = (name.filter(|name| is_valid_name(name)), entry.metadata())
        {
            all.push(SessionFile {
                name: name.to_string(),
                bytes: meta.len(),
                modified: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
    }
    all.sort_by(|one, other| (other.modified, &other.name).cmp(&(one.modified, &one.name)));
    Ok(all)
}

/// Creates a file that only its owner can access.
pub(super) fn create(path: &Path) -> io::Result<File> {
    open_options(true).create_new(true).open(path)
}

/// Opens a session's file. A link, a folder, a file of another user, or a file that is too
/// large is an error.
pub(super) fn open(path: &Path, for_writing: bool) -> io::Result<File> {
    // Checked before opening, because opening a device may have effects.
    check_metadata(&path.symlink_metadata()?)?;
    let file = open_options(for_writing).open(path)?;
    let meta = file.metadata()?;
    check_metadata(&meta)?;
    if for_writing {
        // A read-only file is not written, not even by the superuser.
        if meta.mode() & 0o200 == 0 {
            return Err(ErrorKind::PermissionDenied.into());
        }
        if meta.mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

fn open_options(for_writing: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(for_writing)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

fn check_metadata(meta: &Metadata) -> io::Result<()> {
    let cause = if meta.is_symlink() {
        "it is a link".to_string()
    } else if !meta.is_file() {
        "it is not a regular file".to_string()
    } else if meta.nlink() > 1 {
        // The other name may not be a session.
        "it has more than one name (hard link)".to_string()
    } else if meta.uid() != effective_user() {
        "it belongs to another user".to_string()
    } else if meta.len() > limits::SESSION_BYTES {
        format!("it is larger than {} MiB", limits::SESSION_BYTES >> 20)
    } else {
        return Ok(());
    };
    Err(io::Error::other(cause))
}

/// Reads the whole file; also returns when it was last modified.
pub(super) fn read(file: &File) -> io::Result<(Vec<u8>, SystemTime)> {
    let modified = file.metadata()?.modified()?;
    let mut bytes = Vec::new();
    file.take(limits::SESSION_BYTES).read_to_end(&mut bytes)?;
    Ok((bytes, modified))
}

/// Reads the header of the session at this path.
pub(super) fn header_at(path: &Path) -> Result<SessionHeader, SessionFileError> {
    read_header(&open(path, false).map_err(|_| SessionFileError::Damaged)?)
}

/// Reads the header of an open file from its current position.
pub(super) fn read_header(file: &File) -> Result<SessionHeader, SessionFileError> {
    let mut bytes = Vec::new();
    let max_bytes = limits::SESSION_HEADER_BYTES as u64;
    file.take(max_bytes).read_to_end(&mut bytes).map_err(|_| SessionFileError::Damaged)?;
    let end = bytes.iter().position(|byte| *byte == b'\n');
    SessionHeader::parse(&bytes[..end.unwrap_or(0)])
}

/// Whether `path` still refers to this file.
pub(super) fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Deletes the oldest automatic sessions, except those in use. Sessions that cannot be
/// deleted stay.
pub(super) fn prune(folder: &Path, own: &str) {
    let Ok(all) = list_files(folder) else { return };
    let is_automatic = |found: &&SessionFile| {
        let header = header_at(&session_path(folder, &found.name));
        header.is_ok_and(|header| header.automatic.as_ref() == Some(&found.name))
    };
    // The own file must not be opened a second time: closing it would release the lock.
    let others = all.iter().filter(|found| found.name != own);
    for old in others.filter(is_automatic).skip(limits::SESSIONS_KEPT - 1) {
        let path = session_path(folder, &old.name);
        if let Ok(file) = open(&path, true)
            && matches!(lock::try_lock_for_process(&file), Ok(Ok(())))
            && is_still_at(&file, &path)
        {
            // A file that cannot be deleted stays.
            let _ = fs::remove_file(&path);
        }
    }
}
