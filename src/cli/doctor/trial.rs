//! What `doctor` tries out: a tool called and its result used, and a stream.
//!
//! The requests are made by the same [`HttpModel`] as those of a conversation,
//! with its repairs and retries.

use std::time::Instant;

use serde_json::{Value, json};

use crate::agent::with_valid_arguments;
use crate::cli::ask::shortfall;
use crate::cli::doctor::report::Check;
use crate::config::Endpoint;
use crate::conversation::Conversation;
use crate::error::Error;
use crate::event::{Event, Listener};
use crate::limits;
use crate::model::http::HttpModel;
use crate::model::{Finish, Model, Request};
use crate::tool::{ToolCall, ToolDefinition, ToolResult, Usage, milliseconds, parse_arguments};
use crate::world::patience::Patience;

/// What came of it.
pub struct Trial {
    /// What to tell.
    pub check: Check,
    /// Why it failed, if it did.
    pub error: Option<Error>,
}

impl Trial {
    fn of(check: Check) -> Trial {
        Trial { check, error: None }
    }

    fn failed(name: &'static str, error: Error) -> Trial {
        // This is the command that lists near names: on the line before.
        let check = match error.hint() {
            Some(hint) if hint.contains("doctor") => {
                Check::failure(name, error.kind(), error.message(), "correct LLM_MODEL_NAME")
            }
            _ => Check::failed(name, &error),
        };
        Trial { check, error: Some(error) }
    }
}

const A: i64 = 317;
const B: i64 = 588;

/// Has the model call a tool that adds two numbers, and tell the sum.
pub fn tool_call(endpoint: &Endpoint, patience: &Patience, listener: &mut Listener<'_>) -> Trial {
    const NAME: &str = "tool_call";
    let model = HttpModel::new(endpoint.clone(), false, patience.clone());
    let tools = [addition()];
    let mut conversation = Conversation::new("");
    conversation.ask(format!(
        "Call the tool `add` with a = {A} and b = {B}. Then tell me the sum that it gives."
    ));
    let start = Instant::now();
    let (mut usage, mut is_called, mut slip) = (None, false, None);
    for step in 1..=limits::TRIAL_STEPS {
        let request = Request { messages: conversation.messages(), tools: &tools };
        let reply = match model.complete(&request, listener) {
            Ok(reply) => reply,
            Err(error) => return Trial::failed(NAME, error),
        };
        add_usage(&mut usage, reply.usage);
        if let Some(error) = reply.cause.or_else(|| shortfall(reply.finish)) {
            return Trial::failed(NAME, error);
        }
        let calls = reply.message.calls.clone();
        if calls.is_empty() {
            let took = milliseconds(start.elapsed());
            let cost = cost(step, took, usage);
            let check = judge(&reply.message.content, is_called, slip, &cost);
            return Trial::of(check.with("duration_ms", took));
        }
        is_called = true;
        conversation.answer(with_valid_arguments(reply.message));
        for call in &calls {
            let result = match sum(call) {
                Ok(sum) => ToolResult::success(json!({"sum": sum}).to_string(), ""),
                Err(fault) => {
                    slip = Some(fault.clone());
                    ToolResult::failure(fault)
                }
            };
            conversation.add_result(result);
        }
    }
    Trial::of(Check::warning(
        NAME,
        "the model calls the tool again and again, and never answers",
        BETTER_MODEL,
    ))
}

const BETTER_MODEL: &str =
    "take a model made for tool calls (LLM_MODEL_NAME); small ones often cannot do it";

fn judge(answer: &str, is_called: bool, slip: Option<String>, cost: &str) -> Check {
    const NAME: &str = "tool_call";
    let warning = |message: &str| Check::warning(NAME, format!("{message} ({cost})"), BETTER_MODEL);
    if !is_called {
        return warning("the model answered without calling the tool");
    }
    if let Some(slip) = slip {
        return warning(&format!("the model made a mistake in its call: {slip}"));
    }
    if !answer.contains(&(A + B).to_string()) {
        return warning("the model called the tool, but does not tell its result");
    }
    Check::ok(NAME, format!("called, and its result was used: {cost}"))
}

fn addition() -> ToolDefinition {
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

/// The tool itself; the error is for the model and for the person.
fn sum(call: &ToolCall) -> Result<i64, String> {
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

fn cost(steps: u32, took: u64, usage: Option<Usage>) -> String {
    let plural = if steps == 1 { "" } else { "s" };
    let tokens = usage.map_or(String::new(), |usage| {
        format!(", {} tokens read, {} written", usage.prompt_tokens, usage.completion_tokens)
    });
    format!("{steps} request{plural}, {took} ms{tokens}")
}

/// Has the model say something piece by piece.
pub fn streaming(endpoint: &Endpoint, patience: &Patience, listener: &mut Listener<'_>) -> Trial {
    const NAME: &str = "streaming";
    let model = HttpModel::new(endpoint.clone(), true, patience.clone());
    let mut conversation = Conversation::new("");
    conversation.ask("Count from one to ten, in words.");
    let request = Request { messages: conversation.messages(), tools: &[] };
    let mut pieces = 0;
    let reply = model.complete(&request, &mut |event| {
        if let Event::Text(piece) | Event::Reasoning(piece) = &event {
            pieces += u32::from(!piece.is_empty());
        }
        listener(event);
    });
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => return Trial::failed(NAME, error),
    };
    if reply.finish == Finish::Cut {
        let error = reply.cause.or_else(|| shortfall(reply.finish));
        if let Some(error) = error {
            return Trial::failed(NAME, error);
        }
    }
    let check = if !model.streams() {
        let fix =
            "nothing is needed: whole answers are asked for then; --no-stream saves the first try";
        Check::warning(NAME, "the endpoint does not stream", fix)
    } else if pieces > 1 {
        Check::ok(NAME, format!("came in {pieces} pieces"))
    } else {
        Check::ok(NAME, "came whole: answers appear at once when they are complete")
    };
    Trial::of(check.with("pieces", pieces))
}
