//! The trial requests: a tool call whose result the model must use, and a stream.
//!
//! They use the same [`HttpModel`] as a conversation, with its repairs and retries.

use std::time::Instant;

use serde_json::{Value, json};

use crate::agent::with_valid_arguments;
use crate::cli::doctor::report::DoctorCheck;
use crate::cli::one_shot::incomplete_error;
use crate::config::Endpoint;
use crate::conversation::Conversation;
use crate::error::Result;
use crate::event::{Event, EventSink};
use crate::limits;
use crate::model::http::HttpModel;
use crate::model::{FinishReason, Model, ModelRequest};
use crate::text::counted;
use crate::tool::{ToolCall, ToolDefinition, ToolResult, Usage, milliseconds, parse_arguments};
use crate::world::cancellation::Cancellation;

const A: i64 = 317;
const B: i64 = 588;

/// Requests a call of a tool that adds two numbers, and an answer with the sum.
pub(super) fn tool_call(
    endpoint: &Endpoint,
    cancellation: &Cancellation,
    sink: &mut EventSink<'_>,
) -> Result<DoctorCheck> {
    const NAME: &str = "tool_call";
    let model = HttpModel::new(endpoint.clone(), false, cancellation.clone());
    let tools = [addition_tool()];
    let mut conversation = Conversation::new("");
    conversation.add_question(format!(
        "Call the tool `add` with a = {A} and b = {B}. Then answer with the sum that it returns."
    ));
    let start = Instant::now();
    let (mut usage, mut is_called, mut mistake) = (None, false, None);
    for step in 1..=limits::TOOL_CHECK_STEPS {
        let request = ModelRequest { messages: conversation.messages(), tools: &tools };
        let reply = model.complete(&request, sink)?;
        add_usage(&mut usage, reply.usage);
        if let Some(error) = reply.cause.or_else(|| incomplete_error(reply.finish)) {
            return Err(error);
        }
        let calls = reply.message.calls.clone();
        if calls.is_empty() {
            let took = milliseconds(start.elapsed());
            let cost = cost_text(step, took, usage);
            let check = judge(&reply.message.content, is_called, mistake, &cost);
            return Ok(check.with_detail("duration_ms", took));
        }
        is_called = true;
        conversation.add_answer(with_valid_arguments(reply.message));
        for call in &calls {
            let result = match compute_sum(call) {
                Ok(sum) => ToolResult::success(json!({"sum": sum}).to_string(), ""),
                Err(error) => {
                    mistake = Some(error.clone());
                    ToolResult::failure(error)
                }
            };
            conversation.add_result(result);
        }
    }
    let message = "the model keeps calling the tool and never answers";
    Ok(DoctorCheck::warning(NAME, message, BETTER_MODEL))
}

const BETTER_MODEL: &str =
    "use a model trained for tool calls (LLM_MODEL_NAME); small models often fail";

fn judge(answer: &str, is_called: bool, mistake: Option<String>, cost: &str) -> DoctorCheck {
    const NAME: &str = "tool_call";
    let warning =
        |message: &str| DoctorCheck::warning(NAME, format!("{message} ({cost})"), BETTER_MODEL);
    if !is_called {
        return warning("the model answered without calling the tool");
    }
    if let Some(mistake) = mistake {
        return warning(&format!("the model made a mistake in its call: {mistake}"));
    }
    if !answer.contains(&(A + B).to_string()) {
        return warning("the model called the tool, but did not report its result");
    }
    DoctorCheck::ok(NAME, format!("called, and its result was used: {cost}"))
}

fn addition_tool() -> ToolDefinition {
    ToolDefinition {
        name: "add".into(),
        description: "Adds two whole numbers and gives their sum.".into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first number."},
                "b": {"type": "integer", "description": "The second number."}
            },
            "required": ["a", "b"],
        }),
    }
}

/// Runs the tool. The error is shown to the model and to the user.
fn compute_sum(call: &ToolCall) -> std::result::Result<i64, String> {
    if call.name != "add" {
        return Err(format!("there is no tool `{}`, only `add`", call.name));
    }
    let arguments = parse_arguments(&call.arguments)?;
    let number = |name: &str| match arguments.get(name) {
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    match (number("a"), number("b")) {
        (Some(a), Some(b)) if (a, b) == (A, B) || (b, a) == (A, B) => Ok(a + b),
        (Some(_), Some(_)) => Err(format!("the numbers are {A} and {B}")),
        _ => Err("a and b must be whole numbers".into()),
    }
}

fn add_usage(sum: &mut Option<Usage>, more: Option<Usage>) {
    if let Some(more) = more {
        *sum.get_or_insert_default() += more;
    }
}

fn cost_text(steps: u32, took: u64, usage: Option<Usage>) -> String {
    let requests = counted(steps as usize, "request");
    let tokens = usage.map_or(String::new(), |usage| {
        format!(", {} tokens read, {} written", usage.prompt_tokens, usage.completion_tokens)
    });
    format!("{requests}, {took} ms{tokens}")
}

/// Requests a streamed answer.
pub(super) fn streaming(
    endpoint: &Endpoint,
    cancellation: &Cancellation,
    sink: &mut EventSink<'_>,
) -> Result<DoctorCheck> {
    const NAME: &str = "streaming";
    let model = HttpModel::new(endpoint.clone(), true, cancellation.clone());
    let mut conversation = Conversation::new("");
    conversation.add_question("Count from one to ten, in words.");
    let request = ModelRequest { messages: conversation.messages(), tools: &[] };
    let mut pieces = 0;
    let reply = model.complete(&request, &mut |event| {
        if let Event::Text(piece) | Event::Reasoning(piece) = &event {
            pieces += u32::from(!piece.is_empty());
        }
        sink(event);
    })?;
    if reply.finish == FinishReason::Cut
        && let Some(error) = reply.cause.or_else(|| incomplete_error(reply.finish))
    {
        return Err(error);
    }
    let check = if !model.is_streaming() {
        let fix = "none needed: the program then requests whole answers; --no-stream saves the first attempt";
        DoctorCheck::warning(NAME, "the endpoint does not stream", fix)
    } else if pieces > 1 {
        DoctorCheck::ok(NAME, format!("received {pieces} pieces"))
    } else {
        DoctorCheck::ok(NAME, "received in one piece: answers appear only when they are complete")
    };
    Ok(check.with_detail("pieces", pieces))
}
