//! `skills restore`: exactly what the lock file says, or nothing.

use std::process::Command;

use super::pack::{commit, executable, file, link, tar_gz, zip};
use super::{
    actions, added, assert_nothing_left, change, document, files, lock, skills, with_source,
};
use crate::harness::{Outcome, Reply, Server, Test};

const COMMIT: &str = "00112233445566778899aabbccddeeff00112233";

/// Copies only the lock file to a new folder and restores it there.
#[track_caller]
fn restored(test: &Test) -> Outcome {
    let lock = test.read("skills/skills-runner.lock");
    let _ = std::fs::remove_dir_all(test.path("elsewhere"));
    let test = test.next_run().file("elsewhere/skills-runner.lock", lock);
    let run = skills(&test, &["restore", "--to", "elsewhere", "--yes"]).run();
    assert_nothing_left(&test);
    run
}

/// From folders, archives and servers: the same files with the same modes.
#[test]
fn skills_are_restored_from_the_lock_file_alone() {
    let items = [
        executable("three/run.sh", "echo 3\n"),
        file("three/SKILL.md", document("three")),
        link("three/again", "run.sh"),
    ];
    let served = [commit(COMMIT), file("x/four/SKILL.md", document("four"))];
    let served = Reply::status(200).body(tar_gz(&served));
    let server = Server::start([served.clone(), served]);
    let test = with_source()
        .link("source/one/link", "scripts")
        .file("local.zip", zip(&items))
        .file("local.tar.gz", tar_gz(&items).repeat(1));
    added(&test);
    change(&test, &["add", "./local.zip"]).success();
    change(&test, &["add", &format!("http://127.0.0.1:{}/x.tar.gz", server.port())]).success();
    let run = restored(&test).success();
    for name in ["one", "two", "three", "four"] {
        run.check(run.stdout.contains(&format!("restored: elsewhere/{name}\n")), name);
    }
    assert_eq!(files(&test.path("elsewhere")), files(&test.path("skills")));
    let modes = files(&test.path("elsewhere"));
    assert_eq!(["three/run.sh", "one/link/run.py"].map(|path| modes[path].0 & 0o111), [0o111; 2]);
    server.finish();
}

/// Nothing is to be done, or one skill is missing.
#[test]
fn only_missing_skills_are_restored() {
    let test = with_source();
    added(&test);
    let before = files(&test.path("skills"));
    // The present skills need no source.
    std::fs::rename(test.path("source/two"), test.path("two")).unwrap();
    std::fs::remove_dir_all(test.path("skills/one")).unwrap();
    let run = change(&test, &["restore", "--json"]).success();
    let expected = [("one", "restored"), ("two", "unchanged")];
    assert_eq!(actions(&run), expected.map(|(name, action)| (name.into(), action.into())));
    assert_eq!(files(&test.path("skills")), before);
    std::fs::rename(test.path("source"), test.path("away")).unwrap();
    change(&test, &["restore"]).success();
    std::fs::remove_dir_all(test.path("skills/one")).unwrap();
    let before = files(&test.path("skills"));
    let dry = skills(&test, &["restore", "--to", "skills"]).run();
    dry.check(dry.status != 0, "the source is gone");
    assert_eq!(files(&test.path("skills")), before);
}

/// Without a terminal the status is 2, and `--dry-run` changes nothing.
#[test]
fn restoring_is_asked_about() {
    let test = with_source();
    added(&test);
    std::fs::remove_dir_all(test.path("skills/one")).unwrap();
    let before = files(&test.path(""));
    skills(&test, &["restore", "--to", "skills"]).run().status(2).stderr_has("--yes");
    skills(&test, &["restore", "--to", "skills", "--dry-run"]).run().success();
    assert_eq!(files(&test.path("")), before);
}

/// A skill that was changed by hand stays, except with `--force`.
#[test]
fn changes_by_hand_stay_without_force() {
    let test = with_source();
    added(&test);
    let before = files(&test.path("skills"));
    let test = test.file("skills/one/scripts/run.py", "by hand").file("skills/one/more", "x");
    std::fs::remove_dir_all(test.path("skills/two")).unwrap();
    let run = change(&test, &["restore", "--json"]).status(1);
    let expected = [("one", "kept"), ("two", "restored")];
    assert_eq!(actions(&run), expected.map(|(name, action)| (name.into(), action.into())));
    assert_eq!(test.read("skills/one/scripts/run.py"), "by hand");
    change(&test, &["restore", "--force"]).success().stderr_has("files that you added stay: more");
    assert_eq!(test.read("skills/one/more"), "x");
    // Now only the added file differs: without `--force` that is reported.
    change(&test, &["restore"]).status(1).stderr_has("`more` was added");
    change(&test, &["restore", "--force"]).success().stdout_has("unchanged: skills/one\n");
    std::fs::remove_file(test.path("skills/one/more")).unwrap();
    change(&test, &["restore"]).success();
    assert_eq!(files(&test.path("skills")), before);
}

