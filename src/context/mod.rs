//! Keeps a conversation within the model's context.
//!
//! Older messages are replaced by a summary that the model writes: before a request that
//! would use more than four fifths of the window, or after an endpoint refused a request as
//! too long. If that is not enough, tool results are shortened, then skill documents. Each
//! step makes the conversation shorter and is used once per request.

use std::cell::Cell;

use crate::conversation::{Conversation, meter};
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventSink, RunStats};
use crate::limits;
use crate::message::Message;
use crate::model::{FinishReason, Model, ModelReply, ModelRequest};
use crate::text::{group_digits, truncate};
use crate::tool::ToolDefinition;

mod overflow_cause;
pub(crate) mod plan;
mod summary;

use plan::SummaryPlan;

/// Sends the requests of one turn and keeps them within the context.
pub(crate) struct ContextManager<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// The tools in every request.
    pub tools: &'a [ToolDefinition],
    /// The configured context window in tokens, if any.
    pub window: Option<u64>,
    /// A summary failed in this turn, so that no other is requested before each step.
    has_summary_failed: Cell<bool>,
}

/// The reason for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummaryReason {
    /// The context is nearly full. As many of the latest turns stay as leave some free space.
    NearlyFull,
    /// The endpoint refused the conversation as too long. The same turns stay.
    Refused,
    /// The endpoint refused it again. Only the last question and the last step stay.
    RefusedAgain,
    /// The user requested a summary. Only the last question and the last step stay.
    Requested,
}

impl SummaryReason {
    fn keeps_recent_turns(self) -> bool {
        matches!(self, SummaryReason::NearlyFull | SummaryReason::Refused)
    }

    /// Whether the turn cannot continue without a summary.
    fn is_urgent(self) -> bool {
        matches!(self, SummaryReason::Refused | SummaryReason::RefusedAgain)
    }
}

/// The outcome of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummaryOutcome {
    /// The summary replaces this number of messages.
    Summarized(usize),
    /// There are no older messages; nothing has changed.
    NothingOlder,
    /// The summary would not be much shorter; nothing has changed.
    NotShorter,
    /// The user requested a summary and the model wrote none; nothing has changed.
    NotWritten,
}

/// The context freed before a request.
struct FreedRoom {
    /// Tokens before the first change.
    before: u64,
    /// The number of messages replaced by a summary.
    summarized: usize,
}

impl FreedRoom {
    fn new(conversation: &Conversation) -> FreedRoom {
        FreedRoom { before: conversation.estimate(), summarized: 0 }
    }

