//! What one message is. From a pipe it is a line. On a terminal it is what was
//! pasted at once, a line with those it goes on in, or a block between `"""`.
//!
//! The terminal edits and hands out whole lines, and what comes right behind a
//! line was pasted, not typed. What is typed while a turn runs is collected
//! meanwhile ([`Interrupt::collect_from`]), each message as it came.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use crate::cli::chat::commands;
use crate::limits;
use crate::text::{self, counted, printable};
use crate::world::cancellation::Cancellation;
use crate::world::input::{self, StdinError, StdinKind, StdinReader};
use crate::world::output::Output;
use crate::world::signal::Interrupt;
use crate::world::typing::TypedInput;

const PROMPT: &str = "> ";
/// Stands where a message goes on.
const MORE: &str = ". ";
/// Opens and closes a block.
const FENCE: &str = "\"\"\"";

/// What was said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatMessage {
    /// A message, or a command.
    Line(String),
    /// A message whatever it begins with.
    Block(String),
    /// More than [`limits::CHAT_LINE_BYTES`], and forgotten.
    TooLong,
    /// The terminal has cut a line, and the message is forgotten.
    Cut,
    /// Typing ended in the middle of a message, which is forgotten.
    Unfinished,
    /// Nothing more is said.
    End,
}

/// Where messages come from.
#[derive(Debug)]
pub(super) struct ChatInput {
    input: StdinReader,
    interrupt: Interrupt,
    /// Lines that were read with others and are not said yet.
    ahead: VecDeque<String>,
    /// A message has been begun, and goes on.
    is_begun: bool,
    /// The end came with lines in front of it.
    at_end: bool,
}

/// How far the lines of a message have come.
enum InputProgress {
    Done(ChatMessage),
    GoesOn,
}

impl ChatInput {
    /// Nothing has been read yet.
    pub(super) fn new(input: StdinReader, interrupt: Interrupt) -> ChatInput {
        if input.source() == StdinKind::Terminal {
            interrupt.collect_from(input.as_fd());
        }
        ChatInput { input, interrupt, ahead: VecDeque::new(), is_begun: false, at_end: false }
    }

    /// Whether a person types.
    pub(super) fn is_terminal(&self) -> bool {
        self.input.source() == StdinKind::Terminal
    }

