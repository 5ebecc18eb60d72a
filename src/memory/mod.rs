//! What outlives a conversation: facts in one Markdown file, and daily notes.
//!
//! Both are files of the person's, whose every byte stays. `facts` knows the
//! format and only computes; `store` and `notes` read and write.

mod edit;
pub(crate) mod facts;
mod near;
pub(crate) mod notes;
pub(crate) mod overlap;
mod scan;
pub(crate) mod store;
#[cfg(test)]
mod tests;

pub(crate) use store::{AddedFact, Memory};

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folders that were made for a file; without the file they go again.
struct CreatedFolders(Vec<PathBuf>);

impl CreatedFolders {
    /// Makes a folder, with those above it, for its owner only.
    fn folder(folder: &Path) -> io::Result<CreatedFolders> {
        let missing = folder.ancestors().take_while(|above| !above.exists());
        let made = CreatedFolders(missing.map(Path::to_path_buf).collect());
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

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Only one that is empty.
            let _ = fs::remove_dir(folder);
        }
    }
}
