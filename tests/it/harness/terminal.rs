//! The real program on a real terminal.

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

/// A terminal of 24 lines of 80 characters with the program in front. Ctrl+C
/// reaches it from the kernel, as at a real one, and what is typed is echoed.
/// Line ends come as the program writes them: LF, not CR LF.
pub(crate) struct Terminal {
    running: Running,
    master: Option<File>,
    gone: Arc<AtomicBool>,
    /// How much of the screen the test has waited for.
    seen: usize,
    timeout: Duration,
}

impl Test {
    /// Starts the program on a terminal of its own: stdin, stdout and stderr,
    /// but for stdin when the test has given one, and what
    /// [`Test::stderr_to_pty_only`] or [`Test::stdout_to_pty_only`] take off it.
    /// A scripted endpoint lists its model there.
    #[track_caller]
    pub(crate) fn terminal(&self) -> Terminal {
        self.servers.iter().for_each(|server| server.list_models());
        let (master, slave) = open().expect("the machine has a pseudo-terminal left");
        let end = || -> Stdio { slave.try_clone().expect("a descriptor is free").into() };
        let mut command = self.command();
        command.stdin(match self.stdin {
            Stdin::Unsaid => end(),
            _ => self.said_stdin(),
        });
        command.stdout(if self.stdout_on_terminal { end() } else { self.said_stdout() });
        command.stderr(if self.stderr_on_terminal { end() } else { Stdio::piped() });
        let controlling = slave.as_raw_fd();
        // SAFETY: only system calls that are safe between fork and exec; the
        // descriptor is open until `slave` goes, after the start.
        unsafe {
            command.pre_exec(move || {
                succeeded(libc::setsid())?;
                succeeded(libc::ioctl(controlling, libc::TIOCSCTTY, 0))
            });
        }
        let gone = Arc::new(AtomicBool::new(false));
        let reader = Reader { master: master.try_clone().expect("a descriptor is free"), gone };
        let gone = Arc::clone(&reader.gone);
        let running = self.start(&mut command, Capture::of(reader));
        Terminal { running, master: Some(master), gone, seen: 0, timeout: self.timeout }
    }
}

impl Terminal {
    /// Types this; `\n` is the Enter key.
    #[track_caller]
    pub(crate) fn type_text(&mut self, text: &str) -> &mut Terminal {
        self.send(text.replace('\n', "\r").as_bytes())
    }

    /// Types a line and Enter.
    #[track_caller]
    pub(crate) fn type_line(&mut self, line: &str) -> &mut Terminal {
        self.type_text(&format!("{line}\n"))
    }

    /// Holds Ctrl and presses a letter: `ctrl('c')`.
    #[track_caller]
    pub(crate) fn ctrl(&mut self, letter: char) -> &mut Terminal {
        self.send(&[u8::try_from(letter).expect("a letter of the keyboard") & 0x1f])
    }

    /// Waits until this shows, behind what was waited for before. What was
    /// typed shows too.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) -> &mut Terminal {
        let deadline = Instant::now() + self.timeout;
        let Some(end) = self.running.screen.find(text, self.seen, deadline) else {
            panic!("no {text:?} on the terminal{}", self.running.picture())
        };
        self.seen = end;
        self
    }

    /// Everything that came to the terminal so far.
    pub(crate) fn output(&self) -> String {
        self.running.screen.text()
    }

    /// Changes the window's size, as dragging its corner does: the program gets
    /// SIGWINCH.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) -> &mut Terminal {
        let master = self.master.as_ref().expect("the terminal was closed");
        set_size(master.as_raw_fd(), rows, columns).expect("a terminal has a size");
        self
    }

    /// Closes the terminal's window.
    pub(crate) fn hang_up(&mut self) {
        self.master = None;
        self.gone.store(true, Ordering::Relaxed);
    }

    /// The program, for its process id, its signals, and what is no terminal.
    pub(crate) fn running(&mut self) -> &mut Running {
        &mut self.running
    }

    /// Waits for the program's end. What came to the terminal is
    /// [`Outcome::terminal`], the rest is where it always is.
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
        sent.unwrap_or_else(|error| panic!("failed to type: {error}{}", self.running.picture()));
        self
    }
}

/// Reads the terminal's output, until the program's side or the window is closed.
struct Reader {
    master: File,
    gone: Arc<AtomicBool>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const LOOK_MILLISECONDS: libc::c_int = 20;
        loop {
            if self.gone.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let fd = self.master.as_raw_fd();
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one structure, which outlives the call.
            if unsafe { libc::poll(&raw mut poll, 1, LOOK_MILLISECONDS) } > 0 {
                return self.master.read(buffer);
            }
        }
    }
}

/// Both sides of a new terminal.
fn open() -> io::Result<(File, File)> {
    // SAFETY: the descriptor is new and owned from here on.
    let master = unsafe {
        let fd = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        succeeded(fd)?;
        File::from_raw_fd(fd)
    };
    let fd: RawFd = master.as_raw_fd();
    let mut name = [0u8; 128];
    // SAFETY: the descriptor is open; the buffer outlives the call and its length is true.
    unsafe {
        succeeded(libc::grantpt(fd))?;
        succeeded(libc::unlockpt(fd))?;
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
        succeeded(libc::tcgetattr(slave.as_raw_fd(), &raw mut modes))?;
        modes.c_oflag &= !libc::ONLCR;
        succeeded(libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &raw const modes))?;
    }
    Ok((master, slave))
}

fn set_size(fd: RawFd, rows: u16, columns: u16) -> io::Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the structure outlives the call; the descriptor is open.
    succeeded(unsafe { libc::ioctl(fd, libc::TIOCSWINSZ, &raw const size) })
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
