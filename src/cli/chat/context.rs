//! `/compact` and `/tokens`.

use crate::cli::chat::{Chat, LineOutcome};
use crate::ui::Output;
use agent::context::{ContextManager, SummaryOutcome};
use base::error::Result;
use base::event::RunStats;
use base::text::group_digits;

impl Chat<'_> {
    /// Replaces all turns except the last with a summary.
    pub(super) fn compact(&mut self, output: &mut Output) -> Result<LineOutcome> {
        let tools = self.tools.definitions();
        let manager = ContextManager::new(&self.model, tools, self.run.window());
        let mut stats = RunStats::default();
        let conversation = &mut self.conversation;
        let done = manager.compact(conversation, &mut stats, &mut |event| {
            output.show(&event);
        });
        self.usage += stats.usage;
        match done? {
            SummaryOutcome::Summarized => {}
            SummaryOutcome::NothingOlder => output.note("there is nothing to summarize"),
            SummaryOutcome::NotShorter => {
                output.note("nothing was summarized: a summary would not be shorter");
            }
            SummaryOutcome::NotWritten => {
                output.note("nothing was summarized: the model wrote no summary");
            }
        }
        Ok(LineOutcome::Nothing)
    }

    /// Prints how much of the context window is used, and the tokens used so far.
    pub(super) fn show_tokens(&mut self, output: &mut Output) -> LineOutcome {
        self.conversation.set_tools(self.tools.definitions());
        let tokens = self.conversation.estimate();
        let window = self.conversation.window(self.run.window());
        let of = window.map_or_else(
            || "; the window is unknown (LLM_CONTEXT_WINDOW sets it)".into(),
            |window| {
                let share = tokens.saturating_mul(100) / window.max(1);
                format!(" of {} ({share} %)", group_digits(window))
            },
        );
        output.note(&format!(
            "about {} tokens{of}; so far {} read, {} written",
            group_digits(tokens),
            group_digits(self.usage.prompt_tokens),
            group_digits(self.usage.completion_tokens)
        ));
        LineOutcome::Nothing
    }
}
