//! Listing of a folder with system calls only, as required after `fork`.

use std::ffi::CStr;

use crate::limits;
use libc::c_int;

/// Calls `visit` with every name in an open folder except `.` and `..`, from the descriptor's
/// current position. An error ends the listing.
pub(in crate::world) fn visit_names(folder: c_int, visit: &mut dyn FnMut(&CStr)) {
    let mut entries = [0u8; limits::LISTING_BYTES];
    loop {
        let room = entries.as_mut_ptr();
        // SAFETY: the kernel writes at most `LISTING_BYTES` bytes into `entries`.
        let length =
            unsafe { libc::syscall(libc::SYS_getdents64, folder, room, limits::LISTING_BYTES) };
        let Some(mut rest) = usize::try_from(length).ok().and_then(|n| entries.get(..n)) else {
            return;
        };
        if rest.is_empty() {
            return;
        }
        // Layout of an entry: inode, offset, length (2 bytes at 16), type, name at 19.
        while let (Some(&[low, high]), Some(name)) = (rest.get(16..18), rest.get(19..)) {
            if let Ok(name) = CStr::from_bytes_until_nul(name)
                && name != c"."
                && name != c".."
            {
                visit(name);
            }
            rest = rest.get(usize::from(u16::from_ne_bytes([low, high]))..).unwrap_or_default();
        }
    }
}
