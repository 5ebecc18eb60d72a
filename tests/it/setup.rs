//! `skills setup`: whatever ends it, and however often it is run, a skill has
//! no venv, its old one, or a whole new one; and its scripts run in it.
//!
//! No network: packages are wheels that the tests write. Most tests make their
//! venvs quickly, with pip out of Python's own bundle; one goes the long way.

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

/// Writes a wheel: folder, name, version, module, and what it requires.
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

/// `-m venv` without the seconds that it takes to unpack pip: the interpreter's
/// own is linked to, or imported from the archive that Python brings. Anything
/// else is Python's own.
const QUICK: &str = r#"#!/bin/sh
case "$*" in
*"-m venv "*)
    echo "$*" >> "$HOME/made"
    while [ -e "$HOME/slow" ]; do sleep 0.05; done
    PYTHON -I -m venv --without-pip "$6" && exec PYTHON -I -c '
import glob, os, sys
[site] = glob.glob(os.path.join(sys.argv[1], "lib", "python3*", "site-packages"))
try:
    import pip
    os.symlink(os.path.dirname(pip.__file__), os.path.join(site, "pip"))
except ImportError:
    import ensurepip
    [pip] = glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl"))
    open(os.path.join(site, "pip.pth"), "w").write(pip + "\n")' "$6";;
esac
exec PYTHON "$@"
"#;

/// A skill `s`, wheels to install, and nothing else to install from.
fn bench() -> Test {
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
        assert!(python.status().expect("it starts").success());
    }
    test.env("PIP_NO_INDEX", "1")
        .env("PIP_FIND_LINKS", &wheels)
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env("SCRIPT_PYTHON", interpreter())
        .env("PATH", "/usr/bin:/bin")
        .timeout(seconds(60.0))
}

/// The same, with venvs that are made quickly.
fn quick() -> Test {
    let python = interpreter().display().to_string();
    let test = bench().executable("python", &QUICK.replace("PYTHON", &python));
    let program = test.path("python");
    test.env("SCRIPT_PYTHON", program)
}

/// How many venvs were made.
fn made(test: &Test) -> usize {
    let list = fs::read_to_string(test.path("home/made"));
    list.unwrap_or_default().lines().count()
}

fn command(test: &Test, requirements: &[&str]) -> Test {
    let words = ["skills", "setup", "s"];
    test.again().args(words).args(requirements)
}

#[track_caller]
fn setup(test: &Test, requirements: &[&str]) -> Outcome {
    let run = command(test, requirements).run();
    run.demand(test.processes().is_empty(), "a process is left");
    run.demand(!test.exists(WORK), "the working folder is left");
    run.demand(!test.exists(MARKER), "a marked venv is left");
    run
}

/// What a script prints in the skill.
#[track_caller]
fn script(test: &Test, source: &str) -> Value {
    let arguments = json!({"skill_name": "s", "script": source}).to_string();
    let run = test.again().args(["tool", "run_python_script", &arguments]);
    let result = run.run().stdout_json();
    assert_eq!(result["returncode"], 0, "{result}");
    result["stdout"].clone()
}

fn identity(test: &Test) -> (u64, i64) {
    let metadata = fs::metadata(test.path(VENV)).expect("there is a venv");
    (metadata.ino(), metadata.ctime())
}

/// The long way: everything that declares something is installed, by
/// `python -m venv` and the pip that it brings; the second run does nothing.
#[test]
fn what_is_declared_is_installed_once() {
    let test = bench()
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
    let run = run.stderr_has("installs what requirements.txt lists, beta, openpyxl>=3");
    // The installer's own lines.
    run.stderr_has("Successfully installed").stderr_has("gamma");
    let source = "import alpha, beta, gamma, openpyxl, sys; print(alpha.VERSION, sys.prefix)";
    let prefix = test.path(VENV);
    let expected = format!("1.0 {}\n", prefix.display());
    assert_eq!(script(&test, source), expected);
    let before = identity(&test);
    setup(&test, &[]).success().stderr_lacks("installs").took_at_most(seconds(3.0));
    assert_eq!(identity(&test), before);
    // Beside pip, nothing of the user's place is needed to go on with.
    assert!(test.exists("skills/s/venv/bin/pip"));
}

/// Standard library only: a venv all the same, so that it is settled what runs
/// the scripts. The second run leaves it alone.
#[test]
fn a_venv_is_made_where_nothing_is_needed() {
    let test = quick()
        .file("skills/s/scripts/a.py", "import json, helper\n")
        .file("skills/s/scripts/helper.py", "")
        .file("skills/s/requirements.txt", "# none\n");
    let run = setup(&test, &["--json"]).success().stderr_lacks("installs");
    let told = run.stdout_json();
    assert_eq!(told["outcome"], "made");
    assert_eq!(told["venv"], json!(test.path(VENV)));
    assert!(test.exists("skills/s/venv/bin/python"));
    let prefix = format!("{}\n", test.path(VENV).display());
    assert_eq!(script(&test, "import sys; print(sys.prefix)"), prefix);
    let before = identity(&test);
    let told = setup(&test, &["--json"]).success().stdout_json();
    assert_eq!(told["outcome"], "up_to_date");
    assert_eq!((identity(&test), made(&test)), (before, 1));
    // Nothing of one that people made is touched either.
    let test = quick().venv_at("skills/s/.venv");
    setup(&test, &[]).success().stdout_has("is up to date");
    assert!(!test.exists(VENV) && made(&test) == 0);
}

