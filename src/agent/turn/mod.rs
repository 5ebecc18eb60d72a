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
use crate::tools::Tools;
use base::error::{Error, ErrorKind, Result};
use base::event::{Event, EventSink, RunStats};
use base::limits;
use base::message::{AssistantMessage, Message};
use base::tool::{Action, ToolCall, ToolResult, sendable_arguments};
use chat_api::{FinishReason, Model, ModelReply};
use host::cancellation::Cancellation;

mod repeated_calls;
mod replies;
mod requests;

use repeated_calls::RepeatedCalls;
use replies::{Rescue, is_table};

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
    /// Whether a small model is asked a plain first question without tools before it gets them.
    /// That request has instructions of its own, so the conversation's own must not matter.
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
    /// The first reply, if it announced or described a call that it did not make: the answer,
    /// should no call follow.
    announcement: Option<ModelReply>,
    /// Whether the next reply, if it is constrained, must run code: the model would calculate in
    /// its head.
    must_calculate: bool,
}

impl Turn<'_, '_> {
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
                    let is_read = self.tools.is_read_only(&call.name);
                    let file = result.untrusted.as_deref().filter(|_| is_read);
                    self.must_calculate |=
                        self.context.model.is_small() && file.is_some_and(is_table);
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

/// The result of a call beyond [`limits::CALLS_RUN`] in one message, which is not run.
fn not_run() -> ToolResult {
    ToolResult::failure(format!(
        "not run: only the first {} calls of one message are run; call it again in the next message",
        limits::CALLS_RUN
    ))
}

/// Replaces invalid arguments by repaired ones or `{}`. Endpoints refuse every later request whose
/// history contains invalid arguments.
pub fn with_valid_arguments(mut message: AssistantMessage) -> AssistantMessage {
    for call in &mut message.calls {
        if let Cow::Owned(valid) = sendable_arguments(&call.arguments) {
            call.arguments = valid;
        }
    }
    message
}
