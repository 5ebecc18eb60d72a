//! Landlock: irrevocable rules about the files that a process may use.
//!
//! The kernel's interface is `linux/landlock.h`; libc defines only the system calls. Each
//! version covers more. What an older version allows and a filter of system calls can deny
//! is denied by the filter.

use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
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
const MOVE_BETWEEN_FOLDERS: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
/// Rights that a rule for a file may contain; all others apply to folders.
const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | 1 << 15;
const READ_RIGHTS: u64 = EXECUTE | READ_FILE | READ_FOLDER;

/// Connecting and binding by TCP.
const ALL_OF_NETWORK: u64 = 0b11;
/// Abstract local sockets and signals of processes outside.
const ALL_SCOPES: u64 = 0b11;
const SCOPE_OF_SIGNALS: u64 = 0b10;

/// Number of file rights in each version, from version 1.
const RIGHTS_COUNT: [u32; 5] = [13, 14, 15, 15, 16];
/// First versions that cover the network, and scopes.
const NETWORK_SINCE: u32 = 4;
const SCOPES_SINCE: u32 = 6;
/// First version that covers truncation.
pub(super) const TRUNCATE_SINCE: u32 = 3;

/// Harmless devices that every program expects.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// `struct landlock_ruleset_attr`. A kernel with a shorter structure accepts it if the rest is
/// zero.
#[repr(C)]
struct RulesetAttributes {
    files: u64,
    network: u64,
    scopes: u64,
}

/// `struct landlock_path_beneath_attr`, which is packed.
#[repr(C, packed)]
struct PathBeneathAttributes {
    allowed: u64,
    parent: c_int,
}

/// Puts this process into its own signal scope: it and its children can no longer signal
/// processes outside. Access to files does not change. Called after a fork: system calls
/// only.
pub(super) fn scope_signals() -> io::Result<()> {
    // On some kernels a ruleset without file rights still forbids moving files between
    // folders, so this one allows that everywhere.
    let attributes =
        RulesetAttributes { files: MOVE_BETWEEN_FOLDERS, network: 0, scopes: SCOPE_OF_SIGNALS };
    // SAFETY: structures of this stack that outlive the calls. Both descriptors are closed
    // here, or when the process ends.
    unsafe {
        let ruleset = libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            size_of::<RulesetAttributes>(),
            0,
        );
        check(ruleset)?;
        let root = libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        let rule = PathBeneathAttributes { allowed: MOVE_BETWEEN_FOLDERS, parent: root };
        let added = libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset,
            RULE_PATH_BENEATH,
            &raw const rule,
            0,
        );
        let done = check(added)
            .and_then(|()| check(libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0)));
        libc::close(root);
        libc::syscall(libc::SYS_close, ruleset);
        done
    }
}

/// The version of the interface, or the reason why Landlock is unavailable.
pub(super) fn version() -> Result<u32, String> {
    // SAFETY: with this flag the kernel reads no structure.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<RulesetAttributes>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    match u32::try_from(answer) {
        Ok(version) if version > 0 => Ok(version),
        _ => Err(unavailable_reason(&io::Error::last_os_error())),
    }
}

fn unavailable_reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => {
            "the kernel has no Landlock (it needs Linux 5.13 or newer, built with it)".into()
        }
        Some(libc::EOPNOTSUPP) => {
            "Landlock is switched off (the kernel's `lsm=` option does not name it)".into()
        }
        _ => format!("Landlock is refused, probably by a container's filter: {error}"),
    }
}

/// Ruleset under construction. Handled rights without a rule are denied.
#[derive(Debug)]
pub(super) struct Ruleset {
    descriptor: OwnedFd,
    /// All file rights that this ruleset handles.
    handled: u64,
}