/// Modules that nobody knows a package for are no reason against it.
#[test]
fn a_venv_is_made_where_no_package_is_known() {
    let test = quick().file("skills/s/a.py", "import nobody_a, nobody_b\n");
    for outcome in ["made", "up_to_date"] {
        let run = setup(&test, &["--json"]).status(1);
        let told = run.stdout_json();
        assert_eq!(told["outcome"], outcome);
        assert_eq!(told["missing"][1]["module"], "nobody_b");
        run.stderr_has(
            "no package is known for the modules `nobody_a` (a.py line 1), `nobody_b` (a.py line 1)\n",
        )
        .stderr_has("hint: name the packages that bring them: skills-runner skills setup s PACKAGE...");
        assert!(test.exists("skills/s/venv/bin/python"));
    }
    // One that is installed and does not bring its module is told as such.
    let test = quick().file("skills/s/a.py", "import alpha_x\n");
    let test = test.file("skills/s/requirements.txt", "alpha-x; python_version < '3'\n");
    let run = setup(&test, &[]).status(1);
    run.stderr_has(
        "the module `alpha_x` (a.py line 1) is missing although its package is declared",
    )
    .stderr_lacks("no package is known");
}

/// But where scripts run in venvs alone, the error that names a setup is no lie.
#[test]
fn a_venv_is_made_where_scripts_run_in_no_other_python() {
    // `off` says nothing about the interpreter that makes a venv: the path's does.
    let python = interpreter().display().to_string();
    let test = bench().executable("bin/python3", &QUICK.replace("PYTHON", &python));
    let path = format!("{}:/usr/bin:/bin", test.path("bin").display());
    let test = test.env("SCRIPT_PYTHON", "off").env("PATH", path);
    let call = json!({"skill_name": "s", "script": "print(1)"}).to_string();
    let refused = test.again().args(["tool", "run_python_script", &call]);
    refused.run().status(1).stdout_has("skills setup s");
    setup(&test, &[]).success();
    assert_eq!(
        script(&test, "import sys; print(sys.prefix)"),
        format!("{}\n", test.path(VENV).display())
    );
    setup(&test, &[]).success();
    assert_eq!(made(&test), 1);
}

/// Requirements of the command line stand in the skill's file afterwards, once,
/// and only if they could be installed.
#[test]
fn extra_requirements_are_recorded() {
    let file = "skills/s/requirements.txt";
    let test = quick();
    setup(&test, &["alpha<2", "beta"]).success();
    assert_eq!(test.read(file), "alpha<2\nbeta\n");
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    // Named already, in whatever way.
    setup(&test, &["ALPHA < 2", "Beta", "beta"]).success();
    assert_eq!((test.read(file).as_str(), made(&test)), ("alpha<2\nbeta\n", 1));
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
    assert_eq!(identity(&test).0, before.0, "the old venv is back");
    script(&test, "import alpha, gamma, openpyxl");
    setup(&test, &[]).success();
    assert_eq!(made(&test), 3);
}

/// A backslash at the end would make one requirement of the last one and the
/// new one, which no setup could install again.
#[test]
fn a_requirement_behind_a_backslash_stays_its_own() {
    let file = "skills/s/requirements.txt";
    for before in ["alpha \\", "alpha \\\n"] {
        let test = quick().file(file, before);
        setup(&test, &["openpyxl", "beta", "Beta"]).success();
        assert_eq!(test.read(file), "alpha \\\n\nopenpyxl\nbeta\n");
        fs::remove_dir_all(test.path(VENV)).expect("it was made");
        setup(&test, &[]).success();
        script(&test, "import alpha, beta, openpyxl");
    }
    let test = quick().file(file, "alpha\n");
    setup(&test, &["beta\\"]).status(1).stderr_has("failed to add to").stderr_has("hint: ");
    assert!(!test.exists(VENV) && made(&test) == 0);
    assert_eq!(test.read(file), "alpha\n");
}

