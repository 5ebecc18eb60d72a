//! What is granted.

use super::{BEFORE, DOCUMENT, SECRET, is_sandbox_available, run, test_with_skills};
use crate::harness::interpreter;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

/// Exactly the named paths can be written and read in addition, but never hidden files.
#[test]
fn additional_paths_can_be_granted() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills()
        .folder("out")
        .file("data/rows.csv", "1,2,3\n")
        .file("data/deep/more.csv", "4\n");
    symlink(test.path("key"), test.path("data/link")).unwrap();
    let (out, all) = (test.path("out"), test.path("."));
    let test = test
        .env("SCRIPT_SANDBOX_WRITE", &out)
        .env("SCRIPT_SANDBOX_READ", all)
        .args(["--log", "audit"]);
    let script = format!(
        "{BEFORE}
assert read(cwd + '/data/rows.csv') == b'1,2,3\\n' and read(cwd + '/data/deep/more.csv')
write(cwd + '/out/result'); os.rename(cwd + '/out/result', cwd + '/out/renamed')
for path in ['.env', 'key', 'audit', 'skills/other/SKILL.md', 'data/link', 'skills']:
    try: (os.listdir if path == 'skills' else read)(cwd + '/' + path); print(path)
    except PermissionError: pass
for path in ['data/new', 'new', 'victim']:
    try: write(cwd + '/' + path); print(path)
    except PermissionError: pass
"
    );
    let (result, run) = run(&test, &script);
    run.check(result["returncode"] == 0, "granted access does not work");
    run.check(result["stdout"] == "", "hidden content is shown");
    assert!(out.join("renamed").exists());
}

/// A folder that cannot be granted without the hidden files in it.
#[test]
fn folder_that_contains_hidden_files_is_not_granted() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills().folder("out");
    symlink(test.path("skills"), test.path("out-link")).unwrap();
    for (folder, why) in [
        (".", ".env, which scripts must not access, is in it"),
        ("out-link", "which scripts must not access"),
        ("missing", "does not exist; tell the user: create it first"),
        ("victim", "is not a folder; tell the user: name a folder"),
    ] {
        let test = test.clone().env("SCRIPT_SANDBOX_WRITE", test.path(folder));
        let (result, run) = run(&test, "print(1)");
        let message = result["error"].as_str().unwrap_or_default();
        run.check(message.contains("SCRIPT_SANDBOX_WRITE names"), folder);
        run.check(message.contains(why), folder);
    }
    // If the working folder is the skill's folder, it contains the `.env` file.
    let test = test_with_skills().file("skills/s/.env", "LLM_MODEL_NAME=m\n");
    let arguments = json!({"skill_name": "s", "script": "print(1)"}).to_string();
    let command = ["tool", "--skills", "..", "run_python_script", &arguments];
    let within = test.next_run().args(command).cwd("skills/s").run();
    within.status(1).stdout_has("the skill's folder holds");
}

