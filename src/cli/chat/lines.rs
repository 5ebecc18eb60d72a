//! Splits the input into messages. From a pipe, each line is a message. On a terminal, a message
//! is a paste, a line with its continuation lines, or a block between `"""`.
//!
//! On most terminals an editor reads messages (see [`crate::ui::line_editor`]). Those of a simple
//! one, and input typed while a turn runs, are read by [`host::typing`].

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::path::Path;

use crate::cli::chat::commands;
use crate::ui::Output;
use crate::ui::history::HistoryFile;
use crate::ui::input::{self, StdinKind, StdinReader};
use crate::ui::line_editor::{EditedText, LineEditor, MessageRules};
use base::error::Result;
use base::limits;
use base::text::{self, counted, printable};
use host::cancellation::Cancellation;
use host::line_editing;
use host::signal::Interrupt;
use host::typing::TypedInput;

const PROMPT: &str = "> ";
/// The prompt for the next line of a message.
const CONTINUATION_PROMPT: &str = ". ";
/// Opens and closes a block.
const FENCE: &str = "\"\"\"";

/// One message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatMessage {
    /// A question or a command.
    Line(String),
    /// A question, even if it starts like a command.
    Block(String),
    /// More than [`limits::CHAT_LINE_BYTES`]; discarded.
    TooLong,
    /// The terminal cut a line; the message is discarded.
    Cut,
    /// The input ended in the middle of a message, which is discarded.
    Unfinished,
    /// Ctrl+C in the editor; whether text was discarded.
    Cancelled(bool),
    /// Bytes that are not UTF-8, which are discarded.
    NotUtf8,
    /// End of the input.
    End,
}

/// The source of messages.
pub(super) struct ChatInput {
    input: StdinReader,
    /// The editor of a terminal that can do more than lines.
    editor: Option<LineEditor<ChatRules>>,
    interrupt: Interrupt,
    /// Lines that were read and not yet returned.
    pending_lines: VecDeque<String>,
    /// Whether an incomplete message has been read.
    has_partial_message: bool,
}

/// Typed text, or a message in place of text that is unusable.
type TextOrMessage = std::result::Result<String, ChatMessage>;

/// Whether a message is complete.
enum InputProgress {
    Done(ChatMessage),
    Incomplete,
}

impl ChatInput {
    /// Starts to collect input, if it is a terminal.
    pub(super) fn new(input: StdinReader, interrupt: Interrupt) -> ChatInput {
        if input.kind() == StdinKind::Terminal {
            interrupt.collect_typing_from(input.as_fd());
        }
        ChatInput {
            input,
            editor: None,
            interrupt,
            pending_lines: VecDeque::new(),
            has_partial_message: false,
        }
    }

