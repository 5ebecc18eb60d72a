//! Daily notes: entries that are appended to a Markdown file of the local day.
//!
//! The folder belongs to the user and may be an Obsidian vault, so a note is only appended
//! to. Each entry is one write under a lock; an entry that does not fit on the disk leaves no
//! part behind.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::memory::create_private_folder;
use crate::memory::fact::normalize_content;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::message::Message;
use base::secret::{CutEdges, Secrets};
use base::text::{counted, one_line, sendable, truncate};
use host::cancellation::{Cancellation, StopReason};
use host::clock::{LocalTime, parse_timestamp};
use host::confined::{self, OpenError, Root};
use host::files::effective_user;
use host::lock::lock_file;

/// Appends an entry to today's note and returns the path of the note. The entry starts with
/// the time and the title, which may be empty.
pub(crate) fn write_entry(
    folder: &Path,
    title: &str,
    activity: &str,
    cancellation: &Cancellation,
) -> Result<PathBuf> {
    let clean = sendable(activity);
    let clean = clean.replace("\r\n", "\n").replace('\r', "\n");
    let activity = clean.trim();
    let cause = match activity.len() {
        0 => "it is empty".to_string(),
        length if length > limits::NOTE_BYTES => {
            format!("it has {length} bytes, more than the limit of {}", limits::NOTE_BYTES)
        }
        _ => String::new(),
    };
    if !cause.is_empty() {
        let text = format!("failed to write the daily note: {cause}");
        return Err(Error::new(ErrorKind::Usage, text));
    }
    append_entry(folder, title, activity, cancellation)
}

/// Error of the tools for notes, for the model.
pub(crate) const NO_FOLDER: &str =
    "there are no daily notes: the user can name a folder for them with NOTES_FOLDER_PATH";

