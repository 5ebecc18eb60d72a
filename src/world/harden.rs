//! What the program does for its own safety before it does anything else.

/// Makes the memory and the environment of this process unreadable for other
/// processes of the same user (`/proc/PID/mem`, `/proc/PID/environ`, core
/// dumps, debuggers). The key is in both, and scripts run as the same user.
/// Against root nothing helps.
pub fn hide_memory() {
    // SAFETY: sets a flag of this process; on failure nothing has changed.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
}
