//! Memory between conversations: facts in one Markdown file, and daily notes.
//!
//! Both are files of the user; only the intended lines change. `facts` handles the format and
//! does no I/O; `store` and `notes` read and write files.

mod edit;
pub(crate) mod facts;
pub(crate) mod notes;
pub(crate) mod overlap;
mod scan;
mod similar;
pub(crate) mod store;
#[cfg(test)]
mod tests;

pub(crate) use store::{AddedFact, Memory};

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Folders created for a file. They are deleted again if the file is not written.
struct CreatedFolders(Vec<PathBuf>);

impl CreatedFolders {
    /// Creates a folder and its parents for their owner only.
    fn create(folder: &Path) -> io::Result<CreatedFolders> {
        let missing = folder.ancestors().take_while(|folder| !folder.exists());
        let created = CreatedFolders(missing.map(Path::to_path_buf).collect());
        if !folder.is_dir() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
        }
        Ok(created)
    }

    /// Keeps the folders.
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // This fails unless the folder is empty.
            let _ = fs::remove_dir(folder);
        }
    }
}
