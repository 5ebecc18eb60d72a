//! System calls for a process after `fork`: no allocation, no locks, no panic. And what has to
//! be prepared for it.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use base::limits;
use libc::{c_int, c_uint, pid_t};

/// Moves a descriptor that a forked process will use away from the numbers 0 to 2, which its
/// program's streams will get: they are free in a host that has closed them.
pub(super) fn above_streams(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    // `try_clone` never returns one of them.
    if descriptor.as_raw_fd() < 3 { descriptor.try_clone() } else { Ok(descriptor) }
}

/// Sets an attribute of this process by `prctl(2)`. Returns whether that succeeded.
pub(super) fn set_attribute(name: c_int, value: c_int) -> bool {
    const NONE: libc::c_long = 0;
    // SAFETY: plain numbers, as wide as the kernel reads them.
    unsafe { libc::prctl(name, libc::c_long::from(value), NONE, NONE, NONE) == 0 }
}

/// Sends a signal; 0 only checks whether that is permitted. Returns whether it succeeded.
pub(super) fn kill(pid: pid_t, signal: c_int) -> bool {
    // SAFETY: plain numbers.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Ends this process immediately, without handlers of its exit: those are the parent's.
pub(super) fn exit(status: c_int) -> ! {
    // SAFETY: a plain number.
    unsafe { libc::_exit(status) }
}

/// Closes this descriptor and all higher ones.
pub(super) fn close_from(first: c_int) {
    // SAFETY: for a process that runs only its caller's code, so no other code uses the
    // descriptors.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) < 0 {
            for fd in first..max_descriptors() {
                libc::close(fd);
            }
        }
    }
}

/// A number above all descriptors that a process may have.
pub(super) fn max_descriptors() -> c_int {
    // SAFETY: a plain number; the call always succeeds for this name.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    c_int::try_from(most).map_or(limits::DESCRIPTORS, |most| most.clamp(0, limits::DESCRIPTORS))
}

/// Monotonic time.
pub(super) fn now() -> Duration {
    // SAFETY: a zeroed structure of this stack that the call fills.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time
    };
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}

pub(super) fn to_timespec(duration: Duration) -> libc::timespec {
    // SAFETY: a structure of plain numbers, for which zero is a valid value. Not written as
    // a literal, because its padding differs between C libraries.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // Durations here are too short to overflow.
    time.tv_sec = duration.as_secs().try_into().unwrap_or(0);
    time.tv_nsec = duration.subsec_nanos().into();
    time
}