/// A source with other bytes, one that lost a skill, or a missing one: nothing is changed.
#[test]
fn sources_with_other_bytes_are_refused() {
    type Edit = fn(Test) -> Test;
    let edits: [(&str, Edit); 5] = [
        ("changed", |test| test.file("source/one/scripts/run.py", "print(43)\n")),
        ("added", |test| test.file("source/one/extra", "x")),
        ("deleted", |test| {
            std::fs::remove_file(test.path("source/one/data/table.csv")).unwrap();
            test
        }),
        ("lost", |test| {
            std::fs::remove_dir_all(test.path("source/one")).unwrap();
            test
        }),
        ("gone", |test| {
            std::fs::remove_dir_all(test.path("source")).unwrap();
            test
        }),
    ];
    for (what, edit) in edits {
        let test = with_source();
        added(&test);
        let test = edit(test);
        std::fs::remove_dir_all(test.path("skills/one")).unwrap();
        std::fs::remove_dir_all(test.path("skills/two")).unwrap();
        let before = files(&test.path("skills"));
        let run = change(&test, &["restore"]);
        run.check(run.status != 0, format_args!("{what}: restored"));
        run.stdout_is_empty();
        assert_eq!(files(&test.path("skills")), before, "{what}: neither skill is restored");
        restored(&test).check(!test.exists("elsewhere/two"), what);
    }
}

/// The archive has other bytes, but the same files: they count.
#[test]
fn files_count_and_not_the_bytes_of_the_archive() {
    let items = [file("one/SKILL.md", document("one"))];
    let test = Test::new().file("a.zip", zip(&items));
    change(&test, &["add", "./a.zip"]).success();
    let items = [items[0].clone(), file("README.md", "new")];
    let test = test.file("a.zip", zip(&items));
    let run = restored(&test);
    // Exactly what the lock file says is there, or nothing is.
    let is_whole = run.status == 0 && test.exists("elsewhere/one/SKILL.md");
    run.check(is_whole || (run.status != 0 && !test.exists("elsewhere/one")), "half restored");
}

/// Entries of a lock file from elsewhere never write anywhere else.
#[test]
fn hostile_lock_files_write_nothing_outside() {
    let source = "{\"source\":\"SOURCE\",\"folder\":\"one\",\"revision\":null,\"files\":{FILES}}";
    let path = |path: &str| format!("\"{path}\":\"sha256:00\"");
    let table = [
        ("../out", String::new()),
        ("..", String::new()),
        (".", String::new()),
        ("a/b", String::new()),
        ("/tmp/out", String::new()),
        (".git", String::new()),
        ("", String::new()),
        ("one", path("../../out")),
        ("one", path("/etc/out")),
        ("one", String::new()),
    ];
    for (name, listed) in table {
        let test = with_source();
        let folder = test.path("source").display().to_string();
        let entry = source.replace("SOURCE", &folder).replace("FILES", &listed);
        let lock = format!("{{\"version\":1,\"skills\":{{\"{name}\":{entry}}}}}");
        let test = test.file("skills/skills-runner.lock", lock);
        let before = files(&test.path(""));
        for words in
            [&["restore"][..], &["restore", "--force"], &["update"], &["update", "--force"]]
        {
            let run = change(&test, words);
            let is_update = run.status == 0 && name == "one" && words[0] == "update";
            run.check(run.status != 0 || is_update, format_args!("{name:?} {listed} {words:?}"));
            let now = files(&test.path(""));
            let out = now.keys().filter(|path| !path.starts_with("skills/"));
            let known = before.keys().filter(|path| !path.starts_with("skills/"));
            assert_eq!(out.collect::<Vec<_>>(), known.collect::<Vec<_>>(), "{name:?} {words:?}");
        }
    }
}

/// A lock file that is broken is left unharmed; one of a newer version: `upgrade/newer.rs`.
#[test]
fn unreadable_lock_files_are_left_unharmed() {
    for (text, reason) in [
        ("{", "not valid"),
        ("", "not valid"),
        ("[]", "not valid"),
        ("{\"version\":0,\"skills\":{}}", "0 is not a version"),
    ] {
        let test = with_source().file("skills/skills-runner.lock", text);
        let before = files(&test.path(""));
        let commands: [&[&str]; 4] =
            [&["add", "./source"], &["update"], &["remove", "one"], &["restore"]];
        for words in commands {
            let run = change(&test, words).stderr_has(reason).stderr_has("skills-runner.lock");
            run.check(run.status != 0, format_args!("{words:?}"));
            assert_eq!(files(&test.path("")), before, "{words:?}");
        }
    }
    let test =
        with_source().file("elsewhere", "{}").link("skills/skills-runner.lock", "../elsewhere");
    change(&test, &["add", "./source"]);
    assert_eq!(test.read("elsewhere"), "{}", "a link is not followed");
}

/// The bytes of a revision, and not of the branch as it is now.
#[test]
fn the_locked_revision_of_a_repository_is_restored() {
    if !super::git::is_there() {
        return;
    }
    let test = Test::new().file("repo/one/SKILL.md", document("one"));
    let git = super::git::Repository::new(&test, "repo");
    git.commit("first");
    change(&test, &["add", &git.address()]).success();
    let before = files(&test.path("skills/one"));
    let revision = lock(&test)["skills"]["one"]["revision"].as_str().unwrap().to_owned();
    let test = test.file("repo/one/SKILL.md", document("one") + "second\n");
    git.commit("second");
    restored(&test).success();
    assert_eq!(files(&test.path("elsewhere/one")), before);
    change(&test, &["update"]).success().stdout("updated: skills/one\n");
    assert!(test.read("skills/one/SKILL.md").ends_with("second\n"));
    assert_ne!(lock(&test)["skills"]["one"]["revision"], revision);
    let listed =
        Command::new("git").arg("-C").arg(test.path("repo")).args(["status", "-s"]).output();
    assert!(listed.unwrap().stdout.is_empty(), "the source is unchanged");
}
