//! Sandbox that a process enters by itself, without privileges and without namespaces:
//! Landlock for files, a filter of system calls for what Landlock does not cover, resource
//! limits, and no capabilities.
//!
//! [`Sandbox::new`] prepares everything that allocates; [`Sandbox::enter`] runs after a fork
//! and only makes system calls. A sandbox is complete or not entered: if a part of it is
//! unavailable, `new` reports which and why. What is granted is decided by the caller.

mod filter;
mod landlock;

use std::io;
use std::path::PathBuf;
use std::ptr;
use std::thread;
use std::time::Duration;

use base::limits;
use libc::{c_int, c_long};
use nix::sys::sysinfo::sysinfo;

use filter::SyscallFilter;
use landlock::Ruleset;

/// Files that a program may use. All other files can be neither read nor listed; only their
/// existence is visible, since Landlock does not hide it.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// Files and folders (with all below them) to read and execute. Missing ones are
    /// ignored.
    pub read: Vec<PathBuf>,
    /// Folders (with all below them) for all access except creating devices. A missing one is
    /// an error.
    pub write: Vec<PathBuf>,
}

/// Prepared sandbox.
#[derive(Debug)]
pub struct Sandbox {
    ruleset: Ruleset,
    filter: SyscallFilter,
    limits: [(c_long, u64); 6],
}

/// Steps of entering, in order, as named in an error.
const STEPS: [&str; 4] = [
    "setting resource limits",
    "giving up privileges",
    "Landlock",
    "the filter of system calls (seccomp)",
];

/// Tests whether a sandbox is possible, by entering one in a child process. Returns what the
/// kernel supports, or the reason why no sandbox is possible.
pub fn available() -> Result<String, String> {
    let version = landlock::version()?;
    Sandbox::build(version, &Grants::default(), Duration::MAX)?.enter_in_child()?;
    Ok(format!("Landlock {version} and seccomp"))
}

impl Sandbox {
    /// Prepares a sandbox with these grants, for a program with this time limit. The error is
    /// the reason why no sandbox is possible, in words for the user.
    pub fn new(grants: &Grants, limit: Duration) -> Result<Sandbox, String> {
        let version = landlock::version()?;
        let sandbox = Sandbox::build(version, grants, limit)?;
        sandbox.enter_in_child()?;
        Ok(sandbox)
    }

    fn build(version: u32, grants: &Grants, limit: Duration) -> Result<Sandbox, String> {
        let mut ruleset = Ruleset::new(version)?;
        for path in &grants.read {
            ruleset.allow_reading(path);
        }
        for path in &grants.write {
            ruleset
                .allow_writing(path)
                .map_err(|cause| format!("failed to grant `{}`: {cause}", path.display()))?;
        }
        ruleset.allow_devices();
        // A program may use all processors for the whole time; starting takes some extra.
        let processors = thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let seconds = limit.as_secs().saturating_add(limits::SANDBOX_SPARE_SECONDS);
        let memory = limits::SANDBOX_MEMORY_BYTES + processors * limits::SANDBOX_PROCESSOR_BYTES;
        Ok(Sandbox {
            ruleset,
            filter: SyscallFilter::new(version)?,
            limits: [
                (c_long::from(libc::RLIMIT_CPU), seconds.saturating_mul(processors)),
                (c_long::from(libc::RLIMIT_FSIZE), limits::SANDBOX_FILE_BYTES),
                (c_long::from(libc::RLIMIT_CORE), 0),
                (c_long::from(libc::RLIMIT_NOFILE), limits::SANDBOX_DESCRIPTORS),
                (c_long::from(libc::RLIMIT_AS), memory),
                (
                    c_long::from(libc::RLIMIT_NPROC),
                    process_count()
                        + limits::SANDBOX_PROCESSES
                        + processors * limits::SANDBOX_PROCESSOR_PROCESSES,
                ),
            ],
        })
    }

    /// Enters the sandbox permanently. Called after a fork: system calls only, no allocation.
    pub fn enter(&self) -> io::Result<()> {
        self.enter_steps().map_err(|(_, error)| error)
    }

    fn enter_steps(&self) -> Result<(), (u8, io::Error)> {
        let lowered = |(resource, most): &(c_long, u64)| lower_limit(*resource, *most);
        self.limits.iter().try_for_each(lowered).map_err(with_step(0))?;
        give_up_privileges().map_err(with_step(1))?;
        self.ruleset.enforce().map_err(with_step(2))?;
        // Last, because it may deny calls that the other steps need.
        self.filter.install().map_err(with_step(3))
    }

    /// Enters the sandbox in a child that does nothing else, so that a refusal is known with
    /// its reason before a program is started.
    fn enter_in_child(&self) -> Result<(), String> {
        // SAFETY: the child only makes system calls and ends. The parent waits for exactly
        // this child, whose status is written to a local variable.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(match self.enter_steps() {
                    Ok(()) => 0,
                    Err((step, _)) => c_int::from(step) + 1,
                });
            }
            let mut status = 0;
            while child > 0 && libc::waitpid(child, &raw mut status, 0) < 0 {
                if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                    // SIGCHLD is ignored in this process, so the result is unknown.
                    return Ok(());
                }
            }
            if child < 0 {
                let error = io::Error::last_os_error();
                return Err(format!("failed to start a process: {error}"));
            }
            status
        };
        if status == 0 {
            return Ok(());
        }
        let step = usize::try_from(libc::WEXITSTATUS(status) - 1).unwrap_or(STEPS.len() - 1);
        let step = STEPS.get(step).copied().unwrap_or_default();
        Err(format!("{step} is refused, probably by a container's filter or an old kernel"))
    }
}

