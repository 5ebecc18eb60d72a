//! `skills setup`: however it ends and however often it is run, a skill has no venv, its old one,
//! or a complete new one, and its scripts run in it.
//!
//! There is no network: packages are wheels that the tests write. Most tests use a fast replacement
//! of `python -m venv` with the interpreter's own pip; one runs the real `venv`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Outcome, Test, interpreter, seconds, wait_until};

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

/// The real `python -m venv` and its pip install all declared packages; the second run does
/// nothing.
#[test]
fn declared_requirements_are_installed_once() {
    let test = test_with_skill()
        .file("skills/s/requirements.txt", "# all\n-r more.txt\n")
        .file("skills/s/more.txt", "alpha<2  # not the newest\n")
        .file(
            "skills/s/pyproject.toml",
            "[project]\nname = \"x\"\nversion = \"1\"\ndependencies = [\"beta\"]\n",
        )
        .file(
            "skills/s/scripts/a.py",
            "# /// script\n# dependencies = [\"openpyxl>=3\"]\n# ///\nimport openpyxl\n",
        );
    let run = setup(&test, &[]).success();
    let run = run.stderr_has("installing what requirements.txt lists, beta, openpyxl>=3");
    // Output lines of the installer.
    run.stderr_has("Successfully installed").stderr_has("gamma");
    let source = "import alpha, beta, gamma, openpyxl, sys; print(alpha.VERSION, sys.prefix)";
    let prefix = test.path(VENV);
    let expected = format!("1.0 {}\n", prefix.display());
    assert_eq!(script(&test, source), expected);
    let before = identity(&test);
    setup(&test, &[]).success().stderr_lacks("installing").took_at_most(seconds(3.0));
    assert_eq!(identity(&test), before);
    // The venv contains only pip and needs no other folder of the user.
    assert!(test.exists("skills/s/venv/bin/pip"));
}

/// A skill that needs only the standard library also gets a venv, so that its interpreter is fixed.
/// The second run does not change it.
#[test]
fn venv_is_created_without_requirements() {
    let test = quick()
        .file("skills/s/scripts/a.py", "import json, helper\n")
        .file("skills/s/scripts/helper.py", "")
        .file("skills/s/requirements.txt", "# none\n");
    let run = setup(&test, &["--json"]).success().stderr_lacks("installing");
    let reported = run.stdout_json();
    assert_eq!(reported["outcome"], "made");
    assert_eq!(reported["venv"], json!(test.path(VENV)));
    assert!(test.exists("skills/s/venv/bin/python"));
    let prefix = format!("{}\n", test.path(VENV).display());
    assert_eq!(script(&test, "import sys; print(sys.prefix)"), prefix);
    let before = identity(&test);
    let reported = setup(&test, &["--json"]).success().stdout_json();
    assert_eq!(reported["outcome"], "up_to_date");
    assert_eq!((identity(&test), created_venvs(&test)), (before, 1));
    // A venv created by the user is not changed either.
    let test = quick().venv_at("skills/s/.venv");
    setup(&test, &[]).success().stdout_has("is up to date");
    assert!(!test.exists(VENV) && created_venvs(&test) == 0);
}

/// A module without a known package does not prevent the venv.
#[test]
fn venv_is_created_despite_unknown_modules() {
    let test = quick().file("skills/s/a.py", "import nobody_a, nobody_b\n");
    for outcome in ["made", "up_to_date"] {
        let run = setup(&test, &["--json"]).status(1);
        let reported = run.stdout_json();
        assert_eq!(reported["outcome"], outcome);
        assert_eq!(reported["missing"][1]["module"], "nobody_b");
        run.stderr_has(
            "modules are missing: `nobody_a` (a.py line 1): no package is known for it; `nobody_b` (",
        )
        .stderr_has("hint: name the packages that contain them: skills-runner skills setup s PACKAGE...");
        assert!(test.exists("skills/s/venv/bin/python"));
    }
    // A package that is installed but does not contain its module is reported so.
    let test = quick().file("skills/s/a.py", "import alpha_x\n");
    let test = test.file("skills/s/requirements.txt", "alpha-x; python_version < '3'\n");
    let run = setup(&test, &[]).status(1);
    run.stderr_has("`alpha_x` (a.py line 1): its package is declared, but does not provide it")
        .stderr_lacks("no package is known");
}

