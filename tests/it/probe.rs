//! What skills' scripts import and declare, told by the machine's real Python.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use skills_runner::Cancellation;
use skills_runner::internals::config::{PythonChoice, ScriptSettings};
use skills_runner::internals::skills::probe::{
    DeclaredPackage, ProbeResult, group_by_interpreter, probe, probe_until,
};
use skills_runner::internals::skills::python::Interpreter;
use skills_runner::internals::skills::venv::INCOMPLETE;
use skills_runner::{Problem, Severity, Skill, Skills};

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
    // Without a document it would be no skill.
    for name in names {
        let document = test.path(format!("skills/{name}/SKILL.md"));
        if !document.exists() {
            fs::write(document, "No Python in here.\n").expect("the folder is there");
        }
    }
    let skills = Skills::new(vec![test.path("skills")]);
    let opened = names.iter().map(|name| skills.find(name));
    opened.map(|skill| skill.expect("the test wrote it")).collect()
}

fn python(program: impl AsRef<Path>) -> Interpreter {
    Interpreter { program: program.as_ref().to_path_buf(), venv: None, search_path: None }
}

fn ask_of(
    program: &Interpreter,
    scripts: &ScriptSettings,
    skills: &[Skill],
) -> Result<Vec<ProbeResult>, String> {
    let skills: Vec<&Skill> = skills.iter().collect();
    probe(program, &skills, scripts, &Cancellation::never())
}

/// What is known of all these skills.
fn ask_all(test: &Test, names: &[String]) -> Vec<ProbeResult> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let skills = open(test, &names);
    ask_of(&python(interpreter()), &scripts(test), &skills).unwrap()
}

/// What is known of the skill `s`.
fn ask(test: &Test) -> ProbeResult {
    let found = ask_of(&python(interpreter()), &scripts(test), &open(test, &["s"]));
    found.expect("the tests have a Python").remove(0)
}

/// The same of one with one script.
fn ask_script(source: impl AsRef<[u8]>) -> ProbeResult {
    ask(&Test::new().file("skills/s/scripts/a.py", source))
}

/// `module line`, with `?` where it is optional and `!` where it is missing.
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

/// Which imports a script cannot do without.
#[test]
#[rustfmt::skip]
fn imports_are_told_with_what_they_are_needed_for() {
    for (source, expected) in [
        ("import os, sys, json.decoder\nfrom __future__ import annotations\nimport winreg", &[][..]),
        ("import nobody_a, nobody_b.inner", &["nobody_a 1!", "nobody_b 1!"]),
        ("from nobody_a.inner import x\nfrom . import y\nfrom .z import w", &["nobody_a 1!"]),
        ("try:\n    import nobody_a\nexcept ImportError:\n    nobody_a = None", &["nobody_a 2?!"]),
        ("try:\n    import nobody_a\nexcept (ValueError, ModuleNotFoundError):\n    pass", &["nobody_a 2?!"]),
        ("try:\n    import nobody_a\nexcept:\n    import nobody_b", &["nobody_a 2?!", "nobody_b 4?!"]),
        ("try:\n    import nobody_a\nexcept ValueError:\n    pass", &["nobody_a 2!"]),
        ("try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    import nobody_a", &["nobody_a 6!"]),
        // What only says goodbye nicely needs the module all the same.
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
        assert_eq!(imports(&ask_script(source)), expected, "{source}");
    }
}

/// Only a package that is well known is ever named.
#[test]
fn a_missing_module_has_its_package_where_that_is_known() {
    let probed =
        ask_script("import nobody_knows\nfrom docxtpl import DocxTemplate\nimport ebooklib.epub\n");
    let packages: Vec<_> = probed.imports.iter().map(|row| row.package).collect();
    assert_eq!(packages, [None, Some("docxtpl"), Some("EbookLib")]);
    assert_eq!(probed.imports[0].file, Path::new("scripts/a.py"));
}

