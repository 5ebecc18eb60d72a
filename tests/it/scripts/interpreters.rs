//! The interpreter, the files and the modules of a script.

use super::{DOCUMENT, for_each, run, source, test_with_skill};
use crate::harness::Test;
use crate::paths::as_an_ordinary_user;
use serde_json::{Value, json};

/// The choice of the interpreter; a choice that does not work is an error with a remedy.
#[test]
#[rustfmt::skip]
fn interpreter_is_chosen_in_order_and_a_broken_choice_is_an_error() {
    type Prepare = fn(Test) -> Test;
    // The first line of an answer is the prefix of the Python that ran, below the test's folder.
    let good: &[(&str, Prepare, &str, Option<&str>)] = &[
        ("venv", |test| test.venv("s"), "skills/s/venv", None),
        (".venv", |test| test.venv_at("skills/s/.venv"), "skills/s/.venv", None),
        ("both", |test| test.venv_at("skills/s/.venv").venv("s"), "skills/s/venv", None),
        ("venv beats all", |test| test.venv("s").env("SCRIPT_PYTHON", "off"), "skills/s/venv", None),
        ("a path", |test| test.venv_at("own").env("SCRIPT_PYTHON", "own/bin/python"), "own", Some("own/bin/python")),
        ("at home", |test| test.venv_at("home/own").env("SCRIPT_PYTHON", "~/own/bin/python"), "home/own", Some("home/own/bin/python")),
        ("by name", |test| { let bin = test.path("own/bin"); test.venv_at("own").env("PATH", bin).env("SCRIPT_PYTHON", "python") }, "own", Some("own/bin/python")),
        ("from PATH", |test| { let path = format!("/nowhere::{}", test.path("own/bin").display()); test.venv_at("own").env("PATH", path).env_unset("SCRIPT_PYTHON") }, "own", Some("own/bin/python3")),
    ];
    for_each(good, |(_, prepare, prefix, interpreter)| {
        let test = prepare(test_with_skill());
        let ran = run(&test, &json!({"script": "import sys; print(sys.prefix)"}));
        let shown = |path: &str| test.path(path).display().to_string();
        ran.is("stdout", format!("{}\n", shown(prefix)));
        ran.is("interpreter", interpreter.map(shown));
    });

    let broken = "the venv of the skill `s` is broken";
    let bad: &[(&str, Prepare, &str, &str)] = &[
        ("dangling", |test| test.link("skills/s/venv", "/nowhere"), broken, "skills/s/venv` (no setup created it) and then `skills-runner skills setup s` creates it again"),
        ("empty", |test| test.folder("skills/s/venv"), broken, ": `rm -r /"),
        ("a file", |test| test.file("skills/s/venv", ""), broken, ": `rm -r /"),
        ("a setup's", |test| test.file("skills/s/venv/.skills-runner.json", "{\"made\": true}"), broken, "cannot be run; tell the user: `skills-runner skills setup s` creates it again"),
        ("added to", |test| test.file("skills/s/venv/.skills-runner.json", "{\"made\": false}"), broken, ": `rm -r /"),
        ("python gone", |test| test.folder("skills/s/venv/lib").link("skills/s/venv/bin/python", "/nowhere").link("skills/s/venv/bin/python3", "python"), broken, "again"),
        ("not executable", |test| test.file("skills/s/venv/bin/python", "#!/bin/sh\n"), broken, "again"),
        ("a folder", |test| test.folder("skills/s/venv/bin/python"), broken, "again"),
        ("no fallback", |test| test.link("skills/s/venv", "/nowhere").venv_at("skills/s/.venv"), broken, "again"),
        (".venv", |test| test.folder("skills/s/.venv/bin"), broken, "cannot be run; tell the user: `skills-runner skills setup s` creates a `venv`, which is used instead"),
        ("half made", |test| test.venv("s").file("skills/s/venv/.skills-runner-incomplete", ""), "the venv of the skill `s` is not finished, a setup of it is under way or was interrupted", "it"),
        ("off", |test| test.env("SCRIPT_PYTHON", "off"), "SCRIPT_PYTHON=off", "one"),
        ("missing", |test| test.env("SCRIPT_PYTHON", "/nowhere/python"), "SCRIPT_PYTHON names /nowhere/python, which is not an executable file", ""),
        ("unknown", |test| test.env("SCRIPT_PYTHON", "python9.9"), "SCRIPT_PYTHON names python9.9", ""),
        ("folder", |test| test.env("SCRIPT_PYTHON", "/tmp"), "SCRIPT_PYTHON names /tmp", ""),
        ("PATH empty", |test| test.env_unset("SCRIPT_PYTHON").env("PATH", ""), "no Python was found; tell the user: install python3, or set SCRIPT_PYTHON", ""),
        ("none in PATH", |test| { let bin = test.path("bin"); test.file("bin/python3", "").env("PATH", bin).env_unset("SCRIPT_PYTHON") }, "no Python was found", ""),
    ];
    for_each(bad, |(_, prepare, expected, fix)| assert_refused(&prepare(test_with_skill()), expected, fix));
}

