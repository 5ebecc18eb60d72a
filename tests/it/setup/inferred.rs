//! What install lines of documents and guarded imports need, and whether what was installed can be imported.

use super::{QUICK, VENV, command, created_venvs, quick, script, setup};
use crate::harness::interpreter;
use serde_json::json;
use std::fs;

/// With `--yes` the packages of install lines are installed, with their versions. No file of the skill changes.
#[test]
fn packages_of_documents_are_installed_if_the_user_agrees() {
    let document = "---\nname: s\ndescription: d\n---\n```python\nimport gamma\n```\n\n```sh\npip install 'alpha<2' --user\npip3 install openpyxl\n```\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let run = setup(&test, &[]).status(1).stderr_lacks("installing");
    run.stderr_has("`alpha` (SKILL.md line 10), `openpyxl` (SKILL.md line 11)");
    assert!(!test.exists(VENV));
    let run = setup(&test, &["--yes"]).success();
    run.stderr_has("  alpha<2 (SKILL.md line 10: pip install 'alpha<2' --user)\n")
        .stderr_has("installing alpha<2, openpyxl\n")
        .stdout_has("created skills/s/venv with alpha<2, openpyxl");
    assert_eq!(script(&test, "import alpha, openpyxl; print(alpha.VERSION)"), "1.0\n");
    assert!(!test.exists("skills/s/requirements.txt"));
    setup(&test, &["--yes"]).success().stdout_has("is up to date with alpha<2, openpyxl");
    // One more package does not install all of them again.
    setup(&test, &["beta"]).success().stdout_has("completed");
    assert_eq!(created_venvs(&test), 1);
    script(&test, "import alpha, beta, gamma, openpyxl");
}

/// Addresses, paths, other indexes, values of options, names that are nearly well known, and names
/// that nobody published are not installed, and prevent no other package.
#[test]
fn doubtful_names_of_documents_are_left_out() {
    let lines = [
        "beta@https://127.0.0.1:9/x.whl 'beta @ file:///x' ./wheels/gamma-1.0-py3-none-any.whl",
        "-i https://127.0.0.1:9/simple gamma",
        "--pypi-url=https://127.0.0.1:9 --timeout 60 gamma",
        "gamma.txz",
        "opnpyxl opepnyxl o-p-e-n-p-y-x-l",
        "nobody-published-it",
        "--upgrade pip setuptools wheel",
        "'alpha == 1.0' --user",
    ];
    let lines = lines.map(|line| format!("pip install {line}\n")).concat();
    let document = format!(
        "---\nname: s\ndescription: d\n---\n<!--\n```sh\npip install hidden\n```\n-->\n```sh\n{lines}\
         PIP_INDEX_URL=https://127.0.0.1:9 pip install elsewhere\n```\n\n```\npip install failed with errors\n```\n"
    );
    let test = quick().file("skills/s/SKILL.md", document);
    let run = setup(&test, &["--yes", "--json"]).status(1);
    let run = run.stderr_has("trying the packages one by one");
    let reported = run.stdout_json();
    assert_eq!(reported["undeclared"], json!(["alpha==1.0"]));
    let left_out = [
        "beta",
        "elsewhere",
        "gamma",
        "nobody-published-it",
        "o-p-e-n-p-y-x-l",
        "opepnyxl",
        "opnpyxl",
    ];
    assert_eq!(reported["left_out"], json!(left_out));
    run.stderr_has("No matching distribution found for nobody-published-it")
        .stderr_has("is `openpyxl` meant?")
        .stderr_lacks("installing beta");
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
}

/// The packages that the user agreed to are installed again when the venv is created again.
#[test]
fn agreed_packages_survive_a_new_venv() {
    let document = "---\nname: s\ndescription: d\n---\n```sh\npip install alpha\n```\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let test = test.file("skills/s/requirements.txt", "beta\ngamma\n");
    setup(&test, &["--yes"]).success();
    let test = test.file("skills/s/requirements.txt", "gamma\n");
    setup(&test, &[]).success().stderr_has("recreating").stdout_has("with gamma, alpha");
    script(&test, "import alpha, gamma");
}

/// Modules that lie in the skill, and settings of pip and uv there, have no effect.
#[test]
fn files_of_the_skill_do_not_run() {
    let mut test = quick().file(
        "skills/s/SKILL.md",
        "---\nname: s\ndescription: d\n---\n```sh\npip install alpha\n```\n",
    );
    for name in ["linecache", "traceback", "site", "json", "pip", "alpha", "sitecustomize"] {
        let path = format!("skills/s/{name}.py");
        test = test.file(&path, "open('/proc/self/cwd/ran', 'w')\n");
    }
    // Which modules Python imports at its start depends on its version, so each call is checked.
    let log = "#!/bin/sh\necho \"$PWD $*\" | head -n 1 >> \"$HOME/calls\"\n";
    let python = QUICK.replace("PYTHON", &interpreter().display().to_string());
    let test = test.executable("python", &python.replacen("#!/bin/sh\n", log, 1));
    setup(&test, &["--yes"]);
    assert!(!test.exists("skills/s/ran") && test.exists(VENV));
    let calls = test.read("home/calls");
    assert!(calls.lines().count() >= 3, "{calls}");
    for call in calls.lines() {
        assert!(call.starts_with("/ ") || call.contains(" -I "), "{call}");
    }
}

