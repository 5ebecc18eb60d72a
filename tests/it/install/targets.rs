//! The folder that is changed: `--to`, the skills folders, and the folder of the user's data.

use super::{assert_nothing_left, change, document, files, skills, with_source};
use crate::harness::Test;

/// `--to`, else the first `--skills`, else the first of `SKILLS_FOLDER_PATH`, else the user's data.
#[test]
fn skills_are_added_to_the_first_named_folder() {
    let table: [(&[&str], &str, &str); 7] = [
        (&["--to", "given", "--skills", "first", "--skills", "second"], "third", "given"),
        (&["--to=given/deep/"], "", "given/deep"),
        (&["--skills", "first", "--skills", "second"], "third", "first"),
        (&["--skills", "skills"], "third", "skills"),
        (&[], "third:fourth", "third"),
        (&[], "third/", "third"),
        (&[], "", "home/.local/share/skills-runner/skills"),
    ];
    for (args, variable, folder) in table {
        let test = with_source();
        let test =
            if variable.is_empty() { test } else { test.env("SKILLS_FOLDER_PATH", variable) };
        skills(&test, &["add", "./source", "--yes"]).args(args).run().success();
        assert_nothing_left(&test);
        assert!(test.exists(&format!("{folder}/one/SKILL.md")), "{args:?} {variable}");
        assert!(test.exists(&format!("{folder}/skills-runner.lock")), "{args:?} {variable}");
        for other in ["given", "first", "second", "third", "fourth", "home/.local", "skills/one"] {
            let is_it = folder.starts_with(other.trim_end_matches("/one"));
            assert!(is_it || !test.exists(other), "{args:?} {variable}: {other} was created");
        }
    }
    let test = with_source().env("XDG_DATA_HOME", "/nowhere");
    let test = test.clone().env("XDG_DATA_HOME", test.path("data"));
    skills(&test, &["add", "./source", "--yes"]).run().success();
    assert!(test.exists("data/skills-runner/skills/one/SKILL.md"));
    // Skills are found there.
    let list = test.next_run().args(["skills", "list"]).run().success();
    list.stdout_has("one").stdout_has("two");
}

#[test]
fn missing_home_is_reported() {
    let test = with_source().env_unset("HOME");
    let run = skills(&test, &["add", "./source", "--yes"]).run();
    run.check(run.status != 0, "there is no folder");
    run.stderr_has("--to");
    change(&test, &["add", "./source"]).success();
}

/// `update` and `remove` do not create folders; `add` and `restore` do.
#[test]
fn only_some_commands_create_the_folder() {
    let test = with_source();
    let before = files(&test.path(""));
    for words in [&["update"][..], &["remove", "one"]] {
        let run = skills(&test, words).args(["--to", "new", "--yes"]).run();
        run.check(run.status != 0, format_args!("{words:?}"));
        assert_eq!(files(&test.path("")), before, "{words:?}");
    }
    let to_restore = skills(&test, &["restore", "--to", "new", "--yes"]).run();
    to_restore.check(!test.exists("new/one"), "nothing can be restored");
    skills(&test, &["add", "./source", "--to", "new/deep", "--yes"]).run().success();
    assert!(test.exists("new/deep/one/SKILL.md"));
}

/// What is not a folder, or cannot be written.
#[test]
fn unusable_folders_are_reported() {
    let test = with_source().file("a-file", "x").link("dangling", "nowhere");
    let before = files(&test.path(""));
    for to in ["a-file", "a-file/below", "dangling", "/proc/skills"] {
        let run = skills(&test, &["add", "./source", "--to", to, "--yes"]).run();
        run.check(run.status != 0, format_args!("{to}"));
        run.check(!run.stderr.is_empty(), "no reason");
        assert_eq!(files(&test.path("")), before, "{to}");
    }
}

/// A source that is the target, contains it, or lies in it.
#[test]
fn source_and_target_may_overlap() {
    let test = with_source();
    let before = files(&test.path("source"));
    let in_source = |words: &[&str]| skills(&test, words).args(["--to", "source", "--yes"]).run();
    in_source(&["add", "./source"]).status(1);
    assert_nothing_left(&test);
    assert_eq!(files(&test.path("source")), before, "they are there already");
    // The target lies in the source: what is installed is not installed again.
    let below = |words: &[&str]| skills(&test, words).args(["--to", "source/copy", "--yes"]).run();
    below(&["add", "./source"]).success();
    assert_nothing_left(&test);
    assert_eq!(files(&test.path("source/copy/one")), files(&test.path("source/one")));
    below(&["update"]).success();
    assert!(!test.exists("source/copy/copy"));
}

