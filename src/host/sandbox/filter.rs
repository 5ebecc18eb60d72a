//! System call filter (seccomp) for what Landlock does not cover: the whole network,
//! including local sockets, since a container engine's socket is a way out; the memory of
//! other processes; new namespaces; set-user-ID programs.
//!
//! It is a list of denied calls, so that programs with unforeseen needs work; each group of
//! rows states its reason. Other tables of system calls (32 bits, x32), in which the numbers
//! have other meanings, are denied as a whole.

use std::io;
use std::mem::offset_of;

use libc::{c_int, c_long, sock_filter};

use super::{check, landlock, prctl};

/// Rule for one system call.
enum SyscallRule {
    /// The call fails with this error.
    Deny(c_long, c_int),
    /// The call fails unless the lower half of this argument, masked, is the value.
    DenyUnless(c_long, u32, MaskedValue, c_int),
    /// The call fails if the lower half of this argument, masked, is the value.
    DenyIf(c_long, u32, MaskedValue, c_int),
    /// The call fails if its flags (this argument) create a file and its mode (the next
    /// argument) has a set-user-ID or set-group-ID bit.
    DenySetId(c_long, u32, c_int),
}

/// Mask, and the value to compare with the masked argument.
struct MaskedValue(u32, u32);

use SyscallRule::{Deny, DenyIf, DenySetId, DenyUnless};

/// Modes of `open(2)` and `chmod(2)` without set-user-ID and set-group-ID bits.
const NO_SET_ID: MaskedValue = MaskedValue(libc::S_ISUID | libc::S_ISGID, 0);
/// Flags of `open(2)` that create a file; without them the mode is ignored.
const CREATES_FILE: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();
/// Connected stream and packet sockets (types 1 and 5, not 2, 3, 4): a datagram socket could
/// send to any address.
const CONNECTED: MaskedValue = MaskedValue(0b1011, libc::SOCK_STREAM.cast_unsigned());
const LOCAL_SOCKET: MaskedValue = MaskedValue(u32::MAX, libc::AF_UNIX.cast_unsigned());
const OWN_PROCESS: MaskedValue = MaskedValue(u32::MAX, 0);
/// Flags of `clone(2)` without any that creates a namespace.
const NO_NAMESPACE: MaskedValue = MaskedValue(0x7e02_0000, 0);
/// Flags of `open(2)` that truncate although the file is opened for reading.
const TRUNCATING_READ: MaskedValue =
    MaskedValue((libc::O_TRUNC | libc::O_ACCMODE).cast_unsigned(), libc::O_TRUNC.cast_unsigned());
/// The call succeeds without doing anything.
const NO_ERROR: c_int = 0;
/// The argument means one process, in `setpriority(2)` and in `ioprio_set(2)`; the next
/// argument is then its number, 0 for the calling process.
const PROCESS: MaskedValue = MaskedValue(u32::MAX, 0);
const IO_PROCESS: MaskedValue = MaskedValue(u32::MAX, 1);
/// Newer calls, which libc does not define for every processor; their numbers are the same on all
/// of them. `fchmodat2` is from Linux 6.6, the two of mounts from 6.8, those of attributes from
/// 6.13, those of files from 6.17.
const SYS_FCHMODAT2: c_long = 452;
const SYS_STATMOUNT: c_long = 457;
const SYS_LISTMOUNT: c_long = 458;
const SYS_SETXATTRAT: c_long = 463;
const SYS_GETXATTRAT: c_long = 464;
const SYS_LISTXATTRAT: c_long = 465;
const SYS_REMOVEXATTRAT: c_long = 466;
const SYS_FILE_GETATTR: c_long = 468;
const SYS_FILE_SETATTR: c_long = 469;

