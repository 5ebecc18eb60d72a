//! Rules about Python.

use super::{problems, scripts};
use crate::harness::{Test, interpreter};
use crate::paths::as_an_ordinary_user;
use skills::python::PythonChoice;
use skills::venv::INCOMPLETE;
use skills::{RULES, check};
use skills_runner::Cancellation;
use skills_runner::{Problem, Rule, Skills};
use std::collections::BTreeSet;

/// The problems as `file:line rule`.
fn shown(problems: &[Problem]) -> Vec<String> {
    let show = |problem: &Problem| {
        let line = problem.line.map_or("-".into(), |line| line.to_string());
        format!("{}:{line} {}", problem.file.display(), problem.rule.name())
    };
    problems.iter().map(show).collect()
}

fn real() -> PythonChoice {
    PythonChoice::Program(interpreter().to_path_buf())
}

#[test]
fn every_python_rule_is_reported() {
    let wide = "# /// script\n# requires-python = \">=9\"\n# ///\n";
    let test = Test::new()
        .file("skills/none/SKILL.md", "no Python")
        .file("skills/good/a.py", "import json, b\n")
        .file("skills/good/b.py", "")
        .file("skills/syntax/scripts/a.py", "x = 1\ndef f(:\n")
        .file("skills/missing/scripts/a.py", "import docxtpl\n")
        .file("skills/missing/scripts/b.py", "x = 1\nimport docxtpl\n")
        .file("skills/optional/a.py", "def f():\n    import docxtpl\n")
        .file("skills/unknown/a.py", "import nobody_a\n")
        .file("skills/declared/a.py", "import docxtpl\n")
        .file("skills/declared/requirements.txt", "DocxTpl>=0.16 ; python_version > '3'\n")
        .file("skills/perhaps/a.py", "import nobody_a\n")
        .file("skills/perhaps/requirements.txt", "-r more.txt\n")
        .file("skills/own/a.py", "import docxtpl, nobody_b, yaml\n")
        .file("skills/own/requirements.txt", "PyYAML\n")
        .venv("own")
        .venv_module("own", "docxtpl.py", "")
        .venv_module("own", "nobody_b.py", "")
        .venv_module("own", "yaml.py", "")
        .file("skills/plugin/requirements.txt", "docxtpl\n")
        .file("skills/stale/requirements.txt", "docxtpl\n")
        .venv("stale")
        .file("skills/stale/venv/.skills-runner.json", "{}")
        .file("skills/half/a.py", "")
        .venv("half")
        .file(&format!("skills/half/venv/{INCOMPLETE}"), "")
        .file("skills/broken/a.py", "")
        .link("skills/broken/venv", "/nowhere")
        .file("skills/version/a.py", wide)
        .file("skills/bad/pyproject.toml", "[project\n")
        .file("skills/hidden/sitecustomize.py", "")
        .file("skills/hidden/a.py", "import json, html, lib.json\n")
        .file("skills/hidden/scripts/json.py", "")
        .file("skills/hidden/html/__init__.py", "")
        .file("skills/hidden/lib/__init__.py", "")
        .file("skills/hidden/lib/json.py", "")
        .file("skills/hidden/templates/json.py", "")
        .file("skills/large/a.py", vec![b'#'; (1 << 20) + 1]);
    let table: [(&str, &[&str]); 17] = [
        ("none", &[]),
        ("good", &[]),
        ("syntax", &["scripts/a.py:2 python-syntax"]),
        ("missing", &["scripts/a.py:1 missing-import", "scripts/a.py:1 undeclared-import"]),
        ("optional", &["a.py:2 optional-import"]),
        ("unknown", &["a.py:1 missing-import", "a.py:1 undeclared-import"]),
        ("declared", &["a.py:1 missing-import"]),
        ("perhaps", &["a.py:1 missing-import"]),
        ("own", &["a.py:1 undeclared-import"]),
        ("plugin", &[":- missing-venv"]),
        ("stale", &["venv:- stale-venv"]),
        ("half", &["venv:- broken-venv"]),
        ("broken", &["venv:- broken-venv"]),
        ("version", &["a.py:2 python-version"]),
        ("bad", &["pyproject.toml:1 unreadable-requirements"]),
        (
            "hidden",
            &[
                "html/__init__.py:- hidden-module",
                "scripts/json.py:- hidden-module",
                "sitecustomize.py:- hidden-module",
            ],
        ),
        ("large", &["a.py:- unprobed"]),
    ];
    let names = table.map(|(name, _)| name);
    let found = problems(&test, real(), &names);
    let mut seen = BTreeSet::new();
    for ((name, expected), problems) in table.iter().zip(&found) {
        assert_eq!(shown(problems), *expected, "{name}");
        seen.extend(problems.iter().map(|problem| problem.rule.name()));
    }
    let none = problems(&test, PythonChoice::Program("/nowhere".into()), &["good", "none"]);
    assert_eq!(shown(&none[0]), [":- no-python"]);
    assert_eq!(shown(&none[1]), [""; 0]);
    let no_python = problems(&test, PythonChoice::Program("/bin/true".into()), &["good"]);
    assert_eq!(shown(&no_python[0]), [":- no-python"]);
    let rows = RULES.iter().skip_while(|row| row.rule != Rule::NoPython).skip(1);
    // That is about everything but Python.
    let mut rows = rows.filter(|row| row.rule != Rule::MissingNeed);
    assert!(rows.all(|row| seen.contains(row.name)), "{seen:?}");
}

