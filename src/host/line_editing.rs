//! Line editing of a terminal: its modes, and text that was typed but not read.

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::termios::{FlushArg, LocalFlags, SetArg, Termios, tcflush, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

/// Makes the unfinished line of a terminal readable. The kernel does that when line editing
/// is switched on while characters are waiting, so it is switched off and on again. Does
/// nothing for a process in the background, which the change of modes would stop.
pub(crate) fn release_line(terminal: BorrowedFd<'_>) {
    without_line_editing(terminal, || {});
}

/// Discards typed text that was not read. Returns whether there was any. After Ctrl+C there
/// is some only if [`set_typed_text_kept`] has been called.
pub fn discard_typed_text(terminal: BorrowedFd<'_>) -> bool {
    let mut count: libc::c_int = 0;
    without_line_editing(terminal, || {
        // SAFETY: an open descriptor, and a number that outlives the call.
        unsafe { libc::ioctl(terminal.as_raw_fd(), libc::FIONREAD, &raw mut count) };
        let _ = tcflush(terminal, FlushArg::TCIFLUSH);
    });
    count > 0
}

/// Sets whether the terminal keeps an unfinished line on Ctrl+C. Returns whether that
/// changed its mode.
pub fn set_typed_text_kept(terminal: BorrowedFd<'_>, is_kept: bool) -> bool {
    let Some(mut modes) = line_editing_modes(terminal) else {
        return false;
    };
    let old = modes.local_flags;
    modes.local_flags.set(LocalFlags::NOFLSH, is_kept);
    if modes.local_flags != old {
        set_modes(terminal, &modes);
    }
    modes.local_flags != old
}

/// Whether the program is in the foreground of a terminal.
pub(crate) fn is_in_foreground(terminal: BorrowedFd<'_>) -> bool {
    tcgetpgrp(terminal) == Ok(getpgrp())
}

/// Calls `act` while line editing of the terminal is off.
fn without_line_editing(terminal: BorrowedFd<'_>, act: impl FnOnce()) {
    let Some(modes) = line_editing_modes(terminal) else {
        return;
    };
    let mut unbuffered = modes.clone();
    unbuffered.local_flags.remove(LocalFlags::ICANON);
    set_modes(terminal, &unbuffered);
    act();
    set_modes(terminal, &modes);
}

/// The modes of a terminal; `None`: the descriptor is not a terminal.
pub(crate) fn modes(terminal: BorrowedFd<'_>) -> Option<Termios> {
    tcgetattr(terminal).ok()
}

/// The modes of a terminal with line editing on; `None` if editing is off, or this process
/// is not in the foreground.
fn line_editing_modes(terminal: BorrowedFd<'_>) -> Option<Termios> {
    modes(terminal).filter(|modes| {
        is_in_foreground(terminal) && modes.local_flags.contains(LocalFlags::ICANON)
    })
}

/// Sets the modes; retries when a signal interrupts the call.
pub(crate) fn set_modes(terminal: BorrowedFd<'_>, modes: &Termios) {
    while tcsetattr(terminal, SetArg::TCSANOW, modes) == Err(Errno::EINTR) {}
}