/// Returns the note of a day (`YYYY-MM-DD`), if there is one. The error is for the model.
pub(crate) fn read_note(
    folder: &Path,
    date: &str,
    secrets: &Secrets,
) -> std::result::Result<Option<String>, String> {
    if parse_timestamp(&format!("{date}T00:00:00.000Z")).is_none() {
        let shown = one_line(date, limits::SUMMARY_CHARS);
        return Err(format!("`{shown}` is not a date: write it as YYYY-MM-DD"));
    }
    let opened = Root::open(folder).and_then(|root| root.file(format!("{date}.md")));
    // It could be another file of the user, as in `open`.
    let is_linked = |file: &File| file.metadata().is_ok_and(|meta| meta.nlink() > 1);
    if opened.as_ref().is_ok_and(is_linked) {
        return Err(format!("the note of {date} has more than one name (hard link)"));
    }
    let piece = match opened.and_then(|file| confined::read_whole(&file, limits::NOTE_READ_BYTES)) {
        Err(OpenError::NotFound) => return Ok(None),
        piece => piece.map_err(|error| format!("the note of {date} cannot be read: {error}"))?,
    };
    let text = String::from_utf8_lossy(&piece.bytes);
    // A secret at the cut would not be recognized later.
    let edges = CutEdges { before: false, after: piece.has_more };
    let mut text = secrets.mask_cut(&text, edges).into_owned();
    if piece.has_more {
        text.push_str("\n[the note goes on: it is longer than one result]\n");
    }
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Checks that the folder exists or can be created; the error names a file that prevents it.
pub fn check_folder(folder: &Path) -> Result<()> {
    let Some(file) = folder.ancestors().find(|path| path.exists() && !path.is_dir()) else {
        return Ok(());
    };
    let (folder, file) = (folder.display(), file.display());
    let text = format!(
        "failed to open the folder of daily notes: NOTES_FOLDER_PATH is `{folder}`, and `{file}` is a file"
    );
    Err(Error::new(ErrorKind::Config, text)
        .with_hint("set NOTES_FOLDER_PATH to a folder; it is created with the first note"))
}

/// Appends a text below a heading with the time and a title.
fn append_entry(
    folder: &Path,
    title: &str,
    text: &str,
    cancellation: &Cancellation,
) -> Result<PathBuf> {
    check_folder(folder)?;
    let now = LocalTime::now();
    let title = one_line(&normalize_content(title), limits::NOTE_TITLE_BYTES);
    let heading = format!("## {} {title}", now.time);
    let entry = format!("{}\n\n{text}\n", heading.trim_end());
    let path = folder.join(format!("{}.md", now.date));
    append(folder, &path, &entry, cancellation).map_err(|cause| {
        if let Some(stop) = StopReason::from_io_error(&cause) {
            return stop.into();
        }
        let text = format!("failed to write the daily note `{}`: {cause}", path.display());
        Error::new(ErrorKind::Io, text)
    })?;
    Ok(path)
}

fn append(folder: &Path, path: &Path, entry: &str, cancellation: &Cancellation) -> io::Result<()> {
    create_private_folder(folder)?;
    for _ in 0..limits::MEMORY_TRIES {
        let is_new = fs::symlink_metadata(path).is_err();
        let file = open(path)?;
        let is_locked = lock_file(&file, limits::MEMORY_LOCK, cancellation)?;
        // An editor may have replaced the file.
        let (opened, current) = (file.metadata()?, fs::symlink_metadata(path));
        if current
            .is_ok_and(|current| (current.dev(), current.ino()) == (opened.dev(), opened.ino()))
        {
            append_locked(&file, opened.len(), entry, is_locked).inspect_err(|_| {
                // A process that waits for the lock notices the deletion and creates the file
                // again.
                if is_new && is_locked && fs::metadata(path).is_ok_and(|now| now.len() == 0) {
                    let _ = fs::remove_file(path);
                }
            })?;
            return Ok(());
        }
    }
    Err(io::Error::other("another process keeps replacing it"))
}

/// Opens the note or creates it. Links are not followed.
fn open(path: &Path) -> io::Result<File> {
    if let Ok(meta) = fs::symlink_metadata(path) {
        let cause = match () {
            () if meta.is_symlink() => "it is a link; replace it with a file",
            () if !meta.is_file() => "it is not a regular file",
            () if meta.nlink() > 1 => "it has more than one name (hard link)",
            // The superuser could write it, but the user has made it read-only.
            () if meta.mode() & 0o222 == 0 => "it is read-only; `chmod u+w` allows it",
            // Other users may write if the mode allows it.
            () if effective_user() == 0 && meta.uid() != 0 => {
                "it belongs to another user: run the program as its owner, or set NOTES_FOLDER_PATH to a folder of your own"
            }
            () => "",
        };
        if !cause.is_empty() {
            return Err(io::Error::other(cause));
        }
    }
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
}

fn append_locked(mut file: &File, length: u64, entry: &str, is_locked: bool) -> io::Result<()> {
    let mut end = [b'\n'; 4];
    let from = length.saturating_sub(4);
    let known = usize::try_from(length - from).unwrap_or_default();
    file.read_exact_at(&mut end[4 - known..], from)?;
    let is_crlf = end.ends_with(b"\r\n");
    let before = match () {
        () if length == 0 || end.ends_with(b"\n\n") || end.ends_with(b"\n\r\n") => "",
        () if end.ends_with(b"\n") => "\n",
        () => "\n\n",
    };
    let mut text = format!("{before}{entry}");
    if is_crlf {
        text = text.replace('\n', "\r\n");
    }
    let done = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if matches!(&done, Err(error) if error.kind() != io::ErrorKind::Interrupted) && is_locked {
        // No entry is better than an incomplete one.
        let _ = file.set_len(length);
    }
    done
}

/// The entry of a conversation in the daily note.
#[derive(Debug)]
pub struct ConversationNote {
    started: SystemTime,
    turns: Vec<NoteTurn>,
    /// The number of turns that are not listed.
    unlisted: usize,
    /// The called tools, each with the number of its calls.
    tools: BTreeMap<String, usize>,
}

/// A question and its answer, both shortened; the answer may be empty.
#[derive(Debug)]
struct NoteTurn {
    question: String,
    answer: String,
}

impl Default for ConversationNote {
    fn default() -> ConversationNote {
        ConversationNote {
            started: SystemTime::now(),
            turns: Vec::new(),
            unlisted: 0,
            tools: BTreeMap::new(),
        }
    }
}

impl ConversationNote {
    /// Records the turn that has just ended, with or without an answer.
    pub fn record_turn(&mut self, messages: &[Message]) {
        let is_question = |message: &Message| matches!(message, Message::User(_));
        let Some(at) = messages.iter().rposition(is_question) else {
            return;
        };
        let Message::User(question) = &messages[at] else {
            return;
        };
        let mut answer = String::new();
        for message in &messages[at..] {
            if let Message::Assistant(message) = message {
                answer = truncate(message.content.trim(), limits::NOTE_ANSWER_BYTES).into_owned();
                for call in &message.calls {
                    let name = one_line(&call.name, limits::TOOL_NAME_CHARS);
                    *self.tools.entry(name).or_default() += 1;
                }
            }
        }
        let question = one_line(&question.typed_text(), limits::NOTE_QUESTION_BYTES);
        let repeated = self.turns.last_mut();
        let repeated = repeated.filter(|last| last.answer.is_empty() && last.question == question);
        if let Some(last) = repeated {
            // The question was sent again after a failure.
            last.answer = answer;
        } else if self.turns.len() < limits::NOTE_TURNS {
            self.turns.push(NoteTurn { question, answer });
        } else {
            self.unlisted += 1;
        }
    }

    /// Writes the conversation into the daily note of the current day. Does nothing if there
    /// were no questions.
    pub fn write_to(
        &self,
        folder: &Path,
        (name, model): (&str, &str),
        secrets: &Secrets,
        cancellation: &Cancellation,
    ) -> Result<()> {
        let Some(entry) = self.entry(model) else {
            return Ok(());
        };
        // Questions and answers were shortened, so secrets may be cut.
        let entry = secrets.mask_shortened(&entry);
        append_entry(folder, &format!("conversation {name}"), entry.trim_end(), cancellation)
            .map(drop)
    }

    fn entry(&self, model: &str) -> Option<String> {
        if self.turns.is_empty() {
            return None;
        }
        let (started, now) = (LocalTime::from_system_time(self.started), LocalTime::now());
        let start = if started.date == now.date {
            started.time
        } else {
            format!("{} {}", started.date, started.time)
        };
        let turns = counted(self.turns.len() + self.unlisted, "turn");
        let mut entry = format!("{turns} with {model}, {start} to {}", now.time);
        let tools = self.tools.iter().take(limits::LISTED_NAMES);
        let tools: Vec<String> = tools.map(|(tool, count)| format!("{tool} {count}")).collect();
        if !tools.is_empty() {
            let _ = write!(entry, "; tools: {}", tools.join(", "));
        }
        entry.push('\n');
        for NoteTurn { question, answer } in &self.turns {
            let _ = write!(entry, "\n**{}**\n\n", question.replace("**", ""));
            let answer = if answer.is_empty() { "(no answer)" } else { answer };
            // A quotation, so that its headings are not headings of the note.
            for line in answer.lines() {
                let _ = writeln!(entry, "{}", format!("> {line}").trim_end());
            }
        }
        if self.unlisted > 0 {
            let _ = writeln!(entry, "\n… and {}", counted(self.unlisted, "more turn"));
        }
        Some(entry)
    }
}
