//! The tools for the user's files: `read_file`, `write_file`, `edit_file`.

mod confirming;
mod editing;
mod hostile;
mod race;
mod reading;
mod writing;

use serde_json::Value;

use crate::harness::{Outcome, Test};

const DOCUMENT: &str = "---\nname: s\ndescription: d\n---\nhi\n";

/// A working folder with a skill, in `work/`.
fn work() -> Test {
    Test::new().file("work/skills/s/SKILL.md", DOCUMENT).cwd("work")
}

/// Runs `tool NAME JSON`.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a call reads better without an ampersand")]
fn call(test: &Test, tool: &str, arguments: Value) -> Outcome {
    test.next_run().args(["tool", tool]).args(["-"]).stdin(arguments.to_string()).run()
}

/// Asserts that a call succeeds with this text, or fails with an error that contains it.
#[track_caller]
fn assert_answer(test: &Test, tool: &str, arguments: Value, answer: Result<&str, &str>) {
    let run = call(test, tool, arguments);
    match answer {
        Ok(text) => drop(run.success().stdout(text)),
        Err(text) => drop(run.status(1).stdout_has("{\"error\":\"").stdout_has(text)),
    }
}
