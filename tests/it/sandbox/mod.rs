//! The sandbox of scripts: what a script cannot do in it, what it still can, and that it is never
//! only partly active.

mod access;
mod grants;

use crate::harness::{Outcome, Test, interpreter, report_skipped};
use serde_json::{Value, json};

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
    let script = format!("import os; os.chdir(os.environ['SKILL_DIR'])\n{script}");
    let arguments = json!({"skill_name": "s", "script": script});
    let command = ["tool", "run_python_script", "-"];
    let run = test.clone().args(command).stdin(arguments.to_string()).run();
    (run.stdout_json(), run)
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