/// The linter does not examine files in a folder without a document.
#[test]
fn folders_without_documents_are_not_examined() {
    let test = Test::new()
        .file("usr/bin/a.py", "x = (\n")
        .file("usr/bin/x.zip", b"PK\x03\x04")
        .link("usr/bin/out", "/etc")
        .file("usr/lib/b.py", "import nobody_a\n");
    let run = test.args(["skills", "check", "--skills", "usr"]).run().status(1);
    run.stdout_is_empty().stderr_has("failed to check: there are no skills in ");
}

/// A folder that cannot be read is not reported as empty.
#[test]
fn inaccessible_folder_is_reported_as_such() {
    let test = Test::new()
        .file("skills/closed/x", "")
        .mode("skills/closed", 0o311)
        .skill("blind", "---\nname: blind\ndescription: d\n---\nDo.\n")
        .mode("skills/blind", 0o311);
    let shell = as_an_ordinary_user(&test);
    let run = test.next_run().shell(shell).args(["skills", "check"]).run();
    let expected = "error[unreadable-file]: it cannot be opened: permission denied";
    let run = run.status(1).stdout_lacks("no SKILL.md");
    let reported: Vec<&str> = run.stdout.lines().collect();
    let is_fix = |line: &&str| line.starts_with("  fix: make it readable");
    let (fixes, reported): (Vec<&str>, Vec<&str>) = reported.into_iter().partition(is_fix);
    assert_eq!((reported.len(), fixes.len()), (2, 2), "{reported:?}");
    for (line, skill) in reported.iter().zip(["blind", "closed"]) {
        assert!(line.starts_with(&format!("skills/{skill}: {expected}")), "{line}");
    }
}

/// The message and the remedy.
fn with_fix(problem: &Problem) -> String {
    format!("{} | {}", problem.message, problem.fix.as_deref().unwrap_or_default())
}

/// What a skill lacks on this machine is one problem with one command. It names packages only if
/// they are known.
#[test]
fn missing_imports_are_one_problem() {
    let guarded = "try:\n    import docxtpl, nobody_a\nexcept ImportError:\n    pass\n";
    let test = Test::new()
        .file("skills/my skill/a.py", "import docxtpl\nimport nobody_a\n")
        .file("skills/my skill/b.py", "import docxtpl, ebooklib\n")
        .file("skills/extra/a.py", guarded)
        .file("skills/extra/examples/b.py", "import lxml_of_nobody\n")
        .file("skills/done/a.py", "import nobody_a\n")
        .file("skills/done/requirements.txt", "-r more.txt\n")
        .venv("done")
        .file("skills/done/venv/.skills-runner.json", "{\"declared\": [\"-r more.txt\"]}")
        .file("skills/told/a.py", "import docxtpl\n")
        .file("skills/told/requirements.txt", "docxtpl\n");
    let found = problems(&test, real(), &["my skill", "told", "extra", "done"]);
    let missing = |problems: &[Problem]| {
        let rules = [Rule::MissingImport, Rule::OptionalImport];
        let missing = problems.iter().filter(|problem| rules.contains(&problem.rule));
        missing.map(with_fix).collect::<Vec<_>>()
    };
    let setup = "`skills-runner skills setup";
    assert_eq!(
        missing(&found[0]),
        [format!(
            "missing on this machine: `docxtpl`, `ebooklib`, `nobody_a` | {setup} 'my skill' \
             EbookLib docxtpl PACKAGE`, where PACKAGE provides `nobody_a`"
        )]
    );
    let told = format!("missing on this machine: `docxtpl` | {setup} told`");
    assert_eq!(missing(&found[1]), [told]);
    // A setup installs only the packages needed, unless asked for more; samples need nothing.
    let optional = format!(
        "missing on this machine, and needed only for some uses of the scripts: `docxtpl`, \
         `nobody_a` | {setup} extra docxtpl`, if you need them"
    );
    assert_eq!(missing(&found[2]), [optional]);
    // A setup would have nothing to do.
    let done = format!(
        "missing on this machine: `nobody_a` | {setup} done PACKAGE`, where PACKAGE provides \
         `nobody_a`"
    );
    assert_eq!(missing(&found[3]), [done]);
}

