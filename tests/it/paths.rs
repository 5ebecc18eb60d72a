//! Which files of a skill the tools can reach, and which they cannot.
//!
//! A canary is in everything outside: in files, in a file's name, in the environment. No output may
//! contain it, whatever a model requests and whatever an untrusted skill contains.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::harness::{
    OPENAT2, Outcome, Reply, Server, Test, program_refusing_syscalls, report_skipped, seconds,
    wait_until,
};
use crate::installed::copy_program;

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
/// Starts the program with 24 MB of address space, more than it may use.
pub(super) const FRUGAL: &str = "ulimit -v 24576; exec skills-runner \"$@\"";
/// Longer arguments are sent on stdin, because a program's argument is limited to 128 KiB.
const ARGUMENT_BYTES: usize = 100_000;
/// Number of calls in one message of a scripted model.
const BATCH: usize = 100;

// The starts of refusals, as the model gets them.
const PARENT: &str = "a path must not contain `..`; use a path relative to the folder";
const ABSOLUTE: &str = "an absolute path that is not in the folder; use a path relative";
const LEADS_OUT: &str = "a link leads out of the folder";
const LINK: &str = "a link, and this system cannot follow links safely; use the path of what";
const MISSING: &str = "no such file or folder; ";
const NO_FOLDER: &str = "a file where the path needs a folder; end the path at the file";
const TOO_LONG: &str = "the path, or a name in it, is too long";
const CIRCLE: &str = "too many links, or links that lead in a circle";
const NUL: &str = "a path must not contain a NUL character";
const FIFO: &str = "a FIFO, not a regular file";
const SOCKET: &str = "a socket, not a regular file";
const DEVICE: &str = "a device, not a regular file";
const NO_SKILL: &str = "there is no skill `";

/// Paths that are refused on every system, for their text or their target.
const BY_TEXT: &[(&str, &str)] = &[
    ("..", PARENT),
    ("../", PARENT),
    ("../secret", PARENT),
    ("../../secret", PARENT),
    ("./../secret", PARENT),
    (".//..//secret", PARENT),
    ("../hostile/a.md", PARENT),
    ("../hostile-evil/secret", PARENT),
    ("docs/..", PARENT),
    ("docs/../a.md", PARENT),
    ("docs/../../secret", PARENT),
    ("docs/deep/../../../../secret", PARENT),
    ("a.md/../../secret", PARENT),
    ("nothing/../../secret", PARENT),
    ("folder-out/../secret", PARENT),
    ("../../../../../../../../../../etc/passwd", PARENT),
    ("docs/../\\../secret", PARENT),
    ("/", ABSOLUTE),
    ("//", ABSOLUTE),
    ("/.", ABSOLUTE),
    ("/etc/passwd", ABSOLUTE),
    ("//etc//passwd", ABSOLUTE),
    ("/etc/../etc/passwd", ABSOLUTE),
    ("/a.md", ABSOLUTE),
    ("/proc/self/environ", ABSOLUTE),
    ("/proc/self/cwd/secret", ABSOLUTE),
    ("/proc/self/root/etc/passwd", ABSOLUTE),
    ("/proc/self/fd/0", ABSOLUTE),
    ("/dev/stdin", ABSOLUTE),
    ("/dev/zero", ABSOLUTE),
    ("/dev/tty", ABSOLUTE),
    ("nothing", MISSING),
    ("nothing/at/all", MISSING),
    ("A.MD", MISSING),
    ("a.md ", MISSING),
    (" a.md", MISSING),
    ("a.md\n", MISSING),
    (".. /secret", MISSING),
    (".../secret", NO_FOLDER),
    ("．．/secret", MISSING),
    ("‥/secret", MISSING),
    ("․․/secret", MISSING),
    ("..\u{200b}/secret", MISSING),
    ("\u{feff}../secret", MISSING),
    ("..∕secret", MISSING),
    ("..／secret", MISSING),
    ("\u{202e}dm.a", MISSING),
    ("%2e%2e/secret", MISSING),
    ("%2e%2e%2fsecret", MISSING),
    ("..%2fsecret", MISSING),
    ("..%252fsecret", MISSING),
    ("%00../secret", MISSING),
    ("..%c0%afsecret", MISSING),
    ("..\\secret", MISSING),
    ("..\\..\\secret", MISSING),
    ("C:\\secret", MISSING),
    ("\\\\?\\secret", MISSING),
    ("..;/secret", MISSING),
    ("file:///etc/passwd", MISSING),
    ("~/.bashrc", MISSING),
    ("~root", MISSING),
    ("$HOME", MISSING),
    ("${HOME}/../secret", PARENT),
    ("`cat ../secret`", MISSING),
    ("$(cat secret)", MISSING),
    ("a.md;secret", MISSING),
    ("*", MISSING),
    ("?.md", MISSING),
    ("{a,b}.md", MISSING),
    ("proc/self/environ", MISSING),
    ("a.md/", NO_FOLDER),
    ("a.md//", NO_FOLDER),
    ("a.md/.", NO_FOLDER),
    ("a.md/b.md", NO_FOLDER),
    ("fifo/", NO_FOLDER),
    ("fifo/secret", NO_FOLDER),
    ("socket/", NO_FOLDER),
    ("fifo", FIFO),
    ("./fifo", FIFO),
    ("docs/fifo", FIFO),
    ("socket", SOCKET),
    ("\0", NUL),
    ("a.md\0", NUL),
    ("a.md\0/../../secret", NUL),
    ("../secret\0.md", NUL),
    ("docs\0/../b.md", NUL),
];

