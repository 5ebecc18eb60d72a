//! The real program, running.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::capture::Capture;
use super::outcome::{Outcome, Picture};
use super::processes::peak_memory_kib;
use super::seconds;
use super::server::Shared;
use super::stopwatch::Stopwatch;
use super::workspace::{Folder, Stdin, Stdout, Test};

/// How long the streams may stay open after the program's end. Whoever holds
/// them longer would also hold up a shell's `$(…)`.
const STREAM_PATIENCE: Duration = Duration::from_secs(5);

/// A program that runs. Dropping it kills it.
pub(crate) struct Running {
    /// Keeps the folder until the program has ended.
    folder: Arc<Folder>,
    pid: i32,
    started: Instant,
    watch: Stopwatch,
    timeout: Duration,
    stdin: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
    /// How much of stdout and stderr the test has waited for.
    read: (usize, usize),
    /// What came to the terminal, for a program that has one.
    pub(super) screen: Capture,
    args: Vec<OsString>,
    servers: Vec<Arc<Shared>>,
    /// The program's most memory, as far as it was looked at.
    seen_kib: u64,
    ended: Option<Ended>,
}

/// How it ended.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    /// The exit status, or -N for signal N.
    pub(super) status: i32,
    pub(super) elapsed: Duration,
    /// Started with it.
    pub(super) watch: Stopwatch,
    pub(super) peak_memory_kib: u64,
}

impl Test {
    /// Starts the program and lets it run.
    #[track_caller]
    pub(crate) fn spawn(&self) -> Running {
        let mut command = self.command();
        command.stdin(match self.stdin {
            Stdin::Unsaid => Stdio::null(),
            _ => self.said_stdin(),
        });
        command.stdout(self.said_stdout()).stderr(Stdio::piped());
        self.start(&mut command, Capture::nothing())
    }

    /// The program with its arguments, environment and folder; no streams yet.
    pub(super) fn command(&self) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_skills-runner"));
        let mut command = match &self.shell {
            None => Command::new(program),
            Some(_) => Command::new("/bin/sh"),
        };
        command.env_clear().envs(&self.env).current_dir(&self.cwd);
        if let Some(line) = &self.shell {
            let mut path =
                program.parent().expect("a program lies in a folder").as_os_str().to_owned();
            path.push(":");
            path.push(self.env.get(OsStr::new("PATH")).cloned().unwrap_or_default());
            command.env("PATH", path).args(["-c", line, "sh"]);
        }
        command.args(&self.args);
        // SAFETY: only system calls that are safe between fork and exec.
        unsafe { command.pre_exec(forget_signals) };
        if let Some(bytes) = self.memory {
            // SAFETY: as above.
            unsafe { command.pre_exec(move || bound_memory(bytes)) };
        }
        command
    }

    /// Stdin as the test said, for one that has said something.
    #[track_caller]
    pub(super) fn said_stdin(&self) -> Stdio {
        match &self.stdin {
            Stdin::Unsaid | Stdin::Null => Stdio::null(),
            Stdin::Bytes(_) | Stdin::Open => Stdio::piped(),
            Stdin::File(path) => {
                let file = File::open(path);
                file.unwrap_or_else(|error| panic!("stdin {}: {error}", path.display())).into()
            }
        }
    }

    #[track_caller]
    pub(super) fn said_stdout(&self) -> Stdio {
        match &self.stdout {
            Stdout::Captured => Stdio::piped(),
            Stdout::Closed => {
                let (kept, dropped) = UnixStream::pair().expect("two descriptors are free");
                // A process that another test has just forked may hold a copy.
                let _ = dropped.shutdown(Shutdown::Both);
                OwnedFd::from(kept).into()
            }
            Stdout::File(path) => {
                let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
                file.unwrap_or_else(|error| panic!("stdout {}: {error}", path.display())).into()
            }
        }
    }

    /// Starts what has its streams.
    #[track_caller]
    #[expect(clippy::zombie_processes, reason = "`Running` waits, in a way that tells the memory")]
    pub(super) fn start(&self, command: &mut Command, screen: Capture) -> Running {
        let (started, watch) = (Instant::now(), Stopwatch::start());
        let mut child: Child =
            command.spawn().unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
        let mut stdin = child.stdin.take();
        if let Stdin::Bytes(bytes) = self.stdin.clone() {
            let mut pipe = stdin.take().expect("it was made a pipe");
            // In the background: the program may write before it has read all.
            thread::spawn(move || pipe.write_all(&bytes));
        }
        Running {
            folder: Arc::clone(&self.folder),
            pid: child.id().try_into().expect("process ids fit `pid_t`"),
            started,
            watch,
            timeout: self.timeout,
            stdin,
            stdout: child.stdout.take().map_or_else(Capture::nothing, Capture::of),
            stderr: child.stderr.take().map_or_else(Capture::nothing, Capture::of),
            read: (0, 0),
            screen,
            args: match &self.shell {
                Some(line) => vec!["sh".into(), "-c".into(), line.into()],
                None => self.args.clone(),
            },
            servers: self.servers.clone(),
            seen_kib: 0,
            ended: None,
        }
    }
}