/// If scripts run only in venvs, the error that suggests a setup has to be right.
#[test]
fn venv_is_created_if_scripts_run_only_in_venvs() {
    // `off` affects scripts and not the interpreter that creates a venv, which is found on the
    // path.
    let python = interpreter().display().to_string();
    let test = test_with_skill().executable("bin/python3", &QUICK.replace("PYTHON", &python));
    let path = format!("{}:/usr/bin:/bin", test.path("bin").display());
    let test = test.env("SCRIPT_PYTHON", "off").env("PATH", path);
    let call = json!({"skill_name": "s", "script": "print(1)"}).to_string();
    let refused = test.next_run().args(["tool", "run_python_script", &call]);
    refused.run().status(1).stdout_has("skills setup s");
    setup(&test, &[]).success();
    assert_eq!(
        script(&test, "import sys; print(sys.prefix)"),
        format!("{}\n", test.path(VENV).display())
    );
    setup(&test, &[]).success();
    assert_eq!(created_venvs(&test), 1);
}

/// Requirements of the command line are added to the skill's file, once, and only if they could be
/// installed.
#[test]
fn extra_requirements_are_recorded() {
    let file = "skills/s/requirements.txt";
    let test = quick();
    setup(&test, &["alpha<2", "beta"]).success();
    assert_eq!(test.read(file), "alpha<2\nbeta\n");
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    // Already listed, the name in another spelling.
    setup(&test, &["alpha<2", "Beta", "beta"]).success();
    assert_eq!((test.read(file).as_str(), created_venvs(&test)), ("alpha<2\nbeta\n", 1));
    let test = test.file(file, "beta\r\nalpha<2").mode(file, 0o640);
    setup(&test, &["openpyxl"]).success();
    assert_eq!(test.read(file), "beta\r\nalpha<2\r\nopenpyxl\r\n");
    assert_eq!(fs::metadata(test.path(file)).unwrap().mode() & 0o777, 0o640);
    script(&test, "import alpha, gamma, openpyxl");
    let before = identity(&test);
    setup(&test, &["nothing-of-that-name"])
        .status(1)
        .stderr_has("No matching distribution found for nothing-of-that-name");
    assert_eq!(test.read(file), "beta\r\nalpha<2\r\nopenpyxl\r\n");
    assert_eq!(identity(&test).0, before.0, "the old venv was not restored");
    script(&test, "import alpha, gamma, openpyxl");
    setup(&test, &[]).success();
    assert_eq!(created_venvs(&test), 3);
}

/// A trailing backslash would join the last requirement with the new one.
#[test]
fn requirement_that_would_not_be_read_alone_is_refused() {
    let file = "skills/s/requirements.txt";
    for (before, requirement) in [("alpha \\\n", "beta"), ("alpha\n", "beta\\")] {
        let test = quick().file(file, before);
        let run = setup(&test, &[requirement]).status(1);
        run.stderr_has("would not be read as intended").stderr_has("hint: add to it yourself");
        assert!(!test.exists(VENV) && created_venvs(&test) == 0);
        assert_eq!(test.read(file), before);
    }
}

/// The file keeps its owner and mode; a file without write permission is reported before anything
/// is installed.
#[test]
fn requirements_file_keeps_owner_and_mode() {
    let file = "skills/s/requirements.txt";
    let test = quick().file(file, "alpha\n").mode(file, 0o604);
    // SAFETY: it has no arguments.
    let is_superuser = unsafe { libc::geteuid() } == 0;
    if is_superuser {
        std::os::unix::fs::chown(test.path(file), Some(1234), Some(4321))
            .expect("root can change the owner");
    }
    let before = fs::metadata(test.path(file)).expect("the file exists");
    setup(&test, &["beta"]).success();
    assert_eq!(test.read(file), "alpha\nbeta\n");
    let after = fs::metadata(test.path(file)).expect("the file exists");
    assert_eq!(after.mode() & 0o777, 0o604);
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));

    for target in ["more.txt", "missing.txt"] {
        let test = quick().file("skills/s/more.txt", "alpha\n");
        let test = test.link(file, target);
        let run = setup(&test, &["beta"]).status(1);
        run.stderr_has("it is a link").stderr_has("hint: add");
        assert!(!test.exists(VENV) && created_venvs(&test) == 0, "{target}");
        assert_eq!(test.read("skills/s/more.txt"), "alpha\n");
        assert!(fs::read_link(test.path(file)).is_ok());
    }
    if !is_superuser {
        let test = quick().file(file, "alpha\n").mode(file, 0o444);
        let run = setup(&test, &["beta"]).status(1);
        run.stderr_has("permission denied").stderr_has("hint: ");
        assert!(!test.exists(VENV) && created_venvs(&test) == 0);
        assert_eq!(test.read(file), "alpha\n");
    }
}

