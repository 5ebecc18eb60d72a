//! A full disk: the old files stay, and it is reported.

use super::{added, document, files, skills, with_source};
use crate::harness::{Outcome, Test, shell_line_works};

/// Runs the program with files of at most this many blocks of 512 bytes.
fn with_file_limit(test: &Test, blocks: u32, words: &[&str]) -> Outcome {
    // Without the signal, writing fails as on a full disk.
    let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec skills-runner \"$@\"");
    test.next_run().shell(&line).args(["skills"]).args(words).run()
}

/// Files that cannot be written whole.
#[test]
fn failed_writes_change_nothing() {
    let test = with_source().file("source/one/large", vec![7; 100_000]);
    let before = files(&test.path(""));
    let words = ["add", "./source", "--to", "skills", "--yes"];
    let run = with_file_limit(&test, 100, &words);
    run.check(run.status != 0, "it was added");
    run.stdout_is_empty().stderr_has("File too large");
    assert_eq!(files(&test.path("")), before);
    added(&test);
    let before = files(&test.path("skills"));
    let test = test.file("source/one/large", vec![8; 100_000]).file("source/one/new", "x");
    let run = with_file_limit(&test, 100, &["update", "--to", "skills", "--yes"]);
    run.check(run.status != 0, "it was updated");
    assert_eq!(files(&test.path("skills")), before);
}

/// A small file system that fills up at each of many sizes.
#[test]
fn full_disks_change_nothing() {
    if !shell_line_works("unshare -m mount -t tmpfs -o size=64k none /mnt") {
        return;
    }
    for kib in [0, 8, 24, 40, 96, 160, 300] {
        let test = with_source().file("source/one/large", vec![7; 100_000]);
        added(&test);
        std::fs::rename(test.path("skills"), test.path("before")).unwrap();
        let before = files(&test.path("before"));
        let test = test.folder("skills").folder("after").file("source/two/large", vec![8; 60_000]);
        let test = test.file("source/one/new", "x").file("source/one/large", vec![8; 100_000]);
        // First room for the old skills, then a ballast that leaves this much.
        let line = format!(
            "exec unshare -m sh -c 'set -e; mount -t tmpfs -o size=2m none skills; \
             cp -a before/. skills/; cd skills; rm -f ../full; \
             used=$(df -k --output=used . | tail -1); \
             mount -o remount,size=$((used + {kib}))k .; cd ..; status=0; \
             skills-runner \"$@\" || status=$?; cp -a skills/. after/; exit $status' sh \"$@\""
        );
        let update = ["skills", "update", "--to", "skills", "--yes"];
        let run = test.next_run().shell(&line).args(update).run();
        let mut after = files(&test.path("after"));
        let left: Vec<_> = after.keys().filter(|path| path.contains(".skills-runner")).collect();
        run.check(left.is_empty(), format_args!("{kib} KiB: left behind: {left:?}"));
        if run.status == 0 {
            after.remove("skills-runner.lock");
            let mut source = files(&test.path("source"));
            source.remove("README.md");
            assert_eq!(after, source, "{kib} KiB");
        } else {
            run.check(run.stderr.contains("space"), format_args!("{kib} KiB: no reason"));
            assert_eq!(after, before, "{kib} KiB");
        }
        run.check(kib > 0 || run.status != 0, "there was no space");
        run.check(kib < 300 || run.status == 0, "there was enough space");
    }
}

/// The lock file's folder cannot be written.
#[test]
fn read_only_folders_are_reported() {
    if !shell_line_works("unshare -m sh -c 'mount -t tmpfs none /mnt && mount -o remount,ro /mnt'")
    {
        return;
    }
    let test = with_source();
    added(&test);
    let test = test.file("source/one/new", "x").file("other/three/SKILL.md", document("three"));
    let before = files(&test.path(""));
    let line = "exec unshare -m sh -c 'mount --bind skills skills && mount -o remount,ro,bind skills && exec skills-runner \"$@\"' sh \"$@\"";
    let commands: [&[&str]; 3] = [&["update"], &["remove", "one"], &["add", "./other"]];
    for words in commands {
        let run = test.next_run().shell(line).args(["skills"]).args(words);
        let run = run.args(["--to", "skills", "--yes"]).run();
        run.check(run.status != 0, format_args!("{words:?}"));
        run.stderr_has("Read-only file system");
        assert_eq!(files(&test.path("")), before, "{words:?}");
    }
    skills(&test, &["update", "--to", "skills", "--yes"]).run().success();
}
