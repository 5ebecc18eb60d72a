//! Splits the input into messages. From a pipe, each line is a message. On a terminal, a message
//! is a paste, a line with its continuation lines, or a block between `"""`.
//!
//! On most terminals an editor reads messages (see [`crate::ui::line_editor`]). A simple one
//! delivers whole lines; lines that arrive right after a line were pasted. Input typed while a turn
//! runs is collected by [`Interrupt::collect_typing_from`].

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::path::Path;

use crate::cli::chat::commands;
use crate::error::Result;
use crate::limits;
use crate::text::{self, counted, printable};
use crate::ui::Output;
use crate::ui::history::HistoryFile;
use crate::ui::input::{self, StdinKind, StdinReader};
use crate::ui::line_editor::{EditedText, LineEditor, MessageRules};
use crate::world::cancellation::Cancellation;
use crate::world::signal::Interrupt;
use crate::world::typing::TypedInput;

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
    /// Whether the input ended after the pending lines.
    is_at_end: bool,
}

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
            is_at_end: false,
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
        if self.editor.is_some() {
            return self.next_edited_message(cancellation, output);
        }
        if !self.is_terminal() {
            let line = self.input.read_line(limits::CHAT_LINE_BYTES, cancellation)?;
            return Ok(match line {
                input::InputLine::Text(line) => ChatMessage::Line(line),
                input::InputLine::TooLong => ChatMessage::TooLong,
                input::InputLine::End => ChatMessage::End,
            });
        }
        if self.pending_lines.is_empty() {
            if self.is_at_end {
                return Ok(ChatMessage::End);
            }
            let lines = match self.read_with_prompt(PROMPT, cancellation, output)? {
                Ok(lines) => lines,
                Err(message) => return Ok(message),
            };
            if lines.is_empty() {
                return Ok(ChatMessage::End);
            }
            self.pending_lines = lines.into();
        }
        if let Some(command) = self.next_pending_command() {
            return Ok(ChatMessage::Line(command));
        }
        let lines = std::mem::take(&mut self.pending_lines).into();
        self.complete_message(lines, cancellation, output)
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

    /// Reads the next message with the editor, or returns what was typed during the turn.
    fn next_edited_message(
        &mut self,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<ChatMessage> {
        if self.pending_lines.is_empty() {
            self.interrupt.set_collecting(false);
            let edited = self.read_edited(cancellation, output);
            self.interrupt.set_collecting(true);
            let text = match edited? {
                EditedText::Text(text) => text,
                EditedText::Cancelled(was_partial) => {
                    return Ok(ChatMessage::Cancelled(was_partial));
                }
                EditedText::NotUtf8 => return Ok(ChatMessage::NotUtf8),
                EditedText::End => return Ok(ChatMessage::End),
            };
            if text.len() > limits::CHAT_LINE_BYTES {
                return Ok(ChatMessage::TooLong);
            }
            self.pending_lines = text.split('\n').map(str::to_owned).collect();
        }
        if let Some(command) = self.next_pending_command() {
            return Ok(ChatMessage::Line(command));
        }
        let lines: Vec<String> = std::mem::take(&mut self.pending_lines).into();
        match block_progress(&lines) {
            Some(InputProgress::Done(message)) => Ok(message),
            Some(InputProgress::Incomplete) => Ok(block_message(&lines)),
            None => Ok(ChatMessage::Line(lines.join("\n"))),
        }
    }

    fn read_edited(
        &mut self,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<EditedText> {
        let Some(editor) = &mut self.editor else { return Ok(EditedText::End) };
        let typed = match self.interrupt.next_typed() {
            Some(TypedInput::End) => return Ok(EditedText::End),
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
        if let EditedText::Text(text) = &read
            && !text.trim().is_empty()
        {
            // Up would show it again.
            let text = text.replace(|c: char| c.is_control() && c != '\n', " ");
            editor.remember(&output.mask(&text));
        }
        Ok(read)
    }

    /// Discards the input read so far; returns whether that was a part of a message.
    pub(super) fn discard_partial(&mut self) -> bool {
        self.input.discard_line();
        self.interrupt.discard_typed();
        self.pending_lines.clear();
        self.is_at_end = false;
        std::mem::take(&mut self.has_partial_message)
    }

    /// Stops reading the terminal, so that its next reader gets the input.
    pub(super) fn close(&self) {
        self.interrupt.set_collecting(false);
    }

    /// Reads the rest of the message that starts with these lines.
    fn complete_message(
        &mut self,
        mut lines: Vec<String>,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<ChatMessage> {
        let is_block = match block_progress(&lines) {
            Some(InputProgress::Done(message)) => return Ok(message),
            Some(InputProgress::Incomplete) => true,
            None => false,
        };
        loop {
            if !is_block {
                match lines.last_mut() {
                    Some(line) if continues_on_next_line(line) => line.pop(),
                    _ => return Ok(ChatMessage::Line(lines.join("\n"))),
                };
            }
            self.has_partial_message = true;
            let more = if self.is_at_end {
                Ok(Vec::new())
            } else {
                self.read_with_prompt(CONTINUATION_PROMPT, cancellation, output)?
            };
            let is_closed = |last: &String| is_block && last.trim_end().ends_with(FENCE);
            let (closes, message) = match more {
                Err(message) => (true, Some(message)),
                Ok(more) if more.is_empty() => (true, Some(ChatMessage::Unfinished)),
                Ok(more) => {
                    let closes = more.last().is_some_and(is_closed);
                    lines.extend(more);
                    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
                    let is_too_long = bytes > limits::CHAT_LINE_BYTES;
                    (closes, is_too_long.then_some(ChatMessage::TooLong))
                }
            };
            if message.is_some() || closes {
                self.input.discard_line();
                (self.has_partial_message, self.is_at_end) = (false, false);
                return Ok(message.unwrap_or_else(|| block_message(&lines)));
            }
        }
    }

    /// Shows the prompt and returns the lines that were typed during the turn or are typed now.
    fn read_with_prompt(
        &mut self,
        prompt: &str,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<std::result::Result<Vec<String>, ChatMessage>> {
        let was_partial = self.has_partial_message;
        let (mut is_whole, mut is_over) = (false, false);
        // Before the prompt appears, so that input typed at it is read here.
        self.interrupt.set_collecting(false);
        let is_kept = self.input.set_typed_text_kept(true);
        match self.interrupt.next_typed() {
            None => output.prompt(prompt),
            Some(TypedInput::End) => {
                output.prompt(prompt);
                is_over = true;
            }
            Some(TypedInput::Unfinished(bytes)) => {
                output.prompt(prompt);
                self.input.push(&bytes);
                self.has_partial_message = true;
            }
            Some(TypedInput::Complete(bytes)) => {
                output.prompt(&format!("{prompt}{}\n", summary_line(&bytes)));
                self.input.push(&bytes);
                is_whole = true;
            }
        }
        let lines = if is_over {
            Ok(Ok(Vec::new()))
        } else {
            self.read_pasted_lines(is_whole, cancellation)
        };
        match &lines {
            Ok(_) => self.has_partial_message = was_partial,
            Err(_) => self.has_partial_message |= self.input.discard_typed_text(),
        }
        if is_kept {
            self.input.set_typed_text_kept(false);
        }
        self.interrupt.set_collecting(true);
        lines
    }

    /// Reads the lines of one paste; none at the end of the input, a message in place of lines that
    /// are unusable. The last line ends when the user presses Enter, as a copied text mostly lacks
    /// the last line's end. `is_whole`: the lines have been collected already.
    fn read_pasted_lines(
        &mut self,
        is_whole: bool,
        cancellation: &Cancellation,
    ) -> Result<std::result::Result<Vec<String>, ChatMessage>> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        let mut pause = limits::PASTE_SECOND_LINE;
        let mut is_cut = false;
        loop {
            match self.input.read_line(limits::CHAT_LINE_BYTES, cancellation)? {
                input::InputLine::Text(line) => {
                    self.has_partial_message = true;
                    is_cut |= line.len() >= limits::TERMINAL_LINE_BYTES;
                    bytes += line.len() + 1;
                    if bytes <= limits::CHAT_LINE_BYTES {
                        lines.push(line);
                    }
                }
                input::InputLine::TooLong => bytes = usize::MAX / 2,
                input::InputLine::End => {
                    self.is_at_end = !lines.is_empty();
                    break;
                }
            }
            if is_whole && self.input.is_buffer_empty() {
                break;
            }
            if !self.input.has_more(pause, cancellation)? {
                self.input.release_line();
                if !self.input.has_more(limits::TERMINAL_LINE_READY, cancellation)? {
                    break;
                }
            }
            pause = limits::PASTE_NEXT_LINE;
        }
        Ok(match bytes {
            _ if is_cut => Err(ChatMessage::Cut),
            0..=limits::CHAT_LINE_BYTES => Ok(lines),
            _ => Err(ChatMessage::TooLong),
        })
    }
}

/// What the editor knows about messages.
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
