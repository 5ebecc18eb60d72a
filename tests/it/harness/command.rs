//! Starts the real program and observes it until it has ended.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::capture::Capture;
use super::outcome::{Outcome, Transcript};
use super::processes::peak_memory_kib;
use super::seconds;
use super::server::Shared;
use super::stopwatch::Stopwatch;
use super::workspace::{Folder, Stdin, Stdout, Test};

/// How long the streams may stay open after the program has ended. A process that holds them
/// longer would also block a shell's `$(…)`.
const STREAM_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A running program. Dropping this value kills it.
pub(crate) struct Running {
    /// Keeps the folder until the program has ended.
    folder: Arc<Folder>,
    pid: i32,
    started: Instant,
    stopwatch: Stopwatch,
    timeout: Duration,
    stdin: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
    /// Positions in stdout and stderr up to which the test has waited.
    stdout_and_stderr_read: (usize, usize),
    /// Terminal output, if the program runs on a terminal.
    pub(super) terminal_output: Capture,
    args: Vec<OsString>,
    servers: Vec<Arc<Shared>>,
    /// Highest memory use seen so far.
    peak_memory_kib: u64,
    exit: Option<ExitRecord>,
}

/// How the program ended.
#[derive(Clone, Copy)]
pub(super) struct ExitRecord {
    /// The exit status, or -N for signal N.
    pub(super) status: i32,
    pub(super) elapsed: Duration,
    /// Started together with the program.
    pub(super) watch: Stopwatch,
    pub(super) peak_memory_kib: u64,
}

/// The program under test: that of this build, or the one that `SKILLS_RUNNER_BINARY` names, such
/// as a script of this name that runs the program of another processor in an emulator.
pub(crate) fn program() -> PathBuf {
    let other = std::env::var_os("SKILLS_RUNNER_BINARY");
    other.map_or_else(|| env!("CARGO_BIN_EXE_skills-runner").into(), PathBuf::from)
}

impl Test {
    /// Starts the program without waiting for its end.
    #[track_caller]
    pub(crate) fn spawn(&self) -> Running {
        let mut command = self.command();
        command.stdin(match self.stdin {
            Stdin::Default => Stdio::null(),
            _ => self.configured_stdin(),
        });
        command.stdout(self.configured_stdout()).stderr(Stdio::piped());
        self.start_command(&mut command, Capture::empty())
    }

    /// The program with its arguments, environment and folder, without streams.
    pub(super) fn command(&self) -> Command {
        let program = program();
        let program = program.as_path();
        let mut command = match &self.shell {
            None => Command::new(program),
            Some(_) => Command::new("/bin/sh"),
        };
        // As from `PATH`.
        if self.shell.is_none() {
            command.arg0("skills-runner");
        }
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
        unsafe { command.pre_exec(reset_signal_handlers) };
        if let Some(bytes) = self.memory {
            // SAFETY: as above.
            unsafe { command.pre_exec(move || limit_memory(bytes)) };
        }
        command
    }

    /// Stdin as configured by the test.
    #[track_caller]
    pub(super) fn configured_stdin(&self) -> Stdio {
        match &self.stdin {
            Stdin::Default | Stdin::Null => Stdio::null(),
            Stdin::Bytes(_) | Stdin::Open => Stdio::piped(),
            Stdin::File(path) => {
                let file = File::open(path);
                file.unwrap_or_else(|error| panic!("stdin {}: {error}", path.display())).into()
            }
        }
    }

