//! The model's context: how full it is, and how room is made in it.
//!
//! Before a request that would be above four fifths of the window, or after an
//! endpoint refused one, older messages become a summary that the model writes.
//! Where that is not enough, results of tools are cut, then documents of
//! skills. Each step leaves less than before, and each is taken once.

use std::cell::Cell;

use crate::conversation::Conversation;
use crate::error::{Error, Kind, Result};
use crate::event::{Event, Listener, Tally};
use crate::limits;
use crate::message::Message;
use crate::model::{Finish, Model, Reply, Request};
use crate::text::{cut, grouped};
use crate::tool::ToolDefinition;

pub mod meter;
pub mod plan;
mod summary;

use plan::Plan;

/// Who is asked, and with which tools in every request.
pub struct Asked<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// The tools that it may call.
    pub tools: &'a [ToolDefinition],
    /// Tokens that it reads at most, where that is set.
    pub window: Option<u64>,
    /// It could not summarize in this turn: it is not asked at every step.
    has_failed: Cell<bool>,
}

/// Why older messages are to become a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The context is nearly full: as many of the latest turns stay as leave
    /// room for a while.
    NearlyFull,
    /// The endpoint has refused the conversation; the same stays.
    Refused,
    /// It has refused that, too: the last question and the last step stay.
    RefusedAgain,
    /// A person wants it; the same stays.
    Wished,
}

impl Occasion {
    fn keeps_turns(self) -> bool {
        matches!(self, Occasion::NearlyFull | Occasion::Refused)
    }

    /// Nothing goes on without a summary.
    fn is_urgent(self) -> bool {
        matches!(self, Occasion::Refused | Occasion::RefusedAgain)
    }
}

impl<'a> Asked<'a> {
    /// For one turn.
    pub fn new(model: &'a dyn Model, tools: &'a [ToolDefinition], window: Option<u64>) -> Self {
        Asked {
            model,
            tools,
            window,
            has_failed: Cell::new(false),
        }
    }

    /// One request. What does not fit is made to fit; the same request is never
    /// sent again after a refusal.
    pub fn ask(
        &self,
        conversation: &mut Conversation,
        tally: &mut Tally,
        listener: &mut Listener<'_>,
    ) -> Result<Reply> {
        conversation.offer(self.tools);
        self.keep_below(conversation, tally, listener)?;
        let mut steps = STEPS.iter().copied().peekable();
        loop {
            let error = match self.send(conversation, listener) {
                Err(error) if error.kind() == Kind::Context => error,
                other => return other,
            };
            let mut is_smaller = false;
            // What was learnt of the window may be wrong: documents are cut only
            // when everything else was tried in vain.
            while !(is_smaller
                && (self.fits(conversation) || steps.peek() == Some(&Step::ShortenDocuments)))
            {
                match steps.next() {
                    Some(step) => is_smaller |= self.take(step, conversation, tally, listener)?,
                    None if is_smaller => break,
                    None => return Err(self.blamed(error, conversation)),
                }
            }
        }
    }

    fn fits(&self, conversation: &Conversation) -> bool {
        let window = conversation.window(self.window);
        window.is_none_or(|window| conversation.estimate() <= window)
    }

    /// Sends the request, unless it is known to be too long: some endpoints cut
    /// off its beginning and say nothing.
    fn send(&self, conversation: &mut Conversation, listener: &mut Listener<'_>) -> Result<Reply> {
        let tokens = conversation.estimate();
        let window = conversation.window(self.window);
        listener(Event::Estimate { tokens, window });
        // Not by a hair's breadth: it is an estimate.
        let slack = if conversation.meter().is_corrected() {
            8
        } else {
            2
        };
        if let Some(window) = self
            .window
            .filter(|window| tokens > window + window / slack)
        {
            let (tokens, window) = (grouped(tokens), grouped(window));
            return Err(Error::new(
                Kind::Context,
                format!(
                    "failed to fit the conversation into the model's context: it has about {tokens} tokens, the window {window}"
                ),
            ));
        }
        let request = Request {
            messages: conversation.messages(),
            tools: self.tools,
        };
        let reply = self.model.complete(&request, listener);
        if let Err(error) = &reply
            && error.kind() == Kind::Context
        {
            conversation.refuse(error.message());
        }
        reply
    }