/// An option could do anything, and so could a line break in the file.
#[test]
fn invalid_requirement_is_refused() {
    let test = quick().file(
        "skills/s/pyproject.toml",
        "[project]\ndependencies = [\"--index-url=http://127.0.0.1:9/\"]\n",
    );
    for bad in ["--index-url=x", " -e.", "a\nb", "", "#a", "a\u{1b}[2J"] {
        let run = test.next_run().args(["skills", "setup", "s", "--", bad]).run();
        run.status(2).stderr_has("hint: ");
    }
    setup(&test, &[]).status(1).stderr_has("an option");
    let latin = quick().file("skills/s/requirements.txt", b"beta # f\xfcr alle\n");
    setup(&latin, &["alpha"]).status(1).stderr_has("failed to add to");
    let bytes = fs::read(latin.path("skills/s/requirements.txt")).expect("the file exists");
    assert_eq!(bytes, b"beta # f\xfcr alle\n");
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
}

/// What pip refuses is reported with its own last lines, and the old venv stays.
#[test]
fn refusal_of_pip_is_reported_in_its_own_words() {
    let file = "skills/s/requirements.txt";
    let test = quick().file(file, "alpha<2\n");
    setup(&test, &[]).success();
    let before = identity(&test);
    let test = test.file(file, "# all\nbeta\nalpha = 2 # new\n");
    let run = setup(&test, &[]).status(1);
    run.stderr_has("failed to install `what requirements.txt lists`: ")
        .stderr_has("ERROR: Invalid requirement: 'alpha = 2'")
        .stderr_has("s: the skill and its venv are unchanged\n");
    let test = test.file(file, "alpha<2\nalpha>=2\n");
    let run = setup(&test, &["--json"]).status(1);
    let error = run.stdout_json()["error"]["message"].clone();
    let text = error.as_str().unwrap_or_default();
    run.check(text.contains("conflicting dependencies"), text);
    assert_eq!(identity(&test).0, before.0);
    script(&test, "import alpha");
}

/// Text that is not UTF-8 is reported as pip decodes it, or not at all.
#[test]
fn requirements_file_is_decoded_as_pip_does() {
    let file = "skills/s/requirements.txt";
    let utf_16 = |text: &str| -> Vec<u8> {
        let units = ['\u{feff}'].into_iter().chain(text.chars()).map(|c| c as u16);
        units.flat_map(u16::to_le_bytes).collect()
    };
    let test = quick().file(file, utf_16("alpha<2\r\nbeta\r\n"));
    setup(&test, &[]).success().stdout("s: created skills/s/venv with alpha<2, beta\n");
    script(&test, "import alpha, beta");
    let reported = setup(&test, &["--json"]).success().stdout_json();
    assert_eq!(reported["declared"], json!(["alpha<2", "beta"]));
    let check = test.next_run().args(["skills", "check", "s"]).run();
    check.success().stdout_lacks("stale-venv");
    let test = test.file(file, utf_16("alpha\r\nbeta\r\n"));
    setup(&test, &[]).success().stderr_has("have changed");
    setup(&test, &["openpyxl"]).status(1).stderr_has("not UTF-8");
    let test = quick().file(file, b"# coding: cp1252\nalpha\nbeta;os_name!='\x80'\n");
    let run = setup(&test, &[]).success();
    run.stdout("s: created skills/s/venv with alpha\n");
    script(&test, "import alpha, beta");
}

/// An index that cannot be reached is reported in the words of the installer.
#[test]
fn missing_network_is_reported() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let address = format!("http://{}/simple", port.expect("a free port"));
    let test = quick()
        .env("PIP_NO_INDEX", "0")
        .env("PIP_INDEX_URL", address)
        .env("PIP_RETRIES", "1")
        .env("PIP_TIMEOUT", "1");
    let run = setup(&test, &["delta"]).status(1);
    run.stderr_has("failed to install `delta`: WARNING: Retrying").stderr_has("Connection refused");
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
}

