//! What the scripted endpoint answers: well-behaved completions, and every way
//! in which a reply can go wrong. How that becomes bytes is `wire`'s affair.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::completion::{Call, Completion, chunk};
use super::request::Request;

/// One answer of a [`super::Server`]. The first function says what it is, the
/// others change it.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(super) body: Body,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delay: Duration,
    pub(super) pace: Duration,
    pub(super) ending: Ending,
    /// Whether the end of the body is left out.
    pub(super) unfinished: bool,
}

#[derive(Clone)]
pub(super) enum Body {
    /// A completion; streamed, whole, or as the request asks.
    Completion(Completion, Option<bool>),
    Models(Vec<String>),
    Status(u16, Vec<u8>),
    /// Chunks of the body of a stream, each after a pause.
    Chunks(Vec<(Duration, Vec<u8>)>),
    /// Bytes in place of head and body.
    Raw(Vec<Piece>),
    Computed(Arc<dyn Fn(&Request) -> Reply + Send + Sync>),
}

/// Bytes that are written so many times, each time after a pause: what is too
/// much for a test's own memory is written from a little.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) pause: Duration,
    pub(super) bytes: Vec<u8>,
    pub(super) times: usize,
}

/// What becomes of the connection when the reply has been written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ending {
    Keep,
    Close,
    Reset,
    Hang,
    Deaf,
}

impl Reply {
    /// The model answers with this text.
    pub(crate) fn text(text: &str) -> Reply {
        let text = Some(text.to_owned());
        Reply::new(Body::Completion(Completion { text, ..Completion::default() }, None))
    }

    /// The model calls tools: names, and arguments as JSON text. Their ids are
    /// `call_1`, `call_2` and so on, counted over the server's whole life.
    pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> Reply {
        let call = |(name, arguments): (&str, &str)| Call {
            id: None,
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        let calls = calls.into_iter().map(call).collect();
        Reply::new(Body::Completion(Completion { calls, ..Completion::default() }, None))
    }

    /// The model calls one tool, with arguments that are written as `json!({…})`.
    pub(crate) fn call(name: &str, arguments: &Value) -> Reply {
        Reply::calls([(name, arguments.to_string().as_str())])
    }

    /// The answer to `GET …/models`.
    pub(crate) fn models<'a>(names: impl IntoIterator<Item = &'a str>) -> Reply {
        Reply::new(Body::Models(names.into_iter().map(str::to_owned).collect()))
    }

    /// An HTTP status, with an empty body until [`Reply::body`] gives it one.
    pub(crate) fn status(status: u16) -> Reply {
        Reply::new(Body::Status(status, Vec::new()))
    }

    /// An error as `OpenAI` words it.
    pub(crate) fn error(status: u16, message: &str) -> Reply {
        let error = json!({"error": {"message": message, "type": "error", "code": null}});
        Reply::status(status).body(error.to_string())
    }

    /// A stream of these events, each followed by an empty line. Nothing is
    /// added, not even `data: [DONE]`.
    pub(crate) fn sse<S: AsRef<str>>(events: impl IntoIterator<Item = S>) -> Reply {
        let chunk = |event: S| (Duration::ZERO, format!("{}\n\n", event.as_ref()).into_bytes());
        Reply::new(Body::Chunks(events.into_iter().map(chunk).collect()))
    }

    /// A stream with this body, in these HTTP chunks, each after a pause.
    pub(crate) fn chunks<B: Into<Vec<u8>>>(
        chunks: impl IntoIterator<Item = (Duration, B)>,
    ) -> Reply {
        let chunks = chunks.into_iter().map(|(pause, bytes)| (pause, bytes.into()));
        Reply::new(Body::Chunks(chunks.collect()))
    }

