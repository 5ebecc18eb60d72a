//! Landlock: irrevocable rules about the files that a process may use.
//!
//! The kernel's interface is `linux/landlock.h`; libc defines only the system calls. Each
//! version covers more. What an older version allows and a filter of system calls can deny
//! is denied by the filter.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

use libc::c_int;

use super::check;
use crate::confined::{OpenedKind, inspect_without_links};

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
    let files = MOVE_BETWEEN_FOLDERS;
    let ruleset =
        create_ruleset(&RulesetAttributes { files, network: 0, scopes: SCOPE_OF_SIGNALS })?;
    // SAFETY: the path ends with NUL; the new descriptor gets its owner here.
    let root = unsafe {
        let root = libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        check(root.into())?;
        OwnedFd::from_raw_fd(root)
    };
    allow(&ruleset, &root, MOVE_BETWEEN_FOLDERS)?;
    enforce(&ruleset)
}

fn create_ruleset(attributes: &RulesetAttributes) -> io::Result<OwnedFd> {
    // SAFETY: the structure has the size that is passed and outlives the call. The
    // descriptor that the call creates (close-on-exec) gets its owner here.
    unsafe {
        let answer = libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::from_ref(attributes),
            size_of::<RulesetAttributes>(),
            0,
        );
        match c_int::try_from(answer) {
            Ok(number @ 0..) => Ok(OwnedFd::from_raw_fd(number)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Adds a rule for a file, or a folder with all below it.
fn allow(ruleset: &OwnedFd, place: &OwnedFd, rights: u64) -> io::Result<()> {
    let rule = PathBeneathAttributes { allowed: rights, parent: place.as_raw_fd() };
    // SAFETY: both descriptors are open, and the structure outlives the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const rule,
            0,
        )
    })
}

/// Applies the rules permanently to this process and all its future children.
fn enforce(ruleset: &OwnedFd) -> io::Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })
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
        let descriptor = create_ruleset(&attributes).map_err(|error| unavailable_reason(&error))?;
        Ok(Ruleset { descriptor, handled: governed })
    }

    /// Allows reading and executing; ignores a missing path. The path must not contain
    /// links.
    pub(super) fn allow_reading(&mut self, path: &Path) {
        let _ = self.allow(path, READ_RIGHTS);
    }

    /// Allows everything in this folder except creating devices.
    pub(super) fn allow_writing(&mut self, path: &Path) -> Result<(), String> {
        self.allow(path, !(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE))
    }

    /// Allows the use of the harmless devices.
    pub(super) fn allow_devices(&mut self) {
        for device in DEVICES {
            let _ = self.allow(Path::new(device), READ_FILE | WRITE_FILE | TRUNCATE);
        }
    }

    fn allow(&mut self, path: &Path, rights: u64) -> Result<(), String> {
        let (opened, kind) = inspect_without_links(path).map_err(|error| error.user_message())?;
        let applicable = match kind {
            OpenedKind::Folder => u64::MAX,
            OpenedKind::Link => return Err("it is a link".into()),
            OpenedKind::File { .. } | OpenedKind::Other(_) => FILE_RIGHTS,
        };
        allow(&self.descriptor, &opened, rights & applicable & self.handled)
            .map_err(|error| error.to_string())
    }

    /// Applies the rules permanently to this process and all its future children.
    pub(super) fn enforce(&self) -> io::Result<()> {
        enforce(&self.descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
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
            let (opened, _) = inspect_without_links(&folder.join(path)).ok()?;
            fs::File::from(opened).metadata().ok()
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
                assert_eq!(error, "it is a link");
            }
        }
        assert!(inspect_without_links(Path::new("tmp")).is_err());
        assert!(inspect_without_links(Path::new("/")).is_ok());
    }
}
