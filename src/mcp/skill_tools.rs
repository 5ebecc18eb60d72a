//! Each skill as a tool of its own, for clients that know tools and nothing
//! else. Calling one is `get_skill` with its name: its instructions, with the
//! arguments in their places.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Value, json};

use super::McpServer;
use super::exposed_tools::{self, described};
use super::pages::ResultPage;
use super::prompts::arguments_of;
use super::rpc::RpcError;
use crate::limits;
use crate::skills::{Catalogue, SkillSummary};
use crate::text;
use crate::tool::{Effects, ToolCall, parse_arguments};
use crate::tools;

/// What reads a skill.
const READER: &str = "get_skill";

/// The tools by their names.
type ToolNames<'c> = BTreeMap<String, &'c SkillSummary>;

/// Adds the skills to a page of tools, sorted by name.
pub(super) fn list(server: &McpServer<'_>, page: &mut ResultPage) {
    let catalogue = server.catalogue();
    let (named, left_out) = named(&catalogue);
    for reason in left_out {
        server.warn_once(reason);
    }
    for (name, skill) in named {
        let key = format!("1 {name}");
        if page.is_past(&key) {
            continue;
        }
        if !page.has_room() {
            break;
        }
        let words = json!({"type": "string", "description": arguments_of(server, skill)});
        let parameters = json!({"type": "object", "properties": {"arguments": words}});
        let title = server.line(&skill.name, limits::SUMMARY_CHARS);
        let about = server.line(&skill.description, limits::DESCRIPTION_BYTES);
        let tool = described((&name, &title), &about, &parameters, Effects::NONE);
        page.pass(&key, Some(&tool));
    }
}

/// The call of `get_skill` that stands behind a call by a skill's name.
pub(super) fn meant(server: &McpServer<'_>, call: ToolCall) -> Result<ToolCall, RpcError> {
    let catalogue = server.catalogue();
    let (named, _) = named(&catalogue);
    let Some(skill) = named.get(&call.name) else {
        return Err(RpcError::params(unknown(server, &call.name, &named)));
    };
    let mut call = ToolCall { name: READER.into(), ..call };
    // What cannot be read is told by the tool.
    if let Ok(mut arguments) = parse_arguments(&call.arguments) {
        // An invocation without a word is one, too: placeholders are replaced.
        let words = arguments.entry("arguments").or_insert(Value::Null);
        if words.is_null() {
            *words = "".into();
        }
        arguments.insert("skill_name".into(), skill.name.as_str().into());
        call.arguments = Value::Object(arguments).to_string();
    }
    Ok(call)
}

/// The message for a name that is no tool's and no skill's.
fn unknown(server: &McpServer<'_>, name: &str, named: &ToolNames<'_>) -> String {
    match text::nearest(name, named.keys().map(String::as_str), 1).first() {
        Some(near) => {
            let shown = text::one_line(name, limits::SUMMARY_CHARS);
            format!("there is no tool `{shown}`; did you mean `{near}`?")
        }
        None => exposed_tools::unknown(server, name),
    }
}

/// Which skill has which name as a tool, and why some have none. A name that
/// had to be changed gives way to one that is written so.
fn named(catalogue: &Catalogue) -> (ToolNames<'_>, Vec<String>) {
    let mut named = ToolNames::new();
    let mut left_out = Vec::new();
    let skills = catalogue.usable().filter(|skill| skill.is_for_model);
    let (exact, changed): (Vec<_>, Vec<_>) = skills
        .map(|skill| (tool_name(&skill.name), skill))
        .partition(|(name, skill)| *name == skill.name);
    for (name, skill) in exact.into_iter().chain(changed) {
        let owner = if tools::find(&name).is_some() {
            "a tool of the server".to_string()
        } else {
            match named.entry(name.clone()) {
                Entry::Vacant(free) => {
                    free.insert(skill);
                    continue;
                }
                Entry::Occupied(taken) => format!("the skill `{}`", taken.get().shown_name()),
            }
        };
        left_out.push(format!(
            "the skill `{}` is no tool of its own: `{name}` is {owner}; rename its folder",
            skill.shown_name()
        ));
    }
    (named, left_out)
}

/// The name with `_` for what no tool's name may hold.
fn tool_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let letters = name.chars().map(|c| if fits(c) { c } else { '_' });
    letters.take(limits::TOOL_NAME_CHARS).collect()
}