/// Links that a skill contains or a script creates grant no access: neither those of a venv nor
/// those in place of a granted folder.
#[test]
fn links_in_a_skill_grant_nothing() {
    if !is_sandbox_available() {
        return;
    }
    let spy = format!("{BEFORE}\nread(os.path.expanduser('~/private/id'))");
    let fresh = || test_with_skills().file("home/private/id", SECRET).env("SCRIPT_PYTHON", "");
    for part in ["ssl", "libexec"] {
        let test = fresh().venv("s");
        symlink(test.path("home"), test.path(format!("skills/s/venv/{part}"))).unwrap();
        let (result, run) = run(&test, &spy);
        run.check(result["returncode"] == 1, part);
    }
    // The same in the venv that a setting names.
    let test = fresh().venv_at("py").env("SCRIPT_PYTHON", "py/bin/python3");
    symlink(test.path("home"), test.path("py/ssl")).unwrap();
    let (result, set) = run(&test, &spy);
    set.check(result["returncode"] == 1, "a venv that is set");
    let test = fresh().venv("s").folder("skills/s/x");
    symlink(test.path("home/private/id"), test.path("skills/s/x/python3")).unwrap();
    let settings = format!("home = {}\n", test.path("skills/s/x").display());
    fs::write(test.path("skills/s/venv/pyvenv.cfg"), settings).unwrap();
    let (result, as_base) = run(&test, &spy);
    as_base.check(!result.to_string().contains(SECRET), "the base of a venv");
    let test = fresh().env("SCRIPT_PYTHON", interpreter());
    let out = test.path("skills/s/out");
    symlink(test.path("home"), &out).unwrap();
    for name in ["SCRIPT_SANDBOX_WRITE", "SCRIPT_SANDBOX_READ"] {
        let test = test.clone().env(name, &out);
        let (result, run) = run(&test, &spy);
        run.check(result["returncode"] != 0, name);
    }
    // The interpreter setting is a file; search paths do not follow links of a script.
    let test = fresh().env("SCRIPT_PYTHON", interpreter());
    symlink(test.path("home"), test.path("skills/s/.python-version")).unwrap();
    symlink(test.path("home"), test.path("skills/s/lib")).unwrap();
    let test = test.clone().env("PYTHONPATH", test.path("skills/s/lib/private"));
    let (result, chosen) = run(&test, &spy);
    chosen.check(result["returncode"] == 1, "a version, a search path");
    // The user's own link is followed; a link within its target is not.
    let test = fresh().env("SCRIPT_PYTHON", interpreter()).folder("data/out");
    symlink(test.path("data"), test.path("mine")).unwrap();
    let test = test.clone().env("SCRIPT_SANDBOX_WRITE", test.path("mine"));
    let (result, own) = run(&test, &format!("{BEFORE}\nwrite(cwd + '/data/out/x')"));
    own.check(result["returncode"] == 0, "the user's own link");
    let both = format!("{}:{}", test.path("mine").display(), test.path("mine/out/x").display());
    fs::remove_file(test.path("data/out/x")).unwrap();
    symlink(test.path("home"), test.path("data/out/x")).unwrap();
    let (result, swapped) = run(&test.clone().env("SCRIPT_SANDBOX_WRITE", both), &spy);
    let message = result["error"].as_str().unwrap_or_default();
    swapped.check(
        message.contains("leads over a link in a folder where scripts may write"),
        "swapped",
    );
    // A link to something that is not a skill is not a skill.
    let test = fresh().env("SCRIPT_PYTHON", interpreter());
    symlink(test.path("home/private"), test.path("skills/linked")).unwrap();
    let arguments = json!({"skill_name": "linked", "script": "print(open('id').read())"});
    let linked = test.next_run().args(["tool", "run_python_script", &arguments.to_string()]).run();
    linked.status(1).stdout_lacks(SECRET);
}

/// The sandbox also applies if the working folder is the skill's folder; a link to `/` in the
/// skills folder does not weaken it.
#[test]
fn unusual_locations_are_sandboxed() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills().file("elsewhere/SKILL.md", DOCUMENT);
    symlink("/", test.path("skills/all")).unwrap();
    symlink(test.path("elsewhere"), test.path("skills/linked")).unwrap();
    for (folder, skills, name) in
        [("skills/s", "..", "s"), (".", "skills", "linked"), ("elsewhere", "../skills", "linked")]
    {
        let arguments = json!({"skill_name": name, "script": "import os; open(os.environ['SKILL_DIR'] + '/own', 'w'); print(1)"});
        let command = ["--skills", skills, "tool", "run_python_script"];
        let within = test.next_run().args(command).args([arguments.to_string()]);
        let run = within.cwd(folder).run();
        let result = run.stdout_json();
        run.check(result["stdout"] == "1\n", folder);
    }
}