/// Declarations of a skill cannot imitate the runner's own lines, and incompletely read ones are
/// reported and not installed.
#[test]
fn requirements_cannot_forge_output_lines() {
    let project = "skills/s/pyproject.toml";
    for (requirement, reported) in [
        (r"six\nskills-runner: FORGED", "U+000A"),
        (r"six\u0000", "U+0000"),
        (r"six\u2028skills-runner: FORGED", "U+2028"),
        (r"six\u001b[2J", "U+001B"),
    ] {
        let text = format!("[project]\ndependencies = [\"{requirement}\"]\n");
        let test = quick().file(project, text);
        let run = setup(&test, &[]).success().stderr_has(reported);
        run.stderr_has("a requirement is left out: it has the character")
            .stderr_has("the setup installs nothing from it")
            .stderr_lacks(": installing ")
            .stderr_lacks("\nskills-runner: FORGED");
    }
    let script_file = "skills/s/scripts/a\nskills-runner: FORGED.py";
    let test = quick().file(script_file, "import nobody_knows_it\n");
    let run = setup(&test, &[]).status(1).stderr_has("nobody_knows_it");
    run.stderr_lacks("\nskills-runner: FORGED");
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.file(project, "[project]\ndependencies = [\"beta\"\n");
    let run = setup(&test, &[]).success();
    run.stderr_has("the setup installs nothing from it");
    let source = "import alpha, importlib.util as u; print(u.find_spec('beta'))";
    assert_eq!(script(&test, source), "None\n");
}

/// A requirements file that is too large to be read is not installed, and the setup says so.
#[test]
fn too_large_requirements_file_is_reported() {
    let text = format!("alpha\n#{}\n", "x".repeat(1 << 20));
    let test = quick().file("skills/s/requirements.txt", text);
    let run = setup(&test, &[]).success().stderr_lacks(": installing ");
    run.stderr_has("too large to check; the setup installs nothing from it");
}

/// The part of a URL before the host is never shown: not on the terminal, not in the record, and
/// not in an error that quotes a part of it.
#[test]
fn login_in_a_requirement_is_not_shown() {
    let file = "skills/s/requirements.txt";
    let options = "--index-url https://me:s3cr3tpw@127.0.0.1:9/simple\n--pre\n-r more.txt\n";
    let test = quick().file(file, options).file("skills/s/more.txt", "alpha<2\n--prefer-binary\n");
    let run = setup(&test, &[]).success();
    run.stdout("s: created skills/s/venv with alpha<2\n").stderr_lacks("s3cr3t");
    let record = "skills/s/venv/.skills-runner.json";
    assert!(test.read(record).contains("https://[secret]@127.0.0.1:9/simple"));
    assert!(!test.read(record).contains("s3cr3t"));
    let reported = setup(&test, &["--json"]).success().stdout_json();
    assert_eq!(reported["declared"], json!(["alpha<2"]));
    let run = setup(&test, &["--quiet"]).success();
    run.stdout("s: skills/s/venv is up to date with alpha<2\n");
    assert_eq!(created_venvs(&test), 1);
    // Another index is a different line.
    let test = test.file(file, options.replace(":9/", ":8/"));
    setup(&test, &[]).success().stderr_has("have changed");

    let url = "https://me:s3cr3tpw@127.0.0.1:9/x.zip";
    let long = format!("[project]\ndependencies = [\"{}x @ {url}\"]\n", "x".repeat(150));
    for (path, text) in [
        ("skills/s/pyproject.toml", format!("[project]\ndependencies = [\"x @ {url}\"]\n")),
        ("skills/s/pyproject.toml", long),
        (file, format!("x @ {url}\n")),
    ] {
        let test = quick().env("PIP_RETRIES", "0").file(path, text);
        let run = setup(&test, &["--json"]).status(1).stdout_lacks("s3c");
        run.stderr_lacks("s3c");
    }
    let test = quick().env("PIP_RETRIES", "0");
    setup(&test, &[url]).status(1).stderr_lacks("s3c");
    let wrong = format!("x @ {url}\u{7}");
    let run = test.next_run().args(["skills", "setup", "s", &wrong]).run();
    run.status(2).stderr_has("[secret]@").stderr_lacks("s3c");
}

