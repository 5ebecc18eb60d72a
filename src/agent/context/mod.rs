//! Keeps a conversation within the model's context.
//!
//! Older messages are replaced by a summary that the model writes: before a request that
//! would use more than four fifths of the window, or after an endpoint refused a request as
//! too long. If that is not enough, tool results are shortened, then skill documents.

use crate::conversation::{Conversation, meter};
use base::error::{Error, ErrorKind, Result};
use base::event::{Event, EventSink, RunStats};
use base::limits;
use base::message::Message;
use base::text::{group_digits, truncate};
use base::tool::{CallForm, ToolDefinition};
use chat_api::{CallForms, FinishReason, Model, ModelReply, ModelRequest};

mod overflow_cause;
mod plan;
mod summary;

use plan::SummaryPlan;

/// Sends the requests of one turn and keeps them within the context.
pub struct ContextManager<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// The tools in every request.
    pub tools: &'a [ToolDefinition],
    /// The configured context window in tokens, if any.
    pub window: Option<u64>,
    /// The forms of calls that a constrained reply may have.
    pub forms: Vec<CallForm>,
    /// Those that the next reply may have.
    pub allowed_forms: Vec<CallForm>,
    /// Whether the next reply may be an answer.
    pub allows_answer: bool,
    /// Messages that follow the conversation in the next request only.
    pub reminder: Vec<Message>,
    /// Whether a summary failed in this turn before the context was full.
    has_summary_failed: bool,
}

/// The reason for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SummaryReason {
    /// The context is nearly full. The conversation can still be sent without a summary.
    NearlyFull,
    /// The context is full. As many of the latest turns stay as leave some free space.
    ContextFull,
    /// The user requested a summary. Only the last question and the last step stay.
    Requested,
}

/// The outcome of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryOutcome {
    /// The summary replaces older messages.
    Summarized,
    /// There are no older messages; nothing has changed.
    NothingOlder,
    /// The summary would not be much shorter; nothing has changed.
    NotShorter,
    /// The model wrote no summary, and the conversation still fits; nothing has changed.
    NotWritten,
}

/// The sizes of a request for a summary.
struct SummarySizes {
    /// The messages to summarize, as text.
    transcript_bytes: usize,
    /// The summary, as usual; a longer one is cut at twice as many.
    summary_bytes: usize,
    /// The summary, as it is requested.
    words: u64,
}

/// A conversation that is made to fit, with the places where its changes are recorded.
struct Fitting<'f, 's> {
    conversation: &'f mut Conversation,
    stats: &'f mut RunStats,
    sink: &'f mut EventSink<'s>,
    /// Tokens before the first change.
    before: u64,
    /// The number of messages replaced by a summary.
    summarized: usize,
}

impl<'f, 's> Fitting<'f, 's> {
    fn new(
        conversation: &'f mut Conversation,
        stats: &'f mut RunStats,
        sink: &'f mut EventSink<'s>,
    ) -> Fitting<'f, 's> {
        let before = conversation.estimate();
        Fitting { conversation, stats, sink, before, summarized: 0 }
    }

    /// Reports a summary once, with all changes since then.
    fn report(&mut self) {
        let summarized = std::mem::take(&mut self.summarized);
        if summarized > 0 {
            let after = self.conversation.estimate();
            (self.sink)(Event::Context { summarized, before: self.before, after });
        }
    }

    /// Reports how many messages were shortened. Returns whether there were any.
    fn report_shortened(&mut self, what: &str, count: usize) -> bool {
        if count > 0 {
            (self.sink)(Event::Warning(&format!(
                "the model's context is full: {what} were shortened ({count})"
            )));
        }
        count > 0
    }
}

