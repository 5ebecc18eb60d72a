//! The history of typed messages: a private text file, one message a line.
//!
//! A line is only appended, in one write. When the file has become twice as long as the history, it
//! is replaced in one step. A file that is not a history is neither changed nor followed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base::limits;
use host::confined::Root;

/// First line of the file.
const HEADER: &str = "# messages typed in skills-runner\n";

/// A history file. It may not exist yet.
#[derive(Debug)]
pub(crate) struct HistoryFile {
    path: PathBuf,
}

impl HistoryFile {
    /// Opens the file, and returns its messages, the latest last. An error says why it cannot be
    /// used.
    pub(crate) fn open(path: &Path) -> Result<(HistoryFile, Vec<String>), String> {
        let history = HistoryFile { path: path.to_path_buf() };
        if !path.exists() && !path.is_symlink() {
            return Ok((history, Vec::new()));
        }
        let text = history.read()?;
        let lines = String::from_utf8_lossy(text.get(HEADER.len()..).unwrap_or_default());
        let count = lines.lines().count();
        let mut left = limits::HISTORY_FILE_BYTES / 4;
        let latest = lines.lines().rev().take(limits::HISTORY_LINES).take_while(|line| {
            left = left.saturating_sub(line.len());
            left > 0
        });
        let mut messages: Vec<String> = latest.map(unescaped).collect();
        messages.reverse();
        if count > 2 * limits::HISTORY_LINES || text.len() > limits::HISTORY_FILE_BYTES / 2 {
            history.replace(&text, &messages);
        }
        Ok((history, messages))
    }

    /// Appends a message.
    pub(crate) fn append(&self, message: &str) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut file = self.file(OpenOptions::new().append(true).create(true).mode(0o600))?;
        let header = if file.metadata()?.len() == 0 { HEADER } else { "" };
        file.write_all(format!("{header}{}\n", escaped(message)).as_bytes())
    }

    fn read(&self) -> Result<Vec<u8>, String> {
        let name = self.path.display();
        let failure = |error: std::io::Error| format!("{name} cannot be read: {error}");
        let file = self.file(OpenOptions::new().read(true)).map_err(failure)?;
        let mut bytes = Vec::new();
        let most = limits::HISTORY_FILE_BYTES;
        file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failure)?;
        let is_history = bytes.is_empty() || bytes.starts_with(HEADER.as_bytes());
        if !is_history || bytes.len() > most {
            return Err(format!("{name} is another file: it is not used as history"));
        }
        Ok(bytes)
    }

    /// Opens a regular file that is not a link.
    fn file(&self, options: &mut OpenOptions) -> std::io::Result<File> {
        let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        Ok(file)
    }

    /// Replaces the file, unless it has changed since it was read; a failure keeps the old one.
    fn replace(&self, old: &[u8], messages: &[String]) {
        let lines = messages.iter().map(|message| escaped(message) + "\n");
        let new = HEADER.to_string() + &lines.collect::<String>();
        let name = self.path.file_name().and_then(|name| name.to_str());
        if let (Some(name), Some(Ok(root))) = (name, self.path.parent().map(Root::open)) {
            let _ = root.save(name, Some(old), new.as_bytes(), false);
        }
    }
}

fn escaped(message: &str) -> String {
    message.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescaped(line: &str) -> String {
    let mut message = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some('n')) => message.push('\n'),
            ('\\', Some('\\')) => message.push('\\'),
            _ => {
                message.push(c);
                continue;
            }
        }
        chars.next();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::scratch::Scratch;

    #[test]
    fn messages_are_read_as_they_were() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let path = scratch.path().join("deep/history");
        let (file, messages) = HistoryFile::open(&path).unwrap();
        assert!(messages.is_empty());
        let typed = ["a", "two\nlines", "back\\slash \\n", "é\\", ""];
        for message in typed {
            file.append(message).unwrap();
        }
        assert_eq!(HistoryFile::open(&path).unwrap().1, typed);
    }

    #[test]
    fn a_long_history_is_shortened_to_the_latest_messages() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let path = scratch.path().join("history");
        let lines = (0..=2 * limits::HISTORY_LINES).map(|number| format!("{number}\n"));
        std::fs::write(&path, HEADER.to_string() + &lines.collect::<String>()).unwrap();
        let (_, messages) = HistoryFile::open(&path).unwrap();
        assert_eq!(messages.last().unwrap(), &(2 * limits::HISTORY_LINES).to_string());
        assert_eq!(messages.len(), limits::HISTORY_LINES);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), limits::HISTORY_LINES + 1);
    }
}
