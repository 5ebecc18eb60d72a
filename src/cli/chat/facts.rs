//! `/facts`, and the log of the conversation in the daily note.

use std::time::Instant;

use crate::cli::chat::commands::line_error;
use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::facts::{added_lines, fact_lines, no_memory};
use crate::ui::Output;
use agent::memory::notes;
use base::error::{ErrorKind, Result};
use base::limits;
use chat_api::Model as _;
use host::cancellation::Cancellation;

impl Chat<'_> {
    /// Warns at the start if the daily note cannot be written.
    pub(super) fn check_notes_folder(&self, output: &mut Output) {
        let folder = self.run.config.storage.notes.as_deref();
        if let Some(Err(error)) = folder.map(notes::check_folder) {
            output.warn(&error.to_string());
        }
    }

    /// Appends the conversation to the daily note, however it ended.
    pub(super) fn write_daily_note(&self, output: &mut Output) {
        let Some(folder) = &self.run.config.storage.notes else {
            return;
        };
        let titles = (self.run.conversation_name.as_str(), self.model.name());
        // A signal or the deadline may have ended the conversation: use a deadline of its own.
        let mut cancellation = Cancellation::never();
        cancellation.deadline = Some(Instant::now() + limits::LOG_LOCK);
        let secrets = &self.run.config.secrets;
        if let Err(error) = self.daily_note.write_to(folder, titles, secrets, &cancellation) {
            output.warn(&error.to_string());
        }
    }

    /// `/facts`, `/facts add TEXT`, `/facts remove N`. The model sees changes from the next
    /// conversation on.
    pub(super) fn run_facts_command(
        &mut self,
        rest: &str,
        output: &mut Output,
    ) -> Result<LineOutcome> {
        let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let number = rest.trim().parse::<usize>();
        let memory = || self.run.memory().ok_or_else(|| no_memory(self.run));
        let lines: Vec<String> = match (word, rest.trim(), number) {
            ("" | "list", "", _) => match memory()?.read()?.all() {
                [] => vec!["there are no facts yet".into()],
                facts => fact_lines(facts, "  ").collect(),
            },
            ("add", text, _) if !text.is_empty() => {
                let text = self.run.config.secrets.mask(text);
                added_lines(&memory()?.add(&text, false, None, &self.run.conversation_name)?)
            }
            ("remove", _, Ok(number)) => {
                let removed = memory()?.remove(number);
                let fact = removed.map_err(|error| match error.kind() {
                    ErrorKind::Usage => error.with_hint("/facts shows the numbers"),
                    _ => error,
                })?;
                vec![format!("removed: {}", fact.content)]
            }
            _ => return Err(line_error("usage: /facts, /facts add TEXT, or /facts remove N")),
        };
        for line in &lines {
            output.note(line);
        }
        Ok(LineOutcome::Nothing)
    }
}
