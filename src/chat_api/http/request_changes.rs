//! Changes to a request that the endpoint does not accept.

use serde_json::Value;

use crate::ModelRequest;
use crate::dialect::{DialectChange, may_refuse_images};
use crate::http::HttpModel;
use crate::http::client::without_query;
use crate::quirks::changes::BROKEN_CALL;
use crate::quirks::refusals::{self, Meaning};
use crate::request_failure::{ErrorResponse, RequestFailure};
use base::error::{Error, ErrorKind};
use base::event::{Event, EventSink};
use base::limits;
use base::message::Message;

/// The note to a model whose tool call the endpoint could not parse.
const BROKEN_CALL_NOTE: &str = "Your last tool call could not be read. Call the tool again, with its exact name and with \
                                arguments that are valid JSON.";

/// The changes for the next try of the same request.
#[derive(Debug, Default)]
pub(super) struct RequestChanges {
    /// Number of changes so far.
    count: u32,
    /// How often the endpoint could not parse its own model's tool call.
    broken_calls: u32,
    /// Messages for this request only, which say what was wrong.
    pub(super) temporary_messages: Vec<Message>,
    /// Whether this request is the first one without streaming.
    pub(super) tries_without_stream: bool,
}

impl HttpModel {
    /// Changes the request after this failure and describes the change; `None` if nothing can
    /// be changed.
    pub(super) fn adapt(
        &self,
        request: &ModelRequest<'_>,
        failure: &RequestFailure,
        changes: &mut RequestChanges,
        sink: &mut EventSink<'_>,
    ) -> Option<String> {
        changes.count += 1;
        let answer = failure.answer.as_ref()?;
        if changes.count > limits::REQUEST_CHANGES {
            return None;
        }
        if answer.words.contains(BROKEN_CALL) {
            return handle_broken_call(answer, changes);
        }
        let dialect = self.dialect.borrow().clone();
        let body = self.request_body(request, &changes.temporary_messages, &dialect);
        let change = self.dialect.borrow_mut().learn(answer, &body.sent_features())?;
        match &change {
            // Those of the current question cannot be omitted.
            DialectChange::OmitImages if body.question_has_images() => return None,
            DialectChange::OmitImages => sink(Event::Warning(
                "the endpoint or the model refuses images: they are left out from now on",
            )),
            DialectChange::DescribeTools => {
                let cause = match refusals::meaning(answer.status, &answer.words) {
                    _ if body.is_constrained() => {
                        "the endpoint constrains no replies to calls of tools"
                    }
                    Meaning::UnreadCall(_) => "the server cannot read its model's calls of tools",
                    _ => "the endpoint or the model takes no tools",
                };
                sink(Event::Warning(&format!(
                    "{cause}: they are described in the system message from now on (LLM_TOOLS)"
                )));
            }
            // A field of the user is not omitted or replaced silently.
            DialectChange::Omit(name)
            | DialectChange::Rename(name, _)
            | DialectChange::Set(name, _)
                if body.extra_fields.contains_key(name) =>
            {
                sink(Event::Warning(&format!(
                    "the endpoint refuses a field of LLM_EXTRA_BODY: {change}"
                )));
            }
            DialectChange::Set(..) => sink(Event::Warning(&format!(
                "the endpoint demands a field: {change} from now on (LLM_EXTRA_BODY)"
            ))),
            DialectChange::OmitStream => changes.tries_without_stream = true,
            _ => {}
        }
        Some(change.to_string())
    }

    /// The error of a request whose question has images that the endpoint refuses.
    pub(super) fn image_error(
        &self,
        request: &ModelRequest<'_>,
        failure: &RequestFailure,
    ) -> Option<Error> {
        let answer = failure.answer.as_ref()?;
        let dialect = self.dialect.borrow();
        if !self.request_body(request, &[], &dialect).question_has_images() {
            return None;
        }
        let error = failure.error(without_query(&self.url));
        if answer.is_too_large {
            let hint = "the image may be too large for the endpoint: attach a smaller one";
            return Some(Error::new(ErrorKind::Endpoint, error.message()).with_hint(hint));
        }
        may_refuse_images(answer).then(|| {
            let message = format!("the endpoint or the model refuses images: {}", error.message());
            let hint = "use a model with vision, or set LLM_VISION=off";
            Error::new(ErrorKind::Endpoint, message).with_hint(hint)
        })
    }
}

/// Handles the refusal of a reply: Groq checks the calls of its models. The request is sent
/// once more, then with a note to the model.
fn handle_broken_call(answer: &ErrorResponse, changes: &mut RequestChanges) -> Option<String> {
    changes.broken_calls += 1;
    match changes.broken_calls {
        1 => Some("the same request is sent again".into()),
        2 => {
            let generation = failed_generation(&answer.body);
            changes.temporary_messages =
                vec![Message::assistant(generation), Message::user(BROKEN_CALL_NOTE)];
            Some("the model is asked to correct its tool call".into())
        }
        _ => None,
    }
}

/// The text of the model, as the endpoint quotes it.
fn failed_generation(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    match value["error"]["failed_generation"].as_str() {
        Some(text) if !text.is_empty() => text.into(),
        _ => "(a tool call that could not be read)".into(),
    }
}
