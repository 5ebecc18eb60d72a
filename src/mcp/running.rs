//! The call that runs: whether it is still wanted, and what it tells of its
//! progress. How far a script is nobody knows; how long it has run, and what it
//! said last, is what a person wants to see.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use serde_json::json;

use super::rpc::Id;
use crate::limits;
use crate::secret::Secrets;
use crate::text;
use crate::world::event_source::ScriptStream;
use crate::world::lines::{LineBuffer, LinePiece};

/// A call that runs.
pub(super) struct RunningCall {
    /// Of the request.
    pub id: Id,
    is_cancelled: Cell<bool>,
    started: Instant,
    progress: Option<ProgressReport>,
}

struct ProgressReport {
    /// What it is told under, as JSON.
    token: String,
    /// When it is told next; `None`: beyond all time.
    next: Cell<Option<Instant>>,
    /// The two streams as far as their lines are not whole.
    streams: RefCell<[LineBuffer; 2]>,
    /// The last whole line of either.
    line: RefCell<Vec<u8>>,
}

impl RunningCall {
    /// Begins now.
    pub(super) fn new(id: Id, progress_token: Option<String>) -> RunningCall {
        let started = Instant::now();
        let progress = progress_token.map(|token| ProgressReport {
            token,
            next: Cell::new(started.checked_add(limits::PROGRESS)),
            streams: RefCell::default(),
            line: RefCell::default(),
        });
        RunningCall { id, is_cancelled: Cell::new(false), started, progress }
    }

    /// Nobody wants its answer any more.
    pub(super) fn cancel(&self) {
        self.is_cancelled.set(true);
    }

    /// Whether somebody wants its answer.
    pub(super) fn is_wanted(&self) -> bool {
        !self.is_cancelled.get()
    }

    /// When it has something to tell, or wants to end: what was cancelled before
    /// its program started ends as soon as that has.
    pub(super) fn due(&self) -> Option<Instant> {
        if !self.is_wanted() {
            return Some(self.started);
        }
        self.progress.as_ref()?.next.get()
    }

    /// Takes what its program says.
    pub(super) fn hear(&self, stream: ScriptStream, bytes: &[u8]) {
        let Some(progress) = &self.progress else {
            return;
        };
        let mut streams = progress.streams.borrow_mut();
        let lines = &mut streams[usize::from(stream == ScriptStream::Err)];
        lines.push(bytes);
        while let Some(piece) = lines.next(limits::LINE_BYTES) {
            if let LinePiece::Whole(line) = piece
                && !line.trim_ascii().is_empty()
            {
                progress.line.replace(line.to_vec());
            }
        }
    }

    /// The message, if it is time: how long it has run, and what it said last.
    pub(super) fn tell(&self, secrets: &Secrets) -> Option<String> {
        let progress = self.progress.as_ref()?;
        let now = Instant::now();
        progress.next.get().filter(|next| now >= *next)?;
        progress.next.set(now.checked_add(limits::PROGRESS));
        let seconds = self.started.elapsed().as_secs_f64();
        let mut message = format!("running for {seconds:.0} s");
        let line = progress.line.borrow();
        // Only whole lines are told: what is secret in them can be recognized.
        let line = secrets.mask(&String::from_utf8_lossy(&line)).into_owned();
        if !line.is_empty() {
            message.push_str(": ");
            let line = text::one_line(&line, limits::SUMMARY_CHARS);
            message.push_str(&text::printable(&line));
        }
        let tenths = (seconds * 10.0).round() / 10.0;
        let params = json!({"progress": tenths, "message": message}).to_string();
        let params = params.strip_prefix('{').unwrap_or_default();
        let token = &progress.token;
        Some(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},{params}}}"#
        ))
    }
}
