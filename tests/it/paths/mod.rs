//! Which files of a skill the tools can reach, and which they cannot.
//!
//! A canary is in everything outside: in files, in a file's name, in the environment. No output may
//! contain it, whatever a model requests and whatever an untrusted skill contains.

mod documents;
mod lists;
mod names;
mod outside;
mod pages;

use crate::harness::{OPENAT2, Outcome, Reply, Server, Test, program_refusing_syscalls, seconds};
use crate::installed::copy_program;
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Content of files outside the skill. It is text and Python, so that reading and running show it.
pub(super) const OUTSIDE: &str = "print('canary-41b7e6 is outside')\n";
pub(super) const CANARY: &str = "canary-41b7e6";
/// Content of files inside the skill, also text and Python.
pub(super) const INSIDE: &str = "print('inside')\n";

const LIST: &str = "list_skills";
pub(super) const GET: &str = "get_skill";
pub(super) const READ: &str = "read_file_in_skill";
pub(super) const RUN: &str = "run_python_script";

/// Starts the program unchanged.
pub(super) const PLAIN: &str = "exec skills-runner \"$@\"";
/// Starts the program with 28 MB of address space: the program itself, in a debug build, takes half.
pub(super) const FRUGAL: &str = "ulimit -v 31744; exec skills-runner \"$@\"";
/// Longer arguments are sent on stdin, because a program's argument is limited to 128 KiB.
const ARGUMENT_BYTES: usize = 100_000;
/// Number of calls in one message of a scripted model.
const BATCH: usize = 100;

// The starts of refusals, as the model gets them.
const PARENT: &str = "a path must not contain `..`; use a path relative to the folder";
const LEADS_OUT: &str = "a link leads out of the folder";
const MISSING: &str = "no such file or folder; ";
const CIRCLE: &str = "too many links, or links that lead in a circle";
const NUL: &str = "a path must not contain a NUL character";
const FIFO: &str = "a FIFO, not a regular file";
const SOCKET: &str = "a socket, not a regular file";

/// The links of the hostile skill and their targets.
const LINKS: &[(&str, &str)] = &[
    ("link-in", "a.md"),
    ("folder-in", "docs"),
    ("chain-in", "link-in"),
    ("docs/deep/up-in", "../b.md"),
    ("link-out", "../../secret"),
    ("link-beside", "../secret"),
    ("link-evil", "../hostile-evil/secret"),
    ("folder-out", ".."),
    ("outside", "../../outside"),
    ("detour-out", "docs/../../secret"),
    ("docs/deep/up-out", "../../../../secret"),
    ("out-and-back", "../hostile/a.md"),
    ("chain-1", "chain-2"),
    ("chain-2", "chain-3"),
    ("chain-3", "../../secret"),
    ("loop-1", "loop-2"),
    ("loop-2", "loop-1"),
    ("self", "self"),
    ("dangling", "not-there"),
    ("dangling-out", "../not-there"),
    ("slash", "/"),
    ("environ", "/proc/self/environ"),
    ("proc-root", "/proc/self/root"),
    ("proc-cwd", "/proc/self/cwd"),
    ("proc-fd", "/proc/self/fd/0"),
    ("proc-exe", "/proc/self/exe"),
    ("zero", "/dev/zero"),
    ("stdin", "/dev/stdin"),
    ("link-to-fifo", "fifo"),
    ("step-0", "a.md"),
];

/// A skill with hostile links and special files, surrounded by canaries.
pub(super) fn hostile() -> Test {
    let mut test = Test::new()
        .env("CANARY", CANARY)
        .file("secret", OUTSIDE)
        .file("outside/secret", OUTSIDE)
        .file("outside/SKILL.md", OUTSIDE)
        .file(&format!("outside/{CANARY}"), OUTSIDE)
        .file("skills/secret", OUTSIDE)
        .file("skills/.hidden/SKILL.md", OUTSIDE)
        .file("skills/.hidden/secret", OUTSIDE)
        .file("skills/hostile-evil/secret", OUTSIDE)
        .skill("hostile", "---\ndescription: Nothing good.\n---\n")
        .file("skills/hostile/a.md", INSIDE)
        .file("skills/hostile/...", INSIDE)
        .file("skills/hostile/docs/b.md", INSIDE)
        .file("skills/hostile/docs/deep/c.md", INSIDE)
        .link("skills/to-secret", "../secret")
        .link("skills/dangling", "not-there")
        .link("skills/loop", "loop");
    for (name, target) in LINKS {
        test = test.link(&format!("skills/hostile/{name}"), target);
    }
    for step in 1..=45 {
        let name = format!("skills/hostile/step-{step}");
        test = test.link(&name, format!("step-{}", step - 1));
    }
    for (name, target) in [
        ("absolute-out", "secret"),
        ("absolute-folder-out", "outside"),
        ("absolute-in", "skills/hostile/a.md"),
    ] {
        let target = test.path(target);
        test = test.link(&format!("skills/hostile/{name}"), target);
    }
    test = test.link("skills/hostile/long-link", "x".repeat(4000));
    for place in ["skills", "skills/hostile", "skills/hostile/docs"] {
        make_node(&test.path(place).join("fifo"), &["p"]);
        drop(UnixListener::bind(test.path(place).join("socket")).unwrap());
    }
    test
}

