//! Pasted text, and lines typed during a turn.

use super::{SKILL, chat, last_prompt, leave, roles, wait_until_read};
use crate::harness::{Reply, Server, Test, seconds};

const LONGER: &str =
    r#"{"skill_name":"s","script":"import time\nprint('begun', flush=True)\ntime.sleep(4)"}"#;

/// A pause as between typed lines.
fn pause_as_typed() {
    std::thread::sleep(seconds(1.5));
}

/// Pasted text often lacks its last line end: the last line can be edited until Enter is pressed.
#[test]
fn paste_without_final_line_end_is_one_message() {
    let server = Server::start(["one.", "two.", "three.", "four."].map(Reply::text));
    let mut terminal = chat(&server);
    terminal.type_text("a\nb\nc");
    wait_until_read();
    terminal.type_line(" and more").expect("one.").expect("> ");
    terminal.type_text("d\ne");
    wait_until_read();
    terminal.type_line("").expect("two.").expect("> ");
    let lines: Vec<String> = (1..=5000).map(|number| format!("line {number} of a paste")).collect();
    terminal.type_text(&lines.join("\n"));
    wait_until_read();
    terminal.type_line("").expect("three.").expect("> ");
    // Discarded text is not part of the next message, and line editing works as before.
    terminal.type_text("f\ng");
    wait_until_read();
    terminal.ctrl('c').expect("\n> ");
    terminal.type_line("hx\u{7f}").expect("four.").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    let lines = lines.join("\n");
    assert_eq!(prompts, ["a\nb\nc and more", "d\ne", &lines, "h"]);
}

#[test]
fn line_truncated_by_the_terminal_is_not_sent() {
    let server = Server::start([Reply::text("one."), Reply::text("two.")]);
    let mut terminal = chat(&server);
    let reported = "the terminal cut the line at 4,095 bytes, so it is not sent";
    for length in [4095, 5000] {
        terminal.type_line(&"x".repeat(length));
        terminal.expect(reported).expect("> ");
    }
    terminal.type_text(&format!("a\n{}\nb\n", "x".repeat(5000)));
    terminal.expect(reported).expect("> ");
    let longest = "y".repeat(4094);
    terminal.type_line(&longest).expect("one.").expect("> ");
    terminal.type_line("short").expect("two.").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(prompts, [&longest, "short"]);
}