/// The path of a wheel is relative to the user's working folder, not to the skill.
#[test]
fn local_wheel_is_resolved_from_the_working_folder() {
    let test = quick();
    let skills = test.path("skills");
    let test = test.env("SKILLS_FOLDER_PATH", skills).cwd("wheels");
    let wheel = "gamma-1.0-py3-none-any.whl";
    let path = test.path("wheels").join(wheel).display().to_string();
    setup(&test, &[&format!("./{wheel}")]).success();
    let list = test.read("skills/s/requirements.txt");
    assert_eq!(list, format!("{path}\n"));
    script(&test, "import gamma");
    let suffix = "[foo] ; python_version>\"2\"";
    setup(&test, &[&format!("{wheel}{suffix}")]).success();
    let list = test.read("skills/s/requirements.txt");
    assert_eq!(list, format!("{path}\n{path}{suffix}\n"));
}

/// Well-known imports are installed and reported; unknown ones are reported; optional ones are
/// ignored.
#[test]
fn undeclared_imports_are_found() {
    let test = quick().file(
        "skills/s/scripts/a.py",
        "import json\nimport openpyxl\nimport nobody_knows_it\ntry:\n    import lxml\nexcept ImportError:\n    pass\n",
    );
    setup(&test, &[])
        .status(1)
        .stderr_has("`nobody_knows_it` (scripts/a.py line 3)")
        .stderr_has(
            "not declared by the skill, found in its imports: openpyxl (scripts/a.py line 2)",
        )
        .stderr_lacks("lxml");
    assert!(!test.exists("skills/s/requirements.txt"), "the skill's files were changed");
    script(&test, "import openpyxl");
    setup(&test, &[]).status(1).stderr_lacks("installing");
    // With another import the venv is rebuilt with both.
    let test = test.file("skills/s/requirements.txt", "alpha\n");
    setup(&test, &[]).status(1);
    script(&test, "import openpyxl, alpha");
    assert_eq!(created_venvs(&test), 2);
}

/// A changed declaration rebuilds the venv without the removed packages.
#[test]
fn changed_requirements_rebuild_the_venv_and_a_failure_keeps_the_old_one() {
    let test = quick().file("skills/s/requirements.txt", "-r more.txt\n");
    let test = test.file("skills/s/more.txt", "alpha==1.0\n");
    setup(&test, &[]).success();
    let test = test.file("skills/s/more.txt", "alpha==3.0\n");
    let before = identity(&test);
    let failed = setup(&test, &[]).status(1).stderr_has("failed to install");
    failed
        .stderr_has("recreating the venv: the requirements have changed")
        .stderr_has("s: the skill and its venv are unchanged\n")
        .stderr_has("alpha==3.0");
    assert_eq!(identity(&test).0, before.0);
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    let test = test.file("skills/s/more.txt", "beta\n");
    setup(&test, &[]).success().stderr_lacks("unchanged");
    assert_ne!(identity(&test).0, before.0);
    script(
        &test,
        "import beta\ntry:\n    import alpha\n    raise SystemExit(1)\nexcept ImportError:\n    pass",
    );
    // The same applies to a module that was uninstalled.
    let test = test.file("skills/s/scripts/a.py", "import beta\n");
    let before = identity(&test);
    setup(&test, &[]).success();
    assert_eq!(identity(&test), before);
    let packages = fs::read_dir(test.path("skills/s/venv/lib")).expect("a venv").next();
    let packages = packages.expect("a version").expect("readable").path();
    fs::remove_file(packages.join("site-packages/beta.py")).expect("it was installed");
    setup(&test, &[]).success().stderr_has("modules are missing");
    script(&test, "import beta");
    // If the interpreter was deleted, the venv is rebuilt.
    fs::remove_file(test.path("skills/s/venv/bin/python")).expect("a link");
    setup(&test, &[]).success();
    script(&test, "import beta");
}

/// A package that the user installed in a setup's venv is not removed silently.
#[test]
fn removal_of_manually_installed_packages_is_reported() {
    let test = quick();
    setup(&test, &["alpha<2"]).success();
    let install_manually = "import subprocess, sys; \
        subprocess.run([sys.executable, '-m', 'pip', 'install', 'beta'], check=True)";
    script(&test, install_manually);
    let reported = "the previous venv also had beta, gamma, which nothing declares";
    setup(&test, &["openpyxl"]).success().stderr_has(reported);
    setup(&test, &["beta"]).success().stderr_lacks("the previous venv");
    script(&test, "import alpha, beta, gamma, openpyxl");
}

