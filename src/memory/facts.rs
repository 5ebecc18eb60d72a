//! The format of a facts file, and its changes.
//!
//! The file is Markdown and belongs to the user. A fact is a list item below `##
//! Important` or `## Recent`:
//! ```text
//! - [2026-11-22] the text #tag <!-- 09:30:05+01:00, source: conversation -->
//! - the text #important <!-- 2026-11-22T09:30:05+01:00, source: conversation -->
//! ```
//!
//! The time of day may be missing, because older versions did not write it.
//!
//! A change affects only the lines of one fact and the line `modified:`; all other bytes
//! stay. This module does no I/O.

use std::ops::Range;

use crate::limits;
use crate::memory::edit::{INSERT_POSITIONS, InsertPosition, LineEdit};
use crate::memory::scan::{LineScan, marker, scan, text};
use crate::memory::similar::is_version;
use crate::text::{counted, sendable, truncate};

/// The tag of important facts.
pub(crate) const IMPORTANT_TAG: &str = "#important";

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The text as one line, with hashtags.
    pub content: String,
    /// Whether it is below `## Important` or has the tag.
    pub important: bool,
    /// The time of creation: RFC 3339, or `YYYY-MM-DD` without a time of day; `None` if the
    /// user wrote no date.
    pub created: Option<String>,
    /// The conversation in which it was stored.
    pub source: Option<String>,
    /// The number of its first line, from 1.
    pub line: usize,
    lines: Range<usize>,
    /// Whether it has the program's own form, so that rewriting it loses nothing.
    pub(super) is_plain: bool,
    is_in_important: bool,
    /// The text before the content: the indentation and the list marker.
    lead: String,
}

impl Fact {
    /// The line for the system prompt, with about `most` bytes of content.
    fn prompt_line(&self, most: usize) -> String {
        let content = truncate(&self.content, most);
        match self.date() {
            Some(date) => format!("- [{date}] {content}\n"),
            None => format!("- {content}\n"),
        }
    }

    /// The date of creation.
    pub fn date(&self) -> Option<&str> {
        self.created.as_deref().map(|created| split_time(created).0)
    }

    /// The parts that a change of another fact must not affect.
    fn unaffected_parts(&self) -> (&str, bool, Option<&str>) {
        (&self.content, self.important, self.created.as_deref())
    }

    /// The hashtags, without `#`.
    pub fn tags(&self) -> Vec<&str> {
        let words = self.content.split_whitespace();
        let mut tags = Vec::new();
        for tag in words.filter_map(tag) {
            if tag.contains(char::is_alphabetic) && !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        tags
    }
}

/// A fact to store.
#[derive(Clone, Copy, Debug)]
pub struct NewFact<'n> {
    /// The text, normalized by [`normalize_content`].
    pub content: &'n str,
    /// Whether it is important.
    pub important: bool,
    /// The conversation that it comes from.
    pub source: &'n str,
    /// The local time in RFC 3339.
    pub time: &'n str,
    /// The fact of the same file that it replaces.
    pub replaced: Option<&'n Fact>,
}

/// The effect of a new fact on the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactChange {
    /// The fact is already stored; nothing changes.
    Known,
    /// The fact is added.
    Added,
    /// The fact replaces this one.
    Replaced(Box<Fact>),
}

/// A parsed facts file.
#[derive(Debug)]
pub struct Facts {
    pub(super) bytes: Vec<u8>,
    pub(super) scan: LineScan,
    /// All facts: the important ones first, then the others, both in the order of the file.
    all: Vec<Fact>,
}

