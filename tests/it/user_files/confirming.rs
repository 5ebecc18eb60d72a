//! `--confirm`: a file is written only after the user has seen the change and allowed it.

use serde_json::{Value, json};

use super::{call, work};
use crate::harness::{Terminal, Test};

const QUESTION: &str = "write it? y: yes, n: no, s: show all of it, a: yes to all of this run > ";

fn start(test: &Test, tool: &str, arguments: &Value) -> Terminal {
    let run = test.next_run().args(["--confirm", "tool", tool, &arguments.to_string()]);
    run.stderr_to_pty_only().spawn_on_terminal()
}

/// Each row: tool, arguments, what is shown, and the file after `y`.
#[test]
fn the_changed_lines_are_shown() {
    let old = "one\ntwo\nthree\nfour\nfive\n";
    let table = [
        (
            "edit_file",
            json!({"path": "f", "old": "four", "new": "4"}),
            "skills-runner: a change of the file `f` in the working folder\n24 bytes before\n\
             \u{20} | …\n  |  two\n  |  three\n  | -four\n  | +4\n  |  five\n",
            "f",
            "one\ntwo\nthree\n4\nfive\n",
        ),
        (
            "write_file",
            json!({"path": "f", "content": "one\n"}),
            "skills-runner: a change of the file `f` in the working folder\n24 bytes before\n\
             \u{20} |  one\n  | -two\n  | -three\n  | -four\n  | -five\n",
            "f",
            "one\n",
        ),
        (
            "write_file",
            json!({"path": "d/new\u{1b}[2J", "content": "a\u{1b}[2J\n"}),
            "skills-runner: a new file `d/new\u{fffd}[2J` in the working folder\ncontent\n  | +a\u{fffd}[2J\n",
            "d/new\u{1b}[2J",
            "a\u{1b}[2J\n",
        ),
    ];
    for (tool, arguments, shown, path, content) in table {
        let test = work().file("work/f", old);
        let mut terminal = start(&test, tool, &arguments);
        terminal.expect(QUESTION);
        assert_eq!(terminal.output(), format!("{shown}{QUESTION}"));
        assert!(!test.exists("work/d"), "no folder is made before the answer");
        terminal.type_line("y");
        terminal.wait_exit().success();
        assert_eq!(test.read(&format!("work/{path}")), content);
    }
}

/// Without a yes, or if the file has changed since it was shown, nothing is written.
#[test]
fn without_consent_nothing_is_written() {
    let test = work().file("work/f", "one\n");
    let arguments = json!({"path": "f", "content": "two\n"});
    let mut terminal = start(&test, "write_file", &arguments);
    terminal.expect(QUESTION).type_line("n");
    terminal.wait_exit().status(1).stdout_has("the user refused to write this file");
    let test = test.file("work/f", "one\n");
    let mut terminal = start(&test, "write_file", &arguments);
    terminal.expect(QUESTION);
    let test = test.file("work/f", "changed\n");
    terminal.type_line("y");
    terminal
        .wait_exit()
        .status(1)
        .stdout_has("has changed since it was read: nothing was written; read it again");
    assert_eq!(test.read("work/f"), "changed\n");
    let without = test.next_run().args(["--confirm", "tool", "write_file", &arguments.to_string()]);
    without.run().status(1).stdout_has("files are written only when the user allows it");
    let read = test.next_run().args(["--confirm", "tool", "read_file", r#"{"path":"f"}"#]);
    read.run().success().stdout("changed\n");
    call(&test, "write_file", arguments).success();
}
