//! Hostile paths against the tools that write: all are refused, and no byte anywhere changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{DOCUMENT, work};
use crate::harness::{OPENAT2, Test, program_refusing_syscalls};
use crate::paths::{CANARY, PLAIN, error_of, make_node, results, start_of};

/// Names that are refused in any folder.
const NAMES: &str = ".env .ENV .eNv .env.local .envrc .Env.d/x .env/x .git .GIT .git/config .gIt/hooks/x .git/hooks/pre-commit \
    skills-runner.lock Skills-Runner.LOCK";

/// Other ways to write a folder: the working folder, a folder in it, and a link to that.
const FOLDERS: &str = "./ sub/ ./sub// to-sub/ sub/./ sub/deep/new/";

/// Targets of links, whose names are `link-0` and so on.
const TARGETS: &str = "../outside/secret ../outside .. ../.. / /etc /etc/passwd /proc/self/environ /proc/self/root /proc/self/cwd \
    /proc/self/fd/0 /dev/null /dev/full /dev/zero /dev/stdin /dev/shm /tmp .env .env.local .git .git/config sub/.git \
    sub/.git/hooks sub/.git/hooks/pre-commit skills skills/s skills/s/SKILL.md lib/l lib/l/SKILL.md key facts.md \
    sessions sessions/a.jsonl skills-runner.lock fifo socket not-there ../not-there link-0 link-17 link-22 link-26 loop \
    sub/../../outside/secret to-sub/../../outside a.txt/x";

/// Paths that lead outside, or to what is not a file.
const OTHERS: &str = "../outside/secret ./../outside/secret sub/../../outside/secret .. ../ ../.. ../work/a.txt sub/../a.txt \
    to-sub/../a.txt /etc/passwd /etc/x-of-a-test /dev/null /dev/stdout /dev/fd/1 /proc/self/fd/1 /proc/self/comm \
    ~ ~/x ~/.bashrc ~/.ssh/authorized_keys ~/../outside/secret . ./ sub sub/ to-sub to-sub/ a.txt/ a.txt/x a.txt/. \
    fifo fifo/x socket socket/x loop loop/x skills skills/ skills/s skills/s/SKILL.md skills/s/run.py skills/new/SKILL.md \
    ./skills/s/new/x to-skills/s/SKILL.md lib/l/SKILL.md lib/l/new.py lib/../skills/x .claude/skills/x/SKILL.md .agents/skills/x \
    .claude/skills key facts.md ./facts.md sessions sessions/a.jsonl sessions/new h-env h-local h-key h-facts h-session h-git \
    ./h-env sub/h-env to-sub/h-env h-module h-venv h-hook no/notes/2026-01-01.md no/notes not-yet/SKILL.md \
    not-yet/skill.md plain/SKILL.md data/skills-runner/skills/x/SKILL.md data/skills-runner/skills/x/run.py";

fn hostile() -> Test {
    let mut test = work()
        .env("CANARY", CANARY)
        .file("outside/secret", CANARY)
        .file("home/.bashrc", CANARY)
        .file("work/a.txt", "a\n")
        .file("work/.env.local", format!("SECRET={CANARY}\n"))
        .file("work/.git/config", CANARY)
        .file("work/.git/hooks/old", CANARY)
        .file("work/sub/.git/hooks/pre-commit", CANARY)
        .file("work/lib/l/SKILL.md", DOCUMENT)
        .link("work/skills/l", "../lib/l")
        .link("work/to-skills", "skills")
        .link("work/to-sub", "sub")
        .link("work/loop", "loop")
        .file("work/key", CANARY)
        .file("work/facts.md", format!("- {CANARY}\n"))
        .file("work/sessions/a.jsonl", CANARY)
        .file("work/skills-runner.lock", "{}")
        .file("work/node_modules/x/.env", CANARY)
        .file("work/sub/venv/pyvenv.cfg", "")
        .file("work/sub/venv/.env", CANARY)
        .link("work/skills/soon", "../not-yet")
        .folder("work/plain")
        .link("work/skills/plain", "../plain")
        .env("NOTES_FOLDER_PATH", "no/notes")
        .env("LLM_API_KEY_FILE", "key")
        .env("MEMORY_PATH", "facts.md")
        .env("SESSIONS_PATH", "sessions");
    let data = test.path("work/data");
    test = test.env("XDG_DATA_HOME", data);
    test = test.file("work/.env", format!("SECRET={CANARY}\n"));
    for (name, link) in [
        (".env", "h-env"),
        (".env", "sub/h-env"),
        (".env.local", "h-local"),
        ("key", "h-key"),
        ("facts.md", "h-facts"),
        ("sessions/a.jsonl", "h-session"),
        (".git/hooks/old", "h-git"),
        ("node_modules/x/.env", "h-module"),
        ("sub/venv/.env", "h-venv"),
        ("sub/.git/hooks/pre-commit", "h-hook"),
    ] {
        let path = |name: &str| test.path(format!("work/{name}"));
        fs::hard_link(path(name), path(link)).unwrap();
    }
    for (number, target) in TARGETS.split_whitespace().enumerate() {
        test = test.link(&format!("work/link-{number}"), target);
    }
    make_node(&test.path("work/fifo"), &["p"]);
    drop(UnixListener::bind(test.path("work/socket")).unwrap());
    test
}

