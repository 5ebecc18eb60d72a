//! Blocks signals for a short time, in which no handler may run, or a write must not end the
//! process.

use std::{mem, ptr};

use libc::{c_int, sigset_t};

/// Signals that are blocked in this thread until this value is dropped.
pub(super) struct BlockedSignals {
    pub(super) before: sigset_t,
}

impl BlockedSignals {
    /// Blocks one signal, or all.
    pub(super) fn new(signal: Option<c_int>) -> BlockedSignals {
        // SAFETY: structures of this stack that are zeroed and then filled.
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
        // SAFETY: the set was filled by the call that blocked the signals.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}
