//! A sandbox that a program puts on itself, without privileges and without
//! namespaces: Landlock for files, a filter of system calls for what Landlock
//! does not know, limits of resources, and no capabilities.
//!
//! [`Sandbox::new`] prepares everything that allocates; [`Sandbox::enter`] runs
//! after a fork and makes plain system calls only. There is no half sandbox:
//! where a part of it cannot be had, `new` says which and why. Who is granted
//! what is not decided here.

mod filter;
mod landlock;

use std::fmt;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::ptr;
use std::thread;
use std::time::Duration;

use crate::limits;
use libc::{c_int, c_long};

use filter::SyscallFilter;
use landlock::Ruleset;

/// What a program may do with files. Nothing else is granted: neither reading nor
/// listing. That something exists can always be seen, as Landlock does not hide it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grants {
    /// Files and folders with all below them, to read and to execute. What is
    /// missing is passed over.
    pub read: Vec<PathBuf>,
    /// Folders with all below them, to do everything in but make devices. One that
    /// is missing is a failure.
    pub write: Vec<PathBuf>,
}

/// A sandbox, ready to be entered.
#[derive(Debug)]
pub(crate) struct Sandbox {
    ruleset: Ruleset,
    filter: SyscallFilter,
    limits: [(c_long, u64); 6],
}

/// What this kernel offers for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    /// The version of Landlock's interface, from 1.
    pub landlock: u32,
}

impl fmt::Display for Available {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Landlock {} and seccomp", self.landlock)
    }
}

/// Why there can be no sandbox, in words for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable(String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The steps of entering, in their order.
const STEPS: [&str; 4] = [
    "the limits of resources",
    "giving up privileges",
    "Landlock",
    "the filter of system calls (seccomp)",
];

/// Finds out by really entering one, in a process of its own.
pub(crate) fn available() -> Result<Available, Unavailable> {
    let version = landlock::version().map_err(Unavailable)?;
    Sandbox::build(version, &Grants::default(), Duration::MAX)?.try_out()?;
    Ok(Available { landlock: version })
}

impl Sandbox {
    /// Prepares a sandbox with these grants, for a program that has `limit`.
    pub(crate) fn new(grants: &Grants, limit: Duration) -> Result<Sandbox, Unavailable> {
        let version = landlock::version().map_err(Unavailable)?;
        let sandbox = Sandbox::build(version, grants, limit)?;
        sandbox.try_out()?;
        Ok(sandbox)
    }

    fn build(version: u32, grants: &Grants, limit: Duration) -> Result<Sandbox, Unavailable> {
        let mut ruleset = Ruleset::new(version).map_err(Unavailable)?;
        for path in &grants.read {
            ruleset.allow_reading(path);
        }
        for path in &grants.write {
            ruleset.allow_writing(path).map_err(|error| failed("grant", path, &error))?;
        }
        ruleset.allow_devices();
        // Every processor may count the whole time, and a start takes some.
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
                    running()
                        + limits::SANDBOX_PROCESSES
                        + processors * limits::SANDBOX_PROCESSOR_PROCESSES,
                ),
            ],
        })
    }

    /// Enters it, for good. After a fork: system calls only, no allocation.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.enter_steps().map_err(|(_, error)| error)
    }

    fn enter_steps(&self) -> Result<(), (u8, io::Error)> {
        let lowered = |(resource, most): &(c_long, u64)| lower_limit(*resource, *most);
        self.limits.iter().try_for_each(lowered).map_err(at(0))?;
        give_up_privileges().map_err(at(1))?;
        self.ruleset.enforce().map_err(at(2))?;
        // Last: it may forbid what the steps before need.
        self.filter.install().map_err(at(3))
    }

    /// Enters it in a child that does nothing else, so that a refusal is known
    /// with its reason before a program is started.
    fn try_out(&self) -> Result<(), Unavailable> {
        // SAFETY: the child makes system calls only and ends; the parent waits for
        // exactly this child, whose status goes to a local.
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
                    // Somebody ignores the ends of children: nothing is known.
                    return Ok(());
                }
            }
            if child < 0 {
                let error = io::Error::last_os_error();
                return Err(Unavailable(format!("no process can be started: {error}")));
            }
            status
        };
        if status == 0 {
            return Ok(());
        }
        let step = usize::try_from(libc::WEXITSTATUS(status) - 1).unwrap_or(STEPS.len() - 1);
        let step = STEPS.get(step).copied().unwrap_or_default();
        Err(Unavailable(format!(
            "{step} is refused, as by a container's own filter or an old kernel"
        )))
    }
}

