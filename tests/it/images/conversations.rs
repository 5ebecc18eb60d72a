//! Images in conversations.

use super::{GIF, SKILL, decoded, parts, png, reads, shows};
use crate::harness::{Reply, Server, Test};
use serde_json::json;

/// The question is kept until another replaces it; `/retry` sends it again. Images of an older
/// question do not block the conversation.
#[test]
fn conversation_continues_after_a_refused_image() {
    let refusal = || Reply::error(400, "this model does not support image input");
    let server = Server::start([refusal(), refusal(), Reply::text("plain")]);
    let test = Test::new().file("a.gif", GIF);
    let lines = "/attach a.gif\nlook\n/retry\nwithout\n";
    let run = test.next_run().endpoint(&server).args(["chat"]).stdin(lines);
    run.run().status(1).stdout("plain\n");
    let requests = server.finish();
    assert_eq!(requests[1].json["messages"], requests[0].json["messages"]);
    assert!(shows(&requests[1]) && requests[2].messages().len() == 2);
    assert_eq!(requests[2].last_message()["content"], "without");

    let server = Server::start([
        Reply::text("seen"),
        refusal(),
        Reply::text("blind"),
        Reply::text("still"),
        // Another model may accept images.
        Reply::text("seeing"),
    ]);
    let run = test.endpoint(&server).args(["chat", "-aa.gif", "look"]);
    let run = run.stdin("and now\nand then\n/model other\nagain\n").run();
    run.success().stdout("seen\nblind\nstill\nseeing\n");
    let requests = server.finish();
    let shown: Vec<bool> = requests.iter().map(shows).collect();
    assert_eq!(shown, [true, true, false, false, true]);
    assert_eq!(
        requests[3].messages()[1]["content"],
        "look\n[image left out: the model is shown none]"
    );
}

#[test]
fn attachments_go_with_the_next_question() {
    let server = Server::start(["one", "two", "three", "four"].map(Reply::text));
    let test = Test::new()
        .skill("art", SKILL)
        .file("a.gif", GIF)
        .file("b b.png", png(4, 5, 10))
        .file("home/c.txt", "see\n")
        .endpoint(&server)
        .args(["chat", "-a", "a.gif"]);
    let home = test.path("home");
    let lines = "/attach\nfirst\n/attach\n/attach 'b b.png'\n/clear\n/attach b\\ b.png\n/attach ~/c.txt\n/attach missing\n\
                 /attach\nsecond\n/attach a.gif\n/clear\nthird\n/attach a.gif\n/art now\n";
    let run = test.env("HOME", home).stdin(lines).run();
    // A refused line sets the exit status, as in every piped conversation.
    run.status(1)
        .stdout("one\ntwo\nthree\nfour\n")
        .stderr_has("attached: a.gif (image/gif, 13 bytes, 3x2)")
        .stderr_has("nothing is attached")
        .stderr_has("attached to the next question: b b.png (image/png, 34 bytes, 4x5)")
        .stderr_has("attached: ~/c.txt (text, 4 bytes)")
        .stderr_has("skills-runner: failed to attach `missing`: No such file");
    let requests = server.finish();
    let first = parts(requests[0].last_message());
    assert_eq!((first.len(), &first[0]["text"]), (2, &json!("first")));
    assert_eq!(decoded(&first[1]).1, GIF);
    let second = parts(requests[1].last_message());
    let text = "second\n\n<file name=\"~/c.txt\">\nsee\n</file>";
    assert_eq!((second.len(), &second[0]["text"]), (2, &json!(text)));
    assert_eq!(decoded(&second[1]).0, "image/png");
    assert_eq!(requests[2].last_message()["content"], "third");
    let fourth = parts(requests[3].last_message());
    assert!(fourth[0]["text"].as_str().unwrap().contains("Look at them."));
    assert_eq!(decoded(&fourth[1]).1, GIF);
}

/// Without a prompt, attachments go with the first typed question. A refused line on a terminal can
/// be typed again.
#[test]
fn attachments_work_on_a_terminal() {
    let server = Server::start([Reply::text("Seen.")]);
    let test = Test::new().file("a.gif", GIF).endpoint(&server);
    let mut terminal = test.args(["-a", "a.gif"]).spawn_on_terminal();
    terminal
        .expect("> ")
        .type_line("/attach nowhere.png")
        .expect("No such file")
        .expect("> ")
        .type_line("/attach a.gif")
        .expect("to the next question")
        .expect("> ")
        .type_line("look")
        .expect("Seen.")
        .expect("> ")
        .ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!(parts(requests[0].last_message()).len(), 2);
}