/// Whose file it is and who may read it stays; one that may not be written is
/// told before anything is installed.
#[test]
fn the_requirements_file_stays_what_it_is() {
    let file = "skills/s/requirements.txt";
    let test = quick().file(file, "alpha\n").mode(file, 0o604);
    // SAFETY: no arguments.
    let is_superuser = unsafe { libc::geteuid() } == 0;
    if is_superuser {
        std::os::unix::fs::chown(test.path(file), Some(1234), Some(4321)).expect("a superuser's");
    }
    let before = fs::metadata(test.path(file)).expect("it is there");
    setup(&test, &["beta"]).success();
    assert_eq!(test.read(file), "alpha\nbeta\n");
    let after = fs::metadata(test.path(file)).expect("it is there");
    assert_eq!(after.mode() & 0o777, 0o604);
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));

    for target in ["more.txt", "missing.txt"] {
        let test = quick().file("skills/s/more.txt", "alpha\n");
        let test = test.link(file, target);
        let run = setup(&test, &["beta"]).status(1);
        run.stderr_has("it is a link").stderr_has("hint: add");
        assert!(!test.exists(VENV) && made(&test) == 0, "{target}");
        assert_eq!(test.read("skills/s/more.txt"), "alpha\n");
        assert!(fs::read_link(test.path(file)).is_ok());
    }
    if !is_superuser {
        let test = quick().file(file, "alpha\n").mode(file, 0o444);
        let run = setup(&test, &["beta"]).status(1);
        run.stderr_has("permission denied").stderr_has("hint: ");
        assert!(!test.exists(VENV) && made(&test) == 0);
        assert_eq!(test.read(file), "alpha\n");
    }
}

/// An option would do anything, as would a line break in the file.
#[test]
fn what_is_no_requirement_is_refused() {
    let test = quick().file(
        "skills/s/pyproject.toml",
        "[project]\ndependencies = [\"--index-url=http://127.0.0.1:9/\"]\n",
    );
    for bad in ["--index-url=x", " -e.", "a\nb", "", "#a", "a\u{1b}[2J", "a b", "a=1"] {
        let run = test.again().args(["skills", "setup", "s", "--", bad]).run();
        run.status(2).stderr_has("hint: ");
    }
    setup(&test, &[]).status(1).stderr_has("an option");
    let latin = quick().file("skills/s/requirements.txt", b"beta # f\xfcr alle\n");
    setup(&latin, &["alpha"]).status(1).stderr_has("failed to add to");
    let bytes = fs::read(latin.path("skills/s/requirements.txt")).expect("it is there");
    assert_eq!(bytes, b"beta # f\xfcr alle\n");
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
}

/// What cannot be installed for its shape is refused before a venv goes.
#[test]
fn a_requirement_is_read_before_anything_is_done() {
    let file = "skills/s/requirements.txt";
    let test = quick().file(file, "alpha<2\n");
    setup(&test, &[]).success();
    let before = identity(&test);
    let test = test.file(file, "# all\nbeta\nalpha = 2 # new\n");
    let run = setup(&test, &[]).status(1).stderr_lacks("anew");
    run.stderr_has("failed to install `alpha = 2`, which requirements.txt declares: ")
        .stderr_has("hint: mend it in requirements.txt")
        .stderr_lacks("as before");
    let project = "[project]\ndependencies = [\"alpha 2\"]\n";
    let test = test.file("skills/s/pyproject.toml", project).file(file, "beta\n");
    let run = setup(&test, &[]).status(1).stderr_lacks("anew");
    run.stderr_has("failed to install `alpha 2`, which pyproject.toml declares: ");
    assert_eq!((identity(&test), made(&test)), (before, 1));
    script(&test, "import alpha");
}

/// What is no UTF-8 is for pip to read, and told as it reads it, or not at all.
#[test]
fn a_requirements_file_is_told_as_pip_decodes_it() {
    let file = "skills/s/requirements.txt";
    let utf_16 = |text: &str| -> Vec<u8> {
        let units = ['\u{feff}'].into_iter().chain(text.chars()).map(|c| c as u16);
        units.flat_map(u16::to_le_bytes).collect()
    };
    let test = quick().file(file, utf_16("alpha<2\r\nbeta\r\n"));
    setup(&test, &[]).success().stdout("s: made skills/s/venv with alpha<2, beta\n");
    script(&test, "import alpha, beta");
    let told = setup(&test, &["--json"]).success().stdout_json();
    assert_eq!(told["declared"], json!(["alpha<2", "beta"]));
    let check = test.again().args(["skills", "check", "s"]).run();
    check.success().stdout_lacks("stale-venv");
    let test = test.file(file, utf_16("alpha\r\nbeta\r\n"));
    setup(&test, &[]).success().stderr_has("has changed");
    setup(&test, &["openpyxl"]).status(1).stderr_has("no UTF-8");
    let latin = b"# -*- coding: latin-1 -*-\nalpha # f\xfcr alle\nbeta;os_name!='\xfc'\n";
    let test = quick().file(file, latin);
    let made = setup(&test, &[]).success();
    made.stdout("s: made skills/s/venv with alpha, beta;os_name!='\u{fc}'\n");
    let test = quick().file(file, b"# coding: cp1252\nalpha\nbeta;os_name!='\x80'\n");
    let made = setup(&test, &[]).success();
    made.stdout("s: made skills/s/venv with alpha\n");
    script(&test, "import alpha, beta");
}

