//! `prompts/list` and `prompts/get`: the skills that the user may invoke, for clients
//! that offer them as commands. The text is the same as in a conversation of
//! skills-runner.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::McpServer;
use super::era::RpcResult;
use super::pages::ResultPage;
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::RpcError;
use crate::limits;
use crate::skills::SkillSummary;
use crate::tool::parse_arguments;
use crate::tools::{Arguments, Tools};

/// Name of the only argument of a prompt.
const ARGUMENTS: &str = "arguments";

/// Prompt in the list.
#[derive(Serialize)]
struct Prompt<'p> {
    name: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    arguments: [Argument; 1],
}

/// The arguments of a prompt. An unknown one is an error: it would be lost silently.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptArguments {
    #[serde(default)]
    arguments: String,
}

#[derive(Serialize)]
struct Argument {
    name: &'static str,
    description: String,
    required: bool,
}

/// Lists the skills that the user may invoke.
pub(super) fn list(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let page = ResultPage::from_request(request)?;
    let catalogue = server.catalogue();
    let skills = catalogue.usable().filter(|skill| skill.is_for_users);
    let skills = skills.map(|skill| (skill.name.clone(), skill));
    let describe = |_: &str, skill| Some(json!(prompt(server, skill)));
    Ok(page.reply("prompts", limits::LIST_PAGE_ENTRIES, skills, describe))
}

fn prompt<'p>(server: &McpServer<'_>, skill: &'p SkillSummary) -> Prompt<'p> {
    let short = |text: &str| server.masked_line(text, limits::SUMMARY_CHARS);
    Prompt {
        name: &skill.name,
        title: skill.alias.as_deref().map(short),
        description: server.masked_line(&skill.description, limits::DESCRIPTION_BYTES),
        arguments: [Argument {
            name: ARGUMENTS,
            description: arguments_description(server, skill),
            required: false,
        }],
    }
}

/// Description of the skill's arguments for the user.
pub(super) fn arguments_description(server: &McpServer<'_>, skill: &SkillSummary) -> String {
    match skill.argument_hint.as_deref().map(str::trim) {
        None | Some("") => "What the skill should work on, as one line of text.".into(),
        Some(hint) => server.masked_line(hint, limits::SUMMARY_CHARS),
    }
}

/// Returns the text of a prompt with its arguments.
pub(super) fn get(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let params = request.named_params()?;
    let arguments = params.arguments.map_or("", RawValue::get);
    let arguments = parse_arguments(arguments)
        .and_then(|fields| Arguments::from(fields).parse().map_err(|error| error.to_string()));
    let PromptArguments { arguments } =
        arguments.map_err(|error| RpcError::invalid_params(format!("wrong arguments: {error}")))?;
    let text = Tools::builtin(server.context.clone())
        .invoke(&params.name, &arguments)
        .map_err(RpcError::invalid_params)?;
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let got = RpcResult::new("messages", vec![message]);
    Ok(match server.catalogue().find(&params.name) {
        Ok(skill) if !skill.description.is_empty() => got
            .with("description", server.masked_line(&skill.description, limits::DESCRIPTION_BYTES)),
        _ => got,
    })
}