    #[track_caller]
    pub(super) fn configured_stdout(&self) -> Stdio {
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

    /// Starts a command whose streams are set.
    #[track_caller]
    #[expect(clippy::zombie_processes, reason = "`Running` waits, and measures memory meanwhile")]
    pub(super) fn start_command(&self, command: &mut Command, screen: Capture) -> Running {
        // These two request the models as a part of what they do.
        let of_script = |arg: &OsString| arg == "doctor" || arg == "init";
        let lists_models = !self.args.iter().any(of_script);
        self.servers.iter().for_each(|server| server.list_models(lists_models));
        let (started, watch) = (Instant::now(), Stopwatch::start());
        let mut child: Child =
            command.spawn().unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
        let mut stdin = child.stdin.take();
        if let Stdin::Bytes(bytes) = self.stdin.clone() {
            let mut pipe = stdin.take().expect("stdin is a pipe");
            // In the background: the program may write before it has read all.
            thread::spawn(move || pipe.write_all(&bytes));
        }
        Running {
            folder: Arc::clone(&self.folder),
            pid: child.id().try_into().expect("process ids fit `pid_t`"),
            started,
            stopwatch: watch,
            timeout: self.timeout,
            stdin,
            stdout: child.stdout.take().map_or_else(Capture::empty, Capture::start),
            stderr: child.stderr.take().map_or_else(Capture::empty, Capture::start),
            stdout_and_stderr_read: (0, 0),
            terminal_output: screen,
            args: match &self.shell {
                Some(line) => vec!["sh".into(), "-c".into(), line.into()],
                None => self.args.clone(),
            },
            servers: self.servers.clone(),
            peak_memory_kib: 0,
            exit: None,
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
        assert!(self.exit.is_none(), "the program has ended{}", self.transcript());
        // SAFETY: the process is ours and not yet waited for, so the id is still its own.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Kills the program without a chance to clean up.
    #[track_caller]
    pub(crate) fn kill9(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Writes to the pipe opened by [`Test::stdin_open`].
    #[track_caller]
    pub(crate) fn write_stdin(&mut self, bytes: impl AsRef<[u8]>) {
        let pipe = self.stdin.as_mut().expect("stdin is open only after `stdin_open`");
        let written = pipe.write_all(bytes.as_ref());
        written.unwrap_or_else(|error| panic!("failed to write: {error}{}", self.transcript()));
    }

    /// Closes the pipe opened by [`Test::stdin_open`].
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for this text on stderr, after the text of the last wait. Returns everything
    /// between the two ends.
    #[track_caller]
    pub(crate) fn read_stderr_until(&mut self, text: &str) -> String {
        let found = self.stderr.wait_for(
            text,
            self.stdout_and_stderr_read.1,
            Instant::now() + self.timeout,
        );
        let Some(end) = found else { panic!("no {text:?} on stderr{}", self.transcript()) };
        let start = std::mem::replace(&mut self.stdout_and_stderr_read.1, end);
        String::from_utf8_lossy(&self.stderr.bytes()[start..end]).into_owned()
    }

    /// Like [`Running::read_stderr_until`], on stdout.
    #[track_caller]
    pub(crate) fn read_stdout_until(&mut self, text: &str) -> String {
        let found = self.stdout.wait_for(
            text,
            self.stdout_and_stderr_read.0,
            Instant::now() + self.timeout,
        );
        let Some(end) = found else { panic!("no {text:?} on stdout{}", self.transcript()) };
        let start = std::mem::replace(&mut self.stdout_and_stderr_read.0, end);
        String::from_utf8_lossy(&self.stdout.bytes()[start..end]).into_owned()
    }

    /// Whether the program is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        self.poll_exit();
        self.exit.is_none()
    }

    /// Waits for the program's end, at most for the duration given to [`Test::timeout`], and
    /// makes the checks that apply to every run.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Outcome {
        let deadline = self.started + self.timeout;
        while self.is_running() {
            if Instant::now() >= deadline {
                self.kill_and_reap();
                panic!("the program took longer than {:?}{}", self.timeout, self.transcript());
            }
            thread::sleep(self.poll_interval());
        }
        self.stdin = None;
        let deadline = Instant::now() + STREAM_CLOSE_TIMEOUT;
        let streams = [
            ("stdout", &self.stdout),
            ("stderr", &self.stderr),
            ("the terminal", &self.terminal_output),
        ];
        for (name, stream) in streams {
            assert!(
                stream.wait_for_end(deadline),
                "the program has ended, but {name} is still open{}",
                self.transcript()
            );
        }
        let ended = self.exit.expect("it was waited for");
        Outcome::new(ended, self.transcript(), Arc::clone(&self.folder))
    }

    /// Time between two polls. Short runs are polled often, so that their memory use is seen; long
    /// ones rarely, so that polling does not slow the machine.
    fn poll_interval(&self) -> Duration {
        (self.started.elapsed() / 50).clamp(Duration::from_millis(1), Duration::from_millis(5))
    }

    /// Everything known so far, for the message of a failed assertion.
    pub(super) fn transcript(&self) -> Transcript {
        Transcript {
            args: self.args.clone(),
            status: self.exit.map(|ended| ended.status),
            stdout: self.stdout.bytes(),
            stderr: self.stderr.bytes(),
            terminal: self.terminal_output.bytes(),
            servers: self.servers.clone(),
        }
    }

    /// Kills and reaps a program that is still running.
    fn kill_and_reap(&mut self) {
        if self.is_running() {
            self.signal(libc::SIGKILL);
            while self.is_running() {
                thread::sleep(Duration::from_millis(1));
            }
            // The reading threads may not have seen its last output yet.
            let deadline = Instant::now() + seconds(0.2);
            self.stdout.wait_for_end(deadline);
            self.stderr.wait_for_end(deadline);
        }
    }

    /// Reaps the program if it has ended.
    fn poll_exit(&mut self) {
        if self.exit.is_some() {
            return;
        }
        // Read first: it disappears with the process.
        self.peak_memory_kib =
            peak_memory_kib(self.pid).unwrap_or_default().max(self.peak_memory_kib);
        let mut status = 0;
        // SAFETY: `status` outlives the call; the child is ours and no other code waits for it.
        let waited = unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) };
        if waited == 0 {
            return;
        }
        assert_eq!(waited, self.pid, "failed to wait: {}", io::Error::last_os_error());
        self.exit = Some(ExitRecord {
            status: if libc::WIFSIGNALED(status) {
                -libc::WTERMSIG(status)
            } else {
                libc::WEXITSTATUS(status)
            },
            elapsed: self.started.elapsed(),
            watch: self.stopwatch,
            peak_memory_kib: self.peak_memory_kib,
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill_and_reap();
        }
    }
}

/// Resets all signals to their defaults. A test suite that a shell runs in the background or
/// under `nohup` ignores some signals, and programs inherit that.
pub(crate) fn reset_signal_handlers() -> io::Result<()> {
    const LAST: libc::c_int = 31;
    // SAFETY: safe between fork and exec; the set is initialized before it is used.
    unsafe {
        for number in 1..=LAST {
            // SIGKILL and SIGSTOP cannot be changed, and need not be.
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

/// Limits the memory that a program can write to, including its stack, but not its code.
fn limit_memory(bytes: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: safe between fork and exec; the structure outlives the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