/// What a skill brings itself is not missing, wherever it lies.
#[test]
fn modules_of_the_skill_are_its_own() {
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
    assert_eq!(imports(&ask(&base())), ["nobody_a 2!"]);
    // Material may import what its user has.
    let test = base().file("skills/s/assets/app.py", "import nobody_b");
    assert_eq!(imports(&ask(&test)), ["nobody_b 1?!", "nobody_a 2!"]);
    // A path that a script extends may bring what nobody knows.
    let source = "import sys\nsys.path.insert(0, '../shared')\nimport nobody_a\nimport docxtpl";
    assert_eq!(imports(&ask_script(source)), ["nobody_a 3", "docxtpl 4!"]);
}

#[test]
fn what_python_cannot_read_is_told_with_its_line() {
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
        let probed = ask_script(source);
        let told = shown(&probed.syntax);
        let is_right =
            told.len() == 1 && told[0].starts_with("scripts/a.py") && told[0].contains(expected);
        assert!(is_right && probed.faults.is_empty(), "{expected:?}: {probed:?}");
        assert_eq!(probed.syntax[0].severity, Severity::Error);
    }
    // Other encodings are read, warnings are nobody's business here.
    let fine = ask_script(b"# coding: latin-1\nx = '\xff \\d'\nassert (x, 1)\nimport nobody_a\n");
    assert_eq!((imports(&fine), fine.syntax), (vec!["nobody_a 4!".to_string()], vec![]));
    let template = Test::new().file("skills/s/templates/a.py", "import {{ module }}");
    assert_eq!(ask(&template).syntax[0].severity, Severity::Warning);
}

#[test]
fn requirements_are_found_wherever_they_are_declared() {
    let block = "#!/usr/bin/env python\r\n# /// script\r\n# requires-python = \">=3.6\"\r\n# dependencies = [\r\n#   \"rich>13\", # text\r\n#\r\n#   'httpx[http2]',\r\n# ]\r\n# ///\r\nimport os\r\n";
    let project = "[project]\nname = 's'\nrequires-python = '>=3.6,!=3.7.*'\ndependencies = [\n  'lxml',\n  'pandas ; python_version > \"3\"',\n]\n[dependency-groups]\ndev = ['pytest']\n";
    let test = Test::new()
        .file("skills/s/scripts/a.py", block)
        .file("skills/s/pyproject.toml", project)
        .file("skills/s/requirements.txt", "openpyxl # tables\n-r more.txt\n")
        .file("skills/s/scripts/requirements.txt", "\npillow\n")
        .file("skills/s/assets/template.py", block.replace("3.6", "4.6"))
        .file("skills/s/tests/test_a.py", "# /// script\n# dependencies = {{ all }}\n# ///\n");
    let probed = ask(&test);
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
    let pythons = ["pyproject.toml:3 >=3.6,!=3.7.*", "scripts/a.py:3 >=3.6"];
    assert_eq!(rows(&probed.requires_python), pythons);
    assert_eq!(shown(&probed.faults), [""; 0]);
}

/// A skill that has only a list of requirements costs no start of Python.
#[test]
fn a_list_alone_needs_no_python() {
    let test = Test::new().file("skills/s/requirements.txt", "rich\n");
    let found = ask_of(&python("/nowhere"), &scripts(&test), &open(&test, &["s"])).unwrap();
    assert_eq!(rows(&found[0].declared), ["requirements.txt:1 rich"]);
}

