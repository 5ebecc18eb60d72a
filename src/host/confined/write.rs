//! Replaces a file that is directly in a folder.
//!
//! Changes are atomic, whenever the program or the machine stops: the new content is written
//! to a temporary file, which is then renamed. Links are never written through, and only
//! content that the caller has read is overwritten.

use std::ffi::{CStr, CString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, renameat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use super::open::{INSPECT_FLAGS, OpenedKind, inspect, open_name, open_name_with_mode};
use super::path::RelativePath;
use super::{OpenError, Root, read_whole};
use crate::files::rename_by;
use base::limits;

impl Root {
    /// Replaces the content of the file `name` of the program's own, which was read as `old`, and
    /// keeps its mode. It may be missing: then `old` is `None`, and only the owner may access the
    /// new file. With `is_locked` the caller holds a lock on the folder against other writers, and
    /// a temporary file that a killed writer left is removed. Fails if the file is a link, is not
    /// writable, has changed since, or has a hard link, which would keep the old content. Returns
    /// the replaced file: other processes may have appended to it after `old`, which the caller
    /// must carry over.
    pub fn save(
        &self,
        name: &str,
        old: Option<&[u8]>,
        new: &[u8],
        is_locked: bool,
    ) -> Result<Option<File>, OpenError> {
        let name = RelativePath::single_name(name.as_ref())?;
        let folder = self.as_fd();
        let draft = || {
            if !is_locked {
                return create_draft(folder, &name, 0o600);
            }
            let temporary = temporary_name(&name, ".new")?;
            remove(folder, &temporary);
            let file = create(folder, &temporary, 0o600)?;
            Ok((temporary, file))
        };
        if let Some(old) = old {
            let file = open_writable(folder, &name)?;
            let (temporary, draft) = draft()?;
            if file.metadata()?.nlink() > 1 {
                remove(folder, &temporary);
                return Err(io::Error::other("it has another name too, a hard link").into());
            }
            self.commit_draft(&name, &file, (temporary, draft), Some(old), new, true)?;
            return Ok(Some(file));
        }
        let (temporary, mut file) = draft()?;
        let written = file.write_all(new).and_then(|()| file.sync_all());
        // `link` does not replace a file that another process has just created.
        let named = written.and_then(|()| link(folder, &temporary, &name));
        remove(folder, &temporary);
        named.map(|()| None).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenError::Changing,
            _ => error.into(),
        })
    }

    /// Fills the draft and renames it to the file's name. `old`: the content that the file must
    /// still have. With `may_grow` the caller carries over what other processes append meanwhile.
    pub(super) fn commit_draft(
        &self,
        name: &CStr,
        file: &File,
        (temporary, mut draft): (CString, File),
        old: Option<&[u8]>,
        new: &[u8],
        may_grow: bool,
    ) -> Result<(), OpenError> {
        let folder = self.as_fd();
        let written = write_draft(&mut draft, file, new).and_then(|()| {
            // Checked as late as possible: a change by another process must not be lost.
            let (now, before) = (regular_file_metadata(folder, name)?, file.metadata()?);
            let is_same = (now.dev(), now.ino()) == (before.dev(), before.ino());
            let has_changed = |old: &[u8]| {
                let piece = read_whole(file, old.len())?;
                Ok::<_, OpenError>((piece.has_more && !may_grow) || piece.bytes != old)
            };
            if !is_same || old.map_or(Ok(false), has_changed)? {
                return Err(OpenError::Changing);
            }
            Ok(rename(folder, &temporary, name)?)
        });
        if written.is_err() {
            remove(folder, &temporary);
        }
        written
    }
}

/// Opens a regular file, not a link, for reading and writing. Writes nothing.
pub(super) fn open_writable(folder: BorrowedFd<'_>, name: &CStr) -> Result<File, OpenError> {
    regular_file_metadata(folder, name)?;
    let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    Ok(File::from(open_name(folder, name, flags)?))
}

/// The metadata of a regular file; an error for a link and anything else.
fn regular_file_metadata(
    folder: BorrowedFd<'_>,
    name: &CStr,
) -> Result<std::fs::Metadata, OpenError> {
    let flags = INSPECT_FLAGS | OFlag::O_NOFOLLOW;
    match inspect(open_name(folder, name, flags)?)? {
        (file, OpenedKind::File { .. }) => Ok(File::from(file).metadata()?),
        (_, OpenedKind::Link) => Err(OpenError::Link),
        (_, OpenedKind::Folder) => Err(OpenError::NotAFile("a folder")),
        (_, OpenedKind::Other(kind)) => Err(OpenError::NotAFile(kind)),
    }
}

/// Creates an empty temporary file in the folder of the file that it will replace.
pub(super) fn create_draft(
    folder: BorrowedFd<'_>,
    name: &CStr,
    mode: libc::c_uint,
) -> Result<(CString, File), OpenError> {
    let mut number = 0;
    loop {
        let temporary = temporary_name(name, &format!(".{}.{number}", process::id()))?;
        match create(folder, &temporary, mode) {
            Ok(file) => return Ok((temporary, file)),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && number < limits::OPEN_TRIES => {}
            Err(error) => return Err(error.into()),
        }
        number += 1;
    }
}

