//! Tools for a model without native calls: the system message describes them, calls and results are
//! text.
//!
//! The form of a call is the one that most open models were trained with. A conversation keeps its
//! calls and results as they are: only the messages that are sent differ.

use serde_json::Value;

use crate::quirks::call_markers;
use base::message::AssistantMessage;
use base::tool::ToolDefinition;

/// Start of a result. A model that goes on with an invented result is stopped here.
pub(super) const RESULT_START: &str = "<tool_result";

const CALL_START: &str = "You have tools. To call one, reply with nothing but this:\n";

const CALL_END: &str = "
Then wait: the next message has the result, in <tool_result>. When you need no more calls, answer the user without a call.

The tools, with their arguments as JSON (`?`: may be left out):
";

/// The tools that the system message describes.
#[derive(Clone, Copy)]
pub(super) struct DescribedTools<'t> {
    pub tools: &'t [ToolDefinition],
    /// The mark of calls.
    pub call_mark: &'t str,
}

impl DescribedTools<'_> {
    /// The part of the system message that describes them.
    pub(super) fn description(self) -> String {
        let example = call_text(self.call_mark, "\"TOOL\"", "{\"ARGUMENT\": \"VALUE\"}");
        let mut text = format!("{CALL_START}{example}{CALL_END}");
        for tool in self.tools {
            let arguments = arguments_text(&tool.parameters);
            text.push_str(&format!("- {} {{{arguments}}}: {}\n", tool.name, tool.description));
        }
        text
    }
}

/// A call as the model is asked to write it; the name and the arguments are JSON.
fn call_text(mark: &str, name: &str, arguments: &str) -> String {
    let [start, end] = call_markers::marked_tags(mark);
    format!("{start}\n{{\"name\": {name}, \"arguments\": {arguments}}}\n{end}")
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
pub(super) fn message_text(message: &AssistantMessage, call_mark: &str) -> String {
    let mut text = message.full_text().into_owned();
    for call in &message.calls {
        if !text.is_empty() {
            text.push('\n');
        }
        let name = Value::from(call.name.as_str()).to_string();
        text.push_str(&call_text(call_mark, &name, &call.arguments));
    }
    text
}

/// A result for the message after the calls. Text in it cannot end it.
pub(super) fn result_text(name: &str, result: &str) -> String {
    let result = result.replace("</tool_result", "< /tool_result");
    format!("{RESULT_START} name=\"{name}\">\n{}\n</tool_result>", result.trim_end_matches('\n'))
}
