//! Emptying a folder, whatever a script has put there, and removing it.
//!
//! It goes by descriptors that were opened before the script ran, so no name can
//! be swapped under it: no link is followed, and no mount is entered. However
//! deep the folders lie, two are open at a time: a folder below the second level
//! is first moved up to the first. The guardian and a forked runner call this:
//! no allocation, no locks, no panic; system calls and the stack only.
//!
//! What stays is what this user may not remove: files that are immutable, or
//! another user's, and mounts.

use std::ffi::CStr;
use std::io;
use std::time::Duration;

use libc::c_int;

use super::NAME_BYTES;
use crate::world::guardian::{now, visit_names};

/// What only the owner may do; a script may have forbidden it.
const OWNERS: libc::mode_t = 0o700;

/// A temporary folder; plain numbers that a fork copies.
#[derive(Clone, Copy)]
pub(in crate::world) struct Folder {
    /// The open folder in which it lies.
    pub(super) parent: c_int,
    /// Itself, open for reading.
    pub(super) own: c_int,
    /// Its name in `parent`, ended by NUL.
    pub(super) name: [u8; NAME_BYTES + 1],
}

/// What came of removing a name.
#[derive(PartialEq, Eq)]
enum Removal {
    /// Nothing has that name any more.
    Gone,
    /// A folder with something in it.
    Full,
    /// Not possible.
    Refused,
}

impl Folder {
    /// Moves the descriptors to these numbers, whatever they were.
    pub(in crate::world) fn keep_as(self, parent: c_int, own: c_int) -> Folder {
        // SAFETY: plain numbers.
        unsafe {
            libc::dup2(self.parent, parent);
            libc::dup2(self.own, own);
        }
        Folder { parent, own, ..self }
    }

    /// Removes what it can within the limit. Returns whether nothing is left.
    pub(in crate::world) fn clear(&self, limit: Duration) -> bool {
        let since = now();
        let is_late = || now().saturating_sub(since) >= limit;
        // Names that were not given before.
        let mut fresh = since.subsec_nanos();
        loop {
            let (mut is_empty, mut goes_on) = (true, false);
            // SAFETY: plain numbers.
            unsafe { libc::fchmod(self.own, OWNERS) };
            visit_folder(self.own, c".", &mut |own, name| {
                is_empty = false;
                if !is_late() {
                    goes_on |= self.clear_entry(own, name, &mut fresh, &is_late);
                }
            });
            if is_empty {
                return CStr::from_bytes_until_nul(&self.name)
                    .is_ok_and(|name| remove(self.parent, name) == Removal::Gone);
            }
            if !goes_on || is_late() {
                return false;
            }
        }
    }

    /// Removes an entry of this folder; of a folder all but the folders in it,
    /// which move up to this one. Returns whether that changed anything.
    fn clear_entry(
        &self,
        own: c_int,
        name: &CStr,
        fresh: &mut u32,
        is_late: &dyn Fn() -> bool,
    ) -> bool {
        match remove(own, name) {
            Removal::Gone => return true,
            Removal::Refused => return false,
            Removal::Full => {}
        }
        // What somebody has mounted cannot be moved, and is not entered: its
        // files are not the script's.
        let Some(place) = self.lift(own, name, fresh) else {
            return false;
        };
        let mut goes_on = false;
        visit_folder(own, as_name(&place), &mut |folder, name| {
            goes_on |= !is_late()
                && match remove(folder, name) {
                    Removal::Gone => true,
                    Removal::Refused => false,
                    Removal::Full => self.lift(folder, name, fresh).is_some(),
                };
        });
        goes_on | (remove(own, as_name(&place)) == Removal::Gone)
    }

    /// Moves a folder into this one, under a fresh name.
    fn lift(&self, from: c_int, name: &CStr, fresh: &mut u32) -> Option<StaleName> {
        for _ in 0..3 {
            *fresh = fresh.wrapping_add(1);
            let place = place(*fresh);
            // SAFETY: both names end in NUL and outlive the calls.
            unsafe {
                if libc::renameat(from, name.as_ptr(), self.own, place.as_ptr().cast()) == 0 {
                    return Some(place);
                }
                // It cannot change its parent while it is closed to its owner.
                open_up(from, name);
            }
        }
        None
    }
}

/// A name of eight hexadecimal digits, ended by NUL.
type StaleName = [u8; 9];

fn place(number: u32) -> StaleName {
    let mut place = [0; 9];
    for (at, letter) in place.iter_mut().take(8).enumerate() {
        *letter = b"0123456789abcdef"[(number >> (4 * at)) as usize & 15];
    }
    place
}

fn as_name(place: &StaleName) -> &CStr {
    CStr::from_bytes_until_nul(place).unwrap_or_default()
}

/// Lets the owner in; follows no link.
fn open_up(parent: c_int, name: &CStr) {
    // SAFETY: the name ends in NUL and outlives the call.
    unsafe { libc::fchmodat(parent, name.as_ptr(), OWNERS, libc::AT_SYMLINK_NOFOLLOW) };
}

/// Shows the entries of a folder, with its descriptor.
fn visit_folder(parent: c_int, name: &CStr, visit: &mut dyn FnMut(c_int, &CStr)) {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name outlives the calls; the descriptor is closed here.
    unsafe {
        let mut folder = libc::openat(parent, name.as_ptr(), flags);
        if folder < 0 {
            open_up(parent, name);
            folder = libc::openat(parent, name.as_ptr(), flags);
        }
        if folder >= 0 {
            libc::fchmod(folder, OWNERS);
            visit_names(folder, &mut |name| visit(folder, name));
            libc::close(folder);
        }
    }
}

fn remove(parent: c_int, name: &CStr) -> Removal {
    for flags in [0, libc::AT_REMOVEDIR] {
        // SAFETY: the name outlives the call.
        if unsafe { libc::unlinkat(parent, name.as_ptr(), flags) } == 0 {
            return Removal::Gone;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOENT) => return Removal::Gone,
            Some(libc::ENOTEMPTY | libc::EEXIST) => return Removal::Full,
            _ => {}
        }
    }
    Removal::Refused
}
