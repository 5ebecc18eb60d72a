//! The model's context: how full it is, and how room is made in it.
//!
//! Before a request that would be above four fifths of the window, or after an
//! endpoint refused one, older messages become a summary that the model writes.
//! Where that is not enough, results of tools are cut, then documents of
//! skills. Each step leaves less than before, and each is taken once.

use std::cell::Cell;

use crate::conversation::{Conversation, meter};
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventSink, RunStats};
use crate::limits;
use crate::message::Message;
use crate::model::{FinishReason, Model, ModelReply, ModelRequest};
use crate::text::{cut, grouped};
use crate::tool::ToolDefinition;

mod overflow_cause;
pub(crate) mod plan;
mod summary;

use plan::SummaryPlan;

/// Who is asked, and with which tools in every request.
pub(crate) struct ContextManager<'a> {
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
pub(crate) enum SummaryReason {
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

impl SummaryReason {
    fn keeps_turns(self) -> bool {
        matches!(self, SummaryReason::NearlyFull | SummaryReason::Refused)
    }

    /// Nothing goes on without a summary.
    fn is_urgent(self) -> bool {
        matches!(self, SummaryReason::Refused | SummaryReason::RefusedAgain)
    }
}

/// What a wish for a summary came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummaryOutcome {
    /// It stands for so many messages.
    Made(usize),
    /// There is nothing older; nothing has changed.
    NothingOlder,
    /// It would be no shorter, or hardly; nothing has changed.
    NoShorter,
    /// The model wrote none, and a person wanted it; nothing has changed.
    NotWritten,
}

/// Room that is made before a request is sent.
struct FreedRoom {
    /// Tokens before any was made.
    before: u64,
    /// Messages that became a summary.
    summarized: usize,
}

impl FreedRoom {
    fn of(conversation: &Conversation) -> FreedRoom {
        FreedRoom { before: conversation.estimate(), summarized: 0 }
    }

    /// Tells of it once, when all of it is made.
    fn tell(&mut self, conversation: &Conversation, sink: &mut EventSink<'_>) {
        let summarized = std::mem::take(&mut self.summarized);
        if summarized > 0 {
            sink(Event::Context {
                summarized,
                before: self.before,
                after: conversation.estimate(),
            });
        }
    }
}

impl<'a> ContextManager<'a> {
    /// For one turn.
    pub(crate) fn new(
        model: &'a dyn Model,
        tools: &'a [ToolDefinition],
        window: Option<u64>,
    ) -> Self {
        ContextManager { model, tools, window, has_failed: Cell::new(false) }
    }

