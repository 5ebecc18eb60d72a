//! The facts file and its changes.
//!
//! The file is Markdown and belongs to the user. A fact is a line of a list below `## Important`
//! or `## Recent`. A change affects only the line of one fact and the line `modified:`; all other
//! bytes stay. This module does no I/O.

use std::cmp::Reverse;
use std::ops::Range;

use crate::memory::fact::{Fact, IMPORTANT_TAG, Section, has_tag, normalize_source, without_tag};
use crate::memory::similar;
use base::text::counted;

/// A fact to store.
#[derive(Clone, Copy, Debug)]
pub struct NewFact<'n> {
    /// The text, normalized by [`normalize_content`](crate::memory::fact::normalize_content).
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
#[derive(Debug, Default)]
pub struct Facts {
    bytes: Vec<u8>,
    /// The byte range of each line, with its line break.
    lines: Vec<Range<usize>>,
    /// The last line of the frontmatter.
    frontmatter_end: usize,
    /// The sections, each with its lines, from the heading to the last that is not blank.
    sections: Vec<(Section, Range<usize>)>,
    /// All facts: the important ones first, then the others, both in the order of the file.
    all: Vec<Fact>,
}

/// A change of lines.
struct LineChange {
    removed: Option<usize>,
    /// The line before which the text is inserted, and the text.
    inserted: Option<(usize, String)>,
}

