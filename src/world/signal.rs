//! Signals as something a `poll` can wait for.
//!
//! The binary installs handlers once ([`Interrupt::install`]); each writes the
//! signal's number into a pipe, and whoever waits (for a socket, for a script,
//! for the next line) waits for that pipe too, and for a person's lines, where
//! they are collected meanwhile. A library user who wants no
//! handlers takes [`Interrupt::never`]. Nothing here decides what an interrupt
//! means: that is for the front ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::world::typing::{TypedInput, Typing};

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
    /// Standard output cannot be written any more. It never comes from outside:
    /// the program does not let the kernel send it.
    pub const PIPE: Signal = Signal(libc::SIGPIPE);
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
        let set = |old| PENDING.compare_exchange(old, number, Ordering::Relaxed, Ordering::Relaxed);
        // Ctrl+C ends the readers of a pipeline too: the signal is what counts.
        let _ = set(0).or_else(|_| set(libc::SIGPIPE));
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
    source: Option<Arc<InterruptSource>>,
}

/// Where an interrupt comes from.
#[derive(Debug)]
struct InterruptSource {
    /// Readable once a signal has come.
    pipe: OwnedFd,
    /// Readable once that is, or one of those below has something to say.
    all: OnceLock<OwnedFd>,
    reader: OnceLock<PipeReader>,
    typing: Mutex<Option<Typing>>,
}

impl InterruptSource {
    /// Adds a descriptor to those that are waited for.
    fn add(&self, fd: BorrowedFd<'_>, events: libc::c_int) -> io::Result<()> {
        if self.all.get().is_none() {
            // SAFETY: the new descriptor is owned at once.
            let all = unsafe {
                match libc::epoll_create1(libc::EPOLL_CLOEXEC) {
                    -1 => return Err(io::Error::last_os_error()),
                    fd => OwnedFd::from_raw_fd(fd),
                }
            };
            control(&all, libc::EPOLL_CTL_ADD, self.pipe.as_fd(), libc::EPOLLIN)?;
            let _ = self.all.set(all);
        }
        match self.all.get() {
            Some(all) => control(all, libc::EPOLL_CTL_ADD, fd, events),
            None => Ok(()),
        }
    }

    fn remove(&self, fd: BorrowedFd<'_>) {
        if let Some(all) = self.all.get() {
            let _ = control(all, libc::EPOLL_CTL_DEL, fd, 0);
        }
    }

    /// Reads what has been typed.
    fn collect(&self) {
        if let Ok(mut typing) = self.typing.try_lock()
            && let Some(typing) = &mut *typing
            && typing.is_watched
            && !typing.collect(|| PENDING.load(Ordering::Relaxed) != 0)
        {
            typing.is_watched = false;
            self.remove(typing.terminal.as_fd());
        }
    }
}

