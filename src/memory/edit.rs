//! Edits of a facts file: lines are inserted, deleted or replaced. All other bytes stay.

use std::ops::Range;

use crate::limits;
use crate::memory::facts::{Facts, is_date};
use crate::memory::scan::text;

/// A position for a new line, the preferred one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InsertPosition {
    /// After the last item of the section.
    AfterLastItem,
    /// After all text of the section.
    AfterText,
    /// In a new section at the end of the file.
    NewSection,
}

/// All positions.
pub(super) const INSERT_POSITIONS: [InsertPosition; 3] =
    [InsertPosition::AfterLastItem, InsertPosition::AfterText, InsertPosition::NewSection];

/// A set of line changes that are applied together.
pub(super) struct LineEdit<'f> {
    facts: &'f Facts,
    /// The replacements of lines; each text ends with a line break.
    changes: Vec<(Range<usize>, String)>,
    end_of_line: &'static str,
    time: String,
}

impl LineEdit<'_> {
    /// An edit at this time, which becomes the time of the last change.
    pub(super) fn new<'f>(facts: &'f Facts, time: &str) -> LineEdit<'f> {
        let first = facts.scan.lines.first();
        let is_crlf = first.is_some_and(|line| facts.bytes[line.clone()].ends_with(b"\r\n"));
        LineEdit {
            facts,
            changes: Vec::new(),
            end_of_line: if is_crlf { "\r\n" } else { "\n" },
            time: time.to_string(),
        }
    }

    fn line(&self, number: usize) -> &str {
        let scan = &self.facts.scan;
        scan.lines.get(number).map_or("", |line| text(&self.facts.bytes, line))
    }

    /// Replaces these lines by one line.
    pub(super) fn replace(&mut self, lines: &Range<usize>, line: &str) {
        let end = self.end_of_line;
        self.changes.push((lines.clone(), format!("{line}{end}")));
    }

    /// Deletes lines.
    pub(super) fn delete(&mut self, lines: &Range<usize>) {
        self.changes.push((lines.clone(), String::new()));
    }

    /// Adds a line to its section. The caller checks that indented text below does not become
    /// part of it.
    pub(super) fn add(&mut self, important: bool, line: &str, place: InsertPosition) {
        if self.facts.bytes.is_empty() {
            let (above, below) = if important { (line, "") } else { ("", line) };
            let list = |line: &str| {
                if line.is_empty() { String::new() } else { format!("\n{line}\n") }
            };
            let time = &self.time;
            let text = format!(
                "---\ntype: memory\ncreated: {time}\nmodified: {time}\n---\n\n# Key Facts\n\n## Important\n{}\n## Recent\n{}",
                list(above),
                list(below)
            );
            self.changes.push((0..0, text));
            return;
        }
        let facts = self.facts;
        let end = self.end_of_line;
        let name = if important { "Important" } else { "Recent" };
        let heading_line = self.heading_line(name).filter(|_| place != InsertPosition::NewSection);
        let Some(heading_line) = heading_line else {
            let at = match place {
                InsertPosition::NewSection => facts.scan.end,
                _ => self.new_section_line(important),
            };
            let is_filled = |at: usize| !self.line(at).trim().is_empty();
            let before = if at > 0 && is_filled(at - 1) { end } else { "" };
            let after = if is_filled(at) { end } else { "" };
            let text = format!("{before}## {name}{end}{end}{line}{end}{after}");
            self.changes.push((at..at, text));
            return;
        };
        // Up to the next heading of any level.
        let next = facts.scan.headings.iter().find(|(at, ..)| *at > heading_line);
        let next = next.map_or(facts.scan.end.max(heading_line + 1), |(at, ..)| *at);
        let own = |item: &&Range<usize>| item.start > heading_line && item.start < next;
        let last = facts.scan.items.iter().rev().find(own);
        let last = last.filter(|_| place == InsertPosition::AfterLastItem);
        let (at, before) = match last {
            Some(item) => (item.end, ""),
            None => {
                let filled =
                    (heading_line..next).rev().find(|at| !self.line(*at).trim().is_empty());
                (filled.unwrap_or(heading_line) + 1, end)
            }
        };
        let is_close = last.is_none() && at == next && at < facts.scan.lines.len();
        let after = if is_close { end } else { "" };
        self.changes.push((at..at, format!("{before}{line}{end}{after}")));
    }

    /// The line of the first heading of a section.
    fn heading_line(&self, name: &str) -> Option<usize> {
        let mut headings = self.facts.scan.headings.iter();
        let found =
            headings.find(|(_, level, text)| *level == 2 && text.eq_ignore_ascii_case(name));
        found.map(|(at, ..)| *at)
    }

    /// The line before which a missing section is added: `Important` before `Recent`,
    /// `Recent` after `Important`, else at the end.
    fn new_section_line(&self, important: bool) -> usize {
        let scan = &self.facts.scan;
        if important {
            return self.heading_line("recent").unwrap_or(scan.end);
        }
        let section_end = |at: usize| {
            let mut headings = scan.headings.iter();
            let next = headings.find(|(other, level, _)| *other > at && *level <= 2);
            next.map_or(scan.end, |(at, ..)| *at)
        };
        self.heading_line("important").map_or(scan.end, section_end)
    }

    /// Updates the line `modified:` of the frontmatter.
    fn update_modified(&mut self) {
        let Some(front) = self.facts.scan.frontmatter.clone() else {
            return;
        };
        let mut lines = front.clone();
        let Some(at) = lines.find(|at| self.line(*at).starts_with("modified:")) else {
            let line = format!("modified: {}", self.time);
            let last = front.end - 1;
            self.replace(&(last..last), &line);
            return;
        };
        let old = self.line(at);
        let dates =
            old.char_indices().filter_map(|(from, _)| Some((from, old.get(from..from + 10)?)));
        let line = match dates.clone().find(|(_, date)| is_date(date)) {
            // Quotes and comments around the date stay.
            Some((from, _)) => {
                let (before, after_date) = (&old[..from], without_clock(&old[from + 10..]));
                format!("{before}{}{after_date}", self.time)
            }
            None => format!("modified: {}", self.time),
        };
        if line != old {
            self.replace(&(at..at + 1), &line);
        }
    }

    /// Returns the bytes of the edited file.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.update_modified();
        self.changes.sort_by_key(|(lines, _)| (lines.start, lines.end));
        let (bytes, lines) = (&self.facts.bytes, &self.facts.scan.lines);
        let start = |line: usize| lines.get(line).map_or(bytes.len(), |line| line.start);
        let mut edited = Vec::with_capacity(bytes.len() + limits::FACT_BYTES);
        let mut from = 0;
        for (place, text) in &self.changes {
            edited.extend_from_slice(&bytes[from..start(place.start)]);
            // The last line may have no line break.
            if !edited.is_empty() && !edited.ends_with(b"\n") && !text.is_empty() {
                edited.extend_from_slice(self.end_of_line.as_bytes());
            }
            edited.extend_from_slice(text.as_bytes());
            from = start(place.end);
        }
        edited.extend_from_slice(&bytes[from..]);
        edited
    }
}

/// The text after a date, without the time of day.
fn without_clock(after_date: &str) -> &str {
    let clock = after_date.strip_prefix(['T', 't', ' ']).unwrap_or_default();
    if !clock.starts_with(|c: char| c.is_ascii_digit()) {
        return after_date;
    }
    let rest = clock.trim_start_matches(|c: char| c.is_ascii_digit() || ":.+-Zz".contains(c));
    let zone = rest.strip_prefix(' ').filter(|zone| zone.starts_with(['+', '-']));
    zone.map_or(rest, |zone| {
        zone.trim_start_matches(|c: char| c.is_ascii_digit() || ":+-".contains(c))
    })
}
