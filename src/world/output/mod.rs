//! The only place that prints.
//!
//! Standard output carries the answer and nothing else: streamed to a
//! terminal, whole to anything else; with `--output json` or `jsonl` it
//! carries records instead. Standard error carries the rest, one line a thing.
//! Nothing from a model or a tool reaches a terminal raw.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, RunStats};
use crate::limits;
use crate::secret::Secrets;
use crate::text::{self, one_line, printable, without_commands};
use crate::world::signal::Interrupt;

mod log;
mod messages;
mod records;
mod report;
mod run_state;
mod stdout;
mod stream_redactor;
mod tone;
mod verbose;

use log::Log;
pub(crate) use records::RunEnvironment;
use records::{CommandFailure, ErrorRecord};
use report::TextReport;
use stdout::Stdout;
pub(crate) use stdout::print_alone;
pub use stream_redactor::StreamRedactor;
pub(crate) use tone::Tone;
use tone::{DIM, PLAIN, RED, YELLOW};

/// What standard output carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The answer.
    #[default]
    Text,
    /// One object at the end.
    Json,
    /// Objects as things happen, one a line; the last is that of `Json`.
    Jsonl,
}

/// Every format and its name.
pub(crate) const FORMATS: [(&str, Format); 3] =
    [("text", Format::Text), ("json", Format::Json), ("jsonl", Format::Jsonl)];

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
#[allow(clippy::struct_excessive_bools, reason = "independent facts about two streams")]
pub(crate) struct Output {
    format: Format,
    verbosity: Verbosity,
    /// Text goes out as it comes: standard output is a terminal that shows text.
    streams: bool,
    color: bool,
    /// By the environment, on any stream.
    color_wanted: bool,
    /// The terminal's cursor stands behind text, not at the beginning of a line.
    is_line_open: bool,
    is_thinking: bool,
    /// Notes answer a person: they are told also with `--quiet`.
    converses: bool,
    /// Lines that found no room there since the last one that did.
    left_out: usize,
    text: StreamRedactor,
    /// What has come of the answer, as a terminal may show it.
    answer: text::TerminalTextFilter,
    thought: StreamRedactor,
    report: TextReport,
    stdout: Stdout,
    log: Option<Log>,
    /// Masked in everything that is printed: servers quote what they were sent.
    secrets: Secrets,
}

impl Output {
    /// `color_wanted` is false with `NO_COLOR` or on a dumb terminal. Should
    /// standard output fail, it is the `interrupt` that is raised.
    pub(crate) fn new(
        format: Format,
        verbosity: Verbosity,
        color_wanted: bool,
        interrupt: Interrupt,
    ) -> Output {
        Output {
            format,
            verbosity,
            streams: format == Format::Text && io::stdout().is_terminal(),
            color_wanted,
            color: color_wanted && io::stderr().is_terminal(),
            is_line_open: false,
            is_thinking: false,
            converses: false,
            left_out: 0,
            text: StreamRedactor::default(),
            answer: text::TerminalTextFilter::default(),
            thought: StreamRedactor::default(),
            report: TextReport::new(format),
            stdout: Stdout::new(interrupt, format == Format::Jsonl),
            log: None,
            secrets: Secrets::default(),
        }
    }

    /// From now on these are never printed.
    pub(crate) fn hide(&mut self, secrets: Secrets) {
        self.secrets = secrets;
    }

    /// From now on writing to standard output ends with the run.
    pub(crate) fn end_at(&mut self, deadline: Option<Instant>) {
        self.stdout.end_at(deadline);
    }

    /// From now on everything that happens is written to this file as well,
    /// whatever the format.
    pub(crate) fn log_to(
        &mut self,
        path: &Path,
        circumstances: RunEnvironment,
        interrupt: Interrupt,
    ) -> Result<()> {
        let circumstances = circumstances.masked(&self.secrets);
        self.log = Some(Log::open(path, circumstances, interrupt)?);
        Ok(())
    }

    /// The run begins: what is still missing is the model's to do. Not for
    /// runs that wrong usage may still end.
    pub(crate) fn start(&mut self, skills: &[&str]) {
        self.tell(&|report, secrets| report.start(skills, secrets));
    }

    /// This is asked: a log tells it as well.
    pub(crate) fn begin_question(&mut self, text: &str) {
        if let Some(log) = &mut self.log {
            log.report.begin_question(text, &self.secrets);
        }
    }

    /// A turn of a conversation begins.
    pub(crate) fn begin_turn(&mut self) {
        self.reports().for_each(TextReport::begin_turn);
    }

