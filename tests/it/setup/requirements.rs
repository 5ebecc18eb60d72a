//! What is installed, and how it is declared.

use super::{QUICK, VENV, created_venvs, identity, quick, script, setup, test_with_skill};
use crate::harness::{interpreter, seconds};
use serde_json::json;

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

/// A skill that needs only the standard library, or what the system's Python has, gets no venv: it
/// would hide the packages of the system.
#[test]
fn no_venv_is_created_without_packages() {
    let test = quick()
        .file("skills/s/scripts/a.py", "import json, helper\n")
        .file("skills/s/scripts/helper.py", "")
        .file("skills/s/requirements.txt", "# none\n");
    let run = setup(&test, &["--json"]).success().stderr_lacks("installing");
    let reported = run.stdout_json();
    assert_eq!(reported["outcome"], "nothing_to_install");
    assert_eq!((&reported["venv"], created_venvs(&test)), (&json!(null), 0));
    setup(&test, &[]).success().stdout_has("s: nothing to install; its scripts run with ");
    assert!(!test.exists(VENV));
    // A venv created by the user is not changed either.
    let test = quick().venv_at("skills/s/.venv");
    setup(&test, &[]).success().stdout_has("its scripts run with ").stdout_has("/.venv/bin/python");
    assert!(!test.exists(VENV) && created_venvs(&test) == 0);
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

/// Packages of the command line stay until others of the name are given; nothing is written
/// outside the venv, and no venv is created for what a skill declares anyway.
#[test]
#[ignore = "long"]
fn requested_packages_stay() {
    let file = "skills/s/requirements.txt";
    let test = quick();
    setup(&test, &["alpha<2", "beta"]).success();
    assert!(!test.exists(file));
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    setup(&test, &["beta", "alpha<2"]).success().stdout_has("is up to date with alpha<2, beta\n");
    assert_eq!(created_venvs(&test), 1);
    let test = test.file(file, "openpyxl\n");
    setup(&test, &["Openpyxl"]).success().stdout_has("with openpyxl, alpha<2, beta\n");
    setup(&test, &["Openpyxl"]).success().stdout_has("is up to date");
    script(&test, "import alpha, gamma, openpyxl");
    let before = identity(&test);
    setup(&test, &["nothing-of-that-name"])
        .status(1)
        .stderr_has("No matching distribution found for nothing-of-that-name");
    assert_eq!(identity(&test).0, before.0, "the old venv was not restored");
    setup(&test, &["alpha"]).success().stdout_has("with openpyxl, beta, alpha\n");
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "2.0\n");
    assert_eq!(test.read(file), "openpyxl\n");
}

/// A setup installs nothing because a script imports it, and imports nothing itself.
#[test]
fn imports_install_nothing() {
    let test = quick().file("skills/s/a.py", "import openpyxl, nobody_a\n");
    setup(&test, &[]).success().stdout_has("s: nothing to install; ");
    assert!(!test.exists(VENV));
    let test = test.file("skills/s/requirements.txt", "alpha\n");
    let run = setup(&test, &["--yes"]).success().stderr_lacks("nobody_a");
    run.stdout("s: created skills/s/venv with alpha\n");
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
    assert!(!test.exists(VENV) && !test.exists("skills/s/requirements.txt"));
}

/// What pip refuses is reported with its own last lines, and the old venv stays.
#[test]
#[ignore = "long"]
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
#[ignore = "long"]
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
    setup(&test, &[]).success().stdout_has("recreated");
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
#[ignore = "long"]
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
    let test = quick().file(script_file, "import (\n");
    let run = setup(&test, &[]).success().stderr_has("FORGED.py");
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
#[ignore = "long"]
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
    setup(&test, &[]).success().stdout_has("recreated");

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
    let reported = setup(&test, &[&format!("./{wheel}"), "--json"]).success().stdout_json();
    assert_eq!(reported["undeclared"], json!([path]));
    script(&test, "import gamma");
    let suffix = "[foo] ; python_version>\"2\"";
    let words = [&format!("{wheel}{suffix}"), "--json"];
    let reported = setup(&test, &words).success().stdout_json();
    assert_eq!(reported["undeclared"], json!([path, format!("{path}{suffix}")]));
}
