//! The sandbox of scripts: what a script cannot do in it, what it still can, and that it is never
//! only partly active.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::{
    LANDLOCK, Outcome, RefusedSyscall, Reply, SECCOMP, Server, Test, interpreter,
    program_refusing_syscalls, report_skipped,
};
use crate::paths::as_an_ordinary_user;

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";
const SECRET: &str = "sk-hidden-5d20c7";

/// Python code before every probe. `refused` fails if the operation succeeds; a refusal must be an
/// error and never a wrong result.
const BEFORE: &str = "
import ctypes, os, socket, subprocess, sys, tempfile
cwd = os.environ['USER_CWD']
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def read(path): return open(path, 'rb').read(8)
def write(path): open(path, 'w').write('x')
def link(path):
    os.symlink(path, 'link')
    try: read('link')
    finally: os.unlink('link')
def square(number): return number * number
";

/// Whether the sandbox allows the operation.
#[derive(Clone, Copy, PartialEq)]
enum Expected {
    Refused,
    Works,
}
use Expected::{Refused as No, Works};

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

/// A skill, a second one, and files outside both.
fn test_with_skills() -> Test {
    let test = Test::new()
        .skill("s", DOCUMENT)
        .skill("other", "---\nname: other\ndescription: Another.\n---\n")
        .folder("tmp")
        .file("victim", "still here\n")
        .file("key", SECRET)
        .file(".env", "LLM_API_KEY_FILE=key\n")
        .mode(".env", 0o600)
        .mode("key", 0o600);
    let temporary = test.path("tmp");
    test.env("TMPDIR", temporary).env("SCRIPT_PYTHON", interpreter()).env("SCRIPT_SANDBOX", "on")
}

#[track_caller]
fn run(test: &Test, script: &str) -> (Value, Outcome) {
    let arguments = json!({"skill_name": "s", "script": script});
    let command = ["tool", "run_python_script", "-"];
    let run = test.clone().args(command).stdin(arguments.to_string()).run();
    (run.stdout_json(), run)
}

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