fn control(
    all: &OwnedFd,
    action: libc::c_int,
    fd: BorrowedFd<'_>,
    events: libc::c_int,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: 0 };
    // SAFETY: both descriptors are open, the event outlives the call.
    match unsafe { libc::epoll_ctl(all.as_raw_fd(), action, fd.as_raw_fd(), &raw mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The reader of a pipe that the program writes to.
#[derive(Debug)]
struct PipeReader {
    ours: File,
}

impl PipeReader {
    /// `None` for what has no reader that can go, a file or a terminal.
    fn new(ours: BorrowedFd<'_>, source: &InterruptSource) -> io::Result<Option<PipeReader>> {
        let ours = File::from(ours.try_clone_to_owned()?);
        let kind = ours.metadata()?.file_type();
        if !kind.is_fifo() && !kind.is_socket() {
            return Ok(None);
        }
        // Without any event asked for, only errors and the end are told.
        source.add(ours.as_fd(), 0)?;
        Ok(Some(PipeReader { ours }))
    }

    fn has_gone(&self) -> bool {
        let mut fd = libc::pollfd { fd: self.ours.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one entry that outlives the call.
        unsafe { libc::poll(&raw mut fd, 1, 0) > 0 }
    }
}

impl Interrupt {
    /// No signal ever interrupts: for library users and tests.
    pub const fn never() -> Interrupt {
        Interrupt { source: None }
    }

    /// Handles SIGINT, SIGTERM, SIGHUP and SIGQUIT for the whole process from now on.
    /// A signal that was ignored when the program started stays so: `nohup`, or
    /// a job that a shell script put into the background. One that was blocked
    /// does not: nobody asks for that, it is what starting a program from a
    /// thread leaves behind.
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
                libc::sigaddset(&raw mut new.sa_mask, number);
                libc::sigprocmask(libc::SIG_UNBLOCK, &raw const new.sa_mask, std::ptr::null_mut());
            }
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        let pipe = unsafe { OwnedFd::from_raw_fd(ends[0]) };
        Ok(Interrupt {
            source: Some(Arc::new(InterruptSource {
                pipe,
                all: OnceLock::new(),
                reader: OnceLock::new(),
                typing: Mutex::new(None),
            })),
        })
    }

    /// From now on [`Signal::PIPE`] comes as soon as nobody reads this pipe any
    /// more, also while nothing is written to it. Where that cannot be watched,
    /// the next write tells.
    pub fn watch(&self, pipe: BorrowedFd<'_>) {
        if let Some(source) = &self.source
            && let Ok(Some(reader)) = PipeReader::new(pipe, source)
        {
            let _ = source.reader.set(reader);
        }
    }

    /// What to add to a `poll`: readable once a signal has come. `None` where
    /// no signal can come.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        let source = self.source.as_ref()?;
        Some(source.all.get().unwrap_or(&source.pipe).as_fd())
    }

    /// From now on lines that are typed at this terminal are read as they come,
    /// whatever is waited for. Where that cannot be, the next prompt finds them.
    pub fn collect_from(&self, terminal: BorrowedFd<'_>) {
        if let Some(source) = &self.source
            && let Ok(terminal) = terminal.try_clone_to_owned()
            && let Ok(mut typing) = source.typing.lock()
        {
            *typing = Some(Typing::new(terminal.into()));
            drop(typing);
            self.collect(true);
        }
    }

    /// Whether lines are collected from now on; returns whether they were.
    pub fn collect(&self, is_wanted: bool) -> bool {
        if let Some(source) = &self.source
            && let Ok(mut typing) = source.typing.lock()
            && let Some(typing) = &mut *typing
        {
            let was_watched = typing.is_watched;
            let terminal = typing.terminal.as_fd();
            match (was_watched, is_wanted) {
                (false, true) => typing.is_watched = source.add(terminal, libc::EPOLLIN).is_ok(),
                (true, false) => {
                    source.remove(terminal);
                    typing.is_watched = false;
                }
                _ => {}
            }
            return was_watched;
        }
        false
    }

    /// The next message that was collected.
    pub fn typed(&self) -> Option<TypedInput> {
        self.source.as_ref()?.typing.lock().ok()?.as_mut()?.next()
    }

    /// Forgets what was collected.
    pub fn forget_typed(&self) {
        while self.typed().is_some() {}
    }

    /// The signal that asked to stop, if one did. It stays pending.
    pub fn pending(&self) -> Option<Signal> {
        let source = self.source.as_ref()?;
        source.collect();
        match PENDING.load(Ordering::Relaxed) {
            0 if source.reader.get().is_some_and(PipeReader::has_gone) => Some(Signal::PIPE),
            0 => None,
            number => Some(Signal(number)),
        }
    }

    /// Asks to stop as if this signal had come, unless one is pending already.
    /// Where no signal can come, this one does not either.
    pub fn raise(&self, signal: Signal) {
        if self.source.is_some() {
            let _ = PENDING.compare_exchange(0, signal.0, Ordering::Relaxed, Ordering::Relaxed);
            wake();
        }
    }

    /// Takes the pending signal, so that the program can go on after it.
    pub fn take(&self) -> Option<Signal> {
        let source = self.source.as_ref()?;
        let taken = PENDING.swap(0, Ordering::Relaxed);
        let mut sink = [0u8; 64];
        // SAFETY: reads into `sink`, at most its length, from an owned descriptor.
        while unsafe { libc::read(source.pipe.as_raw_fd(), sink.as_mut_ptr().cast(), sink.len()) }
            > 0
        {}
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

/// A file that may grow no further is a write that fails, and no reason to die.
/// A handler and not `SIG_IGN`, which scripts would inherit.
pub fn survive_file_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: a plain sigaction call with a zeroed, then filled, structure.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
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
