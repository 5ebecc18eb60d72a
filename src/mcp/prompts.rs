//! `prompts/list` and `prompts/get`: the skills that the user may invoke, for clients
//! that offer them as commands. The text is the same as in a conversation of
//! skills-runner.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::McpServer;
use super::era::RpcResult;
use super::pages::ResultPage;
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::RpcError;
use agent::tools::{Arguments, Tools};
use base::limits;
use base::tool::parse_arguments;
use skills::SkillSummary;

/// The arguments of a prompt. An unknown one is an error: it would be lost silently.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptArguments {
    #[serde(default)]
    arguments: String,
}

/// Lists the skills that the user may invoke.
pub(super) fn list(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let page = ResultPage::from_request(request)?;
    let catalogue = server.catalogue();
    let skills = catalogue.usable().filter(|skill| skill.is_for_users);
    let skills = skills.map(|skill| (skill.name.clone(), skill));
    let describe = |_: &str, skill| Some(prompt(server, skill));
    Ok(page.reply("prompts", limits::LIST_PAGE_ENTRIES, skills, describe))
}

fn prompt(server: &McpServer<'_>, skill: &SkillSummary) -> Value {
    let arguments = arguments_description(server, skill);
    let mut prompt = json!({
        "name": skill.name,
        "arguments": [{"name": "arguments", "description": arguments, "required": false}],
    });
    let description = server.masked_line(&skill.description, limits::DESCRIPTION_BYTES);
    if !description.is_empty() {
        prompt["description"] = description.into();
    }
    if let Some(alias) = &skill.alias {
        prompt["title"] = server.masked_line(alias, limits::SUMMARY_CHARS).into();
    }
    prompt
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
    let invoked = Tools::builtin(server.context.clone())
        .invoke(&params.name, &arguments)
        .map_err(RpcError::invalid_params)?;
    let message = json!({"role": "user", "content": {"type": "text", "text": invoked.text}});
    let got = RpcResult::new("messages", vec![message]);
    Ok(match server.catalogue().find(&params.name) {
        Ok(skill) if !skill.description.is_empty() => got
            .with("description", server.masked_line(&skill.description, limits::DESCRIPTION_BYTES)),
        _ => got,
    })
}
