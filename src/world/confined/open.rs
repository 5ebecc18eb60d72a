//! Two mechanisms that open a path below a folder and never leave it.
//!
//! With `openat2` the kernel confines the path: links are followed as long as they stay
//! inside. Where the kernel lacks it, or a container's filter forbids it, the path is walked
//! name by name with `O_NOFOLLOW`, and links are refused. No path is checked first and opened
//! by name later: every decision is based on a descriptor. Needs no `/proc`. Reads no content.

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

/// Mechanism that opens paths below a folder. Both confine equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The kernel confines the path; links that stay inside are followed.
    #[cfg(target_os = "linux")]
    Openat2,
    /// The path is opened name by name, without following any link.
    Walk,
}

/// Purpose of a descriptor.
#[derive(Clone, Copy)]
pub(super) enum OpenPurpose {
    /// To determine the kind: opens no device, never waits.
    Inspect,
    /// To read content.
    Read,
}

/// Kind of an opened descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenedKind {
    File { size: u64 },
    Folder,
    Link,
    Other(&'static str),
}

/// Flags that open an entry only to inspect it, or as the start of a further `openat`.
#[cfg(target_os = "linux")]
pub(super) const INSPECT_FLAGS: i32 = libc::O_PATH;
/// Without `O_PATH` the closest equivalent is to open without ever waiting.
#[cfg(not(target_os = "linux"))]
pub(super) const LOOK: i32 = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;

impl OpenPurpose {
    fn flags(self) -> i32 {
        match self {
            OpenPurpose::Inspect => INSPECT_FLAGS | libc::O_CLOEXEC,
            OpenPurpose::Read => {
                libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC
            }
        }
    }
}

impl Mechanism {
    /// The best mechanism that this system supports.
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
            Mechanism::Walk => open_by_walking(folder, path, purpose),
        }
    }

    /// Opens a regular file whose path contains no link. `None` if that is not the case, or
    /// if this mechanism does not support it.
    pub(super) fn open_plain(self, folder: BorrowedFd<'_>, path: &CStr) -> Option<OwnedFd> {
        match self {
            #[cfg(target_os = "linux")]
            Mechanism::Openat2 => {
                let is_file = entry_status(folder, path)?.st_mode & libc::S_IFMT == libc::S_IFREG;
                let resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
                let flags = OpenPurpose::Read.flags();
                is_file.then(|| open_beneath(folder, path, flags, resolve).ok())?
            }
            Mechanism::Walk => None,
        }
    }
}