fn paths(test: &Test) -> Vec<String> {
    let mut paths: BTreeSet<String> = OTHERS.split_whitespace().map(str::to_owned).collect();
    let work = test.path("work").display().to_string();
    for name in NAMES.split_whitespace() {
        paths.extend(FOLDERS.split_whitespace().map(|folder| format!("{folder}{name}")));
        paths.extend([name.to_owned(), format!("{work}/{name}")]);
    }
    for (number, target) in TARGETS.split_whitespace().enumerate() {
        paths.extend(["", "/", "/x", "/secret"].map(|end| format!("link-{number}{end}")));
        if !target.starts_with('/') && target != "not-there" {
            paths.insert(format!("{work}/{target}"));
        }
    }
    for path in ["outside/secret", "skills/x", "work/../outside/secret", "home/.bashrc"] {
        paths.insert(test.path(path).display().to_string());
    }
    paths.extend(["", "a\0b", "\0", ".env\0"].map(str::to_owned));
    paths.extend([("x", 256), ("x/", 3000), ("../", 40), ("/", 100)].map(|(it, n)| it.repeat(n)));
    paths.into_iter().collect()
}

/// Kind, mode, other names and content of everything below a folder.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        let content = match () {
            () if meta.is_symlink() => {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            }
            () if meta.is_file() => fs::read(&path).unwrap(),
            () => Vec::new(),
        };
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()));
        }
        let links = if meta.is_dir() { 0 } else { meta.ino() };
        all.insert(path, (meta.permissions().mode(), links, content));
    }
    all
}

/// Over 250 paths, each with both tools, with and without `openat2`.
#[test]
fn hostile_paths_change_nothing() {
    let test = hostile();
    let paths = paths(&test);
    assert!(paths.len() >= 250, "{} paths", paths.len());
    let calls: Vec<(&str, Value)> = paths
        .iter()
        .flat_map(|path| {
            let edit = json!({"path": path, "old": "a", "new": "b", "all": true});
            [("write_file", json!({"path": path, "content": "x"})), ("edit_file", edit)]
        })
        .collect();
    let without_openat2 = program_refusing_syscalls(&test, &[OPENAT2]);
    let before = snapshot(&test.path("."));
    for shell in [PLAIN.to_owned()].into_iter().chain(without_openat2) {
        let contents: Vec<String> =
            calls.chunks(400).flat_map(|calls| results(&test, &shell, calls)).collect();
        let wrong = calls
            .iter()
            .zip(&contents)
            .filter(|(_, content)| error_of(content).is_none() || content.contains(CANARY));
        let wrong: Vec<_> = wrong
            .map(|((tool, arguments), content)| {
                format!("{tool} {}: {}", start_of(&arguments.to_string()), start_of(content))
            })
            .collect();
        assert!(wrong.is_empty(), "{shell}\n{}", wrong.join("\n"));
        let after = snapshot(&test.path("."));
        let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
        let changed: BTreeSet<_> = before.keys().chain(after.keys()).filter(differs).collect();
        assert!(changed.is_empty(), "{shell}: {changed:?}");
    }
}
