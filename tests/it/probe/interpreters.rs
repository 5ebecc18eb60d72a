//! Interpreters that fail, and limits.

use super::{imports, open, probe_with, python, rows, scripts, shown};
use crate::harness::{Test, interpreter, seconds};
use skills::ScriptSettings;
use skills::probe::{ProbeResult, ProbedSkill, probe, probe_skills};
use skills::python::Interpreter;
use skills::python::PythonChoice;
use skills::venv::INCOMPLETE;
use skills_runner::Cancellation;
use skills_runner::{Rule, Severity, Skill};
use std::ffi::OsString;
use std::fs;
use std::time::Instant;

fn with(mut scripts: ScriptSettings, name: &str, value: impl Into<OsString>) -> ScriptSettings {
    scripts.environment.push((name.into(), value.into()));
    scripts
}

/// The probe results of all these skills.
fn probe_all(test: &Test, names: &[String]) -> Vec<ProbeResult> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let skills = open(test, &names);
    probe_with(&python(interpreter()), &scripts(test), &skills).unwrap()
}

/// Probing runs no code of a skill: neither its scripts nor modules named like those of the
/// standard library.
#[test]
fn no_code_of_a_skill_is_executed() {
    let trap = "open(__file__ + '.ran', 'w')\n";
    let names = [
        "a",
        "ast",
        "json",
        "re",
        "sitecustomize",
        "usercustomize",
        "importlib",
        "tomllib",
        "tomli",
        "encodings",
        "warnings",
        "pip",
        "nobody_a",
        "conftest",
    ];
    let mut test = Test::new().file("skills/s/pyproject.toml", "[project]\ndependencies = ['x']\n");
    for name in names {
        test = test.file(&format!("skills/s/{name}.py"), trap);
        test = test.file(&format!("elsewhere/{name}.py"), trap);
    }
    let test = test
        .file(
            "skills/s/scripts/b.py",
            "import nobody_a, json, importlib.util, tomli\n# /// script\n# ///\n",
        )
        .file("elsewhere/nobody_b/__init__.py", trap);
    let skill = test.path("skills/s");
    // The user's path may contain the skill itself or the files of an import finder.
    let path = format!("{}:.::{}", skill.display(), test.path("elsewhere").display());
    let scripts = with(scripts(&test), "PYTHONPATH", path);
    let scripts = with(scripts, "PYTHONSTARTUP", skill.join("a.py"));
    let scripts = with(scripts, "PYTHONINSPECT", "1");
    let found = probe_with(&python(interpreter()), &scripts, &open(&test, &["s"])).unwrap();
    assert_eq!(rows(&found[0].declared), ["pyproject.toml:2 x"]);
    let ran = |folder: &str| {
        let entries = fs::read_dir(test.path(folder)).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.contains(".ran") || name.contains("pycache")).collect::<Vec<_>>()
    };
    for folder in ["skills/s", "skills/s/scripts", "elsewhere", "elsewhere/nobody_b"] {
        assert_eq!(ran(folder), [""; 0], "{folder}");
    }
}

#[test]
fn modules_on_the_users_path_are_found() {
    let test = Test::new()
        .file("skills/s/a.py", "import users_own, nobody_a")
        .file("own/users_own.py", "");
    let scripts = with(scripts(&test), "PYTHONPATH", test.path("own"));
    let found = probe_with(&python(interpreter()), &scripts, &open(&test, &["s"])).unwrap();
    assert_eq!(imports(&found[0]), ["users_own 1", "nobody_a 1!"]);
}

