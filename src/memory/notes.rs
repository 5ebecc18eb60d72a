//! Daily notes: what was done, appended to a Markdown file of the local day.
//!
//! The folder is a person's, perhaps a vault of Obsidian: a note is only ever
//! added to. Every entry is one write under a lock, and one that does not fit on
//! the disk leaves no part of itself behind.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::memory::scan::scan;
use crate::memory::{CreatedFolders, facts};
use crate::message::{Message, UserMessage};
use crate::secret::Secrets;
use crate::text::{counted, cut, one_line, sendable};
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::clock::LocalTime;
use crate::world::files::user;
use crate::world::lock::take_file;

/// Appends an entry to today's note and returns the note's path. It begins with
/// the time and the title, which may be empty.
pub(crate) fn write(
    folder: &Path,
    title: &str,
    activity: &str,
    cancellation: &Cancellation,
) -> Result<PathBuf> {
    let clean = sendable(activity);
    let clean = clean.replace("\r\n", "\n").replace('\r', "\n");
    let activity = clean.trim();
    let fault = match activity.len() {
        0 => "it is empty".to_string(),
        length if length > limits::NOTE_BYTES => {
            format!("it has {length} bytes, and an entry at most {}", limits::NOTE_BYTES)
        }
        _ => String::new(),
    };
    if !fault.is_empty() {
        let text = format!("failed to write the daily note: {fault}");
        return Err(Error::new(ErrorKind::Usage, text));
    }
    // What it leaves open would swallow the entries behind it. A blank line in
    // front, as frontmatter is none here.
    match scan(format!("\n{activity}").as_bytes()).closing {
        Some(closing) => put(folder, title, &format!("{activity}\n{closing}"), cancellation),
        None => put(folder, title, activity, cancellation),
    }
}

/// Whether this can be a folder: the error says which file is in the way.
pub(crate) fn check(folder: &Path) -> Result<()> {
    let mut there = folder.ancestors();
    let Some(file) = there.find(|there| there.exists()).filter(|there| !there.is_dir()) else {
        return Ok(());
    };
    let shown = folder.display();
    let fault = if file == folder {
        format!("NOTES_FOLDER_PATH ({shown}) is a file, not a folder")
    } else {
        format!("NOTES_FOLDER_PATH ({shown}) is below `{}`, which is a file", file.display())
    };
    let text = format!("failed to open the folder of daily notes: {fault}");
    Err(Error::new(ErrorKind::Config, text)
        .with_hint("set NOTES_FOLDER_PATH to a folder; it is made when the first note is written"))
}

/// Appends a text under the time and a title.
fn put(folder: &Path, title: &str, text: &str, cancellation: &Cancellation) -> Result<PathBuf> {
    check(folder)?;
    let now = LocalTime::now();
    let title = one_line(&facts::content(title), limits::NOTE_TITLE_BYTES);
    let heading = format!("## {} {title}", now.time);
    let entry = format!("{}\n\n{text}\n", heading.trim_end());
    let path = folder.join(format!("{}.md", now.date));
    append(folder, &path, &entry, cancellation).map_err(|cause| {
        if let Some(stop) = StopReason::within(&cause) {
            return stop.into();
        }
        let text = format!("failed to write the daily note `{}`: {cause}", path.display());
        Error::new(ErrorKind::Io, text)
    })?;
    Ok(path)
}

fn append(folder: &Path, path: &Path, entry: &str, cancellation: &Cancellation) -> io::Result<()> {
    let made = CreatedFolders::folder(folder)?;
    for _ in 0..limits::MEMORY_TRIES {
        let is_new = fs::symlink_metadata(path).is_err();
        let file = open(path)?;
        let is_locked = take_file(&file, limits::MEMORY_LOCK, cancellation)?;
        // An editor may have put another file in its place.
        let (own, there) = (file.metadata()?, fs::symlink_metadata(path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())) {
            append_alone(&file, own.len(), entry, is_locked).inspect_err(|_| {
                // Whoever waits for the lock sees that it is gone, and makes it anew.
                if is_new && is_locked && fs::metadata(path).is_ok_and(|now| now.len() == 0) {
                    let _ = fs::remove_file(path);
                }
            })?;
            made.keep();
            return Ok(());
        }
    }
    Err(io::Error::other("somebody else keeps replacing it"))
}

