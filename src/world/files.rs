//! Files that the user names (settings, instructions, certificates, keys), and
//! small ones of our own.
//!
//! What lies in a skill, and may have been put there by a stranger, is opened
//! by `confined/` instead.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::Error;
use crate::limits;
use crate::world::cancellation::{Cancellation, Readiness, StopReason};

/// A regular file, whole, if it is not larger than `most` bytes; otherwise the
/// reason, in words.
pub(crate) fn read_whole(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let file = open(path).map_err(|error| error.to_string())?;
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > most {
        return Err(too_large(most));
    }
    Ok(bytes)
}

/// What the user names on the command line: a regular file, or a pipe, as in
/// `<(command)`, or `/dev/null`. A pipe is waited for as long as the run may
/// last, but no silence for longer than [`limits::PIPE_SILENCE`], also that of a
/// FIFO into which nobody writes. The error of a wait holds its [`StopReason`].
///
/// [`StopReason`]: crate::world::cancellation::StopReason
pub(crate) fn read_given(
    path: &Path,
    most: usize,
    cancellation: &Cancellation,
) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let (kind, device) = file.metadata().map(|meta| (meta.file_type(), meta.rdev()))?;
    let is_null = kind.is_char_device() && device == libc::makedev(1, 3);
    if !kind.is_file() && !kind.is_fifo() && !is_null {
        return Err(io::Error::other("it is neither a file nor a pipe"));
    }
    let mut bytes = Vec::new();
    let mut piece = [0; limits::PIPE_READ_BYTES];
    while bytes.len() <= most {
        let readable = Some((file.as_fd(), Readiness::Read));
        cancellation.wait(readable, Some(limits::PIPE_SILENCE))?;
        match file.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            // Another reader of the same pipe was faster.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(too_large(most)))
}

/// What ends the run, or why a file that was named cannot be used.
pub(crate) fn unread(error: &io::Error, failure: impl Fn(&str) -> Error) -> Error {
    match StopReason::within(error) {
        Some(stop @ (StopReason::Interrupted(_) | StopReason::Deadline)) => stop.into(),
        _ => failure(&error.to_string()),
    }
}

/// Opens without waiting for a FIFO's writer.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().read(true).custom_flags(flags).open(path)
}

fn too_large(most: usize) -> String {
    format!("it is larger than {most} bytes")
}

/// Whether users who are neither its owner nor of its group can get to a regular
/// file and read it. That its group may is not asked: it is how a service is
/// given its key, and a group with one member is nobody else.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    let allows = |path: &Path, bits: u32| {
        path.metadata().is_ok_and(|meta| meta.permissions().mode() & bits != 0)
    };
    path.canonicalize().is_ok_and(|path| {
        path.is_file()
            && allows(&path, 0o004)
            && path.ancestors().skip(1).all(|folder| allows(folder, 0o001))
    })
}

/// Writes a new file that is on the disk when this returns. Whatever had its name
/// is removed first, so that no link is written through.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The number of the user that the process acts for.
pub(crate) fn user() -> u32 {
    // SAFETY: it has no conditions, and cannot fail.
    unsafe { libc::geteuid() }
}
