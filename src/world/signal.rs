//! Signals as something a `poll` can wait for.
//!
//! The binary installs handlers once ([`Interrupt::install`]); each writes the
//! signal's number into a pipe, and whoever waits (for a socket, for a script,
//! for the next line) waits for that pipe too. A library user who wants no
//! handlers takes [`Interrupt::never`]. Nothing here decides what an interrupt
//! means: that is for the front ends.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// A signal that asks the program to stop: its number, as in `signal(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// Ctrl+C.
    pub const INT: Signal = Signal(libc::SIGINT);
    /// A polite end, as from `kill` or a service manager.
    pub const TERM: Signal = Signal(libc::SIGTERM);
    /// The terminal went away.
    pub const HUP: Signal = Signal(libc::SIGHUP);
}

/// The pipe's write end, for the handler; -1 until installed.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);
/// The first signal that has not been taken yet; 0 for none.
static PENDING: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(number: libc::c_int) {
    // Only async-signal-safe calls here, and errno as it was.
    // SAFETY: `__errno_location` gives this thread's errno, nothing else writes it here.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        let _ = PENDING.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        wake();
        *errno = saved;
    }
}

/// Makes the pipe readable; a full pipe is readable already.
fn wake() {
    let byte = [0u8];
    // SAFETY: `write` is async-signal-safe and the byte outlives the call.
    unsafe {
        libc::write(WRITE_END.load(Ordering::Relaxed), byte.as_ptr().cast(), 1);
    }
}

/// Whether a signal has asked to stop, in a form that `poll` can wait for.
#[derive(Clone, Debug)]
pub struct Interrupt {
    read_end: Option<Arc<OwnedFd>>,
}

impl Interrupt {
    /// No signal ever interrupts: for library users and tests.
    pub const fn never() -> Interrupt {
        Interrupt { read_end: None }
    }

    /// Handles SIGINT, SIGTERM, SIGHUP and SIGQUIT for the whole process from now on.
    /// A signal that was ignored when the program started stays so: `nohup`, or
    /// a job that a shell script put into the background.
    pub fn install() -> io::Result<Interrupt> {
        let mut ends: [RawFd; 2] = [-1; 2];
        // SAFETY: `ends` has room for the two descriptors; both are owned below.
        unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // The write end lives as long as the process: the handler may run at any moment.
        WRITE_END.store(ends[1], Ordering::Relaxed);
        for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            // SAFETY: plain sigaction calls with zeroed, then filled, structures.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                libc::sigaction(number, std::ptr::null(), &raw mut old);
                if old.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
                libc::sigemptyset(&raw mut new.sa_mask);
                // No SA_RESTART: a blocking read of the terminal has to return.
                libc::sigaction(number, &raw const new, std::ptr::null_mut());
            }
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        let read_end = unsafe { OwnedFd::from_raw_fd(ends[0]) };
        Ok(Interrupt {
            read_end: Some(Arc::new(read_end)),
        })
    }

    /// What to add to a `poll`: readable once a signal has come. `None` where
    /// no signal can come.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.read_end.as_ref().map(|end| end.as_fd())
    }

    /// The signal that asked to stop, if one did. It stays pending.
    pub fn pending(&self) -> Option<Signal> {
        self.read_end.as_ref()?;
        match PENDING.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Signal(number)),
        }
    }

    /// Takes the pending signal, so that the program can go on after it.
    pub fn take(&self) -> Option<Signal> {
        let read_end = self.read_end.as_ref()?;
        let taken = PENDING.swap(0, Ordering::Relaxed);
        let mut sink = [0u8; 64];
        // SAFETY: reads into `sink`, at most its length, from an owned descriptor.
        while unsafe { libc::read(read_end.as_raw_fd(), sink.as_mut_ptr().cast(), sink.len()) } > 0
        {
        }
        if PENDING.load(Ordering::Relaxed) != 0 {
            // Another one came meanwhile, and its byte may have gone with the others.
            wake();
        }
        match taken {
            0 => None,
            number => Some(Signal(number)),
        }
    }
}

/// Ends the process by the signal itself, so that a shell's loop stops too.
/// Call it last, after everything has been written and cleaned up.
pub fn end_by(signal: Signal) -> ! {
    // SAFETY: restores the default action, unblocks the signal and raises it.
    unsafe {
        libc::signal(signal.0, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal.0);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal.0);
        libc::_exit(128 + signal.0)
    }
}
