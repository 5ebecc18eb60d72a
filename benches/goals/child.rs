//! Measures whole processes from outside, including loading and exiting. Nothing that a
//! program reports about itself is used.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::deadline::{self, Deadline};

/// A measured program with its arguments and its whole environment.
#[derive(Clone)]
pub(crate) struct Contender {
    /// The name in the table.
    pub name: &'static str,
    program: PathBuf,
    folder: PathBuf,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

/// The times of one run in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// The time from before the start until the exit was noticed.
    pub wall: f64,
    /// User and system time of the process and the children it waited for.
    pub cpu: f64,
}

impl Contender {
    /// A contender with an empty environment.
    pub(crate) fn new(name: &'static str, program: &Path, folder: &Path) -> Contender {
        Contender {
            name,
            program: program.into(),
            folder: folder.into(),
            args: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Sets the working folder.
    pub(crate) fn in_folder(mut self, folder: impl Into<PathBuf>) -> Contender {
        self.folder = folder.into();
        self
    }

    /// Adds arguments.
    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Contender {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Contender {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The command of a run. Standard output is /dev/null, which favours programs that write
    /// often.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Runs it and returns its standard output, to check that it does what is measured.
    pub(crate) fn output(&self) -> Result<Vec<u8>, String> {
        let mut command = self.command();
        let output = deadline::output(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let output = output.map_err(|error| format!("failed to run {}: {error}", self.name))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} ended with {}: {stderr}", self.name, output.status));
        }
        Ok(output.stdout)
    }

    /// Fails unless it prints exactly `expected`.
    pub(crate) fn expect_output(self, expected: &[u8]) -> Result<Contender, String> {
        let stdout = self.output()?;
        if stdout != expected {
            let shown = String::from_utf8_lossy(&stdout[..stdout.len().min(200)]).into_owned();
            return Err(format!(
                "{} printed {} bytes that are not the {} expected: {shown}",
                self.name,
                stdout.len(),
                expected.len()
            ));
        }
        Ok(self)
    }

    /// Runs it once. The deadline adds two system calls to the measured time.
    pub(crate) fn run(&self) -> Result<Cost, String> {
        let failed = |error| format!("failed to run {}: {error}", self.name);
        let mut command = self.command();
        let began = Instant::now();
        let child = command.spawn().map_err(failed)?;
        let pid = i32::try_from(child.id()).map_err(|error| error.to_string())?;
        let deadline = Deadline::start(pid);
        let waited = wait(pid);
        let wall = began.elapsed().as_secs_f64() * 1e3;
        let (status, usage) = deadline.finish(waited).map_err(failed)?;
        if status != 0 {
            return Err(format!("{} ended with wait status {status}", self.name));
        }
        let milliseconds = |time: libc::timeval| {
            f64::from(i32::try_from(time.tv_sec).unwrap_or(i32::MAX)) * 1e3
                + f64::from(i32::try_from(time.tv_usec).unwrap_or(0)) / 1e3
        };
        let cpu = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
        Ok(Cost { wall, cpu })
    }

    /// The peak memory in bytes. `wait4` does not report it: its value is at least the memory
    /// of the parent at the fork, which is larger than the smallest contenders. So the kernel
    /// is asked just before the process's memory is freed, when a tracer may stop it.
    pub(crate) fn peak(&self) -> Result<f64, String> {
        let failed = |error: io::Error| format!("failed to trace {}: {error}", self.name);
        let mut command = self.command();
        // SAFETY: between fork and exec only this call is made, which is safe there.
        unsafe {
            command.pre_exec(|| trace(libc::PTRACE_TRACEME, 0, 0).map(drop));
        }
        let child = command.spawn().map_err(failed)?;
        let pid = i32::try_from(child.id()).map_err(|error| error.to_string())?;
        let deadline = Deadline::start(pid);
        let watched = watch(pid);
        if watched.is_err() {
            // It may be stopped and would never exit.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            let _ = wait(pid);
        }
        match deadline.finish(watched).map_err(failed)? {
            (0, Some(peak)) => Ok(peak),
            (0, None) => Err(format!("{} was not seen at its end", self.name)),
            (status, _) => Err(format!("{} ended with wait status {status}", self.name)),
        }
    }
}

/// Lets a traced child run to its end. Returns its wait status and its peak memory just
/// before.
fn watch(pid: i32) -> io::Result<(i32, Option<f64>)> {
    let (mut status, _) = wait(pid)?;
    let options = i64::from(libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_EXITKILL);
    trace(libc::PTRACE_SETOPTIONS, pid, options)?;
    let mut peak = None;
    while libc::WIFSTOPPED(status) {
        if status >> 8 == libc::SIGTRAP | (libc::PTRACE_EVENT_EXIT << 8) {
            peak = high_water(pid);
        }
        let signal = match libc::WSTOPSIG(status) {
            libc::SIGTRAP => 0,
            signal => signal,
        };
        trace(libc::PTRACE_CONT, pid, i64::from(signal))?;
        (status, _) = wait(pid)?;
    }
    Ok((status, peak))
}

/// The kernel's `VmHWM` in bytes.
fn high_water(pid: i32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// Waits for a state change of this child and returns its resource usage, which `std` cannot
/// do.
fn wait(pid: i32) -> io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all zeros is a value of this type, which holds numbers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both places are ours and outlive the call.
        if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } == pid {
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(target_env = "musl")]
type Request = i32;
#[cfg(not(target_env = "musl"))]
type Request = u32;

fn trace(request: Request, pid: i32, data: i64) -> io::Result<i64> {
    // SAFETY: no request that is made here reads or writes memory of this process.
    let result = unsafe { libc::ptrace(request, pid, 0_i64, data) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
