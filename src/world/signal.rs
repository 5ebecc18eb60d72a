//! Signals as a descriptor that `poll` can wait for.
//!
//! The binary installs handlers once ([`Interrupt::install`]). Each handler notes the
//! signal's number and writes a byte into a pipe; every wait (for a socket, a script,
//! the next line) includes that pipe. The same descriptor reports lines that the user
//! types, while they are collected. A library user that does not want handlers uses
//! [`Interrupt::never`]. What an interrupt means is decided by the front ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::world::typing::{TypeAhead, TypedInput};

/// Number of a signal that requests a stop, as in `signal(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// Ctrl+C.
    pub const INT: Signal = Signal(libc::SIGINT);
    /// Request to terminate, as from `kill` or a service manager.
    pub const TERM: Signal = Signal(libc::SIGTERM);
    /// The terminal was closed.
    pub const HUP: Signal = Signal(libc::SIGHUP);
    /// Standard output can no longer be written. The program raises it itself; the
    /// kernel's SIGPIPE is ignored.
    pub const PIPE: Signal = Signal(libc::SIGPIPE);
}

/// Write end of the pipe, for the handler; -1 until the handlers are installed.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);
/// First signal that is still pending; 0 for none.
static PENDING: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(number: libc::c_int) {
    // Only async-signal-safe calls are allowed here, and errno must be restored.
    // SAFETY: `__errno_location` returns the address of this thread's errno, which
    // nothing else writes while the handler runs.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        let set = |old| PENDING.compare_exchange(old, number, Ordering::Relaxed, Ordering::Relaxed);
        // Ctrl+C also ends the reader of our output: the signal takes precedence.
        let _ = set(0).or_else(|_| set(libc::SIGPIPE));
        wake();
        *errno = saved;
    }
}

/// Makes the pipe readable. A full pipe already is.
fn wake() {
    let byte = [0u8];
    // SAFETY: `write` is async-signal-safe and the byte outlives the call.
    unsafe {
        libc::write(WRITE_END.load(Ordering::Relaxed), byte.as_ptr().cast(), 1);
    }
}

/// Pending signal that requests a stop, with a descriptor for `poll`.
#[derive(Clone, Debug)]
pub struct Interrupt {
    source: Option<Arc<InterruptSource>>,
}

/// Descriptors that report an interrupt or typed lines.
#[derive(Debug)]
struct InterruptSource {
    /// Read end of the pipe; readable once a signal has arrived.
    pipe: OwnedFd,
    /// An epoll instance with `pipe` and the descriptors of the two fields below.
    epoll: OnceLock<OwnedFd>,
    reader: OnceLock<ReaderMonitor>,
    type_ahead: Mutex<Option<TypeAhead>>,
}

impl InterruptSource {
    /// Adds a descriptor to the epoll instance.
    fn add(&self, fd: BorrowedFd<'_>, events: libc::c_int) -> io::Result<()> {
        if self.epoll.get().is_none() {
            // SAFETY: the new descriptor gets its owner in the same expression.
            let epoll = unsafe {
                match libc::epoll_create1(libc::EPOLL_CLOEXEC) {
                    -1 => return Err(io::Error::last_os_error()),
                    fd => OwnedFd::from_raw_fd(fd),
                }
            };
            epoll_control(&epoll, libc::EPOLL_CTL_ADD, self.pipe.as_fd(), libc::EPOLLIN)?;
            let _ = self.epoll.set(epoll);
        }
        match self.epoll.get() {
            Some(epoll) => epoll_control(epoll, libc::EPOLL_CTL_ADD, fd, events),
            None => Ok(()),
        }
    }

    fn remove(&self, fd: BorrowedFd<'_>) {
        if let Some(epoll) = self.epoll.get() {
            let _ = epoll_control(epoll, libc::EPOLL_CTL_DEL, fd, 0);
        }
    }

    /// Reads lines that were typed.
    fn collect(&self) {
        if let Ok(mut type_ahead) = self.type_ahead.try_lock()
            && let Some(type_ahead) = &mut *type_ahead
            && type_ahead.is_watched
            && !type_ahead.collect(|| PENDING.load(Ordering::Relaxed) != 0)
        {
            type_ahead.is_watched = false;
            self.remove(type_ahead.terminal.as_fd());
        }
    }
}

