//! Hostile archives: nothing appears outside, and no skill is there in part.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::hostile_table::{Attack, attacks, good};
use super::pack::{Item, entry, file, gzip, tar, tar_gz, zip};
use super::{Files, digest, document, files, skills};
use crate::harness::{Outcome, Test, seconds};

/// A folder with canaries around the skills folder.
fn with_canaries() -> Test {
    Test::new().file("out", "canary").file("outside/file", "canary").file("home/kept", "canary")
}

/// Everything outside of the skills folder.
fn outside(test: &Test) -> Files {
    let mut found = files(&test.path(""));
    found.retain(|path, _| !path.starts_with("skills/") && !path.starts_with("x."));
    found
}

/// Adds an archive to an empty folder, and checks what is there afterwards.
#[track_caller]
fn attack(test: &Test, it: &Attack) {
    let name = &it.name;
    let test = test.next_run().file(it.file, &it.bytes);
    let _ = fs::remove_dir_all(test.path("skills"));
    let before = outside(&test);
    let path = format!("./{}", it.file);
    let run = skills(&test, &["add", &path, "--to", "skills", "--yes"]);
    let run = run.memory_limit(256 << 20).timeout(seconds(60.0)).run();
    run.check(outside(&test) == before, format_args!("{name}: something changed outside"));
    run.check(run.status == 0 || run.status == 1, format_args!("{name}: a strange status"));
    run.check(run.status == 1 || !it.must_fail, format_args!("{name}: it was not refused"));
    run.check(run.status == 0 || !run.stderr.is_empty(), format_args!("{name}: no reason"));
    let is_clean = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
    let is_plain = is_clean(&run.stdout) && is_clean(&run.stderr);
    run.check(is_plain, format_args!("{name}: control characters are shown"));
    assert_whole(&test, &run, name);
}

/// Each skill in the folder is exactly as the lock file lists it.
#[track_caller]
fn assert_whole(test: &Test, run: &Outcome, name: &str) {
    let mut found = files(&test.path("skills"));
    let lock = found.remove("skills-runner.lock").map(|(_, bytes)| bytes);
    let lock: serde_json::Value = match &lock {
        Some(bytes) => serde_json::from_slice(bytes).expect("the lock file is JSON"),
        None => serde_json::json!({"skills": {}}),
    };
    let mut listed = Vec::new();
    for (skill, locked) in lock["skills"].as_object().expect("an object") {
        for (path, digest) in locked["files"].as_object().expect("an object") {
            listed.push((format!("{skill}/{path}"), digest.as_str().unwrap_or("").to_owned()));
        }
    }
    listed.sort();
    let digests = found.iter().map(|(path, (_, bytes))| (path.clone(), digest(bytes)));
    let mut digests: Vec<_> = digests.collect();
    digests.sort();
    run.check(digests == listed, format_args!("{name}: {digests:?} is there, {listed:?} locked"));
    for (path, (mode, _)) in &found {
        let kind = fs::symlink_metadata(test.path("skills").join(path)).unwrap();
        run.check(kind.is_file(), format_args!("{name}: {path} is not a file"));
        run.check(mode & 0o7022 == 0, format_args!("{name}: {path} has the mode {mode:o}"));
    }
    let is_from_outside = found.values().any(|(_, bytes)| bytes == b"canary");
    run.check(!is_from_outside, format_args!("{name}: a file from outside was copied"));
    let folder = fs::metadata(test.path("skills")).map(|it| it.permissions().mode() & 0o777);
    run.check(folder.is_ok_and(|mode| mode >= 0o700) || found.is_empty(), "the folder is closed");
    // The good skill has all its files.
    let is_good = |path: &str| found.contains_key(path);
    let good = good();
    let there = good.iter().filter(|item| is_good(&String::from_utf8_lossy(&item.name))).count();
    let is_changed = name.contains("changed byte") || name.contains("a count of");
    run.check(there == 0 || there == good.len() || is_changed, format_args!("{name}: in part"));
}

/// Tries every archive of a selection, and fails with the names of those that do harm.
#[track_caller]
fn attack_all(step: usize) {
    let test = with_canaries();
    let outside = test.path("outside/absolute").display().to_string();
    let all = attacks(&outside);
    assert!(all.len() >= 200, "{}", all.len());
    let mut failed = Vec::new();
    for it in all.iter().step_by(step) {
        if catch_unwind(AssertUnwindSafe(|| attack(&test, it))).is_err() {
            failed.push(&it.name);
        }
    }
    assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
}

