//! Tools for a model without native calls: the system message describes them, calls and results are
//! text.
//!
//! The form of a call is the one that most open models were trained with. A conversation keeps its
//! calls and results as they are: only the messages that are sent differ.

use serde_json::Value;

use crate::message::AssistantMessage;
use crate::tool::ToolDefinition;

/// What begins a result. A model that goes on with an invented result is stopped here.
pub(super) const RESULT_START: &str = "<tool_result";

const HOW_TO_CALL: &str = r#"You have tools. To call one, reply with nothing but this:
<tool_call>
{"name": "TOOL", "arguments": {"ARGUMENT": "VALUE"}}
</tool_call>
Then wait: the next message has the result, in <tool_result>. When you need no more calls, answer the user without <tool_call>.

The tools, with their arguments as JSON (`?`: may be left out):
"#;

/// The part of the system message that describes the tools.
pub(super) fn description(tools: &[ToolDefinition]) -> String {
    let mut text = HOW_TO_CALL.to_string();
    for tool in tools {
        let arguments = arguments_text(&tool.parameters);
        text.push_str(&format!("- {} {{{arguments}}}: {}\n", tool.name, tool.description));
    }
    text
}

/// The arguments of a tool, those that are required first: `"path": string, "limit"?: integer`.
fn arguments_text(schema: &Value) -> String {
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
    };
    let mut arguments: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
    arguments.sort_by_key(|(name, _)| !is_required(name));
    let shown = arguments.into_iter().map(|(name, property)| {
        let mark = if is_required(name) { "" } else { "?" };
        let about = property["description"].as_str();
        let about = about.map_or(String::new(), |about| format!(" ({about})"));
        format!("\"{name}\"{mark}: {}{about}", type_text(property))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// A type in few words: `string`, `[string]`, `"skill" | "user"`.
fn type_text(property: &Value) -> String {
    if let Some(choices) = property["enum"].as_array() {
        return choices.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match &property["type"] {
        Value::String(kind) if kind == "array" => format!("[{}]", type_text(&property["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | ")
        }
        _ => "any".into(),
    }
}

/// A message of the model, with its calls as it would have written them.
pub(super) fn message_text(message: &AssistantMessage) -> String {
    let mut text = message.full_text().into_owned();
    for call in &message.calls {
        if !text.is_empty() {
            text.push('\n');
        }
        let name = Value::from(call.name.as_str());
        let arguments = &call.arguments;
        text.push_str(&format!(
            "<tool_call>\n{{\"name\": {name}, \"arguments\": {arguments}}}\n</tool_call>"
        ));
    }
    text
}

/// A result for the message after the calls. Text in it cannot end it.
pub(super) fn result_text(name: &str, result: &str) -> String {
    let result = result.replace("</tool_result", "< /tool_result");
    format!("{RESULT_START} name=\"{name}\">\n{}\n</tool_result>", result.trim_end_matches('\n'))
}
