//! A filter of system calls (seccomp): what Landlock does not govern. The network
//! whole, local sockets too, since a container engine's is a way out; other
//! processes' memory; new namespaces; programs that run with their file's rights.
//!
//! It is a list of what is forbidden, so that programs work which nobody thought
//! of; each row says why it is there. A foreign table of system calls (32 bits,
//! x32), in which the numbers mean others, is closed.

use std::io;
use std::mem::offset_of;

use libc::{c_int, c_long, sock_filter};

use super::{Unavailable, check, landlock, set};

/// What becomes of a system call.
enum SyscallRule {
    /// It fails with this error.
    Never(c_long, c_int),
    /// It fails unless the lower half of this argument, masked, is the value.
    Unless(c_long, u32, MaskedValue, c_int),
    /// It fails if so.
    If(c_long, u32, MaskedValue, c_int),
    /// It fails if the flags, this argument, say that a file is made, and the mode,
    /// the next one, gives a program its file's rights.
    Making(c_long, u32, c_int),
}

/// A value behind a mask.
struct MaskedValue(u32, u32);

use SyscallRule::{If, Making, Never, Unless};

/// `open(2)`'s modes and `chmod(2)`'s: bits that give a program its file's rights.
const NO_SET_ID: MaskedValue = MaskedValue(libc::S_ISUID | libc::S_ISGID, 0);
/// What in the flags of `open(2)` makes a file; without it the mode may be anything.
const MAKING: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();
/// Connected stream and packet sockets (1 and 5, and not 2, 3, 4): one of single
/// messages could be turned to any address.
const CONNECTED: MaskedValue = MaskedValue(0b1011, libc::SOCK_STREAM.cast_unsigned());
const LOCAL: MaskedValue = MaskedValue(u32::MAX, libc::AF_UNIX.cast_unsigned());
const OWN: MaskedValue = MaskedValue(u32::MAX, 0);
/// All that `clone(2)` can make a new one of.
const NO_NAMESPACE: MaskedValue = MaskedValue(0x7e02_0000, 0);
/// Opening to read may truncate all the same.
const TRUNCATING_READ: MaskedValue =
    MaskedValue((libc::O_TRUNC | libc::O_ACCMODE).cast_unsigned(), libc::O_TRUNC.cast_unsigned());
/// No error.
const GRANTED: c_int = 0;
/// One process, to `setpriority(2)` and to `ioprio_set(2)`; then 0 is the own one.
const PROCESS: MaskedValue = MaskedValue(u32::MAX, 0);
const IO_PROCESS: MaskedValue = MaskedValue(u32::MAX, 1);
/// Linux 6.13; three more follow it: `getxattrat`, `listxattrat`, `removexattrat`.
const SYS_SETXATTRAT: c_long = 463;
/// Linux 6.17; `file_setattr` follows it.
const SYS_FILE_GETATTR: c_long = 468;
/// Linux 6.8; `listmount` follows it.
const SYS_STATMOUNT: c_long = 457;
/// Linux 6.6; libc does not name it for every processor.
const SYS_FCHMODAT2: c_long = 452;

