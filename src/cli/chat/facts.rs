//! What outlives a conversation: `/facts`, and its log in the daily note.

use std::time::Instant;

use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::facts::{lines, told, unset};
use crate::error::{ErrorKind, Result};
use crate::limits;
use crate::memory::notes;
use crate::model::Model as _;
use crate::world::cancellation::Cancellation;
use crate::world::output::Output;

impl Chat<'_> {
    /// Tells at the beginning that there will be no daily note.
    pub(super) fn check_diary(&self, output: &mut Output) {
        let folder = self.run.config.storage.notes.as_deref();
        if let Some(Err(error)) = folder.map(notes::check) {
            output.warn(&error.to_string());
        }
    }

    /// Writes the conversation into the daily note, however it has ended.
    pub(super) fn keep_diary(&self, output: &mut Output) {
        let Some(folder) = &self.run.config.storage.notes else {
            return;
        };
        let titles = (self.run.source.as_str(), self.model.name());
        // A signal or the deadline may have ended it; this takes milliseconds.
        let mut cancellation = Cancellation::never();
        cancellation.deadline = Some(Instant::now() + limits::LOG_LOCK);
        let secrets = &self.run.config.secrets;
        if let Err(error) = self.diary.keep(folder, titles, secrets, &cancellation) {
            output.warn(&error.to_string());
        }
    }

    /// `/facts`, `/facts add TEXT`, `/facts remove N`. What is remembered now, the
    /// model is told at the beginning of the next conversation.
    pub(super) fn facts(&mut self, rest: &str, output: &mut Output) -> LineOutcome {
        let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let number = rest.trim().parse::<usize>();
        let done = match (word, rest.trim(), number) {
            ("" | "list", "", _) => self.listed_facts(),
            ("add", text, _) if !text.is_empty() => self.add_fact(text),
            ("remove", _, Ok(number)) => self.remove_fact(number),
            _ => {
                let text = "/facts stands alone, or with add TEXT, or with remove N";
                return self.refuse(text.into(), false, output);
            }
        };
        match done {
            Ok(lines) => lines.iter().for_each(|line| output.note(line)),
            Err(error) if self.is_terminal => output.error(&error),
            Err(error) => self.fail(error, output),
        }
        LineOutcome::Nothing
    }

    fn listed_facts(&self) -> Result<Vec<String>> {
        let memory = self.run.memory().ok_or_else(unset)?;
        let facts = memory.read()?;
        if facts.all().is_empty() {
            return Ok(vec!["there are no facts yet".into()]);
        }
        Ok(lines(facts.all(), "  ").collect())
    }

    fn add_fact(&self, text: &str) -> Result<Vec<String>> {
        let memory = self.run.memory().ok_or_else(unset)?;
        let text = self.run.config.secrets.mask(text);
        Ok(told(&memory.add(&text, false, None, &self.run.source)?))
    }

    fn remove_fact(&self, number: usize) -> Result<Vec<String>> {
        let memory = self.run.memory().ok_or_else(unset)?;
        let removed = memory.remove(number);
        let fact = removed.map_err(|error| match error.kind() {
            ErrorKind::Usage => error.with_hint("/facts shows the numbers"),
            _ => error,
        })?;
        Ok(vec![format!("removed: {}", fact.content)])
    }
}
