//! A fact and its line in the facts file:
//! ```text
//! - [2026-11-22] the text #tag <!-- 09:30:05+01:00, source: conversation -->
//! - the text #important <!-- 2026-11-22T09:30:05+01:00, source: conversation -->
//! ```
//!
//! The first form is below `## Recent`, the second below `## Important`. The time of day may be
//! missing, because older versions did not write it, and so may everything but the text.

use base::limits;
use base::text::{sendable, truncate};

/// The tag of important facts.
pub const IMPORTANT_TAG: &str = "#important";

/// A section of the file that contains facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Important,
    Recent,
}

impl Section {
    /// The heading.
    pub(super) fn name(self) -> &'static str {
        match self {
            Section::Important => "Important",
            Section::Recent => "Recent",
        }
    }

    /// The section with this heading.
    pub(super) fn named(name: &str) -> Option<Section> {
        let mut all = [Section::Important, Section::Recent].into_iter();
        all.find(|section| section.name().eq_ignore_ascii_case(name))
    }
}

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
    /// The number of its line, from 1.
    pub line: usize,
    pub(super) section: Section,
    /// The list marker, with the blanks before it.
    pub(super) marker: String,
    /// Whether it has the program's own form, so that rewriting it loses nothing.
    pub(super) is_plain: bool,
}

impl Fact {
    /// Parses a line with this number, if it is one of a list.
    pub(super) fn parse(text: &str, section: Section, line: usize) -> Option<Fact> {
        let marker = list_marker(text)?;
        let body = text[marker.len()..].trim();
        let comment = body.strip_suffix("-->").and_then(|rest| rest.rsplit_once("<!--"));
        let (body, comment) = match comment {
            Some((body, comment)) => (body.trim_end(), FactComment::parse(comment.trim())),
            None => (body, Some(FactComment::default())),
        };
        let is_known = comment.is_some();
        let FactComment { time, source } = comment.unwrap_or_default();
        let dated = body.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (created, body) = match dated {
            Some((date, rest)) if is_date(date) && !time.is_some_and(starts_with_date) => {
                let clock = time.map_or_else(String::new, |clock| format!("T{clock}"));
                (Some(format!("{date}{clock}")), rest.trim())
            }
            _ => (time.filter(|time| starts_with_date(time)).map(String::from), body),
        };
        let content = normalize_content(body);
        let is_task = ["[ ]", "[x]", "[X]"].iter().any(|task| body.starts_with(task));
        let is_numbered = marker.ends_with(['.', ')']);
        let is_own_form = is_known && !is_task && !is_numbered;
        (!content.is_empty()).then(|| Fact {
            important: section == Section::Important || has_tag(&content),
            created,
            source: source.map(str::to_string),
            line,
            section,
            marker: marker.to_string(),
            is_plain: is_own_form && content == body,
            content,
        })
    }

    /// Formats the line without a line break.
    pub(super) fn to_line(&self) -> String {
        let created = self.created.as_deref().unwrap_or_default();
        let (date, time) = match self.section {
            Section::Important => (String::new(), created),
            Section::Recent if created.is_empty() => (String::new(), ""),
            Section::Recent => {
                let (date, clock) = created.split_once('T').unwrap_or((created, ""));
                (format!("[{date}] "), clock)
            }
        };
        let comma = if time.is_empty() { "" } else { ", " };
        let source = self.source.as_deref().unwrap_or_default();
        let (marker, content) = (&self.marker, &self.content);
        format!("{marker} {date}{content} <!-- {time}{comma}source: {source} -->")
    }

    /// The line for the system prompt, with about `most` bytes of content.
    pub(super) fn prompt_line(&self, most: usize) -> String {
        let content = truncate(&self.content, most);
        match self.date() {
            Some(date) => format!("- [{date}] {content}\n"),
            None => format!("- {content}\n"),
        }
    }

    /// The date of creation.
    pub fn date(&self) -> Option<&str> {
        self.created.as_deref().map(|created| created.split('T').next().unwrap_or_default())
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

/// The list marker at the start of a line, with the blanks before it.
fn list_marker(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let without_number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = without_number.len() < text.len();
    let marks: &[char] = if is_numbered { &['.', ')'] } else { &['-', '*', '+'] };
    let rest = without_number.strip_prefix(marks)?;
    rest.starts_with([' ', '\t']).then(|| &line[..line.len() - rest.len()])
}

/// The comment after a fact.
#[derive(Default)]
struct FactComment<'c> {
    /// A date, a time of day, or both.
    time: Option<&'c str>,
    source: Option<&'c str>,
}

impl FactComment<'_> {
    /// Parses a comment; `None` for one that the user wrote.
    fn parse(text: &str) -> Option<FactComment<'_>> {
        let (time, source) = match text.split_once("source:") {
            Some((time, source)) => (time.trim_end().trim_end_matches(','), Some(source.trim())),
            None => (text, None),
        };
        let is_time = match time.split_once('T') {
            Some((date, clock)) => is_date(date) && is_clock(clock),
            None => is_date(time) || is_clock(time),
        };
        let time = Some(time).filter(|time| !time.is_empty());
        (is_time || time.is_none()).then_some(FactComment { time, source })
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
pub(super) fn normalize_new_content(text: &str) -> String {
    let content = normalize_content(text);
    let mut is_tagged = false;
    let is_kept = |word: &&str| !is_tag(word) || !std::mem::replace(&mut is_tagged, true);
    let words: Vec<&str> = content.split_whitespace().filter(is_kept).collect();
    words.join(" ")
}

/// The source of a fact as it is stored.
pub(super) fn normalize_source(source: &str) -> String {
    let source = normalize_content(&source.replace(['<', '>'], ""));
    truncate(&source, limits::FACT_SOURCE_BYTES).into_owned()
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
pub fn has_tag(content: &str) -> bool {
    content.split_whitespace().any(is_tag)
}

/// A text without that tag.
pub(super) fn without_tag(content: &str) -> String {
    let words = content.split_whitespace();
    let words: Vec<&str> = words.filter(|word| !is_tag(word)).collect();
    words.join(" ")
}

/// Whether it is `YYYY-MM-DD`.
pub(super) fn is_date(text: &str) -> bool {
    shape(text) == "0000-00-00"
}

fn starts_with_date(time: &str) -> bool {
    is_date(time.split('T').next().unwrap_or_default())
}

/// Whether the text is `HH:MM:SS` with an offset from UTC.
fn is_clock(text: &str) -> bool {
    ["00:00:00+00:00", "00:00:00-00:00"].contains(&shape(text).as_str())
}

/// The text with a 0 in place of each digit.
fn shape(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}