/// What pip takes is not refused for its shape: files with extras and markers,
/// and what `===` compares as it stands.
#[test]
fn what_pip_takes_is_installed() {
    for line in [
        "delta-1.0+abc-py3-none-any.whl[foo]",
        "delta-1.0+abc-py3-none-any.whl ; python_version>\"2\"",
        "six===*;python_version<\"2\"",
    ] {
        let test = quick().file("skills/s/requirements.txt", format!("{line}\nalpha\n"));
        let mut python = Command::new(interpreter());
        python.args(["-I", "-c", WHEEL]).arg(test.path("skills/s"));
        python.args(["delta", "1.0+abc", "delta"]);
        assert!(python.status().expect("it starts").success());
        setup(&test, &[]).success().stdout_has(line);
        let is_delta = line.starts_with("delta");
        script(&test, if is_delta { "import alpha, delta" } else { "import alpha" });
    }
}

/// Requirements that exclude each other are told as such, with the reasons.
#[test]
fn a_conflict_is_told() {
    let test = quick().file("skills/s/requirements.txt", "alpha<2\nalpha>=2\n");
    let run = setup(&test, &[]).status(1);
    run.stderr_has("conflicting dependencies: The user requested alpha")
        .stderr_has("hint: requirements exclude each other")
        .stderr_has("s: the skill is as before: it has no venv\n");
    assert!(!test.exists(VENV));
}

/// Without network a setup may work later; nobody says that a package is none.
#[test]
fn a_missing_network_is_temporary() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let address = format!("http://{}", port.expect("a free port"));
    let test = quick()
        .env("PIP_NO_INDEX", "0")
        .env("PIP_INDEX_URL", format!("{address}/simple"))
        .env("PIP_RETRIES", "0");
    let run = setup(&test, &["delta", "--json"]).status(75);
    let error = run.stdout_json()["error"].clone();
    assert_eq!(error["kind"], "temporary");
    let told = "failed to install `delta`: the package index was not reached: Connection refused";
    run.stderr_has(told)
        .stderr_has("hint: is the package index reachable? HTTPS_PROXY sets a proxy")
        .stderr_lacks("has no such package");
    let wheel = format!("{address}/delta-1.0-py3-none-any.whl");
    let run = setup(&test, &[&wheel]).status(75);
    let host = address.trim_start_matches("http://");
    let cause = format!("`: the host `{host}` was not reached: Connection refused\n");
    run.stderr_has(&cause).stderr_has("hint: is the host of that file reachable?");
    let repository = format!("git+{address}/delta.git");
    let run = setup(&test, &[&repository]);
    if run.stderr.contains("fatal: ") {
        // Where the machine has git.
        let cause = format!("failed to install `{repository}`: unable to access '{address}");
        run.status(75)
            .stderr_has(&cause)
            .stderr_has("hint: is the host of the repository reachable?");
        // What ssh says, and not what git makes of it.
        let ssh =
            "#!/bin/sh\necho 'ssh: connect to host h port 22: Connection refused' >&2\nexit 255\n";
        let test = test.clone().executable("ssh", ssh);
        let program = test.path("ssh");
        let test = test.env("GIT_SSH_COMMAND", program);
        let run = setup(&test, &["git+ssh://git@h/delta.git"]).status(75);
        run.stderr_has("`: ssh: connect to host h port 22: Connection refused\n")
            .stderr_has("hint: is the host of the repository reachable by ssh?");
    }
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
}

/// What a skill declares says nothing in the runner's name, and what could be
/// read only in part is told and not installed.
#[test]
fn what_a_stranger_declares_forges_no_line() {
    let project = "skills/s/pyproject.toml";
    for (requirement, told) in [
        (r"six\nskills-runner: FORGED", "U+000A"),
        (r"six\u0000", "U+0000"),
        (r"six\u2028skills-runner: FORGED", "U+2028"),
        (r"six\u001b[2J", "U+001B"),
    ] {
        let text = format!("[project]\ndependencies = [\"{requirement}\"]\n");
        let test = quick().file(project, text);
        let run = setup(&test, &[]).success().stderr_has(told);
        run.stderr_has("a requirement is left out: it has the character")
            .stderr_has("a setup installs nothing of it")
            .stderr_lacks(": installs ")
            .stderr_lacks("\nskills-runner: FORGED");
    }
    let script_file = "skills/s/scripts/a\nskills-runner: FORGED.py";
    let test = quick().file(script_file, "import nobody_knows_it\n");
    let run = setup(&test, &[]).status(1).stderr_has("nobody_knows_it");
    run.stderr_lacks("\nskills-runner: FORGED");
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.file(project, "[project]\ndependencies = [\"beta\"\n");
    let run = setup(&test, &[]).success();
    run.stderr_has("a setup installs nothing of it");
    let source = "import alpha, importlib.util as u; print(u.find_spec('beta'))";
    assert_eq!(script(&test, source), "None\n");
}

