//! What the program does for its own safety before it does anything else.
//!
//! Not claimed: that the key is nowhere in the program's memory. It is sent
//! with every request, and was copied while it was read; whoever may read
//! `/proc/PID/mem` (root; nobody else, see [`hide_memory`]) finds it there. So
//! does whoever looks at the environment before this program has begun to run.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use libc::c_char;

/// Fills the standard streams before `main`, for a program, and not for a
/// library's host: std aborts a program that was started without one of them
/// where there is no `/dev/null` to take its place, as in an empty `chroot`.
/// Left closed, its number would go to the next file that is opened, and the
/// answer into that.
#[macro_export]
macro_rules! fill_streams_before_main {
    () => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static BEFORE_MAIN: extern "C" fn() = $crate::program::fill_streams;
    };
}

/// See [`fill_streams_before_main`].
pub extern "C" fn fill_streams() {
    for stream in 0..=2 {
        // SAFETY: plain numbers, a constant, and two descriptors of this stack;
        // what is closed or replaced was made here. The lowest free number is
        // always the one that is given.
        unsafe {
            let mut ends = [-1; 2];
            if libc::fcntl(stream, libc::F_GETFD) < 0
                && libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) < 0
                && libc::pipe(ends.as_mut_ptr()) == 0
            {
                // An input that is at its end, an output that nobody reads.
                if stream > 0 {
                    libc::dup2(ends[1], stream);
                }
                libc::close(ends[1]);
            }
        }
    }
}

/// Makes the memory and the environment of this process unreadable for other
/// processes of the same user (`/proc/PID/mem`, `/proc/PID/environ`, core
/// dumps, debuggers). The key is in its memory, and scripts run as the same
/// user. Against root nothing helps.
pub fn hide_memory() {
    // SAFETY: sets a flag of this process; on failure nothing has changed.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
}

/// Says of a variable, by its name and its value, whether it is to be forgotten.
pub(crate) type IsSecret<'s> = &'s dyn Fn(&OsStr, &OsStr) -> bool;

/// Overwrites the values of these variables where the system keeps the
/// environment that this process was started with: what `/proc/PID/environ`
/// shows to root and `ps e` prints, and what `getenv` finds. The names stay,
/// with nothing behind them.
///
/// Only for a program that has read its environment and is done with it, and so
/// only for `main`: not for a library's host, which may look there again. With
/// several threads, or without a `/proc` that tells how many, nothing happens.
pub fn forget(is_secret: IsSecret<'_>) {
    unsafe extern "C" {
        static mut environ: *const *mut c_char;
    }
    if !is_single_threaded() {
        return;
    }
    // SAFETY: the C library keeps a list of texts there, each ended by a zero,
    // the list by a null pointer. They lie in memory that may be written. This
    // thread is the only one, so nobody reads or changes them meanwhile: the
    // handlers of our signals do not, and std gives out copies only. No
    // reference to a text is left when it is written to, and its end stays.
    // Volatile, for nothing here reads what is written, and it is for others.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = *entry;
            for at in secret_part(CStr::from_ptr(text).to_bytes(), is_secret) {
                text.add(at).write_volatile(0);
            }
            entry = entry.add(1);
        }
    }
}

/// What is to be forgotten of `NAME=value`; where there is no name, all of it.
fn secret_part(entry: &[u8], is_secret: IsSecret<'_>) -> Range<usize> {
    // A name may begin with `=`, as std reads it.
    let equals = entry.iter().skip(1).position(|&byte| byte == b'=');
    let (name, value) = equals.map_or((0, 0), |at| (at + 1, at + 2));
    let part = |range: Range<usize>| OsStr::from_bytes(&entry[range]);
    if is_secret(part(0..name), part(value..entry.len())) { value..entry.len() } else { 0..0 }
}

/// Each thread has a folder there. The folder's links tell how many: one for
/// each, and two of its own. Listing them takes three times as long, a seventh
/// of a start, and is left for systems that count no links.
fn is_single_threaded() -> bool {
    let threads = "/proc/self/task";
    fs::metadata(threads).is_ok_and(|threads| threads.nlink() == 3)
        || fs::read_dir(threads).is_ok_and(|threads| threads.count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_secret_variable_only_the_name_stays() {
        let table: [(&str, &str); 5] = [
            ("A=key", "key"),
            ("A=key=key", "key=key"),
            ("=A=key", "key"),
            ("key", "key"),
            ("B=other", ""),
        ];
        for (entry, forgotten) in table {
            let is_secret = |_: &OsStr, value: &OsStr| value.as_bytes().starts_with(b"key");
            let part = secret_part(entry.as_bytes(), &is_secret);
            assert_eq!(&entry[part], forgotten, "{entry}");
            let is_a = |name: &OsStr, _: &OsStr| name == "A";
            let part = secret_part(entry.as_bytes(), &is_a);
            assert_eq!(part.is_empty(), !entry.starts_with("A="), "{entry}");
        }
        assert!(secret_part(b"", &|_, value| !value.is_empty()).is_empty());
    }

    /// Tests run in threads, so that nothing may be written.
    #[test]
    fn with_several_threads_nothing_is_forgotten() {
        let path = std::env::var_os("PATH");
        std::thread::scope(|scope| {
            scope.spawn(|| forget(&|_, _| true)).join().unwrap();
        });
        assert!(path.is_some() && std::env::var_os("PATH") == path);
    }
}