/// Modules installed in a venv are found; output at its start is ignored.
#[test]
fn skills_are_probed_by_their_own_interpreters() {
    let source = "import installed, nobody_a";
    let test = Test::new()
        .file("skills/own/a.py", source)
        .venv("own")
        .venv_module("own", "installed.py", "")
        .venv_module("own", "noise.pth", "import sys; print('noise'); print('{\"skill\": 0}')\n")
        .file("skills/plain/a.py", source)
        .file("skills/other/requirements.txt", "x")
        .file("skills/words/SKILL.md", "no Python in here")
        .file("skills/broken/a.py", source)
        .link("skills/broken/venv", "/nowhere")
        .file("skills/half done/a.py", source)
        .venv("half done")
        .file(&format!("skills/half done/venv/{INCOMPLETE}"), "");
    let scripts = scripts(&test);
    let skills = open(&test, &["plain", "own", "words", "broken", "half done", "other"]);
    let skills: Vec<&Skill> = skills.iter().collect();
    let probe_all = |scripts: &ScriptSettings| -> Vec<String> {
        let probed = probe_skills(&skills, scripts, &[], &Cancellation::never());
        let shown = probed.iter().map(|probed| match probed {
            ProbedSkill::WithoutPython => "no Python".to_string(),
            ProbedSkill::Refused(error) => error.fault.to_string(),
            ProbedSkill::Probed(_, result) => imports(result).join(" "),
        });
        shown.collect()
    };
    let found = probe_all(&scripts);
    let expected = ["installed 1! nobody_a 1!", "installed 1 nobody_a 1!", "no Python"];
    assert_eq!(found[..3], expected);
    assert!(found[3].starts_with("the venv of the skill `broken` is broken: "), "{found:?}");
    assert_eq!(
        found[4],
        "the venv of the skill `half done` is not finished, a setup of it is under way or was \
         interrupted: `skills-runner skills setup 'half done'` waits for that one and finishes it"
    );
    assert_eq!(found[5], "");
    let mut off = scripts;
    off.python = PythonChoice::Off;
    let refused = probe_all(&off).swap_remove(0);
    let fix = ": `skills-runner skills setup plain` creates one";
    assert!(refused.ends_with(fix), "{refused}");
}

/// A Python whose parser crashes on a file that contains a certain text.
fn crashing_python(test: Test, how: &str) -> (Test, Interpreter) {
    let program = format!(
        "#!/bin/sh\nexec {} -c 'import ast, os, sys, time\nreal = ast.parse\ndef parse(source):\n    if \"DIE\" in source:\n        {how}\n    return real(source)\nast.parse = parse\nexec(sys.argv[1])' \"$2\"\n",
        interpreter().display()
    );
    let test = test.executable("python", &program);
    let program = python(test.path("python"));
    (test, program)
}

#[test]
fn file_that_crashes_the_interpreter_affects_only_its_skill() {
    for (how, expected) in [
        ("os.kill(os.getpid(), 11)", "Python was killed by signal 11"),
        (
            "print(\"last words\", file=sys.stderr, flush=True); os._exit(3)",
            "Python ended: last words",
        ),
    ] {
        let mut test = Test::new();
        for name in ["a", "b", "c", "d"] {
            let source = match name {
                "b" | "d" => "import nobody_a # DIE",
                _ => "import nobody_a",
            };
            test = test.file(&format!("skills/{name}/a.py"), source);
        }
        let (test, crashing_python) = crashing_python(test, how);
        let skills = open(&test, &["a", "b", "c", "d"]);
        let found = probe_with(&crashing_python, &scripts(&test), &skills).unwrap();
        for (number, probed) in found.iter().enumerate() {
            let (problems, imports) = (shown(&probed.problems), imports(probed));
            if number % 2 == 0 {
                assert_eq!((problems, imports.len()), (vec![], 1), "{probed:?}");
            } else {
                let problem = format!("its Python files cannot be checked: {expected}");
                assert_eq!((problems, imports.len()), (vec![problem], 0), "{probed:?}");
            }
        }
    }
}

/// An interpreter that always crashes is started a limited number of times, and its results for
/// other skills are kept.
#[test]
fn interpreter_that_always_crashes_is_abandoned() {
    let names: Vec<String> = (0..30).map(|number| format!("s{number:02}")).collect();
    let mut test = Test::new()
        .file("skills/s29/requirements.txt", "rich")
        .file("skills/s20/requirements.txt", "lxml");
    for name in &names {
        let source = if name == "s00" { "import nobody_a" } else { "DIE" };
        test = test.file(&format!("skills/{name}/a.py"), source);
    }
    let (test, crashing_python) = crashing_python(test, "os._exit(3)");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = probe_with(&crashing_python, &scripts(&test), &open(&test, &names)).unwrap();
    assert_eq!(
        (imports(&found[0]), &found[0].problems[..]),
        (vec!["nobody_a 1!".to_string()], &[][..])
    );
    for (number, probed) in found.iter().enumerate().skip(1) {
        let expected = match number {
            ..=21 => "its Python files cannot be checked: Python ended",
            _ => "crashed on 21 skills, last on `s21`",
        };
        let [problem] = &probed.problems[..] else { panic!("{probed:?}") };
        assert!(problem.message.ends_with(expected), "{problem}");
        assert_eq!((problem.rule, problem.severity), (Rule::Unprobed, Severity::Note));
    }
    // Results that need no Python are kept.
    assert_eq!(rows(&found[20].declared), ["requirements.txt:1 lxml"]);
    assert_eq!(rows(&found[29].declared), ["requirements.txt:1 rich"]);
}