/// A package that no file of the skill names is a fault of the skill, installed here or not.
#[test]
fn unnamed_packages_are_reported() {
    let guess = "users have to guess what to install";
    let test = Test::new()
        .file("skills/own/a.py", "import yaml, docxtpl, ebooklib, numpy\n")
        .venv("own")
        .venv_module("own", "docxtpl.py", "")
        .venv_module("own", "yaml.py", "")
        .file("skills/prose/a.py", "import docxtpl, ebooklib, nobody_a, firecrawl\n")
        .file("skills/prose/b.py", "# pip install nobody-a\n")
        .file("skills/prose/README.md", "It writes with `DocxTpl`.\n```\nimport ebooklib\n```\n")
        .file("skills/prose/notes/a.txt", "pip install firecrawl\n")
        .file("skills/poetry/a.py", "import docxtpl, numpy\n")
        .file("skills/poetry/pyproject.toml", "[tool.poetry.dependencies]\ndocxtpl = '*'\n")
        .file("skills/renamed/a.py", "import nobody_a\n")
        .file("skills/renamed/requirements.txt", "another-name\n")
        .file("skills/samples/tests/a.py", "import docxtpl\n");
    let found = problems(&test, real(), &["own", "prose", "poetry", "renamed", "samples"]);
    let unnamed = |problems: &[Problem]| {
        let unnamed = problems.iter().filter(|it| it.rule == Rule::UndeclaredImport);
        unnamed.map(with_fix).collect::<Vec<_>>()
    };
    assert_eq!(
        unnamed(&found[0]),
        [format!(
            "no file of the skill names the packages of `docxtpl`, `ebooklib`, `numpy`, `yaml`: \
             {guess} | name `EbookLib`, `PyYAML`, `docxtpl`, `numpy` in requirements.txt or in the \
             document"
        )]
    );
    // A package that others bring along, such as NumPy, may be left out beside them.
    for problems in &found[1..] {
        assert_eq!(unnamed(problems), [""; 0]);
    }
}

/// Python files that only a later version may read, and syntax that it requires, are one problem.
#[test]
fn old_python_is_one_problem() {
    let header = "# /// script\n# requires-python = \">=9\"\n# ///\n";
    let test = Test::new()
        .file("skills/new/a.py", format!("{header}def f(:\n"))
        .file("skills/new/b.py", header)
        .file("skills/project/pyproject.toml", "[project]\nrequires-python = '>=9'\n")
        .file("skills/project/a.py", "def f(:\n")
        .file("skills/other/a.py", header)
        .file("skills/other/b.py", "def f(:\n");
    let found = problems(&test, real(), &["new", "project", "other"]);
    assert_eq!(shown(&found[0]), ["a.py:2 python-version"]);
    assert_eq!(shown(&found[1]), ["pyproject.toml:2 python-version"]);
    assert_eq!(shown(&found[2]), ["a.py:2 python-version", "b.py:1 python-syntax"]);
}

