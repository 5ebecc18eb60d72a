//! The file of facts: what stands in it, and how it is changed.
//!
//! A Markdown file that belongs to a person (R-FACT-1). A fact is an item of a
//! list below `## Important` or `## Recent`:
//!
//! ```text
//! - [2026-11-22] the text #tag <!-- 09:30:05+01:00, source: conversation -->
//! - the text #important <!-- 2026-11-22T09:30:05+01:00, source: conversation -->
//! ```
//!
//! The time of day may be missing: older versions wrote none.
//!
//! A change touches the lines of one fact and the line `modified:`; every other
//! byte stays (R-FACT-5). Nothing here reads or writes a file.

use std::ops::Range;

use crate::limits;
use crate::memory::edit::{InsertPosition, LineEdit, PLACES};
use crate::memory::near::is_version;
use crate::memory::scan::{LineScan, marker, scan, text};
use crate::order;
use crate::text::{counted, cut, sendable};

/// What makes a fact an important one.
pub(crate) const IMPORTANT_TAG: &str = "#important";

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The text in one line, hashtags included.
    pub content: String,
    /// It stands below `## Important`, or has the tag.
    pub important: bool,
    /// RFC 3339, or `YYYY-MM-DD` where the time of day is missing; `None` where a
    /// person wrote no date.
    pub created: Option<String>,
    /// The conversation that it comes from.
    pub source: Option<String>,
    /// The number of its first line, from 1.
    pub line: usize,
    lines: Range<usize>,
    /// It is written as a program would: nothing is lost when it is rewritten.
    pub(super) is_plain: bool,
    is_in_important: bool,
    /// What stands in front of its text: the indentation and the list's mark.
    lead: String,
}

impl Fact {
    /// As a model is told of it, in about so many bytes.
    fn told(&self, most: usize) -> String {
        let content = cut(&self.content, most);
        match self.date() {
            Some(date) => format!("- [{date}] {content}\n"),
            None => format!("- {content}\n"),
        }
    }

    /// The day of its creation.
    pub fn date(&self) -> Option<&str> {
        self.created.as_deref().map(|created| when(created).0)
    }

    /// What no change of another fact may touch.
    fn essence(&self) -> (&str, bool, Option<&str>) {
        (&self.content, self.important, self.created.as_deref())
    }

    /// The hashtags in it, without `#`.
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

/// What is to be written down.
#[derive(Clone, Copy, Debug)]
pub struct NewFact<'n> {
    /// The text, fit for a line: see [`content`].
    pub content: &'n str,
    /// Whether it is important.
    pub important: bool,
    /// The conversation that it comes from.
    pub source: &'n str,
    /// The local time, RFC 3339.
    pub time: &'n str,
    /// The fact of the same file that it takes the place of.
    pub replaced: Option<&'n Fact>,
}

/// What becomes of a new fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactChange {
    /// It is there already; nothing changes.
    Known,
    /// It is added.
    Added,
    /// It takes the place of this one.
    Replaced(Box<Fact>),
}

/// A file of facts, read.
#[derive(Debug)]
pub struct Facts {
    pub(super) bytes: Vec<u8>,
    pub(super) scan: LineScan,
    /// Important ones first, each part in the order of the file.
    all: Vec<Fact>,
}