impl Facts {
    /// Parses a facts file. Unless it is empty, its frontmatter must say `type: memory`; the
    /// error is the cause.
    pub fn parse(bytes: Vec<u8>) -> Result<Facts, &'static str> {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace();
        let bare = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        if bare.iter().all(is_blank) {
            let (bytes, scan, all) = (Vec::new(), LineScan::default(), Vec::new());
            return Ok(Facts { bytes, scan, all });
        }
        let scan = scan(&bytes);
        let front = scan.frontmatter.clone().unwrap_or_default();
        let is_memory = scan.lines[front].iter().any(|line| {
            let value = text(&bytes, line).strip_prefix("type:");
            let value = value.map(|value| value.split(" #").next().unwrap_or_default());
            value.is_some_and(|value| value.trim().trim_matches(['"', '\'']) == "memory")
        });
        if !is_memory {
            return Err("it has no frontmatter with `type: memory`, so it is not a facts file");
        }
        let mut all: Vec<Fact> =
            scan.items.iter().filter_map(|item| parse_fact(&bytes, &scan, item)).collect();
        all.sort_by_key(|fact| !fact.important);
        Ok(Facts { bytes, scan, all })
    }

    /// All facts. The number of a fact is its position, from 1.
    pub fn all(&self) -> &[Fact] {
        &self.all
    }

    /// Stores a new fact and returns the bytes of the file. The new fact replaces the named
    /// one, or else an older version. All other facts stay unchanged; the error says why this
    /// is not possible.
    pub fn with_fact(&self, new: &NewFact<'_>) -> Result<(FactChange, Vec<u8>), String> {
        let important = new.important || has_tag(new.content);
        let is_same = |fact: &&Fact| without_tag(&fact.content) == without_tag(new.content);
        let same = self.all.iter().filter(is_same);
        let is_there = |fact: &Fact| fact.important || !important;
        // A different source alone is no reason to change the user's text.
        let is_known = |fact: &Fact| {
            let has_source = fact.is_plain && fact.source.is_some();
            is_there(fact) && !(has_source && fact.source.as_deref() != Some(&stored_source(new)))
        };
        let (mut known, mut other) = (same.clone(), same);
        match new.replaced {
            // The new fact is already stored, in addition to the replaced one.
            Some(old) if other.any(|fact| !std::ptr::eq(old, fact) && is_there(fact)) => {
                let mut edit = LineEdit::new(self, new.time);
                edit.delete(&old.lines);
                return Ok((FactChange::Replaced(Box::new(old.clone())), edit.into_bytes()));
            }
            None if known.any(is_known) => return Ok((FactChange::Known, self.bytes.clone())),
            _ => {}
        }
        if let Some(old) = new.replaced.or_else(|| self.older_version(new.content)) {
            let is_moved = important && !old.important;
            let places = INSERT_POSITIONS.iter().filter(|_| is_moved);
            let mut places = places.map(|place| Some(*place)).chain([None]);
            if let Some(bytes) = places.find_map(|place| self.try_change(new, Some(old), place)) {
                return Ok((FactChange::Replaced(Box::new(old.clone())), bytes));
            }
        }
        let mut places = INSERT_POSITIONS.iter().filter(|_| new.replaced.is_none());
        let added = places.find_map(|place| self.try_change(new, None, Some(*place)));
        let bytes = added.ok_or_else(|| match &self.scan.closing {
            Some(closing) => format!(
                "it ends in an open block: close the block of line {} with a line `{closing}`",
                self.scan.end + 1
            ),
            None => "a new fact would become part of indented text".to_string(),
        })?;
        Ok((FactChange::Added, bytes))
    }

    /// The bytes with a new fact at this position, or in place of the old one. `None` if
    /// Markdown would then read any other part differently, for example because indented text
    /// below an item belongs to it.
    fn try_change(
        &self,
        new: &NewFact<'_>,
        old: Option<&Fact>,
        place: Option<InsertPosition>,
    ) -> Option<Vec<u8>> {
        let important =
            new.important || has_tag(new.content) || old.is_some_and(|old| old.important);
        // A different fact in its place has its own time of creation.
        let old_version = old.filter(|old| is_version(new.content, &old.content));
        let created = old_version.map_or(Some(new.time), |old| old.created.as_deref());
        let mut edit = LineEdit::new(self, new.time);
        match (old, place) {
            (old, Some(place)) => {
                let line = format_line(new, important, created, important, "");
                if let Some(old) = old {
                    edit.delete(&old.lines);
                }
                edit.add(important, &line, place);
            }
            (Some(old), None) => {
                let line = format_line(new, important, created, old.is_in_important, &old.lead);
                edit.replace(&old.lines, &line);
            }
            (None, None) => return None,
        }
        let after = Facts::parse(edit.into_bytes()).ok()?;
        let mut content = new.content.to_string();
        if important && !has_tag(&content) {
            content.push(' ');
            content.push_str(IMPORTANT_TAG);
        }
        let is_left = |fact: &&Fact| !old.is_some_and(|old| std::ptr::eq(old, *fact));
        let mut expected: Vec<_> =
            self.all.iter().filter(is_left).map(Fact::unaffected_parts).collect();
        expected.push((&content, important, created));
        let mut there: Vec<_> = after.all.iter().map(Fact::unaffected_parts).collect();
        expected.sort();
        there.sort();
        (expected == there).then_some(after.bytes)
    }

    /// Removes the fact with this number and returns it with the bytes of the file.
    pub fn without_fact(&self, number: usize, time: &str) -> Option<(&Fact, Vec<u8>)> {
        let fact = self.all.get(number.checked_sub(1)?)?;
        let mut edit = LineEdit::new(self, time);
        edit.delete(&fact.lines);
        Some((fact, edit.into_bytes()))
    }

    /// The facts for the system prompt, in about `most` bytes: the important ones first, then
    /// the others, both from newest to oldest. A quarter is reserved for the others, and no
    /// fact takes more than a quarter. Empty without facts.
    pub fn for_prompt(&self, most: usize) -> String {
        let important = self.all.partition_point(|fact| fact.important);
        let lines = |facts: &[Fact]| -> Vec<String> {
            // Of facts with the same time, the last is the newest.
            let mut facts: Vec<&Fact> = facts.iter().rev().collect();
            facts.sort_by(|one, other| other.created.cmp(&one.created));
            facts.into_iter().map(|fact| fact.prompt_line(most / 4)).collect()
        };
        let (important, others) = (lines(&self.all[..important]), lines(&self.all[important..]));
        let kept = others.iter().map(String::len).sum::<usize>().min(most / 4);
        let mut text = String::new();
        let mut left_out = 0;
        for (lines, most) in [(important, most - kept), (others, most)] {
            let mut is_full = false;
            for line in lines {
                is_full |= text.len() + line.len() > most;
                if is_full {
                    left_out += 1;
                } else {
                    text.push_str(&line);
                }
            }
        }
        if left_out > 0 {
            text.push_str(&format!("… and {}\n", counted(left_out, "more fact")));
        }
        text
    }
}

