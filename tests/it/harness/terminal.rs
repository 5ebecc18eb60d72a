//! Runs the real program on a pseudo-terminal.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::capture::Capture;
use super::command::Running;
use super::outcome::Outcome;
use super::workspace::{Stdin, Test};

/// A terminal of 24 rows and 80 columns with the program in its foreground. The kernel handles
/// Ctrl+C and echoes the input, as on a real one. Line ends are the program's own: LF, not CR LF.
pub(crate) struct Terminal {
    running: Running,
    master: Option<File>,
    is_closed: Arc<AtomicBool>,
    /// Position in the output up to which the test has waited.
    searched: usize,
    timeout: Duration,
}

impl Test {
    /// Starts the program on a new terminal, which is its stdin, stdout and stderr, except a
    /// stdin set by the test, and a stream excluded by [`Test::stderr_to_pty_only`] or
    /// [`Test::stdout_to_pty_only`]. A scripted endpoint then lists its model.
    #[track_caller]
    pub(crate) fn spawn_on_terminal(&self) -> Terminal {
        let (master, slave) = open_terminal().expect("the machine has a pseudo-terminal left");
        let end = || -> Stdio { slave.try_clone().expect("a descriptor is free").into() };
        let mut command = self.command();
        command.stdin(match self.stdin {
            Stdin::Default => end(),
            _ => self.configured_stdin(),
        });
        command.stdout(if self.stdout_on_terminal { end() } else { self.configured_stdout() });
        command.stderr(if self.stderr_on_terminal { end() } else { Stdio::piped() });
        let controlling = slave.as_raw_fd();
        // SAFETY: only system calls that are safe between fork and exec; the
        // descriptor is open until `slave` goes, after the start.
        unsafe {
            command.pre_exec(move || {
                check_result(libc::setsid())?;
                check_result(libc::ioctl(controlling, libc::TIOCSCTTY, 0))
            });
        }
        let gone = Arc::new(AtomicBool::new(false));
        let reader = Reader { master: master.try_clone().expect("a descriptor is free"), gone };
        let gone = Arc::clone(&reader.gone);
        let running = self.start_command(&mut command, Capture::start(reader));
        Terminal {
            running,
            master: Some(master),
            is_closed: gone,
            searched: 0,
            timeout: self.timeout,
        }
    }
}

impl Terminal {
    /// Types a text; `\n` is the Enter key.
    #[track_caller]
    pub(crate) fn type_text(&mut self, text: &str) -> &mut Terminal {
        self.send(text.replace('\n', "\r").as_bytes())
    }

    /// Sends these bytes as they are.
    #[track_caller]
    pub(crate) fn type_bytes(&mut self, bytes: &[u8]) -> &mut Terminal {
        self.send(bytes)
    }

    /// Types a line and Enter.
    #[track_caller]
    pub(crate) fn type_line(&mut self, line: &str) -> &mut Terminal {
        self.type_text(&format!("{line}\n"))
    }

    /// Presses Ctrl and a letter: `ctrl('c')`.
    #[track_caller]
    pub(crate) fn ctrl(&mut self, letter: char) -> &mut Terminal {
        self.send(&[u8::try_from(letter).expect("a letter of the keyboard") & 0x1f])
    }

    /// Waits for this text in the output, after the text of the last wait. Typed text is echoed in
    /// the output.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) -> &mut Terminal {
        let deadline = Instant::now() + self.timeout;
        let Some(end) = self.running.terminal_output.wait_for(text, self.searched, deadline) else {
            panic!("no {text:?} on the terminal{}", self.running.transcript())
        };
        self.searched = end;
        self
    }

    /// The terminal output so far.
    pub(crate) fn output(&self) -> String {
        self.running.terminal_output.text()
    }

    /// Changes the size of the window: the program gets SIGWINCH.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) -> &mut Terminal {
        let master = self.master.as_ref().expect("the terminal was closed");
        set_size(master.as_raw_fd(), rows, columns).expect("a terminal has a size");
        self
    }

    /// Closes the terminal's window.
    pub(crate) fn hang_up(&mut self) {
        self.master = None;
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// The running program, for its process id, signals, and streams off the terminal.
    pub(crate) fn running(&mut self) -> &mut Running {
        &mut self.running
    }

    /// Waits for the program's end. The terminal output is in [`Outcome::terminal`].
    #[track_caller]
    pub(crate) fn wait_exit(self) -> Outcome {
        // `self.master` lives until this returns: closing it would be a hang-up.
        let Terminal { running, master, .. } = self;
        let outcome = running.wait();
        drop(master);
        outcome
    }

    #[track_caller]
    fn send(&mut self, bytes: &[u8]) -> &mut Terminal {
        let master = self.master.as_mut().expect("the terminal was closed");
        let sent = master.write_all(bytes);
        sent.unwrap_or_else(|error| panic!("failed to type: {error}{}", self.running.transcript()));
        self
    }
}

/// Reads the terminal's output until the program's side or the window is closed.
struct Reader {
    master: File,
    gone: Arc<AtomicBool>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const POLL_MILLISECONDS: libc::c_int = 20;
        loop {
            if self.gone.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let fd = self.master.as_raw_fd();
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one structure, which outlives the call.
            if unsafe { libc::poll(&raw mut poll, 1, POLL_MILLISECONDS) } > 0 {
                return self.master.read(buffer);
            }
        }
    }
}

/// Opens a new terminal and returns its two sides.
fn open_terminal() -> io::Result<(File, File)> {
    // SAFETY: the descriptor is new and owned from here on.
    let master = unsafe {
        let fd = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        check_result(fd)?;
        File::from_raw_fd(fd)
    };
    let fd: RawFd = master.as_raw_fd();
    let mut name = [0u8; 128];
    // SAFETY: the descriptor is open; the buffer outlives the call and its length is correct.
    unsafe {
        check_result(libc::grantpt(fd))?;
        check_result(libc::unlockpt(fd))?;
        if libc::ptsname_r(fd, name.as_mut_ptr().cast(), name.len()) != 0 {
            return Err(io::Error::other("the terminal has no name"));
        }
    }
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    let slave =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(name)?;
    set_size(fd, 24, 80)?;
    // SAFETY: the structure outlives the calls; the descriptor is open.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        check_result(libc::tcgetattr(slave.as_raw_fd(), &raw mut modes))?;
        modes.c_oflag &= !libc::ONLCR;
        check_result(libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &raw const modes))?;
    }
    Ok((master, slave))
}

fn set_size(fd: RawFd, rows: u16, columns: u16) -> io::Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the structure outlives the call; the descriptor is open.
    check_result(unsafe { libc::ioctl(fd, libc::TIOCSWINSZ, &raw const size) })
}

fn check_result(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
