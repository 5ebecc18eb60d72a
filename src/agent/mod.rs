//! The agent loop: send the conversation to the model, run the tools that it
//! calls, and repeat until the model answers without a call.
//!
//! The model is a trait, the tools are a registry, and progress is reported as
//! events, so each can be replaced. After any error the conversation can be
//! continued.

use std::borrow::Cow;

use crate::context::ContextManager;
use crate::conversation::Conversation;
use crate::conversation::meter::TokenMeter;
use crate::error::{Error, ErrorKind, FailedPart, Result};
use crate::event::{Event, EventSink, RunStats};
use crate::limits;
use crate::message::{AssistantMessage, Message};
use crate::model::ToolCalling;
use crate::model::{FinishReason, Model, ModelReply, ModelRequest};
use crate::tool::{Action, CallForm, ToolCall, ToolResult, Usage, sendable_arguments};
use crate::tools::Tools;
use crate::world::cancellation::Cancellation;

mod held_text;
mod numbers;
mod quotations;
mod repeated_calls;
mod rescue;

use held_text::HeldText;
use numbers::is_table;
use repeated_calls::RepeatedCalls;
use rescue::{NoAnswer, ReplyPlace, Rescue, Verdict};

/// How a turn ended. The answer itself is not copied, since it may be long:
/// it is in the conversation ([`Conversation::answer_text`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOutcome {
    /// Whether the answer is complete.
    pub finish: FinishReason,
    /// Why the answer is incomplete, if the reason is known.
    pub cause: Option<Error>,
}

/// The limits of a turn.
#[derive(Clone, Debug)]
pub struct TurnLimits {
    /// Largest number of requests in one turn.
    pub max_steps: u32,
    /// Size of the model's context window in tokens; `None` if unknown.
    pub window: Option<u64>,
    /// Whether a small model is asked a plain first question without tools before it gets them. That
    /// request has instructions of its own, so the conversation's own must not matter.
    pub asks_without_tools: bool,
    /// Stops the turn on a signal or at the deadline of the run.
    pub cancellation: Cancellation,
}

impl Default for TurnLimits {
    /// The default of `--max-steps`, no known context window and no deadline.
    fn default() -> TurnLimits {
        TurnLimits {
            max_steps: limits::MAX_STEPS,
            window: None,
            asks_without_tools: false,
            cancellation: Cancellation::never(),
        }
    }
}

/// Answers the conversation's open question.
///
/// On an error the conversation keeps everything up to the last request, so a
/// second call repeats only that request.
pub fn run_turn(
    conversation: &mut Conversation,
    model: &dyn Model,
    tools: &Tools<'_>,
    turn_limits: &TurnLimits,
    stats: &mut RunStats,
    sink: &mut EventSink<'_>,
) -> Result<TurnOutcome> {
    if let Some(Message::User(question)) =
        conversation.messages().get(conversation.latest_turn_start())
    {
        for skill in question.skills.iter().filter(|skill| !skill.name.is_empty()) {
            stats.actions.add(Action::ReadSkill(skill.name.clone()));
        }
    }
    let window = conversation.meter().known_window(turn_limits.window);
    tools.limit_results(TokenMeter::result_bytes(window));
    tools.set_recent_skill(conversation.skills_read().pop());
    let mut context = ContextManager::new(model, tools.definitions(), turn_limits.window);
    context.forms = tools.call_forms();
    let mut turn = Turn {
        context,
        conversation,
        tools,
        limits: turn_limits,
        stats,
        sink,
        repeated: RepeatedCalls::default(),
        rescue: Rescue::new(model.is_small()),
        announcement: None,
        must_calculate: false,
    };
    for step in 1..=turn_limits.max_steps {
        let known = if step == 1 { turn.known_answer()? } else { None };
        let reply = if known.is_none() { turn.next_reply(step)? } else { known };
        let Some(reply) = reply else { continue };
        let calls = reply.message.calls.clone();
        (turn.sink)(Event::MessageEnd { calls: calls.len() });
        turn.conversation.add_answer(with_valid_arguments(reply.message));
        turn.conversation.record_usage(reply.usage);
        turn.report_save_error();
        if calls.is_empty() {
            return Ok(TurnOutcome { finish: reply.finish, cause: reply.cause });
        }
        turn.run_calls(&calls)?;
    }
    turn.conversation.close_turn("");
    let steps = match turn_limits.max_steps {
        1 => "1 step".to_string(),
        several => format!("{several} steps"),
    };
    let message = format!("failed to finish the turn: no answer after {steps}");
    Err(Error::new(ErrorKind::Limit, message).with_hint("allow more steps with --max-steps"))
}