/// Creates a venv with pip as a user does.
fn create_user_venv(test: &Test, path: &str) {
    let mut python = Command::new(test.path("python"));
    python.args(["-I", "-u", "-m", "venv"]).arg(test.path(path));
    python.env("HOME", test.path("wheels"));
    assert!(python.status().expect("Python starts").success());
}

/// A venv that the user created is extended and never deleted, also a `.venv`.
#[test]
fn venv_created_by_the_user_is_kept() {
    for name in ["venv", ".venv"] {
        let path = format!("skills/s/{name}");
        let test = quick().file("skills/s/requirements.txt", "alpha\n");
        create_user_venv(&test, &path);
        let test = test.file(&format!("{path}/mine"), "");
        // A link that an untrusted skill may contain leads nowhere outside.
        let test = test.file("other/file", "whole");
        let new = format!("{path}/.skills-runner.json.new");
        let test = test.link(&new, "../../../other/file");
        setup(&test, &[]).success().stderr_has("was not created by a setup");
        assert_eq!(test.read("other/file"), "whole");
        script(&test, "import alpha");
        setup(&test, &[]).success().stderr_lacks("installing");
        let test = test.file("skills/s/requirements.txt", "beta\n");
        setup(&test, &[]).success();
        script(&test, "import alpha, beta");
        let failed = setup(&test, &["nothing-of-that-name"]).status(1);
        failed.stderr_has("s: the venv keeps what was installed so far\n");
        assert!(test.exists(&format!("{path}/mine")) && created_venvs(&test) == 0);
        assert!(!test.exists("skills/s/venv") || name == "venv");
    }
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.file("skills/s/venv/mine", "");
    setup(&test, &[]).status(1).stderr_has("hint: ").stderr_has("rm -r");
    assert!(test.exists("skills/s/venv/mine"));
    // A broken `.venv` does not prevent the use of `venv`, which has priority.
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.file("skills/s/.venv/mine", "");
    setup(&test, &[]).success();
    script(&test, "import alpha");
    assert!(test.exists("skills/s/.venv/mine"));
}

/// Setup never changes a venv of another project, whatever links to it; scripts still run in it.
#[test]
fn nothing_is_installed_outside_the_skill() {
    for name in ["venv", ".venv"] {
        let path = format!("skills/s/{name}");
        let test = quick().file("skills/s/requirements.txt", "alpha\n");
        let test = test.venv_at("project").file("project/mine", "");
        let project = test.path("project");
        let test = test.link(&path, &project);
        let reported = format!("installs outside the skill, in `{}", project.display());
        let run = setup(&test, &["beta"]).status(1).stderr_has(&reported);
        run.stderr_has("hint: remove the link");
        assert_eq!(created_venvs(&test), 0);
        assert_eq!(test.read("skills/s/requirements.txt"), "alpha\n");
        let source = "import sys, importlib.util as u; print(u.find_spec('alpha'), sys.prefix)";
        let printed = script(&test, source);
        assert!(printed.as_str().unwrap_or_default().starts_with("None "), "{printed}");
        // An unfinished venv there is not deleted either.
        let test = test.file("project/.skills-runner-incomplete", "");
        command(&test, &[]).run().status(1).stderr_has(&reported);
        assert!(test.exists("project/mine") && fs::read_link(test.path(&path)).is_ok());
    }
    // A folder that is not a venv, with a link to the system's interpreter.
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.link("skills/s/venv/bin/python", interpreter());
    let run = setup(&test, &[]).status(1);
    run.stderr_has("installs outside the skill").stderr_has("hint: remove it");
    // A link that stays inside the skill.
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    create_user_venv(&test, "skills/s/.venv");
    let test = test.link("skills/s/venv", ".venv");
    setup(&test, &[]).success();
    script(&test, "import alpha");
}

/// An interpreter that does not answer is reported as not working.
#[test]
fn hanging_python_is_reported() {
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.executable("skills/s/venv/bin/python", "#!/bin/sh\nexec sleep 60\n");
    let run = setup(&test, &[]).status(1).took_at_most(seconds(20.0));
    run.stderr_has("its bin/python does not run").stderr_has("rm -r");
    let limited = command(&test, &[]).args(["--timeout", "1"]).run();
    limited.status(3).took_at_most(seconds(5.0));
}