/// The note, made where there is none. Never through a link.
fn open(path: &Path) -> io::Result<File> {
    if let Ok(meta) = fs::symlink_metadata(path) {
        let fault = match () {
            () if meta.is_symlink() => "it is a link; put a file in its place",
            () if !meta.is_file() => "it is no regular file",
            () if meta.nlink() > 1 => "it has another name too, a hard link",
            // The superuser could, but a person has said no.
            () if meta.mode() & 0o222 == 0 => "it is read-only; `chmod u+w` allows it",
            // Others write where the mode lets them.
            () if user() == 0 && meta.uid() != 0 => {
                "it belongs to another user: run the program as its owner, or set NOTES_FOLDER_PATH to a folder of your own"
            }
            () => "",
        };
        if !fault.is_empty() {
            return Err(io::Error::other(fault));
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

fn append_alone(mut file: &File, length: u64, entry: &str, is_locked: bool) -> io::Result<()> {
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
        // Rather no entry than a part of one.
        let _ = file.set_len(length);
    }
    done
}

/// What a conversation leaves in the daily note.
#[derive(Debug)]
pub(crate) struct ConversationNote {
    began: SystemTime,
    turns: Vec<NoteTurn>,
    /// Turns beyond those that are kept.
    more: usize,
    /// The tools that were called, and how often.
    tools: Vec<(String, usize)>,
}

/// A question and its answer, both shortened; the answer is empty where there is none.
#[derive(Debug)]
struct NoteTurn {
    question: String,
    answer: String,
}

impl Default for ConversationNote {
    fn default() -> ConversationNote {
        ConversationNote { began: SystemTime::now(), turns: Vec::new(), more: 0, tools: Vec::new() }
    }
}

impl ConversationNote {
    /// Takes down the turn that has just ended, with an answer or without.
    pub(crate) fn note(&mut self, messages: &[Message]) {
        let is_question = |message: &Message| matches!(message, Message::User(_));
        let Some(at) = messages.iter().rposition(is_question) else {
            return;
        };
        let Message::User(UserMessage { text, .. }) = &messages[at] else {
            return;
        };
        let mut answer = String::new();
        for message in &messages[at..] {
            if let Message::Assistant(said) = message {
                answer = cut(said.content.trim(), limits::NOTE_ANSWER_BYTES).into_owned();
                for call in &said.calls {
                    self.count(&call.name);
                }
            }
        }
        let question = one_line(text, limits::NOTE_QUESTION_BYTES);
        let again = self.turns.last_mut();
        let again = again.filter(|last| last.answer.is_empty() && last.question == question);
        if let Some(last) = again {
            // Asked again after a failure.
            last.answer = answer;
        } else if self.turns.len() < limits::NOTE_TURNS {
            self.turns.push(NoteTurn { question, answer });
        } else {
            self.more += 1;
        }
    }

    fn count(&mut self, tool: &str) {
        let tool = one_line(tool, limits::TOOL_NAME_CHARS);
        if let Some((_, count)) = self.tools.iter_mut().find(|(name, _)| *name == tool) {
            *count += 1;
        } else if self.tools.len() < limits::NAMES {
            self.tools.push((tool, 1));
        }
    }

    /// Writes the conversation of this name into the daily note of the day on
    /// which it ends; nothing where nothing was asked.
    pub(crate) fn keep(
        &self,
        folder: &Path,
        (name, model): (&str, &str),
        secrets: &Secrets,
        cancellation: &Cancellation,
    ) -> Result<()> {
        let Some(entry) = self.entry(model) else {
            return Ok(());
        };
        // Questions and answers have been shortened.
        let entry = secrets.mask_shortened(&entry);
        put(folder, &format!("conversation {name}"), entry.trim_end(), cancellation).map(drop)
    }

    fn entry(&self, model: &str) -> Option<String> {
        if self.turns.is_empty() {
            return None;
        }
        let (began, now) = (LocalTime::of(self.began), LocalTime::now());
        let start = if began.date == now.date {
            began.time
        } else {
            format!("{} {}", began.date, began.time)
        };
        let turns = counted(self.turns.len() + self.more, "turn");
        let mut entry = format!("{turns} with {model}, {start} to {}", now.time);
        for (index, (tool, count)) in self.tools.iter().enumerate() {
            let before = if index == 0 { "; tools: " } else { ", " };
            let _ = write!(entry, "{before}{tool} {count}");
        }
        entry.push('\n');
        for NoteTurn { question, answer } in &self.turns {
            let _ = write!(entry, "\n**{}**\n\n", question.replace("**", ""));
            let answer = if answer.is_empty() { "(no answer)" } else { answer };
            // As a quotation, so that its headings are none of the note's.
            for line in answer.lines() {
                let _ = writeln!(entry, "{}", format!("> {line}").trim_end());
            }
        }
        if self.more > 0 {
            let _ = writeln!(entry, "\n… and {}", counted(self.more, "more turn"));
        }
        Some(entry)
    }
}
