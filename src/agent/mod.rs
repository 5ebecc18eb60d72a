//! The agent loop: send the conversation to the model, run the tools that it
//! calls, and repeat until the model answers without a call.
//!
//! The model is a trait, the tools are a registry, and progress is reported as
//! events, so each can be replaced. After any error the conversation can be
//! continued.

use std::borrow::Cow;

use crate::context::ContextManager;
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventSink, RunStats};
use crate::limits;
use crate::message::{AssistantMessage, Message};
use crate::model::{FinishReason, Model};
use crate::tool::{Action, ToolResult, sendable_arguments};
use crate::tools::Tools;
use crate::world::cancellation::Cancellation;

mod repeated_failures;

use repeated_failures::RepeatedFailures;

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
    /// Stops the turn on a signal or at the deadline of the run.
    pub cancellation: Cancellation,
}

impl Default for TurnLimits {
    /// The default of `--max-steps`, no known context window and no deadline.
    fn default() -> TurnLimits {
        TurnLimits {
            max_steps: limits::MAX_STEPS,
            window: None,
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
    let mut context = ContextManager::new(model, tools.definitions(), turn_limits.window);
    let mut failures = RepeatedFailures::default();
    for _ in 0..turn_limits.max_steps {
        let reply = context.complete(conversation, stats, sink)?;
        stats.steps += 1;
        stats.usage += reply.usage.unwrap_or_default();
        let calls = reply.message.calls.clone();
        sink(Event::MessageEnd { calls: calls.len() });
        conversation.add_answer(with_valid_arguments(reply.message));
        conversation.record_usage(reply.usage);
        report_save_error(conversation, sink);
        if calls.is_empty() {
            return Ok(TurnOutcome { finish: reply.finish, cause: reply.cause });
        }
        for (index, call) in calls.iter().enumerate() {
            let result = tools.call_with_events(call, stats, sink, |run| {
                if index >= limits::CALLS_RUN {
                    return not_run();
                }
                conversation.without_repeated_content(run())
            });
            let stopped = match result {
                Ok(result) => {
                    let counted = failures.count(call, &result);
                    conversation.add_result(result);
                    turn_limits.cancellation.check().map_err(Error::from).and(counted)
                }
                Err(stop) => Err(stop.into()),
            };
            report_save_error(conversation, sink);
            if let Err(error) = stopped {
                conversation.close_turn("");
                return Err(error);
            }
        }
    }
    conversation.close_turn("");
    let steps = match turn_limits.max_steps {
        1 => "1 step".to_string(),
        several => format!("{several} steps"),
    };
    let message = format!("failed to finish the turn: no answer after {steps}");
    Err(Error::new(ErrorKind::Limit, message).with_hint("allow more steps with --max-steps"))
}

/// Warns once that the conversation can no longer be saved; the turn continues.
fn report_save_error(conversation: &mut Conversation, sink: &mut EventSink<'_>) {
    if let Some(error) = conversation.take_journal_error() {
        sink(Event::Warning(&error.to_string()));
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
pub(crate) fn with_valid_arguments(mut message: AssistantMessage) -> AssistantMessage {
    for call in &mut message.calls {
        if let Cow::Owned(valid) = sendable_arguments(&call.arguments) {
            call.arguments = valid;
        }
    }
    message
}
