//! Scripts: whatever a script does, the result arrives in time and describes what happened, and no
//! process or file is left.
//!
//! Most tests are tables of scripts for `tool run_python_script`; some include an endpoint.
//! `SCRIPT_PYTHON` is the machine's interpreter, except in tests of the interpreter's choice.

mod guardian;
mod interpreters;
mod results;
mod runs;
mod secrets;

use crate::harness::{Outcome, Stopwatch, Test, interpreter, seconds, wait_until};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";
/// Arguments with this have a short time limit.
const SHORT_LIMIT: &str = "short_limit";
/// The first line of every script in the tables.
const IMPORTS: &str = "import ctypes, json, os, shutil, signal, subprocess, sys, threading, time\n";
/// Becomes a daemon by double fork: `daemon()`.
const DAEMON: &str = "
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
";
/// The guaranteed limit of one second, and one for a busy machine.
const SLACK: f64 = 2.0;
/// Time limit for the end of an interrupted run on a busy machine.
const INTERRUPT_LIMIT: Duration = Duration::from_millis(1500);

/// A test with a skill `s` and a temporary folder that can be inspected.
fn test_with_skill() -> Test {
    let test = Test::new().skill("s", DOCUMENT).folder("tmp");
    let temporary = test.path("tmp");
    test.env("TMPDIR", temporary).env("SCRIPT_PYTHON", interpreter())
}

/// The result of a script, and the run that printed it.
struct Ran {
    result: Value,
    run: Outcome,
}

impl Ran {
    #[track_caller]
    fn check(&self, is_met: bool, message: &str) -> &Ran {
        self.run.check(is_met, message);
        self
    }

    /// Asserts that a field of the result has this value.
    #[track_caller]
    fn is(&self, key: &str, expected: impl Into<Value>) -> &Ran {
        let expected = expected.into();
        let is_met = self.result[key] == expected;
        self.check(is_met, &format!("`{key}` is not {expected}"))
    }

    /// Asserts that a text of the result contains this.
    #[track_caller]
    fn has(&self, key: &str, expected: &str) -> &Ran {
        let is_met = self.text(key).contains(expected);
        self.check(is_met, &format!("`{key}` lacks {expected:?}"))
    }

    fn text(&self, key: &str) -> &str {
        self.result[key].as_str().unwrap_or_default()
    }
}

/// A test that will run `tool run_python_script` with these arguments.
fn tool(test: &Test, arguments: &Value) -> Test {
    let mut arguments = arguments.clone();
    arguments["skill_name"] = "s".into();
    let is_short = arguments.as_object_mut().unwrap().remove(SHORT_LIMIT).is_some();
    let limit: &[&str] = if is_short { &["--script-timeout", "1"] } else { &[] };
    let command = ["tool", "run_python_script", "-"];
    test.next_run().args(limit).args(command).stdin(arguments.to_string())
}

/// Runs the tool and makes the checks that apply to each result, except the check for leftovers.
#[track_caller]
fn call(test: &Test, arguments: &Value) -> Ran {
    let watch = Stopwatch::start();
    let run = tool(test, arguments).run();
    let result = run.stdout_json();
    let is_good = result["returncode"] == 0 && result["error"].is_null();
    let has_status = run.status == i32::from(!is_good);
    run.check(has_status, "the exit status does not match the result");
    if let Some(duration) = result["duration_ms"].as_u64() {
        let late = run.elapsed.saturating_sub(Duration::from_millis(duration));
        let late = watch.adjusted_for_limit(late, seconds(SLACK));
        run.check(late <= seconds(SLACK), "the result is late");
    }
    Ran { result, run }
}

/// The same, and checks that no process or file is left.
#[track_caller]
fn run(test: &Test, arguments: &Value) -> Ran {
    let ran = call(test, arguments);
    ran.check(is_clean(test), "a process or file is left");
    ran
}

/// The source after the imports.
fn source(text: &str) -> Value {
    json!({"script": format!("{IMPORTS}{text}")})
}

/// The same with a time limit of one second, which [`tool`] sets.
fn with_short_limit(text: &str) -> Value {
    json!({"script": format!("{IMPORTS}{text}"), SHORT_LIMIT: true})
}

/// Whether no temporary file or process is left; those that are ending get some time.
fn is_clean(test: &Test) -> bool {
    let no_file = || fs::read_dir(test.path("tmp")).map_or(true, |mut list| list.next().is_none());
    is_soon(|| no_file() && test.processes().is_empty())
}

/// Whether the condition becomes true in the time that an idle machine needs.
fn is_soon(condition: impl FnMut() -> bool) -> bool {
    let since = Stopwatch::start();
    let slack = seconds(SLACK);
    wait_until(seconds(20.0), condition) && since.elapsed_for_limit(slack) <= slack
}

/// Checks the rows of a table, a few in parallel, because most of them wait.
fn for_each<T: Sync>(rows: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(row);
                }
            });
        }
    });
}

/// A value as a Python literal.
fn python(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// A script that starts ten daemons, runs the given code and then waits.
fn daemons_script(then: &str) -> Value {
    let start = "for _ in range(10): daemon()\nopen('ready', 'w').close()";
    let mut call = source(&format!("{DAEMON}{start}\n{then}\ntime.sleep(60)\n"));
    call["skill_name"] = "s".into();
    call
}

/// Waits until the script and its daemons are running.
#[track_caller]
fn wait_for_daemons(test: &Test) {
    let is_ready = wait_until(seconds(15.0), || test.exists("ready"));
    assert!(is_ready && test.processes().len() > 10, "the script did not start");
}
