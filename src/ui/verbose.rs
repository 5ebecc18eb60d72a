//! Lines on standard error for events; most of them only with `-v`.

use base::event::Event;
use base::limits;
use base::text::{counted, group_digits, one_line};
use base::tool::milliseconds;

/// The first lines of a tool's result, and the number of further lines.
pub(super) fn first_lines(text: &str) -> String {
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

/// Message about a summary: number of messages, tokens before and after.
pub(super) fn summary(messages: usize, before: u64, after: u64) -> String {
    let (messages, before, after) =
        (counted(messages, "message"), group_digits(before), group_digits(after));
    format!("the conversation was summarized: {messages}, {before} → {after} tokens")
}

/// Line for an event; `None` if the event has none.
pub(super) fn line(event: &Event<'_>) -> Option<String> {
    Some(match event {
        Event::Estimate { tokens, window } => {
            let of_window =
                window.map_or_else(String::new, |window| format!(" of {}", group_digits(window)));
            format!("· about {}{of_window} tokens", group_digits(*tokens))
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
        Event::Rescue(text) => format!("· {text}"),
        Event::Retry { attempt, delay, reason } => {
            // A changed request is not another try of the same one.
            let when = match milliseconds(*delay) {
                0 => "again at once".to_string(),
                delay => format!("try {attempt} of {} in {delay} ms", limits::REQUEST_TRIES),
            };
            format!("· {when}: {reason}")
        }
        _ => return None,
    })
}