/// Packages of npm go into the venv, where commands and scripts find them; no script of theirs runs.
#[test]
fn npm_packages_are_installed_into_the_venv() {
    let document = "---\nname: s\ndescription: d\n---\n```sh\nnpm install -g docx@9 @scope/tool\n\
        npm i ./x https://127.0.0.1:9/y.tgz\nnpm i is@me/is x@file:../y z@npm:q evil.tgz --omit dev\n```\n";
    let npm = "#!/bin/sh\necho \"$*\" >> \"$HOME/npm\"\ncase $8 in docx*) mkdir -p \"$7/lib/node_modules/docx\";;\n\
        *) exit 1;; esac\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let without = test.clone().env("PATH", test.path("bin"));
    setup(&without, &["--yes"]).status(1).stderr_has("not installed: `npm`");
    assert!(!test.exists(VENV), "a venv without a package");
    let test = test.executable("bin/npm", npm);
    let path = format!("{}:/usr/bin:/bin", test.path("bin").display());
    let test = test.env("PATH", path);
    let run = setup(&test, &["--yes", "--json"]).status(1);
    let reported = run.stdout_json();
    assert_eq!(reported["left_out"], json!(["@scope/tool", "evil.tgz", "is", "x", "z"]));
    assert_eq!(reported["undeclared"], json!(["docx@9"]));
    let venv = test.path(VENV);
    let options = "install --global --ignore-scripts --no-fund --no-audit --prefix";
    let venv = venv.display();
    let expected = format!("{options} {venv} @scope/tool\n{options} {venv} docx@9\n");
    assert_eq!(test.read("home/npm"), expected);
    let printed = script(&test, "import os; print(os.environ['NODE_PATH'])");
    assert_eq!(printed, format!("{venv}/lib/node_modules\n"));
}

/// What scripts import is tried: an installed package may lack it, or fail.
#[test]
fn imports_are_tried() {
    let test = quick().file("skills/s/requirements.txt", "alpha\nopenpyxl\n").file(
        "skills/s/a.py",
        "from alpha import VERSION, nothing\nimport alpha.part\nfrom openpyxl import *\n\
             from shadow.deep import found\ndef late():\n    from openpyxl import nowhere\n",
    );
    for _ in 0..2 {
        let run = setup(&test, &[]).status(1);
        run.stderr_has("`alpha.nothing` (a.py line 1): `alpha` has no `nothing`")
            .stderr_has("`alpha.part` (a.py line 1): ")
            .stderr_lacks("openpyxl.nowhere");
    }
    let site =
        fs::read_dir(test.path("skills/s/venv/lib")).unwrap().next().unwrap().unwrap().path();
    let site = site.join("site-packages");
    // A function with the name of its module, and a module that ends the interpreter.
    fs::create_dir(site.join("shadow")).unwrap();
    fs::write(site.join("shadow/__init__.py"), "from .deep import deep\n").unwrap();
    fs::write(site.join("shadow/deep.py"), "found = 1\ndef deep(): pass\n").unwrap();
    for (end, reported) in [("abort()", " by signal 6"), ("_exit(0)", "\nhint: ")] {
        fs::write(site.join("alpha.py"), format!("import os\nprint('.')\nos.{end}\n")).unwrap();
        let run = setup(&test, &[]).status(1).stderr_lacks("shadow");
        run.stderr_has("`alpha.nothing` (a.py line 1): importing it ends Python")
            .stderr_has(&format!("`alpha.part` (a.py line 1): importing it ends Python{reported}"));
    }
}

/// On a terminal the user is asked, each line of an installer replaces the last, and all of them
/// are shown if it fails.
#[test]
fn setup_on_a_terminal_asks_and_shows_one_line() {
    let document = "---\nname: s\ndescription: d\n---\n```sh\npip install alpha\n```\n";
    let test = quick().file("skills/s/SKILL.md", document).env("TERM", "xterm");
    let question = "install them into its venv? [y/N] ";
    let mut terminal = command(&test, &[]).spawn_on_terminal();
    terminal.expect("  alpha (SKILL.md line 6: pip install alpha)").expect(question);
    terminal.type_line("n");
    terminal.wait_exit().status(1).terminal_has("not installed: `alpha`");
    assert!(!test.exists(VENV));
    let mut terminal = command(&test, &[]).spawn_on_terminal();
    let agreed = terminal.expect(question).type_line("y");
    agreed.expect("\r\u{1b}[K\u{1b}[2mSuccessfully installed alpha-2.0");
    let done = terminal.wait_exit().success();
    let lines = done.terminal.lines();
    let whole = lines.filter(|line| line.starts_with("skills-runner: Successfully"));
    assert_eq!(whole.count(), 0, "{}", done.terminal);
    done.terminal_has("\u{1b}[Ks: created skills/s/venv with alpha");
    let failed = command(&test, &["nothing-of-that-name"]).spawn_on_terminal().wait_exit();
    let failed = failed.status(1);
    failed.terminal_has("skills-runner: Looking in links: ").terminal_has("unchanged");
    let dumb = command(&test, &["beta"]).env("TERM", "dumb").spawn_on_terminal().wait_exit();
    dumb.success().terminal_has("skills-runner: Successfully installed beta-1.0 gamma-1.0");
}