impl Facts {
    /// Parses a facts file. Unless it is empty, its frontmatter must say `type: memory`; the
    /// error is the cause.
    pub fn parse(bytes: Vec<u8>) -> Result<Facts, &'static str> {
        let bare = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        if bare.iter().all(u8::is_ascii_whitespace) {
            return Ok(Facts::default());
        }
        let mut facts = Facts { bytes, ..Facts::default() };
        let mut at = 0;
        for line in facts.bytes.split_inclusive(|byte| *byte == b'\n') {
            facts.lines.push(at..at + line.len());
            at += line.len();
        }
        facts.frontmatter_end = facts
            .find_frontmatter()
            .ok_or("it has no frontmatter with `type: memory`, so it is not a facts file")?;
        facts.read_sections();
        Ok(facts)
    }

    /// The UTF-8 text of a line without its line break; empty for other bytes.
    fn text(&self, line: usize) -> &str {
        let bytes = self.lines.get(line).map_or(&b""[..], |line| &self.bytes[line.clone()]);
        std::str::from_utf8(bytes).unwrap_or_default().trim_end_matches(['\n', '\r'])
    }

    /// The last line of the frontmatter, if it is that of a facts file.
    fn find_frontmatter(&self) -> Option<usize> {
        let is_fence = |line: &usize| self.text(*line).trim_end() == "---";
        let is_memory = |line: usize| {
            let value = self.text(line).strip_prefix("type:").unwrap_or_default();
            let value = value.split(" #").next().unwrap_or_default();
            value.trim().trim_matches(['"', '\'']) == "memory"
        };
        if self.text(0).trim_start_matches('\u{feff}').trim_end() != "---" {
            return None;
        }
        let end = (1..self.lines.len()).find(is_fence)?;
        (1..end).any(is_memory).then_some(end)
    }

    fn read_sections(&mut self) {
        let (mut sections, mut all) = (Vec::new(), Vec::new());
        let mut section = None;
        for line in self.frontmatter_end + 1..self.lines.len() {
            let text = self.text(line);
            if let Some(heading) = heading(text) {
                section = Section::named(heading);
                sections.extend(section.map(|section| (section, line..line + 1)));
            } else if let (Some(section), Some((_, lines))) = (section, sections.last_mut())
                && !text.trim().is_empty()
            {
                lines.end = line + 1;
                all.extend(Fact::parse(text, section, line + 1));
            }
        }
        all.sort_by_key(|fact: &Fact| !fact.important);
        (self.sections, self.all) = (sections, all);
    }

    /// All facts. The number of a fact is its position, from 1.
    pub fn all(&self) -> &[Fact] {
        &self.all
    }

    /// Stores a new fact and returns the bytes of the file. The new fact replaces the named
    /// one, or else an older version.
    pub fn with_fact(&self, new: &NewFact<'_>) -> Result<(FactChange, Vec<u8>), &'static str> {
        if self.lines.is_empty() {
            return Facts::parse(empty_file(new.time))?.with_fact(new);
        }
        let important = new.important || has_tag(new.content);
        let text = without_tag(new.content);
        let is_stored =
            |fact: &&Fact| without_tag(&fact.content) == text && (fact.important || !important);
        let source = normalize_source(new.source);
        let mut stored = self.all.iter().filter(is_stored);
        match new.replaced {
            // The new fact is already stored, in addition to the replaced one.
            Some(old) if stored.any(|fact| fact.line != old.line) => {
                let bytes = self.without_line(old, new.time);
                return Ok((FactChange::Replaced(Box::new(old.clone())), bytes));
            }
            // A different source alone is no reason to change the user's text.
            None if stored.any(|fact| {
                !fact.is_plain || fact.source.as_ref().is_none_or(|known| *known == source)
            }) =>
            {
                return Ok((FactChange::Known, self.bytes.clone()));
            }
            _ => {}
        }
        let old = new.replaced.or_else(|| similar::older_version(&self.all, new.content));
        let change = self.change_for(new, old, source);
        let bytes = self.changed(&change, new.time);
        Ok((old.map_or(FactChange::Added, |old| FactChange::Replaced(old.clone().into())), bytes))
    }

    /// The change that stores a new fact, in place of the old one.
    fn change_for(&self, new: &NewFact<'_>, old: Option<&Fact>, source: String) -> LineChange {
        let was_important = old.is_some_and(|old| old.important);
        let important = new.important || has_tag(new.content) || was_important;
        let is_tag_missing = important && !has_tag(new.content);
        let tag = if is_tag_missing { format!(" {IMPORTANT_TAG}") } else { String::new() };
        // A different fact in its place has its own time of creation.
        let version = old.filter(|old| similar::is_version(new.content, &old.content));
        let created = match version {
            // Without a date before it, a date at the start of the text would be read as its
            // own.
            Some(old) if old.created.is_some() || !new.content.starts_with('[') => {
                old.created.clone()
            }
            _ => Some(new.time.to_string()),
        };
        // Facts stay in their place, unless they become important.
        let place = old.filter(|old| old.important == important);
        let fact = Fact {
            content: format!("{}{tag}", new.content),
            important,
            created,
            source: Some(source),
            line: 0,
            section: match place {
                Some(old) => old.section,
                None if important => Section::Important,
                None => Section::Recent,
            },
            marker: place.map_or_else(|| "-".to_string(), |old| old.marker.clone()),
            is_plain: true,
        };
        let line = fact.to_line();
        let inserted = match place {
            Some(old) => (old.line - 1, format!("{line}\n")),
            None => self.insertion(fact.section, &line),
        };
        LineChange { removed: old.map(|old| old.line - 1), inserted: Some(inserted) }
    }

    /// Where a new line of a section is inserted, and its text: at the end of the section, or in a
    /// new one.
    fn insertion(&self, section: Section, line: &str) -> (usize, String) {
        let lines = |wanted| self.sections.iter().find(|(section, _)| *section == wanted);
        let blank_if = |is_needed: bool| if is_needed { "\n" } else { "" };
        let is_filled = |line: usize| !self.text(line).trim().is_empty();
        if let Some((_, lines)) = lines(section) {
            // The last line may be a fact; behind others a list begins.
            let is_in_list = self.all.iter().any(|fact| fact.line == lines.end);
            let (before, after) = (blank_if(!is_in_list), blank_if(is_filled(lines.end)));
            return (lines.end, format!("{before}{line}\n{after}"));
        }
        let at = lines(Section::Recent).map_or(self.lines.len(), |(_, recent)| recent.start);
        let (before, after) = (blank_if(is_filled(at - 1)), blank_if(is_filled(at)));
        (at, format!("{before}## {}\n\n{line}\n{after}", section.name()))
    }

    /// Removes the fact with this number and returns it with the bytes of the file.
    pub fn without_fact(&self, number: usize, time: &str) -> Option<(&Fact, Vec<u8>)> {
        let fact = self.all.get(number.checked_sub(1)?)?;
        Some((fact, self.without_line(fact, time)))
    }

    fn without_line(&self, fact: &Fact, time: &str) -> Vec<u8> {
        self.changed(&LineChange { removed: Some(fact.line - 1), inserted: None }, time)
    }

    /// The bytes of the file after a change at this time.
    fn changed(&self, change: &LineChange, time: &str) -> Vec<u8> {
        let is_crlf =
            self.lines.first().is_some_and(|line| self.bytes[line.clone()].ends_with(b"\r\n"));
        let end_of_line = if is_crlf { "\r\n" } else { "\n" };
        let is_modified = |line: &usize| self.text(*line).starts_with("modified:");
        // Without such a line it is added before the end of the frontmatter.
        let modified = (1..self.frontmatter_end).find(is_modified);
        // A comment of the user stays.
        let old = modified.map_or("", |line| self.text(line));
        let comment = old.find(" #").map_or("", |at| &old[at..]);
        let modified_line = format!("modified: {time}{comment}{end_of_line}");
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for line in 0..=self.lines.len() {
            if let Some((at, text)) = &change.inserted
                && *at == line
            {
                // The last line may have no line break.
                if !bytes.ends_with(b"\n") {
                    bytes.extend_from_slice(end_of_line.as_bytes());
                }
                bytes.extend_from_slice(text.replace('\n', end_of_line).as_bytes());
            }
            if line == modified.unwrap_or(self.frontmatter_end) {
                bytes.extend_from_slice(modified_line.as_bytes());
            }
            let is_kept = change.removed != Some(line) && modified != Some(line);
            if let Some(line) = self.lines.get(line).filter(|_| is_kept) {
                bytes.extend_from_slice(&self.bytes[line.clone()]);
            }
        }
        bytes
    }

    /// The facts for the system prompt, in about `most` bytes: the important ones first, then
    /// the others, both from newest to oldest. A quarter is reserved for the others, and no
    /// fact takes more than a quarter. Empty without facts.
    pub fn for_prompt(&self, most: usize) -> String {
        let lines = |important: bool| -> Vec<String> {
            // Of facts with the same time, the last is the newest.
            let mut facts: Vec<&Fact> =
                self.all.iter().rev().filter(|fact| fact.important == important).collect();
            facts.sort_by_key(|fact| Reverse(fact.created.as_ref()));
            facts.into_iter().map(|fact| fact.prompt_line(most / 4)).collect()
        };
        let (important, others) = (lines(true), lines(false));
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

/// A file without facts that is created at this time.
fn empty_file(time: &str) -> Vec<u8> {
    let front = format!("---\ntype: memory\ncreated: {time}\nmodified: {time}\n---\n");
    format!("{front}\n# Key Facts\n\n## Important\n\n## Recent\n").into_bytes()
}

/// The text of a heading of the first or second level; empty for the first, which only ends a
/// section.
fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let is_heading = rest.is_empty() || rest.starts_with([' ', '\t']);
    match line.len() - rest.len() {
        1 if is_heading => Some(""),
        2 if is_heading => Some(rest.trim().trim_end_matches('#').trim_end()),
        _ => None,
    }
}
