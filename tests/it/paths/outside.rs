//! Paths that lead out of a skill.

use super::{
    CANARY, CIRCLE, FIFO, GET, INSIDE, LEADS_OUT, MISSING, NUL, PARENT, PLAIN, READ, RUN, SOCKET,
    absolute, error_of, hostile, make_node, meanwhile, of, of_skill, refusal, results, start_of,
    without_openat2,
};
use crate::harness::{Test, report_skipped};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const ABSOLUTE: &str = "an absolute path that is not in the folder; use a path relative";
const LINK: &str = "a link, and this system cannot follow links safely; use the path of what";
const NO_FOLDER: &str = "a file where the path needs a folder; end the path at the file";
const TOO_LONG: &str = "the path, or a name in it, is too long";
const DEVICE: &str = "a device, not a regular file";

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

/// Both tools that accept a path, each with over 130 hostile paths.
#[test]
#[ignore = "long"]
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
#[ignore = "long"]
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
        (GET, of_skill("hostile")),
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