/// For a venv without the packages that the skill needs, the linter names a command, whether or
/// not the skill has Python files.
#[test]
fn insufficient_venv_names_its_remedy() {
    let document = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nDo it.\n");
    let record = "{\"made\": true, \"declared\": [\"docxtpl==1\", \"lxml\"]}";
    let mut test = Test::new();
    for name in ["dead", "gone", "less", "more", "same", "silent", "unknown"] {
        test = test.skill(name, &document(name));
    }
    for name in ["less", "more", "same"] {
        test = test.venv(name).file(&format!("skills/{name}/venv/.skills-runner.json"), record);
        test = test.venv_module(name, "docxtpl.py", "").venv_module(name, "lxml.py", "");
    }
    let test = test
        .file("skills/unknown/a.py", "import foo_internal_zz\n")
        .file("skills/less/requirements.txt", "docxtpl==1\n")
        .file("skills/more/requirements.txt", "docxtpl==1\nlxml\n")
        .file(
            "skills/more/pyproject.toml",
            "[project]\nname = \"x\"\nversion = \"1\"\ndependencies = [\"jinja2\"]\n",
        )
        .file("skills/same/requirements.txt", "lxml  # tables\ndocxtpl==1\n")
        .folder("skills/gone/venv")
        .executable("skills/dead/venv/bin/python", "#!/bin/sh\nexit 3\n")
        .executable("skills/silent/venv/bin/python", "#!/nowhere/python\n");
    let run = test.args(["skills", "check", "--json"]).run().status(1);
    let report = run.stdout_json();
    let problems = report["problems"].as_array().unwrap();
    let reported: Vec<String> = problems
        .iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or_default();
            format!("{} {}: {}", text("skill"), text("rule"), text("fix"))
        })
        .collect();
    let command = "skills-runner skills setup";
    let broken = |name: &str| {
        let begin = format!("{name} broken-venv: `rm -r ");
        let end = format!(
            "/skills/{name}/venv` (no setup created it) and then `{command} {name}` creates it again"
        );
        (begin, end)
    };
    let stale = |name: &str| {
        let end = format!("`{command} {name}`");
        (format!("{name} stale-venv: "), end)
    };
    let unknown = |rule: &str| {
        let begin = format!("unknown {rule}: `{command} unknown PACKAGE`, where PACKAGE provides");
        (begin, String::new())
    };
    let guess = "unknown undeclared-import: name the package in requirements.txt".to_owned();
    let expected = [
        broken("dead"),
        broken("gone"),
        stale("more"),
        broken("silent"),
        unknown("missing-import"),
        (guess, String::new()),
    ];
    assert_eq!(reported.len(), expected.len(), "{reported:#?}");
    for (reported, (begin, end)) in reported.iter().zip(&expected) {
        assert!(reported.starts_with(begin) && reported.ends_with(end), "{reported}");
    }
}

/// A remedy refers to a skill found by its path by that path.
#[test]
fn skill_found_by_path_is_named_by_path() {
    let test =
        Test::new().skill("my skill", "# Mine\n").file("skills/my skill/a.py", "import nobody_a\n");
    let skills = Skills::new(vec![test.path("skills")]).addressed_by_path();
    let skill = skills.open("my skill").expect("it is there");
    let path = test.path("skills/my skill").display().to_string();
    assert_eq!((skill.name.as_str(), &skill.address), ("my skill", &path));
    let found =
        check::check_python(&[&skill], &scripts(&test, real()), &[], &Cancellation::never());
    let found = found.expect("it is looked at").remove(0);
    let fix = format!("`skills-runner skills setup '{path}'");
    let missing = found.iter().find(|problem| problem.rule == Rule::MissingImport);
    assert!(missing.unwrap().fix.as_ref().unwrap().starts_with(&fix));
}

/// The linter ignores the temporary files of a running setup.
#[test]
fn running_setup_is_ignored() {
    let work = "skills/s/.skills-runner-setup";
    let test = Test::new()
        .file("skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nText.\n")
        .file(&format!("{work}/before/bad.py"), "def f(:\n")
        .file(&format!("{work}/before/lib/x.so"), "\x7fELF")
        .file(&format!("{work}/SKILL.md"), "x")
        .link(&format!("{work}/before/lib64"), "/nowhere");
    let check = test.next_run().args(["skills", "check", "s"]).run().success();
    check.stderr_has("0 errors, 0 warnings").stdout_lacks(":");
    let argument = "{\"skill_name\":\"s\",\"file_path\":\".\"}";
    let list = ["tool", "read_file_in_skill", argument];
    let listing = test.next_run().args(list).run().success();
    listing.stdout_has("SKILL.md").stdout_lacks("setup");
}
