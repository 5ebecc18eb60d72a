//! Confinement of a skill under generated attacks: over 250 hostile paths, names and documents
//! each, with and without `openat2`, as the user who runs the tests and as an ordinary user.
//!
//! `paths.rs` tests the text of the refusals. These tests prove that nothing outside the skill is
//! shown, with little memory and in a short time.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{OPENAT2, Test, interpreter, seconds, shell_line_refusing_syscalls};
use crate::paths::{
    CANARY, FRUGAL, GET, INSIDE, OUTSIDE, PLAIN, READ, RUN, appending, as_an_ordinary_user, call,
    error_of, hostile, make_node, meanwhile, of, of_skill, results, start_of,
};

/// The guaranteed limit of one second, and one for a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Strings that are, or look like, two dots.
const DOTS: &[&str] = &[
    "..",
    ".. ",
    " ..",
    "..\t",
    "..\n",
    "..\r",
    "..;",
    "..\\",
    "\\..",
    ". .",
    "....",
    "..%00",
    "%2e%2e",
    "%2E%2E",
    "%252e%252e",
    "..%20",
    "..%c0%af",
    "%u002e%u002e",
    "&period;&period;",
    "\\u002e\\u002e",
    "'..'",
    "\"..\"",
    "$'..'",
    "．．",
    "。。",
    "‥",
    "․․",
    "··",
    "..\u{200b}",
    "\u{200b}..",
    "..\u{feff}",
    "\u{feff}..",
    "..\u{301}",
    "\u{202e}..",
    "..\u{7f}",
    "..\u{0}",
];
/// Strings that are, or look like, a slash.
const SLASHES: &[&str] = &["/", "//", "/./", "\\", "%2f", "∕", "／", "⁄", "/\u{200b}/"];

/// Targets of hostile links.
const TARGETS: &[&str] = &[
    "../secret",
    "../../secret",
    "../../outside/secret",
    "./../secret",
    "docs/../../secret",
    "..//secret",
    "../hostile/../secret",
    "../../../../../../../../../../etc/passwd",
    "..",
    "../..",
    ".",
    "/",
    "//",
    "/etc/passwd",
    "/etc",
    "/proc",
    "/proc/self/environ",
    "/proc/self/cmdline",
    "/proc/self/maps",
    "/proc/self/mem",
    "/proc/self/status",
    "/proc/self/exe",
    "/proc/self/cwd",
    "/proc/self/cwd/secret",
    "/proc/self/root",
    "/proc/self/root/etc/passwd",
    "/proc/self/fd",
    "/proc/self/fd/0",
    "/proc/self/fd/1",
    "/proc/self/fd/3",
    "/proc/self/fd/5",
    "/proc/1/environ",
    "/proc/self/task/self/environ",
    "/proc/thread-self/environ",
    "/proc/kmsg",
    "/proc/kcore",
    "/proc/sysrq-trigger",
    "/sys/kernel",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/fd/0",
    "/dev/fd/3",
    "/dev/shm",
    "/dev/mem",
    "/dev/console",
    "/run",
    "/tmp",
    "/root/.ssh",
    "fifo",
    "socket",
    "self-hostile",
    "loop-1",
    "step-41",
    "not-there",
    "../not-there",
    "fifo/x",
    "a.md/x",
    "/a.md",
];

/// Paths that do not lead to a file of the skill.
fn paths() -> Vec<String> {
    let mut paths = BTreeSet::new();
    for (row, dots) in DOTS.iter().enumerate() {
        for (number, slash) in SLASHES.iter().enumerate().skip(row % 2).step_by(2) {
            let before = ["", "docs/", "./", "docs/deep/../"][number % 4];
            paths.insert(format!("{before}{dots}{slash}secret"));
        }
    }
    for number in 0..TARGETS.len() {
        for (before, after) in [("", ""), ("", "/secret")] {
            paths.insert(format!("{before}to-{number}{after}"));
        }
    }
    let named = "fifo socket block device device/x A.MD a.MD Docs/b.md SKILL.MD step-41 step-45";
    paths.extend(named.split(' ').map(str::to_owned));
    paths.into_iter().collect()
}

/// Paths at and beyond every limit.
fn long_paths() -> Vec<String> {
    let long = [
        ("../", 1_000),
        ("./../", 700),
        ("docs/../", 500),
        ("x/", 1_000),
        ("./", 2_045),
        ("./", 2_048),
        ("/", 4_095),
        ("/", 4_096),
        ("/", 100_000),
        (".", 256),
        ("\\", 4_000),
        ("\0", 100_000),
        ("x", 255),
        ("x", 256),
        ("x", 4_095),
        ("x", 4_096),
        ("é", 128),
        ("../", 33_333),
    ];
    let long = long.map(|(unit, times)| unit.repeat(times) + "secret");
    long.into()
}

