//! Tool calls that the server left in the text of the reply.
//!
//! A server without a parser for its model's tool calls passes them on as text. That is not an
//! answer, and the user has to change the server's configuration.

use serde_json::Value;

use crate::limits;
use crate::model::quirks::call_markers;
use crate::tool::ToolDefinition;

/// Whether the text is a call of one of these tools: a line outside of code that starts with a
/// marker, or only the JSON of a call.
pub fn is_unparsed_call(text: &str, tools: &[ToolDefinition]) -> bool {
    if tools.is_empty() {
        return false;
    }
    let text = text.trim();
    is_marked_call(text, tools) || is_bare_call(text, tools)
}

fn is_marked_call(text: &str, tools: &[ToolDefinition]) -> bool {
    let names_tool = |text: &str| tools.iter().any(|tool| text.contains(&tool.name));
    let ends = call_markers::ENDS.iter().any(|end| text.ends_with(end));
    let (mut in_code, mut offset) = (false, 0);
    for line in text.split_inclusive('\n') {
        let unindented = line.trim_start_matches(' ');
        // Four spaces are code in Markdown.
        let is_indented = line.len() - unindented.len() >= 4 || line.starts_with('\t');
        if unindented.starts_with("```") {
            in_code = !in_code;
        } else if !in_code && !is_indented {
            let marker =
                call_markers::STARTS.iter().filter_map(|marker| unindented.find(marker)).min();
            // After other words it is a call only if the text ends with an end marker and it is
            // not quoted.
            let is_call_position =
                |position: usize| position == 0 || (ends && !unindented[..position].contains('`'));
            if marker.is_some_and(is_call_position) && names_tool(&text[offset..]) {
                return true;
            }
        }
        offset += line.len();
    }
    false
}

/// `{"name": "list_skills", "arguments": {}}`, also in a code fence or a list.
fn is_bare_call(text: &str, tools: &[ToolDefinition]) -> bool {
    let text = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|text| text.strip_suffix("```"))
        .unwrap_or(text);
    if text.len() > limits::UNPARSED_CALL_BYTES {
        return false;
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    let call = value.get(0).unwrap_or(&value);
    let call = call.get("function").filter(|f| f.is_object()).unwrap_or(call);
    let is_tool = |name: &str| tools.iter().any(|tool| tool.name == name);
    let has_arguments = call.get("arguments").or(call.get("parameters")).is_some();
    has_arguments && call["name"].as_str().is_some_and(is_tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_the_text_are_detected() {
        let tools = [ToolDefinition {
            name: "list_skills".into(),
            description: "d".into(),
            parameters: Value::Null,
        }];
        for text in [
            "<tool_call>\n{\"name\": \"list_skills\", \"arguments\": {}}\n</tool_call>",
            "<function=list_skills></function>",
            "[TOOL_CALLS] [{\"name\": \"list_skills\"}]",
            " {\"name\": \"list_skills\", \"arguments\": {}} ",
            "```json\n{\"name\": \"list_skills\", \"parameters\": {}}\n```",
            "I'll look.\n\n<tool_call>\n{\"name\": \"list_skills\"}\n</tool_call>",
            "I'll look. <function=list_skills>\n</function>",
            "I use `list_skills` now.\n\n<tool_call>\n{\"name\": \"list_skills\"}\n</tool_call>",
            "Now:\n[TOOL_CALLS][{\"name\": \"list_skills\", \"arguments\": {}}]",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.list_skills:0",
            "<minimax:tool_call>\n<invoke name=\"list_skills\">",
            "<|channel|>commentary to=functions.list_skills <|message|>{}<|call|>",
            "[{\"function\": {\"name\": \"list_skills\", \"arguments\": \"{}\"}}]",
        ] {
            assert!(is_unparsed_call(text, &tools), "{text}");
            assert!(!is_unparsed_call(text, &[]), "{text}");
        }
        for text in [
            "list_skills gives the skills",
            "{\"name\": \"other\", \"arguments\": {}}",
            "{\"name\": \"list_skills\"}",
            "The model writes <tool_call> and list_skills",
            "<tool_call> is a tag",
            "An example:\n\n    <tool_call>{\"name\": \"list_skills\"}</tool_call>",
            "So:\n```\n<tool_call>{\"name\": \"list_skills\"}</tool_call>\n```",
            "write `<tool_call>` and list_skills and </tool_call>",
            "",
        ] {
            assert!(!is_unparsed_call(text, &tools), "{text}");
        }
    }
}