/// What stands in a URL before the host is nobody's to see: not on the screen,
/// not in the record, not in an error that quotes the half of it.
#[test]
fn a_login_in_a_requirement_is_not_told() {
    let file = "skills/s/requirements.txt";
    let options = "--index-url https://me:s3cr3tpw@127.0.0.1:9/simple\n--pre\n-r more.txt\n";
    let test = quick().file(file, options).file("skills/s/more.txt", "alpha<2\n--prefer-binary\n");
    let run = setup(&test, &[]).success();
    run.stdout("s: made skills/s/venv with alpha<2\n").stderr_lacks("s3cr3t");
    let record = "skills/s/venv/.skills-runner.json";
    assert!(test.read(record).contains("https://[secret]@127.0.0.1:9/simple"));
    assert!(!test.read(record).contains("s3cr3t"));
    let told = setup(&test, &["--json"]).success().stdout_json();
    assert_eq!(told["declared"], json!(["alpha<2"]));
    // The record of an earlier version has it, and is none the less the same.
    let old = test.read(record).replace("[secret]", "me:s3cr3tpw");
    let test = test.file(record, old);
    let run = setup(&test, &["--quiet"]).success();
    run.stdout("s: skills/s/venv is up to date with alpha<2\n");
    assert_eq!(made(&test), 1);
    // Another index is another line.
    let test = test.file(file, options.replace(":9/", ":8/"));
    setup(&test, &[]).success().stderr_has("has changed");

    let url = "https://me:s3cr3tpw@127.0.0.1:9/x.zip";
    let long = format!("[project]\ndependencies = [\"{}x @ {url}\"]\n", "x".repeat(150));
    for (path, text) in [
        ("skills/s/pyproject.toml", format!("[project]\ndependencies = [\"x @ {url}\"]\n")),
        ("skills/s/pyproject.toml", long),
        (file, format!("x @ {url}\n")),
    ] {
        let test = quick().env("PIP_RETRIES", "0").file(path, text);
        let run = setup(&test, &["--json"]).status(75).stdout_lacks("s3c");
        run.stderr_lacks("s3c");
    }
    let test = quick().env("PIP_RETRIES", "0");
    setup(&test, &[url]).status(75).stderr_lacks("s3c");
    let wrong = format!("x @ {url}\u{7}");
    let run = test.again().args(["skills", "setup", "s", &wrong]).run();
    run.status(2).stderr_has("[secret]@").stderr_lacks("s3c");
}

/// How a requirement is written is no change of it.
#[test]
fn another_spelling_is_no_change() {
    let file = "skills/s/requirements.txt";
    let test = quick().file(file, "ALPHA;python_version<\"2\"\nbeta>=1.0\n");
    setup(&test, &[]).success();
    for text in
        ["alpha ; python_version < '2'\nBeta >= 1.0\n", "beta>=1.0\nAlpha; python_version<'2'\n"]
    {
        let test = test.clone().file(file, text);
        let check = test.again().args(["skills", "check", "s"]).run();
        check.stdout_lacks("stale-venv");
        setup(&test, &[]).success().stdout_has("is up to date");
        assert_eq!(made(&test), 1);
    }
    let test = test.file(file, "alpha ; python_version < '2'\nbeta>=0.9\n");
    let check = test.again().args(["skills", "check", "s"]).run();
    check.stdout_has("stale-venv");
    setup(&test, &[]).success().stderr_has("has changed");
    assert_eq!(made(&test), 2);
}

/// A wheel that lies where the person is, not where the skill is.
#[test]
fn a_file_is_found_from_where_the_person_is() {
    let test = quick();
    let skills = test.path("skills");
    let test = test.env("SKILLS_FOLDER_PATH", skills).cwd("wheels");
    let wheel = "gamma-1.0-py3-none-any.whl";
    let path = test.path("wheels").join(wheel).display().to_string();
    setup(&test, &[&format!("./{wheel}")]).success();
    let list = test.read("skills/s/requirements.txt");
    assert_eq!(list, format!("{path}\n"));
    script(&test, "import gamma");
    let behind = "[foo] ; python_version>\"2\"";
    setup(&test, &[&format!("{wheel}{behind}")]).success();
    let list = test.read("skills/s/requirements.txt");
    assert_eq!(list, format!("{path}\n{path}{behind}\n"));
}

/// A well-known import is installed, and told; an unknown one is told; one that
/// a script does without is left alone.
#[test]
fn imports_that_nobody_declared_are_found() {
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
    assert!(!test.exists("skills/s/requirements.txt"), "the skill's files stay");
    script(&test, "import openpyxl");
    setup(&test, &[]).status(1).stderr_lacks("installs");
    // Another import: the venv is made anew, with both.
    let test = test.file("skills/s/requirements.txt", "alpha\n");
    setup(&test, &[]).status(1);
    script(&test, "import openpyxl, alpha");
    assert_eq!(made(&test), 2);
}

