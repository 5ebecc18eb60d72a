//! Conversations on a real terminal.

mod editing;
mod live;
mod messages;
mod start;
mod turns;
mod typing;
mod widths;

use crate::harness::{Request, Server, Terminal, Test, seconds};
use serde_json::Value;

const SKILL: &str = "---\nname: s\ndescription: d\n---\n";
const SLEEPER: &str =
    r#"{"skill_name":"s","script":"import time\nprint('begun', flush=True)\ntime.sleep(60)"}"#;

pub(crate) fn chat(server: &Server) -> Terminal {
    let mut terminal = Test::new().endpoint(server).spawn_on_terminal();
    terminal.expect("Ctrl+D leaves").expect("> ");
    terminal
}

pub(crate) fn leave(mut terminal: Terminal) {
    terminal.ctrl('d');
    terminal.wait_exit().success();
}

/// The last user message of the request.
fn last_prompt(request: &Request) -> String {
    let messages = request.messages().iter();
    let mut users = messages.filter(|message| message["role"] == "user");
    let last = users.next_back().expect("a user message");
    last["content"].as_str().expect("it is text").into()
}

fn roles(request: &Request) -> String {
    let letter = |message: &Value| message["role"].as_str().and_then(|role| role.chars().next());
    request.messages().iter().filter_map(letter).collect()
}

/// Waits until the program has read the typed text: the kernel drops unread text on Ctrl+C, and
/// text that arrives together is one message.
fn wait_until_read() {
    std::thread::sleep(seconds(0.4));
}