/// Asserts that no script runs and that the error has a remedy.
#[track_caller]
fn assert_refused(test: &Test, expected: &str, end: &str) {
    let ran = run(test, &source("open('ran', 'w')"));
    ran.has("error", expected).is("returncode", Value::Null);
    if !end.is_empty() {
        ran.has("error", "`skills-runner skills setup s`").has("error", end);
    }
    let is_unused = !test.exists("skills/s/ran");
    ran.check(is_unused, "another interpreter ran the script");
}

/// A venv that was copied from another machine.
#[test]
fn venv_whose_python_does_not_start_is_broken() {
    for python in ["#!/nowhere/python\n", "\x7fELF\x02\x01\x01"] {
        let test = test_with_skill().executable("skills/s/venv/bin/python", python);
        assert_refused(&test, "venv/bin/python", "again");
    }
}

/// A venv without permission may work for other users.
#[test]
fn venv_without_permission_is_not_called_broken() {
    let test = test_with_skill();
    let python = test.path("closed/python");
    let test = test
        .executable("closed/python", "#!/bin/sh\n")
        .link("skills/s/venv/bin/python", &python)
        .mode("closed", 0)
        .mode(".", 0o755)
        .mode("skills", 0o755);
    let arguments = json!({"skill_name": "s", "script": "1"}).to_string();
    let shell = as_an_ordinary_user(&test);
    let run = |test: &Test| {
        let test = test.next_run().shell(shell);
        test.args(["tool", "run_python_script", &arguments]).run()
    };
    run(&test)
        .status(1)
        .stdout_has("not executable for this user; tell the user: its owner has to")
        .stdout_lacks("broken")
        .stdout_lacks("skills setup");
    let test = test.file("skills/s/venv/.skills-runner.json", "{\"made\": true}");
    run(&test).stdout_has("user: `skills-runner skills setup s` creates it again");
}

