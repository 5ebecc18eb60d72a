//! What `-v` says of requests, one line each.

use crate::event::Event;
use crate::limits;
use crate::text::grouped;
use crate::tool::milliseconds;

/// The line of an event, if it has one.
pub fn line(event: &Event<'_>) -> Option<String> {
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
        Event::Retry {
            attempt,
            delay,
            reason,
        } => {
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