/// A skill that contains all of these links and is readable by all users.
fn test_with_links() -> Test {
    let mut test = hostile()
        .mode(".", 0o755)
        .mode("skills", 0o755)
        .link("skills/hostile/self-hostile", "self-hostile");
    for (number, target) in TARGETS.iter().enumerate() {
        test = test.link(&format!("skills/hostile/to-{number}"), target);
    }
    let device = |name: &str| test.path("skills/hostile").join(name);
    // Only root can create these.
    make_node(&device("block"), &["b", "7", "0"]);
    make_node(&device("device"), &["c", "1", "5"]);
    test
}

/// One skill for each of these links as its document, in each spelling of the document's name.
fn documents() -> (Test, Vec<String>) {
    let mut test = test_with_links();
    let mut skills = Vec::new();
    for (number, target) in TARGETS.iter().enumerate() {
        for document in ["SKILL.md", "skill.md", "Skill.md", "SKILL.MD"] {
            let skill = format!("d{number}-{}", skills.len() % 4);
            test = test.link(&format!("skills/{skill}/{document}"), target);
            if *target == "fifo" {
                make_node(&test.path(format!("skills/{skill}/fifo")), &["p"]);
            }
            skills.push(skill);
        }
    }
    (test, skills)
}

/// Shell lines that start the program with and without `openat2`, as this user and as an ordinary
/// user.
fn shells(test: &Test) -> Vec<String> {
    let ordinary = as_an_ordinary_user(test);
    let mut shells = vec![FRUGAL.to_owned(), format!("ulimit -v 26624; {ordinary}")];
    shells.extend(
        [PLAIN, ordinary]
            .iter()
            .filter_map(|line| shell_line_refusing_syscalls(test, line, &[OPENAT2])),
    );
    shells
}

/// Makes the calls and asserts that each is refused.
fn assert_refused(test: &Test, shell: &str, calls: &[(&str, Value)]) {
    let began = Instant::now();
    let contents: Vec<String> =
        calls.chunks(200).flat_map(|calls| results(test, shell, calls)).collect();
    let each = began.elapsed() / u32::try_from(calls.len()).unwrap();
    assert!(each < seconds(0.1), "{each:?} a call by {shell}");
    let wrong = calls.iter().zip(&contents).filter(|(_, content)| {
        error_of(content).is_none() || content.contains(CANARY) || content.contains("root:x:")
    });
    let wrong: Vec<_> = wrong
        .map(|((tool, arguments), content)| {
            format!("{tool} {}: {}", start_of(&arguments.to_string()), start_of(content))
        })
        .collect();
    assert!(wrong.is_empty(), "{shell}\n{}", wrong.join("\n"));
}

/// Over 250 hostile paths, to read and to run.
#[test]
#[ignore = "long"]
fn generated_paths_are_refused() {
    let test = test_with_links();
    let paths = paths();
    assert!(paths.len() > 280, "{}", paths.len());
    for shell in shells(&test) {
        for tool in [READ, RUN] {
            // `to-10` is a link to the skill's folder itself, which may be listed; a file is also
            // found by a path in another letter case.
            let inside = ["a.md", "docs/b.md", "skill.md"];
            let is_allowed = |path: &&String| {
                tool == READ && path.as_str() == "to-10"
                    || inside.contains(&path.to_lowercase().as_str())
            };
            let paths = paths.iter().filter(|path| !is_allowed(path));
            let calls: Vec<_> = paths.map(|path| (tool, of("hostile", path))).collect();
            assert_refused(&test, &shell, &calls);
        }
    }
    for path in long_paths() {
        for (tool, arguments) in
            [(READ, of("hostile", &path)), (RUN, of("hostile", &path)), (GET, of_skill(&path))]
        {
            call(&test, tool, arguments).status(1);
        }
    }
}

/// The same strings as names of skills, for every tool.
#[test]
#[ignore = "long"]
fn generated_skill_names_are_refused() {
    let test = test_with_links();
    let names = paths().into_iter().filter(|path| !path.starts_with("to-"));
    let names = names.chain(TARGETS.iter().chain(DOTS).map(|&name| name.to_owned()));
    let names: Vec<String> = names.collect();
    assert!(names.len() > 250, "{}", names.len());
    for shell in shells(&test) {
        for tool in [GET, READ, RUN] {
            let arguments = |name: &String| match tool {
                GET => of_skill(name),
                _ => of(name, "secret"),
            };
            let calls: Vec<_> = names.iter().map(|name| (tool, arguments(name))).collect();
            assert_refused(&test, &shell, &calls);
        }
    }
}

