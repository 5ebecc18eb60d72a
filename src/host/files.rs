//! Files that the user names (settings, prompts, certificates, keys), and small files of
//! the program's own.
//!
//! Files in a skill, which may be hostile, are opened through `confined/` instead.

use std::ffi::{CStr, CString, OsStr};
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cancellation::{Cancellation, Readiness, StopReason};
use base::error::Error;
use base::limits;
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::unistd::{getegid, geteuid, syncfs};

/// Reads a regular file of at most `max_bytes`. The error is the cause in words.
pub fn read_whole(path: &Path, max_bytes: usize) -> Result<Vec<u8>, String> {
    let file = open_regular(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(bytes)
}

/// The link in a path that leads to nothing, in words.
pub fn dead_link(path: &Path) -> Option<String> {
    let link = path.ancestors().find(|part| part.is_symlink() && !part.exists())?;
    let target = fs::read_link(link).unwrap_or_default();
    Some(format!("{} is a link to {}, which cannot be reached", link.display(), target.display()))
}

/// Opens a regular file for reading, without waiting for the writer of a FIFO.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Reads a file that the user names on the command line: a regular file, a pipe as in
/// `<(command)`, or `/dev/null`. A pipe, also a FIFO without a writer, may stay silent
/// for [`limits::PIPE_SILENCE`]. The error of a wait carries its [`StopReason`].
///
/// [`StopReason`]: crate::cancellation::StopReason
pub fn read_file_or_pipe(
    path: &Path,
    max_bytes: usize,
    cancellation: &Cancellation,
) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let (kind, device) = file.metadata().map(|meta| (meta.file_type(), meta.rdev()))?;
    let is_null = kind.is_char_device() && device == libc::makedev(1, 3);
    if !kind.is_file() && !kind.is_fifo() && !is_null {
        return Err(io::Error::other("it is neither a file nor a pipe"));
    }
    read_to_end(&mut file, Vec::new(), max_bytes, |_| Some(limits::PIPE_SILENCE), cancellation)?
        .ok_or_else(|| io::Error::other(too_large(max_bytes)))
}

/// Reads what follows `bytes` up to the end; `None` if all of it is larger than `max_bytes`.
/// `silence` limits each wait, from the number of bytes read so far. The error of a wait
/// carries its [`StopReason`].
///
/// [`StopReason`]: crate::cancellation::StopReason
pub fn read_to_end(
    file: &mut File,
    mut bytes: Vec<u8>,
    max_bytes: usize,
    silence: impl Fn(usize) -> Option<Duration>,
    cancellation: &Cancellation,
) -> io::Result<Option<Vec<u8>>> {
    let mut piece = vec![0; limits::READ_BYTES];
    while bytes.len() <= max_bytes {
        cancellation.wait(Some((file.as_fd(), Readiness::Read)), silence(bytes.len()))?;
        match file.read(&mut piece) {
            Ok(0) => return Ok(Some(bytes)),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The error for a file that could not be read: the stop of the run if there was one,
/// otherwise `failure` with the cause.
pub fn read_error(error: &io::Error, failure: impl Fn(&str) -> Error) -> Error {
    match StopReason::from_io_error(error) {
        Some(stop @ (StopReason::Interrupted(_) | StopReason::Deadline)) => stop.into(),
        _ => failure(&error.to_string()),
    }
}

/// Whether a call can be repeated. `WouldBlock` is possible because another process may have
/// made a shared descriptor non-blocking, or has read the data of the same pipe.
pub fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

/// Opens a file without waiting for the writer of a FIFO.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().read(true).custom_flags(flags).open(path)
}

fn too_large(max_bytes: usize) -> String {
    format!("it is larger than {max_bytes} bytes")
}

/// Whether users other than the owner and the members of its group can reach and read
/// this regular file. Group access is accepted: services get their keys that way, and a
/// group often has only one member.
pub fn is_world_readable(path: &Path) -> bool {
    let allows = |path: &Path, bits: u32| {
        path.metadata().is_ok_and(|meta| meta.permissions().mode() & bits != 0)
    };
    path.canonicalize().is_ok_and(|path| {
        path.is_file()
            && allows(&path, 0o004)
            && path.ancestors().skip(1).all(|folder| allows(folder, 0o001))
    })
}

/// Another writer of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherWriter {
    /// All users.
    Everyone,
    /// The members of a group that is not the user's own.
    Group(u32),
    /// The owner: neither the user nor root.
    Owner(u32),
}

impl fmt::Display for OtherWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OtherWriter::Everyone => f.write_str("all users may write to it"),
            OtherWriter::Group(group) => write!(f, "group {group} may write to it"),
            OtherWriter::Owner(user) => write!(f, "it belongs to user {user}"),
        }
    }
}