    /// Whether the input is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.input.kind() == StdinKind::Terminal
    }

    /// Edits messages from now on, if the terminal can do that. `names`: what can follow a slash.
    pub(super) fn edit(&mut self, history: Option<&Path>, names: Vec<String>, output: &mut Output) {
        self.editor = LineEditor::new(ChatRules { names });
        if let (Some(editor), Some(path)) = (&mut self.editor, history) {
            match HistoryFile::open(path) {
                Ok((file, messages)) => editor.use_history(file, messages),
                Err(reason) => output.warn(&format!("there is no history: {reason}")),
            }
        }
    }

    /// Whether messages are edited.
    pub(super) fn is_edited(&self) -> bool {
        self.editor.is_some()
    }

    /// Reads the next message.
    pub(super) fn next_message(
        &mut self,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<ChatMessage> {
        if !self.is_terminal() {
            let line = self.input.read_line(limits::CHAT_LINE_BYTES, cancellation)?;
            return Ok(match line {
                input::InputLine::Text(line) => ChatMessage::Line(line),
                input::InputLine::TooLong => ChatMessage::TooLong,
                input::InputLine::End => ChatMessage::End,
            });
        }
        if self.pending_lines.is_empty() {
            match self.read_text(PROMPT, cancellation, output)? {
                Ok(text) => self.pending_lines = text.split('\n').map(str::to_owned).collect(),
                Err(message) => return Ok(message),
            }
        }
        if let Some(command) = self.next_pending_command() {
            return Ok(ChatMessage::Line(command));
        }
        let lines: Vec<String> = std::mem::take(&mut self.pending_lines).into();
        match block_progress(&lines) {
            Some(InputProgress::Done(message)) => Ok(message),
            Some(InputProgress::Incomplete) if self.is_edited() => Ok(block_message(&lines)),
            None if self.is_edited() => Ok(ChatMessage::Line(lines.join("\n"))),
            progress => self.complete_message(lines, progress.is_some(), cancellation, output),
        }
    }

    /// Returns the next of the commands before the last line that was read. Blank lines between
    /// them are removed.
    fn next_pending_command(&mut self) -> Option<String> {
        while self.pending_lines.len() > 1 {
            match self.pending_lines.pop_front() {
                Some(line) if commands::is_command(&line) => return Some(line),
                Some(line) if line.trim().is_empty() => {}
                Some(line) => {
                    self.pending_lines.push_front(line);
                    break;
                }
                None => break,
            }
        }
        None
    }

    /// Shows the prompt and returns the lines that were typed during the turn or are typed now.
    fn read_text(
        &mut self,
        prompt: &str,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<TextOrMessage> {
        // Before the prompt appears, so that input typed at it is read here.
        self.interrupt.set_collecting(false);
        let read = match self.editor {
            Some(_) => self.read_edited(cancellation, output),
            None => self.read_unedited(prompt, cancellation, output),
        };
        self.interrupt.set_collecting(true);
        Ok(read?.and_then(|text| match text.len() {
            0..=limits::CHAT_LINE_BYTES => Ok(text),
            _ => Err(ChatMessage::TooLong),
        }))
    }

    fn read_edited(
        &mut self,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<TextOrMessage> {
        let Some(editor) = &mut self.editor else { return Ok(Err(ChatMessage::End)) };
        let typed = match self.interrupt.next_typed() {
            Some(TypedInput::End) => return Ok(Err(ChatMessage::End)),
            Some(TypedInput::Complete(bytes) | TypedInput::Unfinished(bytes)) => {
                String::from_utf8_lossy(&bytes).into_owned()
            }
            None => String::new(),
        };
        let read = match typed.strip_suffix('\n') {
            Some(text) if !message_continues(text) => {
                output.prompt(&format!("{PROMPT}{}\n", summary_line(typed.as_bytes())));
                EditedText::Text(text.to_string())
            }
            _ => {
                output.prompt("");
                editor.read(PROMPT, &typed, cancellation)?
            }
        };
        Ok(match read {
            EditedText::Text(text) => {
                if !text.trim().is_empty() {
                    // Up would show it again.
                    let text = text.replace(|c: char| c.is_control() && c != '\n', " ");
                    editor.remember(&output.mask(&text));
                }
                Ok(text)
            }
            EditedText::Cancelled(was_partial) => Err(ChatMessage::Cancelled(was_partial)),
            EditedText::NotUtf8 => Err(ChatMessage::NotUtf8),
            EditedText::End => Err(ChatMessage::End),
        })
    }

    /// Discards the input read so far; returns whether that was a part of a message.
    pub(super) fn discard_partial(&mut self) -> bool {
        self.pending_lines.clear();
        self.interrupt.discard_typed() | std::mem::take(&mut self.has_partial_message)
    }

    /// Stops reading the terminal, so that its next reader gets the input.
    pub(super) fn close(&self) {
        self.interrupt.set_collecting(false);
    }

    /// Reads the rest of the message that starts with these lines.
    fn complete_message(
        &mut self,
        mut lines: Vec<String>,
        is_block: bool,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<ChatMessage> {
        loop {
            if !is_block {
                match lines.last_mut() {
                    Some(line) if continues_on_next_line(line) => line.pop(),
                    _ => return Ok(ChatMessage::Line(lines.join("\n"))),
                };
            }
            self.has_partial_message = true;
            let more = self.read_text(CONTINUATION_PROMPT, cancellation, output)?;
            let message = match more {
                Err(ChatMessage::End) => ChatMessage::Unfinished,
                Err(message) => message,
                Ok(more) => {
                    let closes = |last: &String| last.trim_end().ends_with(FENCE);
                    lines.extend(more.split('\n').map(str::to_owned));
                    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
                    if bytes > limits::CHAT_LINE_BYTES {
                        ChatMessage::TooLong
                    } else if is_block && lines.last().is_some_and(closes) {
                        block_message(&lines)
                    } else {
                        continue;
                    }
                }
            };
            self.has_partial_message = false;
            return Ok(message);
        }
    }

    /// Shows the prompt and returns lines that the terminal edits.
    fn read_unedited(
        &mut self,
        prompt: &str,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<TextOrMessage> {
        let was_partial = self.has_partial_message;
        let is_kept = line_editing::set_typed_text_kept(self.input.as_fd(), true);
        let typed = self.interrupt.next_typed();
        match &typed {
            Some(TypedInput::Complete(bytes)) => {
                output.prompt(&format!("{prompt}{}\n", summary_line(bytes)));
            }
            _ => output.prompt(prompt),
        }
        let text = self.collect_text(typed, cancellation);
        match &text {
            Ok(_) => self.has_partial_message = was_partial,
            Err(_) => {
                self.has_partial_message |= line_editing::discard_typed_text(self.input.as_fd());
            }
        }
        if is_kept {
            line_editing::set_typed_text_kept(self.input.as_fd(), false);
        }
        let is_long = |line: &str| line.len() >= limits::TERMINAL_LINE_BYTES;
        Ok(match text? {
            None => Err(ChatMessage::End),
            Some(text) if text.split('\n').any(is_long) => Err(ChatMessage::Cut),
            Some(text) => Ok(text),
        })
    }

    /// Reads until the user presses Enter after these lines: a copied text mostly lacks the last
    /// line's end. `None`: the input has ended.
    fn collect_text(
        &mut self,
        mut typed: Option<TypedInput>,
        cancellation: &Cancellation,
    ) -> Result<Option<String>> {
        let mut text = Vec::new();
        loop {
            match typed.take().or_else(|| self.interrupt.next_typed()) {
                Some(TypedInput::Complete(bytes)) => {
                    text.extend(bytes);
                    break;
                }
                Some(TypedInput::Unfinished(bytes)) => {
                    self.has_partial_message = true;
                    text.extend(bytes);
                    continue;
                }
                Some(TypedInput::End) if text.is_empty() => return Ok(None),
                Some(TypedInput::End) => break,
                None => {}
            }
            self.input.wait(cancellation)?;
            let read = self.interrupt.read_typed(|| cancellation.check().is_err());
            read.map_err(|error| input::unreadable(&error))?;
            // What was read up to Ctrl+C is no message.
            cancellation.check()?;
        }
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    }
}

/// Rules of messages in a conversation.
struct ChatRules {
    /// Commands and skills, with their slash.
    names: Vec<String>,
}

impl MessageRules for ChatRules {
    fn continues(&self, text: &str) -> bool {
        message_continues(text)
    }

    fn completions(&self, text: &str) -> Vec<String> {
        let is_start = |name: &&String| text.starts_with('/') && name.starts_with(text);
        self.names.iter().filter(is_start).map(|name| format!("{name} ")).collect()
    }

    fn completes_files(&self, text: &str) -> bool {
        let word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
        text.starts_with("/attach ") || (word.len() < text.len() && word.contains('/'))
    }
}

/// Whether a message goes on after the end of its last line.
fn message_continues(text: &str) -> bool {
    let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    match block_progress(&lines) {
        Some(progress) => matches!(progress, InputProgress::Incomplete),
        None => continues_on_next_line(text),
    }
}

/// One line that shows what was typed during a turn.
fn summary_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.trim().lines();
    let first = text::one_line(lines.next().unwrap_or_default(), limits::SUMMARY_CHARS);
    let first = printable(&first);
    match lines.count() {
        0 => first.into_owned(),
        more => format!("{first} … {}", counted(more, "more line")),
    }
}

/// Whether the message continues on the next line: the line ends with exactly one backslash.
fn continues_on_next_line(line: &str) -> bool {
    line.ends_with('\\') && !line.ends_with("\\\\")
}

/// The progress of a block; `None` if the lines do not start with a fence. A paste that closes
/// the fence before its end is not a block, but program text.
fn block_progress(lines: &[String]) -> Option<InputProgress> {
    let first = lines.first()?.trim_start().strip_prefix(FENCE)?;
    let mut rest = std::iter::once(first).chain(lines[1..].iter().map(String::as_str));
    Some(match rest.position(|line| line.trim_end().ends_with(FENCE)) {
        None => InputProgress::Incomplete,
        Some(last) if last + 1 == lines.len() => InputProgress::Done(block_message(lines)),
        Some(_) => InputProgress::Done(ChatMessage::Block(lines.join("\n"))),
    })
}

/// The text between the fences.
fn block_message(lines: &[String]) -> ChatMessage {
    let text = lines.join("\n");
    let text = text.trim();
    let text = text.strip_prefix(FENCE).unwrap_or(text);
    let text = text.strip_suffix(FENCE).unwrap_or(text);
    let text = text.strip_prefix('\n').unwrap_or(text);
    ChatMessage::Block(text.strip_suffix('\n').unwrap_or(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_delimited_by_fences() {
        let outcome = |text: &str| {
            let lines: Vec<String> = text.split('\n').map(String::from).collect();
            match block_progress(&lines) {
                None => "no block".into(),
                Some(InputProgress::Incomplete) => "goes on".into(),
                Some(InputProgress::Done(ChatMessage::Block(text))) => text,
                Some(InputProgress::Done(other)) => format!("{other:?}"),
            }
        };
        for (typed, expected) in [
            ("a\"\"\"", "no block"),
            ("\"\"", "no block"),
            ("\"\"\"", "goes on"),
            ("\"\"\"a\nb", "goes on"),
            ("\"\"\"a\"\"\"", "a"),
            ("  \"\"\" a \"\"\" ", " a "),
            ("\"\"\"\"\"\"", ""),
            ("\"\"\"\n  a\n\nb\n\"\"\"", "  a\n\nb"),
            ("\"\"\"a\nb\"\"\"", "a\nb"),
            // Python, not a block.
            ("\"\"\"Doc.\"\"\"\nx = 1", "\"\"\"Doc.\"\"\"\nx = 1"),
        ] {
            assert_eq!(outcome(typed), expected, "{typed}");
        }
    }

    #[test]
    fn one_backslash_continues_the_line() {
        let lines = [("a\\", true), ("\\", true), ("a\\\\", false), ("a\\ ", false)];
        for (line, expected) in lines {
            assert_eq!(continues_on_next_line(line), expected, "{line}");
        }
    }
}