/// Repositories keep skills for other clients in hidden folders.
#[test]
fn skills_in_hidden_folders_are_found() {
    let test = Test::new()
        .file("source/.claude/skills/one/SKILL.md", document("one"))
        .file("source/.agents/skills/two/SKILL.md", document("two"))
        .file("source/.git/skills/three/SKILL.md", document("three"));
    change(&test, &["add", "./source"]).success().stdout("added: skills/one\nadded: skills/two\n");
}

/// The umask of the user counts.
#[test]
fn the_umask_counts() {
    for (umask, modes) in
        [("022", [0o644, 0o755]), ("077", [0o600, 0o700]), ("002", [0o664, 0o775])]
    {
        let test = with_source();
        let line = format!("umask {umask}; exec skills-runner \"$@\"");
        let run = test.next_run().shell(&line).args(["skills", "add", "./source", "--yes"]);
        run.args(["--to", "skills"]).run().success();
        let found = files(&test.path("skills/one"));
        assert_eq!(
            ["SKILL.md", "scripts/run.py"].map(|path| found[path].0 & 0o777),
            modes,
            "{umask}"
        );
    }
}

/// Two commands at once: each change is whole.
#[test]
fn commands_at_the_same_time_wait_for_each_other() {
    let test = (0..6).fold(Test::new(), |test, number| {
        let name = format!("s{number}");
        let test = test.file(&format!("source-{name}/{name}/SKILL.md"), document(&name));
        test.file(&format!("source-{name}/{name}/data"), vec![1; 1 << 20])
    });
    let running: Vec<_> = (0..6)
        .map(|number| {
            let source = format!("./source-s{number}");
            skills(&test, &["add", &source, "--to", "skills", "--yes"]).spawn()
        })
        .collect();
    for run in running {
        run.wait().success();
    }
    assert_nothing_left(&test);
    assert_eq!(super::lock(&test)["skills"].as_object().unwrap().len(), 6);
    let list = test.next_run().env("SKILLS_LOCKED", "on").args(["skills", "list", "--json"]).run();
    let list = list.success().stdout_json();
    let states = list["skills"].as_array().unwrap().iter().map(|skill| skill["status"].clone());
    assert_eq!(states.collect::<Vec<_>>(), vec!["ok"; 6]);
}

/// Links in the place of the hidden folder, as a repository may contain them: what they lead to
/// stays.
#[test]
fn links_in_the_place_of_the_hidden_folder_are_not_followed() {
    let lock = "{\"version\":1,\"skills\":{}}";
    let table = [
        (".skills-runner-install", "../outside"),
        (".skills-runner-install/new", "../../outside"),
        (".skills-runner-install/decided", "../../outside"),
    ];
    for (link, target) in table {
        for words in [&["add", "./source"][..], &["update"]] {
            let test = with_source()
                .file("outside/skills-runner.lock", lock)
                .file("outside/one/SKILL.md", document("one"))
                .file("outside/decided/skills-runner.lock", lock)
                .file("skills/skills-runner.lock", lock)
                .link(&format!("skills/{link}"), target);
            let before = files(&test.path("outside"));
            skills(&test, words).args(["--to", "skills", "--yes"]).run();
            assert_eq!(files(&test.path("outside")), before, "{link} {words:?}");
        }
    }
}

/// A skills folder behind a link that leads nowhere, as to a disk that is not mounted, is not
/// created, and the link is named.
#[test]
fn links_to_nothing_are_named() {
    for (link, folder) in [("agents/skills", "agents/skills"), ("agents", "agents/skills")] {
        let test = with_source().link(link, "../not-mounted");
        let named = format!("{link} is a link to ../not-mounted, which cannot be reached");
        let add = skills(&test, &["add", "./source", "--yes", "--to", folder]).run().status(1);
        add.stderr_has(&named).stderr_lacks("File exists");
        let update = skills(&test, &["update", "--yes", "--to", folder]).run();
        update.stderr_has(&named);
        let list = skills(&test, &["list", "--skills", folder]).run();
        list.stderr_has(&named).stderr_lacks("create the folder");
        assert!(!test.exists("not-mounted"));
    }
}
