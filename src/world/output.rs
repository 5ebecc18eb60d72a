//! The only place that prints.
//!
//! Standard output carries the answer and nothing else: streamed to a
//! terminal, whole to anything else. Standard error carries the rest, one
//! line a thing. Nothing from a model or a tool reaches a terminal raw.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use crate::error::{Error, Kind, Result};
use crate::event::Event;
use crate::limits;
use crate::secret::Secrets;
use crate::text::{one_line, printable};
use crate::tool::milliseconds;

/// How much is said on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors and warnings.
    Quiet,
    /// Tools as well.
    #[default]
    Normal,
    /// Requests, retries, timings and thoughts as well.
    Verbose,
}

/// Both output streams and how to treat them.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about two streams"
)]
pub struct Output {
    verbosity: Verbosity,
    /// Text goes out as it comes: standard output is a terminal.
    streams: bool,
    color: bool,
    /// The terminal's cursor stands behind text, not at the beginning of a line.
    is_line_open: bool,
    is_thinking: bool,
    /// The end of what has streamed, as long as the next piece may change it.
    held: String,
    failure: Option<io::Error>,
    /// Masked in everything that is printed: servers quote what they were sent.
    secrets: Secrets,
}

const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

impl Output {
    /// `color_wanted` is false with `NO_COLOR` or on a dumb terminal.
    pub fn new(verbosity: Verbosity, color_wanted: bool) -> Output {
        Output {
            verbosity,
            streams: io::stdout().is_terminal(),
            color: color_wanted && io::stderr().is_terminal(),
            is_line_open: false,
            is_thinking: false,
            held: String::new(),
            failure: None,
            secrets: Secrets::default(),
        }
    }

    /// From now on these are never printed.
    pub fn hide(&mut self, secrets: Secrets) {
        self.secrets = secrets;
    }