    /// Says that standard input was silent and is ignored.
    pub(crate) fn ignore_stdin(&mut self) {
        let seconds = limits::STDIN_PATIENCE.as_secs();
        self.warn(&format!(
            "standard input stayed silent for {seconds} s and is ignored (-n never reads it, - waits for it)"
        ));
        self.reports().for_each(TextReport::ignore_stdin);
    }

    /// What the turn has cost by now.
    pub(crate) fn spend(&mut self, stats: RunStats) {
        self.reports().for_each(|report| report.spend(stats));
    }

    /// Records what happens, and shows nothing.
    pub(crate) fn record(&mut self, event: &Event<'_>) {
        self.tell(&|report, secrets| report.event(event, secrets));
    }

    /// Records what happens, and shows it.
    pub(crate) fn show(&mut self, event: &Event<'_>) {
        self.record(event);
        match event {
            Event::Text(text) if self.streams => self.stream(text),
            Event::Reasoning(text) if self.verbosity == Verbosity::Verbose => self.think(text),
            Event::MessageEnd { .. } => self.close_line(),
            Event::ToolCall { call, summary } if self.verbosity >= Verbosity::Normal => {
                let space = if summary.is_empty() { "" } else { " " };
                self.line(DIM, &format!("→ {}{space}{summary}", call.name));
            }
            Event::ToolResult { result, .. } if self.verbosity >= Verbosity::Normal => {
                self.line(if result.ok { DIM } else { YELLOW }, &format!("← {}", result.summary));
                if self.verbosity == Verbosity::Verbose {
                    let text = self.secrets.mask(&result.content);
                    self.line(DIM, &verbose::beginning(&text));
                }
            }
            Event::Context { summarized, before, after } => {
                self.note(&verbose::summary(*summarized, *before, *after));
            }
            Event::Warning(text) => self.warn(text),
            _ if self.verbosity == Verbosity::Verbose => {
                if let Some(line) = verbose::line(event) {
                    let is_retry = matches!(event, Event::Retry { .. });
                    self.line(if is_retry { YELLOW } else { DIM }, &line);
                }
            }
            _ => {}
        }
    }

    /// The answer is complete. On a terminal it is there already, and records
    /// bring it with the turn's result.
    pub(crate) fn answer(&mut self, text: &str) {
        let text = self.secrets.mask(text);
        self.reports().for_each(|report| report.answer(&text));
        if self.streams {
            self.close_line();
        } else if self.format == Format::Text {
            self.stdout.write_line(&text);
        }
    }

    /// Text for standard output that is no model's answer: help, a tool's result.
    pub(crate) fn print(&mut self, text: &str) {
        let mut text = self.masked(text).into_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let shown = if self.streams { printable(&text) } else { text.as_str().into() };
        self.stdout.write(&shown);
    }

    /// A failure as the one object that a program reads, beside the lines for
    /// people.
    pub(crate) fn print_failure(&mut self, error: &Error) {
        let failure = CommandFailure { error: ErrorRecord::of(error, &self.secrets) };
        // Texts always have a JSON form.
        self.print(&serde_json::to_string(&failure).unwrap_or_default());
    }

    /// A line of a report on standard output: its first word tells how it
    /// stands, in colour on a terminal where colours are wanted.
    pub(crate) fn print_marked(&mut self, mark: &str, tone: Tone, text: &str) {
        self.print_located("", mark, tone, text);
    }

    /// The same with a place in front: `path:line: `.
    pub(crate) fn print_located(&mut self, place: &str, mark: &str, tone: Tone, text: &str) {
        let color = tone.color();
        let is_colored = self.color_wanted && self.streams;
        let (on, off) = if is_colored { (color, PLAIN) } else { ("", "") };
        let place = self.masked(place).into_owned();
        self.stdout.write(&format!("{}{on}{mark}{off}", printable(&place)));
        self.print(text);
    }

    /// Whether a person looks at standard output.
    pub(crate) fn is_on_terminal(&self) -> bool {
        self.streams
    }

    /// Something the user should know; said also with `--quiet`.
    pub(crate) fn warn(&mut self, text: &str) {
        self.line(YELLOW, &format!("skills-runner: {text}"));
    }

    /// What is said with `--quiet` too.
    pub(crate) fn say(&mut self, text: &str) {
        self.line(DIM, &format!("skills-runner: {text}"));
    }

    /// Something worth a line, but not with `--quiet`, unless it is said in a
    /// conversation.
    pub(crate) fn note(&mut self, text: &str) {
        if self.converses || self.verbosity >= Verbosity::Normal {
            self.say(text);
        }
    }