/// Whether the sandbox is available on this machine. If not, the skip is reported.
fn is_sandbox_available() -> bool {
    let (result, _) = run(&test_with_skills(), "print(1)");
    let message = result["error"].as_str().unwrap_or_default().to_string();
    if message.contains("no sandbox is possible") {
        report_skipped(&message);
    }
    message.is_empty()
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
        let mut test = test_with_skills();
        if !is_root {
            let Some(ordinary) = run_as_ordinary_user(test, 65534) else {
                continue;
            };
            test = ordinary;
        }
        let (result, run) = run(&test, &script);
        let ends: Vec<&str> = result["stdout"].as_str().unwrap_or_default().lines().collect();
        run.check(ends.len() == probes.len(), "a probe did not end");
        let mut wrong = Vec::new();
        for (number, (name, _, expected)) in probes.iter().enumerate() {
            let start = format!("{number} ");
            let end = ends.iter().find_map(|line| line.strip_prefix(&start)).unwrap();
            if (end == "works") != (*expected == Works) {
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

/// Exactly the named paths can be written and read in addition, but never hidden files.
#[test]
fn additional_paths_can_be_granted() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills()
        .folder("out")
        .file("data/rows.csv", "1,2,3\n")
        .file("data/deep/more.csv", "4\n");
    symlink(test.path("key"), test.path("data/link")).unwrap();
    let (out, all) = (test.path("out"), test.path("."));
    let test = test
        .env("SCRIPT_SANDBOX_WRITE", &out)
        .env("SCRIPT_SANDBOX_READ", all)
        .args(["--log", "audit"]);
    let script = format!(
        "{BEFORE}
assert read(cwd + '/data/rows.csv') == b'1,2,3\\n' and read(cwd + '/data/deep/more.csv')
write(cwd + '/out/result'); os.rename(cwd + '/out/result', cwd + '/out/renamed')
for path in ['.env', 'key', 'audit', 'skills/other/SKILL.md', 'data/link', 'skills']:
    try: (os.listdir if path == 'skills' else read)(cwd + '/' + path); print(path)
    except PermissionError: pass
for path in ['data/new', 'new', 'victim']:
    try: write(cwd + '/' + path); print(path)
    except PermissionError: pass
"
    );
    let (result, run) = run(&test, &script);
    run.check(result["returncode"] == 0, "granted access does not work");
    run.check(result["stdout"] == "", "hidden content is shown");
    assert!(out.join("renamed").exists());
}

/// A folder that cannot be granted without the hidden files in it.
#[test]
fn folder_that_contains_hidden_files_is_not_granted() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills().folder("out");
    symlink(test.path("skills"), test.path("out-link")).unwrap();
    for (folder, why) in [
        (".", ".env, which scripts must not access, is in it"),
        ("out-link", "which scripts must not access"),
        ("missing", "does not exist: create it first"),
        ("victim", "is not a folder: name a folder"),
    ] {
        let test = test.clone().env("SCRIPT_SANDBOX_WRITE", test.path(folder));
        let (result, run) = run(&test, "print(1)");
        let message = result["error"].as_str().unwrap_or_default();
        run.check(message.contains("SCRIPT_SANDBOX_WRITE names"), folder);
        run.check(message.contains(why), folder);
    }
    // If the working folder is the skill's folder, it contains the `.env` file.
    let test = test_with_skills().file("skills/s/.env", "LLM_MODEL_NAME=m\n");
    let arguments = json!({"skill_name": "s", "script": "print(1)"}).to_string();
    let command = ["tool", "--skills", "..", "run_python_script", &arguments];
    let within = test.next_run().args(command).cwd("skills/s").run();
    within.status(1).stdout_has("the skill's folder holds");
}

/// Links that a skill contains or a script creates grant no access: neither those of a venv nor
/// those in place of a granted folder.
#[test]
fn links_in_a_skill_grant_nothing() {
    if !is_sandbox_available() {
        return;
    }
    let spy = format!("{BEFORE}\nread(os.path.expanduser('~/private/id'))");
    let fresh = || test_with_skills().file("home/private/id", SECRET).env("SCRIPT_PYTHON", "");
    for part in ["ssl", "libexec"] {
        let test = fresh().venv("s");
        symlink(test.path("home"), test.path(format!("skills/s/venv/{part}"))).unwrap();
        let (result, run) = run(&test, &spy);
        run.check(result["returncode"] == 1, part);
    }
    // The same in the venv that a setting names.
    let test = fresh().venv_at("py").env("SCRIPT_PYTHON", "py/bin/python3");
    symlink(test.path("home"), test.path("py/ssl")).unwrap();
    let (result, set) = run(&test, &spy);
    set.check(result["returncode"] == 1, "a venv that is set");
    let test = fresh().venv("s").folder("skills/s/x");
    symlink(test.path("home/private/id"), test.path("skills/s/x/python3")).unwrap();
    let settings = format!("home = {}\n", test.path("skills/s/x").display());
    fs::write(test.path("skills/s/venv/pyvenv.cfg"), settings).unwrap();
    let (result, as_base) = run(&test, &spy);
    as_base.check(!result.to_string().contains(SECRET), "the base of a venv");
    let test = fresh().env("SCRIPT_PYTHON", interpreter());
    let out = test.path("skills/s/out");
    symlink(test.path("home"), &out).unwrap();
    for name in ["SCRIPT_SANDBOX_WRITE", "SCRIPT_SANDBOX_READ"] {
        let test = test.clone().env(name, &out);
        let (result, run) = run(&test, &spy);
        run.check(result["returncode"] != 0, name);
    }
    // The interpreter setting is a file; search paths do not follow links of a script.
    let test = fresh().env("SCRIPT_PYTHON", interpreter());
    symlink(test.path("home"), test.path("skills/s/.python-version")).unwrap();
    symlink(test.path("home"), test.path("skills/s/lib")).unwrap();
    let test = test.clone().env("PYTHONPATH", test.path("skills/s/lib/private"));
    let (result, chosen) = run(&test, &spy);
    chosen.check(result["returncode"] == 1, "a version, a search path");
    // The user's own link is followed; a link within its target is not.
    let test = fresh().env("SCRIPT_PYTHON", interpreter()).folder("data/out");
    symlink(test.path("data"), test.path("mine")).unwrap();
    let test = test.clone().env("SCRIPT_SANDBOX_WRITE", test.path("mine"));
    let (result, own) = run(&test, &format!("{BEFORE}\nwrite(cwd + '/data/out/x')"));
    own.check(result["returncode"] == 0, "the user's own link");
    let both = format!("{}:{}", test.path("mine").display(), test.path("mine/out/x").display());
    fs::remove_file(test.path("data/out/x")).unwrap();
    symlink(test.path("home"), test.path("data/out/x")).unwrap();
    let (result, swapped) = run(&test.clone().env("SCRIPT_SANDBOX_WRITE", both), &spy);
    let message = result["error"].as_str().unwrap_or_default();
    swapped.check(
        message.contains("leads over a link in a folder where scripts may write"),
        "swapped",
    );
    // A link to something that is not a skill is not a skill.
    let test = fresh().env("SCRIPT_PYTHON", interpreter());
    symlink(test.path("home/private"), test.path("skills/linked")).unwrap();
    let arguments = json!({"skill_name": "linked", "script": "print(open('id').read())"});
    let linked = test.next_run().args(["tool", "run_python_script", &arguments.to_string()]).run();
    linked.status(1).stdout_lacks(SECRET);
}

/// The sandbox also applies if the working folder is the skill's folder; a link to `/` in the
/// skills folder does not weaken it.
#[test]
fn unusual_locations_are_sandboxed() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills().file("elsewhere/SKILL.md", DOCUMENT);
    symlink("/", test.path("skills/all")).unwrap();
    symlink(test.path("elsewhere"), test.path("skills/linked")).unwrap();
    for (folder, skills, name) in
        [("skills/s", "..", "s"), (".", "skills", "linked"), ("elsewhere", "../skills", "linked")]
    {
        let arguments = json!({"skill_name": name, "script": "open('own', 'w'); print(1)"});
        let command = ["--skills", skills, "tool", "run_python_script"];
        let within = test.next_run().args(command).args([arguments.to_string()]);
        let run = within.cwd(folder).run();
        let result = run.stdout_json();
        run.check(result["stdout"] == "1\n", folder);
    }
}

