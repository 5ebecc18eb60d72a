//! Each skill as a separate tool, for clients that support only tools. A call is
//! translated to `get_skill` with the skill's name, and returns its instructions with
//! the arguments inserted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::McpServer;
use super::exposed_tools::{self, tool_json};
use super::prompts::arguments_description;
use super::rpc::RpcError;
use agent::tools;
use base::limits;
use base::text;
use base::tool::{Effects, ToolCall, parse_arguments};
use skills::{Catalogue, SkillSummary};

/// Tool that reads a skill.
const GET_SKILL: &str = "get_skill";

/// Skills by tool name.
type ToolNames<'c> = BTreeMap<String, &'c SkillSummary>;

/// Returns the skills as tools with their keys in the list of tools, sorted.
pub(super) fn list(server: &McpServer<'_>) -> Vec<(String, Value)> {
    let catalogue = server.catalogue();
    let (named, left_out) = assign_names(&catalogue);
    for reason in left_out {
        server.warn_once(reason);
    }
    let tools = named.iter().map(|(name, skill)| {
        let argument =
            json!({"type": "string", "description": arguments_description(server, skill)});
        let parameters = json!({"type": "object", "properties": {"arguments": argument}});
        let title = server.masked_line(&skill.name, limits::SUMMARY_CHARS);
        let description = server.masked_line(&skill.description, limits::DESCRIPTION_BYTES);
        let tool = tool_json((name, &title), &description, &parameters, Effects::READ_ONLY);
        (format!("1 {name}"), tool)
    });
    tools.collect()
}

/// Translates a call by a skill's name to a call of `get_skill`.
pub(super) fn to_get_skill(server: &McpServer<'_>, call: ToolCall) -> Result<ToolCall, RpcError> {
    let catalogue = server.catalogue();
    let (named, _) = assign_names(&catalogue);
    let Some(skill) = named.get(&call.name) else {
        let near = text::similar_names(&call.name, named.keys().map(String::as_str), 1);
        let message = exposed_tools::unknown_tool_message(server, &call.name);
        let near = near.first().map(|near| format!("; or did you mean the skill `{near}`?"));
        return Err(RpcError::invalid_params(message + &near.unwrap_or_default()));
    };
    let mut call = ToolCall { name: GET_SKILL.into(), ..call };
    // The tool reports invalid arguments.
    if let Ok(mut arguments) = parse_arguments(&call.arguments) {
        // Without arguments the call is an invocation, too: placeholders are replaced.
        let text = arguments.entry("arguments").or_insert(Value::Null);
        if text.is_null() {
            *text = "".into();
        }
        arguments.insert("skill_name".into(), skill.name.as_str().into());
        call.arguments = Value::Object(arguments).to_string();
    }
    Ok(call)
}

/// Assigns tool names to skills, and returns why some skills get none. A skill whose
/// name is valid unchanged takes precedence over one whose name was changed.
fn assign_names(catalogue: &Catalogue) -> (ToolNames<'_>, Vec<String>) {
    let skills = catalogue.usable().filter(|skill| skill.is_for_model);
    let mut skills: Vec<_> = skills.map(|skill| (tool_name(&skill.name), skill)).collect();
    skills.sort_by_key(|(name, skill)| *name != skill.name);
    let mut named = ToolNames::new();
    let mut left_out = Vec::new();
    for (name, skill) in skills {
        if tools::find_builtin(&name).is_some() || named.contains_key(&name) {
            left_out.push(format!(
                "the skill `{}` is not offered as a tool: another tool has the name `{name}`; \
                 rename the folder of the skill",
                skill.display_name()
            ));
        } else {
            named.insert(name, skill);
        }
    }
    (named, left_out)
}

/// Replaces characters that a tool's name may not contain by `_`.
fn tool_name(name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let letters = name.chars().map(|c| if is_allowed(c) { c } else { '_' });
    letters.take(limits::TOOL_NAME_CHARS).collect()
}