/// A writer of this file or folder other than the user and root. The user's own primary group is
/// accepted: with a umask of 002 it often has only one member.
pub fn writer_beside_user(meta: &Metadata) -> Option<OtherWriter> {
    let own_group = getegid().as_raw();
    match (meta.mode(), meta.gid(), meta.uid()) {
        (mode, _, _) if mode & 0o002 != 0 => Some(OtherWriter::Everyone),
        (mode, group, _) if mode & 0o020 != 0 && group != own_group => {
            Some(OtherWriter::Group(group))
        }
        (_, _, owner) if owner != 0 && owner != effective_user() => Some(OtherWriter::Owner(owner)),
        _ => None,
    }
}

/// Writes a new file and waits until it is on the disk. An existing file of this name is
/// removed first, so that no link is followed.
pub fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Puts each of two folders, which must exist, in the place of the other, at once.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (old, new) = (name(one)?, name(other)?);
    match rename_by(AT_FDCWD, &old, &new, libc::RENAME_EXCHANGE) {
        // Not supported by the file system or the kernel: for a moment, nothing is at `other`.
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            let mut between = one.as_os_str().to_os_string();
            between.push(".old");
            fs::rename(other, &between)?;
            fs::rename(one, other)?;
            fs::rename(&between, one)
        }
        done => Ok(done?),
    }
}

/// Calls `renameat2(2)`, which musl lacks.
pub(crate) fn rename_by(
    folder: BorrowedFd<'_>,
    from: &CStr,
    to: &CStr,
    flag: libc::c_uint,
) -> nix::Result<()> {
    let (at, old, new) = (folder.as_raw_fd(), from.as_ptr(), to.as_ptr());
    // SAFETY: the descriptor is open, and both names end with NUL for the call.
    Errno::result(unsafe { libc::syscall(libc::SYS_renameat2, at, old, at, new, flag) }).map(drop)
}

/// Acts on what is below a folder. If that is denied, the owner first gets the right to write to
/// all folders there: some programs take it away from what they store.
pub fn with_writable_folders<T>(
    folder: &Path,
    mut act: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    match act() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_folders_writable(folder)?;
            act()
        }
        done => done,
    }
}

fn make_folders_writable(folder: &Path) -> io::Result<()> {
    let mode = folder.symlink_metadata()?.permissions().mode();
    if mode & 0o700 != 0o700 {
        fs::set_permissions(folder, PermissionsExt::from_mode(mode | 0o700))?;
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_folders_writable(&entry.path())?;
        }
    }
    Ok(())
}

/// Waits until everything in the file system of an open file is on the disk.
pub fn sync_file_system(file: &impl AsFd) -> io::Result<()> {
    Ok(syncfs(file)?)
}

/// The effective user ID of the process.
pub fn effective_user() -> u32 {
    geteuid().as_raw()
}

/// Splits a list of paths that is separated as in `PATH`.
pub fn split_path_list(list: &OsStr) -> impl Iterator<Item = &OsStr> {
    let parts = list.as_bytes().split(|&byte| byte == b':');
    parts.map(OsStr::from_bytes)
}

/// The first executable regular file with this name in `search_path`.
pub fn find_program(name: &OsStr, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let is_executable = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    split_path_list(search_path?)
        .map(|folder| Path::new(folder).join(name))
        .filter(|path| path.is_absolute())
        .find(is_executable)
}
