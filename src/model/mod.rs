//! Models: who is asked what to do next.
//!
//! [`Model`] is the seam between the loop and the world. [`http::HttpModel`]
//! asks an endpoint, [`scripted::ScriptedModel`] plays prepared replies for
//! `demo` and for tests. Nothing here knows what tools do.

use crate::error::{Error, Result};
use crate::event::EventSink;
use crate::message::{AssistantMessage, Message};
use crate::tool::{ToolDefinition, Usage};

mod body;
mod calls;
mod cumulative;
mod delta_fast_path;
mod dialect;
mod error_text;
mod finish;
pub(crate) mod http;
mod invalid_response;
mod json_repair;
mod pictures;
mod reasoning_details;
mod reply;
mod request_failure;
mod retry;
pub(crate) mod scripted;
mod sse;
mod text_calls;
mod think_filter;
mod tool_name;
mod wire;

pub(crate) use body::is_thought;

pub use {
    invalid_response::InvalidResponse,
    reply::ReplyAssembler,
    sse::{EventTooLarge, SseSplitter},
    text_calls::is_call,
    think_filter::{ThinkFilter, ThinkPiece},
};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'r> {
    /// The conversation so far.
    pub messages: &'r [Message],
    /// The tools that the model may call.
    pub tools: &'r [ToolDefinition],
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
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
pub struct ModelReply {
    /// What the model said. Calls are there only if the reply is complete.
    pub message: AssistantMessage,
    /// How it ended.
    pub finish: FinishReason,
    /// Why it is not whole, where more is known than `finish` says.
    pub cause: Option<Error>,
    /// Tokens, where the endpoint tells.
    pub usage: Option<Usage>,
}

/// Somebody who answers conversations.
pub trait Model {
    /// The model's name, as the user chose it.
    fn name(&self) -> &str;

    /// Answers the conversation. Pieces of text are told to `sink` as they
    /// arrive; once one was told, the reply is never asked for again.
    fn complete(&self, request: &ModelRequest<'_>, sink: &mut EventSink<'_>) -> Result<ModelReply>;
}
