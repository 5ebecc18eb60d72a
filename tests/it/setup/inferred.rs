//! What documents and guarded imports need, and whether what was installed can be imported.

use super::{VENV, command, created_venvs, quick, script, setup};
use serde_json::json;
use std::fs;

/// With `--yes` the packages that documents name are installed: well-known ones, and those of
/// install lines with their versions. No file of the skill changes.
#[test]
fn packages_of_documents_are_installed_if_the_user_agrees() {
    let document = "---\nname: s\ndescription: d\n---\n```python\nimport openpyxl\n```\n\n```sh\npip install 'alpha<2' --user\n```\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let run = setup(&test, &[]).status(1).stderr_lacks("installing");
    run.stderr_has("`alpha` (SKILL.md line 10), `openpyxl` (SKILL.md line 6)");
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

/// Addresses, paths, other indexes, names that are nearly well known, and names that nobody
/// published are not installed, and prevent no other package.
#[test]
fn doubtful_names_of_documents_are_left_out() {
    let document = "---\nname: s\ndescription: d\n---\n```sh\n\
        pip install beta@https://127.0.0.1:9/x.whl gamma@file:///x ./wheels/gamma-1.0-py3-none-any.whl\n\
        pip install -i https://127.0.0.1:9/simple gamma\n\
        pip install opnpyxl\npip install nobody-published-it\npip install alpha\n```\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let run =
        setup(&test, &["--yes", "--json"]).status(1).stderr_has("trying the packages one by one");
    let reported = run.stdout_json();
    assert_eq!(reported["undeclared"], json!(["alpha"]));
    assert_eq!(reported["left_out"], json!(["beta", "gamma", "nobody-published-it", "opnpyxl"]));
    run.stderr_has("No matching distribution found for nobody-published-it")
        .stderr_has("is `openpyxl` meant?")
        .stderr_lacks("installing beta");
    script(&test, "import alpha");
}

/// Packages of npm go into the venv, where commands and scripts find them; no script of theirs runs.
#[test]
fn npm_packages_are_installed_into_the_venv() {
    let document = "---\nname: s\ndescription: d\n---\n```sh\nnpm install -g docx@9 @scope/tool\nnpm i ./x https://127.0.0.1:9/y.tgz\n```\n";
    let npm = "#!/bin/sh\necho \"$*\" > \"$HOME/npm\"\nmkdir -p \"$7/lib/node_modules/docx\"\n";
    let test = quick().file("skills/s/SKILL.md", document).executable("bin/npm", npm);
    let path = format!("{}:/usr/bin:/bin", test.path("bin").display());
    let test = test.env("PATH", path);
    let run = setup(&test, &["--yes", "--json"]).status(1);
    assert_eq!(run.stdout_json()["left_out"], json!(["@scope/tool"]));
    let venv = test.path(VENV);
    let expected = "install --global --ignore-scripts --no-fund --no-audit --prefix";
    assert_eq!(
        test.read("home/npm"),
        format!("{expected} {} @scope/tool docx@9\n", venv.display())
    );
    let printed = script(&test, "import os; print(os.environ['NODE_PATH'])");
    assert_eq!(printed, format!("{}/lib/node_modules\n", venv.display()));
}

/// What scripts import is tried: an installed package may lack it, or fail.
#[test]
fn imports_are_tried() {
    let test = quick().file("skills/s/requirements.txt", "alpha\nopenpyxl\n").file(
        "skills/s/a.py",
        "from alpha import VERSION, nothing\nimport alpha.part\nfrom openpyxl import *\n\
             def late():\n    from openpyxl import nowhere\n",
    );
    for _ in 0..2 {
        let run = setup(&test, &[]).status(1);
        run.stderr_has("`alpha.nothing` (a.py line 1): `alpha` has no `nothing`")
            .stderr_has("`alpha.part` (a.py line 1): ")
            .stderr_lacks("openpyxl.nowhere");
    }
    let site =
        fs::read_dir(test.path("skills/s/venv/lib")).unwrap().next().unwrap().unwrap().path();
    let module = site.join("site-packages/openpyxl.py");
    fs::write(module, "import os\nprint('+')\nos.abort()\n").unwrap();
    let run = setup(&test, &[]).status(1);
    run.stderr_has("`openpyxl` (a.py line 3): importing it ends Python by signal 6")
        .stderr_has("`alpha.part` (");
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
