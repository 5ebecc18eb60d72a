//! Imports and declared packages of skill scripts, as reported by the machine's real Python.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use skills_runner::Cancellation;
use skills_runner::internals::config::{PythonChoice, ScriptSettings};
use skills_runner::internals::skills::probe::{ProbeResult, ProbedSkill, probe, probe_skills};
use skills_runner::internals::skills::python::Interpreter;
use skills_runner::internals::skills::requirements::DeclaredPackage;
use skills_runner::internals::skills::venv::INCOMPLETE;
use skills_runner::{Problem, Rule, Severity, Skill, Skills};

use crate::harness::{Test, interpreter, seconds};

fn scripts(test: &Test) -> ScriptSettings {
    ScriptSettings {
        limit: seconds(30.0),
        python: PythonChoice::Program(interpreter().to_path_buf()),
        keep_leftovers: false,
        sandbox: None,
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        user_folder: test.path(""),
        temporary_folder: PathBuf::from("/tmp"),
    }
}

fn with(mut scripts: ScriptSettings, name: &str, value: impl Into<OsString>) -> ScriptSettings {
    scripts.environment.push((name.into(), value.into()));
    scripts
}

fn open(test: &Test, names: &[&str]) -> Vec<Skill> {
    // A folder without a document is not a skill.
    for name in names {
        let document = test.path(format!("skills/{name}/SKILL.md"));
        if !document.exists() {
            fs::write(document, "No Python in here.\n").expect("the folder exists");
        }
    }
    let skills = Skills::new(vec![test.path("skills")]);
    let opened = names.iter().map(|name| skills.open(name));
    opened.map(|skill| skill.expect("the test wrote it")).collect()
}

fn python(program: impl AsRef<Path>) -> Interpreter {
    Interpreter { program: program.as_ref().to_path_buf(), venv: None }
}

fn probe_with(
    program: &Interpreter,
    scripts: &ScriptSettings,
    skills: &[Skill],
) -> Result<Vec<ProbeResult>, String> {
    let skills: Vec<&Skill> = skills.iter().collect();
    let until = Instant::now() + seconds(240.0);
    let probed = probe(program, &skills, scripts, None, &Cancellation::never(), until);
    probed.map_err(|error| error.fault.to_string())
}

/// The probe results of all these skills.
fn probe_all(test: &Test, names: &[String]) -> Vec<ProbeResult> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let skills = open(test, &names);
    probe_with(&python(interpreter()), &scripts(test), &skills).unwrap()
}

/// The probe result of the skill `s`.
fn probe_skill(test: &Test) -> ProbeResult {
    let found = probe_with(&python(interpreter()), &scripts(test), &open(test, &["s"]));
    found.expect("Python is installed").remove(0)
}

/// The probe result of a skill with this script.
fn probe_script(source: impl AsRef<[u8]>) -> ProbeResult {
    probe_skill(&Test::new().file("skills/s/scripts/a.py", source))
}

/// Lists `module line`, with `?` for an optional import and `!` for a missing module.
fn imports(probed: &ProbeResult) -> Vec<String> {
    let mark = |is: bool, mark: &'static str| if is { mark } else { "" };
    let rows = probed.imports.iter().map(|row| {
        let (optional, missing) = (mark(row.is_optional, "?"), mark(row.is_missing, "!"));
        format!("{} {}{optional}{missing}", row.module, row.line)
    });
    rows.collect()
}