fn at(step: u8) -> impl Fn(io::Error) -> (u8, io::Error) {
    move |error| (step, error)
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> Unavailable {
    Unavailable(format!("failed to {verb} `{}`: {error}", path.display()))
}

/// The number of processes and threads of the whole system, which are at least the user's.
fn running() -> u64 {
    // SAFETY: a structure of plain numbers on this stack, filled by the call.
    unsafe {
        let mut system: libc::sysinfo = mem::zeroed();
        libc::sysinfo(&raw mut system);
        system.procs.into()
    }
}

/// Lowers a limit; one that is lower already stays.
fn lower_limit(resource: c_long, most: u64) -> io::Result<()> {
    let change = |new: *const libc::rlimit64, old: *mut libc::rlimit64| {
        // SAFETY: both are null or lead to structures that outlive the call; 0 is
        // this process.
        check(unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, new, old) })
    };
    // SAFETY: two plain numbers, for which zero is a valid value.
    let mut limit: libc::rlimit64 = unsafe { mem::zeroed() };
    change(ptr::null(), &raw mut limit)?;
    limit.rlim_max = limit.rlim_max.min(most);
    limit.rlim_cur = limit.rlim_cur.min(limit.rlim_max);
    change(&raw const limit, ptr::null_mut())
}

/// Keeps the signals of this process and its children among themselves, where the
/// kernel can (from Linux 6.12). No new privileges from here on, either way. After a
/// fork: system calls only.
pub(super) fn scope_signals() -> io::Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { set(libc::PR_SET_NO_NEW_PRIVS, 1, 0) })?;
    landlock::scope_signals()
}

/// The header of `capset(2)`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// No program gets more rights by being started, and root's are gone.
fn give_up_privileges() -> io::Result<()> {
    const CAPABILITIES_VERSION_3: u32 = 0x2008_0522;
    const NOTHING: [u32; 6] = [0; 6];
    let header = CapabilityHeader { version: CAPABILITIES_VERSION_3, pid: 0 };
    // SAFETY: plain numbers, as wide as the kernel reads them; `header` and
    // `NOTHING` have the form that version 3 demands and outlive the call.
    unsafe {
        check(set(libc::PR_SET_NO_NEW_PRIVS, 1, 0))?;
        // Refused without CAP_SETPCAP, and beyond the last one: then there is
        // nothing to take, or it is no use without a program that gives it.
        for capability in 0..64 {
            if set(libc::PR_CAPBSET_DROP, capability, 0) < 0 {
                break;
            }
        }
        let clear = c_long::from(libc::PR_CAP_AMBIENT_CLEAR_ALL);
        set(libc::PR_CAP_AMBIENT, clear, 0);
        check(libc::syscall(libc::SYS_capset, &raw const header, NOTHING.as_ptr()))
    }
}

/// `prctl(2)` with all its arguments, as some of its options demand.
unsafe fn set(option: c_int, first: c_long, second: c_long) -> c_long {
    const NONE: c_long = 0;
    // SAFETY: the caller vouches for the arguments.
    unsafe { libc::syscall(libc::SYS_prctl, option, first, second, NONE, NONE) }
}

fn check(answer: c_long) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::scratch::Scratch;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    /// How a child in this sandbox ends: 0 if the call succeeds, else its error.
    fn end_in(sandbox: &Sandbox, call: impl Fn() -> c_long) -> i32 {
        // SAFETY: the child makes system calls only, and ends.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let end = match sandbox.enter() {
                    Err(_) => 255,
                    Ok(()) if call() >= 0 => 0,
                    Ok(()) => *libc::__errno_location(),
                };
                libc::_exit(end);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            libc::WEXITSTATUS(status)
        }
    }

    /// What a Landlock that does not know of truncation lets through, the filter stops;
    /// every version leaves what is granted alone.
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
        let name = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
        let (new, outside_name) = (name(&inside.join("new")), name(&outside));
        let grants = Grants { read: vec![folder.clone()], write: vec![inside.clone()] };
        for version in 1..=newest {
            let sandbox = Sandbox::build(version, &grants, Duration::from_secs(9)).unwrap();
            // SAFETY: both names end with NUL and outlive the calls.
            let open = |name: &std::ffi::CString, flags| unsafe {
                c_long::from(libc::open(name.as_ptr(), flags, 0o600))
            };
            let made = libc::O_CREAT | libc::O_RDWR | libc::O_TRUNC;
            assert_eq!(end_in(&sandbox, || open(&new, made)), 0, "{version}");
            assert_eq!(end_in(&sandbox, || open(&outside_name, libc::O_RDONLY)), 0, "{version}");
            let truncating = libc::O_RDONLY | libc::O_TRUNC;
            let end = end_in(&sandbox, || open(&outside_name, truncating));
            assert_eq!(end, libc::EACCES, "{version}");
            // SAFETY: as above.
            let end = end_in(&sandbox, || unsafe {
                c_long::from(libc::truncate(outside_name.as_ptr(), 0))
            });
            assert_eq!(end, libc::EACCES, "{version}");
            let end = end_in(&sandbox, || open(&outside_name, libc::O_WRONLY));
            assert_eq!(end, libc::EACCES, "{version}");
        }
        assert_eq!(fs::read_to_string(&outside).unwrap(), "whole");
    }
}