impl Facts {
    /// Reads the file. Anything but an empty file has to say that it is one of
    /// facts; the error is the reason why it is not.
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
            return Err("it has no frontmatter with `type: memory`, so it is no file of facts");
        }
        let mut all: Vec<Fact> =
            scan.items.iter().filter_map(|item| fact(&bytes, &scan, item)).collect();
        order::sort_by_key(&mut all, |fact| !fact.important);
        Ok(Facts { bytes, scan, all })
    }

    /// Every fact; the position, from 1, is its number.
    pub fn all(&self) -> &[Fact] {
        &self.all
    }

    /// The bytes of the file with a new fact in it, in the place of the one that it
    /// replaces or else of an older version. Every other fact stays one, as it was;
    /// the error says why that cannot be.
    pub fn with(&self, new: &NewFact<'_>) -> Result<(FactChange, Vec<u8>), String> {
        let important = new.important || has_tag(new.content);
        let is_same = |fact: &&Fact| without_tag(&fact.content) == without_tag(new.content);
        let same = self.all.iter().filter(is_same);
        let is_there = |fact: &Fact| fact.important || !important;
        // The source alone is not worth touching what a person wrote.
        let is_known = |fact: &Fact| {
            let has_source = fact.is_plain && fact.source.is_some();
            is_there(fact) && !(has_source && fact.source.as_deref() != Some(&source_of(new)))
        };
        let (mut known, mut other) = (same.clone(), same);
        match new.replaced {
            // It is there already, beside the one that goes.
            Some(old) if other.any(|fact| !std::ptr::eq(old, fact) && is_there(fact)) => {
                let mut edit = LineEdit::of(self, new.time);
                edit.cut(&old.lines);
                return Ok((FactChange::Replaced(Box::new(old.clone())), edit.done()));
            }
            None if known.any(is_known) => return Ok((FactChange::Known, self.bytes.clone())),
            _ => {}
        }
        if let Some(old) = new.replaced.or_else(|| self.version(new.content)) {
            let is_moved = important && !old.important;
            let places = PLACES.iter().filter(|_| is_moved);
            let mut places = places.map(|place| Some(*place)).chain([None]);
            if let Some(bytes) = places.find_map(|place| self.tried(new, Some(old), place)) {
                return Ok((FactChange::Replaced(Box::new(old.clone())), bytes));
            }
        }
        let mut places = PLACES.iter().filter(|_| new.replaced.is_none());
        let added = places.find_map(|place| self.tried(new, None, Some(*place)));
        let bytes = added.ok_or_else(|| match &self.scan.closing {
            Some(closing) => format!(
                "it ends in a block that is open: close what begins in line {} by a line `{closing}`",
                self.scan.end + 1
            ),
            None => "a new fact would run into what is indented there".to_string(),
        })?;
        Ok((FactChange::Added, bytes))
    }

    /// The bytes with a new fact at this place, or where the old one is. `None` if
    /// Markdown would read anything else in another way then, as what is indented
    /// below an item belongs to it.
    fn tried(
        &self,
        new: &NewFact<'_>,
        old: Option<&Fact>,
        place: Option<InsertPosition>,
    ) -> Option<Vec<u8>> {
        let important =
            new.important || has_tag(new.content) || old.is_some_and(|old| old.important);
        // Another fact in its place is as new as it is.
        let old_version = old.filter(|old| is_version(new.content, &old.content));
        let created = old_version.map_or(Some(new.time), |old| old.created.as_deref());
        let mut edit = LineEdit::of(self, new.time);
        match (old, place) {
            (old, Some(place)) => {
                let line = line_of(new, important, created, important, "");
                if let Some(old) = old {
                    edit.cut(&old.lines);
                }
                edit.add(important, &line, place);
            }
            (Some(old), None) => {
                let line = line_of(new, important, created, old.is_in_important, &old.lead);
                edit.replace(&old.lines, &line);
            }
            (None, None) => return None,
        }
        let after = Facts::parse(edit.done()).ok()?;
        let mut content = new.content.to_string();
        if important && !has_tag(&content) {
            content.push(' ');
            content.push_str(IMPORTANT_TAG);
        }
        let is_left = |fact: &&Fact| !old.is_some_and(|old| std::ptr::eq(old, *fact));
        let mut wanted: Vec<_> = self.all.iter().filter(is_left).map(Fact::essence).collect();
        wanted.push((&content, important, created));
        let mut there: Vec<_> = after.all.iter().map(Fact::essence).collect();
        order::sort(&mut wanted);
        order::sort(&mut there);
        (wanted == there).then_some(after.bytes)
    }

    /// The bytes of the file without the fact of this number, and the fact.
    pub fn without(&self, number: usize, time: &str) -> Option<(&Fact, Vec<u8>)> {
        let fact = self.all.get(number.checked_sub(1)?)?;
        let mut edit = LineEdit::of(self, time);
        edit.cut(&fact.lines);
        Some((fact, edit.done()))
    }

    /// What a model is told of the facts, in at most about `most` bytes: important
    /// ones first, then the others, of each the newest first. A quarter is kept for
    /// the others, and none takes more than a quarter. Empty without facts.
    pub fn for_prompt(&self, most: usize) -> String {
        let important = self.all.partition_point(|fact| fact.important);
        let lines = |facts: &[Fact]| -> Vec<String> {
            // Of one day the last is the newest.
            let mut facts: Vec<&Fact> = facts.iter().rev().collect();
            order::sort_by(&mut facts, &|one, other| other.created.cmp(&one.created));
            facts.into_iter().map(|fact| fact.told(most / 4)).collect()
        };
        let (important, others) = (lines(&self.all[..important]), lines(&self.all[important..]));
        let kept = others.iter().map(String::len).sum::<usize>().min(most / 4);
        let mut told = String::new();
        let mut left_out = 0;
        for (lines, most) in [(important, most - kept), (others, most)] {
            let mut is_full = false;
            for line in lines {
                is_full |= told.len() + line.len() > most;
                if is_full {
                    left_out += 1;
                } else {
                    told.push_str(&line);
                }
            }
        }
        if left_out > 0 {
            told.push_str(&format!("… and {}\n", counted(left_out, "more fact")));
        }
        told
    }
}

