//! What documents install.

use super::{QUICK, VENV, command, created_venvs, quick, script, setup};
use crate::harness::interpreter;
use serde_json::json;

/// With `--yes` the packages are installed that blocks of shell code install, with their versions:
/// none of other code, of sentences or of scripts. No file of the skill changes.
#[test]
fn packages_of_documents_are_installed_if_the_user_agrees() {
    let document = "---\nname: s\ndescription: d\n---\nInstall `openpyxl` with `pip install openpyxl`.\n\
        ```python\nimport openpyxl\n```\n\n```\npip install openpyxl\n```\n```sh\npip install 'alpha<2' --user\n```\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let test = test.file("skills/s/a.sh", "pip install gamma\n");
    let run = setup(&test, &[]).status(1).stderr_lacks("installing");
    run.stderr_has("are not installed: `alpha` (SKILL.md line 14)\n");
    assert!(!test.exists(VENV));
    let run = setup(&test, &["--yes"]).success();
    run.stderr_has("  alpha<2 (SKILL.md line 14: pip install 'alpha<2' --user)\n")
        .stderr_has("installing alpha<2\n")
        .stdout_has("created skills/s/venv with alpha<2\n");
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
    assert!(!test.exists("skills/s/requirements.txt"));
    setup(&test, &[]).success().stdout_has("is up to date with alpha<2\n");
    setup(&test, &["beta"]).success().stdout_has("recreated skills/s/venv with alpha<2, beta\n");
    assert_eq!(created_venvs(&test), 2);
    script(&test, "import alpha, beta, gamma");
}

/// Addresses, paths, other indexes, values of options and names that are nearly well known are not
/// installed, and prevent no other package.
#[test]
fn doubtful_names_of_documents_are_left_out() {
    let lines = [
        "beta@https://127.0.0.1:9/x.whl 'beta @ file:///x' ./wheels/gamma-1.0-py3-none-any.whl",
        "-i https://127.0.0.1:9/simple gamma",
        "--pypi-url=https://127.0.0.1:9 --timeout 60 gamma",
        "gamma.txz",
        "opnpyxl opepnyxl o-p-e-n-p-y-x-l",
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
    let reported = run.stdout_json();
    assert_eq!(reported["undeclared"], json!(["alpha==1.0"]));
    let left_out = ["beta", "elsewhere", "gamma", "o-p-e-n-p-y-x-l", "opepnyxl", "opnpyxl"];
    assert_eq!(reported["left_out"], json!(left_out));
    run.stderr_has("is `openpyxl` meant?").stderr_lacks("installing beta");
    assert_eq!(script(&test, "import alpha; print(alpha.VERSION)"), "1.0\n");
}

/// A package that cannot be installed ends the setup: nothing is installed without it.
#[test]
fn a_package_that_fails_ends_the_setup() {
    let document =
        "---\nname: s\ndescription: d\n---\n```sh\npip install alpha nobody-published-it\n```\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let run = setup(&test, &["--yes"]).status(1);
    run.stderr_has("No matching distribution found for nobody-published-it")
        .stderr_has("s: the skill is unchanged: it has no venv\n");
    assert!(!test.exists(VENV) && created_venvs(&test) == 1);
}

/// The packages that the user agreed to are installed again when the venv is created again.
#[test]
fn agreed_packages_survive_a_new_venv() {
    let document = "---\nname: s\ndescription: d\n---\n```sh\npip install alpha\n```\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let test = test.file("skills/s/requirements.txt", "beta\ngamma\n");
    setup(&test, &["--yes"]).success();
    let test = test.file("skills/s/requirements.txt", "gamma\n");
    setup(&test, &[]).success().stdout_has("recreated skills/s/venv with gamma, alpha");
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
    assert!(calls.lines().count() >= 2, "{calls}");
    for call in calls.lines() {
        assert!(call.starts_with("/ ") || call.contains(" -I "), "{call}");
    }
}

/// Packages of npm are named with the command that installs them; it is not run.
#[test]
fn npm_packages_are_named() {
    let document =
        "---\nname: s\ndescription: d\n---\n```sh\nnpm install -g docx@9 @scope/tool ./x\n```\n";
    let test = quick().file("skills/s/SKILL.md", document);
    let test = test.executable("bin/npm", "#!/bin/sh\ntouch \"$HOME/ran\"\n");
    let path = format!("{}:/usr/bin:/bin", test.path("bin").display());
    let test = test.env("PATH", path);
    let run = setup(&test, &["--yes", "--json"]).success();
    assert_eq!(run.stdout_json()["npm"], json!(["@scope/tool", "docx"]));
    run.stderr_has("packages of npm that the skill names are not installed: `@scope/tool`, `docx`")
        .stderr_has("to install them: npm install --prefix ")
        .stderr_has("/skills/s @scope/tool docx\n");
    assert!(!test.exists(VENV) && !test.exists("home/ran"));
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
    terminal.wait_exit().status(1).terminal_has("are not installed: `alpha`");
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
    dumb.success()
        .terminal_has("skills-runner: Successfully installed alpha-2.0 beta-1.0 gamma-1.0");
}