/// A number that Python refuses to convert crashes no probe.
#[test]
fn endless_version_number_affects_only_its_skill() {
    let project = format!("[project]\nrequires-python = '>={}'\n", "9".repeat(5_000));
    let names: Vec<String> = (0..30).map(|number| format!("s{number:02}")).collect();
    let mut test = Test::new().file("skills/s29/a.py", "import nobody_a");
    for name in &names[..29] {
        test = test.file(&format!("skills/{name}/pyproject.toml"), &project);
    }
    let found = probe_all(&test, &names);
    assert_eq!(imports(&found[29]), ["nobody_a 1!"]);
    for probed in &found[..29] {
        let [problem] = &probed.problems[..] else { panic!("{probed:?}") };
        assert_eq!(
            (problem.rule, problem.line),
            (Rule::UnreadableRequirements, Some(2)),
            "{problem}"
        );
    }
}

/// A failure on one file affects only this file.
#[test]
fn unreadable_file_is_reported() {
    let source = "import DIE";
    let test = Test::new()
        .file("skills/s/a.py", "import nobody_a")
        .file("skills/s/b.py", source)
        .file("skills/s/c.py", "import nobody_b");
    let how = "sys.modules[\"__main__\"].imports_of = lambda *_: {}[0]";
    let (test, odd) = crashing_python(test, how);
    let found = probe_with(&odd, &scripts(&test), &open(&test, &["s"])).unwrap().remove(0);
    assert_eq!(imports(&found), ["nobody_a 1!"]);
    let expected = "it cannot be checked: KeyError: 0";
    assert_eq!(shown(&found.problems), [format!("b.py: {expected}"), format!("c.py: {expected}")]);
}

/// Files that would take minutes or gigabytes are abandoned early and affect no other skill.
#[test]
fn files_that_parse_slowly_are_abandoned_early() {
    let nested = format!("  x{}\n", "()".repeat(900)).repeat(500);
    let handler = format!("try:\n  import nobody_b\nexcept ImportError:\n{nested}");
    let listed = |count| format!("[project]\ndependencies = [\n{}]\n", "\"a\",\n".repeat(count));
    let coded = |codec: &str| format!("# coding: {codec}\n{}", "#".repeat(900_000));
    let cases = [
        ("list/pyproject.toml", listed(200_000), "its TOML is longer than 65536 characters"),
        (
            "rows/pyproject.toml",
            listed(10_000),
            "pyproject.toml line 2: 9000 of its requirements are left out: there are too many",
        ),
        ("calls/a.py", handler, ""),
        (
            "key/pyproject.toml",
            format!("{}b=1", "a.".repeat(32_000)),
            "more than 500 dots in one line",
        ),
        (
            "keys/pyproject.toml",
            format!("{}b=1", "a.".repeat(400_000)),
            "its TOML is longer than 65536",
        ),
        (
            "punycode/a.py",
            coded("punycode"),
            "its encoding `punycode` is not supported for scripts",
        ),
        (
            "idna/a.py",
            format!("\n{}", coded("IDNA")),
            "its encoding `idna` is not supported for scripts",
        ),
        ("dots/a.py", format!("import google.{}b", "a.".repeat(400_000)), "too large"),
    ];
    let mut test = Test::new().file("skills/zz/a.py", "import nobody_a");
    let mut names = Vec::new();
    for (path, content, _) in &cases {
        test = test.file(&format!("skills/{path}"), content);
        names.push(path.split('/').next().unwrap());
    }
    names.push("zz");
    let found = probe_with(&python(interpreter()), &scripts(&test), &open(&test, &names)).unwrap();
    for ((path, _, expected), probed) in cases.iter().zip(&found) {
        let reported = shown(&probed.problems);
        let is_reported = reported.len() == 1 && reported[0].contains(expected);
        assert!(is_reported || expected.is_empty() && reported.is_empty(), "{path}: {reported:?}");
    }
    assert_eq!(imports(&found[2]), ["nobody_b 2?!"]);
    assert_eq!(imports(&found[8]), ["nobody_a 1!"]);
}

