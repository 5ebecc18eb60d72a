//! What a script may do, with and without the sandbox.

use super::{BEFORE, is_sandbox_available, run, test_with_skills};
use crate::harness::{
    LANDLOCK, RefusedSyscall, Reply, SECCOMP, Server, Test, program_refusing_syscalls,
    report_skipped, seconds,
};
use crate::paths::as_an_ordinary_user;
use Expected::{Refused as No, Works};
use serde_json::json;
use std::fs;

/// Whether the sandbox allows the operation.
#[derive(Clone, Copy, PartialEq)]
enum Expected {
    Refused,
    Works,
}

/// The probes: a name, Python code, and the expected outcome.
const PROBES: &[(&str, &str, Expected)] = &[
    ("another skill's document", "read(cwd + '/skills/other/SKILL.md')", No),
    ("the list of skills", "os.listdir(cwd + '/skills')", No),
    (".env", "read(cwd + '/.env')", No),
    (".env through a link", "link(cwd + '/.env')", No),
    (".env by a second name", "os.link(cwd + '/.env', 'second')", No),
    ("the key's file", "read(cwd + '/key')", No),
    ("the home folder", "os.listdir(os.path.expanduser('~'))", No),
    ("the runner's environment", "read(f'/proc/{os.getppid()}/environ')", No),
    ("other processes' memory", "open(f'/proc/{os.getppid()}/mem', 'rb')", No),
    ("its own /proc", "read('/proc/self/environ')", No),
    ("a terminal", "read('/dev/tty')", No),
    ("the shadow file", "read('/etc/shadow')", No),
    ("writing beside the skill", "write(cwd + '/skills/new')", No),
    ("writing to /tmp", "write('/tmp/skills-runner-probe')", No),
    ("emptying a file outside", "os.truncate(cwd + '/victim', 0)", No),
    ("removing a file outside", "os.unlink(cwd + '/victim')", No),
    ("taking a file in", "os.rename(cwd + '/victim', 'victim')", No),
    ("putting a file out", "write('own'); os.rename('own', cwd + '/own')", No),
    ("TCP", "socket.create_connection(('127.0.0.1', 9), 1)", No),
    ("UDP", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))", No),
    ("IPv6", "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)", No),
    ("local sockets", "socket.socket(socket.AF_UNIX)", No),
    ("local sockets of single messages", "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", No),
    ("sockets of the host's", "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)", No),
    ("names of hosts", "socket.getaddrinfo('example.com', 80)", No),
    ("a file with its owner's rights", "write('own'); os.chmod('own', 0o4755)", No),
    ("the same when it is made", "os.open('own2', os.O_CREAT | os.O_WRONLY, 0o6755)", No),
    ("a device", "os.mknod('device', 0o20600, os.makedev(1, 1))", No),
    ("signals to strangers", "os.kill(1, 0)", No),
    ("limits of strangers", "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE)", No),
    ("attributes of files outside", "os.setxattr(cwd + '/victim', 'user.x', b'1')", No),
    ("what others do", "watch = libc.inotify_init1(0); assert libc.inotify_add_watch(watch, b'/tmp', 2) >= 0", No),
    ("a file of 2 GiB", "open('large', 'wb').truncate(2 << 30)", No),
    ("memory without end", "bytearray(64 << 30)", No),
    ("descriptors without end", "[os.open('/dev/null', 0) for _ in range(2000)]", No),
    ("another root", "os.chroot('.')", No),
    ("another user", "os.setuid(12345)", No),
    ("its skill's folder", "write('own'); read('own'); os.unlink('own'); os.listdir('.')", Works),
    ("a folder in it", "os.makedirs('a/b'); write('a/c'); os.rename('a/c', 'a/b/c'); read('a/b/c')", Works),
    ("temporary files", "assert not os.listdir(tempfile.gettempdir()); tempfile.TemporaryFile().write(b'x')", Works),
    ("a mode that means nothing", "os.open('/dev/null', os.O_RDONLY, 0o6755)", Works),
    ("usual devices", "write('/dev/null'); read('/dev/urandom'); read('/dev/zero')", Works),
    ("SQLite", "import sqlite3
c = sqlite3.connect('d.db'); c.execute('create table t(a)'); c.execute('insert into t values(1)')
c.commit(); c.execute('vacuum'); assert c.execute('select a from t').fetchall() == [(1,)]", Works),
    ("subprocess", "assert subprocess.check_output('echo hi | cat', shell=True) == b'hi\\n'", Works),
    ("ending a child", "p = subprocess.Popen(['sleep', '60']); p.kill(); assert p.wait() == -9", Works),
    ("a pool of processes", "import multiprocessing
with multiprocessing.get_context('fork').Pool(2) as pool: assert pool.map(square, [1, 2]) == [1, 4]", Works),
    ("a pool of new processes", "import multiprocessing
if __name__ == '__main__':
    with multiprocessing.get_context('spawn').Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]", Works),
    ("shared memory", "from multiprocessing import shared_memory
m = shared_memory.SharedMemory(create=True, size=9); m.close(); m.unlink()", Works),
    ("advice about processors", "parent = os.getppid(); before, nice = os.sched_getaffinity(parent), os.getpriority(os.PRIO_PROCESS, parent)
os.sched_setaffinity(os.getpid(), [0]); os.sched_setaffinity(parent, [0]); os.setpriority(os.PRIO_PROCESS, parent, 5)
assert (os.sched_getaffinity(parent), os.getpriority(os.PRIO_PROCESS, parent)) == (before, nice)", Works),
    ("threads", "from concurrent.futures import ThreadPoolExecutor
assert list(ThreadPoolExecutor(4).map(abs, [-1])) == [1]", Works),
    ("asyncio", "import asyncio
async def run():
    p = await asyncio.create_subprocess_exec('echo', 'x', stdout=asyncio.subprocess.PIPE)
    return (await p.communicate())[0]
assert asyncio.run(run()) == b'x\\n'", Works),
    ("pairs of sockets", "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'", Works),
    ("copies with their times", "import shutil; write('own'); shutil.copy2('own', 'copy')", Works),
    ("time zones and users", "import pwd, time; time.localtime(); pwd.getpwuid(os.getuid())", Works),
];

/// System calls without a Python function: numbers on x86-64 and aarch64, arguments.
const CALLS: &[(&str, i64, i64, &str)] = &[
    ("ptrace", 101, 117, "16, os.getppid(), 0, 0"),
    ("process_vm_readv", 310, 270, "os.getppid(), 0, 0, 0, 0, 0"),
    ("pidfd_getfd", 438, 438, "0, 0, 0"),
    ("io_uring_setup", 425, 425, "1, ctypes.create_string_buffer(120)"),
    ("unshare of the user", 272, 97, "0x10000000"),
    ("a clone with a new user", 56, 220, "0x10000011, 0, 0, 0, 0"),
    ("shmget", 29, 194, "0, 4096, 0o1600"),
    ("mq_open", 240, 180, "b'q', 0o102, 0o600, 0"),
    ("keyctl", 250, 219, "0, -3, 1"),
    ("the kernel's log", 103, 116, "3, ctypes.create_string_buffer(99), 99"),
    ("bpf", 321, 280, "0, 0, 0"),
    ("mount", 165, 40, "b'none', b'.', b'tmpfs', 0, 0"),
    ("file_getattr", 468, 468, "-100, b'/etc/passwd', ctypes.create_string_buffer(24), 24, 0"),
    ("file_setattr", 469, 469, "-100, b'/etc/passwd', ctypes.create_string_buffer(24), 24, 0"),
    (
        "listmount",
        458,
        458,
        "ctypes.create_string_buffer(b'\\x18' + b'\\0' * 7 + b'\\xff' * 8 + b'\\0' * 8), ctypes.create_string_buffer(800), 100, 0",
    ),
];

/// A script that runs each probe in its own process and prints a line for each: its number and its
/// outcome.
fn all_probes(probes: &[(String, String, Expected)]) -> String {
    let codes: Vec<&String> = probes.iter().map(|(_, code, _)| code).collect();
    let codes = serde_json::to_string(&codes).unwrap();
    // A JSON string is also a valid Python string.
    format!(
        "{BEFORE}
if __name__ == '__main__':
    for number, code in enumerate({codes}):
        child = os.fork()
        if child == 0:
            try: exec(code, globals()); end = 'works'
            except BaseException as error: end = f'{{type(error).__name__}}: {{error}}'
            os.write(1, f'{{number}} {{end}}\\n'.encode()); os._exit(0)
        os.waitpid(child, 0)
"
    )
}

fn probes() -> Vec<(String, String, Expected)> {
    let calls = CALLS.iter().map(|(name, x86, arm, arguments)| {
        let number = if cfg!(target_arch = "aarch64") { arm } else { x86 };
        let code = format!("call({number}, {arguments})");
        ((*name).to_string(), code, No)
    });
    let probes = PROBES
        .iter()
        .map(|(name, code, expected)| ((*name).to_string(), (*code).to_string(), *expected));
    probes.chain(calls).collect()
}

/// Every probe has its expected outcome, as root and as an ordinary user.
#[test]
fn sandboxed_script_has_only_the_granted_access() {
    if !is_sandbox_available() {
        return;
    }
    let probes = probes();
    assert!(probes.len() >= 24);
    let script = all_probes(&probes);
    for is_root in [true, false] {
        // All probes in one script, on a machine that is perhaps emulated.
        let mut test =
            test_with_skills().env("SCRIPT_TIMEOUT_SECONDS", "120").timeout(seconds(150.0));
        if !is_root {
            let Some(ordinary) = run_as_ordinary_user(test, 65534) else {
                continue;
            };
            test = ordinary;
        }
        let (result, run) = run(&test, &script);
        let ends: Vec<&str> = result["stdout"].as_str().unwrap_or_default().lines().collect();
        run.check(ends.len() == probes.len(), "a probe did not end");
        // Signals are confined since version 6 of Landlock (Linux 6.12).
        let doctor = test.next_run().args(["doctor"]).run().stdout;
        let version = doctor.split("on: Landlock ").nth(1).and_then(|rest| rest.split(' ').next());
        let scopes_signals = version.unwrap().parse::<u32>().unwrap() >= 6;
        let mut wrong = Vec::new();
        for (number, (name, _, expected)) in probes.iter().enumerate() {
            let start = format!("{number} ");
            let end = ends.iter().find_map(|line| line.strip_prefix(&start)).unwrap();
            let is_confined = name != "signals to strangers" || scopes_signals;
            if (end == "works") != (*expected == Works) && is_confined {
                wrong.push(format!("{name}: {end}"));
            }
        }
        run.check(wrong.is_empty(), format!("root {is_root}: {wrong:#?}"));
        assert_eq!(fs::read_to_string(test.path("victim")).unwrap(), "still here\n");
        assert!(fs::read_dir(test.path("tmp")).unwrap().next().is_none());
    }
}

/// Runs the test as another user and gives its files to that user.
fn run_as_ordinary_user(test: Test, user: u32) -> Option<Test> {
    let python = "/usr/bin/python3";
    if !std::path::Path::new(python).exists() {
        report_skipped("no Python that every user may run");
        return None;
    }
    let shell = as_an_ordinary_user(&test).replace("65534", &user.to_string());
    for path in ["skills/s", "tmp", "victim", "key", ".env"].map(|path| test.path(path)) {
        let _ = std::os::unix::fs::chown(path, Some(user), Some(user));
    }
    Some(test.shell(&shell).env("SCRIPT_PYTHON", python))
}

/// A fork bomb is refused further processes. The kernel applies this limit per user and not to
/// root, so no other test uses this user.
#[test]
fn processes_of_an_ordinary_user_are_limited() {
    if !is_sandbox_available() {
        return;
    }
    let Some(test) = run_as_ordinary_user(test_with_skills(), 65533) else {
        return;
    };
    let script = "
import os, signal
pids = []
try:
    while len(pids) < 6000:
        pid = os.fork()
        if pid == 0: signal.pause()
        pids.append(pid)
except BlockingIOError: print('limited')
";
    let (result, run) = run(&test, script);
    run.check(result["stdout"] == "limited\n", "no process was refused");
    let hint = result["hint"].as_str().unwrap_or_default();
    run.check(hint.contains("left behind were ended"), "they were not killed");
}

/// Most of the same probes succeed without the sandbox; otherwise the table would prove nothing.
#[test]
fn same_probes_succeed_without_the_sandbox() {
    let due_to_work = [
        "another skill's document",
        "the list of skills",
        ".env",
        ".env through a link",
        ".env by a second name",
        "the key's file",
        "the home folder",
        "its own /proc",
        "writing beside the skill",
        "UDP",
        "local sockets",
        "local sockets of single messages",
        "a file with its owner's rights",
        "the same when it is made",
        "a file of 2 GiB",
        "putting a file out",
        "emptying a file outside",
        "removing a file outside",
    ];
    // Only these: some others would damage this machine.
    let mut probes = probes();
    probes.retain(|(name, ..)| due_to_work.contains(&name.as_str()));
    assert_eq!(probes.len(), due_to_work.len());
    let test = test_with_skills().env("SCRIPT_SANDBOX", "off");
    let (result, run) = run(&test, &all_probes(&probes));
    let stdout = result["stdout"].as_str().unwrap();
    for (number, (name, ..)) in probes.iter().enumerate() {
        let works = stdout.lines().any(|line| line == format!("{number} works"));
        run.check(works, format!("{name} fails without a sandbox too"));
    }
}

/// The sandbox is never partly active: without Landlock or without system call filters none of 24
/// probes runs, and the reason is reported.
#[test]
#[ignore = "long"]
fn unavailable_sandbox_runs_no_script() {
    let cases: [(&[RefusedSyscall], &str); 4] = [
        (&[LANDLOCK], "the kernel has no Landlock"),
        (&[RefusedSyscall(444, 444, None, libc::EOPNOTSUPP)], "Landlock is switched off"),
        (&[RefusedSyscall(446, 446, None, libc::EPERM)], "Landlock is refused"),
        (&SECCOMP, "the filter of system calls (seccomp) is refused"),
    ];
    for (refused, why) in cases {
        let test = test_with_skills();
        let Some(shell) = program_refusing_syscalls(&test, refused) else {
            return;
        };
        let test = test.shell(&shell);
        for (name, code, _) in probes().into_iter().take(24) {
            let script = format!("{BEFORE}\nopen('ran', 'w')\n{code}");
            let (result, run) = run(&test, &script);
            let message = result["error"].as_str().unwrap_or_default();
            run.check(message.contains("SCRIPT_SANDBOX is on"), &name);
            run.check(message.contains(why), &name);
            run.check(run.status == 1, &name);
        }
        assert!(!test.path("skills/s/ran").exists(), "{why}");
        let run = test.clone().args(["doctor", "--json"]).run();
        run.stdout_has("no sandbox is possible").stdout_has(why);
    }
}

/// An unavailable sandbox is an error of the tool, and the run continues.
#[test]
fn unavailable_sandbox_is_a_tool_error_and_the_run_continues() {
    let server = Server::start(vec![
        Reply::call("run_python_script", &json!({"skill_name": "s", "script": "print(1)"})),
        Reply::text("it cannot be run here"),
    ]);
    let test = test_with_skills().endpoint(&server);
    let Some(shell) = program_refusing_syscalls(&test, &[LANDLOCK]) else {
        return;
    };
    let test = test.env("LLM_API_KEY_FILE", "");
    test.shell(&shell)
        .args(["--sandbox", "run it"])
        .run()
        .success()
        .stdout("it cannot be run here\n");
    let requests = server.finish();
    let content = requests[1].last_message()["content"].to_string();
    assert!(content.contains("the kernel has no Landlock"), "{content}");
}