    /// Shows what happens.
    pub fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Text(text) if self.streams => self.stream(text),
            Event::Reasoning(text) if self.verbosity == Verbosity::Verbose => self.think(text),
            Event::MessageEnd { .. } => self.close_line(),
            Event::ToolCall { call, summary } if self.verbosity >= Verbosity::Normal => {
                let space = if summary.is_empty() { "" } else { " " };
                self.line(DIM, &format!("→ {}{space}{summary}", call.name));
            }
            Event::ToolResult { result, .. } if self.verbosity >= Verbosity::Normal => {
                self.line(
                    if result.ok { DIM } else { YELLOW },
                    &format!("← {}", result.summary),
                );
            }
            Event::Request { url, bytes } if self.verbosity == Verbosity::Verbose => {
                self.line(DIM, &format!("· POST {url}, {bytes} bytes"));
            }
            Event::Response { duration, usage } if self.verbosity == Verbosity::Verbose => {
                let tokens = usage.map_or_else(String::new, |usage| {
                    format!(
                        ", {} tokens read, {} written",
                        usage.prompt_tokens, usage.completion_tokens
                    )
                });
                self.line(
                    DIM,
                    &format!("· answered in {} ms{tokens}", milliseconds(*duration)),
                );
            }
            Event::Retry {
                attempt,
                delay,
                reason,
            } if self.verbosity == Verbosity::Verbose => {
                let delay = milliseconds(*delay);
                self.line(
                    YELLOW,
                    &format!(
                        "· try {attempt} of {} in {delay} ms: {reason}",
                        limits::TRIES
                    ),
                );
            }
            Event::Warning(text) => self.warn(text),
            _ => {}
        }
    }

    /// The answer is complete. On a terminal it is there already.
    pub fn answer(&mut self, text: &str) {
        if self.streams {
            self.close_line();
        } else {
            let text = self.masked(text).into_owned();
            self.write(text.as_bytes());
            self.write(b"\n");
        }
        self.flush();
    }

    /// Text for standard output that is no model's answer: help, a tool's result.
    pub fn print(&mut self, text: &str) {
        let text = self.masked(text).into_owned();
        let shown = if self.streams {
            printable(&text)
        } else {
            text.as_str().into()
        };
        self.write(shown.as_bytes());
        if !text.ends_with('\n') {
            self.write(b"\n");
        }
        self.flush();
    }

    /// Something the user should know; said also with `--quiet`.
    pub fn warn(&mut self, text: &str) {
        self.line(YELLOW, &format!("skills-runner: {text}"));
    }

    /// Something worth a line, but not with `--quiet`.
    pub fn note(&mut self, text: &str) {
        if self.verbosity >= Verbosity::Normal {
            self.line(DIM, &format!("skills-runner: {text}"));
        }
    }

    /// Why the run failed, and what helps.
    pub fn error(&mut self, error: &Error) {
        self.line(RED, &format!("skills-runner: {}", error.message()));
        if let Some(hint) = error.hint() {
            self.line("", &format!("hint: {hint}"));
        }
    }

    /// The prompt of a conversation, on standard error: standard output is for answers.
    pub fn prompt(&mut self, text: &str) {
        self.close_line();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Ends a line of standard error that the user's typing left open.
    pub fn end_prompt(&mut self) {
        let _ = io::stderr().write_all(b"\n");
    }

    /// Whether everything could be written. A reader that went away is no
    /// failure; a full disk is.
    pub fn outcome(&mut self) -> Result<()> {
        match self.failure.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::new(
                Kind::Io,
                format!("failed to write the answer: {error}"),
            )),
            _ => Ok(()),
        }
    }

    fn stream(&mut self, text: &str) {
        self.end_thought();
        let text = std::mem::take(&mut self.held) + text;
        let mut text = self.masked(&text).into_owned();
        // What the next piece may complete waits for it: the key, a line's end.
        let secret = self.secrets.beginning_at_end(&text);
        let held = secret.max(usize::from(text.ends_with('\r')));
        self.held = text.split_off(text.floor_char_boundary(text.len() - held));
        self.write_shown(&text);
    }

    fn write_shown(&mut self, text: &str) {
        let shown = printable(text);
        if !shown.is_empty() {
            self.is_line_open = !shown.ends_with('\n');
            self.write(shown.as_bytes());
            self.flush();
        }
    }

    fn think(&mut self, text: &str) {
        if !self.is_thinking {
            self.close_line();
        }
        let (on, off) = if self.color { (DIM, PLAIN) } else { ("", "") };
        let mark = if self.is_thinking { "" } else { "(thinking) " };
        self.is_thinking = true;
        let shown = format!("{on}{mark}{}{off}", printable(&self.masked(text)));
        let _ = io::stderr().write_all(shown.as_bytes());
    }

    fn end_thought(&mut self) {
        if std::mem::take(&mut self.is_thinking) {
            let _ = io::stderr().write_all(b"\n");
        }
    }

    fn close_line(&mut self) {
        self.end_thought();
        let held = std::mem::take(&mut self.held);
        self.write_shown(held.trim_end_matches('\r'));
        if std::mem::take(&mut self.is_line_open) {
            self.write(b"\n");
            self.flush();
        }
    }

    /// One thing on standard error. Its lines are kept, each bounded.
    fn line(&mut self, color: &str, text: &str) {
        self.close_line();
        let mut shown = String::new();
        let text = self.masked(text).into_owned();
        for line in printable(&text).lines() {
            let indent = &line[..line.len() - line.trim_start().len()];
            let line = one_line(line, limits::LINE_BYTES);
            let is_colored = self.color && !color.is_empty();
            let (on, off) = if is_colored { (color, PLAIN) } else { ("", "") };
            shown.push_str(&format!("{on}{indent}{line}{off}\n"));
        }
        // Nobody to tell, if this fails.
        let _ = io::stderr().write_all(shown.as_bytes());
    }

    fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.mask(text)
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = io::stdout().write_all(bytes).err();
        }
    }

    fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = io::stdout().flush().err();
        }
    }
}