    /// One line for who wants to know everything (`-v`).
    pub(crate) fn detail(&mut self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.line(DIM, &format!("· {text}"));
        }
    }

    /// Why something failed, and what helps. A signal needs no explanation:
    /// the shell shows it.
    pub(crate) fn error(&mut self, error: &Error) {
        if matches!(error.kind(), ErrorKind::Interrupted(_)) {
            return self.close_line();
        }
        self.line(RED, &format!("skills-runner: {}", error.message()));
        if let Some(hint) = error.hint() {
            self.line("", &format!("hint: {hint}"));
        }
    }

    /// A turn is over: its error is told, its result recorded.
    pub(crate) fn end_turn(&mut self, error: Option<&Error>) {
        let exit_code = error.map_or(0, |error| error.kind().exit_status());
        if let Some(error) = error {
            self.error(error);
        }
        self.tell(&|report, secrets| report.end(error, exit_code, secrets));
    }

    /// The run is over and has not failed, or has told so: the last record is
    /// a result.
    pub(crate) fn complete(&mut self, exit_code: u8) {
        self.tell(&|report, secrets| report.complete(exit_code, secrets));
    }

    /// The run is over and would end with this status: the log's last record,
    /// and whether everything could be written.
    pub(crate) fn settle(&mut self, exit_code: u8) -> Result<()> {
        self.outcome()?;
        if let Some(log) = &mut self.log {
            let lines = log.report.complete(exit_code, &self.secrets);
            log.write(&lines);
        }
        self.outcome()
    }

    /// The prompt of a conversation, on standard error: standard output is for answers.
    pub(crate) fn prompt(&mut self, text: &str) {
        self.close_line();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Ends a line of standard error that the user's typing left open.
    pub(crate) fn end_prompt() {
        let _ = io::stderr().write_all(b"\n");
    }

    /// Whether everything could be written; told once. A reader that went away
    /// is no failure; a full disk is.
    pub(crate) fn outcome(&mut self) -> Result<()> {
        match &mut self.log {
            Some(log) => log.outcome().and_then(|()| self.stdout.outcome()),
            None => self.stdout.outcome(),
        }
    }

    /// Whether the reader of standard output went away, and nothing else is wrong.
    pub(crate) fn is_unread(&self) -> bool {
        self.stdout.is_unread() && self.log.as_ref().is_none_or(Log::is_whole)
    }

    fn reports(&mut self) -> impl Iterator<Item = &mut TextReport> {
        let log = self.log.as_mut().map(|log| &mut log.report);
        std::iter::once(&mut self.report).chain(log)
    }

    /// Writes records, first to the log: what is told has been written down.
    fn tell(&mut self, lines: &dyn Fn(&mut TextReport, &Secrets) -> String) {
        if let Some(log) = &mut self.log {
            let lines = lines(&mut log.report, &self.secrets);
            log.write(&lines);
        }
        let lines = lines(&mut self.report, &self.secrets);
        self.stdout.write(&lines);
    }

    fn stream(&mut self, text: &str) {
        self.end_thought();
        let text = self.text.add(text, &self.secrets);
        let text = self.answer.add(&text);
        self.write_shown(&text);
    }

    fn write_shown(&mut self, text: &str) {
        let shown = without_commands(text);
        if !shown.is_empty() {
            self.is_line_open = !shown.ends_with('\n');
            self.stdout.write(&shown);
        }
    }

    fn think(&mut self, text: &str) {
        if !self.is_thinking {
            self.close_line();
        }
        let mark = if self.is_thinking { "" } else { "(thinking) " };
        self.is_thinking = true;
        let text = self.thought.add(text, &self.secrets);
        if !mark.is_empty() || !text.is_empty() {
            self.write_thought(mark, &text);
        }
    }

    fn write_thought(&self, mark: &str, text: &str) {
        let (on, off) = if self.color { (DIM, PLAIN) } else { ("", "") };
        let shown = format!("{on}{mark}{}{off}", printable(text));
        let _ = io::stderr().write_all(shown.as_bytes());
    }

    fn end_thought(&mut self) {
        if std::mem::take(&mut self.is_thinking) {
            let held = self.thought.end(&self.secrets);
            if !held.is_empty() {
                self.write_thought("", held.trim_end_matches('\r'));
            }
            let _ = io::stderr().write_all(b"\n");
        }
    }

    fn close_line(&mut self) {
        self.end_thought();
        let held = self.text.end(&self.secrets);
        let held = self.answer.add(held.trim_end_matches('\r')) + &self.answer.end();
        self.write_shown(&held);
        if std::mem::take(&mut self.is_line_open) {
            self.stdout.write("\n");
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
        self.write_error(&shown);
    }

    fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.mask(text)
    }
}
