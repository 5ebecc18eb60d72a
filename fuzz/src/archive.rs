//! Any archive: every path stays in the folder, and no file has more content than it says.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use host::archive::{ArchiveEntry, ArchiveEntryKind, read};
use skills_runner::Cancellation;

/// Checks the properties.
pub fn check(data: &[u8]) {
    let file = file_with(data);
    let _ = read(&file, &Cancellation::never(), &mut |entry: ArchiveEntry, content| {
        let path = &entry.path;
        // A name with NUL stays, so that its file can be named as one that is left out.
        let is_clean = |name: &str| !matches!(name, "" | "." | "..");
        assert!(path.is_empty() || path.split('/').all(is_clean), "{path:?}");
        if let ArchiveEntryKind::File { size, .. } = entry.kind {
            let read = io::copy(&mut content.take(size + 1), &mut io::sink())?;
            assert!(read <= size, "{path:?} has more than {size} bytes");
        }
        Ok(())
    });
}

/// A file of this content, without a name.
fn file_with(data: &[u8]) -> File {
    let name = format!("skills-runner-fuzz-archive-{}", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("the temporary folder is writable");
    fs::remove_file(path).expect("it was just created");
    file.write_all(data).expect("there is space");
    file
}
