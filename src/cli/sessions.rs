//! `sessions`: lists, shows and deletes saved conversations.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::options::{CommonOptions, SessionsCommand};
use crate::cli::run::Run;
use crate::cli::session_handle::sessions_folder;
use crate::cli::startup::Startup;
use crate::config::ConfigNeeds;
use crate::ui::Output;
use agent::conversation::meter::TokenMeter;
use agent::session::{RestoredSession, SessionFile, Sessions, format_age, message_value};
use base::error::Result;
use base::limits;
use base::message::Message;
use base::secret::Secrets;
use base::text::{counted, one_line, shortened};
use host::clock::timestamp;

/// Runs the subcommand.
pub(super) fn run(
    command: &SessionsCommand,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<()> {
    let is_json = options.is_json();
    let run = Run::new(options, startup, ConfigNeeds::Skills, output)?;
    let sessions = sessions_folder(&run.config)?;
    match command {
        SessionsCommand::List => list(&sessions, is_json, output),
        SessionsCommand::Show { name, markdown } => {
            show(&sessions, name, (is_json, *markdown), output)
        }
        SessionsCommand::Delete(name) => delete(&sessions, name, is_json, output),
    }
}

fn list(sessions: &Sessions, is_json: bool, output: &mut Output) -> Result<()> {
    let all = sessions.list()?;
    if is_json {
        let all = all.iter();
        let all: Vec<Value> =
            all.map(|found| session_json(sessions, found, &sessions.read(&found.name))).collect();
        output.print(&json!({ "sessions": all }).to_string());
        return Ok(());
    }
    if all.is_empty() {
        let folder = sessions.folder().display();
        output.note(&format!("there are no sessions in {folder}"));
    }
    let width = all.iter().map(|found| found.name.len()).max().unwrap_or(0);
    for found in &all {
        let name = &found.name;
        let line = match sessions.read(name) {
            Ok(Some(restored)) => {
                let holder = sessions.holder_pid(name);
                let holder =
                    holder.map_or_else(String::new, |pid| format!(" (in use by process {pid})"));
                let messages = &restored.saved.messages;
                let turns = counted(turns_of(messages), "turn");
                let question = first_question_of(&restored).unwrap_or_default();
                let age = format_age(found.modified);
                format!("{age:>8}  {turns:>8} {holder} {question}")
            }
            Ok(None) => "no messages".to_string(),
            Err(error) => format!("({})", error.message()),
        };
        let line = format!("{name:width$}  {line}");
        output.print(&shortened(&line, Output::columns().unwrap_or(usize::MAX)));
    }
    Ok(())
}

fn turns_of(messages: &[Message]) -> usize {
    messages.iter().filter(|message| matches!(message, Message::User(_))).count()
}

/// The first question, on one line.
fn first_question_of(restored: &RestoredSession) -> Option<String> {
    restored.saved.first_question().map(|text| one_line(&text, limits::SUMMARY_CHARS))
}

/// A session in JSON output.
fn session_json(
    sessions: &Sessions,
    found: &SessionFile,
    read: &Result<Option<RestoredSession>>,
) -> Value {
    let mut object = json!({
        "name": found.name,
        "last_activity": timestamp(found.modified),
        "bytes": found.bytes,
        "in_use": sessions.holder_pid(&found.name),
    });
    match read {
        Ok(Some(restored)) => add_details(&mut object, restored),
        Ok(None) => object["messages"] = 0.into(),
        Err(error) => object["problem"] = error.message().into(),
    }
    object
}

fn add_details(object: &mut Value, restored: &RestoredSession) {
    object["id"] = restored.header.id.as_str().into();
    object["folder"] = restored.header.folder.as_str().into();
    object["model"] = restored.header.model.as_str().into();
    object["created"] = timestamp(restored.header.created).into();
    object["messages"] = restored.saved.messages.len().into();
    object["turns"] = turns_of(&restored.saved.messages).into();
    object["first_question"] = first_question_of(restored).into();
    object["estimate"] = TokenMeter::default().estimate(&restored.saved.messages).into();
    if let Some(damage) = restored.damage {
        object["problem"] = damage.to_string().into();
    }
}

fn show(
    sessions: &Sessions,
    name: &str,
    (is_json, is_markdown): (bool, bool),
    output: &mut Output,
) -> Result<()> {
    let read = Ok(sessions.read(name)?);
    let restored = read.as_ref().ok().and_then(Option::as_ref);
    let messages = restored.map_or(&[][..], |restored| &restored.saved.messages);
    if is_json {
        let mut object = session_json(sessions, &sessions.find(name)?, &read);
        // The session file holds no secrets, and `output` masks what it prints.
        let values = messages.iter().zip(0_usize..).map(|(message, index)| {
            let mut value = message_value(message, &Secrets::default());
            value["index"] = index.into();
            value
        });
        object["messages"] = values.collect();
        output.print(&object.to_string());
        return Ok(());
    }
    if let Some(warning) = restored.and_then(|restored| restored.damage_warning(name)) {
        output.warn(&warning);
    }
    for message in messages {
        let text = if is_markdown { markdown(message) + "\n" } else { message_text(message) };
        output.print(&text);
    }
    Ok(())
}

/// A message as Markdown: a heading, and the text as it is; calls and results in fences that no
/// line of them closes.
fn markdown(message: &Message) -> String {
    let fenced = |text: &str| {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        format!("{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'))
    };
    match message {
        Message::System(text) => format!("## System\n\n{text}\n"),
        Message::User(message) => {
            let images = message.images.iter().map(|image| {
                format!("\n[{}]\n", one_line(&image.describe(), limits::SUMMARY_CHARS))
            });
            format!("## User\n\n{}\n{}", message.full_text(), images.collect::<String>())
        }
        Message::Assistant(message) => {
            let calls = message.calls.iter();
            let calls =
                calls.map(|call| format!("\n`{}`\n\n{}", call.name, fenced(&call.arguments)));
            format!("## Assistant\n\n{}\n{}", message.full_text(), calls.collect::<String>())
        }
        Message::Tool(result) => {
            format!("## Result of `{}`\n\n{}", result.name, fenced(&result.full_text()))
        }
    }
}

/// A message as readable text, with one line per tool call and result.
pub(super) fn message_text(message: &Message) -> String {
    let line = |text: &str| one_line(text, limits::LINE_BYTES);
    match message {
        Message::System(text) => format!("system: {text}"),
        Message::User(message) => {
            let mut text = format!("user: {}", message.full_text());
            for image in &message.images {
                let shown = one_line(&image.describe(), limits::SUMMARY_CHARS);
                let _ = write!(text, "\n[{shown}]");
            }
            text
        }
        Message::Assistant(message) => {
            let mut lines = Vec::new();
            let content = message.full_text();
            if !content.is_empty() {
                lines.push(format!("assistant: {content}"));
            }
            let calls = message.calls.iter();
            lines.extend(calls.map(|call| line(&format!("→ {} {}", call.name, call.arguments))));
            lines.join("\n")
        }
        Message::Tool(result) => line(&format!("← {}: {}", result.name, result.full_text())),
    }
}

fn delete(sessions: &Sessions, name: &str, is_json: bool, output: &mut Output) -> Result<()> {
    sessions.delete(name)?;
    if is_json {
        output.print(&json!({ "deleted": name }).to_string());
    } else {
        output.note(&format!("deleted session `{name}`"));
    }
    Ok(())
}
