//! Existing, interrupted and failed venvs.

use super::{
    MARKER, VENV, WORK, command, created_venvs, identity, quick, script, setup, test_with_skill,
};
use crate::harness::{Test, interpreter, report_skipped, seconds, wait_until};
use serde_json::json;
use std::fs;
use std::time::Duration;

/// A changed declaration rebuilds the venv without the removed packages.
#[test]
#[ignore = "long"]
fn changed_requirements_rebuild_the_venv_and_a_failure_keeps_the_old_one() {
    let test = quick().file("skills/s/requirements.txt", "-r more.txt\n");
    let test = test.file("skills/s/more.txt", "alpha==1.0\n");
    setup(&test, &[]).success();
    let test = test.file("skills/s/more.txt", "alpha==3.0\n");
    let before = identity(&test);
    let failed = setup(&test, &[]).status(1).stderr_has("failed to install");
    failed.stderr_has("s: the skill and its venv are unchanged\n").stderr_has("alpha==3.0");
    assert_eq!(identity(&test).0, before.0);
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    let test = test.file("skills/s/more.txt", "beta\n");
    setup(&test, &[]).success().stderr_lacks("unchanged");
    assert_ne!(identity(&test).0, before.0);
    script(
        &test,
        "import beta\ntry:\n    import alpha\n    raise SystemExit(1)\nexcept ImportError:\n    pass",
    );
    // The same applies to a package that was uninstalled.
    let before = identity(&test);
    setup(&test, &[]).success();
    assert_eq!(identity(&test), before);
    let packages = fs::read_dir(test.path("skills/s/venv/lib")).expect("a venv").next();
    let packages = packages.expect("a version").expect("readable").path();
    let info = packages.join("site-packages/beta-1.0.dist-info");
    fs::remove_dir_all(info).expect("it was installed");
    setup(&test, &[]).success().stdout_has("recreated");
    script(&test, "import beta");
    // If the interpreter was deleted, the venv is rebuilt.
    fs::remove_file(test.path("skills/s/venv/bin/python")).expect("a link");
    setup(&test, &[]).success();
    script(&test, "import beta");
}

/// A package that the user installed in a setup's venv is not removed silently.
#[test]
#[ignore = "long"]
fn removal_of_manually_installed_packages_is_reported() {
    let test = quick();
    setup(&test, &["alpha<2"]).success();
    let install_manually = "import subprocess, sys; \
        subprocess.run([sys.executable, '-m', 'pip', 'install', 'beta'], check=True)";
    script(&test, install_manually);
    let reported = "the previous venv also had beta, gamma, which nothing declares";
    setup(&test, &["openpyxl"]).success().stderr_has(reported);
    setup(&test, &["beta"]).success().stderr_lacks("the previous venv");
    script(&test, "import beta, gamma, openpyxl");
}

/// A venv that no setup created is never changed, whatever links to it; scripts run in it. A
/// `.venv` stays, and gives way to the `venv` of a setup.
#[test]
fn venv_of_the_user_is_not_changed() {
    let test = quick().file("skills/s/requirements.txt", "alpha\n").venv("s");
    let before = identity(&test);
    let run = setup(&test, &["beta"]).status(1).stderr_has("no setup created");
    run.stderr_has("hint: install the packages there yourself; or run `rm -r ");
    assert_eq!((identity(&test), created_venvs(&test)), (before, 0));
    // A link to the venv of another skill, which a setup created.
    let test = quick().skill("o", "---\nname: o\ndescription: Other.\n---\n");
    test.next_run().args(["skills", "setup", "o", "alpha"]).run().success();
    let other = test.path("skills/o/venv");
    let test = test.link(VENV, &other).file("skills/o/venv/.skills-runner-incomplete", "");
    let run = command(&test, &["beta"]).run().status(1);
    run.stderr_has("no setup created").stderr_has("run `rm /");
    assert_eq!(created_venvs(&test), 1);
    assert!(test.exists("skills/o/venv/bin/python"));
    assert_eq!(fs::read_link(test.path(VENV)).expect("it is a link"), other);
    let test = quick().file("skills/s/requirements.txt", "alpha\n").venv_at("skills/s/.venv");
    setup(&test, &[]).success().stdout_has("created skills/s/venv with alpha\n");
    script(&test, "import alpha");
    assert!(test.exists("skills/s/.venv/bin"));
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
#[ignore = "long"]
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
#[ignore = "long"]
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
        "venv --no-config --quiet --allow-existing --no-project --python {python} {venv}\n\
         pip install --no-config --compile-bytecode --python {venv}/bin/python alpha\n"
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
        report_skipped("no uv");
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