/// A hidden name derived from this one.
fn temporary_name(name: &CStr, end: &str) -> Result<CString, OpenError> {
    CString::new([b".", name.to_bytes(), end.as_bytes()].concat()).map_err(|_| OpenError::Nul)
}

/// Creates a new file.
fn create(folder: BorrowedFd<'_>, name: &CStr, mode: libc::c_uint) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
    Ok(File::from(open_name_with_mode(folder, name, flags, mode)?))
}

/// Fills the draft and gives it the owner (if permitted), the mode and the attributes of the
/// file that it will replace.
fn write_draft(draft: &mut File, like: &File, content: &[u8]) -> Result<(), OpenError> {
    let metadata = like.metadata()?;
    draft.write_all(content)?;
    // Only root may change the owner; for other users it is already right.
    let owner = std::os::unix::fs::fchown(&*draft, Some(metadata.uid()), Some(metadata.gid()));
    if draft.metadata()?.uid() != metadata.uid() {
        return Err(io::Error::other("it belongs to another user").into());
    }
    let mode = metadata.mode() & if owner.is_ok() { 0o7777 } else { 0o777 };
    draft.set_permissions(Permissions::from_mode(mode))?;
    copy_attributes(like, draft)?;
    Ok(draft.sync_all()?)
}

/// Copies extended attributes, including access control lists. The system sets its own
/// attributes (`security`, `trusted`) itself.
fn copy_attributes(from: &File, to: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the buffer has the size that is passed.
    let names = read_attribute(|buffer| unsafe {
        libc::flistxattr(from.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
    });
    let names = match names {
        Err(Errno::ENOTSUP) => return Ok(()),
        names => names?,
    };
    for name in names.split_inclusive(|byte| *byte == 0) {
        let is_of_system = [&b"security."[..], b"trusted."];
        if is_of_system.iter().any(|space| name.starts_with(space)) {
            continue;
        }
        let name = CStr::from_bytes_with_nul(name).map_err(io::Error::other)?;
        set_attribute(to, name, &attribute(from, name)?)?;
    }
    Ok(())
}

fn attribute(file: &File, name: &CStr) -> nix::Result<Vec<u8>> {
    let (file, name) = (file.as_raw_fd(), name.as_ptr());
    // SAFETY: the descriptor is open, the name ends with NUL, and the buffer has the size that is
    // passed.
    read_attribute(|buffer| unsafe {
        libc::fgetxattr(file, name, buffer.as_mut_ptr().cast(), buffer.len())
    })
}

fn set_attribute(file: &File, name: &CStr, value: &[u8]) -> nix::Result<()> {
    let (file, name) = (file.as_raw_fd(), name.as_ptr());
    // SAFETY: the descriptor is open, and name and value live for the call.
    let answer = unsafe { libc::fsetxattr(file, name, value.as_ptr().cast(), value.len(), 0) };
    Errno::result(answer).map(drop)
}

/// Calls `call` with a buffer of the kernel's maximum size and returns what it wrote.
fn read_attribute(call: impl Fn(&mut [u8]) -> libc::ssize_t) -> nix::Result<Vec<u8>> {
    let mut buffer = vec![0; limits::ATTRIBUTE_BYTES];
    let length = Errno::result(call(&mut buffer))?;
    buffer.truncate(length.unsigned_abs());
    Ok(buffer)
}

fn rename(folder: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    Ok(renameat(folder, from, folder, to)?)
}

/// Renames a file to a name that must not exist, also where files cannot have two names.
pub(super) fn rename_to_new(folder: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    match rename_by(folder, from, to, libc::RENAME_NOREPLACE) {
        // Not supported by the file system or the kernel.
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EPERM) => {
            link(folder, from, to)?;
            remove(folder, from);
            Ok(())
        }
        done => Ok(done?),
    }
}

fn link(folder: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    Ok(linkat(folder, from, folder, to, AtFlags::empty())?)
}

/// Removes a name; a failure leaves a superfluous file.
pub(super) fn remove(folder: BorrowedFd<'_>, name: &CStr) {
    let _ = unlinkat(folder, name, UnlinkatFlags::NoRemoveDir);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::TempDir;
    use super::*;

    /// Extended attributes, such as access control lists, are kept.
    #[test]
    fn a_replaced_file_keeps_its_attributes() {
        let dir = TempDir::new();
        dir.file("skill/a", "old");
        let open = || File::open(dir.path("skill/a")).unwrap();
        if set_attribute(&open(), c"user.kept", b"yes").is_err() {
            return eprintln!("skipped: the file system has no attributes of users");
        }
        let root = Root::open(&dir.path("skill")).unwrap();
        root.save("a", Some(b"old"), b"new", false).unwrap();
        assert_eq!(fs::read(dir.path("skill/a")).unwrap(), b"new");
        assert_eq!(attribute(&open(), c"user.kept").unwrap(), b"yes");
    }
}
