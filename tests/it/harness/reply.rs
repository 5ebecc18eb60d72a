//! Replies of the scripted endpoint: correct completions, and broken replies of all kinds. `wire`
//! turns them into bytes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::completion::{Completion, ToolCall, chunk};
use super::request::Request;

/// One reply of a [`super::Server`]. A constructor chooses its kind, other methods change it.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(super) body: Body,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delay: Duration,
    pub(super) pace: Duration,
    pub(super) ending: ConnectionEnd,
    /// Whether the end of the body is omitted.
    pub(super) is_cut: bool,
}

#[derive(Clone)]
pub(super) enum Body {
    /// A completion: streamed, not streamed, or (`None`) as the request asks.
    Completion(Completion, Option<bool>),
    Models(Vec<String>),
    Status(u16, Vec<u8>),
    /// Chunks of a streamed body, each after a pause.
    Chunks(Vec<(Duration, Vec<u8>)>),
    /// Bytes that replace head and body.
    Raw(Vec<Piece>),
    Computed(Arc<dyn Fn(&Request) -> Reply + Send + Sync>),
}

/// Bytes that are written several times, each time after a pause. So a reply can be larger than
/// the test's memory.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) pause: Duration,
    pub(super) bytes: Vec<u8>,
    pub(super) times: usize,
}

/// What happens to the connection after the reply.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ConnectionEnd {
    Keep,
    Close,
    Reset,
    Hang,
    StopReading,
}

impl Reply {
    /// The model answers with this text.
    pub(crate) fn text(text: &str) -> Reply {
        let text = Some(text.to_owned());
        Reply::new(Body::Completion(Completion { text, ..Completion::default() }, None))
    }

    /// The model calls tools: names, and arguments as JSON text. Their ids are `call_1`, `call_2`
    /// and so on, counted from the server's start.
    pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Reply {
        let call = |(name, arguments): (&str, &str)| ToolCall {
            id: None,
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        let calls = calls.into_iter().map(call).collect();
        Reply::new(Body::Completion(Completion { calls, ..Completion::default() }, None))
    }

    /// The model calls one tool, with arguments from `json!({…})`.
    pub(crate) fn call(name: &str, arguments: &Value) -> Reply {
        Reply::calls([(name, arguments.to_string().as_str())])
    }

    /// The answer to `GET …/models`.
    pub(crate) fn models<'a>(names: impl IntoIterator<Item = &'a str>) -> Reply {
        Reply::new(Body::Models(names.into_iter().map(str::to_owned).collect()))
    }

    /// An HTTP status with an empty body, which [`Reply::body`] sets.
    pub(crate) fn status(status: u16) -> Reply {
        Reply::new(Body::Status(status, Vec::new()))
    }

    /// An error in `OpenAI`'s format.
    pub(crate) fn error(status: u16, message: &str) -> Reply {
        let error = json!({"error": {"message": message, "type": "error", "code": null}});
        Reply::status(status).body(error.to_string())
    }

    /// A stream of these events, each followed by an empty line. `data: [DONE]` is not added.
    pub(crate) fn sse<S: AsRef<str>>(events: impl IntoIterator<Item = S>) -> Reply {
        let chunk = |event: S| (Duration::ZERO, format!("{}\n\n", event.as_ref()).into_bytes());
        Reply::new(Body::Chunks(events.into_iter().map(chunk).collect()))
    }

    /// A stream whose body is sent in these HTTP chunks, each after a pause.
    pub(crate) fn chunks<B: Into<Vec<u8>>>(
        chunks: impl IntoIterator<Item = (Duration, B)>,
    ) -> Reply {
        let chunks = chunks.into_iter().map(|(pause, bytes)| (pause, bytes.into()));
        Reply::new(Body::Chunks(chunks.collect()))
    }

