//! Hardening of the process, done before anything else.
//!
//! The API key remains in the program's memory: it is sent with every request, and was
//! copied while it was read. Only root can read it there (`/proc/PID/mem`, see
//! [`hide_memory`]). A process of the same user that reads the environment
//! before this program has started to run finds the key there too.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use libc::c_char;

use crate::after_fork::set_attribute;

/// Opens missing standard streams before `main`. For programs only, not for the host of a
/// library.
///
/// If a program is started without one of its standard streams, std opens `/dev/null` in
/// its place, and aborts where there is none, as in an empty `chroot`. If the stream stayed
/// closed, the next opened file would get its number, and the answer would be written into
/// that file.
#[macro_export]
macro_rules! open_missing_streams_before_main {
    () => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static BEFORE_MAIN: extern "C" fn() = $crate::hardening::open_missing_streams;
    };
}

/// See [`open_missing_streams_before_main`].
pub extern "C" fn open_missing_streams() {
    for stream in 0..=2 {
        // SAFETY: plain numbers, a constant, and an array of this stack; only descriptors
        // created here are closed or replaced. The kernel always assigns the lowest free
        // number.
        unsafe {
            let mut ends = [-1; 2];
            if libc::fcntl(stream, libc::F_GETFD) < 0
                && libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) < 0
                && libc::pipe(ends.as_mut_ptr()) == 0
            {
                // An input at its end, or an output without a reader.
                if stream > 0 {
                    libc::dup2(ends[1], stream);
                }
                libc::close(ends[1]);
            }
        }
    }
}

/// Makes the memory and the environment of this process unreadable for other processes of
/// the same user (`/proc/PID/mem`, `/proc/PID/environ`, core dumps, debuggers): the API key
/// is in memory, and scripts run as the same user. Does not protect against root.
pub fn hide_memory() {
    set_attribute(libc::PR_SET_DUMPABLE, 0);
}

/// Predicate over name and value: whether the variable's value must be erased.
pub type IsSecret<'s> = &'s dyn Fn(&OsStr, &OsStr) -> bool;

/// Overwrites the values of these variables in the environment that this process was
/// started with: what `/proc/PID/environ` shows to root, `ps e` prints and `getenv` returns.
/// The names stay, with empty values.
///
/// Only for `main`, after it has read its environment; not for the host of a library, which
/// may read it again. Does nothing if there are several threads, or if `/proc` does not show
/// their number.
pub fn erase_from_environment(is_secret: IsSecret<'_>) {
    unsafe extern "C" {
        static mut environ: *const *mut c_char;
    }
    if !is_single_threaded() {
        return;
    }
    // SAFETY: `environ` is the C library's list of strings, each terminated by a zero
    // byte, the list by a null pointer. The strings are in writable memory. This is the
    // only thread, so no other code reads or changes them meanwhile: our signal handlers
    // do not, and std returns only copies. No reference to a string is alive when it is
    // written to, and its terminator is kept. The write is volatile because this program
    // never reads the result.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = *entry;
            for at in secret_range(CStr::from_ptr(text).to_bytes(), is_secret) {
                text.add(at).write_volatile(0);
            }
            entry = entry.add(1);
        }
    }
}

/// The part of `NAME=value` to erase; all of an entry without a name.
fn secret_range(entry: &[u8], is_secret: IsSecret<'_>) -> Range<usize> {
    // A name may start with `=`; std reads it the same way.
    let equals = entry.iter().skip(1).position(|&byte| byte == b'=');
    let (name, value) = equals.map_or((0, 0), |at| (at + 1, at + 2));
    let part = |range: Range<usize>| OsStr::from_bytes(&entry[range]);
    if is_secret(part(0..name), part(value..entry.len())) { value..entry.len() } else { 0..0 }
}

/// Whether this process has one thread. `/proc/self/task` has a folder for each thread, and
/// its link count is their number plus 2. Listing the folders takes three times as long (a
/// seventh of the program's start), so it is only done where the link count is not kept.
fn is_single_threaded() -> bool {
    let threads = "/proc/self/task";
    fs::metadata(threads).is_ok_and(|threads| threads.nlink() == 3)
        || fs::read_dir(threads).is_ok_and(|threads| threads.count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_secret_variable_stays() {
        let table: [(&str, &str); 5] = [
            ("A=key", "key"),
            ("A=key=key", "key=key"),
            ("=A=key", "key"),
            ("key", "key"),
            ("B=other", ""),
        ];
        for (entry, erased) in table {
            let is_secret = |_: &OsStr, value: &OsStr| value.as_bytes().starts_with(b"key");
            let part = secret_range(entry.as_bytes(), &is_secret);
            assert_eq!(&entry[part], erased, "{entry}");
            let is_a = |name: &OsStr, _: &OsStr| name == "A";
            let part = secret_range(entry.as_bytes(), &is_a);
            assert_eq!(part.is_empty(), !entry.starts_with("A="), "{entry}");
        }
        assert!(secret_range(b"", &|_, value| !value.is_empty()).is_empty());
    }

    /// Tests run in threads, so nothing may be written.
    #[test]
    fn with_several_threads_nothing_is_erased() {
        let path = std::env::var_os("PATH");
        std::thread::scope(|scope| {
            scope.spawn(|| erase_from_environment(&|_, _| true)).join().unwrap();
        });
        assert!(path.is_some() && std::env::var_os("PATH") == path);
    }
}