/// A changed declaration makes the venv anew; what is gone from it is gone.
#[test]
fn a_change_makes_the_venv_anew_and_a_failure_keeps_the_old_one() {
    let test = quick().file("skills/s/requirements.txt", "-r more.txt\n");
    let test = test.file("skills/s/more.txt", "alpha==1.0\n");
    setup(&test, &[]).success();
    let test = test.file("skills/s/more.txt", "alpha==3.0\n");
    let before = identity(&test);
    let failed = setup(&test, &[]).status(1).stderr_has("failed to install");
    failed
        .stderr_has("makes the venv anew: what is needed has changed")
        .stderr_has("s: the skill is as before, and the venv is as before\n")
        .stderr_has("alpha==3.0")
        .stderr_has("hint: the index has no such package or version");
    assert_eq!(identity(&test).0, before.0);
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    let test = test.file("skills/s/more.txt", "beta\n");
    setup(&test, &[]).success().stderr_lacks("as before");
    assert_ne!(identity(&test).0, before.0);
    script(
        &test,
        "import beta\ntry:\n    import alpha\n    raise SystemExit(1)\nexcept ImportError:\n    pass",
    );
    // So does a module that somebody has taken out.
    let test = test.file("skills/s/scripts/a.py", "import beta\n");
    let before = identity(&test);
    setup(&test, &[]).success();
    assert_eq!(identity(&test), before);
    let packages = fs::read_dir(test.path("skills/s/venv/lib")).expect("a venv").next();
    let packages = packages.expect("a version").expect("readable").path();
    fs::remove_file(packages.join("site-packages/beta.py")).expect("it was installed");
    setup(&test, &[]).success().stderr_has("modules are missing");
    script(&test, "import beta");
    // An interpreter that has gone takes the venv with it.
    fs::remove_file(test.path("skills/s/venv/bin/python")).expect("a link");
    setup(&test, &[]).success();
    script(&test, "import beta");
}

/// What somebody installed by hand in a setup's venv does not go silently.
#[test]
fn what_was_installed_by_hand_is_told_when_it_goes() {
    let test = quick();
    setup(&test, &["alpha<2"]).success();
    let by_hand = "import subprocess, sys; \
        subprocess.run([sys.executable, '-m', 'pip', 'install', 'beta'], check=True)";
    script(&test, by_hand);
    let told = "the venv before also had beta, gamma, which nothing declares";
    setup(&test, &["openpyxl"]).success().stderr_has(told);
    setup(&test, &["beta"]).success().stderr_lacks("the venv before");
    script(&test, "import alpha, beta, gamma, openpyxl");
}

/// A venv that people made is added to, never thrown away; also a `.venv`.
#[test]
fn what_people_made_stays() {
    for name in ["venv", ".venv"] {
        let path = format!("skills/s/{name}");
        let test = quick().file("skills/s/requirements.txt", "alpha\n");
        let test = if name == "venv" {
            // Without pip, which is then got first.
            test.venv_at(&path)
        } else {
            let mut python = Command::new(test.path("python"));
            python.args(["-I", "-u", "-m", "venv", "--without-pip"]).arg(test.path(&path));
            python.env("HOME", test.path("wheels"));
            assert!(python.status().expect("it starts").success());
            test
        };
        let test = test.file(&format!("{path}/mine"), "");
        // What a stranger may have put there is no way out.
        let test = test.file("other/file", "whole");
        let new = format!("{path}/.skills-runner.json.new");
        let test = test.link(&new, "../../../other/file");
        setup(&test, &[]).success().stderr_has("was not made by a setup");
        assert_eq!(test.read("other/file"), "whole");
        script(&test, "import alpha");
        setup(&test, &[]).success().stderr_lacks("installs");
        let test = test.file("skills/s/requirements.txt", "beta\n");
        setup(&test, &[]).success();
        script(&test, "import alpha, beta");
        let failed = setup(&test, &["nothing-of-that-name"]).status(1);
        failed.stderr_has("s: the venv keeps what was installed by then\n");
        assert!(test.exists(&format!("{path}/mine")) && made(&test) == 0);
        assert!(!test.exists("skills/s/venv") || name == "venv");
    }
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.file("skills/s/venv/mine", "");
    setup(&test, &[]).status(1).stderr_has("hint: ").stderr_has("rm -r");
    assert!(test.exists("skills/s/venv/mine"));
    // A broken `.venv` is no reason against a `venv`, which comes first.
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.file("skills/s/.venv/mine", "");
    setup(&test, &[]).success();
    script(&test, "import alpha");
    assert!(test.exists("skills/s/.venv/mine"));
}