impl<'a> ContextManager<'a> {
    /// A manager for one turn.
    pub fn new(
        model: &'a dyn Model,
        tools: &'a [ToolDefinition],
        window: Option<u64>,
    ) -> ContextManager<'a> {
        ContextManager {
            model,
            tools,
            window,
            forms: Vec::new(),
            allows_answer: true,
            allowed_forms: Vec::new(),
            reminder: Vec::new(),
            has_summary_failed: false,
        }
    }

    /// Sends one request. A conversation that does not fit is shortened; a refused request is
    /// never repeated unchanged.
    pub fn complete(
        &mut self,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<ModelReply> {
        conversation.set_tools(self.tools);
        let mut fitting = Fitting::new(conversation, stats, sink);
        if let Some(window) = fitting.conversation.window(self.window) {
            if fitting.before > sending_limit(fitting.conversation, window) {
                self.summarize(&mut fitting, SummaryReason::ContextFull)?;
            } else if fitting.before > window / 5 * 4 && !self.has_summary_failed {
                self.summarize_early(&mut fitting)?;
            }
        }
        loop {
            let error = match self.send(&mut fitting) {
                Err(error) if matches!(error.kind(), ErrorKind::Context { .. }) => error,
                other => return other,
            };
            if !self.shrink(&mut fitting)? {
                fitting.report();
                return Err(self.with_overflow_cause(error, fitting.conversation));
            }
        }
    }

    /// Summarizes before the context is full. If that fails, the conversation stays unchanged, and
    /// the turn continues without another try.
    fn summarize_early(&mut self, fitting: &mut Fitting<'_, '_>) -> Result<()> {
        let cause = match self.summarize(fitting, SummaryReason::NearlyFull) {
            Ok(SummaryOutcome::NotWritten) => "the model wrote no summary".to_string(),
            Ok(_) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted(_) | ErrorKind::Limit) => {
                return Err(error);
            }
            Err(error) => error.message().to_string(),
        };
        self.has_summary_failed = true;
        (fitting.sink)(Event::Warning(&format!(
            "failed to summarize the conversation, so it stays unchanged: {cause}"
        )));
        Ok(())
    }

    /// Sends the request, unless it is clearly too long: some endpoints silently drop the
    /// beginning of a long conversation.
    fn send(&self, fitting: &mut Fitting<'_, '_>) -> Result<ModelReply> {
        let tokens = fitting.conversation.estimate();
        let is_too_long = |window: &u64| tokens > sending_limit(fitting.conversation, *window);
        if let Some(window) = self.window.filter(is_too_long) {
            let kind = ErrorKind::Context { limit: Some(window), used: Some(tokens) };
            let (tokens, window) = (group_digits(tokens), group_digits(window));
            let message = format!(
                "failed to fit the conversation into the model's context: it has about {tokens} tokens, and the window has {window}"
            );
            let hint = "start a new conversation, give the server a larger context, or set LLM_CONTEXT_WINDOW higher if it has one";
            return Err(Error::new(kind, message).with_hint(hint));
        }
        fitting.report();
        let conversation = &mut *fitting.conversation;
        let window = conversation.window(self.window);
        (fitting.sink)(Event::Estimate { tokens, window });
        let with_reminder;
        let messages = if self.reminder.is_empty() {
            conversation.messages()
        } else {
            with_reminder = [conversation.messages(), &self.reminder].concat();
            &with_reminder
        };
        let request = ModelRequest {
            messages,
            tools: self.tools,
            call_mark: conversation.call_mark(),
            forms: CallForms {
                described: &self.forms,
                allowed: &self.allowed_forms,
                allows_answer: self.allows_answer,
            },
        };
        let reply = self.model.complete(&request, fitting.sink);
        if let Err(error) = &reply
            && let ErrorKind::Context { limit, used } = error.kind()
        {
            conversation.record_refusal(limit, used);
            fitting.before = conversation.estimate();
        }
        reply
    }

    /// Makes a conversation shorter that was refused. Returns whether it is.
    fn shrink(&self, fitting: &mut Fitting<'_, '_>) -> Result<bool> {
        let max_bytes = limits::SHORTENED_RESULT_BYTES;
        let outcome = self.summarize(fitting, SummaryReason::ContextFull)?;
        let mut is_shorter = outcome == SummaryOutcome::Summarized;
        let window = fitting.conversation.window(self.window);
        let fits = window.is_none_or(|window| fitting.conversation.estimate() <= window);
        if !is_shorter || !fits {
            let count = fitting.conversation.shorten_results(max_bytes);
            is_shorter |= fitting.report_shortened("tool results", count);
        }
        // The learnt window may be wrong, so documents are shortened only if nothing else is
        // left.
        if !is_shorter {
            let count = fitting.conversation.shorten_documents(max_bytes);
            is_shorter = fitting.report_shortened("skill documents", count);
        }
        Ok(is_shorter)
    }

    /// Replaces all messages before the last turn by a summary, at the user's request.
    pub fn compact(
        &self,
        conversation: &mut Conversation,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<SummaryOutcome> {
        conversation.set_tools(self.tools);
        let mut fitting = Fitting::new(conversation, stats, sink);
        let outcome = self.summarize(&mut fitting, SummaryReason::Requested)?;
        fitting.report();
        Ok(outcome)
    }

    /// Replaces older messages by a summary, if that makes the conversation shorter.
    fn summarize(
        &self,
        fitting: &mut Fitting<'_, '_>,
        reason: SummaryReason,
    ) -> Result<SummaryOutcome> {
        let (conversation, meter) = (&*fitting.conversation, fitting.conversation.meter());
        let window = conversation.window(self.window).unwrap_or_else(|| conversation.estimate());
        let summary_tokens = (window / 10).min(limits::SUMMARY_TOKENS);
        let current = conversation.messages_without_system();
        // A summary of the usual length must make some room; a requested one may be short.
        let (budget, added) = match reason {
            SummaryReason::NearlyFull | SummaryReason::ContextFull => (
                latest_turns_budget(conversation, window, summary_tokens),
                meter.tokens_to_bytes(summary_tokens + window / 20),
            ),
            SummaryReason::Requested => (0, 0),
        };
        let Some(plan) = SummaryPlan::new(current, budget) else {
            return Ok(SummaryOutcome::NothingOlder);
        };
        let current_bytes = meter::bytes_from(current, 0);
        if meter::bytes_from(&plan.apply(""), 0) + added >= current_bytes {
            return Ok(SummaryOutcome::NotShorter);
        }
        let bytes = |tokens| usize::try_from(meter.tokens_to_bytes(tokens)).unwrap_or(usize::MAX);
        let sizes = SummarySizes {
            transcript_bytes: bytes(window / 5 * 3),
            summary_bytes: bytes(summary_tokens),
            words: summary_tokens / 2,
        };
        let (stats, sink) = (&mut *fitting.stats, &mut *fitting.sink);
        let text = match reason {
            SummaryReason::ContextFull => self.automatic_summary(&plan.old, &sizes, stats, sink)?,
            SummaryReason::NearlyFull | SummaryReason::Requested => {
                match self.request_summary(&plan.old, &sizes, stats, sink)? {
                    Some((text, finish)) if is_usable(finish, reason) => text,
                    _ => return Ok(SummaryOutcome::NotWritten),
                }
            }
        };
        let messages = plan.apply(&truncate(text.trim(), sizes.summary_bytes.saturating_mul(2)));
        if meter::bytes_from(&messages, 0) >= current_bytes {
            return Ok(SummaryOutcome::NotShorter);
        }
        fitting.summarized += plan.old.len();
        fitting.conversation.replace_messages(messages);
        Ok(SummaryOutcome::Summarized)
    }

    /// A summary by the model, or else the beginnings of the messages: the turn cannot continue
    /// without.
    fn automatic_summary(
        &self,
        old: &[&Message],
        sizes: &SummarySizes,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<String> {
        let cause = match self.request_summary(old, sizes, stats, sink) {
            Ok(Some((text, finish))) if is_usable(finish, SummaryReason::ContextFull) => {
                return Ok(text);
            }
            Ok(_) => String::new(),
            // The endpoint would refuse it again.
            Err(error) if matches!(error.kind(), ErrorKind::Endpoint | ErrorKind::Protocol) => {
                format!(" ({})", error.message())
            }
            Err(error) => return Err(error),
        };
        sink(Event::Warning(&format!(
            "the model wrote no summary{cause}: only the beginnings of older messages are kept"
        )));
        Ok(summary::shortened_transcript(old, sizes.summary_bytes))
    }

    /// Requests a summary from the model, which is not reported as an answer. `None` if it wrote
    /// none.
    fn request_summary(
        &self,
        old: &[&Message],
        sizes: &SummarySizes,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
    ) -> Result<Option<(String, FinishReason)>> {
        let mut transcript_bytes = sizes.transcript_bytes;
        for _ in 0..limits::SUMMARY_TRIES {
            let prompt = summary::request(old, transcript_bytes, sizes.words);
            let question = [Message::user(prompt)];
            let request = ModelRequest::of_messages(&question);
            let reply = self.model.complete(&request, &mut |event| match event {
                Event::Text(_) | Event::Reasoning(_) | Event::MessageEnd { .. } => {}
                other => sink(other),
            });
            match reply {
                Ok(reply) => {
                    stats.steps += 1;
                    stats.usage += reply.usage.unwrap_or_default();
                    let message = reply.message;
                    let is_text = !message.content.trim().is_empty() && message.calls.is_empty();
                    return Ok(is_text.then_some((message.content, reply.finish)));
                }
                Err(error) if matches!(error.kind(), ErrorKind::Context { .. }) => {
                    transcript_bytes /= 2;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The largest estimate that is sent. The size is an estimate, so a small excess is allowed.
fn sending_limit(conversation: &Conversation, window: u64) -> u64 {
    let slack = if conversation.meter().is_corrected() { 8 } else { 2 };
    window + window / slack
}

/// Whether a summary that ended like this is used. An incomplete one is better than none, unless
/// the user requested it.
fn is_usable(finish: FinishReason, reason: SummaryReason) -> bool {
    match finish {
        FinishReason::Complete => true,
        FinishReason::Length | FinishReason::Cut => reason != SummaryReason::Requested,
        FinishReason::Filtered | FinishReason::UnparsedCall | FinishReason::UnknownNumber => false,
    }
}

/// The number of bytes of the latest turns that stay, so that the conversation then takes three
/// fifths of the window.
fn latest_turns_budget(conversation: &Conversation, window: u64, summary_tokens: u64) -> u64 {
    let meter = conversation.meter();
    let always = conversation.messages().iter().filter(|message| {
        matches!(message, Message::System(_)) || plan::document_text(message).is_some()
    });
    let always: u64 = always.map(|message| meter::message_bytes(message, true)).sum();
    let always = meter.bytes_to_tokens(always + meter.tool_bytes());
    meter.tokens_to_bytes((window / 5 * 3).saturating_sub(always + summary_tokens))
}
