//! Messages of several lines.

use super::{chat, last_prompt, leave, roles};
use crate::harness::{Reply, Server, Test};

#[test]
fn backslash_continues_a_message_and_two_do_not() {
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let mut terminal = chat(&server);
    terminal.type_line("first\\").expect("\n. ");
    terminal.type_line("second\\").expect("\n. ");
    terminal.type_line("third").expect("one.").expect("> ");
    terminal.type_line("C:\\\\").expect("two.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(last_prompt(&requests[0]), "first\nsecond\nthird");
    assert_eq!(last_prompt(&requests[1]), "C:\\\\");
}

#[test]
fn block_is_one_message() {
    let server = Server::start(["one.", "two.", "three."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_line("\"\"\"").expect("\n. ");
    terminal.type_line("/exit").expect("\n. ");
    terminal.type_line("").expect("\n. ");
    terminal.type_line("  the end\\\"\"\"").expect("one.");
    terminal.expect("> ").type_line("\"\"\"one line\"\"\"");
    terminal.expect("two.").expect("> ");
    // All lines at the same time.
    terminal.type_text("\"\"\"\na\nb\n\"\"\"\n").expect("three.");
    terminal.expect("> ").type_line("\"\"\"\"\"\"").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(prompts, ["/exit\n\n  the end\\", "one line", "a\nb"]);
}

/// Ctrl+C in a block discards it and does not count as the first of two; Ctrl+D in it sends
/// nothing.
#[test]
fn block_can_be_discarded() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    terminal.type_line("\"\"\"").expect(". ");
    terminal.type_line("never").expect(". ");
    terminal.ctrl('c').expect("the incomplete message is discarded");
    terminal.expect("> ").type_line("also never\\").expect(". ");
    terminal.ctrl('c').expect("the incomplete message is discarded");
    terminal.expect("> ").type_line("\"\"\"nor that").expect(". ");
    terminal.ctrl('d').expect("it is not sent").expect("> ");
    terminal.type_line("this").expect("one.").expect("> ");
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.ctrl('c');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!((last_prompt(&requests[0]).as_str(), roles(&requests[0]).as_str()), ("this", "su"));
}

/// There is one request with all lines.
#[test]
fn pasted_five_thousand_lines_are_one_message() {
    let server = Server::start([Reply::text("read."), Reply::text("next.")]);
    let mut terminal = chat(&server);
    let lines: Vec<String> =
        (1..=5000).map(|number| format!("    line {number} of a paste \\ \"quoted\"")).collect();
    terminal.type_text(&(lines.join("\n") + "\n"));
    terminal.expect("read.").expect("> ");
    terminal.type_line("next").expect("next.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(requests.len(), 2);
    assert_eq!(last_prompt(&requests[0]), lines.join("\n"));
}

/// Commands before pasted text are executed in order; pasted source code that looks like a block is
/// sent unchanged.
#[test]
fn commands_before_pasted_text_are_executed() {
    let server = Server::start(["one.", "two.", "three."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_line("before").expect("one.").expect("> ");
    terminal.type_text("\n/clear\n\n/tools\nand\n/clear\n");
    terminal
        .expect("the conversation is cleared")
        .expect("the model gets no tools")
        .expect("two.")
        .expect("> ");
    let python = "\"\"\"Doc.\"\"\"\nif x:\n    y = a \\\n        b";
    terminal.type_text(&format!("{python}\n"));
    terminal.expect("three.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(roles(&requests[1]), "su");
    assert_eq!(last_prompt(&requests[1]), "and\n/clear");
    assert_eq!(last_prompt(&requests[2]), python);
}

#[test]
fn oversized_input_is_reported_and_the_conversation_continues() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    let line = format!("{}\n", "x".repeat(4000));
    terminal.type_text(&line.repeat(1100));
    terminal.expect("the message is longer than 4194304 bytes").expect("> ");
    terminal.type_line("short").expect("one.").expect("> ");
    leave(terminal);
    assert_eq!(last_prompt(&server.finish()[0]), "short");
    // From a pipe it is a failed turn.
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let long = "x".repeat((4 << 20) + 1);
    let test = Test::new().endpoint(&server).args(["chat"]);
    let run = test.stdin(format!("a\n{long}\nb\n{long}")).run().status(1);
    run.stdout("one.\ntwo.\n")
        .stderr_has("the message is longer than 4194304 bytes: it is not sent");
    server.finish();
}