impl Running {
    /// The program's process id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal to the program alone, as `kill` does.
    #[track_caller]
    pub(crate) fn signal(&self, signal: i32) {
        assert!(self.ended.is_none(), "the program has ended{}", self.picture());
        // SAFETY: the process is ours and not yet waited for, so the id is still its own.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Kills the program without a chance to clean up.
    #[track_caller]
    pub(crate) fn kill9(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Writes to the pipe of [`Test::stdin_open`].
    #[track_caller]
    pub(crate) fn write_stdin(&mut self, bytes: impl AsRef<[u8]>) {
        let pipe = self.stdin.as_mut().expect("only `stdin_open` leaves something to write to");
        let written = pipe.write_all(bytes.as_ref());
        written.unwrap_or_else(|error| panic!("failed to write: {error}{}", self.picture()));
    }

    /// Ends the pipe of [`Test::stdin_open`].
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until this text comes on stderr, behind what was waited for
    /// before, and gives everything up to its end.
    #[track_caller]
    pub(crate) fn read_stderr_until(&mut self, text: &str) -> String {
        let found = self.stderr.find(text, self.read.1, Instant::now() + self.timeout);
        let Some(end) = found else { panic!("no {text:?} on stderr{}", self.picture()) };
        let start = std::mem::replace(&mut self.read.1, end);
        String::from_utf8_lossy(&self.stderr.bytes()[start..end]).into_owned()
    }

    /// The same on stdout.
    #[track_caller]
    pub(crate) fn read_stdout_until(&mut self, text: &str) -> String {
        let found = self.stdout.find(text, self.read.0, Instant::now() + self.timeout);
        let Some(end) = found else { panic!("no {text:?} on stdout{}", self.picture()) };
        let start = std::mem::replace(&mut self.read.0, end);
        String::from_utf8_lossy(&self.stdout.bytes()[start..end]).into_owned()
    }

    /// Whether the program has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        self.look();
        self.ended.is_none()
    }

    /// Waits for the program's end, at most as long as [`Test::timeout`] says,
    /// and checks what holds for every run.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Outcome {
        let deadline = self.started + self.timeout;
        while self.is_running() {
            if Instant::now() >= deadline {
                self.stop();
                panic!("the program took longer than {:?}{}", self.timeout, self.picture());
            }
            thread::sleep(self.pause());
        }
        self.stdin = None;
        let deadline = Instant::now() + STREAM_PATIENCE;
        let streams =
            [("stdout", &self.stdout), ("stderr", &self.stderr), ("the terminal", &self.screen)];
        for (name, stream) in streams {
            assert!(
                stream.end(deadline),
                "the program has ended, and something still holds {name}{}",
                self.picture()
            );
        }
        let ended = self.ended.expect("it was waited for");
        Outcome::of(ended, self.picture(), Arc::clone(&self.folder))
    }

    /// Short programs are looked at often, lest they end unseen; long ones
    /// leave the machine to those that work.
    fn pause(&self) -> Duration {
        (self.started.elapsed() / 50).clamp(Duration::from_millis(1), Duration::from_millis(5))
    }

    /// Everything known so far, for the message of an assertion that failed.
    pub(super) fn picture(&self) -> Picture {
        Picture {
            args: self.args.clone(),
            status: self.ended.map(|ended| ended.status),
            stdout: self.stdout.bytes(),
            stderr: self.stderr.bytes(),
            terminal: self.screen.bytes(),
            servers: self.servers.clone(),
        }
    }

    /// Kills and buries a program that has not ended by itself.
    fn stop(&mut self) {
        if self.is_running() {
            self.signal(libc::SIGKILL);
            while self.is_running() {
                thread::sleep(Duration::from_millis(1));
            }
            // What it wrote last is on its way through the readers.
            let deadline = Instant::now() + seconds(0.2);
            self.stdout.end(deadline);
            self.stderr.end(deadline);
        }
    }

    /// Takes the program's end, if it has come.
    fn look(&mut self) {
        if self.ended.is_some() {
            return;
        }
        // Gone with the process, so it is asked for first.
        self.seen_kib = peak_memory_kib(self.pid).unwrap_or_default().max(self.seen_kib);
        let mut status = 0;
        // SAFETY: it outlives the call; the child is ours and nobody else waits for it.
        let waited = unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) };
        if waited == 0 {
            return;
        }
        assert_eq!(waited, self.pid, "failed to wait: {}", io::Error::last_os_error());
        self.ended = Some(Ended {
            status: if libc::WIFSIGNALED(status) {
                -libc::WTERMSIG(status)
            } else {
                libc::WEXITSTATUS(status)
            },
            elapsed: self.started.elapsed(),
            watch: self.watch,
            peak_memory_kib: self.seen_kib,
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.stop();
        }
    }
}

/// Signals are part of the environment: a test suite that a shell runs in the
/// background, or under `nohup`, ignores some, and programs inherit that.
pub(crate) fn forget_signals() -> io::Result<()> {
    const LAST: libc::c_int = 31;
    // SAFETY: safe between fork and exec; the set is made before it is used.
    unsafe {
        for number in 1..=LAST {
            // Two of them cannot be changed, and need not be.
            libc::signal(number, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// What a program writes to, its stack included; not its code.
fn bound_memory(bytes: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: safe between fork and exec; the structure outlives the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
