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
        .file("x.zip", large())
        .folder("tmp");
    let test = test.next_run().env("TMPDIR", test.path("tmp"));
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
        // First they are copied to a temporary folder.
        let is_staged = || files(&test.path("tmp")).keys().any(|path| path.ends_with("/SKILL.md"));
        assert!(wait_until(Duration::from_secs(20), is_staged), "it is not copied there");
        running.signal(libc::SIGINT);
        let run = running.wait();
        assert_nothing_left(&test);
        assert!(
            wait_until(Duration::from_secs(20), || files(&test.path("tmp")).is_empty()),
            "left"
        );
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
    let test = super::with_source().folder("skills");
    let folder = std::fs::File::open(test.path("skills")).unwrap();
    folder.lock().unwrap();
    let mut waiting = skills(&test, &["add", "./source", "--to", "skills", "--yes"]).spawn();
    waiting.read_stderr_until("waiting");
    waiting.signal(libc::SIGINT);
    let run = waiting.wait();
    run.check(run.status == 130 || run.status == -libc::SIGINT, "it was not interrupted");
    assert!(files(&test.path("skills")).is_empty());
    folder.unlock().unwrap();
    change(&test, &["add", "./source"]).success();
}

/// While a download hangs or a question waits, other commands change the folder; `y` then installs
/// beside what they changed, but not over it.
#[test]
fn other_commands_do_not_wait_for_downloads_and_questions() {
    let server = Server::start([Reply::empty().hang()]);
    let test = super::with_source().file("other/three/SKILL.md", document("three"));
    let address = format!("http://127.0.0.1:{}/x.tar.gz", server.port());
    let downloading = skills(&test, &["add", &address, "--to", "skills", "--yes"]).spawn();
    server.wait_for_requests(1);
    change(&test, &["add", "./other"]).success().stderr_lacks("waiting");
    downloading.signal(libc::SIGINT);
    downloading.wait();
    for is_same in [false, true] {
        let mut asking = skills(&test, &["add", "./source", "--to", "skills"]).spawn_on_terminal();
        asking.expect("[y/N]");
        change(&test, &["remove", "three"]).success().stderr_lacks("waiting");
        let name = if is_same { "one" } else { "four" };
        let test = test.next_run().file(&format!("more/{name}/SKILL.md"), document(name));
        change(&test, &["add", &format!("./more/{name}")]).success().stderr_lacks("waiting");
        asking.type_line("y");
        let asked = asking.wait_exit();
        assert_nothing_left(&test);
        let locked = super::lock(&test);
        let names: Vec<&String> = locked["skills"].as_object().unwrap().keys().collect();
        if is_same {
            asked.status(1).terminal_has("a skill has just been changed");
            assert_eq!(names, ["one"]);
        } else {
            asked.success();
            assert_eq!(names, ["four", "one", "two"]);
            change(&test, &["remove", "four", "one", "two"]).success();
            change(&test, &["add", "./other"]).success();
        }
    }
}