/// Paths through links. Without `openat2` no link is followed.
const BY_LINK: &[(&str, &str)] = &[
    ("link-out", LEADS_OUT),
    ("link-out/", LEADS_OUT),
    ("link-beside", LEADS_OUT),
    ("link-evil", LEADS_OUT),
    ("folder-out", LEADS_OUT),
    ("folder-out/", LEADS_OUT),
    ("folder-out/secret", LEADS_OUT),
    ("folder-out/hostile/a.md", LEADS_OUT),
    ("outside", LEADS_OUT),
    ("outside/secret", LEADS_OUT),
    ("detour-out", LEADS_OUT),
    ("docs/deep/up-out", LEADS_OUT),
    ("out-and-back", LEADS_OUT),
    ("absolute-out", LEADS_OUT),
    ("absolute-folder-out", LEADS_OUT),
    ("absolute-folder-out/secret", LEADS_OUT),
    ("absolute-in", LEADS_OUT),
    ("chain-1", LEADS_OUT),
    ("dangling-out", LEADS_OUT),
    ("slash", LEADS_OUT),
    ("slash/etc/passwd", LEADS_OUT),
    ("environ", LEADS_OUT),
    ("proc-root/etc/passwd", LEADS_OUT),
    ("proc-cwd/secret", LEADS_OUT),
    ("proc-fd", LEADS_OUT),
    ("proc-exe", LEADS_OUT),
    ("zero", LEADS_OUT),
    ("stdin", LEADS_OUT),
    ("dangling", MISSING),
    ("dangling/secret", MISSING),
    ("loop-1", CIRCLE),
    ("loop-1/secret", CIRCLE),
    ("self", CIRCLE),
    ("step-45", CIRCLE),
    ("long-link", TOO_LONG),
    ("link-in/", NO_FOLDER),
    ("link-to-fifo", FIFO),
    ("folder-in/fifo", FIFO),
];

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
pub(super) fn make_node(path: &Path, kind: &[&str]) -> bool {
    let made = Command::new("mknod").arg(path).args(kind).output();
    made.expect("mknod is installed").status.success()
}

/// Every hostile path and the start of its refusal.
fn hostile_paths(test: &Test, follows_links: bool) -> Vec<(String, &'static str)> {
    let mut rows: Vec<(String, &str)> = Vec::new();
    rows.extend(BY_TEXT.iter().map(|&(path, why)| (path.to_owned(), why)));
    let by_link = |&(path, why): &(&str, &'static str)| {
        (path.to_owned(), if follows_links { why } else { LINK })
    };
    rows.extend(BY_LINK.iter().map(by_link));
    let absolute = |path: &str| absolute(test, path);
    rows.extend([
        (absolute("secret"), ABSOLUTE),
        (absolute("skills"), ABSOLUTE),
        (absolute("skills/host"), ABSOLUTE),
        (absolute("skills/hostile-evil/secret"), ABSOLUTE),
        (absolute("skills/hostile/../secret"), PARENT),
        (absolute("skills/hostile/docs/../../secret"), PARENT),
        (absolute("skills/hostile/fifo"), FIFO),
        (absolute("skills/hostile/a.md/"), NO_FOLDER),
        ("x".repeat(255), MISSING),
        ("x".repeat(256), TOO_LONG),
        ("x".repeat(5000), TOO_LONG),
        ("é".repeat(2500), TOO_LONG),
        (format!("docs/{}", "x".repeat(300)), TOO_LONG),
        ("x/".repeat(2000), MISSING),
        ("x/".repeat(2500), TOO_LONG),
        (format!("{}a.md", "./".repeat(2100)), TOO_LONG),
        (format!("{}secret", "docs/../".repeat(400)), PARENT),
        (format!("{}secret", "../".repeat(100_000)), TOO_LONG),
    ]);
    let device = test.path("skills/hostile/device");
    if device.exists() || make_node(&device, &["c", "1", "5"]) {
        rows.push(("device".to_owned(), DEVICE));
    } else {
        report_skipped("the device: only root can create one");
    }
    rows
}

fn absolute(test: &Test, path: &str) -> String {
    test.path(path).to_str().unwrap().to_owned()
}

