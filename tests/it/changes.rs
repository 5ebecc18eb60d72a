//! Changes that a script makes to files that are later run or read as instructions are reported to
//! the user, in its own skill and in others.

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
        .file("skills/t/scripts/a.py", "print(1)\n")
        .file("skills/t/scripts/run", "#!/bin/sh\n")
        .file("skills/t/scripts/run.sh", "true\n")
        .file("skills/t/data.json", "{}")
        .file("elsewhere/b.py", "print(1)\n")
        .link("skills/t/link.py", "../../elsewhere/b.py")
        .venv("t")
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
fn changed_code_and_instructions_are_reported() {
    let table = [
        ("open('scripts/a.py', 'a').write('#')", "scripts/a.py of the skill"),
        ("open('new.py', 'w')", "new.py of the skill"),
        ("open('x.pth', 'w')", "x.pth of the skill"),
        ("open('.env', 'w')", ".env of the skill"),
        ("open('.python-version', 'w')", ".python-version of the skill"),
        ("open('uv.toml', 'w')", "uv.toml of the skill"),
        ("open('references.MD', 'w')", "references.MD of the skill"),
        ("open('tool', 'w').write('#!/bin/sh')", "tool of the skill"),
        ("open('plain', 'w'); os.chmod('plain', 0o755)", "plain of the skill"),
        ("os.symlink('/tmp', 'tmp')", "tmp of the skill"),
        (
            "os.makedirs('__pycache__'); open('__pycache__/a.cpython-311.pyc', 'w')",
            "a.cpython-311.pyc of the skill",
        ),
        ("open(T + 'SKILL.md', 'a').write('x')", "/t/SKILL.md changed"),
        ("open(T + 'scripts/a.py', 'a').write('x')", "/t/scripts/a.py changed"),
        ("open(T + 'scripts/run', 'a').write('x')", "/t/scripts/run changed"),
        ("open(T + 'requirements-dev.txt', 'w')", "/t/requirements-dev.txt changed"),
        ("open(T + 'venv/bin/x', 'w')", "/t/venv/"),
        ("os.makedirs(T + '.git/hooks')", "/t/.git changed"),
        ("open('../../elsewhere/b.py', 'a').write('x')", "/t/link.py changed"),
        ("os.mkdir('../u'); open('../u/skill.md', 'w')", "/u/skill.md changed"),
        ("open('../skills-runner.lock', 'w')", "/skills-runner.lock changed"),
        ("os.remove(T + 'scripts/run.sh')", "/t/scripts/run.sh changed"),
        ("os.rename(T + 'SKILL.md', T + 'old')", "/t/SKILL.md changed"),
        // A folder that is moved into the skill may contain files with old times.
        ("os.rename('../../elsewhere', T + 'lib')", "/t/lib/b.py"),
        ("open('../../other/bin/x', 'w')", "node_modules/bin of the skill"),
        ("shutil.rmtree(T + 'venv')", "/t/venv changed"),
    ];
    let test = test_with_two_skills();
    for (script, reported) in table {
        let (result, run) = run(&test, script);
        let hint = result["hint"].as_str().unwrap_or_default();
        let left = reported.replace(" of the skill", " in the skill's folder");
        let is_named = hint.contains(reported) || hint.contains(&format!("the script left {left}"));
        run.check(is_named, format_args!("{reported}: {hint}"));
        run.stderr_has(reported);
    }
}

/// A folder that a script has made unreadable may contain anything.
#[test]
fn folder_made_unreadable_is_reported() {
    let test = test_with_two_skills().env("SCRIPT_PYTHON", "/usr/bin/python3");
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return report_skipped("no Python that every user may run");
    }
    let shell = as_an_ordinary_user(&test);
    for path in ["skills/s", "skills/s/scripts", "skills/t", "skills/t/scripts"] {
        let _ = std::os::unix::fs::chown(test.path(path), Some(65534), Some(65534));
    }
    let test = test.shell(shell);
    for (script, folder) in [
        ("os.chmod('scripts', 0o311)", "scripts of the skill"),
        ("os.chmod(T + 'scripts', 0o311)", "/t/scripts changed"),
    ] {
        run(&test, script).1.stderr_has(folder);
    }
}

/// Modification times can be set back, but not the time of the last status change.
#[test]
fn files_with_reset_times_are_reported() {
    let test = test_with_two_skills();
    for (path, reported) in
        [("scripts/a.py", "scripts/a.py of the skill"), ("../t/scripts/a.py", "/t/scripts/a.py")]
    {
        let script = format!(
            "path = '{path}'\nold = os.stat(path)\nopen(path, 'w').write('print(2)\\n')\n\
             os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))\n\
             assert os.stat(path).st_mtime_ns == old.st_mtime_ns and os.stat(path).st_size == old.st_size"
        );
        run(&test, &script).1.stderr_has(reported);
    }
}

#[test]
fn other_changes_are_not_reported() {
    let test = test_with_two_skills();
    for script in [
        "import scripts.a",
        "open('scripts/a.py').read(); os.listdir(T)",
        "open('out.csv', 'w').write('x'); open(T + 'data.json', 'w').write('[]')",
        "os.mkdir('out'); open('out/picture.png', 'w').write('x')",
        "os.remove('out.csv')",
        "open('../../mine.py', 'w').write('x')",
    ] {
        let (result, run) = run(&test, script);
        let hint = result["hint"].as_str().unwrap_or_default();
        run.check(!hint.contains("changed"), script);
        run.stderr_is_empty();
    }
}

/// Also with `-q` and through a model. An incomplete search is reported.
#[test]
fn long_list_of_changes_is_cut_and_says_so() {
    let test = test_with_two_skills();
    let (result, run) = run(&test, "for i in range(15): open(f'{T}m{i}.py', 'w')");
    let hint = result["hint"].as_str().unwrap_or_default();
    run.check(hint.contains("and 5 more changed"), hint);
    let many = "os.mkdir(T + 'many')\nfor i in range(20_100): os.close(os.open(f'{T}many/{i}', os.O_CREAT))\n";
    let (_, run) = self::run(&test, many);
    run.stderr_has("not all were checked for changes");
    // The skill's own files are listed first.
    let (_, run) = self::run(&test, "open('late.py', 'w')");
    run.stderr_has("late.py of the skill").stderr_has("not all were checked for changes");
}