#[test]
fn a_broken_declaration_is_told_with_its_line() {
    let block = |text: &str| format!("# /// script\n{text}\n# ///\n");
    for (name, content, expected) in [
        (
            "pyproject.toml",
            "[project]\nname = \n".into(),
            "pyproject.toml line 2: its TOML is broken: Invalid value",
        ),
        (
            "pyproject.toml",
            "[tool.poetry]\nname = 'x'\n[tool.poetry.dependencies]\npython = '^3'\nrich = '*'\n"
                .into(),
            "pyproject.toml line 3: `tool.poetry.dependencies` is not read, only `dependencies` of `[project]` are",
        ),
        (
            "pyproject.toml",
            "[project]\nname = 'x'\n[dependency-groups]\nall = ['rich']\n".into(),
            "pyproject.toml line 3: `dependency-groups` is not read",
        ),
        ("pyproject.toml", "project = 1".into(), "pyproject.toml: `project` is no table"),
        (
            "pyproject.toml",
            "[project]\ndependencies = 'a'".into(),
            "pyproject.toml line 2: `dependencies` is no list of strings",
        ),
        (
            "pyproject.toml",
            "[project]\nrequires-python = 3".into(),
            "pyproject.toml line 2: `requires-python` is no string",
        ),
        (
            "pyproject.toml",
            "[project]\nrequires-python = '>=4.1'".into(),
            "pyproject.toml line 2: it asks for Python >=4.1, and Python 3.",
        ),
        (
            "pyproject.toml",
            "[project]\nrequires-python = 'new'".into(),
            "pyproject.toml line 2: `new` names no versions of Python",
        ),
        ("pyproject.toml", "[".repeat(100_000), "pyproject.toml"),
        ("a.py", block("# dependencies = ["), "a.py line 2: its TOML is broken: "),
        (
            "a.py",
            block("dependencies = []"),
            "a.py line 1: the block `# /// script` has a line that is no comment",
        ),
        ("a.py", format!("\n{0}\n{0}", block("# x = 1")), "a.py line 6: a second block"),
    ] {
        let probed = ask(&Test::new().file(&format!("skills/s/{name}"), &content));
        let faults = shown(&probed.faults);
        let is_told = faults.len() == 1 && faults[0].starts_with(expected);
        assert!(is_told, "{expected}\n{faults:?}");
        assert_eq!(rows(&probed.declared), [""; 0]);
    }
}

/// What is declared is what is told, to the letter; what cannot be is left out,
/// and said to be.
#[test]
fn a_requirement_is_whole_or_left_out() {
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
        let probed = ask(&Test::new().file(&format!("skills/s/{name}"), content));
        let lines: Vec<_> = [4, 10].map(|line| line - offset).into();
        let declared = rows(&probed.declared);
        assert_eq!(
            declared,
            [format!("{name}:{} kept", lines[0]), format!("{name}:{} last\t>1", lines[1])]
        );
        let faults = probed.faults.iter().filter(|fault| fault.line != Some(2));
        let faults: Vec<String> = faults
            .map(|fault| format!("{}: {}", fault.line.unwrap() + offset, fault.message))
            .collect();
        assert_eq!(faults, expected, "{name}");
        assert!(probed.faults.iter().all(|fault| fault.rule == "unreadable-requirements"));
        assert_eq!(rows(&probed.requires_python), [""; 0]);
    }
    let test = Test::new().file("skills/s/requirements.txt", "a\n".repeat(1_001));
    let faults = shown(&ask(&test).faults);
    assert_eq!(faults, ["requirements.txt: it has more requirements than are looked at"]);
}

