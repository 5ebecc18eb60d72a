//! Venvs that `skills setup` of 0.1.0 has left. Their record is real (`tests/data/0.1.0`); the rest
//! is written as it was, because a venv contains the paths of its machine.

use super::{MARKER, VENV, WORK, created_venvs, identity, quick, script, setup};
use crate::harness::Test;
use crate::upgrade::old_file;
use std::fs;

/// A skill as 0.1.0 set it up, with its venv at this place. New packages cannot be installed.
fn with_old_venv(place: &str) -> Test {
    let test = quick()
        .env("PIP_FIND_LINKS", "/nowhere")
        .file(
            "skills/s/requirements.txt",
            "# packages\nAlpha < 2  # old\nbeta>=1 ; python_version >= '3'\n-r more.txt\n",
        )
        .file("skills/s/more.txt", "delta==1.0\n")
        .file(
            "skills/s/scripts/a.py",
            "import alpha, beta, openpyxl, nowhere\nprint(alpha.VERSION)\n",
        )
        .venv_at(place)
        .file(&format!("{place}/.gitignore"), "*\n")
        .file(&format!("{place}/.skills-runner.json"), old_file("venv-record.json"));
    let versions = fs::read_dir(test.path(place).join("lib")).unwrap();
    let site = versions.map(|version| version.unwrap().path()).next().unwrap();
    let site = site.join("site-packages");
    for (name, version) in [
        ("alpha", "1.0"),
        ("beta", "1.0"),
        ("delta", "1.0"),
        ("gamma", "1.0"),
        ("openpyxl", "3.1"),
        ("pip", "23.0"),
        ("setuptools", "66.0"),
    ] {
        let info = site.join(format!("{name}-{version}.dist-info"));
        fs::create_dir(&info).unwrap();
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
        fs::write(info.join("METADATA"), metadata).unwrap();
        fs::write(info.join("RECORD"), format!("{name}.py,,\n")).unwrap();
        fs::write(site.join(format!("{name}.py")), format!("VERSION = {version:?}\n")).unwrap();
    }
    test
}

const USES_ALL: &str = "import alpha, beta, delta, gamma, openpyxl; print(alpha.VERSION)";

/// Scripts use the venv, and a setup has nothing to do.
#[test]
fn venv_is_used_and_is_up_to_date() {
    let test = with_old_venv(VENV);
    let before = identity(&test);
    assert_eq!(script(&test, USES_ALL), "1.0\n");
    let run = setup(&test, &[]).success();
    run.stdout(
        "s: skills/s/venv is up to date with Alpha < 2, beta>=1 ; python_version >= '3', delta==1.0, openpyxl\n",
    )
    .stderr_lacks("installing");
    assert_eq!((created_venvs(&test), identity(&test)), (0, before));
    assert_eq!(test.read(&format!("{VENV}/.skills-runner.json")), old_file("venv-record.json"));
}

/// It is known as the venv of a setup, so other requirements recreate it.
#[test]
fn venv_is_recreated_for_other_requirements() {
    let test = with_old_venv(VENV).file("skills/s/requirements.txt", "alpha<2\n");
    let test = test.file("skills/s/scripts/a.py", "import alpha\n");
    let wheels = test.path("wheels");
    let test = test.env("PIP_FIND_LINKS", wheels);
    setup(&test, &[]).success().stdout_has("recreated skills/s/venv with alpha<2, openpyxl\n");
    assert_eq!(created_venvs(&test), 1);
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
}

/// Asserts that no script runs, and that the setup is to be repeated.
#[track_caller]
fn assert_refused(test: &Test) {
    let arguments = r#"{"skill_name": "s", "script": "print(1)"}"#;
    let run = test.next_run().args(["tool", "run_python_script", arguments]).run().status(1);
    run.stdout_has("the venv of the skill `s` is not finished").stdout_has("skills setup s");
}

/// `kill -9` during the first setup.
#[test]
fn interrupted_setup_is_repeated() {
    let test = quick().file("skills/s/requirements.txt", "alpha<2\n");
    let test = test.venv("s").file(MARKER, "").file(&format!("{VENV}/.gitignore"), "*\n");
    let test = test.folder(WORK);
    assert_refused(&test);
    let run = setup(&test, &[]).success();
    run.stderr_has("an earlier setup did not finish; its leftovers were removed");
    assert_eq!(created_venvs(&test), 1);
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
}

/// `kill -9` while a venv was created in place of another one, which the setup had put aside.
#[test]
fn interrupted_setup_gives_the_old_venv_back() {
    let test = with_old_venv(&format!("{WORK}/before"));
    let test = test.venv("s").file(MARKER, "").file(&format!("{VENV}/.gitignore"), "*\n");
    assert_refused(&test);
    let run = setup(&test, &[]).success().stdout_has("is up to date");
    run.stderr_has("an earlier setup did not finish; its leftovers were removed");
    assert_eq!(created_venvs(&test), 0);
    assert_eq!(script(&test, USES_ALL), "1.0\n");
}