/// Lines typed seconds apart are separate turns, also during an answer or a script; text pasted
/// then is one message.
#[test]
#[ignore = "long"]
fn lines_typed_during_a_turn_are_separate_turns() {
    let slow = "Some words that come one after the other.";
    let server = Server::start([
        Reply::text(slow).pace(seconds(0.5)),
        Reply::text("one."),
        Reply::calls([("run_python_script", LONGER)]),
        Reply::text("two."),
        Reply::text("three.").delay(seconds(2.0)),
        Reply::text("four."),
        Reply::text("five."),
        Reply::text("six."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.timeout(seconds(60.0)).spawn_on_terminal();
    terminal.expect("> ").type_line("first").expect("Some");
    terminal.type_line("second").expect("second");
    pause_as_typed();
    // The next line during the script, followed by pasted text.
    terminal.type_line("third").expect("third");
    terminal.expect("> second\n").expect("one.").expect("> third\n");
    terminal.expect("→ run_python_script");
    terminal.type_line("during it").expect("during it");
    pause_as_typed();
    terminal.type_text("a\nb\nc\n").expect("c");
    terminal.expect("two.").expect("> during it\n");
    server.wait_for_requests(5);
    // Without its last line end.
    terminal.type_text("d\ne").expect("e");
    terminal.expect("three.").expect("> a … 2 more lines\n").expect("four.");
    terminal.expect("> ").type_line(" and more").expect("five.").expect("> ");
    terminal.type_line("last").expect("six.").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    let expected =
        ["first", "second", "third", "third", "during it", "a\nb\nc", "d\ne and more", "last"];
    assert_eq!(prompts, expected);
}

/// A line typed during a turn does not answer a later question of it, and a typed answer is not a
/// turn.
#[test]
#[ignore = "long"]
fn typed_lines_do_not_answer_later_confirmations() {
    let server = Server::start([
        Reply::calls([("run_python_script", LONGER)]).delay(seconds(2.0)),
        Reply::text("one."),
        Reply::text("two."),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.args(["chat", "--confirm"]).spawn_on_terminal();
    terminal.expect("> ").type_line("first");
    server.wait_for_requests(1);
    terminal.type_line("yes").expect("yes");
    terminal.expect("run it?");
    pause_as_typed();
    terminal.type_line("y").expect("begun").expect("one.");
    terminal.expect("> yes\n").expect("two.").expect("> ");
    leave(terminal);
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(prompts, ["first", "first", "yes"]);
}

/// Ctrl+C discards lines typed during the turn; Ctrl+D ends the conversation after it.
#[test]
fn control_c_discards_lines_typed_during_the_turn() {
    let server = Server::start([Reply::empty().hang(), Reply::text("one.").delay(seconds(2.0))]);
    let mut terminal = chat(&server);
    terminal.type_line("first");
    server.wait_for_requests(1);
    terminal.type_line("never").expect("never");
    pause_as_typed();
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("second");
    server.wait_for_requests(2);
    terminal.ctrl('d').expect("one.");
    terminal.wait_exit().success();
    let prompts: Vec<String> = server.finish().iter().map(last_prompt).collect();
    assert_eq!(prompts, ["first", "second"]);
}

/// Only at an empty prompt does Ctrl+C show how to leave; a second one leaves.
#[test]
fn control_c_on_typed_text_does_not_end_the_conversation() {
    let server = Server::start([Reply::text("one.")]);
    let mut terminal = chat(&server);
    for _ in 0..3 {
        terminal.type_text("some words").expect("some words");
        terminal.ctrl('c').expect("the incomplete message is discarded").expect("> ");
    }
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.type_text("a\nb").expect("b");
    wait_until_read();
    terminal.ctrl('c').expect("the incomplete message is discarded").expect("> ");
    // Nothing of the discarded text is in the next line.
    terminal.type_line("this").expect("one.").expect("> ");
    terminal.ctrl('c').expect("press Ctrl+C again").expect("> ");
    terminal.ctrl('c');
    let run = terminal.wait_exit().success();
    assert_eq!(run.terminal.matches("press Ctrl+C again").count(), 2);
    assert_eq!(last_prompt(&server.finish()[0]), "this");
}

/// `-q` suppresses the lines about tools; commands still print their answers.
#[test]
fn chat_commands_answer_despite_quiet() {
    let server = Server::start([
        Reply::calls([("list_skills", "{}")]),
        Reply::text("one."),
        Reply::error(400, "no"),
    ]);
    let test = Test::new().skill("s", SKILL).endpoint(&server);
    let mut terminal = test.next_run().args(["-q"]).spawn_on_terminal();
    for (line, answer) in [
        ("/help", "/retry"),
        ("/session", "session"),
        ("/tokens", "tokens"),
        ("/skills", "/s: d"),
        ("/tools", "run_python_script"),
        ("/undo", "nothing to remove"),
        ("/retry", "nothing to repeat"),
        ("/compact", "nothing to summarize"),
        ("/attach", "nothing is attached"),
        ("/clear", "is cleared"),
    ] {
        terminal.expect("> ").type_line(line).expect(answer);
    }
    terminal.expect("> ").type_line("hi");
    let shown = terminal.expect("one.").output();
    assert!(!shown.contains("→ list_skills"), "{shown}");
    terminal.expect("> ").type_line("no").expect("/retry sends");
    terminal.expect("> ").ctrl('c').expect("press Ctrl+C again");
    terminal.ctrl('c');
    terminal.wait_exit().success();
    server.finish();
    let test = test.args(["chat", "-q"]).stdin("/help nonsense\n");
    test.run().success().stderr_has("unknown command /nonsense").stderr_has("/retry: repeat");
}

/// The shown part of an interrupted answer stays in the conversation.
#[test]
fn shown_part_of_an_interrupted_answer_is_kept() {
    let server = Server::start([
        Reply::text("The beginning").hang(),
        Reply::text("Again").hang(),
        Reply::text("two."),
    ]);
    let mut terminal = chat(&server);
    terminal.type_line("first").expect("The beginning");
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("/retry").expect("Again");
    terminal.ctrl('c').expect("interrupted").expect("> ");
    terminal.type_line("second").expect("two.").expect("> ");
    leave(terminal);
    let requests = server.finish();
    assert_eq!(roles(&requests[1]), "su");
    assert_eq!(
        requests[2].messages()[2]["content"],
        "Again\n\n(no answer: the turn was interrupted)"
    );
}