/// Another skill within the skill's folder, temporary files in writable folders, and files that no
/// setting names.
#[test]
fn hidden_files_inside_granted_folders_stay_hidden() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills().file("skills/s/more/inner/SKILL.md", DOCUMENT);
    let arguments = json!({"skill_name": "s", "script": "print(1)"}).to_string();
    let command = ["--skills", "skills", "--skills", "skills/s/more", "tool", "run_python_script"];
    let nested = test.next_run().args(command).args([&arguments]).run();
    nested.status(1).stdout_has("the skill's folder holds");
    let (result, shared) = run(&test_with_skills().env("TMPDIR", "/dev/shm"), "print(1)");
    let message = result["error"].as_str().unwrap_or_default();
    shared.check(message.contains("set TMPDIR to another folder"), "TMPDIR is shared");
    let (result, all) = run(
        &test_with_skills().env("SCRIPT_SANDBOX_READ", "/etc:/proc"),
        &format!(
            "{BEFORE}
read('/etc/passwd')
for path in ['/etc/shadow', '/etc/gshadow', '/proc/version', '/proc/self/environ']:
    try: read(path); print(path)
    except (PermissionError, FileNotFoundError): pass"
        ),
    );
    all.check(result["returncode"] == 0 && result["stdout"] == "", "hidden content is shown");
    for folder in ["/etc", "/proc", "/"] {
        let (result, run) =
            run(&test_with_skills().env("SCRIPT_SANDBOX_WRITE", folder), "print(1)");
        let message = result["error"].as_str().unwrap_or_default();
        run.check(message.contains("which scripts must not access"), folder);
    }
}

/// The owner of the working folder, who may be untrusted, can neither disable the sandbox nor
/// extend it beyond the folder.
#[test]
fn env_file_of_the_folder_cannot_weaken_the_sandbox() {
    if !is_sandbox_available() {
        return;
    }
    let test = test_with_skills().env("SCRIPT_SANDBOX", "");
    let spy = format!("{BEFORE}\nread(cwd + '/victim')");
    let test = test.file("home/.config/skills-runner/.env", "SCRIPT_SANDBOX=on\n");
    let test = test.file(".env", "SCRIPT_SANDBOX=off\n");
    let (result, both) = run(&test, &spy);
    both.check(result["returncode"] == 1, "the user's sandbox setting was overridden");
    let test = test.file(".env", "SCRIPT_SANDBOX_READ=/var\n");
    let run_it = test.next_run().args(["tool", "list_skills"]).run();
    run_it.status(78).stderr_has("must be a visible place in this folder");
    let test = test.file(".env", "SCRIPT_SANDBOX_READ=victim\n");
    let (result, own) = run(&test, &spy);
    own.check(result["returncode"] == 0, "the folder can grant its own files");
}

/// Leftover processes are kept if the user's setting says so, but not if the folder's `.env` file
/// does.
#[test]
fn env_file_of_the_folder_cannot_keep_leftover_processes() {
    if !is_sandbox_available() {
        return;
    }
    let leave_process =
        "import subprocess; subprocess.Popen(['sleep', '3'], start_new_session=True)";
    for (file, fate) in
        [(".env", "was ended"), ("home/.config/skills-runner/.env", "keeps running")]
    {
        let test = test_with_skills().file(file, "SCRIPT_LEFTOVERS=keep\n").mode(file, 0o600);
        let (result, run) = run(&test, leave_process);
        let hint = result["hint"].as_str().unwrap_or_default();
        run.check(hint.contains(fate), file);
    }
}