    /// One request. What does not fit is made to fit; the same request is never
    /// sent again after a refusal.
    pub(crate) fn complete(
        &self,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<ModelReply> {
        conversation.offer(self.tools);
        let mut room = FreedRoom::of(conversation);
        let reply = self.ask_with(&mut room, conversation, stats, sink);
        room.tell(conversation, sink);
        reply
    }

    fn ask_with(
        &self,
        room: &mut FreedRoom,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<ModelReply> {
        self.keep_below(room, conversation, stats, sink)?;
        let mut steps = STEPS.iter().copied().peekable();
        loop {
            let error = match self.send(room, conversation, sink) {
                Err(error) if error.kind() == ErrorKind::Context => error,
                other => return other,
            };
            let mut is_smaller = false;
            // What was learnt of the window may be wrong: documents are cut only
            // when everything else was tried in vain.
            while !(is_smaller
                && (self.fits(conversation)
                    || steps.peek() == Some(&RecoveryStep::ShortenDocuments)))
            {
                match steps.next() {
                    Some(step) => {
                        is_smaller |= self.take(step, room, conversation, stats, sink)?;
                    }
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
    fn send(
        &self,
        room: &mut FreedRoom,
        conversation: &mut Conversation,
        sink: &mut EventSink<'_>,
    ) -> Result<ModelReply> {
        let tokens = conversation.estimate();
        // Not by a hair's breadth: it is an estimate.
        let slack = if conversation.meter().is_corrected() { 8 } else { 2 };
        if let Some(window) = self.window.filter(|window| tokens > window + window / slack) {
            let (tokens, window) = (grouped(tokens), grouped(window));
            return Err(Error::new(
                ErrorKind::Context,
                format!(
                    "failed to fit the conversation into the model's context: it has about {tokens} tokens, the window {window}"
                ),
            ));
        }
        room.tell(conversation, sink);
        let window = conversation.window(self.window);
        sink(Event::Estimate { tokens, window });
        let request = ModelRequest { messages: conversation.messages(), tools: self.tools };
        let reply = self.model.complete(&request, sink);
        if let Err(error) = &reply
            && error.kind() == ErrorKind::Context
        {
            conversation.refuse(error.message());
            *room = FreedRoom::of(conversation);
        }
        reply
    }

    /// Summarizes in time. Whatever prevents that is told, and the request sent
    /// as it is: nobody has refused it yet.
    fn keep_below(
        &self,
        room: &mut FreedRoom,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<()> {
        let Some(window) = conversation.window(self.window) else {
            return Ok(());
        };
        let is_below = |conversation: &Conversation| conversation.estimate() <= window / 5 * 4;
        if is_below(conversation) {
            return Ok(());
        }
        self.take(RecoveryStep::ShortenLatest, room, conversation, stats, sink)?;
        if is_below(conversation) || self.has_failed.get() {
            return Ok(());
        }
        let step = RecoveryStep::Summarize(SummaryReason::NearlyFull);
        match self.take(step, room, conversation, stats, sink) {
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted(_) | ErrorKind::Limit) => {
                Err(error)
            }
            Err(error) => {
                self.has_failed.set(true);
                let cause = error.message();
                sink(Event::Warning(&format!(
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
        step: RecoveryStep,
        room: &mut FreedRoom,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<bool> {
        let most = limits::SHORTENED_RESULT_BYTES;
        let (what, count) = match step {
            RecoveryStep::Summarize(why) => {
                let made = self.summarize_older(conversation, why, stats, sink)?;
                let SummaryOutcome::Made(count) = made else {
                    return Ok(false);
                };
                room.summarized += count;
                return Ok(true);
            }
            RecoveryStep::ShortenLatest if self.is_full_of_results(conversation) => {
                let turn = conversation.latest_turn();
                let count = conversation.shorten_results(most, turn);
                ("results of tools", count)
            }
            RecoveryStep::ShortenLatest => return Ok(false),
            RecoveryStep::ShortenResults => {
                ("results of tools", conversation.shorten_results(most, 0))
            }
            RecoveryStep::ShortenDocuments => {
                ("documents of skills", conversation.shorten_documents(most))
            }
        };
        if count > 0 {
            sink(Event::Warning(&format!(
                "the model's context is full: {what} were shortened ({count})"
            )));
        }
        Ok(count > 0)
    }

    /// Whether the results of the running turn alone exceed the window: a
    /// summary of what is older would not help.
    fn is_full_of_results(&self, conversation: &Conversation) -> bool {
        let turn = &conversation.messages()[conversation.latest_turn()..];
        let is_result = |message: &&Message| matches!(message, Message::Tool { .. });
        let results =
            turn.iter().filter(|message| is_result(message) && plan::document(message).is_none());
        let bytes: u64 = results.map(|message| meter::of_message(message, true)).sum();
        let window = conversation.window(self.window);
        window.is_some_and(|window| conversation.meter().tokens(bytes) > window)
    }

    /// Makes a summary of all but the last turn, because a person wants it.
    pub(crate) fn compact(
        &self,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<SummaryOutcome> {
        conversation.offer(self.tools);
        let mut room = FreedRoom::of(conversation);
        let made = self.summarize_older(conversation, SummaryReason::Wished, stats, sink)?;
        if let SummaryOutcome::Made(count) = made {
            room.summarized = count;
            room.tell(conversation, sink);
        }
        Ok(made)
    }

    fn summarize_older(
        &self,
        conversation: &mut Conversation,
        why: SummaryReason,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<SummaryOutcome> {
        let window = conversation.window(self.window);
        let window = window.unwrap_or_else(|| conversation.estimate());
        let words = (window / 10).min(limits::SUMMARY_TOKENS);
        let said = conversation.said();
        let room = if why.keeps_turns() { room(conversation, window, words) } else { 0 };
        let Some(plan) = SummaryPlan::of(said, room) else {
            return Ok(SummaryOutcome::NothingOlder);
        };
        let most = conversation.meter().bytes(words * 2);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        // What comes of it, with a summary of the usual length.
        let (rest, _) = plan.apply(&"x".repeat(most / 2));
        let meter = conversation.meter();
        let saved = meter.size(said, 0).saturating_sub(meter.size(&rest, 0));
        // Not even a word would fit: nobody need be asked.
        let least = meter::bytes(&plan.apply("").0, 0);
        if why.keeps_turns() && saved < window / 20 || least >= meter::bytes(said, 0) {
            return Ok(SummaryOutcome::NoShorter);
        }
        let written = self.summarize(&plan.old, why, conversation, stats, sink);
        let is_lasting =
            |error: &Error| matches!(error.kind(), ErrorKind::Endpoint | ErrorKind::Protocol);
        let text = match written {
            Err(error) if why.is_urgent() && is_lasting(&error) => None,
            other => other?,
        };
        if text.is_none() && why == SummaryReason::Wished {
            return Ok(SummaryOutcome::NotWritten);
        }
        let text = text.unwrap_or_else(|| {
            sink(Event::Warning(
                "the model wrote no summary: of older messages only the beginnings are kept",
            ));
            summary::mechanical(&plan.old, most / 2)
        });
        let text = cut(text.trim(), most);
        let (messages, summarized) = plan.apply(&text);
        if meter::bytes(&messages, 0) >= meter::bytes(said, 0) {
            return Ok(SummaryOutcome::NoShorter);
        }
        let count = plan.old.len();
        conversation.replace(messages, summarized);
        Ok(SummaryOutcome::Made(count))
    }

    /// Has the model write the summary; `None` if it did not, or not to its end where
    /// nothing requires one. What it says is not told as an answer.
    fn summarize(
        &self,
        old: &[&Message],
        why: SummaryReason,
        conversation: &Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<Option<String>> {
        let estimate = conversation.estimate();
        let window = conversation.window(self.window).unwrap_or(estimate);
        let tokens = (window / 10).min(limits::SUMMARY_TOKENS);
        let bytes = conversation.meter().bytes(window / 5 * 3);
        let mut most = usize::try_from(bytes).unwrap_or(usize::MAX);
        for _ in 0..limits::SUMMARY_TRIES {
            let prompt = summary::request(old, most, tokens / 2);
            let request = ModelRequest { messages: &[Message::user(prompt)], tools: &[] };
            let reply = self.model.complete(&request, &mut |event| match event {
                Event::Text(_) | Event::Reasoning(_) | Event::MessageEnd { .. } => {}
                other => sink(other),
            });
            match reply {
                Ok(reply) => {
                    stats.steps += 1;
                    stats.usage += reply.usage.unwrap_or_default();
                    let said = reply.message;
                    let is_none = said.content.trim().is_empty() || !said.calls.is_empty();
                    let is_unfit = match reply.finish {
                        FinishReason::Complete => false,
                        FinishReason::Length | FinishReason::Cut => why == SummaryReason::Wished,
                        FinishReason::Filtered | FinishReason::UnparsedCall => true,
                    };
                    if is_none || is_unfit {
                        return Ok(None);
                    }
                    return Ok(Some(said.content));
                }
                Err(error) if error.kind() == ErrorKind::Context => most /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The ways to make room after a refusal, the mildest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecoveryStep {
    ShortenLatest,
    Summarize(SummaryReason),
    ShortenResults,
    ShortenDocuments,
}

const STEPS: [RecoveryStep; 5] = [
    RecoveryStep::ShortenLatest,
    RecoveryStep::Summarize(SummaryReason::Refused),
    RecoveryStep::Summarize(SummaryReason::RefusedAgain),
    RecoveryStep::ShortenResults,
    RecoveryStep::ShortenDocuments,
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
