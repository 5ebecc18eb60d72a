//! What outlives a conversation: facts in one Markdown file, and daily notes.
//!
//! Both are files of the person's, whose every byte stays. `facts` knows the
//! format and only computes; `store` and `notes` read and write.

mod edit;
pub mod facts;
mod near;
pub mod notes;
pub mod overlap;
mod scan;
pub mod store;
#[cfg(test)]
mod tests;

pub use store::{Added, Memory};

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folders that were made for a file; without the file they go again.
struct Made(Vec<PathBuf>);

impl Made {
    /// Makes a folder, with those above it, for its owner only.
    fn folder(folder: &Path) -> io::Result<Made> {
        let missing = folder.ancestors().take_while(|above| !above.exists());
        let made = Made(missing.map(Path::to_path_buf).collect());
        if !folder.is_dir() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
        }
        Ok(made)
    }

    /// There is something in them now.
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Only one that is empty.
            let _ = fs::remove_dir(folder);
        }
    }
}
