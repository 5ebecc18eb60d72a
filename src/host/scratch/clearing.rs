//! Empties and removes a scratch folder, whatever a script has created in it.
//!
//! It works on descriptors that were opened before the script ran, so the script cannot
//! redirect it by swapping names: no link is followed and no mount is entered. At most two
//! subfolders are open at a time, however deep they are nested: a folder below the second
//! level is first moved up to the first. The guardian and a forked runner call this, so it
//! must not allocate, lock or panic: only system calls and the stack.
//!
//! Files that this user may not remove stay: immutable files, files of other users, mounts.

use std::ffi::CStr;
use std::io::{self, Write as _};
use std::time::Duration;

use libc::c_int;

use super::NAME_BYTES;
use crate::after_fork::now;
use crate::listing::visit_names;

/// Mode with all rights for the owner; a script may have removed them.
const OWNER_MODE: libc::mode_t = 0o700;

/// Handle of a scratch folder: plain numbers that a fork copies.
#[derive(Clone, Copy)]
pub(crate) struct ScratchFolder {
    /// Descriptor of the parent folder.
    pub(super) parent: c_int,
    /// Descriptor of the folder itself, open for reading.
    pub(super) own: c_int,
    /// Name in `parent`, terminated by NUL.
    pub(super) name: [u8; NAME_BYTES + 1],
}

/// Result of removing a name.
#[derive(PartialEq, Eq)]
enum Removal {
    /// The name no longer exists.
    Removed,
    /// A folder that is not empty.
    NotEmpty,
    /// The system refused.
    Refused,
}

impl ScratchFolder {
    /// Moves the descriptors to these numbers, replacing what was open there.
    pub(crate) fn move_descriptors(self, parent: c_int, own: c_int) -> ScratchFolder {
        // SAFETY: plain numbers.
        unsafe {
            libc::dup2(self.parent, parent);
            libc::dup2(self.own, own);
        }
        ScratchFolder { parent, own, ..self }
    }

    /// Removes as much as possible within the limit. Returns whether nothing is left.
    pub(crate) fn clear(&self, limit: Duration) -> bool {
        let since = now();
        let is_over_limit = || now().saturating_sub(since) >= limit;
        // Number for new names.
        let mut next_number = since.subsec_nanos();
        loop {
            let (mut is_empty, mut has_changed) = (true, false);
            // SAFETY: plain numbers.
            unsafe { libc::fchmod(self.own, OWNER_MODE) };
            visit_folder(self.own, c".", &mut |own, name| {
                is_empty = false;
                if !is_over_limit() {
                    has_changed |= self.clear_entry(own, name, &mut next_number, &is_over_limit);
                }
            });
            if is_empty {
                return CStr::from_bytes_until_nul(&self.name)
                    .is_ok_and(|name| remove(self.parent, name) == Removal::Removed);
            }
            if !has_changed || is_over_limit() {
                return false;
            }
        }
    }

    /// Removes an entry of this folder. If it is a folder, its files are removed and its
    /// subfolders are moved up to this one. Returns whether anything changed.
    fn clear_entry(
        &self,
        own: c_int,
        name: &CStr,
        next_number: &mut u32,
        is_over_limit: &dyn Fn() -> bool,
    ) -> bool {
        match remove(own, name) {
            Removal::Removed => return true,
            Removal::Refused => return false,
            Removal::NotEmpty => {}
        }
        // A mount cannot be moved and is not entered: its files are not the script's.
        let Some(new_name) = self.move_up(own, name, next_number) else {
            return false;
        };
        let mut has_changed = false;
        visit_folder(own, as_c_str(&new_name), &mut |folder, name| {
            has_changed |= !is_over_limit()
                && match remove(folder, name) {
                    Removal::Removed => true,
                    Removal::Refused => false,
                    Removal::NotEmpty => self.move_up(folder, name, next_number).is_some(),
                };
        });
        has_changed | (remove(own, as_c_str(&new_name)) == Removal::Removed)
    }

    /// Moves a folder into this one, under a new name.
    fn move_up(&self, from: c_int, name: &CStr, next_number: &mut u32) -> Option<FreshName> {
        for _ in 0..3 {
            *next_number = next_number.wrapping_add(1);
            let new_name = hexadecimal_name(*next_number);
            // SAFETY: both names end with NUL and outlive the calls.
            unsafe {
                if libc::renameat(from, name.as_ptr(), self.own, new_name.as_ptr().cast()) == 0 {
                    return Some(new_name);
                }
                // A folder that its owner may not write cannot change its parent.
                allow_owner(from, name);
            }
        }
        None
    }
}

/// Name of eight hexadecimal digits, terminated by NUL.
type FreshName = [u8; 9];

fn hexadecimal_name(number: u32) -> FreshName {
    let mut name = [0; 9];
    // Eight digits always fit.
    let _ = write!(&mut name[..], "{number:08x}");
    name
}

fn as_c_str(name: &FreshName) -> &CStr {
    CStr::from_bytes_until_nul(name).unwrap_or_default()
}

/// Gives the owner access; follows no link.
fn allow_owner(parent: c_int, name: &CStr) {
    // SAFETY: the name ends with NUL and outlives the call.
    unsafe { libc::fchmodat(parent, name.as_ptr(), OWNER_MODE, libc::AT_SYMLINK_NOFOLLOW) };
}

/// Calls `visit` with the folder's descriptor and the name of each entry.
fn visit_folder(parent: c_int, name: &CStr, visit: &mut dyn FnMut(c_int, &CStr)) {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name outlives the calls; the descriptor is closed here.
    unsafe {
        let mut folder = libc::openat(parent, name.as_ptr(), flags);
        if folder < 0 {
            allow_owner(parent, name);
            folder = libc::openat(parent, name.as_ptr(), flags);
        }
        if folder >= 0 {
            libc::fchmod(folder, OWNER_MODE);
            visit_names(folder, &mut |name| visit(folder, name));
            libc::close(folder);
        }
    }
}

fn remove(parent: c_int, name: &CStr) -> Removal {
    for flags in [0, libc::AT_REMOVEDIR] {
        // SAFETY: the name outlives the call.
        if unsafe { libc::unlinkat(parent, name.as_ptr(), flags) } == 0 {
            return Removal::Removed;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOENT) => return Removal::Removed,
            Some(libc::ENOTEMPTY | libc::EEXIST) => return Removal::NotEmpty,
            _ => {}
        }
    }
    Removal::Refused
}
