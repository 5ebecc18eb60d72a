//! A request that the endpoint does not take as it is, changed.

use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::event::{Event, EventSink};
use crate::limits;
use crate::message::Message;
use crate::model::http::HttpModel;
use crate::model::request_failure::RequestFailure;
use crate::model::{ModelRequest, pictures};

/// How endpoints say that they do not stream.
const NO_STREAMS: [&str; 6] = [
    "stream is not supported",
    "streaming is not supported",
    "streaming not supported",
    "not support stream",
    "unsupported stream",
    "stream=true is not",
];

/// What a model is told whose call the endpoint itself could not read.
const BROKEN_CALL_NOTE: &str = "Your last tool call could not be read. Call the tool again, with its exact name and with \
                                arguments that are valid JSON.";

/// What is done differently in the next try of the same request.
#[derive(Debug, Default)]
pub(super) struct RequestChanges {
    /// How often something was changed.
    count: u32,
    /// How often the endpoint could not read its own model's call.
    broken_calls: u32,
    /// Messages for this request only, which say what was wrong.
    pub(super) aside: Vec<Message>,
    /// This request is the first that does without a stream.
    pub(super) tries_whole: bool,
}

impl HttpModel {
    /// What to do differently after this failure, in words; `None`: nothing.
    pub(super) fn adapt(
        &self,
        request: &ModelRequest<'_>,
        failure: &RequestFailure,
        changes: &mut RequestChanges,
        sink: &mut EventSink<'_>,
    ) -> Option<String> {
        changes.count += 1;
        if changes.count > limits::CHANGES {
            return None;
        }
        if failure.says("tool_use_failed") {
            return answer_broken_call(failure, changes);
        }
        let answer = failure.answer.as_ref()?;
        if pictures::are_refused(failure, false) && self.shows_pictures(request) {
            return self.leave_out_pictures(request, sink);
        }
        if matches!(answer.status, 400 | 422) {
            let dialect = self.dialect.borrow().clone();
            let body = self.body(request, &changes.aside, &dialect);
            if let Some((learned, change)) = dialect.clone().learn(&answer.body, &body.sent()) {
                self.dialect.replace(learned);
                // What the user asked for is not left out without a word.
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
        if pictures::are_refused(failure, true) && self.shows_pictures(request) {
            return self.leave_out_pictures(request, sink);
        }
        // Only a server that streams refuses to; anything else is told as it is.
        let no_stream = match answer.status {
            200 => answer.body.is_empty(),
            204 | 205 | 405 => true,
            404 => !failure.says("model") && !failure.says("tool"),
            400 | 422 | 501 => NO_STREAMS.iter().any(|words| failure.says(words)),
            _ => false,
        };
        if self.stream && no_stream && !self.is_whole.replace(true) {
            changes.tries_whole = true;
            return Some("a whole answer is asked for".into());
        }
        None
    }

    /// Whether the request holds pictures, as far as they are sent.
    fn shows_pictures(&self, request: &ModelRequest<'_>) -> bool {
        let dialect = self.dialect.borrow();
        let body = self.body(request, &[], &dialect);
        body.asks_about_pictures() || !dialect.is_blind() && body.picture_bytes() > 0
    }

    /// What tools have shown, and older questions, can go; the question cannot.
    fn leave_out_pictures(
        &self,
        request: &ModelRequest<'_>,
        sink: &mut EventSink<'_>,
    ) -> Option<String> {
        let mut dialect = self.dialect.borrow_mut();
        dialect.turn_blind();
        if self.body(request, &[], &dialect).asks_about_pictures() {
            return None;
        }
        sink(Event::Warning(
            "the endpoint or the model refuses images: they are left out from here on",
        ));
        Some("images are left out".into())
    }

    /// The failure of a request whose question the endpoint does not look at.
    pub(super) fn blindness(
        &self,
        request: &ModelRequest<'_>,
        failure: &RequestFailure,
    ) -> Option<Error> {
        let asks = self.body(request, &[], &self.dialect.borrow()).asks_about_pictures();
        if asks && failure.is_too_large() {
            let hint = "the image may be too large for the endpoint: attach a smaller one";
            let error = Error::new(ErrorKind::Endpoint, failure.error.message());
            return Some(error.with_hint(hint));
        }
        (asks && pictures::are_refused(failure, true)).then(|| {
            let cause = failure.error.message();
            let message = format!("the endpoint or the model refuses images: {cause}");
            let hint = "use a model that sees (vision), or set LLM_VISION=off";
            Error::new(ErrorKind::Endpoint, message).with_hint(hint)
        })
    }
}

/// Groq checks its models' calls and refuses its own reply: it is asked
/// once more, then the model is told.
fn answer_broken_call(failure: &RequestFailure, changes: &mut RequestChanges) -> Option<String> {
    changes.broken_calls += 1;
    match changes.broken_calls {
        1 => Some("the same is asked again".into()),
        2 => {
            let answer = failure.answer.as_ref()?;
            let generation = failed_generation(&answer.body);
            changes.aside = vec![Message::assistant(generation), Message::user(BROKEN_CALL_NOTE)];
            Some("the model is told".into())
        }
        _ => None,
    }
}

/// What the model wrote, as the endpoint quotes it.
fn failed_generation(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    match value["error"]["failed_generation"].as_str() {
        Some(text) if !text.is_empty() => text.into(),
        _ => "(a tool call that could not be read)".into(),
    }
}
