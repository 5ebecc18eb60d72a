//! `facts`: lists, adds and removes facts of the memory.

use serde::Serialize;
use serde_json::json;

use crate::cli::options::{CommonOptions, FactsCommand};
use crate::cli::run::Run;
use crate::cli::startup::Startup;
use crate::cli::stdin;
use crate::config::ConfigNeeds;
use crate::ui::Output;
use agent::memory::fact::{Fact, IMPORTANT_TAG, has_tag};
use agent::memory::facts::FactChange;
use agent::memory::{AddedFact, Memory};
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::settings::TRUST_FIX;

/// The recorded source of facts added by this command.
const SOURCE: &str = "command line";

/// Runs the subcommand.
pub(super) fn run(
    command: FactsCommand,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<()> {
    let is_json = options.is_json();
    let run = Run::new(options, startup, ConfigNeeds::Skills, output)?;
    let Some(memory) = run.memory() else {
        return Err(no_memory(&run));
    };
    match command {
        FactsCommand::List => list(&memory, is_json, output),
        FactsCommand::Add(text) => {
            let text = match text.as_str() {
                "-" => stdin::read_text(limits::NOTE_BYTES, &run.cancellation)?,
                _ => text,
            };
            let text = run.config.secrets.mask(&text);
            let added = memory.add(&text, false, None, SOURCE)?;
            if is_json {
                let replaced = match &added.change {
                    FactChange::Replaced(old) => Some(&old.content),
                    _ => None,
                };
                let known = added.change == FactChange::Known;
                let report = json!({
                    "remembered": added.content, "replaced": replaced, "known": known,
                    "near": added.similar,
                });
                output.print(&report.to_string());
            } else {
                output.print(&added_lines(&added).join("\n"));
            }
            Ok(())
        }
        FactsCommand::Remove(number) => {
            let fact = memory.remove(number)?;
            if is_json {
                output.print(&json!({ "removed": fact.content }).to_string());
            } else {
                output.print(&format!("removed: {}", fact.content));
            }
            Ok(())
        }
    }
}

/// The error for an unset `MEMORY_PATH`.
pub(super) fn no_memory(run: &Run) -> Error {
    if run.config.has_folder_endpoint {
        let text = "failed to open the memory: facts do not go to the endpoint of ./.env";
        return Error::new(ErrorKind::Config, text).with_hint(TRUST_FIX);
    }
    let text = "failed to open the memory: MEMORY_PATH is not set";
    Error::new(ErrorKind::Config, text).with_hint(
        "set MEMORY_PATH to a Markdown file, in the environment or in .env; the first fact creates it",
    )
}

/// A fact in JSON output.
#[derive(Serialize)]
struct FactJson<'f> {
    number: usize,
    content: &'f str,
    important: bool,
    tags: Vec<&'f str>,
    created: Option<&'f str>,
    source: Option<&'f str>,
    line: usize,
}

fn list(memory: &Memory<'_>, is_json: bool, output: &mut Output) -> Result<()> {
    let facts = memory.read()?;
    if is_json {
        let numbered = facts.all().iter().enumerate();
        let listed: Vec<FactJson<'_>> = numbered
            .map(|(index, fact)| FactJson {
                number: index + 1,
                content: &fact.content,
                important: fact.important,
                tags: fact.tags(),
                created: fact.created.as_deref(),
                source: fact.source.as_deref(),
                line: fact.line,
            })
            .collect();
        output.print(&json!({ "facts": listed }).to_string());
        return Ok(());
    }
    if facts.all().is_empty() {
        output.note(&format!("there are no facts in {}", memory.path.display()));
        return Ok(());
    }
    let separator = if output.is_on_terminal() { "  " } else { "\t" };
    for line in fact_lines(facts.all(), separator) {
        output.print(&line);
    }
    Ok(())
}

/// One line per fact: number, date, text.
pub(super) fn fact_lines<'f>(
    facts: &'f [Fact],
    separator: &'f str,
) -> impl Iterator<Item = String> + 'f {
    let width = if separator == "\t" { 0 } else { facts.len().to_string().len() };
    facts.iter().enumerate().map(move |(index, fact)| {
        let date = fact.date().unwrap_or("----------");
        let is_marked = !fact.important || has_tag(&fact.content);
        let mark = if is_marked { String::new() } else { format!(" {IMPORTANT_TAG}") };
        let number = index + 1;
        format!("{number:width$}{separator}{date}{separator}{}{mark}", fact.content)
    })
}

/// The lines that report the result of adding a fact.
pub(super) fn added_lines(added: &AddedFact) -> Vec<String> {
    let content = &added.content;
    let mut lines = match &added.change {
        FactChange::Known => vec![format!("already known: {content}")],
        FactChange::Added => vec![format!("remembered: {content}")],
        FactChange::Replaced(old) => {
            vec![format!("remembered: {content}"), format!("replaced: {}", old.content)]
        }
    };
    let near = added.similar.iter();
    lines.extend(near.map(|fact| format!("similar, and kept: {fact}")));
    lines
}
