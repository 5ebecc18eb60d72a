//! The program on a system that refuses system calls, as old kernels and
//! containers do: a filter that is put on before it starts.

use std::fs;

use super::python::interpreter;
use super::skipped;
use super::workspace::Test;

/// A system call that fails: its number on x86-64 and on aarch64, the value of its
/// first argument if only that one fails, and the error.
#[derive(Clone, Copy)]
pub(crate) struct Refused(pub u32, pub u32, pub Option<u32>, pub i32);

/// `openat2`, as on a kernel that has never heard of it.
pub(crate) const OPENAT2: Refused = Refused(437, 437, None, libc::ENOSYS);
/// The beginning of all Landlock, the same way.
pub(crate) const LANDLOCK: Refused = Refused(444, 444, None, libc::ENOSYS);
/// Filters of one's own, by either call.
pub(crate) const SECCOMP: [Refused; 2] = [
    Refused(317, 277, None, libc::EPERM),
    Refused(157, 167, Some(libc::PR_SET_SECCOMP.cast_unsigned()), libc::EPERM),
];

/// Puts the filter on, then becomes the program. Status 99: this machine cannot.
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

/// The line of a shell that starts the program where these fail. `None`, with a
/// word about it: that cannot be done on this machine.
pub(crate) fn without(test: &Test, refused: &[Refused]) -> Option<String> {
    without_in(test, "exec skills-runner \"$@\"", refused)
}

/// The same for a line of one's own, which begins with `exec`.
pub(crate) fn without_in(test: &Test, line: &str, refused: &[Refused]) -> Option<String> {
    let launcher = test.path("without.py");
    fs::write(&launcher, LAUNCHER).expect("the test's own folder");
    let rules = refused.iter().map(|Refused(x86, arm, argument, error)| {
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
    let tried = test.again().shell(&line).args(["--version"]).run();
    if tried.status == 99 {
        skipped("no filter of system calls on this machine");
        return None;
    }
    tried.success();
    Some(line)
}
