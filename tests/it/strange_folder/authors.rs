//! A `.env` that another person may have written is not read.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use crate::harness::{Outcome, Test, report_skipped, shell_line_works};
use crate::paths::as_an_ordinary_user;

const FILE: &str = "LLM_API_BASE_URL=http://127.0.0.1:9/v1\nLLM_MODEL_NAME=of-the-folder\n";

/// Shows the model of `./.env` without sending a request; `None`: the file was not read.
fn is_read(test: &Test) -> bool {
    let run = test.next_run().args(["--dry-run", "hi"]).run();
    let is_read = run.stdout.contains("of-the-folder");
    let says_why = run.stderr.contains("skipped .env: ") && run.stderr.contains("trust");
    run.check(is_read != says_why, "the line about a file that is not read");
    run.check(run.status_is(if is_read { 0 } else { 78 }), "the status");
    is_read
}

fn git(test: &Test, line: &str) {
    let script =
        format!("git() {{ command git -c user.name=n -c user.email=e@x.y \"$@\"; }}; {line}");
    let mut git = std::process::Command::new("bash");
    git.args(["-ec", &script]).current_dir(test.path("")).env("HOME", test.path("home"));
    let done = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_file_that_git_tracks_is_not_read() {
    if !shell_line_works("git --version") {
        report_skipped("there is no git");
        return;
    }
    let add = "git add -f .env";
    // The preparation, the working folder, and whether the file is read.
    let table = [
        ("git init -q; git add -f home 2>/dev/null || true", ".", true),
        ("git init -q; echo .env >.gitignore; git add .gitignore", ".", true),
        ("git init -q; touch .env.example; git add -f .env.example", ".", true),
        // Only staged.
        ("git init -q; ADD", ".", false),
        ("git init -q; ADD; git commit -qm 1; echo '# more' >>.env", ".", false),
        ("git init -q; ADD; git commit -qm 1; git rm -q --cached .env", ".", true),
        ("git init -q; ADD; git update-index --index-version 4", ".", false),
        (
            "git init -q; touch .a .b .env.local .f; git add -f .a .b .env.local .f; git update-index --index-version 4",
            ".",
            true,
        ),
        (
            "git init -q; touch .a .b .env.local .f; git add -f .a .b .env.local .f .env; git update-index --index-version 4",
            ".",
            false,
        ),
        ("git init -q --object-format=sha256; ADD", ".", false),
        ("git init -q --object-format=sha256; touch a; git add a", ".", true),
        ("git init -q; ADD; git update-index --split-index", ".", false),
        ("git init -q; touch a; git add a; git update-index --split-index; ADD", ".", false),
        ("git init -q; touch a; git add a; git update-index --split-index", ".", true),
        ("git init -q; ADD; git update-index --skip-worktree .env", ".", false),
        ("git init -q; touch a; git add a; git add -N -f .env", ".", false),
        // A subfolder of a repository, and another work tree.
        ("mkdir -p s/t; cp -p .env s/t/; git init -q; git add -f s/t/.env", "s/t", false),
        ("mkdir -p s/t; cp -p .env s/t/; git init -q; ADD", "s/t", true),
        ("git init -q; ADD; git commit -qm 1; git worktree add -q w", "w", false),
        (
            "git init -q; touch a; git add a; git commit -qm 1; git worktree add -q w; cp -p .env w/",
            "w",
            true,
        ),
        ("git init -q --separate-git-dir=elsewhere; ADD", ".", false),
        // A tracked link, and an own link to a tracked file.
        ("mv .env e; ln -s e .env; git init -q; ADD", ".", false),
        ("mv .env e; ln -s e .env; git init -q; git add e", ".", false),
        // A fresh repository has no index. A folder `.git` without HEAD is no repository.
        ("git init -q", ".", true),
        ("mkdir .git; echo x >.git/index", ".", true),
        // What cannot be read counts as tracked.
        ("git init -q; echo DIRC >.git/index", ".", false),
        ("git init -q; touch a; git add a; truncate -s -4 .git/index", ".", false),
        ("git init -q; mkdir .git/index", ".", false),
        ("echo nothing >.git", ".", false),
        ("echo gitdir: /nowhere/worktrees/w >.git", ".", false),
    ];
    for (line, folder, expected) in table {
        let test = Test::new().dotenv(FILE);
        git(&test, &line.replace("ADD", add));
        let test = test.cwd(folder);
        assert_eq!(is_read(&test), expected, "{line}");
    }
}

/// Nothing of the repository's settings runs, and git need not be there.
#[test]
fn git_is_not_started() {
    if !shell_line_works("git --version") {
        report_skipped("there is no git");
        return;
    }
    let test = Test::new().dotenv(FILE);
    git(
        &test,
        "git init -q; git config core.fsmonitor \"touch $PWD/ran; false\"; git add -f .env; rm -f ran",
    );
    assert!(!is_read(&test) && !test.exists("ran"));
    assert!(!is_read(&test.clone().env("PATH", "/nowhere")));
}

/// Others may write the file, or another user owns it.
#[test]
fn modes_and_owners_decide() {
    let test = Test::new().dotenv(FILE).mode("", 0o755);
    if std::process::Command::new("id").arg("-u").output().unwrap().stdout != b"0\n" {
        report_skipped("only root can give files away");
        return;
    }
    let own = |path: &Path, user: u32, group: u32| chown(path, Some(user), Some(group)).unwrap();
    let file = test.path(".env");
    // Mode, owner and group of the file; mode and owner of the folder; whether root reads it.
    let table = [
        (0o600, 0, 0, 0o755, 0, true),
        (0o644, 0, 0, 0o755, 0, true),
        (0o664, 0, 0, 0o755, 0, true),
        (0o646, 0, 0, 0o755, 0, false),
        (0o660, 0, 65534, 0o755, 0, false),
        (0o640, 0, 65534, 0o755, 0, true),
        (0o600, 65534, 65534, 0o755, 0, false),
        // Root works in a folder that only another user may write.
        (0o600, 65534, 65534, 0o755, 65534, true),
        (0o600, 65534, 65534, 0o777, 65534, false),
        (0o600, 65534, 65534, 0o775, 65534, false),
        (0o600, 65534, 65534, 0o755, 65533, false),
    ];
    for (mode, user, group, folder_mode, folder_user, expected) in table {
        own(&file, user, group);
        own(&test.path(""), folder_user, 0);
        let test = test.clone().mode(".env", mode).mode("", folder_mode);
        assert_eq!(
            is_read(&test),
            expected,
            "{mode:o} {user} {group} {folder_mode:o} {folder_user}"
        );
    }
    // An ordinary user.
    let shell = as_an_ordinary_user(&test);
    let test = test.mode("", 0o755).mode("home", 0o777);
    for (user, group, mode, expected) in [
        (65534, 65534, 0o600, true),
        (65534, 65534, 0o664, true),
        (65534, 0, 0o664, false),
        (65533, 65534, 0o644, false),
        (0, 0, 0o644, false),
    ] {
        own(&file, user, group);
        let test = test.clone().mode(".env", mode);
        let run = test.next_run().shell(shell).args(["--dry-run", "hi"]).run();
        run.check(run.status_is(if expected { 0 } else { 78 }), format!("{user} {group} {mode:o}"));
    }
    // Of a link, the file that it leads to counts.
    fs::rename(&file, test.path("real")).unwrap();
    let test = test.link(".env", "real");
    own(&test.path(""), 0, 0);
    for (user, expected) in [(0, true), (65534, false)] {
        own(&test.path("real"), user, 0);
        assert_eq!(is_read(&test), expected);
    }
}

/// Of a file that is not read, what restricts the program counts, and nothing is said if it sets
/// no setting.
#[test]
fn what_restricts_counts_in_a_file_that_is_not_read() {
    let doctor = |text: &str, own: &str| -> Outcome {
        let test = Test::new().dotenv(text).mode(".env", 0o666);
        let test = test.file("home/.config/skills-runner/.env", own);
        test.args(["doctor", "--json"]).run()
    };
    let value = |run: &Outcome, name: &str| {
        let report = run.stdout_json();
        let settings = report["checks"][0]["details"]["settings"].as_array().unwrap().clone();
        let found = settings.iter().find(|row| row["name"] == name);
        found.and_then(|row| row["value"].as_str().map(String::from))
    };
    let strict = "SCRIPT_SANDBOX=on\nSKILLS_LOCKED=on\nSCRIPT_SHELL=off\nSCRIPT_PYTHON=off\n";
    let run = doctor(&format!("{FILE}{strict}LLM_TIMEOUT_SECONDS=1\n"), "");
    for name in ["SCRIPT_SANDBOX", "SKILLS_LOCKED"] {
        assert_eq!(value(&run, name).as_deref(), Some("on"), "{name}");
    }
    for name in ["SCRIPT_SHELL", "SCRIPT_PYTHON"] {
        assert_eq!(value(&run, name).as_deref(), Some("off"), "{name}");
    }
    for name in ["LLM_API_BASE_URL", "LLM_MODEL_NAME", "LLM_TIMEOUT_SECONDS"] {
        assert_eq!(value(&run, name), None, "{name}");
    }
    let loose = "SCRIPT_SANDBOX=off\nSKILLS_LOCKED=off\nSCRIPT_SHELL=sh\nSCRIPT_LEFTOVERS=keep\n";
    let run = doctor(loose, "SCRIPT_SANDBOX=on\nSKILLS_LOCKED=on\n");
    assert_eq!(value(&run, "SCRIPT_SANDBOX").as_deref(), Some("on"));
    assert_eq!(value(&run, "SCRIPT_SHELL"), None);
    // The user's own file, in its folder.
    let test = Test::new().file("home/.config/skills-runner/.env", FILE);
    let test =
        test.mode("home/.config/skills-runner/.env", 0o664).cwd("home/.config/skills-runner");
    let run = test.args(["--dry-run", "hi"]).run().success();
    run.stdout_has("of-the-folder").stderr_lacks("only .env sets");
    // Another program's file.
    let test = Test::new().file(".env", b"\xff\xfeA").mode(".env", 0o666);
    test.args(["skills", "list"]).run().success();
    let test = Test::new().dotenv("DATABASE_URL=x\nthis is no line\nOPENAI_API_KEY=k\n");
    let run = test.mode(".env", 0o666).args(["skills", "list"]).run();
    run.stderr_lacks(".env");
}