/// A selection of the table.
#[test]
fn hostile_archives_do_no_harm() {
    attack_all(11);
}

/// The whole table.
#[test]
#[ignore = "long"]
fn all_hostile_archives_do_no_harm() {
    attack_all(1);
}

/// The good files alone are added: so refusals have their reason in the attack.
#[test]
fn archives_without_an_attack_are_added() {
    let test = with_canaries();
    for (file, bytes) in [("x.tar.gz", tar_gz(&good())), ("x.zip", zip(&good()))] {
        attack(&test, &Attack { name: file.into(), file, bytes, must_fail: false });
        assert!(test.exists("skills/good/run.sh"), "{file}");
    }
}

/// Numbers and sizes above the limits; the program reads them as a stream.
#[test]
#[ignore = "long"]
fn archives_above_the_limits_are_refused() {
    let test = with_canaries();
    let with = |more: Vec<Item>| [good(), more].concat();
    let many = |start: &str, count: usize| -> Vec<Item> {
        (0..count).map(|number| file(format!("{start}/{}/{number}", number % 100), [])).collect()
    };
    let zeros = gzip(&vec![0; 64 << 20]);
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(65 << 20)
    .collect();
    let parts = noise.chunks(5 << 20).enumerate();
    let parts: Vec<Item> = parts.map(|(at, part)| file(format!("good/{at}.bin"), part)).collect();
    let table: Vec<(&str, &'static str, Vec<u8>)> = vec![
        ("50,001 entries", "x.tar.gz", tar_gz(&with(many("other", 50_001)))),
        ("50,001 entries", "x.zip", zip(&with(many("other", 50_001)))),
        (
            "50,001 folders",
            "x.tar.gz",
            tar_gz(&with(
                (0..50_001).map(|number| entry(b'5', format!("d/{number}/"), "")).collect(),
            )),
        ),
        ("50,001 commits", "x.tar.gz", tar_gz(&with(vec![super::pack::commit("x"); 50_001]))),
        ("10,001 files", "x.tar.gz", tar_gz(&with(many("good", 10_001)))),
        ("10,001 files", "x.zip", zip(&with(many("good", 10_001)))),
        ("files of 65 MiB", "x.tar.gz", tar_gz(&with(parts.clone()))),
        ("files of 65 MiB", "x.zip", zip(&with(parts))),
        ("zeros", "x.tar.gz", tar_gz(&with(vec![file("good/zeros", vec![0; 40 << 20])]))),
        ("zeros", "x.zip", zip(&with(vec![file("good/zeros", vec![0; 40 << 20])]))),
        ("zeros beside the skill", "x.zip", zip(&with(vec![file("zeros", vec![0; 40 << 20])]))),
        ("1 GiB of zeros", "x.tar.gz", [gzip(&tar_start(1 << 30)), zeros.repeat(16)].concat()),
        ("zeros after the end", "x.tar.gz", [tar_gz(&good()), zeros.repeat(17)].concat()),
    ];
    for (name, file, bytes) in table {
        attack(&test, &Attack { name: name.into(), file, bytes, must_fail: true });
        assert!(!test.exists("skills/good"), "{name}");
    }
    // Exactly at the limits.
    let fits = tar_gz(&with(many("good", 9_997)));
    attack(
        &test,
        &Attack { name: "10,000 files".into(), file: "x.tar.gz", bytes: fits, must_fail: false },
    );
    assert!(test.exists("skills/good/run.sh"));
}

/// The good files and the header of a file of this size.
fn tar_start(size: usize) -> Vec<u8> {
    let mut bytes = tar(&good());
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(super::pack::tar_header(&file("zeros", ""), size));
    bytes
}

/// An archive with many skills of which one is hostile: the others are added whole.
#[test]
fn hostile_skills_do_not_stop_others() {
    let test = with_canaries();
    let items = [
        good(),
        vec![
            file("evil/SKILL.md", document("evil")),
            file("evil/twin.md", "x"),
            file("evil/TWIN.md", "y"),
        ],
    ];
    for (file, bytes) in [("x.tar.gz", tar_gz(&items.concat())), ("x.zip", zip(&items.concat()))] {
        attack(&test, &Attack { name: "two skills".into(), file, bytes, must_fail: true });
        assert!(test.exists("skills/good/run.sh") && !test.exists("skills/evil"), "{file}");
    }
}