/// Determines the kind of `descriptor`, independently of what its name leads to by now.
pub(super) fn inspect(descriptor: OwnedFd) -> Result<(OwnedFd, OpenedKind), OpenError> {
    // `File` is used only for `metadata`, which works with `O_PATH` as well.
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

/// Opens a folder by a path that the user chose, following links. Also returns whether its
/// last name is a link. Does not use std: with musl, std treats `O_PATH` as a part of the
/// access mode and drops it, and then the folder must be readable, not only searchable.
pub(super) fn open_folder(path: &CStr) -> io::Result<(OwnedFd, bool)> {
    open_noting_link(INSPECT_FLAGS | libc::O_DIRECTORY | libc::O_CLOEXEC, |flags| {
        // SAFETY: `path` ends with NUL for the whole call; without O_CREAT no mode is read.
        retry_open(|| unsafe {
            own_descriptor(libc::c_long::from(libc::open(path.as_ptr(), flags)))
        })
    })
}

/// Opens a folder, first without following a link, and if that fails, following it. Returns
/// whether it was a link: a folder opened by the first call certainly was not, whatever
/// replaces it later.
pub(super) fn open_noting_link(
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

/// The user ID with whose rights files are opened.
pub(super) fn user() -> u32 {
    // SAFETY: no arguments, and it always succeeds.
    unsafe { libc::geteuid() }
}

/// Calls `openat(2)` with one name. `flags` decide whether a link is followed.
pub(super) fn open_name(folder: BorrowedFd<'_>, name: &CStr, flags: i32) -> io::Result<OwnedFd> {
    retry_open(|| {
        // SAFETY: the descriptor is open and `name` ends with NUL for the whole
        // call; without O_CREAT no mode is read.
        unsafe {
            own_descriptor(libc::c_long::from(libc::openat(
                folder.as_raw_fd(),
                name.as_ptr(),
                flags,
            )))
        }
    })
}

/// The status of the entry itself: a link at the end of the path is not followed.
pub(super) fn entry_status(folder: BorrowedFd<'_>, path: &CStr) -> Option<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path ends with NUL, `status` has room for the result, and it is
    // assumed to be initialized only if the call succeeded.
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
    // No flag uses the sign bit.
    how.flags = u64::from(flags.unsigned_abs());
    how.resolve = resolve;
    retry_open(|| {
        // SAFETY: the descriptor is open, `path` ends with NUL, and `how` has the size
        // that is passed. All outlive the call, which writes to none of them.
        unsafe {
            own_descriptor(libc::syscall(
                libc::SYS_openat2,
                folder.as_raw_fd(),
                path.as_ptr(),
                &raw const how,
                size_of::<libc::open_how>(),
            ))
        }
    })
}

/// Whether the kernel supports `openat2`; determined once. A kernel with the call rejects a
/// size of 0 (EINVAL) before it checks anything else; any other result (ENOSYS, a filter's
/// EPERM) means that it is not available.
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

fn open_by_walking(
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
        reached =
            Some(open_component(here, name, OpenPurpose::Inspect.flags() | libc::O_DIRECTORY)?);
    }
    let here = reached.as_ref().map_or(folder, AsFd::as_fd);
    let folder_only = if path.requires_folder { libc::O_DIRECTORY } else { 0 };
    open_component(here, last, purpose.flags() | folder_only)
}

/// Opens one component of a path. The error distinguishes a link from a file that is not a
/// folder.
fn open_component(folder: BorrowedFd<'_>, name: &CStr, flags: i32) -> Result<OwnedFd, OpenError> {
    match open_name(folder, name, flags | libc::O_NOFOLLOW) {
        Ok(descriptor) => Ok(descriptor),
        Err(error) => match error.raw_os_error() {
            Some(libc::ELOOP) => Err(OpenError::Link),
            Some(libc::ENOTDIR) if is_link(folder, name) => Err(OpenError::Link),
            _ => Err(error.into()),
        },
    }
}

/// Whether the entry is a link. Used only to choose the error after a refusal.
fn is_link(folder: BorrowedFd<'_>, name: &CStr) -> bool {
    open_name(folder, name, OpenPurpose::Inspect.flags() | libc::O_NOFOLLOW)
        .is_ok_and(|descriptor| matches!(inspect(descriptor), Ok((_, OpenedKind::Link))))
}

/// Calls `open` again, a limited number of times, if a signal or a concurrent rename
/// interrupted it.
fn retry_open(mut open: impl FnMut() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let mut tries = 1;
    loop {
        let error = match open() {
            Ok(descriptor) => return Ok(descriptor),
            Err(error) => error,
        };
        let is_transient = matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR));
        if !is_transient || tries == limits::OPEN_TRIES {
            return Err(error);
        }
        if tries >= limits::OPEN_TRIES_WITHOUT_WAIT {
            thread::sleep(Duration::from_millis(limits::OPEN_WAIT_MILLISECONDS));
        }
        tries += 1;
    }
}

/// Converts the result of a system call to the new descriptor, or to the error.
///
/// # Safety
/// `answer` must be what the system call has just returned, and have no other owner.
unsafe fn own_descriptor(answer: libc::c_long) -> io::Result<OwnedFd> {
    match libc::c_int::try_from(answer) {
        // SAFETY: a new descriptor without an owner, as the caller guarantees.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}
