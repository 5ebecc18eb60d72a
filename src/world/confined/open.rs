//! The two ways to open a path below a folder without ever leaving it.
//!
//! `openat2` lets the kernel do it: links are followed as long as they stay
//! beneath. Where the kernel lacks it, or a container's filter forbids it, the
//! path is walked name by name with `O_NOFOLLOW`, and links are refused. No path
//! is checked first and opened by name later: every decision is about a
//! descriptor. `/proc` is not needed. Nothing here reads content.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use super::OpenError;
use super::path::RelativePath;
use crate::limits;

/// How paths below a folder are opened. Both ways confine alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The kernel confines; links that stay inside are followed.
    #[cfg(target_os = "linux")]
    Openat2,
    /// Name by name, without following any link.
    Walk,
}

/// What a descriptor is opened for.
#[derive(Clone, Copy)]
pub(super) enum OpenPurpose {
    /// To see what it is: opens no device, waits for nothing.
    Look,
    /// To read it.
    Read,
}

/// What an opened descriptor turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenedKind {
    File { size: u64 },
    Folder,
    Link,
    Other(&'static str),
}

/// Flags that open a thing only to look at it or to go on from it.
#[cfg(target_os = "linux")]
pub(super) const LOOK: i32 = libc::O_PATH;
/// Without `O_PATH` the nearest is an opening that never waits.
#[cfg(not(target_os = "linux"))]
pub(super) const LOOK: i32 = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;

impl OpenPurpose {
    fn flags(self) -> i32 {
        match self {
            OpenPurpose::Look => LOOK | libc::O_CLOEXEC,
            OpenPurpose::Read => {
                libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC
            }
        }
    }
}

impl Mechanism {
    /// The best one that works here.
    pub fn available() -> Mechanism {
        #[cfg(target_os = "linux")]
        if kernel_has_openat2() {
            return Mechanism::Openat2;
        }
        Mechanism::Walk
    }

    /// Opens `path` below `folder`.
    pub(super) fn open(
        self,
        folder: BorrowedFd<'_>,
        path: &RelativePath,
        purpose: OpenPurpose,
    ) -> Result<OwnedFd, OpenError> {
        match self {
            #[cfg(target_os = "linux")]
            Mechanism::Openat2 => {
                let resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS;
                let flags = purpose.flags();
                Ok(open_beneath(folder, &path.joined(), flags, resolve)?)
            }
            Mechanism::Walk => walk(folder, path, purpose),
        }
    }

    /// Opens what was just seen to be a regular file, with no link anywhere on
    /// the way. `None`: it is not so, or this is not the mechanism to tell.
    pub(super) fn open_plain(self, folder: BorrowedFd<'_>, path: &CStr) -> Option<OwnedFd> {
        match self {
            #[cfg(target_os = "linux")]
            Mechanism::Openat2 => {
                let is_file = status(folder, path)?.st_mode & libc::S_IFMT == libc::S_IFREG;
                let resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
                let flags = OpenPurpose::Read.flags();
                is_file.then(|| open_beneath(folder, path, flags, resolve).ok())?
            }
            Mechanism::Walk => None,
        }
    }
}

/// What `descriptor` is, whatever its name leads to by now.
pub(super) fn look(descriptor: OwnedFd) -> Result<(OwnedFd, OpenedKind), OpenError> {
    // `File` only lends its `metadata`; a descriptor made by `O_PATH` will do.
    let file = File::from(descriptor);
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    let found = if kind.is_file() {
        OpenedKind::File { size: metadata.len() }
    } else if kind.is_dir() {
        OpenedKind::Folder
    } else if kind.is_symlink() {
        OpenedKind::Link
    } else if kind.is_fifo() {
        OpenedKind::Other("a FIFO")
    } else if kind.is_socket() {
        OpenedKind::Other("a socket")
    } else {
        OpenedKind::Other("a device")
    };
    Ok((file.into(), found))
}

/// Opens a folder by a path that the user chose, links and all. Not by std: with
/// musl it takes `O_PATH` for a part of the access mode and drops it, and then the
/// folder has to be readable, not only passable. Also whether its last name is a link.
pub(super) fn open_folder(path: &CStr) -> io::Result<(OwnedFd, bool)> {
    link_told(LOOK | libc::O_DIRECTORY | libc::O_CLOEXEC, |flags| {
        // SAFETY: `path` ends with NUL for the whole call; without O_CREAT no mode is read.
        patiently(|| unsafe { owned(libc::c_long::from(libc::open(path.as_ptr(), flags))) })
    })
}

/// Opens a folder without following a link, and only then following it. So what was
/// opened as no link is none, whatever stands at its place later.
pub(super) fn link_told(
    flags: i32,
    open: impl Fn(i32) -> io::Result<OwnedFd>,
) -> io::Result<(OwnedFd, bool)> {
    match open(flags | libc::O_NOFOLLOW) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
            Ok((open(flags)?, true))
        }
        opened => Ok((opened?, false)),
    }
}