/// Creates a FIFO (`p`) or a device; returns whether that succeeded.
pub(crate) fn make_node(path: &Path, kind: &[&str]) -> bool {
    let made = Command::new("mknod").arg(path).args(kind).output();
    made.expect("mknod is installed").status.success()
}

fn absolute(test: &Test, path: &str) -> String {
    test.path(path).to_str().unwrap().to_owned()
}

/// The arguments that name a file of a skill.
pub(super) fn of(skill: &str, path: &str) -> Value {
    json!({"skill_name": skill, "file_path": path})
}

/// The arguments that name a skill.
pub(super) fn of_skill(name: &str) -> Value {
    json!({ "skill_name": name })
}

/// Runs `tool NAME JSON` and asserts that it takes at most a second and little memory and shows no
/// canary.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a call reads better without an ampersand")]
pub(super) fn call(test: &Test, tool: &str, arguments: impl ToString) -> Outcome {
    let arguments = arguments.to_string();
    let run = test.next_run().shell(FRUGAL).args(["tool", tool]);
    let run = if arguments.len() > ARGUMENT_BYTES {
        run.args(["-"]).stdin(arguments)
    } else {
        run.args([arguments])
    };
    run.run()
        .took_at_most(seconds(1.0))
        .stderr_is_empty()
        .stdout_lacks(CANARY)
        .stdout_lacks("root:")
}

/// The message of a call that must fail with nothing but `{"error": …}`.
#[track_caller]
fn refusal(test: &Test, tool: &str, arguments: impl ToString) -> String {
    let run = call(test, tool, arguments).status(1);
    error_of(&run.stdout).unwrap_or_else(|| panic!("{tool}: {}", run.stdout))
}

/// The message of `{"error": …}` if there is no other field.
pub(super) fn error_of(content: &str) -> Option<String> {
    let value: Value = serde_json::from_str(content).ok()?;
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    Some(fields.get("error")?.as_str()?.to_owned())
}

/// The results of many calls in one conversation, as the model gets them. `shell` is the line that
/// starts the program.
#[track_caller]
pub(super) fn results(test: &Test, shell: &str, calls: &[(&str, Value)]) -> Vec<String> {
    let calls: Vec<(&str, String)> =
        calls.iter().map(|(tool, arguments)| (*tool, arguments.to_string())).collect();
    let batches = calls.chunks(BATCH).map(|batch| {
        let words = batch.iter().map(|(tool, text)| (*tool, text.as_str()));
        Reply::calls(words)
    });
    let server = Server::start(batches.chain([Reply::text("done")]));
    let run = test.next_run().endpoint(&server).shell(shell).args(["go"]);
    run.run().success().stdout("done\n").stderr_lacks(CANARY).memory_at_most(32 * 1024);
    let requests = server.finish();
    let messages = requests.last().unwrap().messages().iter();
    let contents: Vec<String> = messages
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(contents.len(), calls.len());
    contents
}

/// The names and descriptions of all skills, in the order of the list.
fn described(list: &Value) -> Vec<(&str, &str)> {
    let skills = list["skills"].as_array().unwrap().iter();
    skills
        .map(|skill| {
            let name = skill["name"].as_str().unwrap();
            (name, skill["description"].as_str().unwrap())
        })
        .collect()
}

/// Repeats one function until the other returns.
pub(super) fn meanwhile<T>(over_and_over: impl Fn() + Sync, until: impl FnOnce() -> T) -> T {
    struct Stop<'s>(&'s AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        // Stops also if the test panics.
        let _stop = Stop(&stopped);
        scope.spawn(|| {
            while !stopped.load(Ordering::Relaxed) {
                over_and_over();
            }
        });
        until()
    })
}

pub(super) fn start_of(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The line that starts the program without `openat2`, if this machine can do that.
fn without_openat2(test: &Test) -> Option<String> {
    program_refusing_syscalls(test, &[OPENAT2])
}

pub(super) fn appending(path: &Path) -> File {
    File::options().append(true).open(path).unwrap()
}

/// The line that starts the program as an ordinary user. The program is copied to a place that all
/// users can read.
pub(crate) fn as_an_ordinary_user(test: &Test) -> &'static str {
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    if user != b"0\n" {
        return PLAIN;
    }
    copy_program(&test.path("program"));
    "exec setpriv --reuid 65534 --regid 65534 --clear-groups ./program \"$@\""
}
