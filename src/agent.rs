//! The loop: ask the model, run the tools it calls, ask again, until it
//! answers without a call.
//!
//! Every box it joins has a seam: the model is a trait, the tools are a
//! registry, what happens is told as events. Whatever goes wrong, the
//! conversation is left in a state that can be continued.

use std::time::Instant;

use crate::context::ContextManager;
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventSink, RunStats};
use crate::limits;
use crate::message::AssistantMessage;
use crate::model::{FinishReason, Model};
use crate::tool::{ToolCall, ToolResult, parse_arguments};
use crate::tools::Tools;
use crate::world::cancellation::Cancellation;

/// How a turn ended. Its text is in the conversation
/// ([`Conversation::answer_text`]), and only there: it may be long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOutcome {
    /// Whether all of it is there.
    pub finish: FinishReason,
    /// Why not, where more is known.
    pub cause: Option<Error>,
}

/// What bounds a turn.
#[derive(Clone, Debug)]
pub struct TurnLimits {
    /// Requests in one turn.
    pub max_steps: u32,
    /// Tokens that the model reads at most, where that is set.
    pub window: Option<u64>,
    /// Signals and the deadline of the run.
    pub cancellation: Cancellation,
}

impl Default for TurnLimits {
    /// As many requests as without `--max-steps`, and all the time in the world.
    fn default() -> TurnLimits {
        TurnLimits {
            max_steps: limits::MAX_STEPS,
            window: None,
            cancellation: Cancellation::never(),
        }
    }
}

/// Answers the conversation's open question. On an error the conversation
/// holds everything up to the last request: asking again repeats only that.
pub fn run_turn(
    conversation: &mut Conversation,
    model: &dyn Model,
    tools: &Tools<'_>,
    bounds: &TurnLimits,
    stats: &mut RunStats,
    sink: &mut EventSink<'_>,
) -> Result<TurnOutcome> {
    let asked = ContextManager::new(model, tools.definitions(), bounds.window);
    for _ in 0..bounds.max_steps {
        let reply = asked.complete(conversation, stats, sink)?;
        stats.steps += 1;
        stats.usage += reply.usage.unwrap_or_default();
        let calls = reply.message.calls.clone();
        sink(Event::MessageEnd { calls: calls.len() });
        conversation.add_answer(with_valid_arguments(reply.message));
        conversation.report(reply.usage);
        tell_fault(conversation, sink);
        if calls.is_empty() {
            return Ok(TurnOutcome { finish: reply.finish, cause: reply.cause });
        }
        for (place, call) in calls.iter().enumerate() {
            sink(Event::ToolCall { call, summary: &tools.summary(call) });
            // A log that cannot be written asks to stop: what is not written
            // down must not run.
            let told = bounds.cancellation.check();
            if told.is_ok() {
                run(call, place, conversation, tools, stats, sink);
            }
            tell_fault(conversation, sink);
            if let Err(stop) = told.and_then(|()| bounds.cancellation.check()) {
                conversation.close("");
                return Err(stop.into());
            }
        }
    }
    conversation.close("");
    let steps = match bounds.max_steps {
        1 => "1 step".to_string(),
        several => format!("{several} steps"),
    };
    let message = format!("failed to finish: there is no answer after {steps}");
    Err(Error::new(ErrorKind::Limit, message).with_hint("allow more with --max-steps"))
}

/// Tells once that the conversation is not kept any more, and goes on.
fn tell_fault(conversation: &mut Conversation, sink: &mut EventSink<'_>) {
    if let Some(fault) = conversation.take_fault() {
        sink(Event::Warning(&fault.to_string()));
    }
}

/// Runs a call, unless too many stand before it in its message: then its result
/// is an error.
fn run(
    call: &ToolCall,
    place: usize,
    conversation: &mut Conversation,
    tools: &Tools<'_>,
    stats: &mut RunStats,
    sink: &mut EventSink<'_>,
) {
    let start = Instant::now();
    let result = if place < limits::CALLS {
        conversation.without_repetition(tools.call(call))
    } else {
        ToolResult::failure(format!(
            "not run: of one message only the first {} calls are; call it again in the next one",
            limits::CALLS
        ))
    };
    stats.tool_calls += 1;
    sink(Event::ToolResult { call, result: &result, duration: start.elapsed() });
    if let Some(warning) = &result.warning {
        sink(Event::Warning(warning));
    }
    conversation.add_result(result);
}

/// Broken arguments are answered with an error, but must not stay in the
/// history: endpoints refuse every later request that holds them.
pub(crate) fn with_valid_arguments(mut said: AssistantMessage) -> AssistantMessage {
    for call in &mut said.calls {
        if parse_arguments(&call.arguments).is_err() || call.arguments.trim().is_empty() {
            call.arguments = "{}".into();
        }
    }
    said
}