fn with_step(step: u8) -> impl Fn(io::Error) -> (u8, io::Error) {
    move |error| (step, error)
}

/// Number of processes and threads of the whole system, of which the user's are a part.
fn process_count() -> u64 {
    sysinfo().map_or(0, |system| system.process_count().into())
}

/// Lets this process and its children write no file of more than this many bytes: the write fails.
/// Called after a fork: system calls only.
pub(super) fn limit_file_size(bytes: u64) -> io::Result<()> {
    // SAFETY: plain numbers. Otherwise the signal would end the program without a cause.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    lower_limit(c_long::from(libc::RLIMIT_FSIZE), bytes)
}

/// Lowers a resource limit; never raises it.
fn lower_limit(resource: c_long, most: u64) -> io::Result<()> {
    let change = |new: *const libc::rlimit64, old: *mut libc::rlimit64| {
        // SAFETY: both pointers are null or lead to structures that outlive the call; 0
        // means this process.
        check(unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, new, old) })
    };
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    change(ptr::null(), &raw mut limit)?;
    limit.rlim_max = limit.rlim_max.min(most);
    limit.rlim_cur = limit.rlim_cur.min(limit.rlim_max);
    change(&raw const limit, ptr::null_mut())
}

/// Restricts the signals of this process and its children to themselves, where the kernel
/// supports it (from Linux 6.12). In any case sets no-new-privileges. Called after a fork:
/// system calls only.
pub(super) fn scope_signals() -> io::Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0) })?;
    landlock::scope_signals()
}

/// Header of `capset(2)`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// Sets no-new-privileges and drops all capabilities, including root's.
fn give_up_privileges() -> io::Result<()> {
    const CAPABILITIES_VERSION_3: u32 = 0x2008_0522;
    const NOTHING: [u32; 6] = [0; 6];
    let header = CapabilityHeader { version: CAPABILITIES_VERSION_3, pid: 0 };
    // SAFETY: plain numbers, as wide as the kernel reads them. `header` and `NOTHING` have
    // the layout that version 3 requires and outlive the call.
    unsafe {
        check(prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0))?;
        // Fails after the last capability, and without CAP_SETPCAP. In the second case the
        // bounding set has no effect: no program can gain capabilities any more.
        for capability in 0..64 {
            if prctl(libc::PR_CAPBSET_DROP, capability, 0) < 0 {
                break;
            }
        }
        let clear = c_long::from(libc::PR_CAP_AMBIENT_CLEAR_ALL);
        prctl(libc::PR_CAP_AMBIENT, clear, 0);
        check(libc::syscall(libc::SYS_capset, &raw const header, NOTHING.as_ptr()))
    }
}

/// Calls `prctl(2)` with all arguments, as some of its options require.
unsafe fn prctl(option: c_int, first: c_long, second: c_long) -> c_long {
    const NONE: c_long = 0;
    // SAFETY: the caller guarantees that the arguments are valid for the option.
    unsafe { libc::syscall(libc::SYS_prctl, option, first, second, NONE, NONE) }
}

fn check(answer: c_long) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use nix::fcntl::{self, OFlag};
    use nix::sys::stat::Mode;
    use nix::unistd::truncate;
    use std::ffi::{CStr, CString};
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    /// Exit status of a child that makes this call in the sandbox: 0 if the call succeeds,
    /// otherwise its error.
    fn end_in(sandbox: &Sandbox, call: impl Fn() -> nix::Result<()>) -> i32 {
        // SAFETY: the child only makes system calls, and ends.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(match sandbox.enter() {
                    Err(_) => 255,
                    Ok(()) => call().map_or_else(|error| error as i32, |()| 0),
                });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            libc::WEXITSTATUS(status)
        }
    }

    /// The filter denies truncation that old versions of Landlock allow; every version allows
    /// what is granted.
    #[test]
    fn old_versions_of_landlock_do_not_leak() {
        let Ok(newest) = landlock::version() else {
            return println!("skipped: no Landlock");
        };
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let folder = scratch.path().canonicalize().unwrap();
        let (inside, outside) = (folder.join("inside"), folder.join("outside"));
        fs::create_dir(&inside).unwrap();
        fs::write(&outside, "whole").unwrap();
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
        let (new, outside_name) = (name(&inside.join("new")), name(&outside));
        let grants = Grants { read: vec![folder.clone()], write: vec![inside.clone()] };
        for version in 1..=newest {
            let sandbox = Sandbox::build(version, &grants, Duration::from_secs(9)).unwrap();
            let open = |name: &CStr, flags| fcntl::open(name, flags, Mode::S_IRWXU).map(drop);
            let flags = OFlag::O_CREAT | OFlag::O_RDWR | OFlag::O_TRUNC;
            assert_eq!(end_in(&sandbox, || open(&new, flags)), 0, "{version}");
            assert_eq!(end_in(&sandbox, || open(&outside_name, OFlag::O_RDONLY)), 0, "{version}");
            let truncating = OFlag::O_RDONLY | OFlag::O_TRUNC;
            let end = end_in(&sandbox, || open(&outside_name, truncating));
            assert_eq!(end, libc::EACCES, "{version}");
            let end = end_in(&sandbox, || truncate(outside_name.as_c_str(), 0));
            assert_eq!(end, libc::EACCES, "{version}");
            let end = end_in(&sandbox, || open(&outside_name, OFlag::O_WRONLY));
            assert_eq!(end, libc::EACCES, "{version}");
        }
        assert_eq!(fs::read_to_string(&outside).unwrap(), "whole");
    }
}