const RULES: &[SyscallRule] = &[
    // The network. Pairs of connected sockets stay: they lead nowhere else.
    Never(libc::SYS_socket, libc::EACCES),
    Never(libc::SYS_connect, libc::EACCES),
    Never(libc::SYS_bind, libc::EACCES),
    Unless(libc::SYS_socketpair, 0, LOCAL, libc::EACCES),
    Unless(libc::SYS_socketpair, 1, CONNECTED, libc::EACCES),
    // Does all of these unseen by any filter.
    Never(libc::SYS_io_uring_setup, libc::EPERM),
    Never(libc::SYS_io_uring_enter, libc::EPERM),
    Never(libc::SYS_io_uring_register, libc::EPERM),
    // Other processes: their memory, their descriptors, their limits.
    Never(libc::SYS_ptrace, libc::EPERM),
    Never(libc::SYS_process_vm_readv, libc::EPERM),
    Never(libc::SYS_process_vm_writev, libc::EPERM),
    Never(libc::SYS_process_madvise, libc::EPERM),
    Never(libc::SYS_pidfd_getfd, libc::EPERM),
    Never(libc::SYS_kcmp, libc::EPERM),
    Unless(libc::SYS_prlimit64, 0, OWN, libc::EPERM),
    // Their processors and priorities. Threads set their own by a number that nobody
    // can tell from others': it is only advice, so nothing is done, and no error told.
    Unless(libc::SYS_sched_setaffinity, 0, OWN, GRANTED),
    Unless(libc::SYS_sched_setscheduler, 0, OWN, GRANTED),
    Unless(libc::SYS_sched_setparam, 0, OWN, GRANTED),
    Unless(libc::SYS_sched_setattr, 0, OWN, GRANTED),
    Unless(libc::SYS_setpriority, 0, PROCESS, GRANTED),
    Unless(libc::SYS_setpriority, 1, OWN, GRANTED),
    Unless(libc::SYS_ioprio_set, 0, IO_PROCESS, GRANTED),
    Unless(libc::SYS_ioprio_set, 1, OWN, GRANTED),
    // What others do with their files.
    Never(libc::SYS_inotify_add_watch, libc::EACCES),
    Never(libc::SYS_fanotify_mark, libc::EACCES),
    // Attributes of files by their paths, access lists among them.
    Never(libc::SYS_getxattr, libc::ENOTSUP),
    Never(libc::SYS_lgetxattr, libc::ENOTSUP),
    Never(libc::SYS_listxattr, libc::ENOTSUP),
    Never(libc::SYS_llistxattr, libc::ENOTSUP),
    Never(libc::SYS_setxattr, libc::ENOTSUP),
    Never(libc::SYS_lsetxattr, libc::ENOTSUP),
    Never(libc::SYS_removexattr, libc::ENOTSUP),
    Never(libc::SYS_lremovexattr, libc::ENOTSUP),
    Never(SYS_SETXATTRAT, libc::ENOSYS),
    Never(SYS_SETXATTRAT + 1, libc::ENOSYS),
    Never(SYS_SETXATTRAT + 2, libc::ENOSYS),
    Never(SYS_SETXATTRAT + 3, libc::ENOSYS),
    Never(SYS_FILE_GETATTR, libc::ENOSYS),
    Never(SYS_FILE_GETATTR + 1, libc::ENOSYS),
    // What is mounted where.
    Never(SYS_STATMOUNT, libc::ENOSYS),
    Never(SYS_STATMOUNT + 1, libc::ENOSYS),
    // Memory and queues that any process of the user reaches by a number or a name.
    Never(libc::SYS_shmget, libc::EPERM),
    Never(libc::SYS_shmat, libc::EPERM),
    Never(libc::SYS_shmctl, libc::EPERM),
    Never(libc::SYS_semget, libc::EPERM),
    Never(libc::SYS_semctl, libc::EPERM),
    Never(libc::SYS_semop, libc::EPERM),
    Never(libc::SYS_semtimedop, libc::EPERM),
    Never(libc::SYS_msgget, libc::EPERM),
    Never(libc::SYS_msgsnd, libc::EPERM),
    Never(libc::SYS_msgrcv, libc::EPERM),
    Never(libc::SYS_msgctl, libc::EPERM),
    Never(libc::SYS_mq_open, libc::EPERM),
    Never(libc::SYS_mq_unlink, libc::EPERM),
    // The user's keys in the kernel.
    Never(libc::SYS_keyctl, libc::EPERM),
    Never(libc::SYS_add_key, libc::EPERM),
    Never(libc::SYS_request_key, libc::EPERM),
    // Parts of the kernel in which its holes have been.
    Never(libc::SYS_bpf, libc::EPERM),
    Never(libc::SYS_perf_event_open, libc::EPERM),
    Never(libc::SYS_userfaultfd, libc::EPERM),
    // In a namespace of its own a process is root.
    Never(libc::SYS_unshare, libc::EPERM),
    Never(libc::SYS_setns, libc::EPERM),
    Unless(libc::SYS_clone, 0, NO_NAMESPACE, libc::EPERM),
    // These take what is judged here from memory, where no filter sees it; who
    // finds them missing uses the older ones.
    Never(libc::SYS_clone3, libc::ENOSYS),
    Never(libc::SYS_openat2, libc::ENOSYS),
    // Programs that would run with this user's rights for everybody, root's above all.
    Unless(libc::SYS_fchmod, 1, NO_SET_ID, libc::EPERM),
    Unless(libc::SYS_fchmodat, 2, NO_SET_ID, libc::EPERM),
    Unless(SYS_FCHMODAT2, 2, NO_SET_ID, libc::EPERM),
    Unless(libc::SYS_mknodat, 2, NO_SET_ID, libc::EPERM),
    Making(libc::SYS_openat, 2, libc::EPERM),
];

