//! Language models: the [`Model`] trait, requests and replies.
//!
//! [`http::HttpModel`] sends requests to an endpoint; [`scripted::ScriptedModel`] plays
//! prepared replies for `demo` and for tests. Nothing here knows what tools do.

#![forbid(unsafe_code)]

use base::error::{Error, Result};
use base::event::EventSink;
use base::message::{AssistantMessage, Message};
use base::tool::{CallForm, ToolDefinition, Usage};

mod body;
mod calls;
mod constrained;
mod cumulative;
mod delta_fast_path;
mod demanded_value;
mod described_tools;
mod dialect;
mod endpoint;
mod error_text;
pub mod http;
mod invalid_response;
mod json_repair;
mod quirks;
mod reply;
mod request_failure;
mod retry;
pub mod scripted;
mod sse;
mod text_calls;
mod think_filter;
mod tool_name;
mod wire;
mod wire_messages;

pub use endpoint::{CertificateFile, EndpointSources, Network, Proxy, ProxyScheme};
pub use endpoint::{Endpoint, ToolCalling};
pub use quirks::{call_markers::marked_tags, is_reasoning_field};
pub use text_calls::{
    OPENINGS, can_become_call, ends_sentence, has_call_marker, read_code_calls, read_marked_calls,
    sentence_and_calls,
};

pub use {
    invalid_response::InvalidResponse,
    reply::ReplyAssembler,
    sse::{EventTooLarge, SseSplitter},
    text_calls::{TextCall, find_calls, is_code_call, is_unparsed_call, read_text_calls},
    think_filter::{ThinkFilter, ThinkPiece},
};

/// A request to a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'r> {
    /// The conversation so far.
    pub messages: &'r [Message],
    /// The tools that the model may call.
    pub tools: &'r [ToolDefinition],
    /// Mark of a call in text.
    pub call_mark: &'r str,
    /// For replies that are constrained to JSON objects.
    pub forms: CallForms<'r>,
}

impl<'r> ModelRequest<'r> {
    /// A request without tools.
    pub fn of_messages(messages: &'r [Message]) -> ModelRequest<'r> {
        ModelRequest { messages, tools: &[], call_mark: "", forms: CallForms::default() }
    }
}

/// The forms of calls in a request whose reply is constrained.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallForms<'r> {
    /// Those that the system message describes: always the same in a conversation.
    pub described: &'r [CallForm],
    /// Those that this reply may have.
    pub allowed: &'r [CallForm],
    /// Whether it may be an answer; without an allowed form it is one.
    pub allows_answer: bool,
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// Normally.
    Complete,
    /// At the token limit: the end of the answer is missing.
    Length,
    /// Cut off: nothing says that the reply is complete.
    Cut,
    /// Withheld by the endpoint's content filter.
    Filtered,
    /// With a tool call in the text, which the server should have parsed.
    UnparsedCall,
    /// With a number that no result shows, after a small model was asked to calculate it.
    UnknownNumber,
}

/// A model's reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// The message. It has tool calls only if the reply is complete.
    pub message: AssistantMessage,
    /// How the reply ended.
    pub finish: FinishReason,
    /// Why the reply is incomplete, where more is known than `finish` says.
    pub cause: Option<Error>,
    /// Token counts, where the endpoint reports them.
    pub usage: Option<Usage>,
}

/// A language model that answers conversations.
pub trait Model {
    /// The model's name, as the user configured it.
    fn name(&self) -> &str;

    /// How the model calls tools now. `Prompted`: calls are part of the text of replies, because
    /// the system message describes the tools.
    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Auto
    }

    /// Whether the endpoint says that the model is so small that its replies are constrained.
    fn is_small(&self) -> bool {
        false
    }

    /// Constrains replies to calls and answers from now on, or no longer. Where a model cannot be
    /// constrained, nothing happens.
    fn constrain(&self, _is_constrained: bool) {}

    /// Answers the conversation. Passes pieces of text to `sink` as they arrive; once one was
    /// passed, the request is not sent again.
    fn complete(&self, request: &ModelRequest<'_>, sink: &mut EventSink<'_>) -> Result<ModelReply>;
}
