//! Runs the program under a seccomp filter that refuses system calls, as old kernels and
//! containers do.

use std::fs;

use super::python::interpreter;
use super::report_skipped;
use super::workspace::Test;

/// A system call that fails: its number on x86-64 and on aarch64, the value of its first
/// argument if only calls with that value fail, and the error.
#[derive(Clone, Copy)]
pub(crate) struct RefusedSyscall(pub u32, pub u32, pub Option<u32>, pub i32);

/// `openat2` is missing, as on old kernels.
pub(crate) const OPENAT2: RefusedSyscall = RefusedSyscall(437, 437, None, libc::ENOSYS);
/// `landlock_create_ruleset` is missing: no Landlock.
pub(crate) const LANDLOCK: RefusedSyscall = RefusedSyscall(444, 444, None, libc::ENOSYS);
/// The program cannot install seccomp filters, by either of the two calls.
pub(crate) const SECCOMP: [RefusedSyscall; 2] = [
    RefusedSyscall(317, 277, None, libc::EPERM),
    RefusedSyscall(157, 167, Some(libc::PR_SET_SECCOMP.cast_unsigned()), libc::EPERM),
];

/// Installs the filter, then executes the program. Status 99: this machine has no filters.
const LAUNCHER: &str = r#"
import ctypes, os, platform, struct, sys

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2

if platform.machine() not in ARCHITECTURES:
    sys.exit(99)
architecture, column = ARCHITECTURES[platform.machine()]
steps = [(LOAD, 0, 0, 4), (JUMP_IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, ALLOW)]
for rule in sys.argv[1].split(","):
    *numbers, argument, error = rule.split(":")
    steps += [(LOAD, 0, 0, 0)]
    if argument:
        steps += [(JUMP_IF_EQUAL, 0, 3, int(numbers[column])), (LOAD, 0, 0, 16)]
        steps += [(JUMP_IF_EQUAL, 0, 1, int(argument))]
    else:
        steps += [(JUMP_IF_EQUAL, 0, 1, int(numbers[column]))]
    steps += [(RETURN, 0, 0, FAIL | int(error))]
steps += [(RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(PR_SET_SECCOMP, FILTER, ctypes.addressof(program), 0, 0):
    sys.exit(99)
os.execvp(sys.argv[2], sys.argv[2:])
"#;

/// Shell line that runs the program with these system calls failing. Returns `None`, and reports
/// the skip, if this machine has no filters.
pub(crate) fn program_refusing_syscalls(test: &Test, refused: &[RefusedSyscall]) -> Option<String> {
    shell_line_refusing_syscalls(test, "exec skills-runner \"$@\"", refused)
}

/// Like [`program_refusing_syscalls`], for another shell line, which must begin with `exec`.
pub(crate) fn shell_line_refusing_syscalls(
    test: &Test,
    line: &str,
    refused: &[RefusedSyscall],
) -> Option<String> {
    let launcher = test.path("without.py");
    fs::write(&launcher, LAUNCHER).expect("the test's own folder");
    let rules = refused.iter().map(|RefusedSyscall(x86, arm, argument, error)| {
        let argument = argument.map_or(String::new(), |argument| argument.to_string());
        format!("{x86}:{arm}:{argument}:{error}")
    });
    let line = format!(
        "exec {} -I -S {} {} {}",
        interpreter().display(),
        launcher.display(),
        rules.collect::<Vec<_>>().join(","),
        line.strip_prefix("exec ").expect("a line that begins with exec")
    );
    let tried = test.next_run().shell(&line).args(["--version"]).run();
    if tried.status == 99 {
        report_skipped("this machine has no filters for system calls");
        return None;
    }
    tried.success();
    Some(line)
}