/// All images are sent with every request, so images from tools are limited in number.
#[test]
fn images_from_tools_are_limited_per_conversation() {
    let server = Server::start([reads(&["1", "2", "3", "tiny"]), Reply::text("done")]);
    let mut test = Test::new().skill("art", SKILL).file("skills/art/tiny", GIF);
    for number in 1..=3 {
        let file = format!("skills/art/{number}");
        test = test.file(&file, png(number, 9, (5 << 20) - 24));
    }
    test.endpoint(&server).args(["look"]).run().success();
    let requests = server.finish();
    assert_eq!(parts(requests[1].last_message()).len(), 2 * 3);
    let content = requests[1].tool_result("call_3");
    assert!(content.ends_with("no room for more images]"), "{content}");
}

/// The largest image is in memory at most twice in base64.
#[test]
fn largest_image_needs_little_memory() {
    let largest = png(9, 9, (5 << 20) - 24);
    // Few tokens for many bytes do not cause a warning.
    let reply = Reply::text("done").with_usage(900, 5);
    let server = Server::start([reads(&["a.png"]), reply]);
    let run = Test::new()
        .skill("art", SKILL)
        .file("skills/art/a.png", &largest)
        .endpoint(&server)
        .args(["look"])
        .run();
    run.success().stderr_lacks("OLLAMA_CONTEXT_LENGTH").memory_at_most(31 << 10);
    let requests = server.finish();
    let last = parts(requests[1].last_message());
    assert_eq!(decoded(&last[1]).1, largest);
}

/// A file or address attached twice is sent and reported once.
#[test]
fn duplicate_attachment_is_sent_once() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let url = "https://h.test/a.png";
    let test = Test::new().file("a.txt", "text");
    let lines = format!("/attach a.txt\n/attach {url}\n/attach\nfirst\n");
    let test_chat = test.next_run().endpoint(&server);
    let run = test_chat.args(["chat", "-a", "a.txt"]).stdin(lines).run().success();
    run.stderr_has(&format!("attached: {url} (the endpoint fetches it)\n"));
    let asks = test.endpoint(&server).args(["-a", "a.txt", "-aa.txt", "hi"]);
    asks.run().success();
    let requests = server.finish();
    let first = parts(requests[0].last_message());
    let text = "first\n\n<file name=\"a.txt\">\ntext\n</file>";
    assert_eq!((first.len(), &first[0]["text"]), (2, &json!(text)));
    let text = "hi\n\n<file name=\"a.txt\">\ntext\n</file>";
    assert_eq!(requests[1].last_message()["content"], text);
}

/// Attachments of a failed question go with the question that replaces it, which is reported.
/// Attachments dropped by `/undo` and `/clear` are reported as well.
#[test]
fn attachments_of_a_failed_question_are_kept() {
    let full = "maximum context length is 4096 tokens";
    let server = Server::start([
        Reply::error(503, "no").header("Retry-After", "3600"),
        Reply::text("one"),
        Reply::error(400, full),
        Reply::text("two"),
    ]);
    let test = Test::new()
        .file("notes.txt", "the notes")
        .file("a.gif", GIF)
        .endpoint(&server)
        .args(["chat"]);
    let mut terminal = test.spawn_on_terminal();
    terminal.expect("> ").type_line("/attach notes.txt");
    terminal.expect("> ").type_line("/attach a.gif");
    terminal.expect("> ").type_line("first");
    terminal.expect("/retry sends it again").expect("> ");
    terminal
        .type_line("better")
        .expect("attached again, because the previous question failed: notes.txt, image/gif")
        .expect("one")
        .expect("> ");
    terminal
        .type_line("/undo")
        .expect("removed question and answer: better\n")
        .expect("removed attachments: notes.txt, image/gif")
        .expect("> ");
    terminal.type_line("/attach notes.txt").expect("> ");
    terminal.type_line("large").expect(full).expect("> ");
    // Except if the question was too large.
    let offers = terminal.output().matches("/retry sends").count();
    assert_eq!(offers, 1);
    terminal
        .type_line("small")
        .expect("removed with the failed question: notes.txt")
        .expect("two")
        .expect("> ");
    terminal.type_line("/attach notes.txt").expect("> ");
    terminal
        .type_line("/clear")
        .expect("the conversation is cleared; removed attachments: notes.txt (text, 9 bytes)")
        .expect("> ");
    terminal.ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    let better = parts(requests[1].last_message());
    let text = "better\n\n<file name=\"notes.txt\">\nthe notes\n</file>";
    assert_eq!((better.len(), &better[0]["text"]), (2, &json!(text)));
    assert_eq!(requests[3].last_message()["content"], "small");
}
