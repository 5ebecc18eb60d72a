//! Imports and declared requirements.

use super::{imports, open, probe_with, python, rows, scripts, shown};
use crate::harness::{Test, interpreter};
use skills::probe::ProbeResult;
use skills_runner::{Rule, Severity};
use std::path::Path;

/// The probe result of the skill `s`.
fn probe_skill(test: &Test) -> ProbeResult {
    let found = probe_with(&python(interpreter()), &scripts(test), &open(test, &["s"]));
    found.expect("Python is installed").remove(0)
}

/// The probe result of a skill with this script.
fn probe_script(source: impl AsRef<[u8]>) -> ProbeResult {
    probe_skill(&Test::new().file("skills/s/scripts/a.py", source))
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
    // Another version of Python may accept it.
    for source in [&b"x = 1\ny = t'{x}'\n"[..], b"import annotationlib\n"] {
        let later = probe_script(source);
        assert!(later.problems.iter().all(|it| it.rule == Rule::PythonVersion), "{later:?}");
        assert_eq!(later.imports, []);
    }
    // A template has placeholders.
    let template = Test::new().file("skills/s/templates/a.py", "import {{ module }}");
    assert_eq!(probe_skill(&template).problems, []);
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
