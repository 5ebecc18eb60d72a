//! Changes to a request that the endpoint does not accept.

use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::event::{Event, EventSink};
use crate::limits;
use crate::message::Message;
use crate::model::http::HttpModel;
use crate::model::request_failure::RequestFailure;
use crate::model::{ModelRequest, images};

/// Phrases of endpoints that do not stream.
const STREAM_REFUSALS: [&str; 6] = [
    "stream is not supported",
    "streaming is not supported",
    "streaming not supported",
    "not support stream",
    "unsupported stream",
    "stream=true is not",
];

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
        if changes.count > limits::REQUEST_CHANGES {
            return None;
        }
        if failure.body_contains("tool_use_failed") {
            return handle_broken_call(failure, changes);
        }
        let answer = failure.answer.as_ref()?;
        if images::are_refused(failure, false) && self.sends_images(request) {
            return self.leave_out_images(request, sink);
        }
        if matches!(answer.status, 400 | 422) {
            let dialect = self.dialect.borrow().clone();
            let body = self.request_body(request, &changes.temporary_messages, &dialect);
            if let Some((learned, change)) =
                dialect.clone().learn_from_refusal(&answer.body, &body.sent_features())
            {
                self.dialect.replace(learned);
                // A field of the user is not omitted silently.
                if self
                    .client
                    .endpoint
                    .extra_body
                    .keys()
                    .any(|name| change.starts_with(&format!("`{name}`")))
                {
                    sink(Event::Warning(&format!(
                        "the endpoint refuses a field of LLM_EXTRA_BODY: {change}"
                    )));
                }
                return Some(change);
            }
        }
        if images::are_refused(failure, true) && self.sends_images(request) {
            return self.leave_out_images(request, sink);
        }
        // These responses may mean that the server does not stream; others are reported
        // unchanged.
        let no_stream = match answer.status {
            200 => answer.body.is_empty(),
            204 | 205 | 405 => true,
            404 => !failure.body_contains("model") && !failure.body_contains("tool"),
            400 | 422 | 501 => STREAM_REFUSALS.iter().any(|words| failure.body_contains(words)),
            _ => false,
        };
        if self.stream && no_stream && !self.is_stream_refused.replace(true) {
            changes.tries_without_stream = true;
            return Some("the request is sent without streaming".into());
        }
        None
    }

    /// Whether images are sent with the request.
    fn sends_images(&self, request: &ModelRequest<'_>) -> bool {
        let dialect = self.dialect.borrow();
        let body = self.request_body(request, &[], &dialect);
        body.question_has_images() || !dialect.refuses_images() && body.image_bytes() > 0
    }

    /// Omits images from tools and older questions; those of the current question cannot be
    /// omitted.
    fn leave_out_images(
        &self,
        request: &ModelRequest<'_>,
        sink: &mut EventSink<'_>,
    ) -> Option<String> {
        let mut dialect = self.dialect.borrow_mut();
        dialect.set_refuses_images();
        if self.request_body(request, &[], &dialect).question_has_images() {
            return None;
        }
        sink(Event::Warning(
            "the endpoint or the model refuses images: they are left out from now on",
        ));
        Some("images are left out".into())
    }

    /// The error of a request whose question has images that the endpoint refuses.
    pub(super) fn image_error(
        &self,
        request: &ModelRequest<'_>,
        failure: &RequestFailure,
    ) -> Option<Error> {
        let has_images =
            self.request_body(request, &[], &self.dialect.borrow()).question_has_images();
        if has_images && failure.is_too_large() {
            let hint = "the image may be too large for the endpoint: attach a smaller one";
            let error = Error::new(ErrorKind::Endpoint, failure.error.message());
            return Some(error.with_hint(hint));
        }
        (has_images && images::are_refused(failure, true)).then(|| {
            let cause = failure.error.message();
            let message = format!("the endpoint or the model refuses images: {cause}");
            let hint = "use a model with vision, or set LLM_VISION=off";
            Error::new(ErrorKind::Endpoint, message).with_hint(hint)
        })
    }
}

/// Handles the refusal of a reply: Groq checks the calls of its models. The request is sent
/// once more, then with a note to the model.
fn handle_broken_call(failure: &RequestFailure, changes: &mut RequestChanges) -> Option<String> {
    changes.broken_calls += 1;
    match changes.broken_calls {
        1 => Some("the same request is sent again".into()),
        2 => {
            let answer = failure.answer.as_ref()?;
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