/// The user by whose rights files are opened.
pub(super) fn user() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// `openat(2)` of one name: the caller says in `flags` whether it may be a link.
pub(super) fn open_name(folder: BorrowedFd<'_>, name: &CStr, flags: i32) -> io::Result<OwnedFd> {
    patiently(|| {
        // SAFETY: the descriptor is open and `name` ends with NUL for the whole
        // call; without O_CREAT no mode is read.
        unsafe { owned(libc::c_long::from(libc::openat(folder.as_raw_fd(), name.as_ptr(), flags))) }
    })
}

/// The status of the entry itself, not of what a link at its end leads to.
pub(super) fn status(folder: BorrowedFd<'_>, path: &CStr) -> Option<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path ends with NUL, `status` has room for the answer, and it
    // is taken as written only where the call says so.
    unsafe {
        let answer = libc::fstatat(
            folder.as_raw_fd(),
            path.as_ptr(),
            status.as_mut_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
        );
        (answer == 0).then(|| status.assume_init())
    }
}

#[cfg(target_os = "linux")]
fn open_beneath(
    folder: BorrowedFd<'_>,
    path: &CStr,
    flags: i32,
    resolve: u64,
) -> io::Result<OwnedFd> {
    // SAFETY: `open_how` is three integers, for which zero is a valid value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    // No flag is the sign bit.
    how.flags = u64::from(flags.unsigned_abs());
    how.resolve = resolve;
    patiently(|| {
        // SAFETY: the descriptor is open, `path` ends with NUL and `how` has the
        // size that is passed; all outlive the call, which writes to none.
        unsafe {
            owned(libc::syscall(
                libc::SYS_openat2,
                folder.as_raw_fd(),
                path.as_ptr(),
                &raw const how,
                size_of::<libc::open_how>(),
            ))
        }
    })
}

/// Asked once. A kernel that has the call finds fault with a size of 0 before it
/// looks at anything else; any other answer (ENOSYS, a filter's EPERM) means no.
#[cfg(target_os = "linux")]
fn kernel_has_openat2() -> bool {
    const UNKNOWN: u8 = 0;
    const PRESENT: u8 = 1;
    const MISSING: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    if KNOWN.load(Ordering::Relaxed) == UNKNOWN {
        // SAFETY: with a size of 0 nothing is read from the null pointers.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                -1,
                std::ptr::null::<libc::c_char>(),
                std::ptr::null::<libc::open_how>(),
                0_usize,
            )
        };
        let error = io::Error::last_os_error().raw_os_error();
        let present = answer == -1 && error == Some(libc::EINVAL);
        KNOWN.store(if present { PRESENT } else { MISSING }, Ordering::Relaxed);
    }
    KNOWN.load(Ordering::Relaxed) == PRESENT
}

fn walk(
    folder: BorrowedFd<'_>,
    path: &RelativePath,
    purpose: OpenPurpose,
) -> Result<OwnedFd, OpenError> {
    let Some((last, before)) = path.names.split_last() else {
        return Ok(open_name(folder, c".", purpose.flags() | libc::O_NOFOLLOW)?);
    };
    let mut reached: Option<OwnedFd> = None;
    for name in before {
        let here = reached.as_ref().map_or(folder, AsFd::as_fd);
        reached = Some(step(here, name, OpenPurpose::Look.flags() | libc::O_DIRECTORY)?);
    }
    let here = reached.as_ref().map_or(folder, AsFd::as_fd);
    let folder_only = if path.folder_due { libc::O_DIRECTORY } else { 0 };
    step(here, last, purpose.flags() | folder_only)
}

/// Opens one name, and tells a link from what is merely no folder.
fn step(folder: BorrowedFd<'_>, name: &CStr, flags: i32) -> Result<OwnedFd, OpenError> {
    match open_name(folder, name, flags | libc::O_NOFOLLOW) {
        Ok(descriptor) => Ok(descriptor),
        Err(error) => match error.raw_os_error() {
            Some(libc::ELOOP) => Err(OpenError::Link),
            Some(libc::ENOTDIR) if is_link(folder, name) => Err(OpenError::Link),
            _ => Err(error.into()),
        },
    }
}

/// Only for the wording of a refusal that is certain already.
fn is_link(folder: BorrowedFd<'_>, name: &CStr) -> bool {
    open_name(folder, name, OpenPurpose::Look.flags() | libc::O_NOFOLLOW)
        .is_ok_and(|descriptor| matches!(look(descriptor), Ok((_, OpenedKind::Link))))
}

/// Tries again, a bounded number of times, what a signal or somebody's rename
/// has interrupted.
fn patiently(mut open: impl FnMut() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let mut tries = 1;
    loop {
        let error = match open() {
            Ok(descriptor) => return Ok(descriptor),
            Err(error) => error,
        };
        let passing = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR));
        if !passing || tries == limits::OPEN_TRIES {
            return Err(error);
        }
        if tries >= limits::OPEN_TRIES_AT_ONCE {
            thread::sleep(Duration::from_millis(limits::OPEN_WAIT_MILLISECONDS));
        }
        tries += 1;
    }
}

/// The descriptor a call has made, or why it made none.
///
/// # Safety
/// `answer` is what the system call has just returned; nobody else owns it.
unsafe fn owned(answer: libc::c_long) -> io::Result<OwnedFd> {
    match libc::c_int::try_from(answer) {
        // SAFETY: a new descriptor, which the caller vouches for.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}
