//! The facts file and its changes.
//!
//! The file is Markdown and belongs to the user. A fact is a list item below `## Important` or
//! `## Recent`: a line that starts with a list marker, with the lines below it that belong to
//! it. A change affects only the lines of one fact and the line `modified:`; all other bytes
//! stay. This module does no I/O.

use std::cmp::Reverse;
use std::ops::Range;

use crate::memory::blocks::{OpenBlock, unindented};
use crate::memory::fact::{Fact, IMPORTANT_TAG, Section, has_tag, normalize_source, without_tag};
use crate::memory::similar;
use crate::text::counted;

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
    /// The lines of the headings of sections.
    headings: Vec<(usize, Section)>,
    /// All facts: the important ones first, then the others, both in the order of the file.
    all: Vec<Fact>,
    /// The block in which the file ends: its first line, from 1, and the line that closes it.
    open_block: Option<(usize, String)>,
}

/// A change of lines.
#[derive(Default)]
struct LineChange {
    removed: Range<usize>,
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
        facts.all.sort_by_key(|fact| !fact.important);
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
        let mut block = OpenBlock::default();
        let mut section = None;
        let mut line = self.frontmatter_end + 1;
        while line < self.lines.len() {
            let text = self.text(line);
            let mut end = line + 1;
            if block.read(text) {
                let closing = block.closing().map(str::to_string);
                let first = self.open_block.take().map_or(line + 1, |(first, _)| first);
                self.open_block = closing.map(|closing| (first, closing));
            } else if let Some(heading) = heading(text) {
                section = Section::named(heading);
                self.headings.extend(section.map(|section| (line, section)));
            } else if let (Some(section), Some(marker)) = (section, fact_marker(text)) {
                end = self.item_end(line, indentation(marker));
                let texts: Vec<&str> = (line..end).map(|line| self.text(line)).collect();
                let fact = Fact::parse(&texts, marker, section, line..end);
                self.all.extend(fact);
            }
            line = end;
        }
    }

    /// The line after a list item that starts in this line. An indented line belongs to the item,
    /// also after blank lines; another line does if it directly follows and starts nothing else.
    fn item_end(&self, first: usize, indent: usize) -> usize {
        let mut end = first + 1;
        loop {
            let is_filled = |line: &usize| !self.text(*line).trim().is_empty();
            let Some(next) = (end..self.lines.len()).find(is_filled) else { return end };
            let text = self.text(next);
            let is_inner = indentation(text) >= 2 && indentation(text) > indent;
            if !is_inner && (next > end || starts_block(text)) {
                return end;
            }
            end = next + 1;
        }
    }

    /// All facts. The number of a fact is its position, from 1.
    pub fn all(&self) -> &[Fact] {
        &self.all
    }

    /// Stores a new fact and returns the bytes of the file. The new fact replaces the named
    /// one, or else an older version. The error says why this is not possible.
    pub fn with_fact(&self, new: &NewFact<'_>) -> Result<(FactChange, Vec<u8>), String> {
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
                let bytes = self.without_lines(&old.lines, new.time);
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
        let change = self.change_for(new, old, source)?;
        let bytes = self.changed(&change, new.time);
        Ok((old.map_or(FactChange::Added, |old| FactChange::Replaced(old.clone().into())), bytes))
    }

    /// The change that stores a new fact, in place of the old one.
    fn change_for(
        &self,
        new: &NewFact<'_>,
        old: Option<&Fact>,
        source: String,
    ) -> Result<LineChange, String> {
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
            lines: 0..0,
            section: match place {
                Some(old) => old.section,
                None if important => Section::Important,
                None => Section::Recent,
            },
            marker: place.map_or_else(|| "-".to_string(), |old| old.marker.clone()),
            is_plain: true,
        };
        let line = fact.to_line();
        let removed = old.map_or(0..0, |old| old.lines.clone());
        let inserted = match place {
            Some(old) => (old.lines.start, format!("{line}\n")),
            None => self.insertion(fact.section, &line)?,
        };
        Ok(LineChange { removed, inserted: Some(inserted) })
    }

    /// Where a new line of a section is inserted, and its text: after the last fact of the
    /// section, or below its heading, or in a new section. It is indented like that fact, so that
    /// no line below it becomes a part of it.
    fn insertion(&self, section: Section, line: &str) -> Result<(usize, String), String> {
        let own = self.all.iter().filter(|fact| fact.section == section);
        if let Some(last) = own.max_by_key(|fact| fact.lines.end) {
            let indent = " ".repeat(indentation(&last.marker));
            return Ok((last.lines.end, format!("{indent}{line}\n")));
        }
        let heading = |section| self.headings.iter().find(|(_, other)| *other == section);
        let blank_if = |is_needed: bool| if is_needed { "\n" } else { "" };
        let is_filled = |line: usize| !self.text(line).trim().is_empty();
        if let Some((heading, _)) = heading(section) {
            let at = heading + 1;
            let next = (at..self.lines.len()).find(|line| is_filled(*line));
            if let Some(next) = next.filter(|line| indentation(self.text(*line)) >= 2) {
                let line = next + 1;
                return Err(format!(
                    "a new fact would become part of the indented text in line {line}"
                ));
            }
            return Ok((at, format!("\n{line}\n{}", blank_if(is_filled(at)))));
        }
        let at = match heading(Section::Recent) {
            Some((recent, _)) => *recent,
            None => self.lines.len(),
        };
        if let (Some((first, closing)), true) = (&self.open_block, at == self.lines.len()) {
            return Err(format!(
                "it ends in an open block: close the block of line {first} with a line `{closing}`"
            ));
        }
        let (before, after) = (blank_if(is_filled(at - 1)), blank_if(is_filled(at)));
        Ok((at, format!("{before}## {}\n\n{line}\n{after}", section.name())))
    }

    /// Removes the fact with this number and returns it with the bytes of the file.
    pub fn without_fact(&self, number: usize, time: &str) -> Option<(&Fact, Vec<u8>)> {
        let fact = self.all.get(number.checked_sub(1)?)?;
        Some((fact, self.without_lines(&fact.lines, time)))
    }

    fn without_lines(&self, lines: &Range<usize>, time: &str) -> Vec<u8> {
        let change = LineChange { removed: lines.clone(), ..LineChange::default() };
        self.changed(&change, time)
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
            let is_kept = !change.removed.contains(&line) && modified != Some(line);
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

/// The width of the spaces and tabs at the start of a line.
fn indentation(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| [' ', '\t'].contains(c));
    blanks.map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

/// The list marker at the start of a line, with the spaces before it.
fn list_marker(line: &str) -> Option<&str> {
    let text = unindented(line).filter(|text| !is_rule(text))?;
    let without_number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = without_number.len() < text.len();
    let marks: &[char] = if is_numbered { &['.', ')'] } else { &['-', '*', '+'] };
    let rest = without_number.strip_prefix(marks)?;
    let is_marker = rest.is_empty() || rest.starts_with([' ', '\t']);
    is_marker.then(|| &line[..line.len() - rest.len()])
}

/// The list marker of an item that is not empty.
fn fact_marker(line: &str) -> Option<&str> {
    list_marker(line).filter(|marker| !line[marker.len()..].trim().is_empty())
}

/// Whether a line is a rule, like `* * *`.
fn is_rule(line: &str) -> bool {
    let marks: Vec<char> = line.chars().filter(|c| !c.is_whitespace()).collect();
    let is_rule_of = |mark: char| marks.iter().all(|c| *c == mark);
    marks.len() >= 3 && ['-', '*', '_'].into_iter().any(is_rule_of)
}

/// The beginnings of fences, quotations, tables, and HTML that is not a part of a paragraph.
const OTHER_BLOCKS: [&str; 8] = ["```", "~~~", ">", "|", "<!--", "</", "<details", "<div"];

/// Whether a line cannot continue the paragraph above it: an item, a heading, a rule, or one of
/// the other blocks.
fn starts_block(line: &str) -> bool {
    let text = line.trim_start();
    let behind_marks = text.trim_start_matches('#');
    let is_heading = behind_marks.len() < text.len()
        && (behind_marks.is_empty() || behind_marks.starts_with([' ', '\t']));
    let is_other = OTHER_BLOCKS.iter().any(|start| text.starts_with(start));
    list_marker(line).is_some() || is_heading || is_rule(text) || is_other
}
