//! The folder of sessions: private files, each opened without following links.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::limits;
use crate::order;
use crate::session::record::SessionHeader;
use crate::world::files::user;
use crate::world::lock;

const SUFFIX: &str = ".jsonl";

/// Why a file with a second name is not written: that one is not ours.
pub(super) const LINKED: &str = "it is a hard link: it has another name, too";

/// A file that may be a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionFile {
    /// The session's name.
    pub name: String,
    /// The file's length.
    pub bytes: u64,
    /// When it was written last.
    pub changed: SystemTime,
}

impl SessionFile {
    /// The file of a session of this name.
    pub(crate) fn of(name: &str, meta: &Metadata) -> SessionFile {
        SessionFile {
            name: name.to_string(),
            bytes: meta.len(),
            changed: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }
}

/// Whether a session may have this name: it is a file's too.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=limits::SESSION_NAME_CHARS).contains(&name.len())
        && name.chars().all(is_allowed)
        && !name.starts_with('-')
        && name != "."
        && name != ".."
}

/// The file of a session.
pub(super) fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{SUFFIX}"))
}

/// Where what `kill -9` left of a line is kept.
pub(super) fn torn_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".torn");
    name.into()
}

/// Everything in the folder that has the name of a session, the latest first.
pub(super) fn found(folder: &Path) -> io::Result<Vec<SessionFile>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut all = Vec::new();
    for entry in entries.take(limits::ENTRIES_READ).flatten() {
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        // Of the entry itself, wherever a link leads.
        if let (Some(name), Ok(meta)) = (name.filter(|name| is_name(name)), entry.metadata()) {
            all.push(SessionFile::of(name, &meta));
        }
    }
    order::sort_by(&mut all, &|one, other| {
        (other.changed, &other.name).cmp(&(one.changed, &one.name))
    });
    Ok(all)
}

/// A new file for its owner alone.
pub(super) fn create(path: &Path) -> io::Result<File> {
    options(true).create_new(true).open(path)
}

/// The file, if it is one of ours that may be read. What it must not be is an
/// error in words: a link, a folder, somebody else's, too large.
pub(super) fn open(path: &Path, for_writing: bool) -> io::Result<File> {
    // Looked at first: opening a device may do something.
    check(&path.symlink_metadata()?)?;
    let file = options(for_writing).open(path)?;
    let meta = file.metadata()?;
    check(&meta)?;
    if for_writing {
        // Also to the superuser it says that nobody is to write here.
        if meta.mode() & 0o200 == 0 {
            return Err(ErrorKind::PermissionDenied.into());
        }
        if meta.mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

fn options(for_writing: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .append(for_writing)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

fn check(meta: &Metadata) -> io::Result<()> {
    let fault = if meta.is_symlink() {
        "it is a link".to_string()
    } else if !meta.is_file() {
        "it is no regular file".to_string()
    } else if meta.nlink() > 1 {
        LINKED.to_string()
    } else if meta.uid() != user() {
        "it belongs to another user".to_string()
    } else if meta.len() > limits::SESSION_BYTES {
        format!("it is larger than {} MiB", limits::SESSION_BYTES >> 20)
    } else {
        return Ok(());
    };
    Err(io::Error::other(fault))
}

/// All of a file that [`open`] has opened.
pub(super) fn read(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limits::SESSION_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first line of a session's file.
pub(super) fn header(path: &Path) -> Option<SessionHeader> {
    header_of(&open(path, false).ok()?).ok()
}

/// The same of an open file, from where it is read next, or why it is none.
pub(super) fn header_of(file: &File) -> Result<SessionHeader, &'static str> {
    let mut bytes = Vec::new();
    let most = limits::SESSION_HEADER_BYTES as u64;
    if file.take(most).read_to_end(&mut bytes).is_err() {
        return Err("it cannot be read");
    }
    let end = bytes.iter().position(|byte| *byte == b'\n');
    SessionHeader::of(&bytes[..end.unwrap_or(0)])
}

/// Whether this file still has this name.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Deletes the oldest of the sessions that the program has named, but for those
/// that are in use. What cannot be deleted stays.
pub(super) fn prune(folder: &Path, own: &str) {
    let Ok(all) = found(folder) else { return };
    let is_automatic = |found: &&SessionFile| {
        let header = header(&path_of(folder, &found.name));
        header.is_some_and(|header| header.automatic.as_ref() == Some(&found.name))
    };
    // Our own file must not be opened a second time: that would end its lock.
    let others = all.iter().filter(|found| found.name != own);
    for old in others.filter(is_automatic).skip(limits::SESSIONS_KEPT - 1) {
        let path = path_of(folder, &old.name);
        if let Ok(file) = open(&path, true)
            && matches!(lock::hold(&file), Ok(Ok(())))
            && is_at(&file, &path)
        {
            // What cannot go stays.
            let _ = remove(&path);
        }
    }
}

/// Removes a session's file and what was set aside of it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    let _ = fs::remove_file(torn_path(path));
    Ok(())
}
