//! Signals as a descriptor that `poll` can wait for.
//!
//! The binary installs handlers once ([`Interrupt::install`]). Each handler notes the
//! signal's number and writes a byte into a pipe; every wait (for a socket, a script,
//! the next line) includes that pipe. It also includes the terminal, while lines that the
//! user types are collected, and standard output. A library user that does not want handlers uses
//! [`Interrupt::never`]. What an interrupt means is decided by the front ends.

use std::array;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{self as unix, SaFlags, SigAction, SigHandler, SigSet};
use nix::unistd::{dup2_stdin, pipe2};

use crate::after_fork;
use crate::line_editing;
use crate::poll::{self, Readiness, Watched};
use crate::typing::{TypeAhead, TypedInput};

/// Number of a signal that requests a stop, as in `signal(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// Ctrl+C.
    pub const INT: Signal = Signal(libc::SIGINT);
    /// Ends a process at once.
    pub(crate) const KILL: Signal = Signal(libc::SIGKILL);
    /// Request to terminate, as from `kill` or a service manager.
    pub const TERM: Signal = Signal(libc::SIGTERM);
    /// Standard output can no longer be written. The program raises it itself; the
    /// kernel's SIGPIPE is ignored.
    pub const PIPE: Signal = Signal(libc::SIGPIPE);
}

/// Write end of the pipe, for the handler; -1 until the handlers are installed.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);
/// First signal that is still pending; 0 for none.
static PENDING: AtomicI32 = AtomicI32::new(0);

/// A descriptor of `/dev/null` that takes the place of standard input at the next signal; -1: none.
static STDIN_AT_SIGNAL: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_signal(number: libc::c_int) {
    // Only async-signal-safe calls are allowed here, and errno must be restored.
    let errno = Errno::last_raw();
    let set = |old| PENDING.compare_exchange(old, number, Ordering::Relaxed, Ordering::Relaxed);
    // Ctrl+C also ends the reader of our output: the signal takes precedence.
    let _ = set(0).or_else(|_| set(libc::SIGPIPE));
    wake();
    replace_stdin();
    Errno::set_raw(errno);
}

/// Ends a read of standard input by other code, which goes on after signals.
fn replace_stdin() {
    let replacement = STDIN_AT_SIGNAL.load(Ordering::Relaxed);
    if replacement >= 0 {
        // SAFETY: `dup2` is async-signal-safe; `end_reading` restores the descriptor.
        unsafe { libc::dup2(replacement, libc::STDIN_FILENO) };
    }
}

extern "C" fn on_alarm(_: libc::c_int) {
    let errno = Errno::last_raw();
    replace_stdin();
    Errno::set_raw(errno);
}

/// Calls code that reads the terminal on standard input by itself: it sees the end of the input
/// at a signal or at the deadline. Restores standard input and the terminal's modes.
pub fn end_reading<T>(deadline: Option<Instant>, read: impl FnOnce() -> T) -> T {
    let stdin = io::stdin();
    let (Ok(terminal), Ok(nothing)) = (stdin.as_fd().try_clone_to_owned(), File::open("/dev/null"))
    else {
        return read();
    };
    let modes = line_editing::modes(terminal.as_fd());
    // After the deadline, too, the timer has to run.
    let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
    let left = left.map(|left| left.max(Duration::from_micros(1)));
    if left.is_some() {
        set_handler(unix::SIGALRM, SigHandler::Handler(on_alarm));
    }
    STDIN_AT_SIGNAL.store(nothing.as_raw_fd(), Ordering::Relaxed);
    if PENDING.load(Ordering::Relaxed) != 0 {
        replace_stdin();
    }
    set_timer(left.unwrap_or_default());
    let result = read();
    set_timer(Duration::ZERO);
    STDIN_AT_SIGNAL.store(-1, Ordering::Relaxed);
    if left.is_some() {
        set_handler(unix::SIGALRM, SigHandler::SigDfl);
    }
    let _ = dup2_stdin(&terminal);
    if let Some(modes) = modes {
        line_editing::set_modes(terminal.as_fd(), &modes);
    }
    // The marks of pastes, which the other code switches off only at its normal end.
    let _ = File::from(terminal).write_all(b"\x1b[?2004l");
    result
}

/// Sets a handler without `SA_RESTART`: a signal must end a blocking read from the terminal.
fn set_handler(signal: unix::Signal, handler: SigHandler) {
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the handlers of this program make only async-signal-safe calls.
    let _ = unsafe { unix::sigaction(signal, &action) };
}

