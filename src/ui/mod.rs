//! The user interface: printing, reading lines, and what was typed before. Only this module writes
//! to standard output and standard error.
//!
//! Standard output gets only the answer: streamed to a terminal, otherwise as a
//! whole; with `--output json` or `jsonl` it gets records instead. Standard error
//! gets everything else, one line per message. Text from a model or a tool must not
//! reach a terminal unfiltered.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use base::error::{Error, ErrorKind, Result};
use base::event::{Event, RunStats};
use base::limits;
use base::secret::Secrets;
use base::text::{self, one_line, printable};
use host::signal::{Interrupt, Signal};

mod answer;
pub(crate) mod history;
pub(crate) mod input;
pub(crate) mod line_editor;
mod live;
mod log;
mod markdown;
mod messages;
mod records;
mod report;
mod run_state;
mod stdout;
mod stream_redactor;
mod tone;
mod verbose;

use live::LiveLine;
use log::Log;
use markdown::MarkdownColors;
pub(crate) use records::RunEnvironment;
use report::TextReport;
use stdout::Stdout;
pub(crate) use stdout::print_standalone;
pub use stream_redactor::StreamRedactor;
pub(crate) use tone::TerminalFeatures;
pub(crate) use tone::Tone;
use tone::{DIM, PLAIN, RED, YELLOW};

/// Format of standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The answer.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object per event, each on a line; the last is that of `Json`.
    Jsonl,
    /// The object of a command that does not ask a model, or that of its error.
    Object,
}

/// The formats that can be chosen, and their names.
pub(crate) const FORMATS: [(&str, Format); 3] =
    [("text", Format::Text), ("json", Format::Json), ("jsonl", Format::Jsonl)];

/// Amount of output on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors and warnings.
    Quiet,
    /// Tool calls and retries as well.
    #[default]
    Normal,
    /// Requests, timings and reasoning as well.
    Verbose,
}

/// Both output streams and their settings.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about two streams")]
pub(crate) struct Output {
    format: Format,
    verbosity: Verbosity,
    /// Whether text is streamed: standard output is a terminal, and the format is text.
    streams: bool,
    color: bool,
    /// Terminal features, by the environment.
    features: TerminalFeatures,
    /// The live line, if there is one.
    live: Option<Arc<LiveLine>>,
    /// Requests of the turn so far.
    steps: u32,
    /// Whether the terminal's cursor is after text, not at the start of a line.
    is_line_open: bool,
    is_reasoning: bool,
    /// Whether this is a conversation, which shows notes even with `--quiet`.
    is_conversation: bool,
    /// Lines for standard error that were dropped since the last one written.
    dropped_lines: usize,
    text_redactor: StreamRedactor,
    /// Colours the answer on a terminal; `None`: it is shown as it came.
    markdown: Option<MarkdownColors>,
    /// Filters the answer for a terminal.
    terminal_filter: text::TerminalTextFilter,
    reasoning_redactor: StreamRedactor,
    report: TextReport,
    stdout: Stdout,
    log: Option<Log>,
    /// Masked in all output: servers quote parts of requests.
    secrets: Secrets,
}

impl Output {
    /// If writing to standard output fails, `interrupt` is raised.
    pub(crate) fn new(
        format: Format,
        verbosity: Verbosity,
        features: TerminalFeatures,
        interrupt: Interrupt,
    ) -> Output {
        let observed = interrupt.clone();
        let mut output = Output {
            format,
            verbosity,
            streams: matches!(format, Format::Text | Format::Object) && io::stdout().is_terminal(),
            features,
            live: None,
            steps: 0,
            markdown: features.has_color.then(MarkdownColors::default),
            color: features.has_color && io::stderr().is_terminal(),
            is_line_open: false,
            is_reasoning: false,
            is_conversation: false,
            dropped_lines: 0,
            text_redactor: StreamRedactor::default(),
            terminal_filter: text::TerminalTextFilter::default(),
            reasoning_redactor: StreamRedactor::default(),
            report: TextReport::new(format),
            stdout: Stdout::new(interrupt, format == Format::Jsonl),
            log: None,
            secrets: Secrets::default(),
        };
        output.live = output.new_live_line();
        if let Some(live) = &output.live {
            observed.observe_waits(live.clone());
        }
        output
    }

    /// Shows answers as they come, without colours.
    pub(crate) fn set_plain(&mut self) {
        self.markdown = None;
    }

    /// Sets the secrets to be masked from now on.
    pub(crate) fn set_secrets(&mut self, secrets: Secrets) {
        self.secrets = secrets;
        self.mask_live();
    }

