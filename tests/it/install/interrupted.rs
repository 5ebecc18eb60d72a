//! Ctrl+C during a change: the folder is as before.

use std::time::Duration;

use super::pack::{file, tar_gz, zip};
use super::{assert_nothing_left, change, document, files, skills};
use crate::harness::{Reply, Server, Test, seconds, wait_until};

/// An archive that takes a while to copy: many files.
fn large() -> Vec<u8> {
    let many = (0..9_000).map(|number| {
        file(format!("one/{}/{number}.txt", number % 50), number.to_string().repeat(100))
    });
    let items: Vec<_> =
        std::iter::once(file("one/SKILL.md", document("one"))).chain(many).collect();
    zip(&items)
}

/// During the download, before and after its first bytes.
#[test]
fn downloads_can_be_interrupted() {
    let bytes = tar_gz(&[file("one/SKILL.md", document("one"))]);
    let slow = Reply::status(200).body(bytes).pace(seconds(0.5)).hang();
    for (reply, signal, status) in [
        (Reply::empty().hang(), libc::SIGINT, 130),
        (slow.clone(), libc::SIGINT, 130),
        (slow, libc::SIGTERM, 143),
    ] {
        for to in ["skills", "new/deep"] {
            let server = Server::start([reply.clone()]);
            let test = Test::new();
            let before = files(&test.path(""));
            let address = format!("http://127.0.0.1:{}/x.tar.gz", server.port());
            let running = skills(&test, &["add", &address, "--to", to, "--yes"]).spawn();
            server.wait_for_requests(1);
            running.signal(signal);
            let run = running.wait();
            run.check(run.status == status || run.status == -signal, format_args!("not {status}"));
            run.check(run.stdout.is_empty(), "something was reported as added");
            let run = run.took_at_most(seconds(10.0));
            assert_eq!(files(&test.path("")), before, "{}", run.stderr);
            assert!(!test.exists("new"), "a folder is left");
        }
    }
}

/// During the copy, from an archive and from a folder, and of an update.
#[test]
fn copies_can_be_interrupted() {
    let test = Test::new()
        .file("old.zip", zip(&[file("one/SKILL.md", document("one"))]))
        .file("x.zip", large());
    for is_update in [false, true] {
        let _ = std::fs::remove_dir_all(test.path("skills"));
        let words: &[&str] = if is_update { &["update"] } else { &["add", "./source.zip"] };
        if is_update {
            std::fs::copy(test.path("old.zip"), test.path("source.zip")).unwrap();
            change(&test, &["add", "./source.zip"]).success();
        }
        std::fs::copy(test.path("x.zip"), test.path("source.zip")).unwrap();
        let before = files(&test.path("skills"));
        let running = skills(&test, words).args(["--to", "skills", "--yes"]).spawn();
        let staged = test.path("skills/.skills-runner-install/new/one/SKILL.md");
        assert!(wait_until(Duration::from_secs(20), || staged.exists()), "it is not copied there");
        running.signal(libc::SIGINT);
        let run = running.wait();
        assert_nothing_left(&test);
        let is_interrupted = run.status == 130 || run.status == -libc::SIGINT;
        run.check(is_interrupted, "it was not interrupted");
        assert_eq!(files(&test.path("skills")), before, "is_update: {is_update}");
        assert!(is_update == test.exists("skills/one"));
    }
}

/// At the question: the same as no.
#[test]
fn questions_can_be_interrupted() {
    let test = super::with_source();
    let before = files(&test.path(""));
    for key in ['c', 'd'] {
        let add = skills(&test, &["add", "./source", "--to", "new/deep"]);
        let mut terminal = add.spawn_on_terminal();
        terminal.expect("[y/N]").ctrl(key);
        let run = terminal.wait_exit();
        run.check(run.status != 0, format_args!("Ctrl+{key} agreed"));
        assert_eq!(files(&test.path("")), before, "Ctrl+{key}");
        assert!(!test.exists("new"));
    }
    let add = skills(&test, &["add", "./source", "--to", "new/deep"]);
    let mut terminal = add.spawn_on_terminal();
    terminal.expect("[y/N]").hang_up();
    terminal.wait_exit();
    assert_eq!(files(&test.path("")), before, "a closed terminal");
    assert!(!test.exists("new"));
}

/// A command that waits for another one can be interrupted, too.
#[test]
fn waiting_commands_can_be_interrupted() {
    let test = super::with_source();
    let add = skills(&test, &["add", "./source", "--to", "skills"]);
    let mut first = add.spawn_on_terminal();
    first.expect("[y/N]");
    let mut second = skills(&test, &["add", "./source", "--to", "skills", "--yes"]).spawn();
    second.read_stderr_until("waiting");
    second.signal(libc::SIGINT);
    let run = second.wait();
    run.check(run.status == 130 || run.status == -libc::SIGINT, "it was not interrupted");
    first.type_line("y");
    first.wait_exit().success();
    assert_nothing_left(&test);
    assert!(test.exists("skills/one/SKILL.md"));
}