/// Normalizes the content of a fact: one line, without control characters and comment marks.
/// May be empty.
pub fn normalize_content(text: &str) -> String {
    let clean = sendable(text);
    let words = clean.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    line.replace("-->", "-- >").replace("<!--", "< !--")
}

/// The same for a new fact, with the tag of important facts at most once.
pub(crate) fn normalize_new_content(text: &str) -> String {
    let content = normalize_content(text);
    let mut is_tagged = false;
    let is_kept = |word: &&str| !is_tag(word) || !std::mem::replace(&mut is_tagged, true);
    let words: Vec<&str> = content.split_whitespace().filter(is_kept).collect();
    words.join(" ")
}

/// The hashtag in a word, without `#` and the punctuation after it.
fn tag(word: &str) -> Option<&str> {
    let tag = word.strip_prefix('#')?;
    Some(tag.trim_end_matches(|c: char| !c.is_alphanumeric()))
}

/// Whether a word is the tag of important facts.
fn is_tag(word: &str) -> bool {
    tag(word).is_some_and(|tag| tag.eq_ignore_ascii_case(&IMPORTANT_TAG[1..]))
}

/// Whether a text has the tag of important facts.
pub(crate) fn has_tag(content: &str) -> bool {
    content.split_whitespace().any(is_tag)
}

/// A text without that tag.
pub(crate) fn without_tag(content: &str) -> String {
    let words = content.split_whitespace();
    let words: Vec<&str> = words.filter(|word| !is_tag(word)).collect();
    words.join(" ")
}

/// The source as it is stored.
fn stored_source(new: &NewFact<'_>) -> String {
    let source = normalize_content(&new.source.replace(['<', '>'], ""));
    truncate(&source, limits::FACT_SOURCE_BYTES).into_owned()
}

/// Formats the line of a fact without a line break. `below_important`: the line is in that
/// section.
fn format_line(
    new: &NewFact<'_>,
    important: bool,
    created: Option<&str>,
    below_important: bool,
    lead: &str,
) -> String {
    let source = stored_source(new);
    let lead = if lead.is_empty() { "- " } else { lead };
    let tag = if important && !has_tag(new.content) {
        format!(" {IMPORTANT_TAG}")
    } else {
        String::new()
    };
    let text = new.content;
    match created.map(split_time) {
        Some((date, "")) if below_important => {
            format!("{lead}{text}{tag} <!-- {date}, source: {source} -->")
        }
        Some((date, clock)) if below_important => {
            format!("{lead}{text}{tag} <!-- {date}T{clock}, source: {source} -->")
        }
        Some((date, "")) => format!("{lead}[{date}] {text}{tag} <!-- source: {source} -->"),
        Some((date, clock)) => {
            format!("{lead}[{date}] {text}{tag} <!-- {clock}, source: {source} -->")
        }
        None => format!("{lead}{text}{tag} <!-- source: {source} -->"),
    }
}