fn shown(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn rows(declared: &[DeclaredPackage]) -> Vec<String> {
    let rows = declared.iter().map(|row| {
        let line = row.line.unwrap_or_default();
        format!("{}:{line} {}", row.file.display(), row.requirement)
    });
    rows.collect()
}

#[test]
#[rustfmt::skip]
fn required_and_optional_imports_are_distinguished() {
    for (source, expected) in [
        ("import os, sys, json.decoder\nfrom __future__ import annotations\nimport winreg", &[][..]),
        ("import nobody_a, nobody_b.inner", &["nobody_a 1!", "nobody_b 1!"]),
        ("from nobody_a.inner import x\nfrom . import y\nfrom .z import w", &["nobody_a 1!"]),
        ("try:\n    import nobody_a\nexcept ImportError:\n    nobody_a = None", &["nobody_a 2?!"]),
        ("try:\n    import nobody_a\nexcept (ValueError, ModuleNotFoundError):\n    pass", &["nobody_a 2?!"]),
        ("try:\n    import nobody_a\nexcept:\n    import nobody_b", &["nobody_a 2?!", "nobody_b 4?!"]),
        ("try:\n    import nobody_a\nexcept ValueError:\n    pass", &["nobody_a 2!"]),
        ("try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    import nobody_a", &["nobody_a 6!"]),
        // A handler that only prints a message before the exit does not make the module optional.
        ("import sys\ntry:\n    import nobody_a\nexcept ImportError:\n    print('no')\n    sys.exit(1)", &["nobody_a 3!"]),
        ("try:\n    import nobody_a\nexcept ImportError as e:\n    raise SystemExit('no') from e", &["nobody_a 2!"]),
        ("try:\n    import nobody_a\nexcept ImportError:\n    run([python, '-m', 'pip', 'install', 'a'])", &["nobody_a 2!"]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import nobody_a", &["nobody_a 3?!"]),
        ("import sys\nif sys.platform == 'win32':\n    import nobody_a\nelse:\n    import nobody_b", &["nobody_a 3?!", "nobody_b 5?!"]),
        ("if __name__ == '__main__':\n    import nobody_a", &["nobody_a 2!"]),
        ("def f():\n    import nobody_a\nasync def g():\n    import nobody_b", &["nobody_a 2?!", "nobody_b 4?!"]),
        ("class A:\n    import nobody_a\nfor i in x:\n    import nobody_b", &["nobody_a 2!", "nobody_b 4!"]),
        ("from contextlib import suppress\nwith suppress(ImportError):\n    import nobody_a\nwith x:\n    import nobody_b", &["nobody_a 3?!", "nobody_b 5!"]),
        ("def f():\n    import nobody_a\nimport nobody_a\nimport nobody_a", &["nobody_a 3!"]),
        ("from google.genai.nowhere import x\nfrom google.cloud import nowhere", &["google.genai 1!", "google 2!"]),
        ("import __main__, sys\nx = lambda: [y for y in z]\nmatch = 1", &[]),
    ] {
        assert_eq!(imports(&probe_script(source)), expected, "{source}");
    }
}

/// A package is only named if it is well known.
#[test]
fn missing_module_names_its_package_if_well_known() {
    let probed = probe_script(
        "import nobody_knows\nfrom docxtpl import DocxTemplate\nimport ebooklib.epub\n",
    );
    let packages: Vec<_> = probed.imports.iter().map(|row| row.package).collect();
    assert_eq!(packages, [None, Some("docxtpl"), Some("EbookLib")]);
    assert_eq!(probed.imports[0].file, Path::new("scripts/a.py"));
}

/// Modules that the skill contains are not missing, wherever they are.
#[test]
fn modules_of_the_skill_are_not_missing() {
    let source = "import beside, above, deep, inner.leaf, a, scripts.a\nimport nobody_a";
    let base = || {
        Test::new()
            .file("skills/s/scripts/a.py", source)
            .file("skills/s/scripts/beside.py", "")
            .file("skills/s/above.py", "")
            .file("skills/s/lib/deep.py", "")
            .file("skills/s/lib/inner/leaf.py", "")
            .file("skills/s/nobody_a/notes.md", "a folder without Python is no package")
    };
    assert_eq!(imports(&probe_skill(&base())), ["nobody_a 2!"]);
    // Example files may import modules that only the user has.
    let test = base().file("skills/s/assets/app.py", "import nobody_b");
    assert_eq!(imports(&probe_skill(&test)), ["nobody_b 1?!", "nobody_a 2!"]);
    // A path that a script extends may contain unknown modules.
    let source = "import sys\nsys.path.insert(0, '../shared')\nimport nobody_a\nimport docxtpl";
    assert_eq!(imports(&probe_script(source)), ["nobody_a 3", "docxtpl 4!"]);
}

#[test]
fn syntax_errors_are_reported_with_their_line() {
    for (source, expected) in [
        (&b"x = 1\nif x\n    y = 2\n"[..], " line 2: Python 3."),
        (b"def f():\n\tx = 1\n        y = 2\n", " line 3: "),
        (b"print 'two'\n", " line 1: "),
        (b"x = '\0'\n", "null byte"),
        (b"# coding: nowhere\nx = 1\n", "encoding"),
        (b"x = '\xff'\n", "'utf-8'"),
        (&[b'('; 5000], "Python 3."),
        (&b"-".repeat(200_000), "Python 3."),
    ] {
        let probed = probe_script(source);
        let reported = shown(&probed.problems);
        let is_right = reported.len() == 1
            && reported[0].starts_with("scripts/a.py")
            && reported[0].contains(expected);
        assert!(is_right, "{expected:?}: {probed:?}");
        assert_eq!(probed.problems[0].severity, Severity::Error);
    }
    // Other encodings are read, and warnings are ignored.
    let fine = probe_script(b"# coding: latin-1\nx = '\xff \\d'\nassert (x, 1)\nimport nobody_a\n");
    assert_eq!((imports(&fine), fine.problems), (vec!["nobody_a 4!".to_string()], vec![]));
    let template = Test::new().file("skills/s/templates/a.py", "import {{ module }}");
    assert_eq!(probe_skill(&template).problems[0].severity, Severity::Warning);
}

#[test]
fn requirements_are_found_in_every_declaration() {
    let block = "#!/usr/bin/env python\r\n# /// script\r\n# requires-python = \">=3.6\"\r\n# dependencies = [\r\n#   \"rich>13\", # text\r\n#\r\n#   'httpx[http2]',\r\n# ]\r\n# ///\r\nimport os\r\n";
    let project = "[project]\nname = 's'\nrequires-python = '>=3.6,!=3.7.*'\ndependencies = [\n  'lxml',\n  'pandas ; python_version > \"3\"',\n]\n[dependency-groups]\ndev = ['pytest']\n";
    let test = Test::new()
        .file("skills/s/scripts/a.py", block)
        .file("skills/s/pyproject.toml", project)
        .file("skills/s/requirements.txt", "openpyxl # tables\n-r more.txt\n")
        .file("skills/s/scripts/requirements.txt", "\npillow\n")
        .file("skills/s/assets/template.py", block.replace("3.6", "4.6"))
        .file("skills/s/tests/test_a.py", "# /// script\n# dependencies = {{ all }}\n# ///\n");
    let probed = probe_skill(&test);
    assert_eq!(
        rows(&probed.declared),
        [
            "requirements.txt:1 openpyxl",
            "requirements.txt:2 -r more.txt",
            "scripts/requirements.txt:2 pillow",
            "pyproject.toml:5 lxml",
            "pyproject.toml:6 pandas ; python_version > \"3\"",
            "scripts/a.py:5 rich>13",
            "scripts/a.py:7 httpx[http2]",
        ]
    );
    assert_eq!(shown(&probed.problems), [""; 0]);
}

#[test]
fn requirements_list_alone_starts_no_python() {
    let test = Test::new().file("skills/s/requirements.txt", "rich\n");
    let found = probe_with(&python("/nowhere"), &scripts(&test), &open(&test, &["s"])).unwrap();
    assert_eq!(rows(&found[0].declared), ["requirements.txt:1 rich"]);
}

#[test]
fn invalid_declaration_is_reported_with_its_line() {
    let block = |text: &str| format!("# /// script\n{text}\n# ///\n");
    for (name, content, expected) in [
        (
            "pyproject.toml",
            "[project]\nname = \n".into(),
            "pyproject.toml line 2: its TOML is invalid: Invalid value",
        ),
        (
            "pyproject.toml",
            "[tool.poetry]\nname = 'x'\n[tool.poetry.dependencies]\npython = '^3'\nrich = '*'\n"
                .into(),
            "pyproject.toml line 3: `tool.poetry.dependencies` is not read, only `dependencies` of `[project]`",
        ),
        (
            "pyproject.toml",
            "[project]\nname = 'x'\n[dependency-groups]\nall = ['rich']\n".into(),
            "pyproject.toml line 3: `dependency-groups` is not read",
        ),
        ("pyproject.toml", "project = 1".into(), "pyproject.toml: `project` is not a table"),
        (
            "pyproject.toml",
            "[project]\ndependencies = 'a'".into(),
            "pyproject.toml line 2: `dependencies` is not a list of strings",
        ),
        (
            "pyproject.toml",
            "[project]\nrequires-python = 3".into(),
            "pyproject.toml line 2: `requires-python` is not a string",
        ),
        (
            "pyproject.toml",
            "[project]\nrequires-python = '>=4.1'".into(),
            "pyproject.toml line 2: it requires Python >=4.1, and Python 3.",
        ),
        (
            "pyproject.toml",
            "[project]\nrequires-python = 'new'".into(),
            "pyproject.toml line 2: `new` is not a valid version specifier",
        ),
        ("pyproject.toml", "[".repeat(100_000), "pyproject.toml"),
        ("a.py", block("# dependencies = ["), "a.py line 2: its TOML is invalid: "),
        (
            "a.py",
            block("dependencies = []"),
            "a.py line 1: the block `# /// script` has a line that is not a comment",
        ),
        ("a.py", format!("\n{0}\n{0}", block("# x = 1")), "a.py line 6: a second block"),
    ] {
        let probed = probe_skill(&Test::new().file(&format!("skills/s/{name}"), &content));
        let problems = shown(&probed.problems);
        let is_reported = problems.len() == 1 && problems[0].starts_with(expected);
        assert!(is_reported, "{expected}\n{problems:?}");
        assert_eq!(rows(&probed.declared), [""; 0]);
    }
}

/// Requirements are reported literally; those that cannot be are omitted, and the omission is
/// reported.
#[test]
fn requirements_are_reported_complete_or_omitted() {
    let long = format!("a @ https://host.example/{}/a.whl", "x".repeat(500));
    let items = format!(
        "'kept',\n\"lxml\\nevil\",\n\"b\\u0000\",\n\"c\\u001b[2J\",\n\"d\\u202ee\",\n'{long}',\n'last\t>1'"
    );
    let project =
        format!("[project]\nrequires-python = \">=3\\u001b\"\ndependencies = [\n{items}]\n");
    let block = format!("# {}\n", items.replace('\n', "\n# "));
    let script = format!("# /// script\n# dependencies = [\n{block}# ]\n# ///\n");
    let expected = [
        "5: a requirement is left out: it has the character U+000A",
        "6: a requirement is left out: it has the character U+0000",
        "7: a requirement is left out: it has the character U+001B",
        "8: a requirement is left out: it has the character U+202E",
        "9: a requirement is left out: it is longer than 500 characters",
    ];
    for (name, content, offset) in [("pyproject.toml", project, 0), ("a.py", script, 1)] {
        let probed = probe_skill(&Test::new().file(&format!("skills/s/{name}"), content));
        let lines: Vec<_> = [4, 10].map(|line| line - offset).into();
        let declared = rows(&probed.declared);
        assert_eq!(
            declared,
            [format!("{name}:{} kept", lines[0]), format!("{name}:{} last\t>1", lines[1])]
        );
        let problems = probed.problems.iter().filter(|problem| problem.line != Some(2));
        let problems: Vec<String> = problems
            .map(|problem| format!("{}: {}", problem.line.unwrap() + offset, problem.message))
            .collect();
        assert_eq!(problems, expected, "{name}");
        assert!(probed.problems.iter().all(|problem| problem.rule == Rule::UnreadableRequirements));
    }
    let test = Test::new().file("skills/s/requirements.txt", "a\n".repeat(1_001));
    let problems = shown(&probe_skill(&test).problems);
    assert_eq!(problems, ["requirements.txt: it has more requirements than are read"]);
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
        assert_eq!((problem.rule, problem.severity), (Rule::Unprobed, Severity::Warning));
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