/// A setup that hangs, with an old venv in place.
fn hanging_setup() -> Test {
    let test = quick().file("skills/s/requirements.txt", "alpha<2\n");
    setup(&test, &[]).success();
    test.file("skills/s/requirements.txt", "alpha\n").file("home/slow", "")
}

#[track_caller]
fn wait_for_marker(test: &Test) {
    let marked = || test.exists(MARKER) && created_venvs(test) > 0;
    assert!(wait_until(seconds(20.0), marked), "no venv was started");
}

/// A second setup waits for the first and then has nothing to do.
#[test]
fn second_setup_waits_for_the_first() {
    let test = hanging_setup();
    let first = command(&test, &[]).spawn();
    wait_for_marker(&test);
    let mut second = command(&test, &[]).spawn();
    second.read_stderr_until("waiting for another setup");
    let mut short_run = command(&test, &[]).args(["--timeout", "0.3"]).spawn();
    short_run.read_stderr_until("waiting for another setup");
    short_run.wait().status(3).took_at_most(seconds(3.0));
    let interrupted = command(&test, &[]).spawn();
    std::thread::sleep(seconds(0.3));
    interrupted.signal(libc::SIGTERM);
    interrupted.wait().status(-libc::SIGTERM).took_at_most(seconds(3.0));
    fs::remove_file(test.path("home/slow")).expect("the file exists");
    first.wait().success().stderr_has("Successfully installed");
    second.wait().success().stderr_lacks("installing");
    assert_eq!(created_venvs(&test), 2);
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "2.0\n");
}

/// Ctrl+C, SIGTERM and the time limit leave the old venv and no other files.
#[test]
fn interrupted_setup_keeps_the_old_venv() {
    let test = hanging_setup();
    let before = identity(&test).0;
    let ends: [(i32, Option<i32>); 3] =
        [(-libc::SIGINT, Some(libc::SIGINT)), (-libc::SIGTERM, Some(libc::SIGTERM)), (3, None)];
    for (status, signal) in ends {
        let limit: &[&str] = if signal.is_none() { &["--timeout", "1"] } else { &[] };
        let running = command(&test, &[]).args(limit).spawn();
        wait_for_marker(&test);
        if let Some(signal) = signal {
            running.signal(signal);
        }
        let ended = running.wait().status(status).took_at_most(seconds(10.0));
        // After a signal nothing else needs to be printed.
        let last = ended.stderr.lines().last().unwrap_or_default();
        let is_last = last == "skills-runner: s: the skill and its venv are unchanged";
        assert!(is_last || signal.is_none(), "{}", ended.stderr);
        ended.stderr_has("its venv are unchanged\n");
        assert!(test.processes().is_empty(), "a process is left");
        assert!(!test.exists(WORK) && !test.exists(MARKER));
        assert_eq!(identity(&test).0, before);
        assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    }
}

/// The setup is killed at many moments: no partial venv is ever used, and the next setup finishes
/// and removes what the killed ones left.
#[test]
fn killed_setup_leaves_no_usable_partial_venv() {
    let test = quick().file("skills/s/requirements.txt", "alpha<2\n");
    let started = std::time::Instant::now();
    setup(&test, &[]).success();
    let full_duration = started.elapsed();
    let versions = ["alpha\n", "alpha<2\n"];
    for round in 0..12u32 {
        let test = test.clone().file("skills/s/requirements.txt", versions[round as usize % 2]);
        let running = command(&test, &[]).spawn();
        std::thread::sleep(full_duration * (round + 1) / 13);
        if test.processes().is_empty() {
            // This run was faster than the first.
            running.wait().success();
            continue;
        }
        running.kill9();
        running.wait();
        let ended = wait_until(Duration::from_secs(5), || test.processes().is_empty());
        assert!(ended, "a process is left");
        if test.exists(MARKER) {
            let arguments = json!({"skill_name": "s", "script": "print(1)"}).to_string();
            let run = test.next_run().args(["tool", "run_python_script", &arguments]).run();
            run.status(1).stdout_has("skills setup");
        } else if test.exists(VENV) {
            script(&test, "import alpha");
        }
    }
    setup(&test.file("skills/s/requirements.txt", "beta\n"), &[]).success();
}

