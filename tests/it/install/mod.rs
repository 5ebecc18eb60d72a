//! `skills add`, `update`, `remove` and `restore`, the lock file, and `SKILLS_LOCKED`.
//!
//! There is no network: sources are folders, archives that the tests write, repositories that git
//! makes in the test's folder, and servers on loopback.

mod add;
mod archives;
mod copies;
mod each_call;
mod forges;
mod full_disk;
mod git;
mod hostile;
mod hostile_table;
mod interrupted;
mod kills;
mod locked;
mod own_files;
mod pack;
mod restore;
mod targets;
mod trust;
mod update;
mod views;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Outcome, Test, interpreter};

/// The files of a folder: path, mode and content; of a link its target.
type Files = BTreeMap<String, (u32, Vec<u8>)>;

/// A valid document.
fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Adds numbers. Use it for sums.\n---\n# {name}\n")
}

/// A folder `source` with the skills `one` and `two`.
fn with_source() -> Test {
    // Scripts are checked by Python; found by a version manager it is slow.
    Test::new()
        .env("SCRIPT_PYTHON", interpreter())
        .file("source/one/SKILL.md", document("one"))
        .executable("source/one/scripts/run.py", "print(42)\n")
        .file("source/one/data/table.csv", "a,b\n1,2\n")
        .mode("source/one/data/table.csv", 0o644)
        .file("source/two/SKILL.md", document("two"))
        .file("source/README.md", "No skill.\n")
}

/// `skills` with these words, in the test's folder.
fn skills(test: &Test, words: &[&str]) -> Test {
    test.next_run().args(["skills"]).args(words)
}

/// Runs `skills WORDS --to skills --yes`, and checks that no hidden folder is left.
#[track_caller]
fn change(test: &Test, words: &[&str]) -> Outcome {
    let run = skills(test, words).args(["--to", "skills", "--yes"]).run();
    assert_nothing_left(test);
    run
}

/// Runs `skills add` from the folder `source`.
#[track_caller]
fn added(test: &Test) {
    change(test, &["add", "./source"]).success();
}

/// No file or folder that a change prepares is left anywhere.
#[track_caller]
fn assert_nothing_left(test: &Test) {
    let left = files(&test.path("")).into_keys();
    let left: Vec<String> = left.filter(|path| path.contains(".skills-runner")).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// All files and links of a folder, and its empty folders; nothing if it is missing.
fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    collect(folder, "", &mut found);
    found
}

fn collect(root: &Path, below: &str, found: &mut Files) {
    let Ok(entries) = fs::read_dir(root.join(below)) else { return };
    let mut is_empty = true;
    for entry in entries.flatten() {
        is_empty = false;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let meta = entry.metadata().expect("no other process deletes it");
        if meta.is_dir() {
            collect(root, &path, found);
            continue;
        }
        let content = match (meta.is_symlink(), meta.is_file()) {
            (true, _) => {
                fs::read_link(entry.path()).map(|to| to.to_string_lossy().into_owned().into())
            }
            (_, true) => fs::read(entry.path()),
            _ => Ok(Vec::new()),
        };
        found.insert(path, (meta.permissions().mode(), content.expect("it can be read")));
    }
    if is_empty && !below.is_empty() {
        found.insert(format!("{below}/"), (0, Vec::new()));
    }
}

/// The lock file of the folder `skills`.
#[track_caller]
fn lock(test: &Test) -> Value {
    serde_json::from_str(&test.read("skills/skills-runner.lock")).expect("it is JSON")
}

/// What happened to each skill, from the JSON output.
#[track_caller]
fn actions(outcome: &Outcome) -> Vec<(String, String)> {
    let report = outcome.stdout_json();
    let skills = report["skills"].as_array().expect("a list of skills").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    skills.map(|skill| (text(&skill["name"]), text(&skill["action"]))).collect()
}

/// The SHA-256 of these bytes, as in lock files.
/// The same folder with an interrupted change that the user's data records.
pub(crate) fn recorded(test: Test, skills_folder: &str) -> Test {
    let real = test.path(skills_folder).canonicalize().unwrap();
    let digest = digest(real.to_str().unwrap().as_bytes());
    let record = digest.replace("sha256:", "home/.local/state/skills-runner/changes/");
    let test = test.file(&record, "abcdefghijklmnop");
    test.file(&format!("{skills_folder}/.skills-runner-install/abcdefghijklmnop"), "")
}

fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().fold("sha256:".into(), |text, byte| format!("{text}{byte:02x}"))
}