    /// Reports the change once, after the last summary.
    fn report(&mut self, conversation: &Conversation, sink: &mut EventSink<'_>) {
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
    /// A manager for one turn.
    pub(crate) fn new(
        model: &'a dyn Model,
        tools: &'a [ToolDefinition],
        window: Option<u64>,
    ) -> Self {
        ContextManager { model, tools, window, has_summary_failed: Cell::new(false) }
    }

    /// Sends one request. A conversation that does not fit is shortened; a refused request is
    /// never repeated unchanged.
    pub(crate) fn complete(
        &self,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<ModelReply> {
        conversation.set_tools(self.tools);
        let mut freed = FreedRoom::new(conversation);
        let reply = self.complete_with_recovery(&mut freed, conversation, stats, sink);
        freed.report(conversation, sink);
        reply
    }

    fn complete_with_recovery(
        &self,
        freed: &mut FreedRoom,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<ModelReply> {
        self.summarize_if_nearly_full(freed, conversation, stats, sink)?;
        let mut steps = RECOVERY_STEPS.iter().copied().peekable();
        loop {
            let error = match self.send(freed, conversation, sink) {
                Err(error) if matches!(error.kind(), ErrorKind::Context { .. }) => error,
                other => return other,
            };
            let mut is_smaller = false;
            // The learnt window may be wrong, so documents are shortened only if everything
            // else has failed.
            while !(is_smaller
                && (self.fits(conversation)
                    || steps.peek() == Some(&RecoveryStep::ShortenDocuments)))
            {
                match steps.next() {
                    Some(step) => {
                        is_smaller |= self.apply_step(step, freed, conversation, stats, sink)?;
                    }
                    None if is_smaller => break,
                    None => return Err(self.with_overflow_cause(error, conversation)),
                }
            }
        }
    }

    fn fits(&self, conversation: &Conversation) -> bool {
        let window = conversation.window(self.window);
        window.is_none_or(|window| conversation.estimate() <= window)
    }

    /// Sends the request, unless it is clearly too long: some endpoints silently drop the
    /// beginning of a long conversation.
    fn send(
        &self,
        freed: &mut FreedRoom,
        conversation: &mut Conversation,
        sink: &mut EventSink<'_>,
    ) -> Result<ModelReply> {
        let tokens = conversation.estimate();
        // The size is an estimate, so a small excess is allowed.
        let slack = if conversation.meter().is_corrected() { 8 } else { 2 };
        if let Some(window) = self.window.filter(|window| tokens > window + window / slack) {
            let (tokens, window) = (group_digits(tokens), group_digits(window));
            return Err(Error::new(
                ErrorKind::Context { limit: None, used: None },
                format!(
                    "failed to fit the conversation into the model's context: it has about {tokens} tokens, and the window has {window}"
                ),
            ));
        }
        freed.report(conversation, sink);
        let window = conversation.window(self.window);
        sink(Event::Estimate { tokens, window });
        let request = ModelRequest { messages: conversation.messages(), tools: self.tools };
        let reply = self.model.complete(&request, sink);
        if let Err(error) = &reply
            && let ErrorKind::Context { limit, used } = error.kind()
        {
            conversation.record_refusal(limit, used);
            *freed = FreedRoom::new(conversation);
        }
        reply
    }

    /// Summarizes before the context is full. If that fails, a warning is reported and the
    /// request is sent unchanged: the endpoint has not refused it yet.
    fn summarize_if_nearly_full(
        &self,
        freed: &mut FreedRoom,
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
        self.apply_step(RecoveryStep::ShortenLatest, freed, conversation, stats, sink)?;
        if is_below(conversation) || self.has_summary_failed.get() {
            return Ok(());
        }
        let step = RecoveryStep::Summarize(SummaryReason::NearlyFull);
        match self.apply_step(step, freed, conversation, stats, sink) {
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted(_) | ErrorKind::Limit) => {
                Err(error)
            }
            Err(error) => {
                self.has_summary_failed.set(true);
                let cause = error.message();
                sink(Event::Warning(&format!(
                    "failed to summarize the conversation, so it stays unchanged: {cause}"
                )));
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Applies one step. Returns whether it shortened the conversation.
    fn apply_step(
        &self,
        step: RecoveryStep,
        freed: &mut FreedRoom,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<bool> {
        let max_bytes = limits::SHORTENED_RESULT_BYTES;
        let (what, count) = match step {
            RecoveryStep::Summarize(reason) => {
                let outcome = self.replace_older(conversation, reason, stats, sink)?;
                let SummaryOutcome::Summarized(count) = outcome else {
                    return Ok(false);
                };
                freed.summarized += count;
                return Ok(true);
            }
            RecoveryStep::ShortenLatest if self.results_exceed_window(conversation) => {
                let turn = conversation.latest_turn_start();
                let count = conversation.shorten_results(max_bytes, turn);
                ("tool results", count)
            }
            RecoveryStep::ShortenLatest => return Ok(false),
            RecoveryStep::ShortenResults => {
                ("tool results", conversation.shorten_results(max_bytes, 0))
            }
            RecoveryStep::ShortenDocuments => {
                ("skill documents", conversation.shorten_documents(max_bytes))
            }
        };
        if count > 0 {
            sink(Event::Warning(&format!(
                "the model's context is full: {what} were shortened ({count})"
            )));
        }
        Ok(count > 0)
    }

    /// Whether the results of the current turn alone exceed the window. A summary of older
    /// messages would not help then.
    fn results_exceed_window(&self, conversation: &Conversation) -> bool {
        let turn = &conversation.messages()[conversation.latest_turn_start()..];
        let is_result = |message: &&Message| matches!(message, Message::Tool(_));
        let results = turn
            .iter()
            .filter(|message| is_result(message) && plan::document_text(message).is_none());
        let bytes: u64 = results.map(|message| meter::message_bytes(message, true)).sum();
        let window = conversation.window(self.window);
        window.is_some_and(|window| conversation.meter().bytes_to_tokens(bytes) > window)
    }

    /// Replaces all messages before the last turn by a summary, at the user's request.
    pub(crate) fn compact(
        &self,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<SummaryOutcome> {
        conversation.set_tools(self.tools);
        let mut freed = FreedRoom::new(conversation);
        let outcome = self.replace_older(conversation, SummaryReason::Requested, stats, sink)?;
        if let SummaryOutcome::Summarized(count) = outcome {
            freed.summarized = count;
            freed.report(conversation, sink);
        }
        Ok(outcome)
    }

    fn replace_older(
        &self,
        conversation: &mut Conversation,
        reason: SummaryReason,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<SummaryOutcome> {
        let window = conversation.window(self.window);
        let window = window.unwrap_or_else(|| conversation.estimate());
        let words = (window / 10).min(limits::SUMMARY_TOKENS);
        let current = conversation.messages_without_system();
        let budget = if reason.keeps_recent_turns() {
            recent_turns_budget(conversation, window, words)
        } else {
            0
        };
        let Some(plan) = SummaryPlan::new(current, budget) else {
            return Ok(SummaryOutcome::NothingOlder);
        };
        let max_bytes = conversation.meter().tokens_to_bytes(words * 2);
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        // The conversation with a summary of the usual length.
        let rest = plan.apply(&"x".repeat(max_bytes / 2));
        let meter = conversation.meter();
        let saved = meter.tokens_from(current, 0).saturating_sub(meter.tokens_from(&rest, 0));
        // Even an empty summary would not make it shorter, so no request is sent.
        let least = meter::bytes_from(&plan.apply(""), 0);
        if reason.keeps_recent_turns() && saved < window / 20
            || least >= meter::bytes_from(current, 0)
        {
            return Ok(SummaryOutcome::NotShorter);
        }
        let written = self.request_summary(&plan.old, reason, conversation, stats, sink);
        let is_permanent =
            |error: &Error| matches!(error.kind(), ErrorKind::Endpoint | ErrorKind::Protocol);
        let text = match written {
            Err(error) if reason.is_urgent() && is_permanent(&error) => None,
            other => other?,
        };
        if text.is_none() && reason == SummaryReason::Requested {
            return Ok(SummaryOutcome::NotWritten);
        }
        let text = text.unwrap_or_else(|| {
            sink(Event::Warning(
                "the model wrote no summary: only the beginnings of older messages are kept",
            ));
            summary::shortened_transcript(&plan.old, max_bytes / 2)
        });
        let text = truncate(text.trim(), max_bytes);
        let messages = plan.apply(&text);
        if meter::bytes_from(&messages, 0) >= meter::bytes_from(current, 0) {
            return Ok(SummaryOutcome::NotShorter);
        }
        let count = plan.old.len();
        conversation.replace_messages(messages);
        Ok(SummaryOutcome::Summarized(count))
    }

    /// Requests the summary from the model. `None` if it wrote none, or an incomplete one
    /// that the user requested. The text is not reported as an answer.
    fn request_summary(
        &self,
        old: &[&Message],
        reason: SummaryReason,
        conversation: &Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<Option<String>> {
        let estimate = conversation.estimate();
        let window = conversation.window(self.window).unwrap_or(estimate);
        let tokens = (window / 10).min(limits::SUMMARY_TOKENS);
        let bytes = conversation.meter().tokens_to_bytes(window / 5 * 3);
        let mut max_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        for _ in 0..limits::SUMMARY_TRIES {
            let prompt = summary::request(old, max_bytes, tokens / 2);
            let request = ModelRequest { messages: &[Message::user(prompt)], tools: &[] };
            let reply = self.model.complete(&request, &mut |event| match event {
                Event::Text(_) | Event::Reasoning(_) | Event::MessageEnd { .. } => {}
                other => sink(other),
            });
            match reply {
                Ok(reply) => {
                    stats.steps += 1;
                    stats.usage += reply.usage.unwrap_or_default();
                    let message = reply.message;
                    let is_no_summary =
                        message.content.trim().is_empty() || !message.calls.is_empty();
                    let is_unusable = match reply.finish {
                        FinishReason::Complete => false,
                        FinishReason::Length | FinishReason::Cut => {
                            reason == SummaryReason::Requested
                        }
                        FinishReason::Filtered | FinishReason::UnparsedCall => true,
                    };
                    if is_no_summary || is_unusable {
                        return Ok(None);
                    }
                    return Ok(Some(message.content));
                }
                Err(error) if matches!(error.kind(), ErrorKind::Context { .. }) => max_bytes /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The steps to shorten a conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecoveryStep {
    ShortenLatest,
    Summarize(SummaryReason),
    ShortenResults,
    ShortenDocuments,
}

const RECOVERY_STEPS: [RecoveryStep; 5] = [
    RecoveryStep::ShortenLatest,
    RecoveryStep::Summarize(SummaryReason::Refused),
    RecoveryStep::Summarize(SummaryReason::RefusedAgain),
    RecoveryStep::ShortenResults,
    RecoveryStep::ShortenDocuments,
];

/// The number of bytes of the latest turns that stay, so that the conversation with all
/// permanent messages is well below the threshold.
fn recent_turns_budget(conversation: &Conversation, window: u64, summary: u64) -> u64 {
    let meter = conversation.meter();
    let always = conversation.messages().iter().filter(|message| {
        matches!(message, Message::System(_)) || plan::document_text(message).is_some()
    });
    let always: u64 = always.map(|message| meter::message_bytes(message, true)).sum();
    let always = meter.bytes_to_tokens(always + meter.tool_bytes());
    let half = window.saturating_sub(always) / 2;
    meter.tokens_to_bytes(half.min((window / 5 * 3).saturating_sub(always + summary)))
}
