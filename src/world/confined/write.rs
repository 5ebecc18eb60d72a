//! Changing a file that lies directly in a folder: all of it, or its name.
//!
//! A change is there as a whole or not at all, whenever the program or the
//! machine stops: the new content is written beside the file and takes its name
//! in one step. Links are never written through, and nothing is overwritten
//! that is not what the caller has read.

use std::ffi::{CStr, CString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process;

use super::open::{LOOK, OpenedKind, look, open_name};
use super::path::RelativePath;
use super::{OpenError, Root, read_whole};
use crate::limits;

impl Root {
    /// Whether [`Root::replace`] may write the file `name`, before anything else
    /// depends on it.
    pub fn may_replace(&self, name: &str) -> Result<(), OpenError> {
        changeable(self.as_fd(), &one_name(name)?).map(drop)
    }

    /// Replaces the content of the file `name`, which was read as `old`; its
    /// mode stays. Refused where it is a link, may not be written, or has
    /// changed since.
    pub fn replace(&self, name: &str, old: &[u8], new: &[u8]) -> Result<(), OpenError> {
        let name = one_name(name)?;
        let file = changeable(self.as_fd(), &name)?;
        let draft = draft(self.as_fd(), &name)?;
        self.put(&name, &file, draft, old, new, false)
    }

    /// The same for a file of our own, which may not be there yet: then `old` is
    /// `None`, and the new one is for its owner only. Whoever keeps all other
    /// writers out by a lock on the folder clears what a killed one has left.
    /// Refused also where the file has another name, which would keep the old.
    /// Returns the file that has lost its name: it may have grown behind `old`,
    /// and the caller takes that over.
    pub fn save(
        &self,
        name: &str,
        old: Option<&[u8]>,
        new: &[u8],
        is_locked: bool,
    ) -> Result<Option<File>, OpenError> {
        let name = one_name(name)?;
        let folder = self.as_fd();
        let draft = || {
            if !is_locked {
                return draft(folder, &name);
            }
            let temporary = beside(&name, ".new")?;
            remove(folder, &temporary);
            let file = create(folder, &temporary)?;
            Ok((temporary, file))
        };
        if let Some(old) = old {
            let file = changeable(folder, &name)?;
            let (temporary, draft) = draft()?;
            if file.metadata()?.nlink() > 1 {
                remove(folder, &temporary);
                return Err(io::Error::other("it has another name too, a hard link").into());
            }
            self.put(&name, &file, (temporary, draft), old, new, true)?;
            return Ok(Some(file));
        }
        let (temporary, mut file) = draft()?;
        let written = file.write_all(new).and_then(|()| file.sync_all());
        // Never over a file that somebody has just made.
        let named = written.and_then(|()| link(folder, &temporary, &name));
        remove(folder, &temporary);
        named.map(|()| None).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenError::Changing,
            _ => error.into(),
        })
    }

    /// Fills the draft and gives it the file's name. `may_grow`: the caller takes
    /// over what somebody appends meanwhile.
    fn put(
        &self,
        name: &CStr,
        file: &File,
        (temporary, mut draft): (CString, File),
        old: &[u8],
        new: &[u8],
        may_grow: bool,
    ) -> Result<(), OpenError> {
        let folder = self.as_fd();
        let written = write_draft(&mut draft, file, new).and_then(|()| {
            // As late as can be: what somebody saved meanwhile must not be lost.
            let (now, before) = (regular(folder, name)?, file.metadata()?);
            let piece = read_whole(file, old.len())?;
            let is_same = (now.dev(), now.ino()) == (before.dev(), before.ino());
            if !is_same || (piece.more && !may_grow) || piece.bytes != old {
                return Err(OpenError::Changing);
            }
            Ok(rename(folder, &temporary, name)?)
        });
        if written.is_err() {
            remove(folder, &temporary);
        }
        written
    }

    /// Gives the file `from` the name `to`, which nothing has yet, unless the
    /// file system takes the two for one.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), OpenError> {
        let (from, to) = (one_name(from)?, one_name(to)?);
        let folder = self.as_fd();
        let file = regular(folder, &from)?;
        match regular(folder, &to) {
            Ok(other) if (other.dev(), other.ino()) == (file.dev(), file.ino()) => {
                Ok(rename(folder, &from, &to)?)
            }
            Err(OpenError::NotFound) => {
                // A second name first, which never replaces anything.
                link(folder, &from, &to)?;
                remove(folder, &from);
                Ok(())
            }
            Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists).into()),
            Err(refusal) => Err(refusal),
        }
    }
}

/// A name directly in the folder.
fn one_name(name: &str) -> Result<CString, OpenError> {
    let below = RelativePath::parse(name.as_ref())?;
    match below.names.as_slice() {
        [only] if only.as_bytes() == name.as_bytes() => Ok(only.clone()),
        _ => Err(OpenError::NotFound),
    }
}

