//! What version 0.1.0 has written works in this one, and what a newer version has written stays as
//! it is. The files of `tests/data/0.1.0` are real; its README says how they came about. Venvs: `setup/older.rs`.

mod memory;
mod newer;
mod sessions;

use crate::harness::Test;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder in which 0.1.0 ran.
const OLD_FOLDER: &str = "/home/user/project";

/// The folder of sessions, in the folder of a test.
const SESSIONS: &str = "home/.local/state/skills-runner/sessions";

/// The names of the sessions of 0.1.0, with the number of turns and the first question.
const NAMES: [(&str, u64, &str); 12] = [
    ("2026-11-26-1141-jeut", 2, "Hello"),
    ("attached", 2, "what is assets/dot.png?"),
    ("compacted", 3, "The user adds numbers: 2 + 2 was 4, 3 + 3 was 6."),
    ("failed", 2, "2 and 2?"),
    ("interrupted", 3, "long?"),
    ("invoked", 3, "/sums"),
    ("killed", 2, "2 and 2?"),
    ("saved", 1, "2 and 2?"),
    ("summarized", 2, "The user counts."),
    ("tools", 1, "What is 2 + 2?"),
    ("torn", 2, "2 and 2?"),
    ("undone", 1, "3 and 3?"),
];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/0.1.0").join(name)
}

/// A file of 0.1.0.
#[track_caller]
pub(crate) fn old_file(name: &str) -> String {
    fs::read_to_string(data(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn session_file(name: &str) -> String {
    format!("{SESSIONS}/{name}.jsonl")
}

/// A test with all sessions of 0.1.0.
fn with_sessions() -> Test {
    NAMES.iter().fold(Test::new(), |test, (name, ..)| {
        test.file(&session_file(name), old_file(&format!("sessions/{name}.jsonl")))
    })
}
