//! `--confirm`: shows a script to the user, and asks for consent before it runs.
//!
//! Every row of the script is prefixed with a mark, including the rest of a wrapped line, so that
//! no part of it can look like the question or hide at the end of a line.

use std::cell::Cell;
use std::io;
use std::path::Path;

use super::{RunPythonArguments, ScriptSource};
use crate::limits;
use crate::skills::Skill;
use crate::skills::python::Interpreter;
use crate::text::{self, shell_quoted};
use crate::tools::ToolContext;
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::terminal::Terminal;

/// The consent that the user has given so far.
#[derive(Debug, Default)]
pub struct Consent {
    /// Whether all scripts of this run are allowed.
    is_for_all: Cell<bool>,
}

/// A script that needs the user's consent.
pub(super) struct ConsentRequest<'a> {
    pub skill: &'a Skill,
    pub source: &'a ScriptSource<'a>,
    pub python: &'a Interpreter,
    pub arguments: &'a RunPythonArguments,
}

/// Record of consent to this script and all later ones.
const ALL: &str = "all";
const MARK: &str = "  | ";
const QUESTION: &str = "run it? y: yes, n: no, s: show all of it, a: yes to all of this run > ";
const UNKNOWN: &str = "answer with y, n, s or a\n";

const REFUSED: &str = "the user refused to run this script: do not try it again, nor the same in another way; \
                       go on without it, or ask the user what to do instead";
const UNASKED: &str = "scripts run only when the user allows it on a terminal (--confirm), but there is no terminal: \
                       the script was not run; answer without running any";

impl ConsentRequest<'_> {
    /// Asks the user if consent is required; returns the answer for the log. The error is for the
    /// model.
    pub(super) fn obtain(&self, context: &ToolContext<'_>) -> Result<Option<&'static str>, String> {
        let Some(consent) = &context.consent else {
            return Ok(None);
        };
        if consent.is_for_all.get() {
            return Ok(Some(ALL));
        }
        let answer =
            Terminal::open().and_then(|mut terminal| self.prompt_user(&mut terminal, context));
        match answer {
            Ok(ConsentAnswer::Once) => Ok(Some("once")),
            Ok(ConsentAnswer::Always) => {
                consent.is_for_all.set(true);
                Ok(Some(ALL))
            }
            Ok(ConsentAnswer::No) => Err(REFUSED.into()),
            Err(error) => Err(match StopReason::from_io_error(&error) {
                Some(StopReason::Interrupted(_)) => "interrupted by the user".into(),
                Some(stop) => stop.to_string(),
                None => UNASKED.into(),
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
        let rows = |is_whole| {
            let sections = self.sections(is_whole);
            let rows = sections.map(|(title, text)| {
                let mask = |text| context.secrets.mask(text);
                rows(&mask(&title), &mask(&text), width)
            });
            rows.collect::<Vec<_>>().concat()
        };
        let is_confined = context.scripts.is_some_and(|scripts| scripts.sandbox.is_some());
        let head = format!(
            "skills-runner: a script wants to run in the skill `{}`, by {}{}",
            self.skill.name,
            self.python.program.display(),
            if is_confined { ", in a sandbox" } else { "" }
        );
        let head = text::one_line(&context.secrets.mask(&head), limits::LINE_BYTES);
        terminal.write(&format!("{}\n", text::printable(&head)), cancellation)?;
        // Leaves room for the head, the question, and what is above them.
        let most = height.saturating_sub(6).max(6);
        let first = rows(false);
        terminal.write(&first[..first.len().min(most)].concat(), cancellation)?;
        if let Some(left @ 1..) = first.len().checked_sub(most) {
            terminal.write(&format!("… {}\n", text::counted(left, "more line")), cancellation)?;
        }
        let mut tries = limits::CONFIRM_TRIES;
        // The end of input counts as no.
        while let Some(answer) =
            terminal.read_reply(QUESTION, cancellation, context.event_source)?
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

    /// Titles and texts to show; with `is_whole`, also the script file and the input.
    fn sections(&self, is_whole: bool) -> impl Iterator<Item = (String, String)> {
        let quoted_words = self.arguments.args.iter().map(|word| shell_quoted(Path::new(word)));
        let words = quoted_words.collect::<Vec<_>>().join(" ");
        let input = self.arguments.stdin.as_str();
        let (title, shown) = if is_whole {
            ("input".into(), input)
        } else {
            (format!("input: {}", text::counted(input.len(), "byte")), "")
        };
        let input = (!input.is_empty()).then(|| (title, shown.to_string()));
        let script = String::from_utf8_lossy(&self.source.bytes).into_owned();
        let [command, script] = match &self.source.path {
            None => [
                (!words.is_empty()).then(|| ("arguments".to_string(), words)),
                Some(("script".to_string(), script)),
            ],
            Some(path) => [
                Some(("command".to_string(), format!("{} {words}", shell_quoted(Path::new(path))))),
                is_whole.then(|| (format!("script {path}"), script)),
            ],
        };
        [command, input, script].into_iter().flatten()
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
