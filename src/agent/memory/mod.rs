//! Memory between conversations: facts in one Markdown file, and daily notes.
//!
//! Both are files of the user; only the intended lines change. `facts` handles the format and
//! does no I/O; `store` and `notes` read and write files.

pub mod fact;
pub mod facts;
pub mod notes;
mod overlap;
mod similar;
pub mod store;
#[cfg(test)]
mod tests;

pub use store::{AddedFact, Memory};

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Paths of sessions, facts and notes. They may not exist yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// The folder of sessions; `None` only if neither the setting nor a home folder is set.
    pub sessions: Option<PathBuf>,
    /// The facts file; `None`: no memory.
    pub facts: Option<PathBuf>,
    /// The folder of daily notes; `None`: no notes are written.
    pub notes: Option<PathBuf>,
    /// The file of lines typed in conversations; `None`: none are kept.
    pub history: Option<PathBuf>,
    /// The folder of the program's other data; `None` only without a home folder.
    pub state: Option<PathBuf>,
}

impl Storage {
    /// All paths; sandboxed scripts may read none of them.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.sessions, &self.facts, &self.notes, &self.history, &self.state].into_iter().flatten()
    }
}

/// Creates a folder and its parents for their owner only.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
