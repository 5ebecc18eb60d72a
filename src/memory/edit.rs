//! Changes of a file of facts: lines that come, go, or take the place of others.
//! Every other byte stays as it is.

use std::ops::Range;

use crate::limits;
use crate::memory::facts::{Facts, is_date};
use crate::memory::scan::text;
use crate::order;

/// Where a new line may stand, what is preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InsertPosition {
    /// Behind the last item of the section.
    Behind,
    /// Behind all that a person says in the section.
    Below,
    /// In a section of its own at the end.
    End,
}

/// Every place.
pub(super) const PLACES: [InsertPosition; 3] =
    [InsertPosition::Behind, InsertPosition::Below, InsertPosition::End];

/// Changes of lines, done all at once.
pub(super) struct LineEdit<'f> {
    facts: &'f Facts,
    /// What takes the place of these lines; the text ends with a line break.
    changes: Vec<(Range<usize>, String)>,
    end_of_line: &'static str,
    time: String,
}

impl LineEdit<'_> {
    /// The time of the last change becomes this one.
    pub(super) fn of<'f>(facts: &'f Facts, time: &str) -> LineEdit<'f> {
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

    /// Puts one line in place of these.
    pub(super) fn replace(&mut self, lines: &Range<usize>, line: &str) {
        let end = self.end_of_line;
        self.changes.push((lines.clone(), format!("{line}{end}")));
    }

    /// Takes lines away.
    pub(super) fn cut(&mut self, lines: &Range<usize>) {
        self.changes.push((lines.clone(), String::new()));
    }

    /// Adds a line to its section. What is indented below may become a part of
    /// it: the caller looks.
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
        let heading = self.heading(name).filter(|_| place != InsertPosition::End);
        let Some(heading) = heading else {
            let at = match place {
                InsertPosition::End => facts.scan.end,
                _ => self.place_of_section(important),
            };
            let is_filled = |at: usize| !self.line(at).trim().is_empty();
            let before = if at > 0 && is_filled(at - 1) { end } else { "" };
            let after = if is_filled(at) { end } else { "" };
            let text = format!("{before}## {name}{end}{end}{line}{end}{after}");
            self.changes.push((at..at, text));
            return;
        };
        // Up to the next heading, of whatever level.
        let next = facts.scan.headings.iter().find(|(at, ..)| *at > heading);
        let next = next.map_or(facts.scan.end.max(heading + 1), |(at, ..)| *at);
        let own = |item: &&Range<usize>| item.start > heading && item.start < next;
        let last = facts.scan.items.iter().rev().find(own);
        let last = last.filter(|_| place == InsertPosition::Behind);
        let (at, before) = match last {
            Some(item) => (item.end, ""),
            None => {
                let filled = (heading..next).rev().find(|at| !self.line(*at).trim().is_empty());
                (filled.unwrap_or(heading) + 1, end)
            }
        };
        let is_close = last.is_none() && at == next && at < facts.scan.lines.len();
        let after = if is_close { end } else { "" };
        self.changes.push((at..at, format!("{before}{line}{end}{after}")));
    }

    /// The line of the first heading of a section.
    fn heading(&self, name: &str) -> Option<usize> {
        let mut headings = self.facts.scan.headings.iter();
        let found =
            headings.find(|(_, level, text)| *level == 2 && text.eq_ignore_ascii_case(name));
        found.map(|(at, ..)| *at)
    }

    /// Before which line a missing section is added: `Important` before `Recent`,
    /// `Recent` behind `Important`, else at the end.
    fn place_of_section(&self, important: bool) -> usize {
        let scan = &self.facts.scan;
        if important {
            return self.heading("recent").unwrap_or(scan.end);
        }
        let behind = |at: usize| {
            let mut headings = scan.headings.iter();
            let next = headings.find(|(other, level, _)| *other > at && *level <= 2);
            next.map_or(scan.end, |(at, ..)| *at)
        };
        self.heading("important").map_or(scan.end, behind)
    }

    /// The line `modified:` of the frontmatter, with the time in it.
    fn touch(&mut self) {
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
            // Quotes and comments around it stay.
            Some((from, _)) => {
                let (before, behind) = (&old[..from], without_clock(&old[from + 10..]));
                format!("{before}{}{behind}", self.time)
            }
            None => format!("modified: {}", self.time),
        };
        if line != old {
            self.replace(&(at..at + 1), &line);
        }
    }

    /// The bytes of the changed file.
    pub(super) fn done(mut self) -> Vec<u8> {
        self.touch();
        order::sort_by_key(&mut self.changes, |(lines, _)| (lines.start, lines.end));
        let (bytes, lines) = (&self.facts.bytes, &self.facts.scan.lines);
        let start = |line: usize| lines.get(line).map_or(bytes.len(), |line| line.start);
        let mut done = Vec::with_capacity(bytes.len() + limits::FACT_BYTES);
        let mut from = 0;
        for (place, text) in &self.changes {
            done.extend_from_slice(&bytes[from..start(place.start)]);
            // A line that was the last, without a line break.
            if !done.is_empty() && !done.ends_with(b"\n") && !text.is_empty() {
                done.extend_from_slice(self.end_of_line.as_bytes());
            }
            done.extend_from_slice(text.as_bytes());
            from = start(place.end);
        }
        done.extend_from_slice(&bytes[from..]);
        done
    }
}

/// What stands behind a date, without the time of day that belongs to it.
fn without_clock(behind: &str) -> &str {
    let clock = behind.strip_prefix(['T', 't', ' ']).unwrap_or_default();
    if !clock.starts_with(|c: char| c.is_ascii_digit()) {
        return behind;
    }
    let rest = clock.trim_start_matches(|c: char| c.is_ascii_digit() || ":.+-Zz".contains(c));
    let zone = rest.strip_prefix(' ').filter(|zone| zone.starts_with(['+', '-']));
    zone.map_or(rest, |zone| {
        zone.trim_start_matches(|c: char| c.is_ascii_digit() || ":+-".contains(c))
    })
}