/// A venv of another project is none of the setup's, whatever leads to it; the
/// scripts run in it all the same.
#[test]
fn nothing_is_installed_outside_the_skill() {
    for name in ["venv", ".venv"] {
        let path = format!("skills/s/{name}");
        let test = quick().file("skills/s/requirements.txt", "alpha\n");
        let test = test.venv_at("project").file("project/mine", "");
        let project = test.path("project");
        let test = test.link(&path, &project);
        let told = format!("installs outside the skill, in `{}", project.display());
        let run = setup(&test, &["beta"]).status(1).stderr_has(&told);
        run.stderr_has("hint: remove the link");
        assert_eq!(made(&test), 0);
        assert_eq!(test.read("skills/s/requirements.txt"), "alpha\n");
        let source = "import sys, importlib.util as u; print(u.find_spec('alpha'), sys.prefix)";
        let printed = script(&test, source);
        assert!(printed.as_str().unwrap_or_default().starts_with("None "), "{printed}");
        // Nor does one that a setup has begun there go.
        let test = test.file("project/.skills-runner-incomplete", "");
        command(&test, &[]).run().status(1).stderr_has(&told);
        assert!(test.exists("project/mine") && fs::read_link(test.path(&path)).is_ok());
    }
    // A folder that is no venv, with the interpreter of everybody in it.
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.link("skills/s/venv/bin/python", interpreter());
    let run = setup(&test, &[]).status(1);
    run.stderr_has("installs outside the skill").stderr_has("hint: remove it");
    // A link that stays inside.
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.venv_at("skills/s/.venv").link("skills/s/venv", ".venv");
    setup(&test, &[]).success();
    script(&test, "import alpha");
}

/// An interpreter that does not answer is one that does not run.
#[test]
fn a_python_that_hangs_is_told() {
    let test = quick().file("skills/s/requirements.txt", "alpha\n");
    let test = test.executable("skills/s/venv/bin/python", "#!/bin/sh\nexec sleep 60\n");
    let run = setup(&test, &[]).status(1).took_at_most(seconds(20.0));
    run.stderr_has("its bin/python does not run").stderr_has("rm -r");
    let limited = command(&test, &[]).args(["--timeout", "1"]).run();
    limited.status(3).took_at_most(seconds(5.0));
}

/// A setup that waits for something, with an old venv in place.
fn stuck() -> Test {
    let test = quick().file("skills/s/requirements.txt", "alpha<2\n");
    setup(&test, &[]).success();
    test.file("skills/s/requirements.txt", "alpha\n").file("home/slow", "")
}

#[track_caller]
fn wait_for_marker(test: &Test) {
    let marked = || test.exists(MARKER) && made(test) > 0;
    assert!(wait_until(seconds(20.0), marked), "no venv was begun");
}

/// A second setup waits for the first, and then has nothing to do.
#[test]
fn two_setups_take_turns() {
    let test = stuck();
    let first = command(&test, &[]).spawn();
    wait_for_marker(&test);
    let mut second = command(&test, &[]).spawn();
    second.read_stderr_until("waits for another setup");
    let mut impatient = command(&test, &[]).args(["--timeout", "0.3"]).spawn();
    impatient.read_stderr_until("waits for another setup");
    impatient.wait().status(3).took_at_most(seconds(3.0));
    let interrupted = command(&test, &[]).spawn();
    std::thread::sleep(seconds(0.3));
    interrupted.signal(libc::SIGTERM);
    interrupted.wait().status(-libc::SIGTERM).took_at_most(seconds(3.0));
    fs::remove_file(test.path("home/slow")).expect("it is there");
    first.wait().success().stderr_has("Successfully installed");
    second.wait().success().stderr_lacks("installs");
    assert_eq!(made(&test), 2);
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "2.0\n");
}

/// Ctrl+C, SIGTERM and the time limit leave nothing behind, and the old venv.
#[test]
fn a_setup_that_is_stopped_leaves_the_old_venv() {
    let test = stuck();
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
        // A signal needs no other word than what it leaves.
        let last = ended.stderr.lines().last().unwrap_or_default();
        let is_last = last == "skills-runner: s: the skill is as before, and the venv is as before";
        assert!(is_last || signal.is_none(), "{}", ended.stderr);
        ended.stderr_has("the venv is as before\n");
        assert!(test.processes().is_empty(), "a process is left");
        assert!(!test.exists(WORK) && !test.exists(MARKER));
        assert_eq!(identity(&test).0, before);
        assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    }
}

/// Killed at many moments: no half-made venv is ever used, and the next setup
/// finishes, with nothing left of those before.
#[test]
fn a_killed_setup_is_never_seen() {
    let test = quick().file("skills/s/requirements.txt", "alpha<2\n");
    let started = std::time::Instant::now();
    setup(&test, &[]).success();
    let whole = started.elapsed();
    let versions = ["alpha\n", "alpha<2\n"];
    for round in 0..12u32 {
        let test = test.clone().file("skills/s/requirements.txt", versions[round as usize % 2]);
        let running = command(&test, &[]).spawn();
        std::thread::sleep(whole * (round + 1) / 13);
        if test.processes().is_empty() {
            // It was quicker than the first.
            running.wait().success();
            continue;
        }
        running.kill9();
        running.wait();
        let gone = wait_until(Duration::from_secs(5), || test.processes().is_empty());
        assert!(gone, "a process is left");
        if test.exists(MARKER) {
            let arguments = json!({"skill_name": "s", "script": "print(1)"}).to_string();
            let run = test.again().args(["tool", "run_python_script", &arguments]).run();
            run.status(1).stdout_has("skills setup");
        } else if test.exists(VENV) {
            script(&test, "import alpha");
        }
    }
    setup(&test.file("skills/s/requirements.txt", "beta\n"), &[]).success();
}

