//! `skills update` and `skills remove`.

use super::pack::{commit, file, tar_gz};
use super::{actions, added, change, document, files, lock, skills, with_source};
use crate::harness::{Reply, Server, Test};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The difference is shown first.
#[test]
fn updates_show_the_difference() {
    let test = with_source();
    added(&test);
    let before = files(&test.path("skills"));
    let test = test
        .file("source/one/data/table.csv", "a,b\n1,3\n")
        .file("source/one/new.txt", "fresh\n")
        .file("source/one/picture.bin", [0, 159, 146, 150]);
    std::fs::remove_dir_all(test.path("source/one/scripts")).unwrap();
    let shown = skills(&test, &["update", "--to", "skills", "--dry-run"]).run().success();
    for text in ["table.csv", "1,2", "1,3", "new.txt", "fresh", "run.py", "picture.bin"] {
        shown.check(shown.stderr.contains(text), format_args!("{text:?} is not shown"));
    }
    assert_eq!(files(&test.path("skills")), before, "nothing was changed");
    let refused = skills(&test, &["update", "--to", "skills"]).run().status(2);
    refused.stderr_has("--yes");
    assert_eq!(files(&test.path("skills")), before, "nothing was changed");
    let run = change(&test, &["update", "--json"]).success();
    let expected = [("one", "updated"), ("two", "unchanged")];
    assert_eq!(actions(&run), expected.map(|(name, action)| (name.into(), action.into())));
    assert_eq!(files(&test.path("skills/one")), files(&test.path("source/one")));
    let locked = &lock(&test)["skills"]["one"]["files"];
    assert_eq!(locked["data/table.csv"], super::digest(b"a,b\n1,3\n"));
    assert!(locked.get("scripts/run.py").is_none());
    let run = change(&test, &["update", "--json"]).success();
    assert!(actions(&run).iter().all(|(_, action)| action == "unchanged"));
}

/// Only the named skills; a name that is not in the lock file is an error.
#[test]
fn single_skills_can_be_updated() {
    let test = with_source().file("skills/by-hand/SKILL.md", document("by-hand"));
    added(&test);
    let test = test.file("source/one/new", "x").file("source/two/new", "x");
    let before = files(&test.path("skills"));
    for name in ["absent", "by-hand", "../one", "One"] {
        for words in [&["update", name][..], &["remove", name], &["update", "one", name]] {
            let run = change(&test, words);
            run.check(run.status != 0, format_args!("{words:?}"));
            run.stdout_is_empty().stderr_has(name);
            assert_eq!(files(&test.path("skills")), before, "{words:?}");
        }
    }
    change(&test, &["update", "two"]).success().stdout("updated: skills/two\n");
    assert!(test.exists("skills/two/new") && !test.exists("skills/one/new"));
}

/// A skill that was changed by hand stays as it is, except with `--force`.
#[test]
fn skills_changed_by_hand_stay() {
    type Edit = fn(Test) -> Test;
    let edits: [(&str, Edit); 3] = [
        ("changed", |test| test.file("skills/one/SKILL.md", "by hand")),
        ("deleted", |test| {
            std::fs::remove_file(test.path("skills/one/data/table.csv")).unwrap();
            test
        }),
        ("linked", |test| test.link("skills/one/link", "SKILL.md")),
    ];
    for (what, edit) in edits {
        let test = with_source();
        added(&test);
        let test = edit(test).file("source/one/new", "x").file("source/two/new", "x");
        let before = files(&test.path("skills/one"));
        let locked = lock(&test)["skills"]["one"].clone();
        for command in [&["update"][..], &["remove", "one"], &["restore"]] {
            let run = change(&test, command).status(1);
            run.stderr_has("one").stderr_has("--force");
            assert_eq!(files(&test.path("skills/one")), before, "{what} {command:?}");
            assert_eq!(lock(&test)["skills"]["one"], locked, "{what} {command:?}");
        }
        assert!(test.exists("skills/two/new"), "other skills are updated");
        change(&test, &["update", "--force"]).success();
        let mut found = files(&test.path("skills/one"));
        assert_eq!(found.remove("link").is_some(), what == "linked", "what was added stays");
        assert_eq!(found, files(&test.path("source/one")), "{what}");
        let test = if what == "linked" { test } else { edit(test) };
        change(&test, &["remove", "one", "--force"]).success();
        assert!(!test.exists("skills/one"));
    }
}

