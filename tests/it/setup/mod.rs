//! `skills setup`: however it ends and however often it is run, a skill has no venv, its old one,
//! or a complete new one, and its scripts run in it.
//!
//! There is no network: packages are wheels that the tests write. Most tests use a fast replacement
//! of `python -m venv` with the interpreter's own pip; one runs the real `venv`.

mod inferred;
mod older;
mod requirements;
mod venvs;

use crate::harness::{Outcome, Test, interpreter, seconds};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

const DOCUMENT: &str = "---\nname: s\ndescription: Needs modules.\n---\n";
const VENV: &str = "skills/s/venv";
const MARKER: &str = "skills/s/venv/.skills-runner-incomplete";
const WORK: &str = "skills/s/.skills-runner-setup";

/// Writes a wheel: folder, name, version, module, and its requirements.
const WHEEL: &str = r#"
import sys, zipfile
folder, name, version, module, *requires = sys.argv[1:]
info = "%s-%s.dist-info/" % (name, version)
with zipfile.ZipFile("%s/%s-%s-py3-none-any.whl" % (folder, name, version), "w") as wheel:
    wheel.writestr(module + ".py", "VERSION = %r\n" % version)
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version)
        + "".join("Requires-Dist: %s\n" % each for each in requires))
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
"#;

/// A fast `-m venv` that does not unpack pip: it links the interpreter's own pip, or imports it
/// from the archive that Python contains. Any other command is passed to Python.
const QUICK: &str = r#"#!/bin/sh
case "$*" in
*"-m venv "*)
    echo "$*" >> "$HOME/made"
    while [ -e "$HOME/slow" ]; do sleep 0.05; done
    PYTHON -I -m venv --without-pip "$5" && exec PYTHON -I -c '
import glob, os, sys
[site] = glob.glob(os.path.join(sys.argv[1], "lib", "python3*", "site-packages"))
try:
    import pip
    os.symlink(os.path.dirname(pip.__file__), os.path.join(site, "pip"))
except ImportError:
    import ensurepip
    [pip] = glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl"))
    open(os.path.join(site, "pip.pth"), "w").write(pip + "\n")' "$5";;
esac
exec PYTHON "$@"
"#;

/// A skill `s`, and a folder of wheels as the only package source.
fn test_with_skill() -> Test {
    let test = Test::new().skill("s", DOCUMENT).folder("wheels");
    let wheels = test.path("wheels");
    for words in [
        ["alpha", "1.0", "alpha"].as_slice(),
        &["alpha", "2.0", "alpha"],
        &["beta", "1.0", "beta", "gamma"],
        &["gamma", "1.0", "gamma"],
        &["openpyxl", "3.1", "openpyxl"],
    ] {
        let mut python = Command::new(interpreter());
        python.args(["-I", "-c", WHEEL]).arg(&wheels).args(words);
        assert!(python.status().expect("Python starts").success());
    }
    test.env("PIP_NO_INDEX", "1")
        .env("PIP_FIND_LINKS", &wheels)
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env("SCRIPT_PYTHON", interpreter())
        .env("PATH", "/usr/bin:/bin")
        .timeout(seconds(60.0))
}

/// The same, with fast venv creation.
fn quick() -> Test {
    let python = interpreter().display().to_string();
    let test = test_with_skill().executable("python", &QUICK.replace("PYTHON", &python));
    let program = test.path("python");
    test.env("SCRIPT_PYTHON", program)
}

/// The number of created venvs.
fn created_venvs(test: &Test) -> usize {
    let list = fs::read_to_string(test.path("home/made"));
    list.unwrap_or_default().lines().count()
}

fn command(test: &Test, requirements: &[&str]) -> Test {
    let words = ["skills", "setup", "s"];
    test.next_run().args(words).args(requirements)
}

#[track_caller]
fn setup(test: &Test, requirements: &[&str]) -> Outcome {
    let run = command(test, requirements).run();
    run.check(test.processes().is_empty(), "a process is left");
    run.check(!test.exists(WORK), "the working folder is left");
    run.check(!test.exists(MARKER), "a marked venv is left");
    run
}

/// The output of a script in the skill.
#[track_caller]
fn script(test: &Test, source: &str) -> Value {
    let arguments = json!({"skill_name": "s", "script": source}).to_string();
    let run = test.next_run().args(["tool", "run_python_script", &arguments]);
    let result = run.run().stdout_json();
    assert_eq!(result["returncode"], 0, "{result}");
    result["stdout"].clone()
}

fn identity(test: &Test) -> (u64, i64) {
    let metadata = fs::metadata(test.path(VENV)).expect("there is a venv");
    (metadata.ino(), metadata.ctime())
}
