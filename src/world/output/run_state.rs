//! What becomes known of a run on its way.

use super::{DIM, Output, Verbosity};

impl Output {
    /// From now on the model is known.
    pub(crate) fn name_model(&mut self, name: &str) {
        self.reports().for_each(|report| report.name_model(name));
    }

    /// From now on the conversation is saved under this name, or not at all.
    pub(crate) fn name_session(&mut self, name: Option<&str>) {
        self.reports().for_each(|report| report.name_session(name));
    }

    /// From now on notes are what a conversation says to the person who holds it:
    /// who asks is answered, also with `--quiet`.
    pub(crate) fn converse(&mut self) {
        self.converses = true;
    }

    /// A line of what was said before, in a conversation that goes on.
    pub(crate) fn recall(&mut self, text: &str) {
        if self.verbosity >= Verbosity::Normal {
            self.line(DIM, text);
        }
    }
}
