//! What skills need, and what of it this machine lacks: in `show`, `list --json`, `check --here` and
//! for the model.

use serde_json::{Value, json};

use crate::harness::Test;

const DOCUMENT: &str = "---
name: report
description: Fills forms.
allowed-tools: Bash(git:*), Read, WebSearch, mcp__github__search(a, b)
---
# Report

Install `reportlab` first; the Linear app tools are there.

```bash
pip install \"pypdf>=4\" -r requirements.txt
cat data.txt | no-such-program --fast   # not `other-program`
qpdf-none a.pdf \\
  b.pdf
npm install -g @scope/made-up docx
curl -s \"https://API.example.com:443/v1?x\" http://localhost:1 https://127.0.0.1/ \"$URL://x.$Y/\"
cat <<EOF
hidden-program inside
EOF
```

```python
import openpyxl, my_module
from azure.servicebus import Client
```

```js
const y = require('pptxgenjs/dist')
```

Ask with `AskUserQuestion` and `mcp__in_prose__x`; run `pandoc a.md` at https://in-prose.example.com.
";

fn test() -> Test {
    Test::new()
        .skill("report", DOCUMENT)
        .file("skills/report/scripts/fill.py", "import os\nimport helper\nimport requests\nimport subprocess\nsubprocess.run([\"no-such-tool\", \"x\"])\n")
        .file("skills/report/scripts/helper.py", "import sys\n")
        .file("skills/report/scripts/run.mjs", "import chalk from 'chalk';\nimport './local.mjs';\nimport fs from 'node:fs';\n")
        .file("skills/report/scripts/run.sh", "in-script x\n")
        .file("skills/report/package.json", r#"{"devDependencies":{"vite":"7"}}"#)
        .file("skills/report/agents/openai.yaml", "dependencies:\n  tools:\n    - {type: mcp, value: linear}\n    - {type: cli, value: ffmpeg-none}\n")
        .file("skills/report/requirements.txt", "lxml==5\n")
        .skill("plain", "---\nname: plain\ndescription: Knows.\n---\nOnly words.\n")
}

fn shown(test: &Test, name: &str) -> Value {
    test.next_run().args(["skills", "show", name, "--json"]).run().stdout_json()
}

#[test]
fn needs_are_declared_imported_or_first_words_of_commands() {
    let test = test();
    let report = shown(&test, "report");
    assert_eq!(
        report["needs"],
        json!({
            "python": ["lxml", "pypdf", "requests"],
            "npm": ["@scope/made-up", "chalk", "docx", "vite"],
            "programs": ["curl", "ffmpeg-none", "no-such-program", "npm", "qpdf-none"],
            "mcp": ["github", "linear"],
            "hosts": ["api.example.com"],
        })
    );
    let nothing = json!({"python": [], "npm": [], "programs": [], "mcp": [], "hosts": []});
    assert_eq!(shown(&test, "plain")["needs"], nothing);
    let missing = &report["missing"];
    let has = |kind: &str, name: &str| missing[kind].as_array().unwrap().contains(&json!(name));
    assert!(has("programs", "qpdf-none") && has("npm", "chalk") && has("mcp", "github"));
    assert_eq!(missing.as_object().unwrap().len(), 4, "{missing}");
    let list = test.next_run().args(["skills", "list", "--json"]).run().stdout_json();
    let rows = list.as_array().or(list["skills"].as_array()).unwrap();
    assert_eq!(rows[1]["needs"], report["needs"]);
    let text = test.next_run().args(["skills", "show", "report"]).run();
    text.stdout_has("needs:")
        .stdout_has("npm packages @scope/made-up, chalk, docx, vite")
        .stdout_has("hosts api.example.com\n");
}

/// A package is there if its metadata or its module is, in the skill's venv or for its Python.
#[test]
fn what_is_there_is_not_missing() {
    let mut test = test();
    let site = "skills/report/venv/lib/python3.11/site-packages";
    for name in ["pypdf-4.0.dist-info/METADATA", "lxml-5.egg-info/PKG-INFO"] {
        test = test.file(&format!("{site}/{name}"), "");
    }
    let test = test
        .executable("skills/report/venv/bin/python", "#!/bin/sh\nexit 0\n")
        .file("skills/report/venv/bin/no-such-program", "#!/bin/sh\n")
        .file("skills/report/node_modules/docx/package.json", "{}");
    let missing = &shown(&test, "report")["missing"];
    assert_eq!(missing["python"], json!(["requests"]));
    assert_eq!(missing["npm"], json!(["@scope/made-up", "chalk", "vite"]));
    assert!(!missing["programs"].as_array().unwrap().contains(&json!("no-such-program")));
}

/// A `python3` of pyenv starts another one, by files and a variable.
#[test]
fn packages_of_a_python_of_pyenv_are_found() {
    let test = Test::new()
        .skill("s", "---\nname: s\ndescription: Reads.\n---\nRead it.\n")
        .file("skills/s/scripts/a.py", "import pypdf, openpyxl\n")
        .executable("pyenv/shims/python3", "#!/bin/sh\nexit 1\n")
        .file("pyenv/version", "3.12.1\n")
        .file("pyenv/versions/3.13.0/lib/python3.13/site-packages/openpyxl/__init__.py", "");
    let program = test.path("pyenv/shims/python3").display().to_string();
    let mut test = test.env("SCRIPT_PYTHON", program);
    for (version, package) in [("3.12.1", "pypdf"), ("3.13.0", "openpyxl")] {
        let folder = format!("pyenv/versions/{version}");
        test = test
            .executable(&format!("{folder}/bin/python3"), "#!/bin/sh\nexit 1\n")
            .file(&format!("{folder}/lib/python3.12/site-packages/{package}/__init__.py"), "");
    }
    let missing = |test: &Test| shown(test, "s")["missing"]["python"].clone();
    assert_eq!(missing(&test), json!(["openpyxl"]));
    let local = test.clone().file(".python-version", "3.13.0\n");
    assert_eq!(missing(&local), json!(["pypdf"]));
    assert_eq!(missing(&local.env("PYENV_VERSION", "3.12.1")), json!(["openpyxl"]));
    let newest = test.clone().file(".python-version", "# by a tool\n3.13 2.7\n");
    assert_eq!(missing(&newest), json!(["pypdf"]));
    let path = test.path("pyenv/versions/3.13.0").display().to_string();
    for unknown in ["none", "../versions/3.13.0", ".", &path] {
        let unknown = test.clone().env("PYENV_VERSION", unknown);
        assert_eq!(missing(&unknown), json!([]), "it is not known");
    }
}

/// Packages that only a document names.
#[test]
fn missing_python_packages_are_errors_with_here() {
    let test = Test::new()
        .env("SCRIPT_PYTHON", crate::harness::interpreter())
        .skill("s", "---\nname: s\ndescription: Reads.\n---\n```sh\npip install nobody-zz\n```\n");
    let run = test.next_run().args(["skills", "check"]).run().success();
    run.stdout_has("note[missing-need]: it names what is not here: Python packages nobody-zz");
    let run = test.next_run().args(["skills", "check", "--here"]).run().status(1);
    run.stdout_has("error[missing-need]");
    // Another problem about Python hides it not.
    let guarded = "try:\n    import pandas_zz\nexcept ImportError:\n    pandas_zz = None\n";
    let test = test.file("skills/s/scripts/a.py", guarded);
    let run = test.next_run().args(["skills", "check", "--here"]).run().status(1);
    run.stdout_has("error[missing-need]: it names what is not here: Python packages nobody-zz\n");
}

#[test]
fn the_model_reads_what_is_missing() {
    let test = test();
    let call = |name: &str| {
        let run =
            test.next_run().args(["tool", "get_skill", &json!({"skill_name": name}).to_string()]);
        run.run().success().stdout
    };
    let text = call("report");
    let named = text.lines().find(|line| line.starts_with("Also named, perhaps not needed: "));
    let named = named.unwrap();
    assert!(named.len() <= 400, "{named}");
    for name in ["qpdf-none", "github", "npm packages @scope/made-up, chalk"] {
        assert!(named.contains(name), "{named}");
    }
    assert!(!call("plain").contains("perhaps not needed"));
    let here = test.next_run().args(["skills", "check", "--here", "report"]).run().status(1);
    here.stdout_has("error[missing-need]").stdout_has("qpdf-none");
    let notes = test.next_run().args(["skills", "check", "report"]).run();
    notes.stdout_has("note[missing-need]");
}

/// Only what a script imports without a condition, or the skill declares, has a setup command, and
/// only until there is a venv.
#[test]
fn a_setup_is_advised_for_code_that_needs_it() {
    let script = "import os\ntry:\n    import openpyxl\nexcept ImportError:\n    import xlwt\n\
        import pypdf, helper\nfrom PIL import Image\ndef f():\n    import lxml\n\
        TEXT = \"\"\"\nimport pandas\n\"\"\"\nimport nobody_knows\n";
    let test = Test::new()
        .env("SCRIPT_PYTHON", "/bin/true")
        .skill("s", "---\nname: s\ndescription: d\n---\n```python\nimport pandas\n```\n")
        .file("skills/s/scripts/helper.py", "")
        .file("skills/s/scripts/a.py", script);
    let get = || test.next_run().args(["tool", "get_skill", r#"{"skill_name":"s"}"#]).run();
    get().stdout_has("\nNot installed here: pillow, pypdf. Code of this skill needs them; the user must first run: skills-runner skills setup s pillow pypdf\n")
        .stdout_has("\nAlso named, perhaps not needed: Python packages lxml, nobody-knows, openpyxl, xlwt\n");
    let test = test
        .executable("skills/s/venv/bin/python", "#!/bin/sh\nexit 0\n")
        .file("skills/s/venv/lib/python3.11/site-packages/xlwt/__init__.py", "");
    let get = || test.next_run().args(["tool", "get_skill", r#"{"skill_name":"s"}"#]).run();
    get()
        .stdout_has("\nNot installed here: pillow, pypdf. Code of this skill needs them\n")
        .stdout_lacks("skills setup");
}

/// Programs are the first words of commands in blocks of shell code, and nothing else.
#[test]
fn programs_are_first_words_of_commands() {
    let document = "---
name: s
description: d
---
Run `pandoc a.md` and `in-prose x`.

```bash
# in-comment x
zz-first a | zz-piped -x && zz-and b; zz-semicolon c   # in-comment y
zz-bare | zz-bare-too && X=1 zz-bare-last
zz-alone
if zz-if a; then zz-then b; fi
for x in in-list; do zz-do $x; done
X=1 Y=\"in text\" zz-assigned a
Z=${1:-\"in default\"}
$ zz-prompted a
in-output of it
```

```sh
zz-continued a \\
  in-continuation b
cat <<'END-1'
in-heredoc x
END-1
echo $((1 << 2))
zz-after x
helper() {
  zz-inner x
}
function other { true; }
helper a; other b
case $1 in
  start) zz-case a;;
esac
mapfile -t lines; ./local x; $TOOL x; <tool> x
sudo apt install in-apt; brew install in-brew; choco install in-choco; winget install in-winget
```

```
pandoc a.md
in-plain x
```

```yaml
in-yaml x
```
";
    let test = Test::new().skill("s", document);
    let programs = shown(&test, "s")["needs"]["programs"].clone();
    let expected = [
        "after",
        "alone",
        "and",
        "assigned",
        "bare",
        "bare-last",
        "bare-too",
        "case",
        "continued",
        "do",
        "first",
        "if",
        "inner",
        "piped",
        "prompted",
        "semicolon",
        "then",
    ];
    assert_eq!(programs, json!(expected.map(|name| format!("zz-{name}"))));
}

/// A setup says what install lines name and what it did not install: nothing is installed because a
/// text names it.
#[test]
fn a_setup_names_what_it_left_out() {
    let document = "---\nname: s\ndescription: d\n---\n
```sh
pip install reqeusts nobody-published-this
made-up-tool --help
```
";
    let test = Test::new().skill("s", document).executable("bin/apt-get", "#!/bin/sh\n");
    let python = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{python}", test.path("bin").display());
    let setup = |more: &[&str]| {
        let run = test.next_run().env("PATH", &path).args(["skills", "setup", "s"]).args(more);
        run.run().status(1)
    };
    let run = setup(&[]);
    run.stderr_has("not installed: `nobody-published-this` (SKILL.md line 7), `reqeusts` (SKILL.md line 7), is `requests` meant?")
        .stderr_has("to install nobody-published-this: skills-runner skills setup s --yes\n")
        .stderr_has("`made-up-tool`")
        .stderr_lacks("Collecting");
    let report = setup(&["--json"]).stdout_json();
    assert_eq!(report["left_out"], json!(["nobody-published-this", "reqeusts"]));
    assert!(report["programs"].as_array().unwrap().contains(&json!("made-up-tool")));
}

/// Long lines, many quotes and unclosed texts cost no more than a moment.
#[test]
fn needs_of_large_files_are_read_in_time() {
    let mut test = Test::new();
    let texts =
        ["`a b` ", "\"", "$(", "x=1 ", "from ", "require('", "a | ", "mcp__", "\\\n", "```sh\n"];
    for (number, text) in texts.iter().enumerate() {
        let body = text.repeat(200_000 / text.len());
        let document =
            format!("---\nname: s{number}\ndescription: d\n---\n{body}\n```sh\n{body}\n");
        test = test.skill(&format!("s{number}"), &document);
        test = test.file(&format!("skills/s{number}/a.js"), &body);
        test = test.file(&format!("skills/s{number}/a.py"), &body);
        test = test.file(&format!("skills/s{number}/a.sh"), &body);
    }
    let start = std::time::Instant::now();
    let run = test.args(["--no-scripts", "skills", "list", "--json"]).run();
    assert_eq!(run.stdout_json()["skills"].as_array().unwrap().len(), texts.len());
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

/// One skill of a set is added alone: `add` and `read_file_in_skill` name the skills that it needs
/// and that are not there.
#[test]
fn skills_of_a_set_that_are_missing_are_named() {
    let plan = "---\nname: plan\ndescription: Plans.\ndepends:\n  - rules\n  - far\n---\n\
        Read `../base/SKILL.md`, [t](../tone/t.md). Run `/ask hard`, then the `model` skill and the\n\
        skill `draw`. Not: `/etc`, `words`, `a/../quiet/x`, ../plan/x.\n```\nthe `silent` skill\n```\n";
    let mut test = Test::new().file("set/skills/plan/SKILL.md", plan);
    for name in ["rules", "base", "tone", "ask", "model", "draw", "words", "quiet", "silent"] {
        let document = format!("---\nname: {name}\ndescription: Does it.\n---\nDo it.\n");
        test = test.file(&format!("set/skills/{name}/SKILL.md"), document);
    }
    let run = |words: &[&str]| test.clone().args(words).run();
    let add = ["skills", "add", "./set", "--skill", "plan", "--to", "skills"];
    let left = "plan needs skills that are left behind: ask, base, draw, far, model, rules, tone\n";
    run(&[&add[..], &["--dry-run"]].concat()).success().stderr_has(left);
    run(&[&add[..], &["--yes"]].concat()).success().stderr_has(left).stderr_lacks("not beside");
    let read = |path: &str| {
        let call = serde_json::json!({"skill_name": "plan", "file_path": path}).to_string();
        run(&["tool", "read_file_in_skill", &call]).status(1)
    };
    read("../base/SKILL.md").stdout_has("is a file of another skill, and there is no skill `base`");
    read("../../x/SKILL.md").stdout_has("must not contain `..`");
    let check = run(&["skills", "check", "plan", "--here"]).success();
    check.stdout_has("SKILL.md:8: note[other-skill]: `../base/SKILL.md` belongs to another skill");
    // What is there, beside it or in another folder, is not missing.
    let far = "---\nname: far\ndescription: Does it.\n---\nDo it.\n";
    let _ = test.clone().file(".claude/skills/far/SKILL.md", far);
    let others = ["--skill", "base", "--skill", "rules", "--skill", "tone", "--yes"];
    let more = ["skills", "add", "./set", "--to", "skills"];
    run(&[&more[..], &others].concat()).success().stderr_lacks("left behind");
    read("../base/x.md").stdout_lacks("of another skill");
}