/// Nothing of a skill runs because somebody looks at it: neither its scripts
/// nor modules that bear the names of the standard library's.
#[test]
fn nothing_of_a_skill_is_executed() {
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
    // A user may have the skill itself on the path, or what a finder loads from.
    let path = format!("{}:.::{}", skill.display(), test.path("elsewhere").display());
    let scripts = with(scripts(&test), "PYTHONPATH", path);
    let scripts = with(scripts, "PYTHONSTARTUP", skill.join("a.py"));
    let scripts = with(scripts, "PYTHONINSPECT", "1");
    let found = ask_of(&python(interpreter()), &scripts, &open(&test, &["s"])).unwrap();
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

/// Modules are looked for where scripts find them.
#[test]
fn what_the_users_path_brings_is_there() {
    let test = Test::new()
        .file("skills/s/a.py", "import users_own, nobody_a")
        .file("own/users_own.py", "");
    let scripts = with(scripts(&test), "PYTHONPATH", test.path("own"));
    let found = ask_of(&python(interpreter()), &scripts, &open(&test, &["s"])).unwrap();
    assert_eq!(imports(&found[0]), ["users_own 1", "nobody_a 1!"]);
}

/// A venv has what is installed in it; whatever it prints at its start is
/// passed over.
#[test]
fn skills_are_asked_by_their_own_interpreters() {
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
    let found = group_by_interpreter(&skills, &scripts);
    let mut told = Vec::new();
    for group in &found.groups {
        let probed = probe(&group.interpreter, &group.skills, &scripts, &Cancellation::never());
        for skill in probed.unwrap() {
            told.push((skill.skill.clone(), imports(&skill).join(" ")));
        }
    }
    let expected =
        [("plain", "installed 1! nobody_a 1!"), ("other", ""), ("own", "installed 1 nobody_a 1!")];
    let expected = expected.map(|(name, imports)| (name.to_string(), imports.to_string()));
    assert_eq!(told, expected);
    let reasons: Vec<&str> = found.refused.iter().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(reasons.len(), 2);
    assert!(reasons[0].starts_with("the venv of the skill `broken` is broken: "), "{reasons:?}");
    assert_eq!(
        reasons[1],
        "the venv of the skill `half done` is not finished, a setup of it is under way or was \
         interrupted: `skills-runner skills setup 'half done'` waits for that one and finishes it"
    );
    let mut off = scripts;
    off.python = PythonChoice::Off;
    let refused = group_by_interpreter(&skills, &off).refused;
    let reason = "; `skills-runner skills setup plain` makes one";
    assert!(refused[0].1.ends_with(reason), "{refused:?}");
}

/// A Python whose parser dies over a file that says so.
fn mortal(test: Test, how: &str) -> (Test, Interpreter) {
    let program = format!(
        "#!/bin/sh\nexec {} -c 'import ast, os, sys, time\nreal = ast.parse\ndef parse(source):\n    if \"DIE\" in source:\n        {how}\n    return real(source)\nast.parse = parse\nexec(sys.argv[1])' \"$2\"\n",
        interpreter().display()
    );
    let test = test.executable("python", &program);
    let program = python(test.path("python"));
    (test, program)
}

#[test]
fn a_file_that_ends_the_interpreter_costs_its_skill_alone() {
    for (how, expected) in [
        ("os.kill(os.getpid(), 11)", "Python died of signal 11 over them"),
        (
            "print(\"last words\", file=sys.stderr, flush=True); os._exit(3)",
            "Python ended over them: last words",
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
        let (test, mortal) = mortal(test, how);
        let skills = open(&test, &["a", "b", "c", "d"]);
        let found = ask_of(&mortal, &scripts(&test), &skills).unwrap();
        for (number, probed) in found.iter().enumerate() {
            let (faults, imports) = (shown(&probed.faults), imports(probed));
            if number % 2 == 0 {
                assert_eq!((faults, imports.len()), (vec![], 1), "{probed:?}");
            } else {
                let fault = format!("its Python files cannot be looked at: {expected}");
                assert_eq!((faults, imports.len()), (vec![fault], 0), "{probed:?}");
            }
        }
    }
}

/// An interpreter that dies over and over is not started for ever, and what it
/// said of others stands.
#[test]
fn an_interpreter_that_dies_over_everything_is_given_up() {
    let names: Vec<String> = (0..30).map(|number| format!("s{number:02}")).collect();
    let mut test = Test::new()
        .file("skills/s29/requirements.txt", "rich")
        .file("skills/s20/requirements.txt", "lxml");
    for name in &names {
        let source = if name == "s00" { "import nobody_a" } else { "DIE" };
        test = test.file(&format!("skills/{name}/a.py"), source);
    }
    let (test, mortal) = mortal(test, "os._exit(3)");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = ask_of(&mortal, &scripts(&test), &open(&test, &names)).unwrap();
    assert_eq!(
        (imports(&found[0]), &found[0].faults[..]),
        (vec!["nobody_a 1!".to_string()], &[][..])
    );
    for (number, probed) in found.iter().enumerate().skip(1) {
        let expected = match number {
            ..=21 => "its Python files cannot be looked at: Python ended over them",
            _ => "ended over 21 skills, the last of them `s21`",
        };
        let [fault] = &probed.faults[..] else { panic!("{probed:?}") };
        assert!(fault.message.ends_with(expected), "{fault}");
        assert_eq!((fault.rule, fault.severity), ("unprobed", Severity::Warning));
    }
    // What is known without Python stays known.
    assert_eq!(rows(&found[20].declared), ["requirements.txt:1 lxml"]);
    assert_eq!(rows(&found[29].declared), ["requirements.txt:1 rich"]);
}

/// A number that no Python can turn into one ends no start.
#[test]
fn an_endless_version_costs_its_own_skill_alone() {
    let project = format!("[project]\nrequires-python = '>={}'\n", "9".repeat(5_000));
    let names: Vec<String> = (0..30).map(|number| format!("s{number:02}")).collect();
    let mut test = Test::new().file("skills/s29/a.py", "import nobody_a");
    for name in &names[..29] {
        test = test.file(&format!("skills/{name}/pyproject.toml"), &project);
    }
    let found = ask_all(&test, &names);
    assert_eq!(imports(&found[29]), ["nobody_a 1!"]);
    for probed in &found[..29] {
        let [fault] = &probed.faults[..] else { panic!("{probed:?}") };
        assert_eq!((fault.rule, fault.line), ("unreadable-requirements", Some(2)), "{fault}");
    }
}

/// What goes wrong over one file costs this file alone.
#[test]
fn a_file_that_cannot_be_looked_at_is_told() {
    let source = "import DIE";
    let test = Test::new()
        .file("skills/s/a.py", "import nobody_a")
        .file("skills/s/b.py", source)
        .file("skills/s/c.py", "import nobody_b");
    let how = "sys.modules[\"__main__\"].imports_of = lambda *_: {}[0]";
    let (test, odd) = mortal(test, how);
    let found = ask_of(&odd, &scripts(&test), &open(&test, &["s"])).unwrap().remove(0);
    assert_eq!(imports(&found), ["nobody_a 1!"]);
    let expected = "it cannot be looked at: KeyError: 0";
    assert_eq!(shown(&found.faults), [format!("b.py: {expected}"), format!("c.py: {expected}")]);
}

/// What would take minutes, or gigabytes, ends soon and costs nobody else.
#[test]
fn files_made_to_be_slow_are_left_early() {
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
        ("punycode/a.py", coded("punycode"), "its encoding `punycode` is none for scripts"),
        ("idna/a.py", format!("\n{}", coded("IDNA")), "its encoding `idna` is none for scripts"),
        ("dots/a.py", format!("import google.{}b", "a.".repeat(400_000)), "too large"),
    ];
    let mut test = Test::new().file("skills/zz/a.py", "import nobody_a");
    let mut names = Vec::new();
    for (path, content, _) in &cases {
        test = test.file(&format!("skills/{path}"), content);
        names.push(path.split('/').next().unwrap());
    }
    names.push("zz");
    let found = ask_of(&python(interpreter()), &scripts(&test), &open(&test, &names)).unwrap();
    for ((path, _, expected), probed) in cases.iter().zip(&found) {
        let told = [shown(&probed.faults), shown(&probed.syntax)].concat();
        let is_told = told.len() == 1 && told[0].contains(expected);
        assert!(is_told || expected.is_empty() && told.is_empty(), "{path}: {told:?}");
    }
    assert_eq!(imports(&found[2]), ["nobody_b 2?!"]);
    assert_eq!(imports(&found[8]), ["nobody_a 1!"]);
}

/// A skill has its share of the processor, in Python and in C; a check has its
/// share of the day.
#[test]
fn what_takes_too_long_is_called_unprobed() {
    for (clock, work, expected) in [
        (
            "ITIMER_PROF",
            "while True: pass",
            "a.py: it takes too long to look at, and what comes after it is not looked at",
        ),
        (
            "ITIMER_VIRTUAL",
            "sum(iter(int, 1))",
            "its Python files cannot be looked at: they take too long",
        ),
    ] {
        // Let the clock that runs go fifty times as fast.
        let how = format!(
            "left = signal.getitimer(signal.{clock})[0]\n        signal.setitimer(signal.{clock}, left / 50)\n        {work}"
        );
        let test =
            Test::new().file("skills/s/a.py", "DIE").file("skills/t/a.py", "import nobody_a");
        let (test, slow) = mortal(test, &how);
        let found = ask_of(&slow, &scripts(&test), &open(&test, &["s", "t"])).unwrap();
        assert_eq!(shown(&found[0].faults), [expected]);
        assert_eq!(imports(&found[1]), ["nobody_a 1!"]);
    }
    let test = Test::new()
        .file("skills/s/a.py", "import nobody_a")
        .file("skills/s/requirements.txt", "rich");
    let skills = open(&test, &["s"]);
    let skills: Vec<&Skill> = skills.iter().collect();
    let (python, scripts) = (python(interpreter()), scripts(&test));
    let found =
        probe_until(&python, &skills, &scripts, None, &Cancellation::never(), Instant::now());
    let found = found.unwrap().remove(0);
    assert_eq!(
        shown(&found.faults),
        ["its Python files were not looked at: the others took too long"]
    );
    assert_eq!(rows(&found.declared), ["requirements.txt:1 rich"]);
}

/// More than one answer holds is asked in pieces; one file alone that is too
/// large is named.
#[test]
fn what_is_too_much_at_once_is_asked_again() {
    let long = "x".repeat(450);
    let lines: Vec<String> = (0..1100).map(|number| format!("import m{number}_{long}")).collect();
    let source = lines.join("\n");
    let names: Vec<String> = (0..12).map(|number| format!("s{number:02}")).collect();
    let mut test = Test::new().file("skills/s03/large.py", "#".repeat(2 << 20));
    for name in &names {
        test = test.file(&format!("skills/{name}/a.py"), &source);
    }
    let found = ask_all(&test, &names);
    for probed in &found {
        assert_eq!(probed.imports.len(), 1000, "{}", probed.skill);
        let mut expected = vec!["it imports more than is looked at"];
        if probed.skill == "s03" {
            expected.insert(0, "large.py: it is too large to be looked at");
        }
        assert_eq!(shown(&probed.faults), expected, "{}", probed.skill);
    }
}

#[test]
fn what_is_no_python_says_so() {
    let test = Test::new()
        .file("skills/s/a.py", "import os")
        .executable("silent", "#!/bin/sh\n")
        .executable("talks", "#!/bin/sh\necho 'I am no Python' >&2; exit 1\n");
    let skills = open(&test, &["s"]);
    for (program, expected) in [
        ("silent", "silent is no working Python 3.6 or later: it says nothing"),
        ("talks", "talks is no working Python 3.6 or later: I am no Python"),
        ("nowhere", "nowhere cannot be started: "),
    ] {
        let mut program = python(test.path(program));
        let error = ask_of(&program, &scripts(&test), &skills).unwrap_err();
        assert!(error.contains(expected), "{error}");
        program.venv = Some(test.path("skills/s/venv"));
        let error = ask_of(&program, &scripts(&test), &skills).unwrap_err();
        assert!(error.starts_with("the venv of the skill `s` is broken: "), "{error}");
    }
}

#[test]
fn asking_ends_with_the_run() {
    let test = Test::new().file("skills/s/a.py", "import os");
    let patience = Cancellation { deadline: Some(Instant::now()), ..Cancellation::never() };
    let skills = open(&test, &["s"]);
    let skills: Vec<&Skill> = skills.iter().collect();
    assert!(probe(&python(interpreter()), &skills, &scripts(&test), &patience).is_err());
}
