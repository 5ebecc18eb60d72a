//! What is said of events, one line each; of most with `-v` alone.

use crate::event::Event;
use crate::limits;
use crate::text::{counted, grouped, one_line};
use crate::tool::milliseconds;

/// The first lines of a tool's result, and how many more there are.
pub(super) fn beginning(text: &str) -> String {
    let mut rest = text.lines().filter(|line| !line.trim().is_empty());
    let first = rest.by_ref().take(limits::RESULT_LINES);
    let mut lines: Vec<String> =
        first.map(|line| format!("· {}", one_line(line, limits::SUMMARY_CHARS))).collect();
    match rest.count() {
        0 => {}
        more => lines.push(format!("· … {}", counted(more, "more line"))),
    }
    lines.join("\n")
}

/// What a summary has done to a conversation: so many messages, and tokens before and
/// after.
pub(super) fn summary(messages: usize, before: u64, after: u64) -> String {
    let (messages, before, after) = (counted(messages, "message"), grouped(before), grouped(after));
    format!("the conversation was summarized: {messages}, {before} → {after} tokens")
}

/// The line of an event, if it has one.
pub(super) fn line(event: &Event<'_>) -> Option<String> {
    Some(match event {
        Event::Estimate { tokens, window } => {
            let of = window.map_or_else(String::new, |window| format!(" of {}", grouped(window)));
            format!("· about {}{of} tokens", grouped(*tokens))
        }
        Event::Request { method, url, bytes } => format!("· {method} {url}, {bytes} bytes"),
        Event::Response { duration, usage } => {
            let tokens = usage.map_or_else(String::new, |usage| {
                format!(
                    ", {} tokens read, {} written",
                    usage.prompt_tokens, usage.completion_tokens
                )
            });
            format!("· answered in {} ms{tokens}", milliseconds(*duration))
        }
        Event::Retry { attempt, delay, reason } => {
            // A request that was changed is no further try of the same.
            let when = match milliseconds(*delay) {
                0 => "again at once".to_string(),
                delay => format!("try {attempt} of {} in {delay} ms", limits::TRIES),
            };
            format!("· {when}: {reason}")
        }
        _ => return None,
    })
}