/// Whether this process ignores a signal.
pub(super) fn is_ignored(signal: unix::Signal) -> bool {
    // SAFETY: only reads the action, into a structure of this stack for which zero is valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal as libc::c_int, std::ptr::null(), &raw mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
}

/// Sets the timer of SIGALRM; zero: off.
fn set_timer(left: Duration) {
    // SAFETY: a structure of plain numbers, for which zero is a valid value.
    unsafe {
        let mut timer: libc::itimerval = std::mem::zeroed();
        timer.it_value.tv_sec = left.as_secs().try_into().unwrap_or(i32::MAX.into());
        timer.it_value.tv_usec = left.subsec_micros().into();
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
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

/// What is called while the program waits.
pub trait WaitObserver: std::fmt::Debug + Send + Sync {
    /// When to call [`WaitObserver::tick`] next; `None`: not at all.
    fn due(&self) -> Option<Instant>;
    /// The wait has reached that time.
    fn tick(&self);
    /// A script has printed this.
    fn output(&self, bytes: &[u8]);
    /// Whether something else uses the terminal.
    fn pause(&self, is_paused: bool);
}

/// Pending signal that requests a stop.
#[derive(Clone, Debug)]
pub struct Interrupt {
    source: Option<Arc<InterruptSource>>,
}

/// Descriptors that report an interrupt or typed lines.
#[derive(Debug)]
struct InterruptSource {
    /// Read end of the pipe; readable once a signal has arrived.
    pipe: File,
    /// Write end of a pipe, watched for the moment when its reader closes it.
    output: OnceLock<File>,
    type_ahead: OnceLock<TypeAhead>,
    observer: OnceLock<Arc<dyn WaitObserver>>,
}

impl InterruptSource {
    /// What every wait includes, the pipe first.
    fn watched(&self) -> [Watched<'_>; 3] {
        let terminal = self.type_ahead.get().and_then(TypeAhead::watched_terminal);
        [
            Some((self.pipe.as_fd(), Readiness::Read)),
            self.output.get().map(|output| (output.as_fd(), Readiness::Broken)),
            terminal.map(|terminal| (terminal, Readiness::Read)),
        ]
    }

    fn empty_pipe(&self) {
        let mut sink = [0u8; 64];
        while matches!((&self.pipe).read(&mut sink), Ok(1..)) {}
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
        let (pipe, write_end) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        // The write end is never closed: the handler may run at any moment.
        WRITE_END.store(write_end.into_raw_fd(), Ordering::Relaxed);
        for signal in [unix::SIGINT, unix::SIGTERM, unix::SIGHUP, unix::SIGQUIT] {
            if !is_ignored(signal) {
                set_handler(signal, SigHandler::Handler(on_signal));
                let _ = SigSet::from(signal).thread_unblock();
            }
        }
        Ok(Interrupt {
            source: Some(Arc::new(InterruptSource {
                pipe: pipe.into(),
                output: OnceLock::new(),
                type_ahead: OnceLock::new(),
                observer: OnceLock::new(),
            })),
        })
    }

    /// Watches the reader of this pipe: [`Signal::PIPE`] becomes pending as soon as the
    /// reader closes it, even while nothing is written. A file or a terminal has no reader.
    /// Where the reader cannot be watched, the next write reports it.
    pub fn watch_reader(&self, pipe: BorrowedFd<'_>) {
        let has_reader = |file: &File| {
            let kind = file.metadata().map(|metadata| metadata.file_type());
            kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
        };
        if let Some(source) = &self.source
            && let Some(pipe) = pipe.try_clone_to_owned().ok().map(File::from).filter(has_reader)
        {
            let _ = source.output.set(pipe);
        }
    }

    /// Waits once, until a descriptor is ready, a signal arrives, a line is typed or the time
    /// is over. Returns which descriptors are ready. [`Interrupt::pending`] must be called
    /// before the next wait.
    pub(super) fn poll<const N: usize>(
        &self,
        watched: [Watched<'_>; N],
        limit: Option<Duration>,
    ) -> [bool; N] {
        let ready = self.poll_all(&watched, limit);
        array::from_fn(|index| ready[index])
    }

    /// The same for any number of descriptors.
    pub(super) fn poll_all(&self, watched: &[Watched<'_>], limit: Option<Duration>) -> Vec<bool> {
        let mut all = watched.to_vec();
        if let Some(source) = &self.source {
            all.extend(source.watched());
        }
        let mut ready = self.poll_observed(&all, limit);
        if let Some(source) = &self.source
            && ready[watched.len()]
            && PENDING.load(Ordering::Relaxed) == 0
        {
            // A byte without a signal, from a handler that ran in a child process. It would
            // keep the pipe readable.
            source.empty_pipe();
        }
        ready.truncate(watched.len());
        ready
    }

    /// Polls, and calls the observer whenever it is due.
    fn poll_observed(&self, all: &[Watched<'_>], limit: Option<Duration>) -> Vec<bool> {
        let Some(observer) = self.observer() else {
            return poll::poll(all, limit);
        };
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let due = observer.due();
            let next = until.into_iter().chain(due).min();
            let left = next.map(|next| next.saturating_duration_since(Instant::now()));
            let ready = poll::poll(all, left);
            let is_over = until.is_some_and(|until| Instant::now() >= until);
            let is_due = due.is_some_and(|due| Instant::now() >= due);
            if ready.contains(&true) || is_over || !is_due {
                return ready;
            }
            observer.tick();
        }
    }

    fn observer(&self) -> Option<&dyn WaitObserver> {
        self.source.as_ref()?.observer.get().map(|observer| &**observer)
    }

    /// Handlers for a child that was just forked from a process with this interrupt: its signals
    /// and waits are its own from now on.
    #[must_use]
    pub fn install_in_child(&self) -> Interrupt {
        PENDING.store(0, Ordering::Relaxed);
        match &self.source {
            Some(_) => Interrupt::install().unwrap_or(Interrupt::never()),
            None => Interrupt::never(),
        }
    }

    /// Sets what is called while the program waits.
    pub fn observe_waits(&self, observer: Arc<dyn WaitObserver>) {
        if let Some(source) = &self.source {
            let _ = source.observer.set(observer);
        }
    }

    /// Shows the observer what a script has printed.
    pub(super) fn show_output(&self, bytes: &[u8]) {
        if let Some(observer) = self.observer() {
            observer.output(bytes);
        }
    }

    /// Sets whether something else uses the terminal.
    pub(super) fn pause_observer(&self, is_paused: bool) {
        if let Some(observer) = self.observer() {
            observer.pause(is_paused);
        }
    }

    /// Starts collecting lines that the user types at this terminal while the program
    /// waits for something else.
    pub fn collect_typing_from(&self, terminal: BorrowedFd<'_>) {
        if let Some(source) = &self.source
            && let Ok(terminal) = terminal.try_clone_to_owned()
        {
            let _ = source.type_ahead.set(TypeAhead::new(terminal.into()));
        }
    }

    /// Starts or stops collecting lines. Returns whether they were collected before.
    pub fn set_collecting(&self, is_wanted: bool) -> bool {
        self.type_ahead().is_some_and(|type_ahead| type_ahead.set_collecting(is_wanted))
    }

    /// Removes and returns the next collected message.
    pub fn next_typed(&self) -> Option<TypedInput> {
        self.type_ahead()?.next()
    }

    /// Reads what the user types at a prompt, for [`Interrupt::next_typed`]. Waits for its start.
    pub fn read_typed(&self, is_over: impl Fn() -> bool) -> io::Result<()> {
        let type_ahead = self.type_ahead().ok_or(io::ErrorKind::Unsupported)?;
        type_ahead.read_message(is_over).map(|_| ())
    }

    /// Discards all collected messages. Returns whether there were any.
    pub fn discard_typed(&self) -> bool {
        std::iter::from_fn(|| self.next_typed()).count() > 0
    }

    fn type_ahead(&self) -> Option<&TypeAhead> {
        self.source.as_ref()?.type_ahead.get()
    }

    /// The signal that requested a stop, if one arrived. It stays pending.
    pub fn pending(&self) -> Option<Signal> {
        let source = self.source.as_ref()?;
        if let Some(type_ahead) = source.type_ahead.get() {
            type_ahead.collect(|| PENDING.load(Ordering::Relaxed) != 0);
        }
        let is_broken = |output: &File| poll::is_ready((output.as_fd(), Readiness::Broken));
        match PENDING.load(Ordering::Relaxed) {
            0 if source.output.get().is_some_and(is_broken) => Some(Signal::PIPE),
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
        source.empty_pipe();
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
    set_handler(unix::SIGXFSZ, SigHandler::Handler(nothing));
}

/// Ends the process by the signal itself, so that a shell's loop stops too.
/// Must be called last, after all output and cleanup.
pub fn exit_by_signal(signal: Signal) -> ! {
    if let Ok(number) = unix::Signal::try_from(signal.0) {
        set_handler(number, SigHandler::SigDfl);
        let _ = SigSet::from(number).thread_unblock();
        let _ = unix::raise(number);
    }
    after_fork::exit(128 + signal.0)
}