    /// These bytes, status line and all. The connection stays open: a reply
    /// that does not say how long it is needs [`Reply::then_close`].
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply::raw_pieces([(Duration::ZERO, bytes)])
    }

    /// The same in pieces, each after a pause: a head that drips.
    pub(crate) fn raw_pieces<B: Into<Vec<u8>>>(
        pieces: impl IntoIterator<Item = (Duration, B)>,
    ) -> Reply {
        let pieces = pieces.into_iter().map(|(pause, bytes)| Piece::once(pause, bytes.into()));
        Reply::new(Body::Raw(pieces.collect()))
    }

    /// More bytes behind those of [`Reply::raw`].
    #[track_caller]
    pub(crate) fn then(self, bytes: impl Into<Vec<u8>>) -> Reply {
        self.then_repeat(1, Duration::ZERO, bytes)
    }

    /// The same many times, each after a pause: a drip, or a flood.
    #[track_caller]
    pub(crate) fn then_repeat(
        mut self,
        times: usize,
        pause: Duration,
        bytes: impl Into<Vec<u8>>,
    ) -> Reply {
        let Body::Raw(pieces) = &mut self.body else { panic!("only raw bytes can go on") };
        let bytes = bytes.into();
        pieces.push(Piece { pause, bytes, times });
        self
    }

    /// Not one byte: with [`Reply::hang`] a silent server, with
    /// [`Reply::then_close`] or [`Reply::reset`] one that drops the connection.
    pub(crate) fn nothing() -> Reply {
        Reply::new(Body::Raw(Vec::new()))
    }

    /// An answer that depends on the request. An assertion that fails in there
    /// fails the test. What was said of this reply is forgotten: say it of the
    /// one that the function gives.
    pub(crate) fn from_fn(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Reply {
        Reply::new(Body::Computed(Arc::new(answer)))
    }

    /// The model also says this, before its calls.
    pub(crate) fn with_text(self, text: &str) -> Reply {
        self.completion(|completion| completion.text = Some(text.to_owned()))
    }

    /// The model thinks this first (`reasoning_content`).
    pub(crate) fn with_reasoning(self, reasoning: &str) -> Reply {
        self.completion(|completion| completion.reasoning = Some(reasoning.to_owned()))
    }

    /// The tokens used; a stream tells them only when the request asked.
    pub(crate) fn with_usage(self, prompt: u64, completion: u64) -> Reply {
        self.completion(|answer| answer.usage = Some((prompt, completion)))
    }

    /// Ids of its own choosing for the calls, in order.
    pub(crate) fn with_ids<'a>(self, ids: impl IntoIterator<Item = &'a str>) -> Reply {
        self.completion(|completion| {
            for (call, id) in completion.calls.iter_mut().zip(ids) {
                call.id = Some(id.to_owned());
            }
        })
    }

    /// Another `finish_reason` than `stop` or `tool_calls`.
    pub(crate) fn finish_reason(self, reason: &str) -> Reply {
        self.completion(|completion| completion.finish_reason = Some(reason.to_owned()))
    }

    /// A stream, whatever the request asked for.
    pub(crate) fn streamed(self) -> Reply {
        self.shape(true)
    }

    /// One piece of JSON, whatever the request asked for.
    pub(crate) fn whole(self) -> Reply {
        self.shape(false)
    }

    /// The body of a [`Reply::status`].
    #[track_caller]
    pub(crate) fn body(mut self, bytes: impl Into<Vec<u8>>) -> Reply {
        let Body::Status(_, body) = &mut self.body else { panic!("only a status takes a body") };
        *body = bytes.into();
        self
    }

    /// One more header, or another value for one that is there by itself.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A pause before the first byte.
    pub(crate) fn delay(mut self, pause: Duration) -> Reply {
        self.delay = pause;
        self
    }

    /// A pause before each further piece: a model that thinks word by word.
    pub(crate) fn pace(mut self, pause: Duration) -> Reply {
        self.pace = pause;
        self
    }

    /// After the complete reply the connection is closed, which no header
    /// announced.
    pub(crate) fn then_close(mut self) -> Reply {
        self.ending = Ending::Close;
        self
    }

    /// The end is missing and the connection closed: a stream stops behind its
    /// last text, a body in its middle.
    pub(crate) fn cut(self) -> Reply {
        self.without_end(Ending::Close)
    }

    /// The same, with a reset in place of an orderly close.
    pub(crate) fn reset(self) -> Reply {
        self.without_end(Ending::Reset)
    }

    /// The end is missing and nothing follows, until the client goes away or
    /// the test ends.
    pub(crate) fn hang(self) -> Reply {
        self.without_end(Ending::Hang)
    }

    /// The same, and what the client sends from now on is not even read.
    pub(crate) fn deaf(self) -> Reply {
        self.without_end(Ending::Deaf)
    }

    fn new(body: Body) -> Reply {
        Reply {
            body,
            headers: Vec::new(),
            delay: Duration::ZERO,
            pace: Duration::ZERO,
            ending: Ending::Keep,
            unfinished: false,
        }
    }

    fn without_end(mut self, ending: Ending) -> Reply {
        self.ending = ending;
        self.unfinished = true;
        self
    }

    #[track_caller]
    fn completion(mut self, change: impl FnOnce(&mut Completion)) -> Reply {
        let Body::Completion(completion, _) = &mut self.body else {
            panic!("only a text or calls can be changed so")
        };
        change(completion);
        self
    }

    #[track_caller]
    fn shape(mut self, streamed: bool) -> Reply {
        let Body::Completion(_, shape) = &mut self.body else {
            panic!("only a text or calls have two shapes")
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

/// An event of a stream with this delta, for [`Reply::sse`]:
/// `event(&json!({"content": "hi"}))`.
pub(crate) fn event(delta: &Value) -> String {
    chunk(delta, None, false)
}

/// The event that ends an answer.
pub(crate) fn last_event(finish_reason: &str) -> String {
    chunk(&json!({}), Some(finish_reason), false)
}
