//! The text and the reasoning of a model, as they stream to a terminal.

use std::io::{self, Write};

use super::Output;
use super::markdown::MarkdownColors;
use super::tone::{DIM, PLAIN};
use base::text::{printable, without_controls};

impl Output {
    pub(super) fn stream_text(&mut self, text: &str) {
        self.end_reasoning();
        let text = self.text_redactor.add(text, &self.secrets);
        let text = self.terminal_filter.add(&text);
        self.write_shown(&text);
    }

    pub(super) fn write_shown(&mut self, text: &str) {
        let shown = without_controls(text);
        if !shown.is_empty() {
            self.is_line_open = !shown.ends_with('\n');
            match &mut self.markdown {
                Some(colors) => self.stdout.write(&colors.add(&shown)),
                None => self.stdout.write(&shown),
            }
        }
    }

    pub(super) fn stream_reasoning(&mut self, text: &str) {
        if !self.is_reasoning {
            self.close_line();
        }
        let mark = if self.is_reasoning { "" } else { "(thinking) " };
        self.is_reasoning = true;
        let text = self.reasoning_redactor.add(text, &self.secrets);
        if !mark.is_empty() || !text.is_empty() {
            self.write_reasoning(mark, &text);
        }
    }

    pub(super) fn write_reasoning(&self, mark: &str, text: &str) {
        let (on, off) = if self.color { (DIM, PLAIN) } else { ("", "") };
        let shown = format!("{on}{mark}{}{off}", printable(text));
        let _ = io::stderr().write_all(shown.as_bytes());
    }

    pub(super) fn end_reasoning(&mut self) {
        if std::mem::take(&mut self.is_reasoning) {
            let held = self.reasoning_redactor.end(&self.secrets);
            if !held.is_empty() {
                self.write_reasoning("", held.trim_end_matches('\r'));
            }
            let _ = io::stderr().write_all(b"\n");
        }
    }

    pub(super) fn close_line(&mut self) {
        self.clear_live();
        self.end_reasoning();
        let held = self.text_redactor.end(&self.secrets);
        let held =
            self.terminal_filter.add(held.trim_end_matches('\r')) + &self.terminal_filter.end();
        self.write_shown(&held);
        let rest = self.markdown.as_mut().map(MarkdownColors::end).unwrap_or_default();
        if !rest.is_empty() {
            self.stdout.write(&rest);
        }
        if std::mem::take(&mut self.is_line_open) {
            self.stdout.write("\n");
        }
    }
}