    /// The next message.
    pub(super) fn next(
        &mut self,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<ChatMessage, StdinError> {
        if !self.is_terminal() {
            let line = self.input.read_line(limits::CHAT_LINE_BYTES, cancellation)?;
            return Ok(match line {
                input::InputLine::Text(line) => ChatMessage::Line(line),
                input::InputLine::TooLong => ChatMessage::TooLong,
                input::InputLine::End => ChatMessage::End,
            });
        }
        if self.ahead.is_empty() {
            if self.at_end {
                return Ok(ChatMessage::End);
            }
            let lines = match self.prompted(PROMPT, cancellation, output)? {
                Ok(lines) => lines,
                Err(said) => return Ok(said),
            };
            if lines.is_empty() {
                return Ok(ChatMessage::End);
            }
            self.ahead = lines.into();
        }
        while self.ahead.len() > 1 {
            match self.ahead.pop_front() {
                Some(line) if commands::is_command(&line) => return Ok(ChatMessage::Line(line)),
                Some(line) if line.trim().is_empty() => {}
                Some(line) => {
                    self.ahead.push_front(line);
                    break;
                }
                None => break,
            }
        }
        let lines = std::mem::take(&mut self.ahead).into();
        self.message(lines, cancellation, output)
    }

    /// Forgets what has been begun; returns whether that was a message of
    /// several lines.
    pub(super) fn forget(&mut self) -> bool {
        self.input.discard_line();
        self.interrupt.forget_typed();
        self.ahead.clear();
        self.at_end = false;
        std::mem::take(&mut self.is_begun)
    }

    /// Stops reading what is typed: the next reader of the terminal gets it.
    pub(super) fn close(&self) {
        self.interrupt.collect(false);
    }

    /// The message that begins with these lines.
    fn message(
        &mut self,
        mut lines: Vec<String>,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<ChatMessage, StdinError> {
        let is_block = match opened(&lines) {
            Some(InputProgress::Done(said)) => return Ok(said),
            Some(InputProgress::GoesOn) => true,
            None => false,
        };
        loop {
            if !is_block {
                match lines.last_mut() {
                    Some(line) if goes_on(line) => line.pop(),
                    _ => return Ok(ChatMessage::Line(lines.join("\n"))),
                };
            }
            self.is_begun = true;
            let more = if self.at_end {
                Ok(Vec::new())
            } else {
                self.prompted(MORE, cancellation, output)?
            };
            let is_closed = |last: &String| is_block && last.trim_end().ends_with(FENCE);
            let (closes, said) = match more {
                Err(said) => (true, Some(said)),
                Ok(more) if more.is_empty() => (true, Some(ChatMessage::Unfinished)),
                Ok(more) => {
                    let closes = more.last().is_some_and(is_closed);
                    lines.extend(more);
                    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
                    let is_too_long = bytes > limits::CHAT_LINE_BYTES;
                    (closes, is_too_long.then_some(ChatMessage::TooLong))
                }
            };
            if said.is_some() || closes {
                self.input.discard_line();
                (self.is_begun, self.at_end) = (false, false);
                return Ok(said.unwrap_or_else(|| block(&lines)));
            }
        }
    }

    /// What was typed meanwhile, behind the prompt, or what is typed now.
    fn prompted(
        &mut self,
        prompt: &str,
        cancellation: &Cancellation,
        output: &mut Output,
    ) -> Result<Result<Vec<String>, ChatMessage>, StdinError> {
        let was_begun = self.is_begun;
        let (mut is_whole, mut is_over) = (false, false);
        // Before the prompt is there: what is typed at it counts.
        self.interrupt.collect(false);
        let is_kept = self.input.keep_typing(true);
        match self.interrupt.typed() {
            None => output.prompt(prompt),
            Some(TypedInput::End) => {
                output.prompt(prompt);
                is_over = true;
            }
            Some(TypedInput::Begun(bytes)) => {
                output.prompt(prompt);
                self.input.push(&bytes);
                self.is_begun = true;
            }
            Some(TypedInput::Whole(bytes)) => {
                output.prompt(&format!("{prompt}{}\n", shown(&bytes)));
                self.input.push(&bytes);
                is_whole = true;
            }
        }
        let lines = if is_over { Ok(Ok(Vec::new())) } else { self.pasted(is_whole, cancellation) };
        match &lines {
            Ok(_) => self.is_begun = was_begun,
            Err(_) => self.is_begun |= self.input.forget_typing(),
        }
        if is_kept {
            self.input.keep_typing(false);
        }
        self.interrupt.collect(true);
        lines
    }

    /// The lines that come at once: none at the end. In their place what is
    /// wrong with them. The last one goes on until Enter is pressed, as a text is
    /// mostly copied without its last line's end. `is_whole`: they were read.
    fn pasted(
        &mut self,
        is_whole: bool,
        cancellation: &Cancellation,
    ) -> Result<Result<Vec<String>, ChatMessage>, StdinError> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        let mut pause = limits::PASTE_BEGINS;
        let mut is_cut = false;
        loop {
            match self.input.read_line(limits::CHAT_LINE_BYTES, cancellation)? {
                input::InputLine::Text(line) => {
                    self.is_begun = true;
                    is_cut |= line.len() >= limits::TERMINAL_LINE_BYTES;
                    bytes += line.len() + 1;
                    if bytes <= limits::CHAT_LINE_BYTES {
                        lines.push(line);
                    }
                }
                input::InputLine::TooLong => bytes = usize::MAX / 2,
                input::InputLine::End => {
                    self.at_end = !lines.is_empty();
                    break;
                }
            }
            if is_whole && self.input.is_drained() {
                break;
            }
            if !self.input.has_more(pause, cancellation)? {
                self.input.hand_over_line();
                if !self.input.has_more(limits::HANDED_OVER, cancellation)? {
                    break;
                }
            }
            pause = limits::PASTE_GOES_ON;
        }
        Ok(match bytes {
            _ if is_cut => Err(ChatMessage::Cut),
            0..=limits::CHAT_LINE_BYTES => Ok(lines),
            _ => Err(ChatMessage::TooLong),
        })
    }
}

/// Lines that were typed while something else was shown, in one for a person.
fn shown(bytes: &[u8]) -> String {
    let said = String::from_utf8_lossy(bytes);
    let mut lines = said.trim().lines();
    let first = text::one_line(lines.next().unwrap_or_default(), limits::SUMMARY_CHARS);
    let first = printable(&first);
    match lines.count() {
        0 => first.into_owned(),
        more => format!("{first} … {}", counted(more, "more line")),
    }
}

/// Whether the line goes on in the next one: it ends with a backslash, and not
/// with two.
fn goes_on(line: &str) -> bool {
    line.ends_with('\\') && !line.ends_with("\\\\")
}

/// What becomes of lines that begin with a fence; `None` if they do not. A
/// paste that closes it before its end only looks like a block: it is a
/// program's text.
fn opened(lines: &[String]) -> Option<InputProgress> {
    let first = lines.first()?.trim_start().strip_prefix(FENCE)?;
    let mut rest = std::iter::once(first).chain(lines[1..].iter().map(String::as_str));
    Some(match rest.position(|line| line.trim_end().ends_with(FENCE)) {
        None => InputProgress::GoesOn,
        Some(last) if last + 1 == lines.len() => InputProgress::Done(block(lines)),
        Some(_) => InputProgress::Done(ChatMessage::Block(lines.join("\n"))),
    })
}

/// What stands between the fences.
fn block(lines: &[String]) -> ChatMessage {
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
    fn a_block_stands_between_fences() {
        let said = |text: &str| {
            let lines: Vec<String> = text.split('\n').map(String::from).collect();
            match opened(&lines) {
                None => "no block".into(),
                Some(InputProgress::GoesOn) => "goes on".into(),
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
            assert_eq!(said(typed), expected, "{typed}");
        }
    }

    #[test]
    fn one_backslash_goes_on() {
        let lines = [("a\\", true), ("\\", true), ("a\\\\", false), ("a\\ ", false)];
        for (line, expected) in lines {
            assert_eq!(goes_on(line), expected, "{line}");
        }
    }
}