/// The instructions of a request without tools.
const WITHOUT_TOOLS: &str = "Answer the user from general knowledge. For anything about files, \
    this computer, the user or the company, reply with the one word TOOLS.";

/// A turn in progress.
struct Turn<'t, 's> {
    context: ContextManager<'t>,
    conversation: &'t mut Conversation,
    tools: &'t Tools<'t>,
    limits: &'t TurnLimits,
    stats: &'t mut RunStats,
    sink: &'t mut EventSink<'s>,
    repeated: RepeatedCalls,
    rescue: Rescue,
    /// The first reply, if it announced or described a call that it did not make: the answer, should
    /// no call follow.
    announcement: Option<ModelReply>,
    /// Whether the next reply, if it is constrained, must run code: the model would calculate in its
    /// head.
    must_calculate: bool,
}

impl<'t> Turn<'t, '_> {
    /// Sends the next request. `None`: the reply neither is an answer nor has calls, and the model
    /// is asked again.
    fn next_reply(&mut self, step: u32) -> Result<Option<ModelReply>> {
        let has_next_step = step < self.limits.max_steps;
        let mut held = self.prepare_request(has_next_step);
        let sink = &mut *self.sink;
        let completed = self
            .context
            .complete(self.conversation, self.stats, &mut |event| held.pass(event, sink));
        let is_reminded = !std::mem::take(&mut self.context.reminder).is_empty();
        let mut reply = match completed {
            Ok(reply) => reply,
            Err(error) => {
                if !matches!(error.part(), Some(FailedPart::Answer(_))) {
                    held.release(self.sink);
                }
                return self.after_failure(error, has_next_step);
            }
        };
        self.stats.steps += 1;
        self.stats.usage += reply.usage.unwrap_or_default();
        // It counts the reminder, too.
        reply.usage = reply.usage.filter(|_| !is_reminded);
        self.rescue.trust_native(&reply.message.calls, self.tools);
        let verdict = if reply.message.calls.is_empty() {
            let calling = self.context.model.tool_calling();
            let (is_first, is_trial) = (step == 1, self.announcement.is_some());
            let place = ReplyPlace { is_first, is_trial, has_next_step, calling };
            self.rescue.judge(&reply, self.conversation, self.tools, place)
        } else {
            Verdict::Answer(reply.finish)
        };
        match verdict {
            Verdict::AskAgain(kind, advice) => {
                if held.has_shown {
                    (self.sink)(Event::MessageEnd { calls: 0 });
                }
                return Ok(self.ask_about(kind, reply, &advice));
            }
            Verdict::Calls(sentence, calls) => {
                if self.context.model.tool_calling() != ToolCalling::Prompted {
                    (self.sink)(Event::Rescue("the call came as text, and is run"));
                }
                self.stats.calls_from_text += u32::try_from(calls.len()).unwrap_or(u32::MAX);
                reply.message.content = sentence;
                reply.message.calls = calls;
                self.announcement = None;
                return Ok(Some(reply));
            }
            Verdict::Answer(finish) => reply.finish = finish,
            Verdict::Quotation => {
                (self.sink)(Event::Rescue("the reply shows a call, which is not run"));
                reply.finish = FinishReason::Complete;
            }
        }
        self.renew_shown_mark(&reply.message.content);
        match self.announcement.take() {
            Some(first) if reply.message.calls.is_empty() => Ok(Some(self.return_to(first))),
            _ => {
                held.release(self.sink);
                Ok(Some(reply))
            }
        }
    }

    /// The answer of a small model that is asked without tools: with tools it always uses one. Only a
    /// question without digits is asked so. An answer with digits, or that only repeats words of the
    /// question, is not taken.
    fn known_answer(&mut self) -> Result<Option<ModelReply>> {
        let [Message::User(question)] = self.conversation.messages_without_system() else {
            return Ok(None);
        };
        let text = question.full_text();
        let is_plain = text.len() <= limits::PLAIN_QUESTION_BYTES
            && !text.contains(char::is_numeric)
            && question.images.is_empty()
            && question.skills.is_empty();
        let limits = self.limits;
        let may_ask = limits.asks_without_tools
            && limits.max_steps > 1
            && !self.tools.definitions().is_empty()
            && self.context.model.is_small();
        if !is_plain || !may_ask {
            return Ok(None);
        }
        let messages = [Message::System(WITHOUT_TOOLS.into()), Message::user(text.clone())];
        let request = ModelRequest::of_messages(&messages);
        let sink = &mut *self.sink;
        let completed = self.context.model.complete(&request, &mut |event| {
            if !matches!(event, Event::Text(_)) {
                sink(event);
            }
        });
        let mut reply = match completed {
            Err(error) if matches!(error.part(), Some(FailedPart::Answer(_))) => return Ok(None),
            completed => completed?,
        };
        self.stats.steps += 1;
        // It says nothing about the size of the conversation.
        self.stats.usage += reply.usage.take().unwrap_or_default();
        let answer = &reply.message.content;
        let words = answer.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let is_answer = reply.finish == FinishReason::Complete
            && !answer.contains(|c: char| c.is_numeric() || c == '{')
            && !text.to_lowercase().contains(&words)
            && !words.contains("tool");
        if !is_answer {
            return Ok(None);
        }
        (self.sink)(Event::Text(answer));
        Ok(Some(reply))
    }

    /// Prepares the next request, after a reply that may become the answer.
    fn ask_about(&mut self, kind: NoAnswer, reply: ModelReply, advice: &str) -> Option<ModelReply> {
        let asked = self.ask_again(kind, &reply.message.content, advice);
        if kind == NoAnswer::Described {
            self.context.model.constrain(true);
        }
        match kind {
            NoAnswer::Announced | NoAnswer::Described => self.announcement = Some(reply),
            // The constrained reply is still to come.
            NoAnswer::CutCall => {}
            NoAnswer::UnknownNumber => self.must_calculate = true,
            _ => self.announcement = None,
        }
        asked
    }

    /// The first reply is the answer after all.
    fn return_to(&self, first: ModelReply) -> ModelReply {
        self.context.model.constrain(false);
        first
    }

    /// Sets what the next reply may be if it is constrained: no call in the last step, or if two
    /// calls brought nothing new; no answer directly after a failure. Nothing of it is held back.
    fn prepare_request(&mut self, has_next_step: bool) -> HeldText<'t> {
        let mut tools = self.tools.definitions();
        if self.context.model.tool_calling() == ToolCalling::Schema {
            let may_call = has_next_step && self.repeated.times_stuck() <= 1;
            let left_out = self.repeated.left_out_tool();
            let allowed = || self.tools.allowed_forms(&self.conversation.skills_read(), left_out);
            self.context.allowed_forms = if may_call { allowed() } else { Vec::new() };
            self.context.allows_answer = !self.repeated.has_just_failed();
            let must_calculate = std::mem::take(&mut self.must_calculate);
            if must_calculate && self.context.allowed_forms.iter().any(runs_source) {
                self.context.allowed_forms.retain(runs_source);
                self.context.allows_answer = false;
            }
            tools = &[];
        }
        HeldText::new(tools, self.announcement.is_some())
    }

    /// Replaces the mark of calls if a text that is not run has it: it may be saved and read again.
    fn renew_shown_mark(&mut self, text: &str) {
        let mark = self.conversation.call_mark();
        if !mark.is_empty() && text.contains(mark) {
            self.conversation.renew_call_mark();
        }
    }

    /// What follows a failed request: an empty reply is asked about, and an announcement before it
    /// is the answer.
    fn after_failure(&mut self, error: Error, has_next_step: bool) -> Result<Option<ModelReply>> {
        let is_empty = match error.part() {
            Some(FailedPart::Answer(tokens)) => {
                let [prompt_tokens, completion_tokens] = tokens.map(u64::from);
                self.stats.steps += 1;
                self.stats.usage += Usage { prompt_tokens, completion_tokens };
                true
            }
            _ => false,
        };
        if is_empty && has_next_step && self.rescue.may_ask(NoAnswer::Empty) {
            return Ok(self.ask_again(NoAnswer::Empty, "", ""));
        }
        let first = self.announcement.take().map(|first| self.return_to(first));
        let is_stopped = self.limits.cancellation.check().is_err();
        let Some(reply) = first.filter(|_| !is_stopped) else {
            return Err(error);
        };
        if !is_empty {
            (self.sink)(Event::Warning(&error.to_string()));
        }
        Ok(Some(reply))
    }

    /// Prepares the next request, which asks again about a reply that is not an answer.
    fn ask_again(&mut self, kind: NoAnswer, reply: &str, advice: &str) -> Option<ModelReply> {
        self.stats.asked_again += 1;
        self.renew_shown_mark(reply);
        (self.sink)(Event::Rescue(kind.line()));
        self.context.reminder = kind.reminder(reply, self.conversation.call_mark(), advice);
        None
    }

    /// Runs the calls of a message in their order.
    fn run_calls(&mut self, calls: &[ToolCall]) -> Result<()> {
        for (index, call) in calls.iter().enumerate() {
            let conversation = &*self.conversation;
            let (repeated, mut counted) = (&mut self.repeated, Ok(()));
            let result = self.tools.call_with_events(call, self.stats, self.sink, |run| {
                let result = match index {
                    limits::CALLS_RUN.. => not_run(),
                    _ => conversation.without_repeated_content(run()),
                };
                let (result, outcome) = repeated.count(call, result, index == 0);
                counted = outcome;
                result
            });
            let stopped = match result {
                Ok(result) => {
                    let is_read = self.tools.is_read_only(&call.name) && result.document.is_none();
                    self.must_calculate |=
                        is_read && self.context.model.is_small() && is_table(&result.content);
                    self.conversation.add_result(result);
                    let stopped = self.limits.cancellation.check().map_err(Error::from);
                    if stopped.is_ok() && counted.is_err() {
                        self.conversation.abandon_calls("not run: the turn ended before it");
                    }
                    stopped.and(counted)
                }
                Err(stop) => Err(stop.into()),
            };
            self.report_save_error();
            if let Err(error) = stopped {
                self.conversation.close_turn("");
                return Err(error);
            }
        }
        Ok(())
    }

    /// Warns once that the conversation can no longer be saved; the turn continues.
    fn report_save_error(&mut self) {
        if let Some(error) = self.conversation.take_journal_error() {
            (self.sink)(Event::Warning(&error.to_string()));
        }
    }
}

/// Whether the model writes the code of such a call.
fn runs_source(form: &CallForm) -> bool {
    form.parameters["properties"].get("script").is_some()
}

/// The result of a call beyond [`limits::CALLS_RUN`] in one message, which is not run.
fn not_run() -> ToolResult {
    ToolResult::failure(format!(
        "not run: only the first {} calls of one message are run; call it again in the next message",
        limits::CALLS_RUN
    ))
}

/// Replaces invalid arguments by repaired ones or `{}`. Endpoints refuse every later request whose
/// history contains invalid arguments.
pub(crate) fn with_valid_arguments(mut message: AssistantMessage) -> AssistantMessage {
    for call in &mut message.calls {
        if let Cow::Owned(valid) = sendable_arguments(&call.arguments) {
            call.arguments = valid;
        }
    }
    message
}
