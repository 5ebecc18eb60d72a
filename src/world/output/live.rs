//! The live line on a terminal: it shows what goes on, and the next output takes its place.

use std::io::{self, IsTerminal, Write};

use super::tone::{DIM, PLAIN};
use super::{Output, Verbosity};
use crate::text::{fitting, printable};
use crate::world::terminal;

/// Returns to the start of the line and deletes it.
const CLEAR: &str = "\r\x1b[K";

impl Output {
    /// Whether a live line can be shown: standard error is a terminal that can delete a line.
    pub(crate) fn has_live_line(&self) -> bool {
        let is_shown = self.verbosity == Verbosity::Normal && !self.stdout.is_server();
        is_shown && self.features.can_move && io::stderr().is_terminal()
    }

    /// Whether the user can be asked: standard input and standard error are terminals.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Shows the text as the live line, in place of the last one.
    pub(crate) fn show_live(&mut self, text: &str) {
        if !self.has_live_line() {
            return;
        }
        self.close_line();
        let text = self.masked(text);
        let text = printable(&text).replace('\t', " ");
        let text = text.lines().next().unwrap_or_default();
        // A full line would move the cursor to the next one.
        let text = fitting(text, terminal::columns(io::stderr()).saturating_sub(1));
        let (on, off) = if self.color { (DIM, PLAIN) } else { ("", "") };
        let _ = io::stderr().write_all(format!("{CLEAR}{on}{text}{off}").as_bytes());
        self.is_live_line_shown = true;
    }

    /// Deletes the live line.
    pub(crate) fn clear_live(&mut self) {
        if std::mem::take(&mut self.is_live_line_shown) {
            let _ = io::stderr().write_all(CLEAR.as_bytes());
        }
    }
}
