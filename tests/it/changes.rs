//! What a script changes in its own skill is reported to the model and the user.

use serde_json::{Value, json};

use crate::harness::{Outcome, Test, interpreter, report_skipped};
use crate::paths::as_an_ordinary_user;

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";

/// Two skills; the script runs in `s`.
fn test_with_two_skills() -> Test {
    Test::new()
        .env("SCRIPT_PYTHON", interpreter())
        .skill("s", DOCUMENT)
        .skill("t", &DOCUMENT.replace("name: s", "name: t"))
        .file("skills/s/scripts/a.py", "print(1)\n")
        .file("skills/s/scripts/run", "#!/bin/sh\n")
        .file("skills/s/data.json", "{}")
        .file("elsewhere/b.py", "print(1)\n")
        .link("skills/s/link.py", "../../elsewhere/b.py")
        .venv("s")
        .folder("other/bin")
        .link("skills/s/node_modules", "../../other")
}

/// Runs a script in `s`. Returns its result and the outcome.
#[track_caller]
fn run(test: &Test, script: &str) -> (Value, Outcome) {
    let start = "import os, shutil\nos.chdir(os.environ['SKILL_DIR'])\nT = '../t/'\n";
    let script = format!("{start}{script}\n");
    let call = json!({"skill_name": "s", "script": script}).to_string();
    let run = test.clone().args(["-q", "tool", "run_python_script", &call]).run();
    let result = run.stdout_json();
    run.check(result["returncode"] == 0, &script);
    (result, run)
}

#[test]
fn changed_and_deleted_files_are_reported() {
    let table = [
        ("open('scripts/a.py', 'a').write('#')", "scripts/a.py"),
        ("open('data.json', 'a').write(' ')", "data.json"),
        ("open('SKILL.md', 'a').write('x')", "SKILL.md"),
        ("os.chmod('data.json', 0o755)", "data.json"),
        ("open('venv/bin/x', 'w')", "venv/bin"),
        ("os.makedirs('.git/hooks')", ".git"),
        ("open('../../elsewhere/b.py', 'a').write('x')", "link.py"),
        ("open('../../other/bin/x', 'w')", "node_modules/bin"),
        ("os.makedirs('__pycache__'); open('__pycache__/a.pyc', 'w')", "__pycache__/a.pyc"),
        ("os.remove('scripts/run')", "scripts/run"),
        ("os.rename('data.json', 'old')", "data.json"),
        ("shutil.rmtree('venv')", "venv"),
    ];
    let test = test_with_two_skills();
    for (script, path) in table {
        let (result, run) = run(&test, script);
        let hint = result["hint"].as_str().unwrap_or_default();
        let reported = format!("{path} of the skill changed");
        run.check(hint.contains(&reported), format_args!("{reported}: {hint}"));
        run.stderr_has(&reported);
    }
}

/// New files are left in the skill's folder, whatever they are.
#[test]
fn new_files_are_left() {
    let test = test_with_two_skills();
    for (script, path) in [
        ("open('new.py', 'w')", "new.py"),
        ("open('.env', 'w')", ".env"),
        ("os.symlink('/tmp', 'tmp')", "tmp"),
        ("os.mkdir('out'); open('out/picture.png', 'w')", "out/picture.png"),
        // A folder that is moved into the skill may contain files with old times.
        ("os.rename('../../elsewhere', 'lib')", "lib/b.py"),
    ] {
        let (result, run) = run(&test, script);
        run.check(result["left_in_skill"] == json!([path]), script);
        run.stdout_has(&format!("the script left {path} in the skill's folder"));
    }
}

/// A folder that a script has made unreadable may contain anything.
#[test]
fn folder_made_unreadable_is_reported() {
    let test = test_with_two_skills().env("SCRIPT_PYTHON", "/usr/bin/python3");
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return report_skipped("no Python that every user may run");
    }
    let _ = std::fs::remove_dir_all(test.path("skills/s/venv"));
    let shell = as_an_ordinary_user(&test);
    for path in ["skills/s", "skills/s/scripts"] {
        let _ = std::os::unix::fs::chown(test.path(path), Some(65534), Some(65534));
    }
    let test = test.shell(shell);
    run(&test, "os.chmod('scripts', 0o311)").1.stderr_has("scripts of the skill");
}

/// Modification times can be set back, but not the time of the last status change.
#[test]
fn files_with_reset_times_are_reported() {
    let script = "path = 'scripts/a.py'\nold = os.stat(path)\nopen(path, 'w').write('print(2)\\n')\n\
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))\n\
        assert os.stat(path).st_mtime_ns == old.st_mtime_ns and os.stat(path).st_size == old.st_size";
    run(&test_with_two_skills(), script).1.stderr_has("scripts/a.py of the skill changed");
}

/// Other skills and the skills folder are not looked at.
#[test]
fn other_changes_are_not_reported() {
    let test = test_with_two_skills();
    for script in [
        "import scripts.a",
        "open('scripts/a.py').read(); os.listdir(T)",
        "open('../../mine.py', 'w').write('x')",
        "open(T + 'SKILL.md', 'a').write('x'); os.mkdir(T + 'venv')",
        "open('../skills-runner.lock', 'w')",
    ] {
        let (result, run) = run(&test, script);
        let hint = result["hint"].as_str().unwrap_or_default();
        run.check(!hint.contains("changed"), script);
        run.stderr_is_empty();
    }
    let many = "os.mkdir(T + 'many')\nfor i in range(20_100): os.close(os.open(f'{T}many/{i}', os.O_CREAT))\n";
    run(&test, many).1.stderr_is_empty();
}

/// Also with `-q`. An incomplete search is reported.
#[test]
fn long_list_of_changes_is_cut_and_says_so() {
    let test = test_with_two_skills();
    run(&test, "for i in range(15): open(f'm{i}.py', 'w')");
    let (result, run) = run(&test, "for i in range(15): open(f'm{i}.py', 'a').write('x')");
    let hint = result["hint"].as_str().unwrap_or_default();
    run.check(hint.contains("and 5 more of the skill changed"), hint);
    let many =
        "os.mkdir('many')\nfor i in range(20_100): os.close(os.open(f'many/{i}', os.O_CREAT))\n";
    let (_, run) = self::run(&test, many);
    run.stderr_has("not all were checked for changes");
}