    /// These bytes, including the status line. The connection stays open: a reply without a length
    /// needs [`Reply::then_close`].
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply::raw_pieces([(Duration::ZERO, bytes)])
    }

    /// Like [`Reply::raw`], in pieces, each after a pause.
    pub(crate) fn raw_pieces<B: Into<Vec<u8>>>(
        pieces: impl IntoIterator<Item = (Duration, B)>,
    ) -> Reply {
        let pieces = pieces.into_iter().map(|(pause, bytes)| Piece::once(pause, bytes.into()));
        Reply::new(Body::Raw(pieces.collect()))
    }

    /// Appends bytes to [`Reply::raw`].
    #[track_caller]
    pub(crate) fn then(self, bytes: impl Into<Vec<u8>>) -> Reply {
        self.then_repeat(1, Duration::ZERO, bytes)
    }

    /// Appends bytes several times, each time after a pause.
    #[track_caller]
    pub(crate) fn then_repeat(
        mut self,
        times: usize,
        pause: Duration,
        bytes: impl Into<Vec<u8>>,
    ) -> Reply {
        let Body::Raw(pieces) = &mut self.body else { panic!("only a raw reply can be extended") };
        let bytes = bytes.into();
        pieces.push(Piece { pause, bytes, times });
        self
    }

    /// No bytes at all. With [`Reply::hang`] the server stays silent; with [`Reply::then_close`] or
    /// [`Reply::reset`] it drops the connection.
    pub(crate) fn empty() -> Reply {
        Reply::new(Body::Raw(Vec::new()))
    }

    /// A reply computed from the request. A failed assertion in the function fails the test.
    /// Changes to this reply have no effect: change the one that the function returns.
    pub(crate) fn from_fn(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Reply {
        Reply::new(Body::Computed(Arc::new(answer)))
    }

    /// A text in which each `<tool_call>` has the mark of the conversation.
    pub(crate) fn marked(text: &str) -> Reply {
        let text = text.to_owned();
        Reply::from_fn(move |request| Reply::text(&request.with_mark(&text)))
    }

    /// Adds text before the tool calls.
    pub(crate) fn with_text(self, text: &str) -> Reply {
        self.change_completion(|completion| completion.text = Some(text.to_owned()))
    }

    /// Adds reasoning (`reasoning_content`).
    pub(crate) fn with_reasoning(self, reasoning: &str) -> Reply {
        self.change_completion(|completion| completion.reasoning = Some(reasoning.to_owned()))
    }

    /// Adds the token usage; a stream includes it only if the request asked for it.
    pub(crate) fn with_usage(self, prompt: u64, completion: u64) -> Reply {
        self.change_completion(|answer| answer.usage = Some((prompt, completion)))
    }

    /// Sets the ids of the tool calls, in order.
    pub(crate) fn with_ids<'a>(self, ids: impl IntoIterator<Item = &'a str>) -> Reply {
        self.change_completion(|completion| {
            for (call, id) in completion.calls.iter_mut().zip(ids) {
                call.id = Some(id.to_owned());
            }
        })
    }

    /// Sets a `finish_reason` other than `stop` or `tool_calls`.
    pub(crate) fn finish_reason(self, reason: &str) -> Reply {
        self.change_completion(|completion| completion.finish_reason = Some(reason.to_owned()))
    }

    /// Streams the reply, even if the request did not ask for a stream.
    pub(crate) fn streamed(self) -> Reply {
        self.set_streamed(true)
    }

    /// Sends one JSON body, even if the request asked for a stream.
    pub(crate) fn not_streamed(self) -> Reply {
        self.set_streamed(false)
    }

    /// Sets the body of a [`Reply::status`].
    #[track_caller]
    pub(crate) fn body(mut self, bytes: impl Into<Vec<u8>>) -> Reply {
        let Body::Status(_, body) = &mut self.body else { panic!("only a status takes a body") };
        *body = bytes.into();
        self
    }

    /// Adds a header, or replaces a default one.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Pauses before the first byte.
    pub(crate) fn delay(mut self, pause: Duration) -> Reply {
        self.delay = pause;
        self
    }

    /// Pauses before each further piece, like a slow model.
    pub(crate) fn pace(mut self, pause: Duration) -> Reply {
        self.pace = pause;
        self
    }

    /// Closes the connection after the complete reply, without announcing that in a header.
    pub(crate) fn then_close(mut self) -> Reply {
        self.ending = ConnectionEnd::Close;
        self
    }

    /// Omits the end and closes the connection: a stream stops after its last text, a body in its
    /// middle.
    pub(crate) fn cut_off(self) -> Reply {
        self.without_end(ConnectionEnd::Close)
    }

    /// Like [`Reply::cut_off`], with a reset instead of an orderly close.
    pub(crate) fn reset(self) -> Reply {
        self.without_end(ConnectionEnd::Reset)
    }

    /// Omits the end and sends nothing more until the client disconnects or the test ends.
    pub(crate) fn hang(self) -> Reply {
        self.without_end(ConnectionEnd::Hang)
    }

    /// Like [`Reply::hang`], and further bytes from the client are not read.
    pub(crate) fn stop_reading(self) -> Reply {
        self.without_end(ConnectionEnd::StopReading)
    }

    fn new(body: Body) -> Reply {
        Reply {
            body,
            headers: Vec::new(),
            delay: Duration::ZERO,
            pace: Duration::ZERO,
            ending: ConnectionEnd::Keep,
            is_cut: false,
        }
    }

    fn without_end(mut self, ending: ConnectionEnd) -> Reply {
        self.ending = ending;
        self.is_cut = true;
        self
    }

    #[track_caller]
    fn change_completion(mut self, change: impl FnOnce(&mut Completion)) -> Reply {
        let Body::Completion(completion, _) = &mut self.body else {
            panic!("only a completion can be changed so")
        };
        change(completion);
        self
    }

    #[track_caller]
    fn set_streamed(mut self, streamed: bool) -> Reply {
        let Body::Completion(_, shape) = &mut self.body else {
            panic!("only a completion can be streamed or not")
        };
        *shape = Some(streamed);
        self
    }
}

impl Piece {
    pub(super) fn once(pause: Duration, bytes: Vec<u8>) -> Piece {
        Piece { pause, bytes, times: 1 }
    }
}

/// A stream event with this delta, for [`Reply::sse`]:
/// `event(&json!({"content": "hi"}))`.
pub(crate) fn event(delta: &Value) -> String {
    chunk(delta, None, false)
}

/// The stream event that ends an answer.
pub(crate) fn last_event(finish_reason: &str) -> String {
    chunk(&json!({}), Some(finish_reason), false)
}