/// The working folder of a script, its import path, and what it can write.
#[test]
fn script_runs_in_its_skill_and_imports_its_modules() {
    let test = test_with_skill()
        .venv("s")
        .venv_module("s", "installed.py", "name = 'installed'")
        .file("skills/s/beside.py", "name = 'beside'")
        .file("skills/s/lib/inner.py", "name = 'inner'")
        .file(
            "skills/s/scripts/main.py",
            "import beside, helper; print(beside.name, helper.name, __file__)",
        )
        .file("skills/s/scripts/helper.py", "name = 'helper'")
        .env("LANG", "C")
        .env("LC_ALL", "C")
        .env("PYTHONUTF8", "0")
        .env("PYTHONIOENCODING", "latin-1")
        .env("PYTHONHOME", "/nowhere")
        .env("PYTHONPATH", "/user/modules")
        .env("VIRTUAL_ENV", "/user/venv")
        .env("USERS_OWN", "ü");
    let report_script = "
import beside, installed, lib.inner
open('out.txt', 'w').write('ü€')
print(json.dumps({**os.environ, 'python': shutil.which('python'), 'encoding': sys.stdout.encoding,
    'modules': [beside.name, installed.name, lib.inner.name], 'modes': oct(os.umask(0o22)), 'fds': sorted(os.listdir('/proc/self/fd'))}))
";
    let ran = run(&test, &source(report_script));
    ran.is("stderr", "").is("returncode", 0);
    let reported: Value = serde_json::from_str(ran.text("stdout")).expect("the script prints JSON");
    let shown = |path: &str| test.path(path).display().to_string();
    let (skill, venv) = (shown("skills/s"), shown("skills/s/venv"));
    let path = std::env::var("PATH").unwrap_or_default();
    for (name, expected) in [
        ("SKILL_DIR", json!(skill)),
        ("SKILL_NAME", json!("s")),
        ("USER_CWD", json!(shown(""))),
        ("VIRTUAL_ENV", json!(venv)),
        ("PATH", json!(format!("{venv}/bin:{path}"))),
        ("python", json!(format!("{venv}/bin/python"))),
        ("PYTHONPATH", json!("/user/modules")),
        ("PYTHONSAFEPATH", Value::Null),
        ("PYTHONHOME", Value::Null),
        ("encoding", json!("utf-8")),
        ("PYTHONUNBUFFERED", json!("1")),
        ("USERS_OWN", json!("ü")),
        ("modules", json!(["beside", "installed", "inner"])),
        // The fourth is the listing itself.
        ("fds", json!(["0", "1", "2", "3"])),
    ] {
        let reported = match name {
            // A trailing slash makes no difference.
            "USER_CWD" => json!(format!("{}/", reported[name].as_str().unwrap_or_default())),
            _ => reported[name].clone(),
        };
        ran.check(reported == expected, &format!("{name} is {reported}"));
    }
    assert_eq!(test.read("out.txt"), "ü€");
    let ran = run(&test, &json!({"file_path": "scripts/main.py"}));
    ran.has("stdout", "beside helper ").has("stdout", "scripts/main.py\n");
    for cache in ["", "lib/", "scripts/", "venv/lib/"].map(|at| format!("skills/s/{at}__pycache__"))
    {
        assert!(!test.exists(&cache), "{cache} was written");
    }
}

/// A script of the skill gets its arguments unchanged, whatever its name is.
#[test]
#[rustfmt::skip]
fn files_of_the_skill_run_with_their_arguments() {
    let echo = "import json, sys; print(json.dumps(sys.argv[1:]))";
    let words = ["a b", "ü€", "-x", "--", "--help", "", "*", "$HOME", "'\"\\", "new\nline"];
    let all = format!("{}\n", json!(words).to_string().replace("\",\"", "\", \""));
    let all = all.replace('ü', "\\u00fc").replace('€', "\\u20ac");
    let inside = |test: &Test, path: &str| test.path("skills/s").join(path).display().to_string();
    let test_with_skill = || {
        let test = test_with_skill();
        ["echo.py", "-c.py", "-", "--version", "sub dir/ü.py", "scripts/echo.py", "no_extension"]
            .iter()
            .fold(test, |test, path| test.file(&format!("skills/s/{path}"), echo))
            .file("skills/s/notes.txt", "These are notes.\n")
            .file("skills/s/empty.py", "")
            .file("skills/s/package/__main__.py", echo)
            .link("skills/s/inner.py", "echo.py")
            .link("skills/s/out.py", "../../outside.py")
            .file("outside.py", echo)
            .file("skills/t/SKILL.md", DOCUMENT)
            .file("skills/t/echo.py", echo)
    };
    let table: &[(&str, Result<&str, &str>)] = &[
        ("echo.py", Ok(&all)), ("./echo.py", Ok(&all)), ("scripts/echo.py", Ok(&all)), ("-c.py", Ok(&all)), ("-", Ok(&all)),
        ("--version", Ok(&all)), ("sub dir/ü.py", Ok(&all)), ("no_extension", Ok(&all)), ("inner.py", Ok(&all)), ("INSIDE/echo.py", Ok(&all)),
        ("empty.py", Ok("")),
        ("package", Err("`package` of the skill `s` cannot be run: a folder")),
        ("out.py", Err("cannot be run")), ("../t/echo.py", Err("cannot be run")), ("../../outside.py", Err("cannot be run")),
        ("/etc/passwd", Err("cannot be run")), ("gone.py", Err("cannot be run")),
        ("/dev/stdin", Err("cannot be run")), ("echo.py\0", Err("cannot be run")),
    ];
    for_each(table, |(path, expected)| {
        let test = test_with_skill();
        let path = path.replace("INSIDE", &inside(&test, ""));
        let ran = run(&test, &json!({"file_path": path, "args": words}));
        match expected {
            Ok(stdout) => ran.is("stdout", *stdout).is("stderr", "").is("returncode", 0),
            Err(error) => ran.has("error", error).is("returncode", Value::Null),
        };
    });
    run(&test_with_skill(), &json!({"file_path": "notes.txt"})).is("returncode", 1).has("stderr", "SyntaxError");
}

