//! Models: who is asked what to do next.
//!
//! [`Model`] is the seam between the loop and the world. [`http::HttpModel`]
//! asks an endpoint, [`scripted::ScriptedModel`] plays prepared replies for
//! `demo` and for tests. Nothing here knows what tools do.

use crate::error::{Error, Result};
use crate::event::Listener;
use crate::message::{Assistant, Message};
use crate::tool::{ToolDefinition, Usage};

mod alike;
mod body;
mod calls;
mod details;
mod dialect;
mod fault;
mod finish;
pub mod http;
mod mend;
mod pictures;
mod reply;
mod resent;
mod retry;
pub mod scripted;
mod sse;
mod think;
mod tool_name;
mod unparsed;
mod unusable;
mod wire;
mod words;

pub use body::is_thought;

// What `fuzz/` feeds: nothing of it is public otherwise.
#[cfg(fuzzing)]
pub use {
    reply::Assembler,
    sse::{Splitter, TooLarge},
    think::{Piece, ThinkFilter},
    unparsed::is_call,
    unusable::Fault,
};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The conversation so far.
    pub messages: &'r [Message],
    /// The tools that the model may call.
    pub tools: &'r [ToolDefinition],
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// As it should.
    Complete,
    /// At the token limit: what the model wanted to say is not all there.
    Length,
    /// The connection ended in the middle of the text.
    Cut,
    /// The endpoint's content filter stepped in.
    Filtered,
    /// The text is a tool call that the server did not recognize as one.
    UnparsedCall,
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What the model said. Calls are there only if the reply is complete.
    pub message: Assistant,
    /// How it ended.
    pub finish: Finish,
    /// Why it is not whole, where more is known than `finish` says.
    pub cause: Option<Error>,
    /// Tokens, where the endpoint tells.
    pub usage: Option<Usage>,
}

/// Somebody who answers conversations.
pub trait Model {
    /// The model's name, as the user chose it.
    fn name(&self) -> &str;

    /// Answers the conversation. Pieces of text are told to `listener` as they
    /// arrive; once one was told, the reply is never asked for again.
    fn complete(&self, request: &Request<'_>, listener: &mut Listener<'_>) -> Result<Reply>;
}