/// The arguments that name a file of a skill.
pub(super) fn of(skill: &str, path: &str) -> Value {
    json!({"skill_name": skill, "file_path": path})
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

/// Both tools that accept a path, each with over 130 hostile paths.
#[test]
fn files_outside_a_skill_are_not_read_or_run() {
    let test = hostile();
    let rows = hostile_paths(&test, true);
    assert!(rows.len() > 130, "{}", rows.len());
    let mut wrong = Vec::new();
    for (path, why) in &rows {
        for (tool, verb) in [(READ, "read"), (RUN, "run")] {
            let message = refusal(&test, tool, of("hostile", path));
            let expected = format!("of the skill `hostile` cannot be {verb}: {why}");
            if !message.contains(&expected) {
                wrong.push(format!("{tool} {:?}: {message}", start_of(path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same if the kernel lacks `openat2` or a container forbids it.
#[test]
fn files_outside_a_skill_are_refused_without_openat2() {
    let test = hostile();
    let Some(shell) = without_openat2(&test) else {
        return;
    };
    let rows = hostile_paths(&test, false);
    let mut wrong = Vec::new();
    for tool in [READ, RUN] {
        // Paths without links work as before.
        let paths = rows.iter().map(|(path, _)| path.as_str());
        let paths = paths.chain(["docs/deep/c.md"]);
        let calls: Vec<_> = paths.map(|path| (tool, of("hostile", path))).collect();
        let contents = results(&test, &shell, &calls);
        for ((path, why), content) in rows.iter().zip(&contents) {
            let message = error_of(content).unwrap_or_default();
            if !message.contains(why) || content.contains(CANARY) {
                wrong.push(format!("{tool} {:?}: {content}", start_of(path)));
            }
        }
        let last = contents.last().unwrap();
        assert!(error_of(last).is_none() && last.contains("inside"), "{last}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Races: files inside are swapped with links to the outside while they are read, with and without
/// `openat2`.
#[test]
fn swapped_links_leak_nothing() {
    let mut test = hostile();
    let pairs = [
        ("swapped", "../../secret"),
        ("SKILL.md", "../../outside/SKILL.md"),
        ("folder", "../../outside"),
    ];
    let names = pairs.map(|(name, target)| {
        let link = format!("skills/hostile/{name}.aside");
        test = test.clone().link(&link, target);
        [format!("skills/hostile/{name}"), link].map(|name| in_c(&test.path(name)))
    });
    let test =
        test.file("skills/hostile/swapped", INSIDE).file("skills/hostile/folder/secret", INSIDE);
    let calls = [
        (READ, of("hostile", "swapped")),
        (READ, of("hostile", "folder/secret")),
        (GET, of("hostile", "")),
    ];
    let calls: Vec<_> = calls.iter().cycle().take(1800).cloned().collect();
    let shells = [Some(PLAIN.to_owned()), without_openat2(&test)];
    let swaps = AtomicUsize::new(0);
    let swap = || {
        for [one, other] in &names {
            swaps.fetch_add(usize::from(exchange(one, other)), Ordering::Relaxed);
        }
    };
    let read = |shell: &String| results(&test, shell, &calls);
    let contents: Vec<String> =
        meanwhile(swap, || shells.iter().flatten().flat_map(read).collect());
    for content in &contents {
        assert!(!content.contains(CANARY), "{content}");
    }
    assert!(swaps.into_inner() > 1000, "too few swaps");
    assert!(contents.iter().any(|content| content == INSIDE));
    assert!(contents.iter().any(|content| error_of(content).is_some()));
}

fn in_c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap()
}

/// Swaps both names atomically; returns whether that succeeded.
fn exchange(one: &CStr, other: &CStr) -> bool {
    // SAFETY: both names end with NUL and outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            one.as_ptr(),
            libc::AT_FDCWD,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    answer == 0
}

/// Strings that are not names of skills, separated by spaces.
const NO_NAMES: &str = ". .. ... / // ../ ../.. ../outside ../skills/hostile outside ./hostile \
    hostile/ hostile/. hostile// hostile/docs hostile/docs/hostile hostile/outside \
    hostile/folder-out hostile/../../outside hostile-evil/../../outside .hidden .hidden/ ~ $HOME \
    * secret fifo socket dangling loop to-secret %2e%2e ..%2foutside %2e%2e%2foutside ．．/outside ‥ \
    ..\\outside hostile\\..\\..\\outside HOSTILE hоstile hostile\u{200b} hostile-evi file:///etc \
    /etc /proc/self /proc/self/cwd \0 hostile\0 ..\0/outside ../outside\0";

/// A skill's name is the name of one folder and not a path.
#[test]
fn skill_names_are_not_paths() {
    let test = hostile().link("skills/hostile/docs/hostile", "../../../outside");
    let mut names: Vec<String> = NO_NAMES.split(' ').map(str::to_owned).collect();
    names.extend(["", " ", " hostile", "hostile ", "hostile\n"].map(str::to_owned));
    names.extend(["outside", "skills", "skills/hostile"].map(|path| absolute(&test, path)));
    names.extend(["x".repeat(255), "x".repeat(256), "é".repeat(2500)]);
    names.push("../".repeat(100_000) + "outside");
    assert!(names.len() > 55);
    for name in &names {
        for tool in [GET, READ, RUN] {
            let message = refusal(&test, tool, of(name, "secret"));
            assert!(message.contains(NO_SKILL), "{tool} {:?}: {message}", start_of(name));
        }
    }
    for (name, remedy) in [
        ("HOSTILE", "; did you mean `hostile` or `hostile-evil`?"),
        ("weather", "; the skills are: hostile, hostile-evil"),
    ] {
        let message = refusal(&test, GET, of(name, ""));
        assert!(message.ends_with(remedy), "{message}");
    }
}

/// Arguments that are not valid paths; of a repeated argument the last counts.
#[test]
fn invalid_path_arguments_are_reported() {
    let test = hostile();
    let wrong = |name: &str, kind: &str| format!("`{name}` must be a string, not {kind}");
    let missing = "`file_path` is missing".to_owned();
    for (fields, expected) in [
        ("", missing.clone()),
        (r#","file_path":null"#, missing),
        (r#","file_path":["../secret"]"#, wrong("file_path", "an array")),
        (r#","file_path":{"path":"../secret"}"#, wrong("file_path", "an object")),
        (r#","file_path":true"#, wrong("file_path", "a boolean")),
        (r#","file_path":"a.md","skill_name":["hostile"]"#, wrong("skill_name", "an array")),
        (r#","file_path":"a.md","skill_name":null"#, "`skill_name` is missing".into()),
        (r#","file_path":3"#, MISSING.into()),
        (r#","file_path":-1.5e300"#, MISSING.into()),
        (r#","file_path":"a.md","file_path":"../secret""#, PARENT.into()),
        (r#","file_path":"\u002e\u002e\u002fsecret""#, PARENT.into()),
        (r#","file_path":"..\/secret""#, PARENT.into()),
    ] {
        let arguments = format!(r#"{{"skill_name":"hostile"{fields}}}"#);
        let wrapped = serde_json::to_string(&arguments).unwrap();
        for arguments in [arguments, wrapped] {
            let message = refusal(&test, READ, &arguments);
            assert!(message.contains(&expected), "{arguments}: {message}");
        }
    }
    let broken: [(&[u8], &str); 4] = [
        (b"[\"hostile\",\"../secret\"]", "must be a JSON object"),
        (b"3", "must be a JSON object"),
        (b"{\"file_path\":\"\xc0\xae\xc0\xae/secret\"}", "is not UTF-8"),
        (b"{\"file_path\":\"\\ud800../secret\"}", "invalid JSON for"),
    ];
    for (stdin, expected) in broken {
        let run = test.next_run().args(["tool", READ, "-"]).stdin(stdin).run();
        run.status(2).stdout_is_empty().stderr_has(expected);
    }
    // A folder can be read but not run.
    let skill = absolute(&test, "skills/hostile");
    for path in [".", "./", "docs", "docs/", "docs/.", &skill] {
        call(&test, READ, of("hostile", path)).success();
        let message = refusal(&test, RUN, of("hostile", path));
        assert!(message.contains("a folder, not a file"), "{path}: {message}");
    }
    call(&test, READ, of("hostile", "")).success();
    let message = refusal(&test, RUN, of("hostile", ""));
    assert!(message.contains("give `script`"), "{message}");
}

/// Names that only look dangerous, separated by spaces.
const ODD_NAMES: &str = "... .... ..hidden .hidden ..; ．．/x ‥ ․․/x ..\\secret C:\\secret \
    %2e%2e/secret %00 $HOME ~ ~root * ? [a] {a,b} `id` $(id) 'one\"two new\nline tab\t \u{1b}[31m \
    \u{202e}txt.exe - -c --help -d/- @file # Ünï/cödé 日本語.py 😀 e\u{301} \u{7f} NUL aux.py a.md;b \
    & | \u{feff}bom";

/// Files with names that only look dangerous are read and run, and links that stay inside are
/// followed.
#[test]
fn unusual_file_names_work() {
    const ODD: &str = "-odd skill…";
    let long = "n".repeat(255);
    let mut names: Vec<&str> = ODD_NAMES.split(' ').collect();
    names.extend(["with space", " first", "last ", ".. ", " ..", &long]);
    let mut test = hostile().skill(ODD, "x\n").link("by-link", "skills");
    for name in &names {
        test = test.file(&format!("skills/{ODD}/{name}"), INSIDE);
    }
    let mut paths: Vec<Value> = names.iter().map(|name| of(ODD, name)).collect();
    let dots = "./".repeat(2000) + "a.md";
    let plain = "a.md ./a.md docs/b.md docs//b.md docs/./b.md ./docs/././/deep///c.md";
    paths.extend(plain.split(' ').chain([dots.as_str()]).map(|path| of("hostile", path)));
    for path in ["skills/hostile/a.md", "skills//hostile/./docs//b.md"] {
        paths.push(of("hostile", &absolute(&test, path)));
    }
    let links = "link-in chain-in folder-in/b.md folder-in/deep/up-in docs/deep/up-in step-20";
    let by_link = links.split(' ').map(|path| of("hostile", path));
    let all: Vec<Value> = paths.iter().cloned().chain(by_link).collect();
    for (shell, paths) in [(Some(PLAIN.to_owned()), all), (without_openat2(&test), paths)] {
        let Some(shell) = shell else { continue };
        let calls: Vec<_> = paths.iter().map(|path| (READ, path.clone())).collect();
        for (path, content) in paths.iter().zip(results(&test, &shell, &calls)) {
            assert_eq!(content, INSIDE, "{path} by {shell}");
        }
    }
    // The skills folder is a link: both its names are valid for the skill.
    for folder in ["by-link", "skills"] {
        let path = absolute(&test, &format!("{folder}/hostile/a.md"));
        let run = test.next_run().args(["--skills", "by-link", "tool", READ]);
        run.args([of("hostile", &path).to_string()]).run().success().stdout(INSIDE);
    }
    // No file name is parsed as an option of the interpreter.
    let scripts = ["...", "-", "-c", "--help", "-d/-", "~", "new\nline", "．．/x", &long];
    let scripts = scripts.into_iter().map(|name| of(ODD, name));
    let dash = absolute(&test, &format!("skills/{ODD}/-c"));
    for arguments in scripts.chain([of(ODD, &dash), of("hostile", "link-in")]) {
        let run = test.next_run().args(["tool", RUN, &arguments.to_string()]).run();
        run.success().stdout_has(r#""returncode":0,"stdout":"inside\n""#);
    }
}

/// Unusable documents: each is refused with its own reason, and the other skills are still listed.
#[test]
fn unusable_documents_are_refused_with_their_reason() {
    let not_text = "is not UTF-8 text: its owner has to save it as UTF-8";
    let large = "is larger than 1 MiB: read parts of it with read_file_in_skill";
    let links = [
        ("link-out", "../../secret", LEADS_OUT),
        ("link-to-passwd", "/etc/passwd", LEADS_OUT),
        ("link-to-environment", "/proc/self/environ", LEADS_OUT),
        ("link-to-zero", "/dev/zero", LEADS_OUT),
        ("link-to-stdin", "/dev/stdin", LEADS_OUT),
        ("link-to-root", "/", LEADS_OUT),
        ("link-to-link", "link", LEADS_OUT),
        ("link-to-fifo", "fifo", FIFO),
        ("circle", "SKILL.md", CIRCLE),
        ("dangles", "not-there", "has no SKILL.md"),
    ];
    let others = [
        ("other-case", LEADS_OUT),
        ("folder", "a folder, not a file"),
        ("nothing", "has no SKILL.md"),
        ("a-fifo", FIFO),
        ("a-socket", SOCKET),
    ];
    // These are listed with the part that can be read.
    let texts = [
        ("latin", not_text),
        ("utf16", not_text),
        ("huge", large),
        ("sparse", large),
        ("one-too-many", large),
    ];
    let mut test = hostile()
        .link("skills/link-to-link/link", "../../secret")
        .link("skills/other-case/skill.md", "../../secret")
        .folder("skills/folder/SKILL.md")
        .folder("skills/nothing")
        .folder("skills/a-fifo")
        .folder("skills/a-socket")
        .file("skills/latin/SKILL.md", b"# Caf\xe9\n")
        .file("skills/utf16/SKILL.md", b"\xff\xfe#\0 \0A\0\n\0")
        .skill("huge", "# Huge\n")
        .skill("sparse", "# Sparse\n")
        .skill("one-too-many", &"x".repeat((1 << 20) + 1));
    for (skill, target, _) in links {
        test = test.link(&format!("skills/{skill}/SKILL.md"), target);
    }
    let document = |skill: &str| test.path(format!("skills/{skill}/SKILL.md"));
    make_node(&test.path("skills/link-to-fifo/fifo"), &["p"]);
    make_node(&document("a-fifo"), &["p"]);
    drop(UnixListener::bind(document("a-socket")).unwrap());
    let mut huge = appending(&document("huge"));
    io::copy(&mut io::repeat(b'x').take(64 << 20), &mut huge).unwrap();
    appending(&document("sparse")).set_len(1 << 40).unwrap();
    let unusable = links.map(|(skill, _, why)| (skill, why)).into_iter().chain(others);
    let unusable: Vec<_> = unusable.collect();
    for (skill, why) in unusable.iter().chain(&texts) {
        let message = refusal(&test, GET, of(skill, ""));
        assert!(message.contains(why) && message.contains(skill), "{skill}: {message}");
    }
    let list = call(&test, LIST, "{}").success().stdout_json();
    let listed = described(&list);
    for (skill, why) in unusable {
        let (_, description) = listed.iter().find(|(name, _)| *name == skill).unwrap();
        assert!(
            description.starts_with("(not usable: ") && description.contains(why),
            "{skill}: {description}"
        );
    }
    for (skill, _) in texts {
        let (_, description) = listed.iter().find(|(name, _)| *name == skill).unwrap();
        assert!(!description.starts_with("(not usable: "), "{skill}: {description}");
    }
}

pub(super) fn appending(path: &Path) -> File {
    File::options().append(true).open(path).unwrap()
}

/// Files without read permission: each tool reports them, and the other files can be used.
#[test]
fn missing_permission_is_reported() {
    let test = Test::new()
        .mode(".", 0o755)
        .mode("skills", 0o755)
        .skill("open", "# Open\n")
        .file("skills/open/locked.md", OUTSIDE)
        .mode("skills/open/locked.md", 0)
        .file("skills/open/closed/a.md", OUTSIDE)
        .mode("skills/open/closed", 0)
        .file("skills/open/blind/a.md", INSIDE)
        .mode("skills/open/blind", 0o711)
        .skill("document", OUTSIDE)
        .mode("skills/document/SKILL.md", 0)
        .skill("folder", OUTSIDE)
        .mode("skills/folder", 0);
    let shell = as_an_ordinary_user(&test);
    let ask = |tool: &str, arguments: &Value| {
        let run = test.next_run().shell(shell).args(["tool", tool]);
        let run = run.args([arguments.to_string()]).run();
        run.took_at_most(seconds(1.0)).stdout_lacks(CANARY).stderr_is_empty()
    };
    for (tool, arguments) in [
        (READ, of("open", "locked.md")),
        (READ, of("open", "closed")),
        (READ, of("open", "closed/a.md")),
        (READ, of("open", "blind")),
        (RUN, of("open", "locked.md")),
        (RUN, of("open", "closed/a.md")),
        (GET, of("document", "")),
        (GET, of("folder", "")),
        (READ, of("folder", ".")),
    ] {
        let run = ask(tool, &arguments).status(1);
        let message = error_of(&run.stdout).unwrap_or_default();
        let expected = "permission denied; the user has to allow it";
        run.check(message.contains(expected), expected);
    }
    ask(READ, &of("open", "blind/a.md")).success().stdout(INSIDE);
    ask(GET, &of("open", "")).success().stdout_has("# Open\n");
    let list = ask(LIST, &json!({})).success().stdout_json();
    let denied = "(not usable: SKILL.md cannot be read: permission denied)";
    assert_eq!(described(&list), [("document", denied), ("folder", denied), ("open", "Open")]);
}

/// The line that starts the program as an ordinary user. The program is copied to a place that all
/// users can read.
pub(super) fn as_an_ordinary_user(test: &Test) -> &'static str {
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    if user != b"0\n" {
        return PLAIN;
    }
    copy_program(&test.path("program"));
    "exec setpriv --reuid 65534 --regid 65534 --clear-groups ./program \"$@\""
}

/// A skill may be a link, and so may the skills folder, because the user created them. The target
/// is confined as any other skill.
#[test]
fn linked_skills_and_skills_folders_work() {
    let test = Test::new()
        .file("elsewhere/linked/SKILL.md", "---\ndescription: From elsewhere.\n---\n")
        .file("elsewhere/linked/a.md", INSIDE)
        .file("elsewhere/secret", OUTSIDE)
        .link("elsewhere/linked/out", "../secret")
        .link("elsewhere/again", "linked")
        .link("skills/linked", "../elsewhere/again")
        .file("skills/inner/docs/real.md", "# Real\n")
        .link("skills/inner/SKILL.md", "docs/real.md")
        .link("one", "two")
        .link("two", "skills");
    for folder in ["skills", "one"] {
        let ask = |tool: &str, arguments: Value| {
            let run = test.next_run().args(["--skills", folder, "tool", tool]);
            run.args([arguments.to_string()]).run().stdout_lacks(CANARY)
        };
        let list = ask(LIST, json!({})).success().stdout_json();
        assert_eq!(described(&list), [("inner", "Real"), ("linked", "From elsewhere.")]);
        ask(GET, of("linked", "")).success().stdout_has("From elsewhere.");
        ask(GET, of("inner", "")).success().stdout_has("# Real\n");
        let paths = [&format!("{folder}/linked/a.md"), "elsewhere/linked/a.md"];
        for path in paths.map(|path| absolute(&test, path)).iter().chain([&"a.md".to_owned()]) {
            ask(READ, of("linked", path)).success().stdout(INSIDE);
            ask(RUN, of("linked", path)).success().stdout_has(r#""stdout":"inside\n""#);
        }
        let outside = ["elsewhere/secret", "elsewhere/linked/../secret"];
        let outside = outside.map(|path| absolute(&test, path));
        for path in ["out", "../secret"].into_iter().chain(outside.iter().map(String::as_str)) {
            ask(READ, of("linked", path)).status(1);
            ask(RUN, of("linked", path)).status(1);
        }
    }
}

/// Text is returned byte for byte.
#[test]
fn text_is_returned_unchanged() {
    let page_of_lines = "0123456789abcde\n".repeat(2000);
    let page_of_bytes = "x".repeat(65_535) + "\n";
    let one_line = "x".repeat(65_536);
    let texts = [
        "",
        "\n",
        "\n\n\n",
        "no line end",
        "a\r\nb\r\n",
        "a\r\nb",
        "old\rmac\r",
        "tab\tand  spaces  \n",
        "\u{feff}with a mark\n",
        "grüße, 日本語, 😀, e\u{301}\n",
        "\u{2028}\u{202e}\u{200b}\u{fffd}\n",
        "{\"json\": [1, 2]}\n<html>&amp;</html>\na,b\n1,\"2\n3\"\n",
        "RIFF is a word, GIF89 another, PK a third\n",
        "[lines 1 to 2; Go on with offset 3]\n",
        &page_of_lines,
        &page_of_bytes,
        &one_line,
    ];
    let mut test = Test::new().skill("s", "x\n");
    let mut calls = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        test = test.file(&format!("skills/s/{number}"), text);
        calls.push((READ, of("s", &number.to_string())));
    }
    for (text, content) in texts.iter().zip(results(&test, PLAIN, &calls)) {
        let received = start_of(&content);
        assert!(content == *text, "{:?} came as {received:?}", start_of(text));
    }
}

/// Some endpoints refuse requests that contain terminal control characters.
#[test]
fn control_characters_are_not_sent() {
    let test = Test::new()
        .skill("s", "x\n")
        .file("skills/s/a", "\u{1b}[31mred\u{1b}[0m\u{7}\u{b}\tend\r\n");
    let contents = results(&test, PLAIN, &[(READ, of("s", "a"))]);
    assert_eq!(contents, ["red\u{fffd}\u{fffd}\tend\r\n"]);
}

/// Binary files are described by type and size and never shown (`images.rs` tests images).
#[test]
fn binary_files_are_described_by_type_and_size() {
    let noise = (0..5000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[1]);
    let noise: Vec<u8> = noise.collect();
    let zeros = vec![0; 70_000];
    let table: &[(&[u8], &str)] = &[
        (b"%PDF-1.4\n1 0 obj\n", "PDF document"),
        (b"PK\x03\x04\x14\0\x06\0", "ZIP archive or office document"),
        (b"\x1f\x8b\x08\0\0\0", "gzip archive"),
        (b"\x7fELF\x02\x01\x01\0", "ELF program"),
        (b"SQLite format 3\0\x10\0", "SQLite database"),
        (b"text with a NUL\0 in it", "binary file"),
        (b"\xff\xfeh\0i\0", "binary file"),
        (&noise, "binary file"),
        (&zeros, "binary file"),
    ];
    for (bytes, kind) in table {
        let test = Test::new().skill("s", "x\n").file("skills/s/file", bytes);
        let size = bytes.len();
        let expected = format!(
            "{kind}, {size} bytes: not text, so it is not shown; a script can work with it\n"
        );
        call(&test, READ, of("s", "file")).success().stdout(&expected);
    }
    let test = Test::new().skill("s", "x\n").file("skills/s/sparse", "");
    appending(&test.path("skills/s/sparse")).set_len(1 << 40).unwrap();
    let run = call(&test, READ, of("s", "sparse")).success();
    run.stdout_has("binary file, 1099511627776 bytes");
}

#[test]
fn folders_are_listed_without_following_links() {
    let mut test = hostile()
        .skill("s", "x\n")
        .file("skills/s/b/x", "")
        .file("skills/s/Z", "four")
        .file("skills/s/.env", "")
        .file("skills/s/a\nb", "")
        .folder("skills/s/empty")
        .link("skills/s/out", "../../outside")
        .link("skills/s/loop", "loop");
    make_node(&test.path("skills/s/fifo"), &["p"]);
    let all = ".env (0 bytes)\nSKILL.md (2 bytes)\nZ (4 bytes)\na\u{fffd}b (0 bytes)\nb/\nempty/\n\
               fifo (special file)\nloop (link)\nout (link)\n";
    let b = absolute(&test, "skills/s/b");
    for (paths, expected) in [
        (["", ".", "./", ".//."], all),
        (["b", "b/", "./b/.", &b], "x (0 bytes)\n"),
        (["empty"; 4], "(the folder is empty)\n"),
    ] {
        for path in paths {
            call(&test, READ, of("s", path)).success().stdout(expected);
        }
    }
    for number in 0..1003 {
        test = test.file(&format!("skills/s/empty/{number:04}"), "");
    }
    let run = call(&test, READ, of("s", "empty")).success();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 1001);
    assert_eq!((lines[0], lines[999]), ("0000 (0 bytes)", "0999 (0 bytes)"));
    assert_eq!(lines[1000], "[entries 1 to 1000 of 1003. Go on with offset 1001]");
    let rest = part("empty", &json!(1001), &json!(2));
    call(&test, READ, rest).success().stdout(
        "1000 (0 bytes)\n1001 (0 bytes)\n[entries 1001 to 1002 of 1003. Go on with offset 1003]\n",
    );
    call(&test, READ, part("empty", &json!(2000), &json!(2)))
        .success()
        .stdout("[the folder has only 1003 entries]\n");
}

/// The arguments for a part of a file in the skill `s`.
fn part(path: &str, offset: &Value, limit: &Value) -> Value {
    json!({"skill_name": "s", "file_path": path, "offset": offset, "limit": limit})
}

/// The page without its notes, and the offset that the last note names.
fn page_of(text: &str) -> (&str, Option<usize>) {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body.rfind('\n').map_or(0, |end| end + 1);
    let note = body[start..].strip_prefix('[').and_then(|note| note.strip_suffix(']'));
    let Some((_, offset)) = note.and_then(|note| note.rsplit_once("Go on with offset ")) else {
        return (text, None);
    };
    let page = &text[..start];
    let is_cut = page.rsplit_once("\n[the line goes on: ");
    (is_cut.map_or(page, |(page, _)| page), Some(offset.parse().unwrap()))
}

/// All pages of a file, each read with the offset of the note before.
#[track_caller]
fn pages_of(test: &Test, path: &str, limit: Option<usize>) -> Vec<String> {
    let mut pages = Vec::new();
    let mut offset = Some(1);
    while let Some(line) = offset {
        let run = call(test, READ, part(path, &json!(line), &json!(limit))).success();
        let (page, next) = page_of(&run.stdout);
        run.check(page.len() <= (64 << 10) + 3, "the page is too large");
        run.check(next.is_none_or(|next| next > line), "the note names no later line");
        pages.push(page.to_owned());
        offset = next;
    }
    pages
}

const SEVEN: &str = "1\n2\n3\n4\n5\n6\n7\n";

/// Following the notes returns every line exactly once.
#[test]
fn pages_return_every_line_once() {
    let mut large = String::new();
    for number in 0_usize.. {
        let word = ["x", "€", "😀", "ä\t"][number % 4];
        let count = number * 7919 % 97 + if number.is_multiple_of(997) { 9000 } else { 0 };
        let end = if number.is_multiple_of(7) { "\r" } else { "" };
        large += &format!("{number} {}{end}\n", word.repeat(count));
        if large.len() > 5_000_000 {
            break;
        }
    }
    let test = Test::new()
        .skill("s", "x\n")
        .file("skills/s/large", &large)
        .file("skills/s/many", "\n".repeat(9000))
        .file("skills/s/seven", SEVEN);
    let pages = pages_of(&test, "large", None);
    let count = pages.len();
    assert!(pages.concat() == large, "{count} pages differ from the file");
    assert!(count > 75 && pages.iter().all(|page| page.ends_with('\n')));
    let lines: Vec<usize> = pages_of(&test, "many", None).iter().map(String::len).collect();
    assert_eq!(lines, [2000, 2000, 2000, 2000, 1000]);
    assert_eq!(pages_of(&test, "seven", Some(3)), ["1\n2\n3\n", "4\n5\n6\n", "7\n"]);
    assert_eq!(pages_of(&test, "seven", Some(7)), [SEVEN]);
    let note = |lines, next| {
        format!("[lines {lines}; the file is 14 bytes long. Go on with offset {next}]\n")
    };
    for (offset, limit, expected) in [
        (json!(null), json!(2), "1\n2\n".to_owned() + &note("1 to 2", 3)),
        (json!(4), json!(1), "4\n".to_owned() + &note("4 to 4", 5)),
        (json!("6"), json!(2.0), "6\n7\n".into()),
        (json!(0), json!(1_000_000), SEVEN.into()),
    ] {
        call(&test, READ, part("seven", &offset, &limit)).success().stdout(&expected);
    }
    for (offset, limit, expected) in [
        (json!(9), json!(1), "the file has only 7 lines; offset must not be larger"),
        (json!(i64::MAX), json!(i64::MAX), "the file has only 7 lines"),
        (json!(-1), json!(1), "`offset` must be 1 or more, not -1"),
        (json!(1), json!(0), "`limit` must be 1 or more, not 0"),
        (json!("first"), json!(1), "`offset` must be an integer, not a string"),
        (json!(1), json!(1.5), "`limit` must be an integer, not a number"),
    ] {
        let message = refusal(&test, READ, part("seven", &offset, &limit));
        assert!(message.contains(expected), "{offset} {limit}: {message}");
    }
}

/// A line larger than a page is returned in pages of whole characters, with a note that it
/// continues.
#[test]
fn line_larger_than_a_page_is_returned_in_pages() {
    let long = "€".repeat(1_000_000);
    let files = [
        ("single", long.clone()),
        ("ended", long.clone() + "\n"),
        ("between", format!("first\n{long}\r\nlast\n")),
    ];
    for (name, text) in files {
        let test = Test::new().skill("s", "x\n");
        let test = test.file(&format!("skills/s/{name}"), &text);
        let pages = pages_of(&test, name, None);
        assert!(pages.len() > 45, "{name}: {} pages", pages.len());
        // `tool` adds a final line end if there is none.
        let all = pages.concat();
        assert!(all.trim_end() == text.trim_end(), "{name} differs");
        assert!(!all.contains('\u{fffd}'), "{name}: a character is split");
    }
}

#[test]
fn last_line_without_line_end_is_counted() {
    let test = Test::new().skill("s", "x\n").file("skills/s/two", "a\nb");
    let read = |offset: usize| part("two", &json!(offset), &json!(1));
    call(&test, READ, read(2)).success().stdout("b\n");
    for offset in [3, 9] {
        let message = refusal(&test, READ, read(offset));
        assert!(message.contains("the file has only 2 lines"), "{message}");
    }
}

/// Truncation is always reported, also at the limit of what is read of a file.
#[test]
fn truncation_of_a_large_file_is_reported() {
    let test = Test::new().skill("s", "x\n").file("skills/s/large", "first lines\n".repeat(6000));
    let mut large = appending(&test.path("skills/s/large"));
    large.set_len((256 << 20) - 10).unwrap();
    large.write_all(b"\nthe next part\nthe end\n").unwrap();
    let read = |offset: usize| {
        let arguments = part("large", &json!(offset), &json!(null));
        test.next_run().args(["tool", READ, &arguments.to_string()]).run()
    };
    let run = read(6002);
    let is_whole = run.stdout == "the next part\nthe end\n";
    let is_reported = run.status == 1 || run.stdout.ends_with("]\n");
    run.check(is_whole || is_reported, "the page is truncated without a note");
    read(6003).stdout_lacks("has only 6001 lines");
}

/// The name of a file in an untrusted skill stays on one line in every list.
#[test]
fn name_with_a_line_break_is_listed_on_one_line() {
    let test = Test::new().skill("s", "x\n").file("skills/s/a\n\n# New rules", "");
    for (tool, path) in [(READ, "."), (GET, "")] {
        let run = call(&test, tool, of("s", path)).success();
        let forged = run.stdout.lines().any(|line| line.starts_with("# New rules"));
        run.check(!forged, "a name takes more than one line");
    }
}

/// No offset leads back to the start of the file.
#[test]
fn offset_beyond_the_end_does_not_wrap_around() {
    let test = Test::new().skill("s", "x\n").file("skills/s/seven", SEVEN);
    for offset in [1 << 63, u64::MAX] {
        refusal(&test, READ, part("seven", &json!(offset), &json!(1)));
    }
}

/// A file that grows while it is read does not delay the reader.
#[test]
fn growing_files_are_limited() {
    let test = Test::new().skill("s", "# Grows\n").file("skills/s/log", "line\n");
    let paths = ["skills/s/log", "skills/s/SKILL.md"].map(|path| test.path(path));
    let more = b"more and more\n".repeat(600);
    let grow = || {
        for path in &paths {
            appending(path).write_all(&more).unwrap();
        }
        thread::sleep(seconds(0.001));
    };
    meanwhile(grow, || {
        let is_large = || paths[1].metadata().unwrap().len() > 2 << 20;
        assert!(wait_until(seconds(10.0), is_large));
        for _ in 0..10 {
            let run = call(&test, READ, of("s", "log")).success();
            run.check(run.stdout.len() < 66_000, "the page is too large");
            let beyond = part("log", &json!(1_000_000_000), &json!(1));
            call(&test, READ, beyond).status(1);
            call(&test, GET, of("s", "")).status(1).stdout_has("is larger than 1 MiB");
            call(&test, LIST, "{}").success().stdout_has(r#""description":"Grows""#);
        }
    });
}

/// The whole document is returned quickly, whatever the letter case of its name.
#[test]
fn documents_are_returned_complete() {
    let line = "Every line of it counts — auch diese.\r\n";
    let mut mib = line.repeat((1 << 20) / line.len());
    mib += &"x".repeat((1 << 20) - mib.len());
    let test = Test::new()
        .skill("mib", &mib)
        .file("skills/lower/skill.md", "lower")
        .file("skills/upper/SKILL.MD", "upper")
        .file("skills/mixed/Skill.mD", "mixed")
        .file("skills/both/skill.md", "not this one")
        .file("skills/both/Skill.md", "nor this")
        .skill("both", "this one");
    let base = |skill: &str| {
        format!(
            "Base directory for this skill: {}\n\n",
            absolute(&test, &format!("skills/{skill}"))
        )
    };
    for (skill, text) in
        [("mib", mib.as_str()), ("lower", "lower"), ("upper", "upper"), ("mixed", "mixed")]
    {
        let run = call(&test, GET, of(skill, "")).success();
        run.took_at_most(seconds(0.5)).stdout(&format!("{}{text}\n", base(skill)));
    }
    let files =
        "Other files of this skill (read_file_in_skill reads them):\n- Skill.md\n- skill.md\n";
    let run = call(&test, GET, of("both", "")).success();
    run.stdout(&format!("{}this one\n\n{files}", base("both")));
    let list = call(&test, LIST, "{}").success().stdout_json();
    assert!(described(&list).contains(&("both", "this one")), "{list}");
}

#[test]
fn skill_list_is_limited_in_size() {
    let mut test = Test::new();
    // Each character takes six bytes in JSON.
    let description = "\\x01".repeat(1_000);
    for number in 0..40 {
        let document = format!("---\ndescription: \"{description}\"\n---\n");
        test = test.skill(&format!("s{number:02}"), &document);
    }
    let list = call(&test, LIST, "{}").success();
    assert!(list.stdout.len() < 70_000, "{}", list.stdout.len());
    assert!(list.stdout_json()["note"].as_str().unwrap().contains("of 40 skills"));
    // Thousands of words are treated as a text, and not searched one by one.
    let words: Vec<String> = (0..5_000).map(|n| format!("w{n}")).collect();
    let query = json!({"query": format!("s07 {}", words.join(" "))});
    let found = call(&test, LIST, query).success().stdout_json();
    assert_eq!(described(&found)[0].0, "s07");
}

#[test]
fn skills_are_listed_sorted_with_their_descriptions() {
    let fields = [
        ("Big", "name: Big\ndescription: Capitals come first.", "Capitals come first."),
        ("block", "description: |\n  Two\n  lines.", "Two\nlines."),
        ("colon", "description: Use when: always", "Use when: always"),
        ("double", r#"description: "a \"b\" \u00e9""#, "a \"b\" é"),
        ("folded", "description: >-\n  Folded\n  to one.", "Folded to one."),
        ("single", "description: 'it''s: quoted' # a remark", "it's: quoted"),
        ("ünïcödé", "description: 日本語 😀", "日本語 😀"),
        ("without", "name: x", "From the body"),
    ];
    let documents = [
        ("bom", "\u{feff}---\r\ndescription: From Windows.\r\n---\r\n", "From Windows."),
        ("empty", "", ""),
        ("plain", "\n# A title\n\nText.\n", "A title"),
    ];
    let long = "word ".repeat(900);
    let mut test = Test::new()
        .skill("long", &format!("---\ndescription: {long}\n---\n"))
        .folder("skills/none")
        .skill(".hidden", "---\ndescription: Hidden.\n---\n")
        .file("skills/README.md", "A file.\n")
        .link("skills/file-link", "README.md")
        .link("skills/dangling", "nothing");
    let mut expected = vec![("none", "(not usable: it has no SKILL.md)")];
    for (name, fields, description) in fields {
        test = test.skill(name, &format!("---\n{fields}\n---\n\n# From the body\n"));
        expected.push((name, description));
    }
    for (name, document, description) in documents {
        test = test.skill(name, document);
        expected.push((name, description));
    }
    expected.sort_unstable();
    let list = call(&test, LIST, "{}").success().stdout_json();
    let mut listed = described(&list);
    let at = listed.iter().position(|(name, _)| *name == "long").unwrap();
    let (_, cut) = listed.remove(at);
    assert_eq!(listed, expected);
    assert_eq!(list.get("note"), None);
    assert!(cut.len() <= 4_100 && cut.ends_with('…'), "{cut}");
    assert!(long.starts_with(cut.trim_end_matches('…')), "{cut}");

    for query in ["FOLDED one", "\"folded\", one?"] {
        let found = call(&test, LIST, json!({ "query": query })).success();
        assert_eq!(described(&found.stdout_json()), [("folded", "Folded to one.")]);
    }
    let none = call(&test, LIST, json!({"query": "no xylophone"})).success();
    assert_eq!(described(&none.stdout_json()), []);
    none.stdout_has("leave `query` out to see them");
}

/// An empty list is a result with the reason.
#[test]
fn folders_without_skills_are_reported() {
    let test = Test::new()
        .folder("empty")
        .file("only-files/README.md", "")
        .folder("only-hidden/.git")
        .file("file", "")
        .link("loop", "loop");
    make_node(&test.path("fifo"), &["p"]);
    for (folder, expected) in [
        ("empty", "the skills folder is empty"),
        ("only-files", "the skills folder is empty"),
        ("only-hidden", "the skills folder is empty"),
    ] {
        let run = test.next_run().args(["--skills", folder, "tool", LIST]).run();
        let run = run.success().took_at_most(seconds(1.0));
        let list = run.stdout_json();
        assert_eq!(described(&list), [], "{folder}");
        assert!(list["note"].as_str().unwrap().contains(expected), "{folder}: {list}");
        let run = test.next_run().args(["--skills", folder, "tool", GET]);
        let run = run.args([of("x", "").to_string()]).run().status(1);
        run.check(error_of(&run.stdout).is_some(), "no error is reported");
    }
    for (folder, expected) in [
        ("absent", "/absent does not exist"),
        ("file", "/file cannot be read"),
        ("fifo", "/fifo cannot be read"),
        ("loop", "/loop cannot be read"),
    ] {
        let run = test.next_run().args(["--skills", folder, "tool", LIST]).run();
        run.status(78).took_at_most(seconds(1.0)).stderr_has(expected);
    }
}

/// A refusal tells the model what to do next in addition to the cause.
#[test]
fn every_refusal_has_a_remedy() {
    const REMEDIES: &str =
        "use|list|ask|end the|has to|try|only what|must|remove|shorten|leave|instead";
    let test = hostile().folder("skills/a-fifo");
    make_node(&test.path("skills/a-fifo/SKILL.md"), &["p"]);
    let long = "x".repeat(5000);
    let paths =
        ["..", "/etc", "link-out", "nothing", "a.md/x", "\0", "fifo", "socket", "loop-1", &long];
    let refused = paths.map(|path| refusal(&test, READ, of("hostile", path)));
    let document = refusal(&test, GET, of("a-fifo", ""));
    let says_nothing = |message: &&String| {
        let (_, why) = message.rsplit_once("cannot be read: ").unwrap_or(("", message));
        !REMEDIES.split('|').any(|remedy| why.contains(remedy))
    };
    let wrong: Vec<&String> = refused.iter().chain([&document]).filter(says_nothing).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An absolute path into the skill is treated as a relative one, through any links; it opens no
/// other files.
#[test]
fn absolute_path_into_the_skill_is_accepted() {
    let test = Test::new()
        .file("real/skills/a/SKILL.md", "# A\n")
        .file("real/skills/a/sub/k.txt", "inside\n")
        .file("real/skills/b/k.txt", "of another skill\n")
        .file("real/secret.txt", "outside\n")
        .link("here", "real")
        .link("skill", "real/skills/a")
        .link("real/skills/a/out", "../../secret.txt")
        .link("real/skills/a/up", "../..")
        .link("real/skills/b/to-a", "../a")
        .cwd("real");
    let at = |path: &str| test.path(path).to_string_lossy().into_owned();
    let read = |path: &str| call(&test, READ, of("a", path));
    for path in [
        "here/skills/a/sub/k.txt",
        "here/./skills//a/sub/k.txt",
        "skill/sub/k.txt",
        "real/skills/b/to-a/sub/k.txt",
    ] {
        read(&at(path)).success().stdout("inside\n");
    }
    read(&at("here/skills/a/sub")).success().stdout_has("k.txt");
    for path in [
        "here/secret.txt",
        "here/skills/b/k.txt",
        "here/skills/a/out",
        "here/skills/a/up/secret.txt",
        "here/skills/a/../b/k.txt",
        "here/skills/b/../a/sub/k.txt",
        "skill/../b/k.txt",
        "here/skills/a-not/k.txt",
    ] {
        let run = read(&at(path)).status(1);
        run.stdout_lacks("outside").stdout_lacks("of another");
    }
    let missing = refusal(&test, READ, of("a", &at("here/skills/a/none")));
    assert!(missing.contains("no such file"), "{missing}");
}