/// A regular file that is no link and may be written; nothing is written to it.
fn changeable(folder: BorrowedFd<'_>, name: &CStr) -> Result<File, OpenError> {
    regular(folder, name)?;
    let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    Ok(File::from(open_name(folder, name, flags)?))
}

/// What the system says of a regular file that is no link.
fn regular(folder: BorrowedFd<'_>, name: &CStr) -> Result<std::fs::Metadata, OpenError> {
    let flags = LOOK | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    match look(open_name(folder, name, flags)?)? {
        (file, OpenedKind::File { .. }) => Ok(File::from(file).metadata()?),
        (_, OpenedKind::Link) => Err(OpenError::Link),
        (_, OpenedKind::Folder) => Err(OpenError::NotAFile("a folder")),
        (_, OpenedKind::Other(kind)) => Err(OpenError::NotAFile(kind)),
    }
}

/// A new, empty file beside the one that it is to replace.
fn draft(folder: BorrowedFd<'_>, name: &CStr) -> Result<(CString, File), OpenError> {
    let mut number = 0;
    loop {
        let temporary = beside(name, &format!(".{}.{number}", process::id()))?;
        match create(folder, &temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && number < limits::OPEN_TRIES => {}
            Err(error) => return Err(error.into()),
        }
        number += 1;
    }
}

/// A hidden name beside this one.
fn beside(name: &CStr, end: &str) -> Result<CString, OpenError> {
    CString::new([b".", name.to_bytes(), end.as_bytes()].concat()).map_err(|_| OpenError::Nul)
}

/// A file that was not there, for its owner only.
fn create(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<File> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    let mode: libc::c_uint = 0o600;
    // SAFETY: the descriptor is open and the name ends with NUL for the
    // whole call; the mode that O_CREAT reads is passed.
    let answer = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, mode) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(answer) }))
}

/// Fills the draft and gives it the owner, if that can be, the mode, and the
/// attributes of the file that it is to replace.
fn write_draft(draft: &mut File, like: &File, content: &[u8]) -> Result<(), OpenError> {
    let metadata = like.metadata()?;
    draft.write_all(content)?;
    // Only a superuser may, and for everybody else it is right already.
    let owner = std::os::unix::fs::fchown(&*draft, Some(metadata.uid()), Some(metadata.gid()));
    let mode = metadata.mode() & if owner.is_ok() { 0o7777 } else { 0o777 };
    draft.set_permissions(Permissions::from_mode(mode))?;
    copy_attributes(like, draft)?;
    Ok(draft.sync_all()?)
}

/// Extended attributes, access control lists among them. Those of the system's own
/// are set by the system.
fn copy_attributes(from: &File, to: &File) -> io::Result<()> {
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    // SAFETY: the descriptor is open, and the buffer is as large as is said.
    let names = filled(|buffer| unsafe {
        libc::flistxattr(from, buffer.as_mut_ptr().cast(), buffer.len())
    });
    let names = match names {
        Err(error) if error.raw_os_error() == Some(libc::ENOTSUP) => return Ok(()),
        names => names?,
    };
    for name in names.split_inclusive(|byte| *byte == 0) {
        let is_of_system = [&b"security."[..], b"trusted."];
        if is_of_system.iter().any(|space| name.starts_with(space)) {
            continue;
        }
        let name = CStr::from_bytes_with_nul(name).map_err(io::Error::other)?;
        // SAFETY: as above, and the name ends with NUL.
        let value = filled(|buffer| unsafe {
            libc::fgetxattr(from, name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
        })?;
        // SAFETY: the descriptor is open, and name and value live for the call.
        done(unsafe { libc::fsetxattr(to, name.as_ptr(), value.as_ptr().cast(), value.len(), 0) })?;
    }
    Ok(())
}

/// What a call writes into a buffer of the greatest size that the kernel knows.
fn filled(call: impl Fn(&mut [u8]) -> libc::ssize_t) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; limits::ATTRIBUTE_BYTES];
    match usize::try_from(call(&mut buffer)) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(buffer)
        }
        Err(_) => Err(io::Error::last_os_error()),
    }
}

fn rename(folder: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    let folder = folder.as_raw_fd();
    // SAFETY: the descriptor is open, and both names end with NUL for the call.
    done(unsafe { libc::renameat(folder, from.as_ptr(), folder, to.as_ptr()) })
}

fn link(folder: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    let folder = folder.as_raw_fd();
    // SAFETY: the descriptor is open, and both names end with NUL for the call.
    done(unsafe { libc::linkat(folder, from.as_ptr(), folder, to.as_ptr(), 0) })
}

/// Takes a name away; where that fails, a file more is left.
fn remove(folder: BorrowedFd<'_>, name: &CStr) {
    // SAFETY: the descriptor is open, and the name ends with NUL for the call.
    unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), 0) };
}

fn done(answer: libc::c_int) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
