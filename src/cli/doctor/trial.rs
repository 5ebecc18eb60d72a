//! The trial requests: a tool call whose result the model must use, and a stream.
//!
//! They use the same [`HttpModel`] as a conversation, with its repairs and retries.

use std::time::Instant;

use serde_json::{Value, json};

use crate::cli::doctor::report::DoctorCheck;
use crate::cli::one_shot::incomplete_error;
use agent::conversation::Conversation;
use agent::turn::with_valid_arguments;
use base::error::Result;
use base::event::{Event, EventSink};
use base::limits;
use base::text::counted;
use base::tool::{ToolCall, ToolDefinition, ToolResult, Usage, milliseconds, parse_arguments};
use chat_api::http::HttpModel;
use chat_api::{CallForms, FinishReason, Model, ModelRequest, read_marked_calls};
use chat_api::{Endpoint, ToolCalling};
use host::cancellation::Cancellation;

const A: i64 = 317;
const B: i64 = 588;

/// How the model called the tool.
struct Trial {
    /// The problem and the remedy; `None`: the tool was called, and its result was used.
    problem: Option<(String, &'static str)>,
    /// How it was called.
    calling: ToolCalling,
    /// Fields that the endpoint demanded, as JSON.
    demanded: Option<String>,
    cost: String,
    duration_ms: u64,
}

/// Requests a call of a tool that adds two numbers, and an answer with the sum. Where that does
/// not work, or only in text, the other way of calling tools is tried, too.
pub(super) fn tool_call(
    endpoint: &Endpoint,
    cancellation: &Cancellation,
    sink: &mut EventSink<'_>,
) -> Result<DoctorCheck> {
    let first = try_calling(endpoint, cancellation, sink)?;
    let others: &[ToolCalling] = match (&first.problem, first.calling) {
        (Some(_), ToolCalling::Schema) => &[ToolCalling::Native, ToolCalling::Prompted],
        (Some(_), ToolCalling::Prompted) => &[ToolCalling::Native, ToolCalling::Schema],
        (None, ToolCalling::Prompted) if endpoint.tool_calling == ToolCalling::Prompted => {
            &[ToolCalling::Native]
        }
        (Some(_), _) => &[ToolCalling::Prompted, ToolCalling::Schema],
        (None, _) => &[],
    };
    let mut works = |tool_calling| -> Result<bool> {
        let endpoint = Endpoint { tool_calling, ..endpoint.clone() };
        let tried = try_calling(&endpoint, cancellation, sink);
        cancellation.check()?;
        Ok(tried.is_ok_and(|trial| trial.problem.is_none()))
    };
    let mut working = None;
    for other in others {
        if works(*other)? {
            working = Some(*other);
            break;
        }
    }
    let mut check = first.check(working).with_detail("duration_ms", first.duration_ms);
    if let Some(fields) = first.demanded {
        let message = format!("the endpoint demands {fields}, which costs a refused request");
        check.add_warning(message, format!("add {fields} to LLM_EXTRA_BODY"));
    }
    Ok(check)
}

impl Trial {
    /// The check; `working`: another way of calling tools that was tried, and works.
    fn check(&self, working: Option<ToolCalling>) -> DoctorCheck {
        const NAME: &str = "tool_call";
        let way = match self.calling {
            ToolCalling::Prompted => " in text",
            ToolCalling::Schema => " in a constrained reply",
            ToolCalling::Auto | ToolCalling::Native => "",
        };
        let cost = &self.cost;
        let Some((problem, fix)) = &self.problem else {
            let advice = match working {
                Some(_) => "; calls in the API's fields work, too (LLM_TOOLS=native)",
                None => "",
            };
            let message = format!("called{way}, and its result was used: {cost}{advice}");
            return DoctorCheck::ok(NAME, message);
        };
        let (place, fix) = match working {
            Some(ToolCalling::Prompted) => ("; in text it works", "set LLM_TOOLS=prompted"),
            Some(ToolCalling::Schema) => {
                ("; in constrained replies it works", "set LLM_TOOLS=schema")
            }
            Some(_) => ("; in the API's fields it works", "set LLM_TOOLS=native"),
            None => ("", *fix),
        };
        DoctorCheck::warning(NAME, format!("{problem}{place} ({cost})"), fix)
    }
}

const BETTER_MODEL: &str =
    "use a model trained for tool calls (LLM_MODEL_NAME); small models often fail";

const PARSER: &str = "give the server a parser for this model's calls (vLLM: --enable-auto-tool-choice --tool-call-parser NAME, llama.cpp: --jinja)";

/// Tries to call the tool as the endpoint is configured.
fn try_calling(
    endpoint: &Endpoint,
    cancellation: &Cancellation,
    sink: &mut EventSink<'_>,
) -> Result<Trial> {
    let model = HttpModel::new(endpoint.clone(), false, cancellation.clone());
    let tools = [addition_tool()];
    let forms = tools.each_ref().map(ToolDefinition::call_form);
    let mut conversation = Conversation::new("");
    conversation.add_question(format!(
        "Call the tool `add` with a = {A} and b = {B}. Then answer with the sum that it returns."
    ));
    let start = Instant::now();
    let (mut usage, mut is_called, mut mistake) = (None, false, None);
    let mut problem =
        Some(("the model keeps calling the tool and never answers".to_string(), BETTER_MODEL));
    let mut steps = 0;
    while steps < limits::TOOL_CHECK_STEPS {
        steps += 1;
        let mark = conversation.call_mark();
        let request = ModelRequest {
            tools: &tools,
            call_mark: mark,
            forms: CallForms { described: &forms, allowed: &forms, allows_answer: true },
            ..ModelRequest::of_messages(conversation.messages())
        };
        let mut reply = model.complete(&request, sink)?;
        add_usage(&mut usage, reply.usage);
        let marked = read_marked_calls(&reply.message.content, mark, &tools);
        if let Some((_, calls)) = marked.filter(|_| model.tool_calling() == ToolCalling::Prompted) {
            let calls = calls.iter().enumerate();
            reply.message.calls = calls.map(|(at, call)| call.to_call(at)).collect();
            reply.message.content.clear();
        } else if reply.finish == FinishReason::UnparsedCall {
            problem = Some(("the model's call came as text".into(), PARSER));
            break;
        } else if let Some(error) = reply.cause.or_else(|| incomplete_error(reply.finish)) {
            return Err(error);
        }
        let calls = reply.message.calls.clone();
        if calls.is_empty() {
            let mistake = mistake_in(&reply.message.content, is_called, mistake);
            problem = mistake.map(|mistake| (mistake, BETTER_MODEL));
            break;
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
    let duration_ms = milliseconds(start.elapsed());
    let cost = cost_text(steps, duration_ms, usage);
    let calling = model.tool_calling();
    let demanded = model.demanded_fields();
    Ok(Trial { problem, calling, demanded, cost, duration_ms })
}

/// Finds a mistake in the calls or the answer.
fn mistake_in(answer: &str, is_called: bool, mistake: Option<String>) -> Option<String> {
    if !is_called {
        return Some("the model answered without calling the tool".into());
    }
    if let Some(mistake) = mistake {
        return Some(format!("the model made a mistake in its call: {mistake}"));
    }
    let is_used = answer.contains(&(A + B).to_string());
    (!is_used).then(|| "the model called the tool, but did not report its result".into())
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
    let request = ModelRequest::of_messages(conversation.messages());
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
