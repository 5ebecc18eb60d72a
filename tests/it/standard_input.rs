//! Standard input as prompt, beside a prompt, and as something to leave alone.

use crate::harness::{Reply, Server, Test, seconds};

fn prompt_sent(prepare: impl Fn(Test) -> Test) -> String {
    let server = Server::start([Reply::text("ok")]);
    prepare(Test::new().endpoint(&server)).run().success().stdout("ok\n");
    server.finish()[0].last_message()["content"].as_str().unwrap().to_string()
}

#[test]
fn it_is_the_prompt_where_no_other_is_given() {
    assert_eq!(prompt_sent(|test| test.stdin("what is\n2 + 2?\n")), "what is\n2 + 2?\n");
    assert_eq!(prompt_sent(|test| test.args(["-"]).stdin("from the dash")), "from the dash");
}

#[test]
fn it_joins_a_prompt() {
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
fn nothing_to_read_is_no_reason_to_wait() {
    assert_eq!(prompt_sent(|test| test.args(["hi"]).stdin_null()), "hi");
    assert_eq!(prompt_sent(|test| test.args(["hi"]).stdin("")), "hi");
    assert_eq!(prompt_sent(|test| test.args(["-n", "hi"]).stdin("not this")), "hi");
}

/// A pipe that stays open and silent holds nobody up for long.
#[test]
fn a_silent_pipe_is_ignored_after_three_seconds() {
    let server = Server::start([Reply::text("ok")]);
    let run = Test::new().endpoint(&server).args(["hi"]).stdin_open().run();
    run.success()
        .stdout("ok\n")
        .stderr_has("stayed silent")
        .took_at_least(seconds(2.9))
        .took_at_most(seconds(5.0));
    assert_eq!(server.finish()[0].last_message()["content"], "hi");
}

/// After the first byte there is no hurry: a slow writer is heard out.
#[test]
fn a_slow_writer_is_heard_out() {
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
fn ten_megabytes_are_fine_and_twenty_are_refused() {
    let large = "0123456789abcde\n".repeat(655_360);
    let sent = prompt_sent(|test| test.args(["count"]).stdin(large.clone()));
    assert_eq!(sent.len(), large.len() + "count\n\n<stdin>\n</stdin>".len());
    let server = Server::start([]);
    let run = Test::new().endpoint(&server).args(["count"]).stdin(large.repeat(2)).run();
    run.status(2).stderr_has("larger than 16 MiB");
    server.finish();
}

#[test]
fn what_is_not_text_is_replaced_and_told() {
    let server = Server::start([Reply::text("ok")]);
    let run = Test::new().endpoint(&server).args(["hi"]).stdin(b"a\xffb".to_vec()).run();
    run.success().stderr_has("not UTF-8");
    assert!(server.finish()[0].last_message()["content"].as_str().unwrap().contains("a\u{fffd}b"));
}
