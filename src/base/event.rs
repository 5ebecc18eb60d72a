//! Events: progress of a run, reported to a callback.
//!
//! Only front ends print. A terminal, a file of JSON lines and a library
//! user's closure receive the same events.

use std::time::Duration;

use crate::tool::{Action, CommandExit, ScriptExit, ToolCall, ToolResult, Usage};

/// Progress of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A piece of the model's text.
    Text(&'a str),
    /// A piece of the model's reasoning, if the endpoint marks it as such.
    Reasoning(&'a str),
    /// A message of the model is complete.
    MessageEnd {
        /// Number of tool calls in the message, which run next.
        calls: usize,
    },
    /// A tool is about to run.
    ToolCall {
        /// The call, as the model wrote it.
        call: &'a ToolCall,
        /// The call in one line for the user.
        summary: &'a str,
    },
    /// A tool has run.
    ToolResult {
        /// The call.
        call: &'a ToolCall,
        /// Its result.
        result: &'a ToolResult,
        /// Time from the call to its result.
        duration: Duration,
    },
    /// Estimated size of the next request.
    Estimate {
        /// Estimated number of tokens.
        tokens: u64,
        /// Size of the model's context window in tokens, if known.
        window: Option<u64>,
    },
    /// Older messages were replaced by a summary.
    Context {
        /// Number of replaced messages.
        summarized: usize,
        /// Estimated tokens of the conversation before.
        before: u64,
        /// Estimated tokens of the conversation now.
        after: u64,
    },
    /// A request is about to be sent.
    Request {
        /// `POST`, or `GET` for information about the endpoint.
        method: &'static str,
        /// The URL, without credentials.
        url: &'a str,
        /// Size of the body.
        bytes: usize,
    },
    /// A reply is complete.
    Response {
        /// Time from sending the request to the last byte of the reply.
        duration: Duration,
        /// Token counts, if the endpoint reported them.
        usage: Option<Usage>,
    },
    /// A request failed and will be sent again.
    Retry {
        /// Number of the next try, from 2.
        attempt: u32,
        /// Time until the next try.
        delay: Duration,
        /// Why the request failed.
        reason: &'a str,
    },
    /// A reply that is not an answer, and what is done about it.
    Rescue(&'a str),
    /// A warning for the user; the run continues.
    Warning(&'a str),
}

/// Totals of one or more turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Requests that got a reply.
    pub steps: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Token counts, as the endpoint reported them.
    pub usage: Usage,
    /// Calls that were written as text and run.
    pub calls_from_text: u32,
    /// How often the model was asked again because its reply was not an answer.
    pub asked_again: u32,
    /// Actions of tools.
    pub actions: Actions,
}

/// Actions of tools, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Names of the skills whose documents were read, each once. The user's invocation of a skill
    /// counts, too.
    pub skills_read: Vec<String>,
    /// Scripts that ran, also those that failed.
    pub scripts_run: Vec<ScriptExit>,
    /// Commands that ran, also those that failed.
    pub commands_run: Vec<CommandExit>,
    /// The user's files that `write_file` and `edit_file` wrote, each once.
    pub files_written: Vec<String>,
}

impl Actions {
    /// Adds an action.
    pub fn add(&mut self, action: Action) {
        match action {
            Action::ReadSkill(name) if self.skills_read.contains(&name) => {}
            Action::ReadSkill(name) => self.skills_read.push(name),
            Action::RanScript(exit) => self.scripts_run.push(exit),
            Action::RanCommand(exit) => self.commands_run.push(exit),
            Action::WroteFile(path) if self.files_written.contains(&path) => {}
            Action::WroteFile(path) => self.files_written.push(path),
        }
    }
}

/// Event callback.
pub type EventSink<'l> = dyn FnMut(Event<'_>) + 'l;