    /// Sets the deadline of the run, at which writing to standard output ends.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.stdout.end_at(deadline);
    }

    /// Opens a log file, which gets all records from now on, whatever the format.
    pub(crate) fn open_log(
        &mut self,
        path: &Path,
        run_environment: RunEnvironment,
        interrupt: Interrupt,
    ) -> Result<()> {
        let run_environment = run_environment.masked(&self.secrets);
        self.log = Some(Log::open(path, run_environment, interrupt)?);
        Ok(())
    }

    /// Records the start of the run. Call it only when wrong usage can no longer end the
    /// run.
    pub(crate) fn record_start(&mut self, skills: &[&str]) {
        self.write_records(&|report, secrets| report.start(skills, secrets));
    }

    /// Records the question in the log.
    pub(crate) fn record_question(&mut self, text: &str) {
        if let Some(log) = &mut self.log {
            log.report.start_question(text, &self.secrets);
        }
    }

    /// Starts a turn of a conversation.
    pub(crate) fn start_turn(&mut self) {
        self.steps = 0;
        self.reports().for_each(TextReport::start_turn);
    }

    /// Warns that standard input was silent and is ignored.
    pub(crate) fn ignore_stdin(&mut self) {
        let seconds = limits::STDIN_FIRST_BYTE.as_secs();
        self.warn(&format!(
            "standard input had no data for {seconds} s and is ignored (option -n: never read it; prompt -: wait for it)"
        ));
        self.reports().for_each(TextReport::ignore_stdin);
    }

    /// Sets the totals of the turn.
    pub(crate) fn set_stats(&mut self, stats: &RunStats) {
        self.reports().for_each(|report| report.set_stats(stats));
    }

    /// Records an event without showing it.
    pub(crate) fn record(&mut self, event: &Event<'_>) {
        self.write_records(&|report, secrets| report.event(event, secrets));
    }

    /// Records and shows an event.
    pub(crate) fn show(&mut self, event: &Event<'_>) {
        self.record(event);
        self.follow(event);
        match event {
            Event::Text(text) if self.streams => self.stream_text(text),
            Event::Reasoning(text) if self.verbosity == Verbosity::Verbose => {
                self.stream_reasoning(text);
            }
            Event::MessageEnd { .. } => self.close_line(),
            Event::ToolCall { call, summary } if self.verbosity >= Verbosity::Normal => {
                let space = if summary.is_empty() { "" } else { " " };
                self.line(DIM, &format!("→ {}{space}{summary}", call.name));
            }
            Event::ToolResult { result, .. } if self.verbosity >= Verbosity::Normal => {
                self.line(if result.ok { DIM } else { YELLOW }, &format!("← {}", result.summary));
                if self.verbosity == Verbosity::Verbose {
                    let text = result.full_text();
                    let text = self.secrets.mask(&text);
                    self.line(DIM, &verbose::first_lines(&text));
                }
            }
            Event::Context { summarized, before, after } => {
                self.note(&verbose::summary(*summarized, *before, *after));
            }
            Event::Warning(text) => self.warn(text),
            Event::Retry { .. } if self.verbosity == Verbosity::Normal => {
                if let Some(line) = verbose::line(event) {
                    self.line(YELLOW, &line);
                }
            }
            _ if self.verbosity == Verbosity::Verbose => {
                if let Some(line) = verbose::line(event) {
                    let is_retry = matches!(event, Event::Retry { .. });
                    self.line(if is_retry { YELLOW } else { DIM }, &line);
                }
            }
            _ => {}
        }
    }

    /// Writes the complete answer. A terminal has it already, and records contain it in
    /// the turn's result.
    pub(crate) fn answer(&mut self, text: &str) {
        let text = self.secrets.mask(text);
        self.reports().for_each(|report| report.answer(&text));
        if self.streams {
            self.close_line();
        } else if self.format == Format::Text {
            self.stdout.write_line(&text);
        }
    }

    /// Prints a text that is not a model's answer, such as a tool's result.
    pub(crate) fn print(&mut self, text: &str) {
        self.clear_live();
        let mut text = self.masked(text).into_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let shown = if self.streams { printable(&text) } else { text.as_str().into() };
        self.stdout.write(&shown);
    }

    /// Prints a line of a report. Its first word is the status, in colour on a terminal
    /// if colours are allowed.
    pub(crate) fn print_marked(&mut self, mark: &str, tone: Tone, text: &str) {
        self.print_located("", mark, tone, text);
    }

    /// Same as [`Output::print_marked`] after a location: `path:line: `.
    pub(crate) fn print_located(&mut self, location: &str, mark: &str, tone: Tone, text: &str) {
        let color = tone.color();
        let is_colored = self.features.has_color && self.streams;
        let (on, off) = if is_colored { (color, PLAIN) } else { ("", "") };
        let location = self.masked(location).into_owned();
        self.stdout.write(&format!("{}{on}{mark}{off}", printable(&location)));
        self.print(text);
    }

    /// The text with masked secrets.
    pub(crate) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.mask(text)
    }

    /// Whether text is streamed to a terminal.
    pub(crate) fn is_on_terminal(&self) -> bool {
        self.streams
    }

    /// Prefix of a message: nothing where the user talks with the program alone.
    fn speaker(&self) -> &'static str {
        if self.is_conversation && self.live.is_some() { "" } else { "skills-runner: " }
    }

    /// Shows a warning, even with `--quiet`.
    pub(crate) fn warn(&mut self, text: &str) {
        self.line(YELLOW, &format!("{}{text}", self.speaker()));
    }

    /// Shows a note, even with `--quiet`.
    pub(crate) fn note_always(&mut self, text: &str) {
        self.line(DIM, &format!("{}{text}", self.speaker()));
    }

    /// Shows a note, with `--quiet` only in a conversation.
    pub(crate) fn note(&mut self, text: &str) {
        if self.is_conversation || self.verbosity >= Verbosity::Normal {
            self.note_always(text);
        }
    }

    /// Whether notes are left out.
    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Shows a row of a list that a note introduces, even with `--quiet`.
    pub(crate) fn row(&mut self, text: &str) {
        self.line(DIM, &format!("  {text}"));
    }

    /// Shows a line only with `-v`.
    pub(crate) fn detail(&mut self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.line(DIM, &format!("· {text}"));
        }
    }

    /// Shows an error and its hint. A signal is not shown, since the shell shows it.
    pub(crate) fn error(&mut self, error: &Error) {
        if matches!(error.kind(), ErrorKind::Interrupted(_)) {
            return self.close_line();
        }
        self.line(RED, &format!("{}{}", self.speaker(), error.message()));
        if let Some(hint) = error.hint() {
            self.line("", &format!("hint: {hint}"));
        }
    }

    /// Ends a turn: shows its error and records its result.
    pub(crate) fn end_turn(&mut self, error: Option<&Error>) {
        self.stop_waiting();
        let exit_code = error.map_or(0, |error| error.kind().exit_status());
        if let Some(error) = error {
            self.error(error);
        }
        self.write_records(&|report, secrets| report.end(error, exit_code, secrets));
    }

    /// Ends the run: shows its error, writes the last records, and returns the result. A run
    /// whose output could not be written has failed, but not if its reader went away.
    pub(crate) fn finish(&mut self, result: Result<u8>) -> Result<u8> {
        self.stop_waiting();
        let result = match result {
            Err(error) if self.is_without_reader(&error) => Ok(0),
            result => result,
        };
        let result = result.and_then(|status| self.take_write_error().map(|()| status));
        if let Some(log) = &mut self.log {
            let lines = log.report.finish(&result, &self.secrets);
            log.write(&lines);
        }
        let result = result.and_then(|status| self.take_write_error().map(|()| status));
        if let Err(error) = &result {
            self.error(error);
        }
        if !(self.format == Format::Object && self.stdout.has_output()) {
            let lines = self.report.finish(&result, &self.secrets);
            self.stdout.write(&lines);
        }
        let Err(late) = self.take_write_error() else {
            return result;
        };
        self.error(&late);
        match result {
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted(_)) => Err(error),
            _ => Err(late),
        }
    }

    /// Shows the prompt of a conversation on standard error.
    pub(crate) fn prompt(&mut self, text: &str) {
        self.stop_waiting();
        self.close_line();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Ends the line of the prompt, if the user did not.
    pub(crate) fn end_prompt() {
        let _ = io::stderr().write_all(b"\n");
    }

    /// Returns an error once if any output could not be written, for example on a full
    /// disk. A closed reader is not an error.
    pub(crate) fn take_write_error(&mut self) -> Result<()> {
        match &mut self.log {
            Some(log) => log.take_write_error().and_then(|()| self.stdout.take_write_error()),
            None => self.stdout.take_write_error(),
        }
    }

    /// Whether the run stopped because the reader of standard output closed it. The caller checks
    /// for other failures of writing.
    fn is_without_reader(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::Interrupted(signal) => Signal(signal) == Signal::PIPE,
            _ => self.stdout.is_reader_gone() && self.log.as_ref().is_none_or(Log::is_complete),
        }
    }

    fn reports(&mut self) -> impl Iterator<Item = &mut TextReport> {
        let log = self.log.as_mut().map(|log| &mut log.report);
        std::iter::once(&mut self.report).chain(log)
    }

    /// Writes records, first to the log, so that all output has been logged.
    fn write_records(&mut self, lines: &dyn Fn(&mut TextReport, &Secrets) -> String) {
        if let Some(log) = &mut self.log {
            let lines = lines(&mut log.report, &self.secrets);
            log.write(&lines);
        }
        let lines = lines(&mut self.report, &self.secrets);
        self.stdout.write(&lines);
    }

    /// Writes a message to standard error. Each of its lines is truncated.
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