/// Programs get writable temporary, home and cache folders, unless their own are granted.
#[test]
fn programs_get_temporary_home_and_cache_folders() {
    if !is_sandbox_available() {
        return;
    }
    let show = "import os
print(*(os.environ.get(name, '').replace(os.environ['TMPDIR'], 'T') for name in
      ['XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'GIT_CONFIG_GLOBAL']))";
    let (result, usual) = run(&test_with_skills(), show);
    usual.check(result["stdout"] == "T T T/gitconfig\n", "the folders differ");
    let test = test_with_skills().folder("home/.cache/models");
    let cache = test.path("home/.cache/models");
    let (result, granted) = run(&test.env("SCRIPT_SANDBOX_READ", cache), show);
    granted.check(result["stdout"] == " T T/gitconfig\n", "the granted cache folder is not used");
}

/// The model and the user are told why an operation was refused.
#[test]
fn refused_access_is_explained() {
    if !is_sandbox_available() {
        return;
    }
    let (result, _) = run(&test_with_skills(), "open('/usr/skills-runner-test', 'w')");
    let hint = result["hint"].as_str().unwrap();
    assert!(hint.contains("it ran in a sandbox: it may write in its skill"), "{hint}");
    assert!(hint.contains("SCRIPT_SANDBOX_WRITE"), "{hint}");
    let (result, _) = run(&test_with_skills(), "1 / 0");
    assert!(result["hint"].is_null());
}

/// A changed file of the skill is reported, with and without the sandbox.
#[test]
fn changed_document_or_venv_is_reported() {
    for sandbox in ["on", "off"] {
        if sandbox == "on" && !is_sandbox_available() {
            continue;
        }
        let test = test_with_skills().venv("s").env("SCRIPT_SANDBOX", sandbox);
        for (script, told) in [
            ("open('notes', 'w').write('x')", None),
            ("open('SKILL.md').read()", None),
            ("import os; os.chmod('notes', 0o600)", Some("notes of the skill changed")),
            ("import os; os.utime('SKILL.md', (0, 0))", None),
            (
                "open('requirements.txt', 'w').write('x')",
                Some("left requirements.txt in the skill's folder"),
            ),
            ("import os; os.mkdir('.venv')", Some(".venv of the skill changed")),
            (
                "import os; os.rmdir('.venv'); os.mkdir('.git')",
                Some(".git and .venv of the skill changed"),
            ),
            ("open('.git/config', 'w')", Some(".git of the skill changed")),
            (
                "import os; os.mkdir('.skills-runner-setup')",
                Some(".skills-runner-setup of the skill changed"),
            ),
            ("open('HEAD', 'w')", Some("left HEAD in the skill's folder")),
            ("open('SKILL.md', 'a').write('x')", Some("SKILL.md of the skill changed")),
            ("open('venv/new', 'w')", Some("venv of the skill changed")),
            (
                "import os; path = 'venv/pyvenv.cfg'; text = open(path).read()
open(path, 'w').write(text); os.utime(path, (0, 0))",
                Some("venv/pyvenv.cfg of the skill changed"),
            ),
            // This one is last: without its document the folder is no longer a skill.
            (
                "import os; os.unlink('venv/new'); os.rename('SKILL.md', 'gone')",
                Some("SKILL.md and venv of the skill changed"),
            ),
        ] {
            let (result, run) = run(&test, script);
            run.check(result["returncode"] == 0, script);
            let hint = result["hint"].as_str();
            match told {
                None => run.check(hint.is_none_or(|hint| !hint.contains("changed")), script),
                Some(told) => run.check(hint.is_some_and(|hint| hint.contains(told)), script),
            }
        }
    }
}

/// The shim of a version manager works unchanged in the sandbox.
#[test]
fn shim_starts_in_the_sandbox() {
    if !is_sandbox_available() {
        return;
    }
    let real = interpreter().display();
    let test = test_with_skills()
        .file("manager/shims/python3", "#!/bin/sh\nexec \"${0%/*}/../real\" \"$@\"\n")
        .file("manager/real", format!("#!/bin/sh\nexec {real} \"$@\"\n"))
        .mode("manager/shims/python3", 0o755)
        .mode("manager/real", 0o755);
    let path =
        format!("{}:{}", test.path("manager/shims").display(), std::env::var("PATH").unwrap());
    let test = test
        .env("PATH", path)
        .env("SCRIPT_PYTHON", "")
        .env("SCRIPT_SANDBOX_READ", interpreter().ancestors().nth(2).unwrap());
    let (result, run) = run(&test, "print(1)");
    run.check(result["stdout"] == "1\n", "the shim does not start");
}

/// `doctor` reports whether the sandbox is available, and tries Python in it.
#[test]
fn doctor_reports_the_sandbox() {
    if !is_sandbox_available() {
        return;
    }
    let on = test_with_skills().args(["doctor"]).run();
    on.stdout_has("sandbox: on: Landlock ").stdout_has(" ms in the sandbox");
    let off = test_with_skills().env("SCRIPT_SANDBOX", "off").args(["doctor"]).run();
    off.stdout_has("sandbox: off; SCRIPT_SANDBOX=on is possible here: Landlock ");
    let wrong = test_with_skills().env("SCRIPT_SANDBOX", "perhaps").args(["doctor"]).run();
    wrong.stdout_has("SCRIPT_SANDBOX=perhaps (environment) is not off or on");
}