/// Between two renamings only the venv before is there, out of its place: no
/// script runs without it in another Python.
#[test]
fn a_setup_that_is_killed_between_renamings_is_unfinished() {
    let test = quick().file("skills/s/requirements.txt", "alpha<2\n");
    setup(&test, &[]).success();
    let before = test.path(WORK).join("before");
    fs::create_dir(test.path(WORK)).expect("it is not there");
    fs::rename(test.path(VENV), &before).expect("it is there");
    let arguments = json!({"skill_name": "s", "script": "print(1)"}).to_string();
    let words = ["tool", "run_python_script", &arguments];
    let run = test.again().args(words).run();
    run.status(1).stdout_has("is not finished").stdout_has("skills setup s");
    setup(&test, &[]).success().stderr_has("did not finish");
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    assert_eq!(made(&test), 1);
}

/// What the machine lacks is named.
#[test]
fn a_python_without_venv_is_told() {
    let python = "#!/bin/sh\ncase \"$*\" in *'-m venv '*)\n\
        echo 'The virtual environment was not created successfully because ensurepip is not available.'; exit 1;; esac\n\
        exec PYTHON \"$@\"\n";
    let python = python.replace("PYTHON", &interpreter().display().to_string());
    let test = bench().executable("python", &python);
    let program = test.path("python");
    let test = test.env("SCRIPT_PYTHON", program);
    setup(&test, &["alpha"])
        .status(1)
        .stderr_has("failed to make")
        .stderr_has("hint: apt install python3-venv");
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
    // Switched off for scripts, not for whoever asks for a venv.
    let test = bench().env("SCRIPT_PYTHON", "off");
    let missing = test.again().env("PATH", "/nonexistent").args(["skills", "setup", "s", "alpha"]);
    missing.run().status(78).stderr_has("no Python was found");
}

/// A folder that cannot be written, and one that is a stranger's trap.
#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let test = quick().file(WORK, "");
    let run = command(&test, &["alpha"]).run();
    run.status(1).stderr_has("failed to write in").stderr_has("hint: ");
    let test = quick().file("elsewhere/before/mine", "");
    let elsewhere = test.path("elsewhere");
    let test = test.link(WORK, elsewhere);
    command(&test, &["alpha"]).run().status(1).stderr_has("remove it");
    assert!(test.exists("elsewhere/before/mine"));
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
}

/// `uv` is used where it is on the path: a stand-in notes what it is asked for.
#[test]
fn uv_is_asked_where_it_is_there() {
    let uv = "#!/bin/sh\necho \"$*\" >> \"$HOME/asked\"\n\
        case $1 in venv) for venv; do :; done; exec \"$SCRIPT_PYTHON\" -I -m venv --without-pip \"$venv\";; esac\n";
    let test = bench().executable("bin/uv", uv);
    let path = format!("{}:/usr/bin:/bin", test.path("bin").display());
    let test = test.env("PATH", path);
    let venv = test.path(VENV);
    setup(&test, &["alpha"]).success();
    let (venv, python) = (venv.display(), interpreter().display());
    let expected = format!(
        "venv --quiet --allow-existing --no-project --seed --python {python} {venv}\n\
         pip install --compile-bytecode --python {venv}/bin/python --no-index alpha\n"
    );
    assert_eq!(test.read("home/asked"), expected);
}

/// The real `uv`, where the machine has one.
#[test]
fn the_real_uv_installs() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("uv").is_file()) {
        return;
    }
    // Seeding a venv asks an index, and must find none.
    let test = bench().env("PATH", path).env("UV_OFFLINE", "1");
    let test = test.file("skills/s/requirements.txt", "alpha<2\n");
    setup(&test, &["beta"]).success().stderr_has("with uv and");
    script(&test, "import alpha, beta, gamma");
    let before = identity(&test).0;
    setup(&test, &["nothing-of-that-name"])
        .status(1)
        .stderr_has("failed to install")
        .stderr_has("nothing-of-that-name");
    assert_eq!(identity(&test).0, before);
    setup(&test, &[]).success().stderr_lacks("installs");
    let online = test.clone().env("PIP_NO_INDEX", "0");
    let offline = setup(&online, &["nothing-of-that-name"]).status(1);
    offline
        .stderr_has("hint: uv is told to stay offline (UV_OFFLINE)")
        .stderr_lacks("has no such package");
    setup(&test, &["alpha>=2"]).status(1).stderr_has("hint: requirements exclude each other");
    let online = online.env("UV_OFFLINE", "0").env("UV_HTTP_RETRIES", "0");
    let online = online.env("UV_INDEX_URL", "http://127.0.0.1:9/simple");
    let unreached = setup(&online, &["nothing-of-that-name"]).status(75);
    unreached.stderr_has("hint: is the package index reachable?");
}