    /// Summarizes in time. Whatever prevents that is told, and the request sent
    /// as it is: nobody has refused it yet.
    fn keep_below(
        &self,
        conversation: &mut Conversation,
        tally: &mut Tally,
        listener: &mut Listener<'_>,
    ) -> Result<()> {
        let Some(window) = conversation.window(self.window) else {
            return Ok(());
        };
        if conversation.estimate() <= window / 5 * 4 || self.has_failed.get() {
            return Ok(());
        }
        match self.compact(conversation, Occasion::NearlyFull, tally, listener) {
            Err(error) if matches!(error.kind(), Kind::Interrupted(_) | Kind::Limit) => Err(error),
            Err(error) => {
                self.has_failed.set(true);
                let cause = error.message();
                listener(Event::Warning(&format!(
                    "the conversation could not be summarized, and goes on as it is: {cause}"
                )));
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// One way to make room; whether it helped.
    fn take(
        &self,
        step: Step,
        conversation: &mut Conversation,
        tally: &mut Tally,
        listener: &mut Listener<'_>,
    ) -> Result<bool> {
        let most = limits::SHORTENED_RESULT_BYTES;
        let (what, count) = match step {
            Step::Summarize(why) => return self.compact(conversation, why, tally, listener),
            Step::ShortenResults => ("results of tools", conversation.shorten_results(most)),
            Step::ShortenDocuments => ("documents of skills", conversation.shorten_documents(most)),
        };
        if count > 0 {
            listener(Event::Warning(&format!(
                "the model's context is full: {what} were shortened ({count})"
            )));
        }
        Ok(count > 0)
    }

    /// Makes a summary of what is older. `false`: there is nothing that would be
    /// worth it, and nothing has changed.
    pub fn compact(
        &self,
        conversation: &mut Conversation,
        why: Occasion,
        tally: &mut Tally,
        listener: &mut Listener<'_>,
    ) -> Result<bool> {
        conversation.offer(self.tools);
        let before = conversation.estimate();
        let window = conversation.window(self.window).unwrap_or(before);
        let words = (window / 10).min(limits::SUMMARY_TOKENS);
        let said = conversation.said();
        let room = if why.keeps_turns() {
            room(conversation, window, words)
        } else {
            0
        };
        let Some(plan) = Plan::of(said, room) else {
            return Ok(false);
        };
        let most = conversation.meter().bytes(words * 2);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        // What comes of it, with a summary of the usual length.
        let (rest, _) = plan.apply(&"x".repeat(most / 2));
        let meter = conversation.meter();
        let saved = meter::bytes(said, 0).saturating_sub(meter::bytes(&rest, 0));
        if why.keeps_turns() && meter.tokens(saved) < window / 20 {
            return Ok(false);
        }
        let written = self.summarize(&plan.old, conversation, tally, listener);
        let is_lasting = |error: &Error| matches!(error.kind(), Kind::Endpoint | Kind::Protocol);
        let text = match written {
            Err(error) if why.is_urgent() && is_lasting(&error) => None,
            other => other?,
        };
        let text = text.unwrap_or_else(|| {
            listener(Event::Warning(
                "the model wrote no summary: of older messages only the beginnings are kept",
            ));
            summary::mechanical(&plan.old, most / 2)
        });
        let text = cut(text.trim(), most);
        let (messages, summarized) = plan.apply(&text);
        if meter::bytes(&messages, 0) >= meter::bytes(said, 0) {
            return Ok(false);
        }
        let count = plan.old.len();
        conversation.replace(messages, summarized);
        listener(Event::Context {
            summarized: count,
            before,
            after: conversation.estimate(),
        });
        Ok(true)
    }

    /// Has the model write the summary; `None` if it did not. What it says is not
    /// told as an answer.
    fn summarize(
        &self,
        old: &[&Message],
        conversation: &Conversation,
        tally: &mut Tally,
        listener: &mut Listener<'_>,
    ) -> Result<Option<String>> {
        let estimate = conversation.estimate();
        let window = conversation.window(self.window).unwrap_or(estimate);
        let tokens = (window / 10).min(limits::SUMMARY_TOKENS);
        let bytes = conversation.meter().bytes(window / 5 * 3);
        let mut most = usize::try_from(bytes).unwrap_or(usize::MAX);
        for _ in 0..limits::SUMMARY_TRIES {
            let prompt = summary::request(old, most, tokens / 2);
            let request = Request {
                messages: &[Message::user(prompt)],
                tools: &[],
            };
            let reply = self.model.complete(&request, &mut |event| match event {
                Event::Text(_) | Event::Reasoning(_) | Event::MessageEnd { .. } => {}
                other => listener(other),
            });
            match reply {
                Ok(reply) => {
                    tally.steps += 1;
                    tally.usage += reply.usage.unwrap_or_default();
                    let said = reply.message;
                    let is_none = said.content.trim().is_empty() || !said.calls.is_empty();
                    if is_none || matches!(reply.finish, Finish::Filtered | Finish::UnparsedCall) {
                        return Ok(None);
                    }
                    return Ok(Some(said.content));
                }
                Err(error) if error.kind() == Kind::Context => most /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The error of a conversation that cannot be made shorter: it names the
    /// message that is to blame, if one is.
    fn blamed(&self, error: Error, conversation: &Conversation) -> Error {
        let meter = conversation.meter();
        let messages = conversation.messages();
        let size = |message: &Message| meter.tokens(meter::of_message(message, true));
        let Some(largest) = messages.iter().max_by_key(|message| size(message)) else {
            return error;
        };
        let (tokens, all) = (size(largest), conversation.estimate());
        // A window that was guessed from a request as short as that is none.
        let is_known =
            |window: &u64| self.window.is_some() || *window >= limits::CONTEXT_TOKENS_KNOWN;
        let window = conversation.window(self.window).filter(is_known);
        let Some(window) = window.filter(|_| tokens > all / 2) else {
            return error;
        };
        let (what, advice) = match largest {
            Message::System(_) => ("the instructions have", "shorten them"),
            Message::User(_) => ("the question has", "ask in several parts"),
            Message::Assistant(_) => ("one answer has", "start a new conversation"),
            Message::Tool { .. } => ("one result of a tool has", "ask for less of it at once"),
        };
        let (tokens, window) = (grouped(tokens), grouped(window));
        error.with_hint(format!(
            "{what} about {tokens} tokens by itself, and the model reads some {window}: {advice}, or give the server a larger context"
        ))
    }
}

/// The ways to make room after a refusal, the mildest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Summarize(Occasion),
    ShortenResults,
    ShortenDocuments,
}

const STEPS: [Step; 4] = [
    Step::Summarize(Occasion::Refused),
    Step::Summarize(Occasion::RefusedAgain),
    Step::ShortenResults,
    Step::ShortenDocuments,
];

/// Bytes for the latest turns, so that with what always stays the conversation
/// is well below the threshold.
fn room(conversation: &Conversation, window: u64, summary: u64) -> u64 {
    let meter = conversation.meter();
    let always = conversation.messages().iter().filter(|message| {
        matches!(message, Message::System(_)) || plan::document(message).is_some()
    });
    let always: u64 = always.map(|message| meter::of_message(message, true)).sum();
    let always = meter.tokens(always + meter.tools());
    let half = window.saturating_sub(always) / 2;
    meter.bytes(half.min((window / 5 * 3).saturating_sub(always + summary)))
}