const RULES: &[SyscallRule] = &[
    // The network. Pairs of connected sockets are allowed: they reach nothing else.
    Deny(libc::SYS_socket, libc::EACCES),
    Deny(libc::SYS_connect, libc::EACCES),
    Deny(libc::SYS_bind, libc::EACCES),
    DenyUnless(libc::SYS_socketpair, 0, LOCAL_SOCKET, libc::EACCES),
    DenyUnless(libc::SYS_socketpair, 1, CONNECTED, libc::EACCES),
    // io_uring does all of these without passing any filter.
    Deny(libc::SYS_io_uring_setup, libc::EPERM),
    Deny(libc::SYS_io_uring_enter, libc::EPERM),
    Deny(libc::SYS_io_uring_register, libc::EPERM),
    // Other processes: their memory, their descriptors, their limits.
    Deny(libc::SYS_ptrace, libc::EPERM),
    Deny(libc::SYS_process_vm_readv, libc::EPERM),
    Deny(libc::SYS_process_vm_writev, libc::EPERM),
    Deny(libc::SYS_process_madvise, libc::EPERM),
    Deny(libc::SYS_pidfd_getfd, libc::EPERM),
    Deny(libc::SYS_kcmp, libc::EPERM),
    DenyUnless(libc::SYS_prlimit64, 0, OWN_PROCESS, libc::EPERM),
    // Their processors and priorities. A filter cannot tell a number of the program's own
    // threads from others. These calls are only advice, so they succeed without effect.
    DenyUnless(libc::SYS_sched_setaffinity, 0, OWN_PROCESS, NO_ERROR),
    DenyUnless(libc::SYS_sched_setscheduler, 0, OWN_PROCESS, NO_ERROR),
    DenyUnless(libc::SYS_sched_setparam, 0, OWN_PROCESS, NO_ERROR),
    DenyUnless(libc::SYS_sched_setattr, 0, OWN_PROCESS, NO_ERROR),
    DenyUnless(libc::SYS_setpriority, 0, PROCESS, NO_ERROR),
    DenyUnless(libc::SYS_setpriority, 1, OWN_PROCESS, NO_ERROR),
    DenyUnless(libc::SYS_ioprio_set, 0, IO_PROCESS, NO_ERROR),
    DenyUnless(libc::SYS_ioprio_set, 1, OWN_PROCESS, NO_ERROR),
    // Watching what other processes do with their files.
    Deny(libc::SYS_inotify_add_watch, libc::EACCES),
    Deny(libc::SYS_fanotify_mark, libc::EACCES),
    // Attributes of files by path, including access control lists.
    Deny(libc::SYS_getxattr, libc::ENOTSUP),
    Deny(libc::SYS_lgetxattr, libc::ENOTSUP),
    Deny(libc::SYS_listxattr, libc::ENOTSUP),
    Deny(libc::SYS_llistxattr, libc::ENOTSUP),
    Deny(libc::SYS_setxattr, libc::ENOTSUP),
    Deny(libc::SYS_lsetxattr, libc::ENOTSUP),
    Deny(libc::SYS_removexattr, libc::ENOTSUP),
    Deny(libc::SYS_lremovexattr, libc::ENOTSUP),
    Deny(SYS_SETXATTRAT, libc::ENOSYS),
    Deny(SYS_GETXATTRAT, libc::ENOSYS),
    Deny(SYS_LISTXATTRAT, libc::ENOSYS),
    Deny(SYS_REMOVEXATTRAT, libc::ENOSYS),
    Deny(SYS_FILE_GETATTR, libc::ENOSYS),
    Deny(SYS_FILE_SETATTR, libc::ENOSYS),
    // The kernel's log.
    Deny(libc::SYS_syslog, libc::EPERM),
    // The list of mounts.
    Deny(SYS_STATMOUNT, libc::ENOSYS),
    Deny(SYS_LISTMOUNT, libc::ENOSYS),
    // Shared memory and queues that any process of the user can open by number or name.
    Deny(libc::SYS_shmget, libc::EPERM),
    Deny(libc::SYS_shmat, libc::EPERM),
    Deny(libc::SYS_shmctl, libc::EPERM),
    Deny(libc::SYS_semget, libc::EPERM),
    Deny(libc::SYS_semctl, libc::EPERM),
    Deny(libc::SYS_semop, libc::EPERM),
    Deny(libc::SYS_semtimedop, libc::EPERM),
    Deny(libc::SYS_msgget, libc::EPERM),
    Deny(libc::SYS_msgsnd, libc::EPERM),
    Deny(libc::SYS_msgrcv, libc::EPERM),
    Deny(libc::SYS_msgctl, libc::EPERM),
    Deny(libc::SYS_mq_open, libc::EPERM),
    Deny(libc::SYS_mq_unlink, libc::EPERM),
    // The user's keys in the kernel.
    Deny(libc::SYS_keyctl, libc::EPERM),
    Deny(libc::SYS_add_key, libc::EPERM),
    Deny(libc::SYS_request_key, libc::EPERM),
    // Parts of the kernel with a history of vulnerabilities.
    Deny(libc::SYS_bpf, libc::EPERM),
    Deny(libc::SYS_perf_event_open, libc::EPERM),
    Deny(libc::SYS_userfaultfd, libc::EPERM),
    // In its own user namespace a process is root.
    Deny(libc::SYS_unshare, libc::EPERM),
    Deny(libc::SYS_setns, libc::EPERM),
    DenyUnless(libc::SYS_clone, 0, NO_NAMESPACE, libc::EPERM),
    // These take their flags from memory, which a filter cannot read. Programs that find
    // them missing use the older calls.
    Deny(libc::SYS_clone3, libc::ENOSYS),
    Deny(libc::SYS_openat2, libc::ENOSYS),
    // Set-user-ID programs, which would give this user's rights to other users; worst for
    // root.
    DenyUnless(libc::SYS_fchmod, 1, NO_SET_ID, libc::EPERM),
    DenyUnless(libc::SYS_fchmodat, 2, NO_SET_ID, libc::EPERM),
    DenyUnless(SYS_FCHMODAT2, 2, NO_SET_ID, libc::EPERM),
    DenyUnless(libc::SYS_mknodat, 2, NO_SET_ID, libc::EPERM),
    DenySetId(libc::SYS_openat, 2, libc::EPERM),
];

