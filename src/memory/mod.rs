//! Memory between conversations: facts in one Markdown file, and daily notes.
//!
//! Both are files of the user; only the intended lines change. `facts` handles the format and
//! does no I/O; `store` and `notes` read and write files.

mod blocks;
pub(crate) mod fact;
pub(crate) mod facts;
pub(crate) mod notes;
mod overlap;
mod similar;
pub(crate) mod store;
#[cfg(test)]
mod tests;

pub(crate) use store::{AddedFact, Memory};

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Creates a folder and its parents for their owner only.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
