//! The state of the running tool call: its cancellation and its progress notifications.
//!
//! The progress of a script is unknown, so a notification contains the running time
//! and the last line of output.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use serde_json::json;

use super::rpc::Id;
use crate::limits;
use crate::secret::Secrets;
use crate::text;
use crate::world::event_source::ScriptStream;
use crate::world::lines::{LineBuffer, LinePiece};

/// A running tool call.
pub(super) struct RunningCall {
    /// Id of the request.
    pub id: Id,
    is_cancelled: Cell<bool>,
    started: Instant,
    progress: Option<ProgressReport>,
}

struct ProgressReport {
    /// The client's progress token, as JSON.
    token: String,
    /// Time of the next notification; `None` if it cannot be represented.
    next_time: Cell<Option<Instant>>,
    /// Incomplete lines of both streams.
    streams: RefCell<[LineBuffer; 2]>,
    /// The last complete line of either stream.
    line: RefCell<Vec<u8>>,
}

impl RunningCall {
    /// Creates the state of a call that starts now.
    pub(super) fn new(id: Id, progress_token: Option<String>) -> RunningCall {
        let started = Instant::now();
        let progress = progress_token.map(|token| ProgressReport {
            token,
            next_time: Cell::new(started.checked_add(limits::PROGRESS_INTERVAL)),
            streams: RefCell::default(),
            line: RefCell::default(),
        });
        RunningCall { id, is_cancelled: Cell::new(false), started, progress }
    }

    /// Cancels the call, which then gets no response.
    pub(super) fn cancel(&self) {
        self.is_cancelled.set(true);
    }

    /// Whether the call was not cancelled.
    pub(super) fn is_active(&self) -> bool {
        !self.is_cancelled.get()
    }

    /// Returns the time of the next notification. For a cancelled call it is in the past,
    /// so that a program which starts after the cancellation is ended immediately.
    pub(super) fn next_notification(&self) -> Option<Instant> {
        if !self.is_active() {
            return Some(self.started);
        }
        self.progress.as_ref()?.next_time.get()
    }

    /// Adds output of the program.
    pub(super) fn add_output(&self, stream: ScriptStream, bytes: &[u8]) {
        let Some(progress) = &self.progress else {
            return;
        };
        let mut streams = progress.streams.borrow_mut();
        let lines = &mut streams[usize::from(stream == ScriptStream::Err)];
        lines.push(bytes);
        while let Some(piece) = lines.next_line(limits::LINE_BYTES) {
            if let LinePiece::Whole(line) = piece
                && !line.trim_ascii().is_empty()
            {
                progress.line.replace(line.to_vec());
            }
        }
    }

    /// Returns the progress notification if it is time for one.
    pub(super) fn progress_message(&self, secrets: &Secrets) -> Option<String> {
        let progress = self.progress.as_ref()?;
        let now = Instant::now();
        progress.next_time.get().filter(|next| now >= *next)?;
        progress.next_time.set(now.checked_add(limits::PROGRESS_INTERVAL));
        let seconds = self.started.elapsed().as_secs_f64();
        let mut message = format!("running for {seconds:.0} s");
        let line = progress.line.borrow();
        // Only complete lines are sent, because a part of a secret would not be found.
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