/// Rules for older system calls that newer processors do not have.
#[cfg(target_arch = "x86_64")]
const OLD_RULES: &[SyscallRule] = &[
    DenyUnless(libc::SYS_chmod, 1, NO_SET_ID, libc::EPERM),
    DenyUnless(libc::SYS_creat, 1, NO_SET_ID, libc::EPERM),
    DenyUnless(libc::SYS_mknod, 1, NO_SET_ID, libc::EPERM),
    DenySetId(libc::SYS_open, 1, libc::EPERM),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_RULES: &[SyscallRule] = &[];

/// Rules for truncation, which older versions of Landlock do not cover.
const TRUNCATION_RULES: &[SyscallRule] = &[
    Deny(libc::SYS_truncate, libc::EACCES),
    DenyIf(libc::SYS_openat, 2, TRUNCATING_READ, libc::EACCES),
    #[cfg(target_arch = "x86_64")]
    DenyIf(libc::SYS_open, 1, TRUNCATING_READ, libc::EACCES),
];

/// The architecture's number in `linux/audit.h`; `None` if this filter does not support it.
const AUDIT_ARCH: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// First number of the x32 table of system calls.
const X32: u32 = 0x4000_0000;

/// Filter program for the kernel.
#[derive(Debug)]
pub(super) struct SyscallFilter {
    program: Vec<sock_filter>,
}

impl SyscallFilter {
    /// Builds the filter for use with this version of Landlock.
    pub(super) fn new(landlock: u32) -> Result<SyscallFilter, String> {
        let Some(processor) = AUDIT_ARCH else {
            return Err("the filter of system calls does not support this processor".into());
        };
        let mut filter = SyscallFilter { program: Vec::new() };
        filter.load(offset_of!(libc::seccomp_data, arch));
        filter.skip_if(libc::BPF_JEQ, processor, 1);
        filter.fail(libc::ENOSYS);
        let older: &[SyscallRule] =
            if landlock < landlock::TRUNCATE_SINCE { TRUNCATION_RULES } else { &[] };
        filter.load(NUMBER);
        filter.skip_unless(libc::BPF_JGE, X32, 1);
        filter.fail(libc::ENOSYS);
        for rule in RULES.iter().chain(OLD_RULES).chain(older) {
            filter.add(rule);
        }
        filter.push(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0);
        Ok(filter)
    }

    /// Installs the filter permanently on this process and all its future children. Called
    /// after a fork: no allocation.
    pub(super) fn install(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            // The program has some hundred instructions.
            len: u16::try_from(self.program.len()).unwrap_or(0),
            filter: self.program.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel copies `len` instructions and changes none. The address fits:
        // on Linux a pointer is as wide as a `c_long`.
        unsafe {
            let address = (&raw const program) as c_long;
            let mode = c_long::from(libc::SECCOMP_MODE_FILTER);
            check(prctl(libc::PR_SET_SECCOMP, mode, address))
        }
    }

    fn add(&mut self, rule: &SyscallRule) {
        match rule {
            Deny(call, error) => {
                self.skip_unless(libc::BPF_JEQ, number(*call), 1);
                self.fail(*error);
            }
            DenyUnless(call, argument, masked, error) => {
                self.add_condition(*call, *argument, masked, *error, false);
            }
            DenyIf(call, argument, masked, error) => {
                self.add_condition(*call, *argument, masked, *error, true);
            }
            DenySetId(call, flags, error) => {
                self.skip_unless(libc::BPF_JEQ, number(*call), 8);
                self.load_argument(*flags, CREATES_FILE);
                self.skip_if(libc::BPF_JEQ, 0, 4);
                self.load_argument(*flags + 1, NO_SET_ID.0);
                self.skip_if(libc::BPF_JEQ, NO_SET_ID.1, 1);
                self.fail(*error);
                self.load(NUMBER);
            }
        }
    }

    fn add_condition(
        &mut self,
        call: c_long,
        argument: u32,
        masked: &MaskedValue,
        error: c_int,
        is_denied: bool,
    ) {
        // Other calls skip these five instructions.
        self.skip_unless(libc::BPF_JEQ, number(call), 5);
        self.load_argument(argument, masked.0);
        if is_denied {
            self.skip_unless(libc::BPF_JEQ, masked.1, 1);
        } else {
            self.skip_if(libc::BPF_JEQ, masked.1, 1);
        }
        self.fail(error);
        self.load(NUMBER);
    }

    /// Loads the lower half of an argument, masked.
    fn load_argument(&mut self, argument: u32, mask: u32) {
        // Both supported processors are little-endian.
        self.load(offset_of!(libc::seccomp_data, args) + 8 * argument as usize);
        self.push(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask, 0, 0);
    }

    fn load(&mut self, offset: usize) {
        // The structure has 64 bytes, so the offset always fits.
        let offset = u32::try_from(offset).unwrap_or(0);
        self.push(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    }

    fn skip_if(&mut self, test: u32, value: u32, count: u8) {
        self.push(libc::BPF_JMP | test | libc::BPF_K, value, count, 0);
    }

    fn skip_unless(&mut self, test: u32, value: u32, count: u8) {
        self.push(libc::BPF_JMP | test | libc::BPF_K, value, 0, count);
    }

    fn fail(&mut self, error: c_int) {
        let answer = libc::SECCOMP_RET_ERRNO | error.cast_unsigned();
        self.push(libc::BPF_RET | libc::BPF_K, answer, 0, 0);
    }

    fn push(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        // BPF codes fit into a byte.
        let code = u16::try_from(code).unwrap_or(0);
        self.program.push(sock_filter { code, jt, jf, k });
    }
}

/// Offset of the system call's number.
const NUMBER: usize = offset_of!(libc::seccomp_data, nr);

fn number(call: c_long) -> u32 {
    // Numbers of system calls are small.
    u32::try_from(call).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of each rule is that of its name in the kernel's table for this processor.
    #[test]
    fn numbers_are_those_of_the_kernel() {
        let source = include_str!("filter.rs");
        let source = source.split("mod tests").next().unwrap().split("&[SyscallRule] = ").skip(1);
        let names: Vec<String> = source
            .flat_map(|list| list.split("];").next().unwrap().split("SYS_").skip(1))
            .map(|rest| rest.split(',').next().unwrap().to_lowercase())
            .collect();
        let rules = RULES.iter().chain(OLD_RULES).chain(TRUNCATION_RULES);
        let numbers = rules.map(|rule| match rule {
            Deny(call, _) | DenyUnless(call, ..) | DenyIf(call, ..) | DenySetId(call, ..) => *call,
        });
        let numbers: Vec<c_long> = numbers.collect();
        let table = include_str!("../../../tests/data/syscalls");
        let column = if cfg!(target_arch = "x86_64") { 1 } else { 2 };
        let number = |name: &str| -> Option<c_long> {
            let row = table.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            row.into_iter().find(|row| row[0] == name)?[column].parse().ok()
        };
        let expected: Vec<c_long> = names.iter().filter_map(|name| number(name)).collect();
        assert_eq!(numbers, expected, "{names:?}");
    }
}
