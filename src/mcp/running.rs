//! The state of the running tool call: its cancellation and its progress notifications.
//!
//! The progress of a script is unknown, so a notification contains the running time.

use std::cell::Cell;
use std::time::Instant;

use super::rpc::Id;
use base::limits;

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
}

impl RunningCall {
    /// Creates the state of a call that starts now.
    pub(super) fn new(id: Id, progress_token: Option<String>) -> RunningCall {
        let started = Instant::now();
        let progress = progress_token.map(|token| ProgressReport {
            token,
            next_time: Cell::new(started.checked_add(limits::PROGRESS_INTERVAL)),
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

    /// Returns the progress notification if it is time for one.
    pub(super) fn progress_message(&self) -> Option<String> {
        let progress = self.progress.as_ref()?;
        let now = Instant::now();
        progress.next_time.get().filter(|next| now >= *next)?;
        progress.next_time.set(now.checked_add(limits::PROGRESS_INTERVAL));
        let seconds = self.started.elapsed().as_secs_f64();
        let token = &progress.token;
        Some(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{seconds:.1},"message":"running for {seconds:.0} s"}}}}"#
        ))
    }
}
