//! Landlock: which files a process may use, as rules that nobody can take back.
//!
//! The kernel's interface is `linux/landlock.h`; libc names the system calls
//! only. Each version of it governs more; what an older one lets through and a
//! filter can stop is stopped there.

use std::ffi::CString;
use std::fs;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use libc::{c_int, c_long};

use super::check;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: c_int = 1;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_FOLDER: u64 = 1 << 3;
const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
const TRUNCATE: u64 = 1 << 14;
/// What a rule for a file may hold; the rest is about folders.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | 1 << 15;
const READING: u64 = EXECUTE | READ_FILE | READ_FOLDER;

/// Connecting and binding by TCP.
const ALL_OF_NETWORK: u64 = 0b11;
/// Abstract local sockets, and signals, of processes outside.
const ALL_SCOPES: u64 = 0b11;

/// How many rights on files each version knows, from version 1.
const RIGHTS: [u32; 5] = [13, 14, 15, 15, 16];
/// The first version that governs the network, and scopes.
const NETWORK_SINCE: u32 = 4;
const SCOPES_SINCE: u32 = 6;
/// The first version in which opening a file cannot truncate it unseen.
pub(super) const TRUNCATE_SINCE: u32 = 3;

/// Devices that do no harm and that every program expects.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// `struct landlock_ruleset_attr`; a kernel that knows less of it takes zeros.
#[repr(C)]
struct Governed {
    files: u64,
    network: u64,
    scopes: u64,
}

/// `struct landlock_path_beneath_attr`, which is packed.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: c_int,
}

/// The version of the interface, or why there is none.
pub(super) fn version() -> Result<u32, String> {
    // SAFETY: with this flag the kernel reads no structure.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<Governed>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    match u32::try_from(answer) {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(absence(&io::Error::last_os_error())),
    }
}

fn absence(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => {
            "the kernel has no Landlock (it takes Linux 5.13 or newer, built with it)".into()
        }
        Some(libc::EOPNOTSUPP) => {
            "Landlock is switched off (the kernel's `lsm=` option does not name it)".into()
        }
        _ => format!("Landlock is refused, as by a container's filter: {error}"),
    }
}

/// Rules in the making. What is governed and has no rule is forbidden.
#[derive(Debug)]
pub(super) struct Ruleset {
    descriptor: OwnedFd,
    /// All rights on files that this kernel governs.
    governed: u64,
}

impl Ruleset {
    /// Forbids everything that this version governs.
    pub(super) fn new(version: u32) -> Result<Ruleset, String> {
        let index = (version as usize).clamp(1, RIGHTS.len()) - 1;
        let governed = (1 << RIGHTS[index]) - 1;
        let since = |first: u32, rights: u64| if version < first { 0 } else { rights };
        let attributes = Governed {
            files: governed,
            network: since(NETWORK_SINCE, ALL_OF_NETWORK),
            scopes: since(SCOPES_SINCE, ALL_SCOPES),
        };
        // SAFETY: the structure has the size that is passed and outlives the call;
        // the descriptor that the call makes (closed on exec) is owned here.
        unsafe {
            let answer = libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const attributes,
                size_of::<Governed>(),
                0,
            );
            match c_int::try_from(answer) {
                Ok(number) if number >= 0 => Ok(Ruleset {
                    descriptor: OwnedFd::from_raw_fd(number),
                    governed,
                }),
                _ => Err(absence(&io::Error::last_os_error())),
            }
        }
    }

    /// Lets this be read and executed; passes over what is missing. Paths have no
    /// links in them.
    pub(super) fn allow_reading(&mut self, path: &Path) {
        let _ = self.allow(path, READING);
    }

    /// Lets everything be done in this folder but making devices.
    pub(super) fn allow_writing(&mut self, path: &Path) -> io::Result<()> {
        self.allow(path, !(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE))
    }

    /// Lets the harmless devices be used.
    pub(super) fn allow_devices(&mut self) {
        for device in DEVICES {
            let _ = self.allow(Path::new(device), READ_FILE | WRITE_FILE | TRUNCATE);
        }
    }

    fn allow(&mut self, path: &Path, rights: u64) -> io::Result<()> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the name ends with NUL; the descriptor is owned from here on; the
        // structures live on this stack until the calls return.
        unsafe {
            let flags = libc::O_PATH | libc::O_CLOEXEC;
            let opened = libc::open(name.as_ptr(), flags);
            if opened < 0 {
                return Err(io::Error::last_os_error());
            }
            let opened = OwnedFd::from_raw_fd(opened);
            // Whoever writes beside it may have put a link in its place since it was
            // looked at: what counts is what was opened.
            let number = opened.as_raw_fd();
            if fs::read_link(format!("/proc/self/fd/{number}"))? != path {
                return Err(io::Error::other("it leads elsewhere"));
            }
            let mut status: libc::stat = mem::zeroed();
            check(c_long::from(libc::fstat(
                opened.as_raw_fd(),
                &raw mut status,
            )))?;
            let is_folder = status.st_mode & libc::S_IFMT == libc::S_IFDIR;
            let possible = if is_folder { u64::MAX } else { OF_FILES };
            let rule = Beneath {
                allowed: rights & possible & self.governed,
                parent: opened.as_raw_fd(),
            };
            check(libc::syscall(
                libc::SYS_landlock_add_rule,
                self.descriptor.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const rule,
                0,
            ))
        }
    }

    /// Puts the rules on this process and all that it will start, for good.
    pub(super) fn enforce(&self) -> io::Result<()> {
        // SAFETY: plain numbers.
        check(unsafe {
            libc::syscall(
                libc::SYS_landlock_restrict_self,
                self.descriptor.as_raw_fd(),
                0,
            )
        })
    }
}