/// Another skill within the skill's folder, temporary files in writable folders, and files that no
/// setting names.
#[test]
fn hidden_files_inside_granted_folders_stay_hidden() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills().file("skills/s/more/inner/SKILL.md", DOCUMENT);
    let arguments = json!({"skill_name": "s", "script": "print(1)"}).to_string();
    let command = ["--skills", "skills", "--skills", "skills/s/more", "tool", "run_python_script"];
    let nested = test.next_run().args(command).args([&arguments]).run();
    nested.status(1).stdout_has("the skill's folder holds");
    let (result, shared) = run(&test_with_skills().env("TMPDIR", "/dev/shm"), "print(1)");
    let message = result["error"].as_str().unwrap_or_default();
    shared.check(message.contains("set TMPDIR to another folder"), "TMPDIR is shared");
    let (result, all) = run(
        &test_with_skills().env("SCRIPT_SANDBOX_READ", "/etc:/proc"),
        &format!(
            "{BEFORE}
read('/etc/passwd')
for path in ['/etc/shadow', '/etc/gshadow', '/proc/version', '/proc/self/environ']:
    try: read(path); print(path)
    except (PermissionError, FileNotFoundError): pass"
        ),
    );
    all.check(result["returncode"] == 0 && result["stdout"] == "", "hidden content is shown");
    for folder in ["/etc", "/proc", "/"] {
        let (result, run) =
            run(&test_with_skills().env("SCRIPT_SANDBOX_WRITE", folder), "print(1)");
        let message = result["error"].as_str().unwrap_or_default();
        run.check(message.contains("which scripts must not access"), folder);
    }
}

/// The owner of the working folder, who may be untrusted, can neither disable the sandbox nor
/// extend it beyond the folder.
#[test]
fn env_file_of_the_folder_cannot_weaken_the_sandbox() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills().env("SCRIPT_SANDBOX", "");
    let spy = format!("{BEFORE}\nread(cwd + '/victim')");
    let test = test.file("home/.config/skills-runner/.env", "SCRIPT_SANDBOX=on\n");
    let test = test.file(".env", "SCRIPT_SANDBOX=off\n");
    let (result, both) = run(&test, &spy);
    both.check(result["returncode"] == 1, "the user's sandbox setting was overridden");
    let test = test.file(".env", "SCRIPT_SANDBOX_READ=/var\n");
    let run_it = test.next_run().args(["tool", "list_skills"]).run();
    run_it.status(78).stderr_has("not a visible folder in the working folder");
    let test = test.file(".env", "SCRIPT_SANDBOX_READ=victim\n");
    let (result, own) = run(&test, &spy);
    own.check(result["returncode"] == 0, "the folder can grant its own files");
}

/// Leftover processes are kept if the user's setting says so, but not if the folder's `.env` file
/// does.
#[test]
fn env_file_of_the_folder_cannot_keep_leftover_processes() {
    if !is_sandbox_available() {
        return;
    }
    let leave_process =
        "import subprocess; subprocess.Popen(['sleep', '3'], start_new_session=True)";
    for (file, fate) in
        [(".env", "was ended"), ("home/.config/skills-runner/.env", "keeps running")]
    {
        let test = test_with_skills().file(file, "SCRIPT_LEFTOVERS=keep\n").mode(file, 0o600);
        let (result, run) = run(&test, leave_process);
        let hint = result["hint"].as_str().unwrap_or_default();
        run.check(hint.contains(fate), file);
    }
}