/// Between the two renames the old venv exists only under its temporary name: no script runs with
/// another Python instead.
#[test]
fn setup_killed_between_renames_is_unfinished() {
    let test = quick().file("skills/s/requirements.txt", "alpha<2\n");
    setup(&test, &[]).success();
    let before = test.path(WORK).join("before");
    fs::create_dir(test.path(WORK)).expect("the folder does not exist");
    fs::rename(test.path(VENV), &before).expect("the file exists");
    let arguments = json!({"skill_name": "s", "script": "print(1)"}).to_string();
    let words = ["tool", "run_python_script", &arguments];
    let run = test.next_run().args(words).run();
    run.status(1).stdout_has("is not finished").stdout_has("skills setup s");
    setup(&test, &[]).success().stderr_has("did not finish");
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    assert_eq!(created_venvs(&test), 1);
}

/// The error names the missing module.
#[test]
fn python_without_venv_module_is_reported() {
    let python = "#!/bin/sh\ncase \"$*\" in *'-m venv '*)\n\
        echo 'The virtual environment was not created successfully because ensurepip is not available.'; exit 1;; esac\n\
        exec PYTHON \"$@\"\n";
    let python = python.replace("PYTHON", &interpreter().display().to_string());
    let test = test_with_skill().executable("python", &python);
    let program = test.path("python");
    let test = test.env("SCRIPT_PYTHON", program);
    setup(&test, &["alpha"])
        .status(1)
        .stderr_has("failed to create")
        .stderr_has("because ensurepip is not available.\n")
        .stderr_has("hint: install what Python needs to create venvs (Debian, Ubuntu: apt install python3-venv)");
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
    // It is disabled for scripts, but not for a requested venv.
    let test = test_with_skill().env("SCRIPT_PYTHON", "off");
    let missing =
        test.next_run().env("PATH", "/nonexistent").args(["skills", "setup", "s", "alpha"]);
    missing.run().status(78).stderr_has("no Python was found");
}

/// A folder without write permission, and one with a hostile link.
#[test]
fn unwritable_folder_is_reported() {
    let test = quick().file(WORK, "");
    let run = command(&test, &["alpha"]).run();
    run.status(1).stderr_has("failed to write in").stderr_has("hint: ");
    let test = quick().file("elsewhere/before/mine", "");
    let outside = test.path("elsewhere");
    let test = test.link(WORK, outside);
    command(&test, &["alpha"]).run().status(1).stderr_has("remove it");
    assert!(test.exists("elsewhere/before/mine"));
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
}

/// `uv` is used if it is on the path (a stand-in records its arguments), but not if variables say
/// where pip gets packages.
#[test]
fn uv_is_used_if_available() {
    let uv = "#!/bin/sh\necho \"$*\" >> \"$HOME/asked\"\n\
        case $1 in venv) for venv; do :; done; exec \"$SCRIPT_PYTHON\" -I -m venv --without-pip \"$venv\";; esac\n";
    let test = test_with_skill().executable("bin/uv", uv);
    let path = format!("{}:/usr/bin:/bin", test.path("bin").display());
    let with_pip = test.env("PATH", path);
    let test = with_pip.clone().env_unset("PIP_NO_INDEX").env_unset("PIP_FIND_LINKS");
    let venv = test.path(VENV);
    setup(&test, &["alpha"]).success();
    let (venv, python) = (venv.display(), interpreter().display());
    let expected = format!(
        "venv --quiet --allow-existing --no-project --python {python} {venv}\n\
         pip install --compile-bytecode --python {venv}/bin/python alpha\n"
    );
    assert_eq!(test.read("home/asked"), expected);
    setup(&with_pip, &["beta"]).success().stderr_has("Successfully installed");
    assert_eq!(test.read("home/asked"), expected);
}

/// The real `uv`, if the machine has it.
#[test]
fn real_uv_installs() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("uv").is_file()) {
        return;
    }
    let test = test_with_skill().env("PATH", path).env("UV_OFFLINE", "1");
    let wheels = test.path("wheels");
    let test = test.env_unset("PIP_NO_INDEX").env_unset("PIP_FIND_LINKS");
    let test = test.env("UV_FIND_LINKS", wheels).file("skills/s/requirements.txt", "alpha<2\n");
    setup(&test, &["beta"]).success().stderr_has("with uv and");
    script(&test, "import alpha, beta, gamma");
    let before = identity(&test).0;
    setup(&test, &["nothing-of-that-name"])
        .status(1)
        .stderr_has("failed to install")
        .stderr_has("nothing-of-that-name");
    assert_eq!(identity(&test).0, before);
    setup(&test, &[]).success().stderr_lacks("installing");
}
