//! The live line on a terminal: it shows what is waited for, and the next output takes its place.
//!
//! The program waits in one place, [`Interrupt::poll`](host::signal::Interrupt::poll),
//! which calls [`LiveLine`] when the line is due.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::tone::{DIM, PLAIN};
use super::{Output, Verbosity};
use base::event::{Event, RunStats};
use base::limits;
use base::secret::{CutEdges, Secrets};
use base::text::{counted, fitting, group_digits, printable};
use host::signal::WaitObserver;
use host::terminal;

/// Returns to the start of the line and deletes it.
const CLEAR: &str = "\r\x1b[K";

/// The live line of a terminal on standard error.
#[derive(Debug)]
pub(super) struct LiveLine(Mutex<LiveState>);

#[derive(Debug, Default)]
struct LiveState {
    /// The present wait; `None`: no line is due.
    wait: Option<Wait>,
    is_shown: bool,
    is_paused: bool,
    has_color: bool,
    secrets: Secrets,
}

#[derive(Debug)]
struct Wait {
    what: String,
    start: Instant,
    /// When the line is shown next.
    due: Instant,
    /// The last line that a script has printed.
    printed: String,
    /// Pieces of the reply so far.
    pieces: usize,
}

impl LiveState {
    fn show(&mut self, text: &str) {
        let text = self.secrets.mask(text);
        let text = printable(&text).replace('\t', " ");
        let text = text.lines().next().unwrap_or_default();
        // A full line would move the cursor to the next one.
        let text = fitting(text, terminal::columns(io::stderr()).saturating_sub(1));
        let (on, off) = if self.has_color { (DIM, PLAIN) } else { ("", "") };
        let _ = io::stderr().write_all(format!("{CLEAR}{on}{text}{off}").as_bytes());
        self.is_shown = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = io::stderr().write_all(CLEAR.as_bytes());
        }
    }
}

impl LiveLine {
    fn update(&self, change: impl FnOnce(&mut LiveState)) {
        if let Ok(mut state) = self.0.lock() {
            change(&mut state);
        }
    }

    /// Starts to wait for something.
    fn wait_for(&self, what: String) {
        let start = Instant::now();
        let due = start + limits::LIVE_LINE_DELAY;
        let wait = Wait { what, start, due, printed: String::new(), pieces: 0 };
        self.update(|state| state.wait = Some(wait));
    }

    /// Ends the wait, and deletes the line.
    fn stop(&self) {
        self.update(|state| {
            state.wait = None;
            state.clear();
        });
    }
}

impl WaitObserver for LiveLine {
    fn due(&self) -> Option<Instant> {
        let state = self.0.lock().ok()?;
        state.wait.as_ref().filter(|_| !state.is_paused).map(|wait| wait.due)
    }

    fn tick(&self) {
        self.update(|state| {
            let Some(wait) = &mut state.wait else { return };
            wait.due = Instant::now() + limits::LIVE_LINE_INTERVAL;
            let seconds = wait.start.elapsed().as_secs();
            let tokens = match wait.pieces {
                0 => String::new(),
                pieces => format!(", about {} tokens", group_digits(pieces as u64)),
            };
            let printed = match wait.printed.as_str() {
                "" => String::new(),
                line => format!(": {line}"),
            };
            let text = format!("… {}, {seconds} s{tokens}{printed}", wait.what);
            state.show(&text);
        });
    }

    fn output(&self, bytes: &[u8]) {
        self.update(|state| {
            let text = String::from_utf8_lossy(bytes);
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            if let (Some(wait), Some(line)) = (&mut state.wait, last) {
                // The line may have begun before, and may go on.
                let cut = CutEdges { before: true, after: true };
                let line = state.secrets.mask_cut(line.trim(), cut);
                wait.printed = line.chars().take(limits::SUMMARY_CHARS).collect();
            }
        });
    }

    fn pause(&self, is_paused: bool) {
        self.update(|state| {
            state.is_paused = is_paused;
            state.clear();
        });
    }
}

impl Output {
    /// Creates the live line if it can be shown: standard error is a terminal that can delete a
    /// line. Every wait shows it from now on.
    pub(super) fn new_live_line(&self) -> Option<Arc<LiveLine>> {
        let is_shown = self.verbosity == Verbosity::Normal && self.features.can_move;
        (is_shown && io::stderr().is_terminal()).then(|| {
            let state = LiveState { has_color: self.color, ..LiveState::default() };
            Arc::new(LiveLine(Mutex::new(state)))
        })
    }

    /// Whether there is a live line.
    pub(crate) fn has_live_line(&self) -> bool {
        self.live.is_some()
    }

    /// The columns of the terminal on standard output; `None`: it is no terminal.
    pub(crate) fn columns() -> Option<usize> {
        io::stdout().is_terminal().then(|| terminal::columns(io::stdout()))
    }

    /// The width of help and reports.
    pub(crate) fn report_columns() -> usize {
        let (least, most) = limits::TERMINAL_REPORT_COLUMNS;
        Output::columns().map_or(limits::REPORT_COLUMNS, |columns| columns.clamp(least, most))
    }

    /// Whether messages can be edited: all three streams are terminals, and the cursor can move.
    pub(crate) fn can_edit(&self) -> bool {
        self.features.can_move && io::stdout().is_terminal() && Output::can_ask()
    }

    /// Whether the user can be asked: standard input and standard error are terminals.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Shows the text as the live line, in place of the last one.
    pub(crate) fn show_live(&mut self, text: &str) {
        self.close_line();
        if let Some(live) = &self.live {
            live.update(|state| state.show(text));
        }
    }

    /// Deletes the live line. It comes back if something is waited for.
    pub(crate) fn clear_live(&mut self) {
        if let Some(live) = &self.live {
            live.update(LiveState::clear);
        }
    }

    /// Ends a wait.
    pub(super) fn stop_waiting(&mut self) {
        if let Some(live) = &self.live {
            live.stop();
        }
    }

    /// Masks secrets in the live line.
    pub(super) fn mask_live(&self) {
        if let Some(live) = &self.live {
            live.update(|state| state.secrets = self.secrets.clone());
        }
    }

    /// Notes what the event makes the program wait for.
    pub(super) fn follow(&mut self, event: &Event<'_>) {
        let Some(live) = &self.live else { return };
        match event {
            Event::Request { method: "POST", .. } => {
                self.steps += 1;
                live.wait_for(format!("waiting for the model, step {}", self.steps));
            }
            Event::Text(_) if self.streams => live.stop(),
            Event::Text(_) | Event::Reasoning(_) => live.update(|state| {
                if let Some(wait) = &mut state.wait {
                    wait.pieces += 1;
                }
            }),
            Event::ToolCall { call, .. } => live.wait_for(format!("running {}", call.name)),
            Event::Retry { delay, .. } if *delay > Duration::ZERO => {
                live.wait_for("waiting to try again".into());
            }
            Event::MessageEnd { .. } | Event::Response { .. } | Event::ToolResult { .. } => {
                live.stop();
            }
            _ => {}
        }
    }

    /// Shows the totals of a turn of a conversation.
    pub(crate) fn show_turn_totals(&mut self, stats: &RunStats, duration: Duration) {
        if self.live.is_some() && self.streams {
            let tokens = stats.usage.prompt_tokens + stats.usage.completion_tokens;
            let tokens = match tokens {
                0 => String::new(),
                tokens => format!(", {} tokens", group_digits(tokens)),
            };
            let steps = counted(stats.steps as usize, "step");
            self.line(DIM, &format!("{steps}, {:.1} s{tokens}", duration.as_secs_f64()));
        }
    }
}