impl Ruleset {
    /// Creates a ruleset that denies everything this version covers.
    pub(super) fn new(version: u32) -> Result<Ruleset, String> {
        let index = (version as usize).clamp(1, RIGHTS_COUNT.len()) - 1;
        let governed = (1 << RIGHTS_COUNT[index]) - 1;
        let since = |first: u32, rights: u64| if version < first { 0 } else { rights };
        let attributes = RulesetAttributes {
            files: governed,
            network: since(NETWORK_SINCE, ALL_OF_NETWORK),
            scopes: since(SCOPES_SINCE, ALL_SCOPES),
        };
        // SAFETY: the structure has the size that is passed and outlives the call. The
        // descriptor that the call creates (close-on-exec) gets its owner here.
        unsafe {
            let answer = libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const attributes,
                size_of::<RulesetAttributes>(),
                0,
            );
            match c_int::try_from(answer) {
                Ok(number) if number >= 0 => {
                    Ok(Ruleset { descriptor: OwnedFd::from_raw_fd(number), handled: governed })
                }
                _ => Err(unavailable_reason(&io::Error::last_os_error())),
            }
        }
    }

    /// Allows reading and executing; ignores a missing path. The path must not contain
    /// links.
    pub(super) fn allow_reading(&mut self, path: &Path) {
        let _ = self.allow(path, READ_RIGHTS);
    }

    /// Allows everything in this folder except creating devices.
    pub(super) fn allow_writing(&mut self, path: &Path) -> io::Result<()> {
        self.allow(path, !(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE))
    }

    /// Allows the use of the harmless devices.
    pub(super) fn allow_devices(&mut self) {
        for device in DEVICES {
            let _ = self.allow(Path::new(device), READ_FILE | WRITE_FILE | TRUNCATE);
        }
    }

    fn allow(&mut self, path: &Path, rights: u64) -> io::Result<()> {
        let opened = open_without_links(path)?;
        // SAFETY: the descriptor is open, and the structures on this stack outlive the
        // calls.
        unsafe {
            let mut status: libc::stat = mem::zeroed();
            check(c_long::from(libc::fstat(opened.as_raw_fd(), &raw mut status)))?;
            let applicable = match status.st_mode & libc::S_IFMT {
                libc::S_IFDIR => u64::MAX,
                libc::S_IFLNK => return Err(io::Error::other("it is a link")),
                _ => FILE_RIGHTS,
            };
            let rule = PathBeneathAttributes {
                allowed: rights & applicable & self.handled,
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

    /// Applies the rules permanently to this process and all its future children.
    pub(super) fn enforce(&self) -> io::Result<()> {
        // SAFETY: plain numbers.
        check(unsafe {
            libc::syscall(libc::SYS_landlock_restrict_self, self.descriptor.as_raw_fd(), 0)
        })
    }
}

/// Opens an absolute path without following links: a program that may write in one of its
/// folders could create a link there at any time. Opens name by name, so it needs neither
/// `/proc` nor `openat2`. If the last name is a link, the link itself is opened.
fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let mut opened: Option<OwnedFd> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        if opened.is_none() != (part == Component::RootDir) || part == Component::ParentDir {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let name = CString::new(part.as_os_str().as_bytes())?;
        let folder = opened.as_ref().map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
        let flags = libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let has_more = if parts.peek().is_some() { libc::O_DIRECTORY } else { 0 };
        // SAFETY: the name ends with NUL and outlives the call; the new descriptor gets its
        // owner in the same expression.
        opened = unsafe {
            match libc::openat(folder, name.as_ptr(), flags | has_more) {
                -1 => return Err(io::Error::last_os_error()),
                number => Some(OwnedFd::from_raw_fd(number)),
            }
        };
    }
    opened.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn granting_a_path_follows_no_link() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let folder = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(folder.join("real/inner")).unwrap();
        fs::write(folder.join("real/file"), "").unwrap();
        symlink("real", folder.join("link")).unwrap();
        symlink("file", folder.join("real/link")).unwrap();
        let opened = |path: &str| {
            let file = fs::File::from(open_without_links(&folder.join(path)).ok()?);
            file.metadata().ok()
        };
        for path in ["", "real", "real/inner", "real/file"] {
            let there = fs::metadata(folder.join(path)).unwrap();
            assert_eq!(opened(path).unwrap().ino(), there.ino(), "{path}");
        }
        for path in ["link/inner", "link/file", "real/file/x", "real/../real", "missing"] {
            assert!(opened(path).is_none(), "{path}");
        }
        for path in ["link", "real/link"] {
            assert!(opened(path).unwrap().is_symlink(), "{path}");
            if let Ok(version) = version() {
                let mut ruleset = Ruleset::new(version).unwrap();
                let error = ruleset.allow_writing(&folder.join(path)).unwrap_err();
                assert_eq!(error.to_string(), "it is a link");
            }
        }
        assert!(open_without_links(Path::new("tmp")).is_err());
        assert!(open_without_links(Path::new("/")).is_ok());
    }
}
