//! Facts of a run that become known after its start.

use super::{DIM, Output, Verbosity};

impl Output {
    /// Sets the model's name.
    pub(crate) fn set_model(&mut self, name: &str) {
        self.reports().for_each(|report| report.set_model(name));
    }

    /// Sets the session's name; `None`: the conversation is not saved.
    pub(crate) fn set_session(&mut self, name: Option<&str>) {
        self.reports().for_each(|report| report.set_session(name));
    }

    /// Declares this run a conversation, which shows notes even with `--quiet`.
    pub(crate) fn set_conversation(&mut self) {
        self.is_conversation = true;
    }

    /// Shows a line of an earlier turn in a resumed conversation.
    pub(crate) fn show_history_line(&mut self, text: &str) {
        if self.verbosity >= Verbosity::Normal {
            self.line(DIM, text);
        }
    }
}