/// A source that is gone, or has lost the skill: it stays.
#[test]
fn skills_that_the_source_lost_stay() {
    let test = with_source();
    added(&test);
    std::fs::rename(test.path("source/one"), test.path("source/renamed")).unwrap();
    let test = test.file("source/two/new", "x");
    let run = change(&test, &["update", "--json"]).status(1);
    let expected = [("one", "kept"), ("two", "updated")];
    assert_eq!(actions(&run), expected.map(|(name, action)| (name.into(), action.into())));
    assert!(test.exists("skills/one/SKILL.md") && lock(&test)["skills"]["one"].is_object());
    std::fs::rename(test.path("source"), test.path("elsewhere")).unwrap();
    let before = files(&test.path("skills"));
    let run = change(&test, &["update"]);
    run.check(run.status != 0, "there is no source");
    assert_eq!(files(&test.path("skills")), before);
}

/// A skill that was moved in its source: the new folder is named, and adding it again takes it.
#[test]
fn moved_skills_are_followed_when_they_are_added_again() {
    let test = with_source();
    added(&test);
    std::fs::create_dir_all(test.path("source/office")).unwrap();
    std::fs::rename(test.path("source/one"), test.path("source/office/one")).unwrap();
    let test = test.file("source/office/one/new.txt", "new").file("skills/one/mine.txt", "mine");
    let run = change(&test, &["update"]).status(1);
    run.stderr_has("no skill in the folder `one` any more, but one in `office/one`");
    let run = change(&test, &["add", "./source"]).success();
    run.stdout_has("updated: skills/one\n").stderr_has("+ new.txt");
    assert_eq!(lock(&test)["skills"]["one"]["folder"], "office/one");
    assert_eq!(
        ["new.txt", "mine.txt"].map(|path| test.exists(&format!("skills/one/{path}"))),
        [true; 2]
    );
    // Not if it was changed by hand, and not while the old folder is there.
    std::fs::rename(test.path("source/office"), test.path("source/desk")).unwrap();
    let test = test.file("skills/one/SKILL.md", "by hand");
    change(&test, &["add", "./source"]).status(1).stderr_has("`SKILL.md` was changed");
    assert_eq!(test.read("skills/one/SKILL.md"), "by hand");
    change(&test, &["update", "--force"]).status(1);
    let test = test.file("source/more/two/SKILL.md", document("two") + "another");
    std::fs::rename(test.path("source/two"), test.path("source/zwei")).unwrap();
    std::fs::create_dir_all(test.path("source/two")).unwrap();
    std::fs::rename(test.path("source/zwei/SKILL.md"), test.path("source/two/SKILL.md")).unwrap();
    change(&test, &["add", "./source", "--skill", "two"]).status(1);
    assert_eq!(lock(&test)["skills"]["two"]["folder"], "two");
}

/// `venv/`, `node_modules/` and `__pycache__/` of the old version stay.
#[test]
fn what_tools_created_stays() {
    let test = with_source();
    added(&test);
    let kept = ["venv/bin/x", "node_modules/a/b.js", "scripts/__pycache__/run.pyc"];
    let test =
        kept.iter().fold(test, |test, path| test.file(&format!("skills/one/{path}"), "kept"));
    let test = test.file("source/one/SKILL.md", document("one") + "new\n");
    change(&test, &["update"]).success().stdout_has("updated: skills/one\n");
    for path in kept {
        assert_eq!(test.read(&format!("skills/one/{path}")), "kept");
    }
    assert!(test.read("skills/one/SKILL.md").ends_with("new\n"));
    // They are no changes by hand.
    change(&test, &["update"]).success().stdout_lacks("updated");
    change(&test, &["remove", "one"]).success();
    assert!(!test.exists("skills/one"));
}