/// The older calls that newer processors do not have.
#[cfg(target_arch = "x86_64")]
const OLD_RULES: &[SyscallRule] = &[
    Unless(libc::SYS_chmod, 1, NO_SET_ID, libc::EPERM),
    Unless(libc::SYS_creat, 1, NO_SET_ID, libc::EPERM),
    Unless(libc::SYS_mknod, 1, NO_SET_ID, libc::EPERM),
    Making(libc::SYS_open, 1, libc::EPERM),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_RULES: &[SyscallRule] = &[];

/// What a Landlock that does not govern truncation lets through.
const TRUNCATION: &[SyscallRule] = &[
    Never(libc::SYS_truncate, libc::EACCES),
    If(libc::SYS_openat, 2, TRUNCATING_READ, libc::EACCES),
    #[cfg(target_arch = "x86_64")]
    If(libc::SYS_open, 1, TRUNCATING_READ, libc::EACCES),
];

/// The numbers of `linux/audit.h` for the processors whose calls these are.
#[cfg(target_arch = "x86_64")]
const PROCESSOR: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const PROCESSOR: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const PROCESSOR: Option<u32> = None;

/// x32: the calls of another table, numbered from here.
const X32: u32 = 0x4000_0000;

/// A program for the kernel's filter.
#[derive(Debug)]
pub(super) struct SyscallFilter {
    program: Vec<sock_filter>,
}

impl SyscallFilter {
    /// The filter beside a Landlock of this version.
    pub(super) fn new(landlock: u32) -> Result<SyscallFilter, Unavailable> {
        let Some(processor) = PROCESSOR else {
            let text = "there is no filter of system calls for this processor";
            return Err(Unavailable(text.into()));
        };
        let mut filter = SyscallFilter { program: Vec::new() };
        filter.load(offset_of!(libc::seccomp_data, arch));
        filter.skip_if(libc::BPF_JEQ, processor, 1);
        filter.fail(libc::ENOSYS);
        let older: &[SyscallRule] =
            if landlock < landlock::TRUNCATE_SINCE { TRUNCATION } else { &[] };
        filter.load(NUMBER);
        filter.skip_unless(libc::BPF_JGE, X32, 1);
        filter.fail(libc::ENOSYS);
        for rule in RULES.iter().chain(OLD_RULES).chain(older) {
            filter.add(rule);
        }
        filter.push(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0);
        Ok(filter)
    }

    /// Installs it on this process and all that it will start, for good. After a
    /// fork: no allocation.
    pub(super) fn install(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            // A table of some hundred rows.
            len: u16::try_from(self.program.len()).unwrap_or(0),
            filter: self.program.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel copies `len` instructions, and changes none; the
        // address fits, as a pointer is as wide as a `c_long` on Linux.
        unsafe {
            let address = (&raw const program) as c_long;
            let mode = c_long::from(libc::SECCOMP_MODE_FILTER);
            check(set(libc::PR_SET_SECCOMP, mode, address))
        }
    }

    fn add(&mut self, rule: &SyscallRule) {
        match rule {
            Never(call, error) => {
                self.skip_unless(libc::BPF_JEQ, number(*call), 1);
                self.fail(*error);
            }
            Unless(call, argument, masked, error) => {
                self.judge(*call, *argument, masked, *error, false);
            }
            If(call, argument, masked, error) => {
                self.judge(*call, *argument, masked, *error, true);
            }
            Making(call, flags, error) => {
                self.skip_unless(libc::BPF_JEQ, number(*call), 8);
                self.take(*flags, MAKING);
                self.skip_if(libc::BPF_JEQ, 0, 4);
                self.take(*flags + 1, NO_SET_ID.0);
                self.skip_if(libc::BPF_JEQ, NO_SET_ID.1, 1);
                self.fail(*error);
                self.load(NUMBER);
            }
        }
    }

    fn judge(
        &mut self,
        call: c_long,
        argument: u32,
        masked: &MaskedValue,
        error: c_int,
        is_bad: bool,
    ) {
        // Five instructions for this call; every other goes on behind them.
        self.skip_unless(libc::BPF_JEQ, number(call), 5);
        self.take(argument, masked.0);
        if is_bad {
            self.skip_unless(libc::BPF_JEQ, masked.1, 1);
        } else {
            self.skip_if(libc::BPF_JEQ, masked.1, 1);
        }
        self.fail(error);
        self.load(NUMBER);
    }

    /// Loads the lower half of an argument, masked.
    fn take(&mut self, argument: u32, mask: u32) {
        // Both processors keep the lower half first.
        self.load(offset_of!(libc::seccomp_data, args) + 8 * argument as usize);
        self.push(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask, 0, 0);
    }

    fn load(&mut self, offset: usize) {
        // The structure has 64 bytes.
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
        // Codes of this machine fit a byte.
        let code = u16::try_from(code).unwrap_or(0);
        self.program.push(sock_filter { code, jt, jf, k });
    }
}

/// Where the call's number stands.
const NUMBER: usize = offset_of!(libc::seccomp_data, nr);

fn number(call: c_long) -> u32 {
    // Numbers of system calls are small.
    u32::try_from(call).unwrap_or(u32::MAX)
}