/// Programs get writable temporary, home and cache folders, unless their own are granted.
#[test]
fn programs_get_temporary_home_and_cache_folders() {
    if !is_sandbox_available() {
        return;
    }
    let show = "import os
print(*(os.environ.get(name, '').replace(os.environ['TMPDIR'], 'T') for name in
      ['XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'GIT_CONFIG_GLOBAL']))";
    let (result, usual) = run(&test_with_skills(), show);
    usual.check(result["stdout"] == "T T T/gitconfig\n", "the folders differ");
    let test = test_with_skills().folder("home/.cache/models");
    let cache = test.path("home/.cache/models");
    let (result, granted) = run(&test.env("SCRIPT_SANDBOX_READ", cache), show);
    granted.check(result["stdout"] == " T T/gitconfig\n", "the granted cache folder is not used");
}

/// The model and the user are told why an operation was refused.
#[test]
fn refused_access_is_explained() {
    if !is_sandbox_available() {
        return;
    }
    let (result, _) = run(&test_with_skills(), "open('/tmp/x', 'w')");
    let hint = result["hint"].as_str().unwrap();
    assert!(hint.contains("the script ran in a sandbox"), "{hint}");
    assert!(hint.contains("SCRIPT_SANDBOX_WRITE"), "{hint}");
    let (result, _) = run(&test_with_skills(), "1 / 0");
    assert!(result["hint"].is_null());
}

/// A changed file that affects later runs is reported, with and without the sandbox.
#[test]
fn changed_document_or_venv_is_reported() {
    for sandbox in ["on", "off"] {
        if sandbox == "on" && !is_sandbox_available() {
            continue;
        }
        let test = test_with_skills().venv("s").env("SCRIPT_SANDBOX", sandbox);
        for (script, told) in [
            ("open('notes', 'w').write('x')", None),
            ("open('SKILL.md').read()", None),
            ("import os; os.chmod('notes', 0o600)", None),
            ("import os; os.utime('SKILL.md', (0, 0))", None),
            (
                "open('requirements.txt', 'w').write('x')",
                Some("requirements.txt of the skill changed"),
            ),
            ("import os; os.mkdir('.venv')", Some(".venv of the skill changed")),
            (
                "import os; os.rmdir('.venv'); os.mkdir('.git')",
                Some(".git and .venv of the skill changed"),
            ),
            ("open('.git/config', 'w')", Some(".git of the skill changed")),
            (
                "import os; os.mkdir('.skills-runner-setup')",
                Some(".skills-runner-setup of the skill changed"),
            ),
            ("open('HEAD', 'w')", Some("HEAD of the skill changed")),
            ("open('SKILL.md', 'a').write('x')", Some("SKILL.md of the skill changed")),
            ("open('venv/new', 'w')", Some("venv of the skill changed")),
            (
                "import os; path = 'venv/pyvenv.cfg'; text = open(path).read()
open(path, 'w').write(text); os.utime(path, (0, 0))",
                Some("venv/pyvenv.cfg of the skill changed"),
            ),
            // This one is last: without its document the folder is no longer a skill.
            (
                "import os; os.unlink('venv/new'); os.rename('SKILL.md', 'gone')",
                Some("SKILL.md and venv of the skill changed"),
            ),
        ] {
            let (result, run) = run(&test, script);
            run.check(result["returncode"] == 0, script);
            let hint = result["hint"].as_str();
            match told {
                None => run.check(hint.is_none(), script),
                Some(told) => run.check(hint.is_some_and(|hint| hint.contains(told)), script),
            }
        }
    }
}

/// The shim of a version manager works unchanged in the sandbox.
#[test]
fn shim_starts_in_the_sandbox() {
    if !is_sandbox_available() {
        return;
    }
    let real = interpreter().display();
    let test = test_with_skills()
        .file("manager/shims/python3", "#!/bin/sh\nexec \"${0%/*}/../real\" \"$@\"\n")
        .file("manager/real", format!("#!/bin/sh\nexec {real} \"$@\"\n"))
        .mode("manager/shims/python3", 0o755)
        .mode("manager/real", 0o755);
    let path =
        format!("{}:{}", test.path("manager/shims").display(), std::env::var("PATH").unwrap());
    let test = test
        .env("PATH", path)
        .env("SCRIPT_PYTHON", "")
        .env("SCRIPT_SANDBOX_READ", interpreter().ancestors().nth(2).unwrap());
    let (result, run) = run(&test, "print(1)");
    run.check(result["stdout"] == "1\n", "the shim does not start");
}

/// `doctor` reports whether the sandbox is available, and tries Python in it.
#[test]
fn doctor_reports_the_sandbox() {
    if !is_sandbox_available() {
        return;
    }
    let on = test_with_skills().args(["doctor"]).run();
    on.stdout_has("sandbox: on: Landlock ").stdout_has(" ms in the sandbox");
    let off = test_with_skills().env("SCRIPT_SANDBOX", "off").args(["doctor"]).run();
    off.stdout_has("sandbox: off; SCRIPT_SANDBOX=on is possible here: Landlock ");
    let wrong = test_with_skills().env("SCRIPT_SANDBOX", "perhaps").args(["doctor"]).run();
    wrong.stdout_has("SCRIPT_SANDBOX=perhaps (environment) is not off or on");
}
