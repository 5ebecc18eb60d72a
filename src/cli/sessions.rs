//! `sessions`: saved conversations, listed, shown, deleted.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli::args::{CommandLine, usage};
use crate::cli::session_handle::sessions;
use crate::cli::setup::{Run, Startup};
use crate::cli::values;
use crate::config::ConfigNeeds;
use crate::conversation::meter::TokenMeter;
use crate::error::{Error, Result};
use crate::limits;
use crate::message::Message;
use crate::secret::Secrets;
use crate::session::{RestoredSession, SessionFile, Sessions, age, value};
use crate::text::{self, counted, one_line, one_name};
use crate::world::clock::timestamp;
use crate::world::output::{Format, Output};

/// The words that `sessions` knows.
const WORDS: [&str; 3] = ["list", "show", "delete"];

/// Does what the first word says; without one the sessions are listed.
pub(super) fn run(mut typed: CommandLine, start: &Startup, output: &mut Output) -> Result<()> {
    let is_json = typed.format != Format::Text;
    let words = values::texts(std::mem::take(&mut typed.words))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let open = |output: &mut Output| {
        let run = Run::new(typed, start, ConfigNeeds::Skills, output)?;
        sessions(&run.config)
    };
    match words.as_slice() {
        [] | ["list"] => list(&open(output)?, is_json, output),
        ["show", name] => show(&open(output)?, name, is_json, output),
        ["delete", name] => delete(&open(output)?, name, is_json, output),
        [word, ..] => Err(misused(word)),
    }
}

fn misused(word: &str) -> Error {
    const PROMPT: &str =
        "a prompt that begins with `sessions` comes after --: skills-runner -- sessions …";
    if WORDS.contains(&word) {
        let what = if word == "list" { "no names" } else { "one name" };
        let error = usage(format!("sessions {word} takes {what}"));
        return error.with_hint(format!("`skills-runner sessions list` gives all; {PROMPT}"));
    }
    let shown = one_line(word, limits::SUMMARY_CHARS);
    let error = usage(format!("`sessions {shown}` is no command"));
    match text::nearest(word, WORDS.into_iter(), 1).first() {
        Some(near) => error.with_hint(format!("did you mean `sessions {near}`?")),
        None => error.with_hint(format!("its words are {}; {PROMPT}", WORDS.join(", "))),
    }
}

fn list(sessions: &Sessions, is_json: bool, output: &mut Output) -> Result<()> {
    let all = sessions.all()?;
    if is_json {
        let all = all.iter();
        let all: Vec<Value> =
            all.map(|found| object(sessions, found, &sessions.read(&found.name))).collect();
        output.print(&json!({ "sessions": all }).to_string());
        return Ok(());
    }
    if all.is_empty() {
        let folder = sessions.folder().display();
        output.note(&format!("there is no session in {folder}"));
    }
    let width = all.iter().map(|found| found.name.len()).max().unwrap_or(0);
    for found in &all {
        let name = &found.name;
        let line = match sessions.read(name) {
            Ok(Some(restored)) => {
                let holder = sessions.holder(name);
                let holder = holder.map_or_else(String::new, |pid| format!(", in use by {pid}"));
                let messages = counted(restored.messages.len(), "message");
                let folder = one_name(&restored.header.folder);
                format!("{:>8}  {messages:>12}  {folder}{holder}", age(found.changed))
            }
            Ok(None) => "nothing was said".to_string(),
            Err(error) => format!("({})", error.message()),
        };
        output.print(&format!("{name:width$}  {line}"));
    }
    Ok(())
}

/// A session for programs.
fn object(
    sessions: &Sessions,
    found: &SessionFile,
    read: &Result<Option<RestoredSession>>,
) -> Value {
    let mut object = json!({
        "name": found.name,
        "last_activity": timestamp(found.changed),
        "bytes": found.bytes,
        "in_use": sessions.holder(&found.name),
    });
    match read {
        Ok(Some(restored)) => describe(&mut object, restored),
        Ok(None) => object["messages"] = 0.into(),
        Err(error) => object["problem"] = error.message().into(),
    }
    object
}

fn describe(object: &mut Value, restored: &RestoredSession) {
    object["id"] = restored.header.id.as_str().into();
    object["folder"] = restored.header.folder.as_str().into();
    object["model"] = restored.header.model.as_str().into();
    object["created"] = timestamp(restored.header.created).into();
    object["messages"] = restored.messages.len().into();
    object["estimate"] = TokenMeter::default().estimate(&restored.messages).into();
    if let Some(fault) = restored.faults.first() {
        object["problem"] = fault.as_str().into();
    }
}

fn show(sessions: &Sessions, name: &str, is_json: bool, output: &mut Output) -> Result<()> {
    let found = sessions.found(name);
    let read = Ok(sessions.read(name)?);
    let restored = read.as_ref().ok().and_then(Option::as_ref);
    let messages = restored.map_or(&[][..], |restored| &restored.messages);
    if is_json {
        let mut object = object(sessions, &found?, &read);
        // Nothing secret went in, and what is printed is masked all the same.
        let said = messages.iter().zip(0_usize..).map(|(said, index)| {
            let mut said = value(said, &Secrets::default());
            said["index"] = index.into();
            said
        });
        object["messages"] = said.collect();
        output.print(&object.to_string());
        return Ok(());
    }
    if let Some(fault) = restored.and_then(|restored| restored.told(name)) {
        output.warn(&fault);
    }
    for message in messages {
        output.print(&shown(message));
    }
    Ok(())
}

/// A message for people; what tools were asked and answered in a line each.
pub(super) fn shown(message: &Message) -> String {
    let line = |text: &str| one_line(text, limits::LINE_BYTES);
    match message {
        Message::System(text) => format!("system: {text}"),
        Message::User(said) => {
            let mut text = format!("user: {}", said.text);
            for image in &said.images {
                let shown = one_line(&image.shown(), limits::SUMMARY_CHARS);
                let _ = write!(text, "\n[{shown}]");
            }
            text
        }
        Message::Assistant(said) => {
            let mut lines = Vec::new();
            if !said.content.is_empty() {
                lines.push(format!("assistant: {}", said.content));
            }
            let calls = said.calls.iter();
            lines.extend(calls.map(|call| line(&format!("→ {} {}", call.name, call.arguments))));
            lines.join("\n")
        }
        Message::Tool { name, content, .. } => line(&format!("← {name}: {content}")),
    }
}

fn delete(sessions: &Sessions, name: &str, is_json: bool, output: &mut Output) -> Result<()> {
    sessions.delete(name)?;
    if is_json {
        output.print(&json!({ "deleted": name }).to_string());
    } else {
        output.note(&format!("the session `{name}` is deleted"));
    }
    Ok(())
}