fn epoll_control(
    epoll: &OwnedFd,
    action: libc::c_int,
    fd: BorrowedFd<'_>,
    events: libc::c_int,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: 0 };
    // SAFETY: both descriptors are open, and the event outlives the call.
    match unsafe { libc::epoll_ctl(epoll.as_raw_fd(), action, fd.as_raw_fd(), &raw mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Write end of a pipe, watched for the moment when its reader closes it.
#[derive(Debug)]
struct ReaderMonitor {
    ours: File,
}

impl ReaderMonitor {
    /// Starts watching; `None` for a file or a terminal, which have no reader.
    fn new(ours: BorrowedFd<'_>, source: &InterruptSource) -> io::Result<Option<ReaderMonitor>> {
        let ours = File::from(ours.try_clone_to_owned()?);
        let kind = ours.metadata()?.file_type();
        if !kind.is_fifo() && !kind.is_socket() {
            return Ok(None);
        }
        // Without requested events epoll reports only errors and the end.
        source.add(ours.as_fd(), 0)?;
        Ok(Some(ReaderMonitor { ours }))
    }

    fn is_closed(&self) -> bool {
        let mut fd = libc::pollfd { fd: self.ours.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one entry that outlives the call.
        unsafe { libc::poll(&raw mut fd, 1, 0) > 0 }
    }
}

impl Interrupt {
    /// An interrupt that never happens: for library users and tests.
    pub const fn never() -> Interrupt {
        Interrupt { source: None }
    }

    /// Installs handlers for SIGINT, SIGTERM, SIGHUP and SIGQUIT for the whole process.
    /// A signal that was ignored when the program started stays ignored: `nohup` and
    /// background jobs of shell scripts rely on that. A blocked signal is unblocked: it
    /// is blocked by accident, when a thread with blocked signals starts the program.
    pub fn install() -> io::Result<Interrupt> {
        let mut ends: [RawFd; 2] = [-1; 2];
        // SAFETY: `ends` has room for both descriptors; both get an owner below.
        unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // The write end is never closed: the handler may run at any moment.
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
                // No SA_RESTART: a signal must end a blocking read from the terminal.
                libc::sigaction(number, &raw const new, std::ptr::null_mut());
                libc::sigaddset(&raw mut new.sa_mask, number);
                libc::sigprocmask(libc::SIG_UNBLOCK, &raw const new.sa_mask, std::ptr::null_mut());
            }
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let pipe = unsafe { OwnedFd::from_raw_fd(ends[0]) };
        Ok(Interrupt {
            source: Some(Arc::new(InterruptSource {
                pipe,
                epoll: OnceLock::new(),
                reader: OnceLock::new(),
                type_ahead: Mutex::new(None),
            })),
        })
    }

    /// Watches the reader of this pipe: [`Signal::PIPE`] becomes pending as soon as the
    /// reader closes it, even while nothing is written. Where that cannot be watched,
    /// the next write reports it.
    pub fn watch_reader(&self, pipe: BorrowedFd<'_>) {
        if let Some(source) = &self.source
            && let Ok(Some(reader)) = ReaderMonitor::new(pipe, source)
        {
            let _ = source.reader.set(reader);
        }
    }

    /// Descriptor for a `poll`, readable once a signal has arrived. `None` where no
    /// signal can arrive.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        let source = self.source.as_ref()?;
        Some(source.epoll.get().unwrap_or(&source.pipe).as_fd())
    }

    /// Starts collecting lines that the user types at this terminal while the program
    /// waits for something else. Where that fails, the next prompt reads them.
    pub fn collect_typing_from(&self, terminal: BorrowedFd<'_>) {
        if let Some(source) = &self.source
            && let Ok(terminal) = terminal.try_clone_to_owned()
            && let Ok(mut type_ahead) = source.type_ahead.lock()
        {
            *type_ahead = Some(TypeAhead::new(terminal.into()));
            drop(type_ahead);
            self.set_collecting(true);
        }
    }

    /// Starts or stops collecting lines. Returns whether they were collected before.
    pub fn set_collecting(&self, is_wanted: bool) -> bool {
        if let Some(source) = &self.source
            && let Ok(mut type_ahead) = source.type_ahead.lock()
            && let Some(type_ahead) = &mut *type_ahead
        {
            let was_watched = type_ahead.is_watched;
            let terminal = type_ahead.terminal.as_fd();
            match (was_watched, is_wanted) {
                (false, true) => {
                    type_ahead.is_watched = source.add(terminal, libc::EPOLLIN).is_ok();
                }
                (true, false) => {
                    source.remove(terminal);
                    type_ahead.is_watched = false;
                }
                _ => {}
            }
            return was_watched;
        }
        false
    }

    /// Removes and returns the next collected message.
    pub fn next_typed(&self) -> Option<TypedInput> {
        self.source.as_ref()?.type_ahead.lock().ok()?.as_mut()?.next()
    }

    /// Discards all collected messages.
    pub fn discard_typed(&self) {
        while self.next_typed().is_some() {}
    }

    /// The signal that requested a stop, if one arrived. It stays pending.
    pub fn pending(&self) -> Option<Signal> {
        let source = self.source.as_ref()?;
        source.collect();
        match PENDING.load(Ordering::Relaxed) {
            0 if source.reader.get().is_some_and(ReaderMonitor::is_closed) => Some(Signal::PIPE),
            0 => None,
            number => Some(Signal(number)),
        }
    }

    /// Requests a stop as if this signal had arrived, unless one is already pending.
    /// Without effect where no signal can arrive.
    pub fn raise(&self, signal: Signal) {
        if self.source.is_some() {
            let _ = PENDING.compare_exchange(0, signal.0, Ordering::Relaxed, Ordering::Relaxed);
            wake();
        }
    }

    /// Clears and returns the pending signal, so that the program can continue.
    pub fn take_pending(&self) -> Option<Signal> {
        let source = self.source.as_ref()?;
        let pending = PENDING.swap(0, Ordering::Relaxed);
        let mut sink = [0u8; 64];
        // SAFETY: reads from an owned descriptor into `sink`, at most its length.
        while unsafe { libc::read(source.pipe.as_raw_fd(), sink.as_mut_ptr().cast(), sink.len()) }
            > 0
        {}
        if PENDING.load(Ordering::Relaxed) != 0 {
            // Another signal arrived meanwhile, and its byte may have been read as well.
            wake();
        }
        match pending {
            0 => None,
            number => Some(Signal(number)),
        }
    }
}

/// Turns exceeding the limit on file sizes (SIGXFSZ) from a deadly signal into a failed
/// write. Installs an empty handler and not `SIG_IGN`, which scripts would inherit.
pub fn handle_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: a plain sigaction call with a zeroed, then filled, structure.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}

/// Ends the process by the signal itself, so that a shell's loop stops too.
/// Must be called last, after all output and cleanup.
pub fn exit_by_signal(signal: Signal) -> ! {
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