/// Parses a list item as a fact, if it is in one of the two sections.
fn parse_fact(bytes: &[u8], scan: &LineScan, item: &Range<usize>) -> Option<Fact> {
    let is_in_important = match section_name(scan, item.start)? {
        text if text.eq_ignore_ascii_case("important") => true,
        text if text.eq_ignore_ascii_case("recent") => false,
        _ => return None,
    };
    let lines = &scan.lines[item.clone()];
    // Items that are not text are not shown.
    let is_text = |line: &Range<usize>| std::str::from_utf8(&bytes[line.clone()]).is_ok();
    if !lines.iter().all(is_text) {
        return None;
    }
    let first = text(bytes, lines.first()?);
    let inner = first.trim_start_matches(' ');
    let indent = first.len() - inner.len();
    let lead = &first[..indent + marker(inner)?.min(inner.len())];
    let mut body = first[lead.len()..].to_string();
    for line in &lines[1..] {
        body.push(' ');
        body.push_str(text(bytes, line).trim());
    }
    let body = body.trim();
    let (body, mark) = match body.strip_suffix("-->").and_then(|rest| rest.rsplit_once("<!--")) {
        Some((body, mark)) => (body.trim_end(), FactComment::parse(mark.trim())),
        None => (body, Some(FactComment::default())),
    };
    let is_known = mark.is_some();
    let mark = mark.unwrap_or_default();
    let dated = body.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (date, body) = match dated {
        Some((date, rest)) if mark.date.is_none() && is_date(date) => (Some(date), rest.trim()),
        _ => (mark.date, body),
    };
    let created = date.map(|date| match mark.clock {
        Some(clock) => format!("{date}T{clock}"),
        None => date.to_string(),
    });
    let content = normalize_content(body);
    let is_task = ["[ ]", "[x]", "[X]"].iter().any(|task| body.starts_with(task));
    (!content.is_empty()).then(|| Fact {
        important: is_in_important || has_tag(&content),
        created,
        source: mark.source.map(str::to_string),
        line: item.start + 1,
        lines: item.clone(),
        is_plain: is_known
            && !is_task
            && lines.len() == 1
            && !lead.starts_with(|c: char| c.is_ascii_digit())
            && content == body,
        is_in_important,
        lead: lead.to_string(),
        content,
    })
}

/// The text of the second-level heading above a line.
fn section_name(scan: &LineScan, line: usize) -> Option<&str> {
    let above = scan.headings.iter().rev();
    let mut above = above.filter(|(at, level, _)| *at < line && *level <= 2);
    let (_, level, text) = above.next()?;
    (*level == 2).then_some(text)
}

/// The contents of the comment after a fact.
#[derive(Default)]
struct FactComment<'m> {
    date: Option<&'m str>,
    /// The time of day with its offset from UTC.
    clock: Option<&'m str>,
    source: Option<&'m str>,
}

impl FactComment<'_> {
    /// Parses a comment; `None` for one that the user wrote.
    fn parse(text: &str) -> Option<FactComment<'_>> {
        let (time, behind) = text.split_once(',').unwrap_or((text, ""));
        let (date, clock) = match split_time(time) {
            (date, "") if is_date(date) => (Some(date), None),
            (date, clock) if is_date(date) && is_clock(clock) => (Some(date), Some(clock)),
            _ if is_clock(time) => (None, Some(time)),
            _ => (None, None),
        };
        let is_timed = date.or(clock).is_some();
        let rest = if is_timed { behind.trim_start() } else { text };
        let source = rest.strip_prefix("source:").map(str::trim);
        let mark = FactComment { date, clock, source };
        (source.is_some() || rest.is_empty()).then_some(mark)
    }
}

/// Splits a time into date and time of day; the second is `""` if it is missing.
fn split_time(time: &str) -> (&str, &str) {
    time.split_once('T').unwrap_or((time, ""))
}

/// Whether the text is `HH:MM:SS` with an offset from UTC.
fn is_clock(text: &str) -> bool {
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let shape: String = text.chars().map(digits).collect();
    ["00:00:00+00:00", "00:00:00-00:00"].contains(&shape.as_str())
}

/// Whether it is `YYYY-MM-DD`.
pub(crate) fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}
