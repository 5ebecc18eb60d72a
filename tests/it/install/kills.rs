//! `kill -9` at random moments: each skill is as before or new, and the next command finishes or
//! undoes the change.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::{Files, assert_nothing_left, change, document, files, lock, skills};
use crate::harness::Test;

const OWN_FILES: [&str; 4] =
    ["node_modules/bin/x", "mine.txt", "data/mine.txt", "templates/mine.txt"];

/// Numbers from 0 to below 2³², the same in every run.
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// Writes version `number` of the source: three skills, files in folders, one that comes and goes.
pub(super) fn write_source(test: &Test, number: u32) {
    for (skill, count) in [("a", 3), ("b", 40), ("c", 9)] {
        let folder = test.path(format!("source/{skill}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("data")).unwrap();
        fs::write(folder.join("SKILL.md"), document(skill) + &format!("version {number}\n"))
            .unwrap();
        for file in 0..count {
            let text = format!("{skill} {file} {number}\n").repeat(500);
            fs::write(folder.join(format!("data/{file}.txt")), text).unwrap();
        }
        fs::write(folder.join(format!("only-{}", number % 2)), "x").unwrap();
    }
}

/// The files of a skill without what was added to it.
pub(super) fn skill(test: &Test, folder: &str, name: &str) -> Files {
    let mut found = files(&test.path(folder).join(name));
    found.retain(|path, _| !path.starts_with("node_modules/") && !path.contains("mine"));
    found
}

/// Adds files to a skill, beside those of the source and in folders of their own.
pub(super) fn add_own_files(test: &Test) {
    for path in OWN_FILES {
        let path = test.path("skills/a").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "kept").unwrap();
    }
}

/// Whether all of them are there.
pub(super) fn has_own_files(test: &Test) -> bool {
    OWN_FILES.iter().all(|path| test.exists(&format!("skills/a/{path}")))
}

/// Kills `add` and `update` this many times.
fn kill_many_times(kills: u32) {
    let test = Test::new();
    let mut random = Random(2_463_534_242);
    let (mut killed, mut old) = (0, [Files::new(), Files::new(), Files::new()]);
    // The duration of a whole run, so that the kills fall into it.
    let mut duration = Duration::from_millis(30);
    let mut round = 0;
    while killed < kills {
        round += 1;
        assert!(round < kills * 4, "only {killed} of {round} runs were killed in time");
        write_source(&test, round);
        let is_new = !test.exists("skills/a");
        let has_own = test.exists("skills/a/node_modules");
        let words: &[&str] = if is_new { &["add", "./source"] } else { &["update"] };
        let started = Instant::now();
        let mut running = skills(&test, words).args(["--to", "skills", "--yes"]).spawn();
        let share = f64::from(random.next()) / f64::from(u32::MAX);
        let moment = duration.mul_f64(share * 1.05);
        thread::sleep(moment.saturating_sub(started.elapsed()));
        if running.is_running() {
            running.kill9();
            killed += 1;
        } else {
            duration = (duration + started.elapsed()) / 2;
        }
        drop(running);
        assert_old_or_new(&test, &old, round);
        // The next command: sometimes one that shows, and in the end one that changes.
        if random.next().is_multiple_of(3) {
            test.next_run().args(["skills", "list"]).run().success();
            assert_old_or_new(&test, &old, round);
        }
        if random.next().is_multiple_of(5) {
            // Killed again while it finishes or undoes the first one.
            let running = skills(&test, words).args(["--to", "skills", "--yes"]).spawn();
            thread::sleep(duration.mul_f64(f64::from(random.next()) / f64::from(u32::MAX)));
            drop(running);
            assert_old_or_new(&test, &old, round);
        }
        // Finishes or undoes it; there may be nothing to update then.
        let next = change(&test, &["update"]);
        let is_there = test.exists("skills/a");
        next.check(next.status == 0 || !is_there, "the update failed");
        if !is_there {
            change(&test, &["add", "./source"]).success();
        }
        assert_agree(&test, round);
        assert!(!has_own || has_own_files(&test), "round {round}: files of the user are lost");
        old = ["a", "b", "c"].map(|name| skill(&test, "skills", name));
        if random.next().is_multiple_of(4) {
            fs::remove_dir_all(test.path("skills")).unwrap();
            old = Default::default();
        } else if !test.exists("skills/a/node_modules") {
            add_own_files(&test);
        }
    }
    println!("{killed} kills in {round} runs of about {duration:?}");
}

/// Each skill is byte for byte the old or the new version.
#[track_caller]
pub(super) fn assert_old_or_new(test: &Test, old: &[Files; 3], round: u32) {
    for (name, old) in ["a", "b", "c"].iter().zip(old) {
        let now = skill(test, "skills", name);
        let new = skill(test, "source", name);
        let is_whole = now == *old || now == new;
        assert!(is_whole, "round {round}: {name} is in part: {:?}", now.keys());
    }
}

/// Lock file and folders agree, and they are the source.
#[track_caller]
pub(super) fn assert_agree(test: &Test, round: u32) {
    assert_nothing_left(test);
    for name in ["a", "b", "c"] {
        assert_eq!(
            skill(test, "skills", name),
            skill(test, "source", name),
            "round {round}: {name}"
        );
    }
    let list = test.next_run().env("SKILLS_LOCKED", "on").args(["skills", "list", "--json"]).run();
    let list = list.success().stdout_json();
    let states = list["skills"].as_array().unwrap().iter().map(|skill| skill["status"].clone());
    // A file of the user is a difference.
    let first = if test.exists("skills/a/mine.txt") { "error" } else { "ok" };
    assert_eq!(states.collect::<Vec<_>>(), [first, "ok", "ok"], "round {round}");
    assert_eq!(lock(test)["skills"].as_object().unwrap().len(), 3);
    assert!(
        !test.exists("skills/a/mine.txt") || has_own_files(test),
        "round {round}: files of the user are there in part"
    );
}

#[test]
fn killed_changes_are_finished_or_undone() {
    kill_many_times(20);
}

#[test]
#[ignore = "long"]
fn five_hundred_killed_changes_are_finished_or_undone() {
    kill_many_times(500);
}

/// A `remove` that is killed: each skill is there whole, or not at all.
#[test]
fn killed_removals_are_finished_or_undone() {
    let mut random = Random(88_172_645);
    let test = Test::new();
    write_source(&test, 1);
    for round in 0..20 {
        change(&test, &["add", "./source"]);
        let old = ["a", "b", "c"].map(|name| skill(&test, "skills", name));
        let remove = ["remove", "a", "b", "--to", "skills", "--yes"];
        let running = skills(&test, &remove).spawn();
        thread::sleep(Duration::from_micros(u64::from(random.next() % 20_000)));
        drop(running);
        for (name, old) in ["a", "b", "c"].iter().zip(&old) {
            let now = skill(&test, "skills", name);
            assert!(now == *old || (now.is_empty() && *name != "c"), "round {round}: {name}");
        }
        change(&test, &["update"]).success();
        let names: Vec<String> =
            lock(&test)["skills"].as_object().unwrap().keys().cloned().collect();
        for name in ["a", "b", "c"] {
            assert_eq!(
                names.contains(&name.into()),
                test.exists(&format!("skills/{name}")),
                "{round}"
            );
        }
    }
}