/// A skill has a limit of processor time, in Python and in C code; a check has a limit of elapsed
/// time.
#[test]
fn skill_over_its_time_limit_is_reported_as_unprobed() {
    for (clock, work, expected) in [
        (
            "ITIMER_PROF",
            "while True: pass",
            "a.py: it takes too long to check, and the files after it are not checked",
        ),
        (
            "ITIMER_VIRTUAL",
            "sum(iter(int, 1))",
            "its Python files cannot be checked: they take too long",
        ),
    ] {
        // Makes the active timer run fifty times as fast.
        let how = format!(
            "left = signal.getitimer(signal.{clock})[0]\n        signal.setitimer(signal.{clock}, left / 50)\n        {work}"
        );
        let test =
            Test::new().file("skills/s/a.py", "DIE").file("skills/t/a.py", "import nobody_a");
        let (test, slow) = crashing_python(test, &how);
        let found = probe_with(&slow, &scripts(&test), &open(&test, &["s", "t"])).unwrap();
        assert_eq!(shown(&found[0].problems), [expected]);
        assert_eq!(imports(&found[1]), ["nobody_a 1!"]);
    }
    let test = Test::new()
        .file("skills/s/a.py", "import nobody_a")
        .file("skills/s/requirements.txt", "rich");
    let skills = open(&test, &["s"]);
    let skills: Vec<&Skill> = skills.iter().collect();
    let (python, scripts) = (python(interpreter()), scripts(&test));
    let found = probe(&python, &skills, &scripts, None, &Cancellation::never(), Instant::now());
    let found = found.unwrap().remove(0);
    assert_eq!(
        shown(&found.problems),
        ["its Python files were not checked: the others took too long"]
    );
    assert_eq!(rows(&found.declared), ["requirements.txt:1 rich"]);
}

/// More data than one answer holds is requested in parts; a single file that is too large is
/// reported by name.
#[test]
#[ignore = "long"]
fn oversized_answers_are_requested_in_parts() {
    let long = "x".repeat(450);
    let lines: Vec<String> = (0..1100).map(|number| format!("import m{number}_{long}")).collect();
    let source = lines.join("\n");
    let names: Vec<String> = (0..12).map(|number| format!("s{number:02}")).collect();
    let mut test = Test::new().file("skills/s03/large.py", "#".repeat(2 << 20));
    for name in &names {
        test = test.file(&format!("skills/{name}/a.py"), &source);
    }
    let found = probe_all(&test, &names);
    for (name, probed) in names.iter().zip(&found) {
        assert_eq!(probed.imports.len(), 1000, "{name}");
        let mut expected = vec!["it has more imports or requirements than are read"];
        if name == "s03" {
            expected.insert(0, "large.py: it is too large to check");
        }
        assert_eq!(shown(&probed.problems), expected, "{name}");
    }
}

#[test]
fn program_that_is_not_python_is_reported() {
    let test = Test::new()
        .file("skills/s/a.py", "import os")
        .executable("silent", "#!/bin/sh\n")
        .executable("talks", "#!/bin/sh\necho 'I am no Python' >&2; exit 1\n");
    let skills = open(&test, &["s"]);
    for (program, expected) in [
        ("silent", "silent is not a working Python 3.6 or later: it printed nothing"),
        ("talks", "talks is not a working Python 3.6 or later: I am no Python"),
        ("nowhere", "failed to start `"),
    ] {
        let mut program = python(test.path(program));
        let error = probe_with(&program, &scripts(&test), &skills).unwrap_err();
        assert!(error.contains(expected), "{error}");
        program.venv = Some(test.path("skills/s/venv"));
        let error = probe_with(&program, &scripts(&test), &skills).unwrap_err();
        assert!(error.starts_with("the venv of the skill `s` is broken: "), "{error}");
    }
}

#[test]
fn probing_ends_with_the_run() {
    let test = Test::new().file("skills/s/a.py", "import os");
    let cancellation = Cancellation { deadline: Some(Instant::now()), ..Cancellation::never() };
    let skills = open(&test, &["s"]);
    let skills: Vec<&Skill> = skills.iter().collect();
    let probed = probe(
        &python(interpreter()),
        &skills,
        &scripts(&test),
        None,
        &cancellation,
        Instant::now() + seconds(240.0),
    )
    .unwrap();
    assert_eq!(imports(&probed[0]), [""; 0]);
}
