//! The model's context in a conversation: summarized, and told.

use crate::cli::chat::Chat;
use crate::context::{ContextManager, SummaryOutcome};
use crate::error::ErrorKind;
use crate::event::RunStats;
use crate::text::grouped;
use crate::world::output::Output;

impl Chat<'_> {
    /// Makes a summary of all but the last turn.
    pub(super) fn compact(&mut self, output: &mut Output) {
        let window = self.run.config.context_window;
        let asked = ContextManager::new(&self.model, self.tools.definitions(), window);
        let mut stats = RunStats::default();
        let conversation = &mut self.conversation;
        let done = asked.compact(conversation, &mut stats, &mut |event| {
            output.show(&event);
        });
        self.spent += stats.usage;
        match done {
            Ok(SummaryOutcome::Made(_)) => {}
            Ok(SummaryOutcome::NothingOlder) => {
                output.note("there is nothing to summarize");
            }
            Ok(SummaryOutcome::NoShorter) => {
                output.note("nothing was summarized: a summary would be no shorter");
            }
            Ok(SummaryOutcome::NotWritten) => {
                output.note("nothing was summarized: the model wrote no summary");
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted(signal) if self.goes_on(signal) => {
                    self.run.cancellation.interrupt.take();
                    output.warn("interrupted; the conversation is as it was");
                }
                // What is read next sees the signal too, and ends.
                ErrorKind::Interrupted(_) => {}
                _ => {
                    if self.is_terminal {
                        output.error(&error);
                    } else {
                        self.fail(error, output);
                    }
                    output.note("nothing was summarized: the conversation is as it was");
                }
            },
        }
    }

    /// How full the context is, and what was spent so far.
    pub(super) fn tell_tokens(&mut self, output: &mut Output) {
        self.conversation.offer(self.tools.definitions());
        let tokens = self.conversation.estimate();
        let window = self.conversation.window(self.run.config.context_window);
        let of = window.map_or_else(
            || "; the window is unknown (LLM_CONTEXT_WINDOW sets it)".into(),
            |window| {
                let share = tokens.saturating_mul(100) / window.max(1);
                format!(" of {} ({share} %)", grouped(window))
            },
        );
        output.note(&format!(
            "about {} tokens{of}; so far {} read, {} written",
            grouped(tokens),
            grouped(self.spent.prompt_tokens),
            grouped(self.spent.completion_tokens)
        ));
    }
}
