//! Signals that wait: for the moments in which a handler of ours must not run,
//! or a write must not end the process.

use std::{mem, ptr};

use libc::{c_int, sigset_t};

/// Signals that are held back from this thread until this is dropped.
pub(super) struct BlockedSignals {
    pub(super) before: sigset_t,
}

impl BlockedSignals {
    /// One signal, or all.
    pub(super) fn new(signal: Option<c_int>) -> BlockedSignals {
        // SAFETY: zeroed, then filled, structures of this stack.
        unsafe {
            let (mut set, mut before): (sigset_t, sigset_t) = (mem::zeroed(), mem::zeroed());
            match signal {
                Some(signal) => {
                    libc::sigemptyset(&raw mut set);
                    libc::sigaddset(&raw mut set, signal);
                }
                None => {
                    libc::sigfillset(&raw mut set);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            BlockedSignals { before }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled by the call that blocked.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}
