//! What happens during a run, as it happens.
//!
//! Nothing below the front ends prints: it tells. A terminal, a file of JSON
//! lines and a library user's closure all listen to the same events.

use std::time::Duration;

use crate::tool::{ToolCall, ToolResult, Usage};

/// One thing that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A piece of what the model says.
    Text(&'a str),
    /// A piece of what the model thinks, where the endpoint tells it apart.
    Reasoning(&'a str),
    /// What the model has said since the last [`Event::Text`] belongs together:
    /// a message of its has ended, and with `calls` tools come next.
    MessageEnd {
        /// How many tools the message calls.
        calls: usize,
    },
    /// A tool is about to run.
    ToolCall {
        /// The call as the model made it.
        call: &'a ToolCall,
        /// The same in one line for a person.
        summary: &'a str,
    },
    /// A tool has answered.
    ToolResult {
        /// The call it answers.
        call: &'a ToolCall,
        /// The answer.
        result: &'a ToolResult,
        /// How long it took.
        duration: Duration,
    },
    /// What goes to the model next has about so many tokens.
    Estimate {
        /// Tokens.
        tokens: u64,
        /// The most that the model reads, where that is known.
        window: Option<u64>,
    },
    /// Older messages became a summary.
    Context {
        /// How many.
        summarized: usize,
        /// About so many tokens the conversation had.
        before: u64,
        /// And has now.
        after: u64,
    },
    /// A request is about to be sent.
    Request {
        /// `POST`, or `GET` for what an endpoint tells of itself.
        method: &'static str,
        /// The address, as joined; never with credentials in it.
        url: &'a str,
        /// Bytes of the body.
        bytes: usize,
    },
    /// A reply is complete.
    Response {
        /// From sending to the last byte.
        duration: Duration,
        /// Tokens as reported; `None` where the endpoint does not tell.
        usage: Option<Usage>,
    },
    /// A request failed and is sent again.
    Retry {
        /// Which try comes next, from 2.
        attempt: u32,
        /// How long until then.
        delay: Duration,
        /// What failed.
        reason: &'a str,
    },
    /// Something the person should know; the run goes on.
    Warning(&'a str),
}

/// What turns cost, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Requests that brought a reply.
    pub steps: u32,
    /// Tools that ran.
    pub tool_calls: u32,
    /// Tokens as reported.
    pub usage: Usage,
}

/// Whoever listens.
pub type EventSink<'l> = dyn FnMut(Event<'_>) + 'l;
