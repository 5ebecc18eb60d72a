//! `--confirm`: shows what a tool is about to do to the user, and asks for consent.
//!
//! Every row of a shown text is prefixed with a mark, including the rest of a wrapped line, so that
//! no part of it can look like the question or hide at the end of a line.

use std::cell::Cell;
use std::io;

use crate::tools::ToolContext;
use base::limits;
use base::text;
use host::cancellation::{Cancellation, StopReason};
use host::terminal::Terminal;

/// The consent that the user has given so far.
#[derive(Debug, Default)]
pub struct Consent {
    /// Whether everything in this run is allowed.
    is_for_all: Cell<bool>,
}

/// Something that needs the user's consent.
pub(super) struct ConsentRequest {
    /// Its kind.
    pub kind: ConsentKind,
    /// The action as a sentence: "a script wants to run in the skill …".
    pub head: String,
    /// The texts to show.
    pub sections: Vec<ConsentSection>,
}

/// Kind of an action that needs consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConsentKind {
    Script,
    Command,
    File,
}

/// A text that is shown below its title.
pub(super) struct ConsentSection {
    pub title: String,
    pub text: String,
    /// Instead of title and text, until the user asks for all of it; empty: nothing.
    pub short: Option<String>,
}

impl ConsentSection {
    /// A section that is shown at once.
    pub(super) fn new(title: &str, text: impl Into<String>) -> ConsentSection {
        ConsentSection { title: title.into(), text: text.into(), short: None }
    }
}

impl ConsentKind {
    /// Verb, participle and noun for messages.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            ConsentKind::Script => ("run", "run", "script"),
            ConsentKind::Command => ("run", "run", "command"),
            ConsentKind::File => ("write", "written", "file"),
        }
    }
}

/// Record of consent to this and everything later.
const ALL: &str = "all";
const MARK: &str = "  | ";
const CHOICES: &str = "y: yes, n: no, s: show all of it, a: yes to all of this run > ";
const UNKNOWN: &str = "answer with y, n, s or a\n";

impl ConsentRequest {
    /// Asks the user if consent is required; returns the answer for the log. The error is for the
    /// model.
    pub(super) fn obtain(&self, context: &ToolContext<'_>) -> Result<Option<&'static str>, String> {
        let Some(consent) = &context.consent else {
            return Ok(None);
        };
        if consent.is_for_all.get() {
            return Ok(Some(ALL));
        }
        let (verb, done, noun) = self.kind.words();
        let answer =
            Terminal::open().and_then(|mut terminal| self.prompt_user(&mut terminal, context));
        match answer {
            Ok(ConsentAnswer::Once) => Ok(Some("once")),
            Ok(ConsentAnswer::Always) => {
                consent.is_for_all.set(true);
                Ok(Some(ALL))
            }
            Ok(ConsentAnswer::No) => Err(format!(
                "the user refused to {verb} this {noun}: do not try it again, nor the same in another \
                 way; go on without it, or ask the user what to do instead"
            )),
            Err(error) => Err(match StopReason::from_io_error(&error) {
                Some(StopReason::Interrupted(_)) => "interrupted by the user".into(),
                Some(stop) => stop.to_string(),
                None => format!(
                    "{noun}s are {done} only when the user allows it on a terminal (--confirm), but \
                     there is no terminal: this one was not {done}; answer without it"
                ),
            }),
        }
    }

    fn prompt_user(
        &self,
        terminal: &mut Terminal,
        context: &ToolContext<'_>,
    ) -> io::Result<ConsentAnswer> {
        let cancellation: &Cancellation = context.cancellation;
        let (height, width) = terminal.size();
        let rows = |is_whole: bool| {
            let rows = self.sections.iter().map(|section| {
                let mask = |text| context.secrets.mask(text);
                match section.short.as_deref().filter(|_| !is_whole) {
                    Some("") => Vec::new(),
                    Some(short) => rows(&mask(short), "", width),
                    None => rows(&mask(&section.title), &mask(&section.text), width),
                }
            });
            rows.collect::<Vec<_>>().concat()
        };
        let is_confined = context.scripts.is_some_and(|scripts| scripts.sandbox.is_some())
            && self.kind != ConsentKind::File;
        let place = if is_confined { ", in a sandbox" } else { "" };
        let head = format!("skills-runner: {}{place}", self.head);
        let head = text::one_line(&context.secrets.mask(&head), limits::LINE_BYTES);
        terminal.write(&format!("{}\n", text::printable(&head)), cancellation)?;
        // Leaves room for the head, the question, and what is above them.
        let most = height.saturating_sub(6).max(6);
        let first = rows(false);
        terminal.write(&first[..first.len().min(most)].concat(), cancellation)?;
        if let Some(left @ 1..) = first.len().checked_sub(most) {
            terminal.write(&format!("… {}\n", text::counted(left, "more line")), cancellation)?;
        }
        let question = format!("{} it? {CHOICES}", self.kind.words().0);
        let mut tries = limits::CONFIRM_TRIES;
        // The end of input counts as no.
        while let Some(answer) =
            terminal.read_reply(&question, cancellation, context.event_source)?
        {
            match answer.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(ConsentAnswer::Once),
                "a" | "all" => return Ok(ConsentAnswer::Always),
                "n" | "no" => return Ok(ConsentAnswer::No),
                "s" | "show" => terminal.write(&rows(true).concat(), cancellation)?,
                _ if tries > 1 => {
                    tries -= 1;
                    terminal.write(UNKNOWN, cancellation)?;
                }
                _ => break,
            }
        }
        Ok(ConsentAnswer::No)
    }
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConsentAnswer {
    Once,
    Always,
    No,
}

/// Splits a text into rows of a terminal of this width, below its title.
fn rows(title: &str, text: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(MARK.len() + 1).max(8);
    let title = text::one_line(&text::printable(title), limits::SUMMARY_CHARS);
    let mut rows = vec![format!("{title}\n")];
    for line in text::printable(text).lines() {
        let mut row = String::from(MARK);
        let mut used = 0;
        for c in line.replace('\t', "    ").chars() {
            // Assumes two columns for every other character.
            let wide = if c.is_ascii() { 1 } else { 2 };
            if used + wide > room {
                rows.push(row + "\n");
                row = String::from(MARK);
                used = 0;
            }
            row.push(c);
            used += wide;
        }
        rows.push(row + "\n");
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_a_script_starts_with_the_mark() {
        let text = "abcdefghijkl\n\tx\r\n\x1b[2Jä日本語日本語\n";
        assert_eq!(
            rows("script a\nb", text, 13),
            [
                "script a b\n",
                "  | abcdefgh\n",
                "  | ijkl\n",
                "  |     x\n",
                "  | \u{fffd}[2Jä\n",
                "  | 日本語日\n",
                "  | 本語\n",
            ]
        );
    }
}