/// A server that sends other bytes for the same revision.
#[test]
fn other_files_for_the_same_revision_are_refused() {
    let archive = |text: &str, commit_id: &str| {
        let files = [commit(commit_id), file("repo/one/SKILL.md", document("one") + text)];
        Reply::status(200).body(tar_gz(&files))
    };
    let other = COMMIT.replace('0', "f");
    let replies = [("a", COMMIT), ("b", COMMIT), ("a", COMMIT), ("c", &other)];
    let server = Server::start(replies.map(|(text, commit_id)| archive(text, commit_id)));
    let test = Test::new();
    let address = format!("http://127.0.0.1:{}/repo.tar.gz", server.port());
    change(&test, &["add", &address]).success();
    assert_eq!(lock(&test)["skills"]["one"]["revision"], COMMIT);
    let before = files(&test.path("skills"));
    let run = change(&test, &["update", "--json"]).status(1);
    assert_eq!(actions(&run), [("one".into(), "kept".into())]);
    run.stderr_has("same revision");
    assert_eq!(files(&test.path("skills")), before);
    change(&test, &["update"]).success().stdout("unchanged: skills/one\n");
    change(&test, &["update"]).success().stdout("updated: skills/one\n");
    assert_eq!(lock(&test)["skills"]["one"]["revision"], other);
    server.finish();
}

/// A skill that is missing comes back.
#[test]
fn missing_skills_come_back() {
    let test = with_source();
    added(&test);
    let before = files(&test.path("skills"));
    std::fs::remove_dir_all(test.path("skills/one")).unwrap();
    change(&test, &["update"]).success();
    assert_eq!(files(&test.path("skills")), before);
}

/// `remove` removes folders and entries, and nothing else.
#[test]
fn removed_skills_are_gone() {
    let test = with_source().file("skills/by-hand/SKILL.md", document("by-hand"));
    added(&test);
    let before = files(&test.path("skills"));
    let shown = skills(&test, &["remove", "one", "--to", "skills", "--dry-run"]).run().success();
    shown.stdout("would be removed: skills/one\n");
    skills(&test, &["remove", "one", "--to", "skills"]).run().status(2);
    assert_eq!(files(&test.path("skills")), before);
    change(&test, &["remove", "one"]).success().stdout("removed: skills/one\n");
    let names = files(&test.path("skills")).into_keys().collect::<Vec<_>>();
    assert_eq!(names, ["by-hand/SKILL.md", "skills-runner.lock", "two/SKILL.md"]);
    assert!(lock(&test)["skills"].get("one").is_none());
    change(&test, &["remove", "two", "two"]).success();
    assert_eq!(lock(&test)["skills"].as_object().unwrap().len(), 0);
    assert!(test.exists("skills/by-hand/SKILL.md"));
    // Nothing is left to do.
    for command in ["restore", "update"] {
        change(&test, &[command]).success().stdout_is_empty();
    }
    change(&test, &["remove", "one"]).status(1).stderr_has("it lists no skill");
    // Without a name nothing is removed.
    let run = change(&test, &["remove"]);
    run.check(run.status == 2, "a name is missing");
    // A skill that is missing already leaves only its entry.
    added(&test);
    std::fs::remove_dir_all(test.path("skills/one")).unwrap();
    change(&test, &["remove", "one"]).success();
    assert!(lock(&test)["skills"].get("one").is_none());
}

/// A link in the place of a skill is not followed.
#[test]
fn links_in_the_place_of_skills_are_not_followed() {
    for command in [&["update", "one"][..], &["remove", "one"], &["restore"]] {
        for force in [false, true] {
            let test = with_source().file("elsewhere/SKILL.md", "other");
            added(&test);
            std::fs::rename(test.path("skills/one"), test.path("moved")).unwrap();
            let test = test.link("skills/one", "../elsewhere").file("source/one/new", "x");
            let words = [command, if force { &["--force"] } else { &[] }].concat();
            let run = change(&test, &words);
            if !force {
                run.check(run.status == 1, "it was changed by hand");
                assert!(test.path("skills/one").is_symlink(), "{words:?}");
            }
            let elsewhere = files(&test.path("elsewhere"));
            assert_eq!(elsewhere.len(), 1, "{words:?}: {elsewhere:?}");
            assert_eq!(test.read("elsewhere/SKILL.md"), "other", "{words:?}");
        }
    }
}
