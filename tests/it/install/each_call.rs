//! A change that ends, or fails, at each of its system calls in turn.

use super::change;
use super::kills::{
    add_own_files, assert_agree, assert_old_or_new, has_own_files, skill, write_source,
};
use crate::harness::{Outcome, Test, shell_line_works};

const RENAMES: &str = "rename,renameat,renameat2";

/// Runs the program so that this happens at this call, counted from 1.
fn with_fault(test: &Test, calls: &str, fault: &str, number: u32, words: &[&str]) -> Outcome {
    let line = format!(
        "exec strace -f -qq -o calls -e trace={calls} \
         -e inject={calls}:{fault}:when={number} skills-runner \"$@\""
    );
    let test = test.next_run().shell(&line).args(["skills"]).args(words);
    test.args(["--to", "skills", "--yes"]).run()
}

/// Adds and updates with the fault at the first of these calls, then at the second, and so on.
/// Afterwards each skill is as before or new, and the next command finishes or undoes it.
#[track_caller]
fn assert_whole_after(calls: &str, fault: &str) {
    for words in [&["add", "./source"][..], &["update"]] {
        let is_update = words[0] == "update";
        let mut number = 1;
        loop {
            let test = Test::new();
            write_source(&test, 1);
            if is_update {
                change(&test, &["add", "./source"]).success();
                add_own_files(&test);
                write_source(&test, 2);
            }
            let old = ["a", "b", "c"].map(|name| skill(&test, "skills", name));
            let run = with_fault(&test, calls, fault, number, words);
            let was_hit = run.status == -9 || test.read("calls").contains("(INJECTED)");
            assert_old_or_new(&test, &old, number);
            let is_old = ["a", "b", "c"].map(|name| skill(&test, "skills", name)) == old;
            run.check(run.status != 0 || !is_old, "reported as done, but it is not");
            let next = if is_update { &["update"] } else { words };
            change(&test, next).success();
            assert_agree(&test, number);
            assert!(!is_update || has_own_files(&test), "call {number}: lost");
            if !was_hit {
                break;
            }
            number += 1 + number / 8;
        }
        assert!(number > 1, "{calls} of {words:?}: there are no such calls");
    }
}

fn strace_works() -> bool {
    shell_line_works("strace -e trace=rename -e inject=rename:error=EIO:when=9 true")
}

#[test]
fn changes_that_end_at_a_rename_are_finished_or_undone() {
    if strace_works() {
        assert_whole_after(RENAMES, "signal=KILL");
    }
}

#[test]
fn changes_whose_renames_fail_are_finished_or_undone() {
    if strace_works() {
        assert_whole_after(RENAMES, "error=EIO");
    }
}

#[test]
#[ignore = "long"]
fn changes_that_end_at_any_call_are_finished_or_undone() {
    if !strace_works() {
        return;
    }
    let all = ["syncfs", "mkdir,mkdirat", "unlink,unlinkat,rmdir", "write", "flock"];
    for calls in all {
        for fault in ["signal=KILL", "error=ENOSPC"] {
            // A lock that cannot be had is no error on some file systems.
            if (calls, fault) != ("flock", "error=ENOSPC") {
                println!("{calls} {fault}");
                assert_whole_after(calls, fault);
            }
        }
    }
}