/// Similar names are suggested, as by `read_file_in_skill`.
#[test]
fn similar_script_names_are_suggested() {
    let test = test_with_skill().file("skills/s/scripts/echo.py", "");
    let near = "did you mean `scripts/echo.py`?";
    for path in ["echo.py", "scripts/eco.py"] {
        run(&test, &json!({"file_path": path})).has("error", near);
    }
}

/// The hint is the one command that installs the missing module.
#[test]
#[rustfmt::skip]
fn missing_module_names_the_install_command() {
    type Missing<'m> = Option<(&'m str, &'m str)>;
    let setup = "tell the user to run: skills-runner skills setup s";
    let table: &[(bool, &str, &str, Missing)] = &[
        (false, "import ebooklib.epub", "", Some(("ebooklib", " EbookLib"))),
        (true, "from PIL import Image", "", Some(("PIL", " pillow"))),
        (true, "import surely_missing", "", Some(("surely_missing", " PACKAGE (PACKAGE: the package that provides it)"))),
        (true, "import surely_missing.inner", "surely-missing>=1\n", Some(("surely_missing", " (which installs what the skill's requirements.txt lists)"))),
        (true, "try: import surely_missing\nexcept ImportError: print('without')", "", None),
        (true, "import sys; print('ModuleNotFoundError: No module named x', file=sys.stdout)", "", None),
    ];
    for_each(table, |(has_venv, source, requirements, expected)| {
        let test = match has_venv { true => test_with_skill().venv("s"), false => test_with_skill() };
        let test = match *requirements { "" => test, text => test.file("skills/s/requirements.txt", text) };
        let ran = run(&test, &json!({"script": source}));
        let place = if *has_venv { " in the skill's venv" } else { "" };
        let hint = expected.map(|(module, end)| format!("`{module}` is not installed{place}: {setup}{end}"));
        ran.is("hint", hint);
    });
    // All declared packages are installed: another package has to provide the module.
    let test = test_with_skill().venv("s").venv_module("s", "beta-1.0.dist-info", "");
    let test = test.file("skills/s/requirements.txt", "Beta>=1  # all\n");
    run(&test, &json!({"script": "import surely_missing"})).has("hint", "setup s PACKAGE (PACKAGE: ");
    // What a setup already did is not suggested again.
    let test = test.file("skills/s/requirements.txt", "-r more.txt\n");
    run(&test, &json!({"script": "import surely_missing"})).has("hint", "setup s (which installs what");
    let test = test.file("skills/s/venv/.skills-runner.json", "{\"declared\": [\"-r more.txt\"]}");
    run(&test, &json!({"script": "import surely_missing"})).has("hint", "setup s PACKAGE (PACKAGE: ");
}
