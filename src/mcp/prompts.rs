//! `prompts/list` and `prompts/get`: the skills that a person may invoke, for
//! clients that offer them as commands. What is invoked is what a conversation of
//! our own would get.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::Server;
use super::asked::{Answer, Asked};
use super::era::Reply;
use super::pages::Page;
use super::rpc::{Fault, INTERNAL_ERROR};
use crate::limits;
use crate::skills::{self, Summary, frontmatter};
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
pub fn list(server: &Server<'_>, asked: &Asked<'_, '_>) -> Answer {
    let mut page = Page::of(asked)?;
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

fn prompt<'p>(server: &Server<'_>, skill: &'p Summary) -> Prompt<'p> {
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
pub fn arguments_of(server: &Server<'_>, skill: &Summary) -> String {
    match skill.argument_hint.as_deref().map(str::trim) {
        None | Some("") => "What the skill is to work on, as one line of text.".into(),
        Some(hint) => server.line(hint, limits::SUMMARY_CHARS),
    }
}

/// The text of one, with its arguments.
pub fn get(server: &Server<'_>, asked: &Asked<'_, '_>) -> Answer {
    let params = asked.named()?;
    let arguments = params.arguments.map(typed).transpose()?;
    let tools = Tools::by_hand(server.bench.clone());
    let text =
        tools.invoke(&params.name, &arguments.unwrap_or_default()).map_err(
            |fault| match fault {
                skills::Fault::Document(why) => Fault::new(INTERNAL_ERROR, why),
                other => Fault::params(other.to_string()),
            },
        )?;
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let mut got = json!({ "messages": [message] });
    if let Some(description) = description(server, &params.name) {
        got["description"] = description.into();
    }
    Ok(Reply::of(&got))
}

/// What the skill says of itself, from its document alone: thousands of others
/// may lie beside it.
fn description(server: &Server<'_>, name: &str) -> Option<String> {
    let document = server.bench.skills.find(name).ok()?.document().ok()?;
    let description = frontmatter::parse(&document.text).description()?;
    Some(server.line(&description, limits::DESCRIPTION_BYTES))
}

/// What was typed behind the name. An argument that nobody reads would be lost
/// without a word.
fn typed(arguments: &RawValue) -> Result<String, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Typed {
        arguments: Option<String>,
    }
    let fault = |why: &str| {
        let why = text::one_line(why, limits::SUMMARY_CHARS);
        Fault::params(format!(
            "`arguments` must be an object whose one member `{ARGUMENTS}` is a string: {why}"
        ))
    };
    // A structure would be read of a list, too.
    if !arguments.get().starts_with('{') {
        return Err(fault("it is none"));
    }
    let typed: Typed =
        serde_json::from_str(arguments.get()).map_err(|error| fault(&error.to_string()))?;
    Ok(typed.arguments.unwrap_or_default())
}
