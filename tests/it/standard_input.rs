//! Standard input as the prompt, in addition to a prompt, and unused.

use crate::harness::{Reply, Server, Test, seconds};

fn prompt_sent(prepare: impl Fn(Test) -> Test) -> String {
    let server = Server::start([Reply::text("ok")]);
    prepare(Test::new().endpoint(&server)).run().success().stdout("ok\n");
    server.finish()[0].last_message()["content"].as_str().unwrap().to_string()
}

#[test]
fn stdin_is_the_prompt_without_arguments() {
    assert_eq!(prompt_sent(|test| test.stdin("what is\n2 + 2?\n")), "what is\n2 + 2?\n");
    assert_eq!(prompt_sent(|test| test.args(["-"]).stdin("from the dash")), "from the dash");
}

#[test]
fn stdin_is_appended_to_a_prompt() {
    let joined = "sum these\n\n<stdin>\n1\n2\n</stdin>";
    assert_eq!(prompt_sent(|test| test.args(["sum these"]).stdin("1\n2\n")), joined);
    assert_eq!(prompt_sent(|test| test.args(["sum these"]).stdin("1\n2")), joined);
    let from_file = |test: Test| {
        let test = test.file("numbers", "1\n2\n");
        let path = test.path("numbers");
        test.args(["sum these"]).stdin_file(path)
    };
    assert_eq!(prompt_sent(from_file), joined);
}

#[test]
fn empty_stdin_is_not_waited_for() {
    assert_eq!(prompt_sent(|test| test.args(["hi"]).stdin_null()), "hi");
    assert_eq!(prompt_sent(|test| test.args(["hi"]).stdin("")), "hi");
    assert_eq!(prompt_sent(|test| test.args(["-n", "hi"]).stdin("not this")), "hi");
}

/// An open pipe without data delays the run only for a short time.
#[test]
fn silent_pipe_is_ignored_after_three_seconds() {
    let server = Server::start([Reply::text("ok")]);
    let run = Test::new().endpoint(&server).args(["hi"]).stdin_open().run();
    run.success()
        .stdout("ok\n")
        .stderr_has("standard input had no data for")
        .took_at_least(seconds(2.9))
        .took_at_most(seconds(5.0));
    assert_eq!(server.finish()[0].last_message()["content"], "hi");
}

/// After the first byte there is no time limit.
#[test]
fn slow_writer_is_read_to_the_end() {
    let server = Server::start([Reply::text("ok")]);
    let mut running = Test::new().endpoint(&server).args(["hi"]).stdin_open().spawn();
    running.write_stdin("a");
    std::thread::sleep(seconds(3.5));
    running.write_stdin("b");
    running.close_stdin();
    running.wait().success();
    assert_eq!(server.finish()[0].last_message()["content"], "hi\n\n<stdin>\nab\n</stdin>");
}

#[test]
fn ten_megabytes_are_accepted_and_twenty_refused() {
    let large = "0123456789abcde\n".repeat(655_360);
    let sent = prompt_sent(|test| test.args(["count"]).stdin(large.clone()));
    assert_eq!(sent.len(), large.len() + "count\n\n<stdin>\n</stdin>".len());
    let server = Server::start([]);
    let run = Test::new().endpoint(&server).args(["count"]).stdin(large.repeat(2)).run();
    run.status(2).stderr_has("larger than 16 MiB");
    server.finish();
}

#[test]
fn invalid_utf8_is_replaced_and_reported() {
    let server = Server::start([Reply::text("ok")]);
    let run = Test::new().endpoint(&server).args(["hi"]).stdin(b"a\xffb".to_vec()).run();
    run.success().stderr_has("not valid UTF-8");
    assert!(server.finish()[0].last_message()["content"].as_str().unwrap().contains("a\u{fffd}b"));
}
