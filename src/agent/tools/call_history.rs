//! A conversation's record of its earlier calls, its system prompt and its context window.

use std::cell::{Cell, RefCell};

use base::secret::Secrets;
use base::tool::ToolResult;
use host::capture::{Capture, CaptureLimits};
use skills::Catalogue;

/// The record of earlier calls, the system prompt and the context window, for results.
#[derive(Debug, Default)]
pub struct CallHistory {
    /// Digest of the last call, if it failed.
    pub(super) last_failure: Cell<Option<u64>>,
    /// Whether the call before this one was the same, and failed.
    pub(super) failed_before: Cell<bool>,
    /// The skill whose document the model read last.
    pub(super) recent_skill: RefCell<Option<String>>,
    /// The skill that the last call took for a program, module or folder.
    pub(super) needed_skill: RefCell<Option<String>>,
    /// Digest of the skills, if the system prompt lists all of them with whole descriptions.
    pub(super) listed_skills: Cell<Option<u64>>,
    /// The facts in the system prompt.
    pub(super) facts: RefCell<String>,
    /// Most bytes of a result, if the context window is known.
    pub(super) most_result_bytes: Cell<Option<usize>>,
}

impl CallHistory {
    /// Most bytes of the text in a result, which are usually this many: fewer where the context
    /// window is small. An eighth is left for notes about the text.
    pub(super) fn text_bytes(&self, usual: usize) -> usize {
        self.most_result_bytes.get().map_or(usual, |most| usual.min(most - most / 8))
    }

    /// Leaves out the middle of a text that is too long for the context window.
    pub(super) fn shorten(&self, result: &mut ToolResult, secrets: &Secrets) {
        let most = self.most_result_bytes.get().unwrap_or(usize::MAX);
        let is_json = result.object.is_none() && result.content.starts_with('{');
        if result.content.len() > most && !is_json {
            let mut capture = Capture::new(CaptureLimits::halves(most));
            capture.push(result.content.as_bytes());
            result.content = capture.masked(secrets);
        }
    }

    /// Whether the system prompt lists all of these skills with whole descriptions.
    pub(super) fn lists_all(&self, catalogue: &Catalogue) -> bool {
        self.listed_skills.get().is_some_and(|listed| listed == catalogue.digest())
    }
}