/// Over 250 invalid documents, for the tool and the commands.
#[test]
#[ignore = "long"]
fn generated_documents_are_refused() {
    let (test, skills) = documents();
    assert!(skills.len() > 250, "{}", skills.len());
    for shell in shells(&test) {
        let calls: Vec<_> = skills.iter().map(|skill| (GET, of(skill, ""))).collect();
        assert_refused(&test, &shell, &calls);
    }
    let frugal = |words: &[&str]| {
        let run = test.next_run().shell(FRUGAL).args(words).run();
        run.stdout_lacks(CANARY)
            .stdout_lacks("root:x:")
            .stderr_lacks(CANARY)
            .stderr_lacks("root:x:")
    };
    frugal(&["skills", "check"]).status(1);
    frugal(&["skills", "list", "--json"]);
    let show = |skills: &[String]| {
        for skill in skills {
            frugal(&["skills", "show", skill]).took_at_most(TIME_LIMIT);
            frugal(&["skills", "check", skill]).status(1).took_at_most(TIME_LIMIT);
        }
    };
    thread::scope(|scope| {
        for part in skills.chunks(skills.len().div_ceil(2)) {
            scope.spawn(move || show(part));
        }
    });
}

/// The program follows as many links as the kernel does.
#[test]
fn chains_of_links_have_the_limit_of_the_kernel() {
    let test = hostile();
    let calls = [38, 39, 40, 41].map(|step| (READ, of("hostile", &format!("step-{step}"))));
    let contents = results(&test, PLAIN, &calls);
    assert_eq!(contents[..2], [INSIDE, INSIDE]);
    assert!(contents[2..].iter().all(|content| error_of(content).is_some()), "{contents:?}");
}

/// A hard link is not an escape: a user who could create it in the skill's folder may also share
/// the file. The kernel's `protected_hardlinks` ensures that.
#[test]
fn hard_link_is_a_file_of_the_skill() {
    let test = hostile().file("elsewhere", INSIDE);
    fs::hard_link(test.path("elsewhere"), test.path("skills/hostile/hard")).unwrap();
    let calls = [(READ, of("hostile", "hard"))];
    assert_eq!(results(&test, PLAIN, &calls), [INSIDE]);
}

/// Skills can be read after the working folder was deleted.
#[test]
fn deleted_working_folder_does_not_prevent_reading() {
    let test = hostile();
    let skills = test.path("skills").display().to_string();
    let shell = "mkdir gone && cd gone && rmdir ../gone && exec skills-runner \"$@\"";
    let arguments = of("hostile", "a.md").to_string();
    let run = test.next_run().shell(shell).args(["--skills", &skills, "tool", READ, &arguments]);
    run.run().success().stdout(INSIDE);
    let arguments = of("hostile", "../secret").to_string();
    let run = test.next_run().shell(shell).args(["--skills", &skills, "tool", READ, &arguments]);
    run.run().status(1).stdout_lacks(CANARY);
}

/// Files that are truncated and extended while they are read and run.
#[test]
fn files_changed_while_read_are_limited() {
    let test = hostile().env("SCRIPT_PYTHON", interpreter()).file("skills/hostile/tide.py", "");
    let path = test.path("skills/hostile/tide.py");
    let text = "print('inside')\n".repeat(20_000);
    let tide = || {
        fs::write(&path, &text).unwrap();
        appending(&path).set_len(7).unwrap();
    };
    meanwhile(tide, || {
        let calls: Vec<_> = [READ, RUN]
            .repeat(30)
            .into_iter()
            .map(|tool| (tool, of("hostile", "tide.py")))
            .collect();
        for content in results(&test, PLAIN, &calls) {
            assert!(content.len() < 140_000, "{} bytes", content.len());
        }
    });
    let (sparse, skill) = (test.path("skills/hostile/sparse.py"), test.next_run());
    fs::write(&sparse, OUTSIDE.replace(CANARY, "own")).unwrap();
    appending(&sparse).set_len(1 << 40).unwrap();
    let arguments = of("hostile", "sparse.py").to_string();
    let run = skill.shell(FRUGAL).args(["tool", RUN, &arguments]).run();
    run.status(1).took_at_most(TIME_LIMIT).stdout_has("is larger than 4 MiB");
    drop(UnixListener::bind(test.path("skills/hostile/late")).unwrap());
    let arguments = of("hostile", "late").to_string();
    test.next_run().args(["tool", RUN, &arguments]).run().status(1).stdout_has("a socket");
}
