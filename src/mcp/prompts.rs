//! `prompts/list` and `prompts/get`: the skills that a person may invoke, for
//! clients that offer them as commands. What is invoked is what a conversation of
//! our own would get.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::McpServer;
use super::era::RpcResult;
use super::pages::ResultPage;
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{INTERNAL_ERROR, RpcError};
use crate::limits;
use crate::skills::{self, SkillSummary, frontmatter};
use crate::text;
use crate::tools::Tools;

/// The one argument that every prompt takes.
const ARGUMENTS: &str = "arguments";

/// A prompt, as it is listed.
#[derive(Serialize)]
struct Prompt<'p> {
    name: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    arguments: [Argument; 1],
}

#[derive(Serialize)]
struct Argument {
    name: &'static str,
    description: String,
    required: bool,
}

/// The skills that a person may invoke.
pub(super) fn list(server: &McpServer<'_>, asked: &RequestContext<'_, '_>) -> HandlerResult {
    let mut page = ResultPage::of(asked)?;
    let catalogue = server.catalogue();
    for skill in catalogue.usable().filter(|skill| skill.is_for_users) {
        if page.is_past(&skill.name) {
            continue;
        }
        if !page.has_room() {
            break;
        }
        page.pass(&skill.name, Some(&json!(prompt(server, skill))));
    }
    Ok(page.reply("prompts"))
}

fn prompt<'p>(server: &McpServer<'_>, skill: &'p SkillSummary) -> Prompt<'p> {
    let short = |text: &str| server.line(text, limits::SUMMARY_CHARS);
    Prompt {
        name: &skill.name,
        title: skill.alias.as_deref().map(short),
        description: server.line(&skill.description, limits::DESCRIPTION_BYTES),
        arguments: [Argument {
            name: ARGUMENTS,
            description: arguments_of(server, skill),
            required: false,
        }],
    }
}

/// What the skill's arguments are, for whoever types them.
pub(super) fn arguments_of(server: &McpServer<'_>, skill: &SkillSummary) -> String {
    match skill.argument_hint.as_deref().map(str::trim) {
        None | Some("") => "What the skill is to work on, as one line of text.".into(),
        Some(hint) => server.line(hint, limits::SUMMARY_CHARS),
    }
}

/// The text of one, with its arguments.
pub(super) fn get(server: &McpServer<'_>, asked: &RequestContext<'_, '_>) -> HandlerResult {
    let params = asked.named()?;
    let arguments = params.arguments.map(typed).transpose()?;
    let tools = Tools::by_hand(server.context.clone());
    let text =
        tools.invoke(&params.name, &arguments.unwrap_or_default()).map_err(
            |fault| match fault {
                skills::SkillError::Document(why) => RpcError::new(INTERNAL_ERROR, why),
                other => RpcError::params(other.to_string()),
            },
        )?;
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let mut got = json!({ "messages": [message] });
    if let Some(description) = description(server, &params.name) {
        got["description"] = description.into();
    }
    Ok(RpcResult::of(&got))
}

/// What the skill says of itself, from its document alone: thousands of others
/// may lie beside it.
fn description(server: &McpServer<'_>, name: &str) -> Option<String> {
    let document = server.context.skills.find(name).ok()?.document().ok()?;
    let description = frontmatter::parse(&document.text).description()?;
    Some(server.line(&description, limits::DESCRIPTION_BYTES))
}

/// What was typed behind the name. An argument that nobody reads would be lost
/// without a word.
fn typed(arguments: &RawValue) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct TypedArguments {
        arguments: Option<String>,
    }
    let fault = |why: &str| {
        let why = text::one_line(why, limits::SUMMARY_CHARS);
        RpcError::params(format!(
            "`arguments` must be an object whose one member `{ARGUMENTS}` is a string: {why}"
        ))
    };
    // A structure would be read of a list, too.
    if !arguments.get().starts_with('{') {
        return Err(fault("it is none"));
    }
    let typed: TypedArguments =
        serde_json::from_str(arguments.get()).map_err(|error| fault(&error.to_string()))?;
    Ok(typed.arguments.unwrap_or_default())
}