/// A text as the content of a fact: one line, without control characters and
/// without what would begin or end a comment. Empty where nothing is left.
pub fn content(text: &str) -> String {
    let clean = sendable(text);
    let words = clean.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    line.replace("-->", "-- >").replace("<!--", "< !--")
}

/// The same of a new fact, in which the tag stands once.
pub(crate) fn new_content(text: &str) -> String {
    let content = content(text);
    let mut is_tagged = false;
    let is_kept = |word: &&str| !is_tag(word) || !std::mem::replace(&mut is_tagged, true);
    let words: Vec<&str> = content.split_whitespace().filter(is_kept).collect();
    words.join(" ")
}

/// The hashtag that a word is, without `#` and the punctuation behind it.
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

/// The source as it is written down.
fn source_of(new: &NewFact<'_>) -> String {
    let source = content(&new.source.replace(['<', '>'], ""));
    cut(&source, limits::FACT_SOURCE_BYTES).into_owned()
}

/// The line of a fact, without its line break; `below_important`: where it is to stand.
fn line_of(
    new: &NewFact<'_>,
    important: bool,
    created: Option<&str>,
    below_important: bool,
    lead: &str,
) -> String {
    let source = source_of(new);
    let lead = if lead.is_empty() { "- " } else { lead };
    let tag = if important && !has_tag(new.content) {
        format!(" {IMPORTANT_TAG}")
    } else {
        String::new()
    };
    let text = new.content;
    match created.map(when) {
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

/// The fact that an item is, if it stands in one of the two sections.
fn fact(bytes: &[u8], scan: &LineScan, item: &Range<usize>) -> Option<Fact> {
    let is_in_important = match section(scan, item.start)? {
        text if text.eq_ignore_ascii_case("important") => true,
        text if text.eq_ignore_ascii_case("recent") => false,
        _ => return None,
    };
    let lines = &scan.lines[item.clone()];
    // Only text is told to anybody.
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
    let content = content(body);
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

/// The text of the heading of the second level that a line stands below.
fn section(scan: &LineScan, line: usize) -> Option<&str> {
    let above = scan.headings.iter().rev();
    let mut above = above.filter(|(at, level, _)| *at < line && *level <= 2);
    let (_, level, text) = above.next()?;
    (*level == 2).then_some(text)
}

/// What stands in the comment behind a fact.
#[derive(Default)]
struct FactComment<'m> {
    date: Option<&'m str>,
    /// The time of day with its distance from UTC.
    clock: Option<&'m str>,
    source: Option<&'m str>,
}

impl FactComment<'_> {
    /// `None` for a comment of a person's own.
    fn parse(text: &str) -> Option<FactComment<'_>> {
        let (time, behind) = text.split_once(',').unwrap_or((text, ""));
        let (date, clock) = match when(time) {
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

/// The date and the time of day of a point in time; `""` where that is missing.
fn when(time: &str) -> (&str, &str) {
    time.split_once('T').unwrap_or((time, ""))
}

/// Whether it is `HH:MM:SS` with the distance from UTC.
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
