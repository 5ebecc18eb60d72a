//! What a conversation knows of its earlier calls, and of its system prompt.

use std::cell::{Cell, RefCell};

use crate::skills::Catalogue;

/// What results need of earlier calls and of the system prompt.
#[derive(Debug, Default)]
pub struct CallHistory {
    /// Digest of the last call, if it failed.
    pub(super) last_failure: Cell<Option<u64>>,
    /// Whether the call before this one was the same, and failed.
    pub(super) failed_before: Cell<bool>,
    /// The skill whose document the model read last.
    pub(super) recent_skill: RefCell<Option<String>>,
    /// Digest of the skills, if the system prompt lists all of them with whole descriptions.
    pub(super) listed_skills: Cell<Option<u64>>,
}

impl CallHistory {
    /// Whether the system prompt lists all of these skills with whole descriptions.
    pub(super) fn lists_all(&self, catalogue: &Catalogue) -> bool {
        self.listed_skills.get().is_some_and(|listed| listed == catalogue.digest())
    }
}
