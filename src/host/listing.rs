//! Listing of a folder with system calls only: it may run after `fork`, and the folder is
//! named by its descriptor.

use std::ffi::CStr;
use std::io;
use std::ops::ControlFlow;

use base::limits;
use libc::c_int;

/// Calls `visit` with the name and the type (`DT_DIR`, …) of every entry of an open folder
/// except `.` and `..`, from the descriptor's current position, until it breaks.
pub(super) fn visit_entries(
    folder: c_int,
    visit: &mut dyn FnMut(&CStr, u8) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut entries = [0u8; limits::LISTING_BYTES];
    loop {
        let room = entries.as_mut_ptr();
        // SAFETY: the kernel writes at most `LISTING_BYTES` bytes into `entries`.
        let length =
            unsafe { libc::syscall(libc::SYS_getdents64, folder, room, limits::LISTING_BYTES) };
        let Some(mut rest) = usize::try_from(length).ok().and_then(|n| entries.get(..n)) else {
            return Err(io::Error::last_os_error());
        };
        if rest.is_empty() {
            return Ok(());
        }
        // Layout of an entry: inode, offset, length (2 bytes at 16), type, name at 19.
        while let (Some(&[low, high, kind]), Some(name)) = (rest.get(16..19), rest.get(19..)) {
            if let Ok(name) = CStr::from_bytes_until_nul(name)
                && name != c"."
                && name != c".."
                && visit(name, kind).is_break()
            {
                return Ok(());
            }
            rest = rest.get(usize::from(u16::from_ne_bytes([low, high]))..).unwrap_or_default();
        }
    }
}

/// Calls `visit` with every name in an open folder. An error ends the listing.
pub(super) fn visit_names(folder: c_int, visit: &mut dyn FnMut(&CStr)) {
    let _ = visit_entries(folder, &mut |name, _| {
        visit(name);
        ControlFlow::Continue(())
    });
}
