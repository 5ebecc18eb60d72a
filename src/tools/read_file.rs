//! `read_file_in_skill`: any file of a skill, and nothing outside of it.
//!
//! Text comes as it is, long text in pages, a folder as its listing, a picture
//! as one where the model is shown pictures, anything else as its type and size.
//! Nothing is cut without a word.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use serde_json::{Value, json};

use crate::limits;
use crate::media::{self, Picture};
use crate::secret::CutEdges;
use crate::skills::Skill;
use crate::skills::venv::SETUP_FOLDER;
use crate::text::one_name;
use crate::tool::{Effects, ToolResult};
use crate::tools::{Arguments, Tool, ToolContext, text_of};
use crate::world::confined::{EntryKind, OpenError, PathTarget, Root};

/// The tool.
pub(super) struct ReadFile;

impl Tool for ReadFile {
    fn name(&self) -> &'static str {
        "read_file_in_skill"
    }

    fn description(&self) -> &'static str {
        "Read a file of a skill, or list a folder, by its path in the skill's folder. Long files \
         come in pages: `limit` lines from line `offset` on."
    }

    fn title(&self) -> &'static str {
        "Read a file of a skill"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "skill_name": {"type": "string"},
                "file_path": {"type": "string"},
                "offset": {"type": "integer"},
                "limit": {"type": "integer"}
            },
            "required": ["skill_name", "file_path"],
        })
    }

    fn effects(&self, _bench: &ToolContext<'_>) -> Effects {
        Effects::NONE
    }

    fn is_offered(&self, _bench: &ToolContext<'_>, has_skills: bool) -> bool {
        has_skills
    }

    fn summary(&self, arguments: &Arguments) -> String {
        format!("{}: {}", text_of(arguments, "skill_name"), text_of(arguments, "file_path"))
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> ToolResult {
        let page = match LineRange::of(arguments) {
            Ok(page) => page,
            Err(message) => return ToolResult::failure(message),
        };
        let skill = match context.skills.find(text_of(arguments, "skill_name")) {
            Ok(skill) => skill,
            Err(message) => return ToolResult::failure(message),
        };
        let path = text_of(arguments, "file_path");
        match open(&skill, path) {
            Ok(PathTarget::Folder(folder)) => list(&folder, &page),
            Ok(PathTarget::File(file)) => read(file.file, file.size, &page, context)
                .unwrap_or_else(|error| {
                    ToolResult::failure(format!("`{path}` cannot be read: {error}"))
                }),
            Err(refusal) => ToolResult::failure(skill.explain("the file", "read", path, &refusal)),
        }
    }
}

/// Which lines are wanted.
struct LineRange {
    /// From 1.
    first: usize,
    lines: usize,
}

impl LineRange {
    fn of(arguments: &Arguments) -> Result<LineRange, String> {
        let positive = |name: &str, default: usize| match arguments.get(name) {
            None => Ok(default),
            // The first line is 1; models that count from 0 mean the same.
            Some(value) if name == "offset" && value.as_u64() == Some(0) => Ok(1),
            Some(value) => match value.as_u64() {
                Some(number) if number > 0 => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
                _ => Err(format!("`{name}` must be 1 or more, not {value}")),
            },
        };
        Ok(LineRange {
            first: positive("offset", 1)?,
            lines: positive("limit", limits::PAGE_LINES)?,
        })
    }
}

fn open(skill: &Skill, path: &str) -> Result<PathTarget, OpenError> {
    let relative = skill.root.relative(path)?;
    skill.root.node(&relative)
}

/// A folder's entries, in pages as a file's lines.
fn list(folder: &Root, page: &LineRange) -> ToolResult {
    let before = page.first - 1;
    let wanted = before.saturating_add(page.lines.min(limits::FOLDER_ENTRIES));
    let mut entries = match folder.entries(wanted.min(limits::FOLDER_ENTRIES_PAGED)) {
        Ok(entries) => entries,
        Err(refusal) => {
            return ToolResult::failure(format!("the folder cannot be listed: {refusal}"));
        }
    };
    // What a setup has there goes when it is done.
    entries.list.retain(|entry| entry.name != SETUP_FOLDER);
    let all = entries.list.len() + entries.left_out;
    let shown = entries.list.get(before..).unwrap_or_default();
    let mut text = String::new();
    for entry in shown {
        text.push_str(&one_name(&entry.name.to_string_lossy()));
        match (entry.kind, entry.size) {
            (EntryKind::Folder, _) => text.push('/'),
            (EntryKind::File, Some(size)) => text.push_str(&format!(" ({size} bytes)")),
            (EntryKind::File, None) => text.push_str(" (size unknown)"),
            (EntryKind::Link, _) => text.push_str(" (link)"),
            (EntryKind::Other, _) => text.push_str(" (special file)"),
        }
        text.push('\n');
    }
    let count = shown.len();
    if all == 0 {
        text.push_str("(the folder is empty)\n");
    } else if count == 0 {
        text.push_str(&format!("[the folder has only {all} entries]\n"));
    } else if entries.left_out > 0 {
        let (first, last) = (page.first, before + count);
        text.push_str(&format!(
            "[entries {first} to {last} of {all}. Go on with offset {}]\n",
            last + 1
        ));
    }
    ToolResult::success(text, format!("folder, {count} entries"))
}

fn read(
    file: File,
    size: u64,
    page: &LineRange,
    context: &ToolContext<'_>,
) -> io::Result<ToolResult> {
    let mut reader = BufReader::with_capacity(limits::READ_BYTES, file);
    let beginning = reader.fill_buf()?;
    if let Some(kind) = media::binary_kind(beginning) {
        return show(reader, kind, size, context.vision);
    }
    let mut line = Vec::new();
    let mut position = 0;
    for number in 1..page.first {
        if position > limits::FILE_BYTES {
            let message = "the page begins too far into the file: let a script read it";
            return Ok(ToolResult::failure(message));
        }
        line.clear();
        if !read_line(&mut reader, &mut line)? {
            let lines = number - 1;
            let message = format!("the file has only {lines} lines; offset must not be larger");
            return Ok(ToolResult::failure(message));
        }
        position += line.len() as u64;
    }
    let is_within = |line: &[u8]| line.last().is_some_and(|byte| *byte != b'\n');
    let before = is_within(&line);
    let (bytes, lines, more) = take_lines(&mut reader, page.lines)?;
    let behind = more && is_within(&bytes);
    if lines == 0 && page.first > 1 {
        let lines = page.first - 1;
        let message = format!("the file has only {lines} lines; offset must not be larger");
        return Ok(ToolResult::failure(message));
    }
    if bytes.contains(&0) {
        let text =
            format!("[binary data from line {} on: a script can work with it]\n", page.first);
        return Ok(ToolResult::success(text, "binary data"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let is_replaced = matches!(text, Cow::Owned(_));
    let mut text = context.secrets.mask_cut(&text, CutEdges { before, behind }).into_owned();
    if is_replaced {
        let note = "[some bytes are no UTF-8 and shown as \u{fffd}: a script can read them in their encoding]";
        text = format!("{}\n{note}\n", text.trim_end_matches('\n'));
    }
    if more {
        let last = page.first + lines - 1;
        if !text.ends_with('\n') {
            text.push_str("\n[the line goes on: a line longer than a page counts as several]\n");
        }
        text.push_str(&format!(
            "[lines {} to {last}; the file is {size} bytes long. Go on with offset {}]\n",
            page.first,
            last + 1
        ));
    }
    Ok(ToolResult::success(text, format!("{} bytes", bytes.len())))
}

/// What is no text: a picture, for a model that is shown pictures, or what it is.
fn show(
    reader: BufReader<File>,
    kind: &str,
    size: u64,
    shows_pictures: bool,
) -> io::Result<ToolResult> {
    let most = limits::IMAGE_BYTES as u64;
    let reason = if !media::begins_as_picture(reader.buffer()) {
        "not text".into()
    } else if !shows_pictures {
        "vision is off (LLM_VISION)".into()
    } else {
        let mut bytes = Vec::new();
        reader.take(most + 1).read_to_end(&mut bytes)?;
        match Picture::of(&bytes) {
            Some(picture) if bytes.len() as u64 <= most => {
                let shown = picture.shown(bytes.len());
                let text = format!("[{shown}: shown to you as an image]");
                return Ok(ToolResult {
                    image: Some(picture.image(&bytes)),
                    ..ToolResult::success(text, shown)
                });
            }
            Some(_) => format!("more than the {} MiB of an image", most >> 20),
            None => "it is damaged".into(),
        }
    };
    let text =
        format!("{kind}, {size} bytes: {reason}, so it is not shown; a script can work with it");
    Ok(ToolResult::success(text, format!("{kind}, {size} bytes")))
}

/// Adds one line with its end. A line longer than a page ends at a page's
/// length, behind a whole character: its rest is the next line. False at the
/// end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let start = line.len();
    loop {
        let buffer = reader.fill_buf()?;
        let room = limits::PAGE_BYTES - (line.len() - start);
        let part = &buffer[..buffer.len().min(room)];
        let (length, is_end) = match part.iter().position(|&byte| byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (part.len(), part.is_empty()),
        };
        line.extend_from_slice(&part[..length]);
        reader.consume(length);
        if is_end {
            break;
        }
    }
    // The rest of a character that was cut.
    let is_continuation = |byte: &u8| *byte & 0xc0 == 0x80;
    while let Some(byte) = reader.fill_buf()?.first().copied().filter(is_continuation) {
        if line.ends_with(b"\n") || line.len() >= start + limits::PAGE_BYTES + 3 {
            break;
        }
        line.push(byte);
        reader.consume(1);
    }
    Ok(line.len() > start)
}

/// As many lines as are wanted and fit into a page, at least one; how many, and
/// whether there is more.
fn take_lines(reader: &mut impl BufRead, wanted: usize) -> io::Result<(Vec<u8>, usize, bool)> {
    let mut bytes = Vec::new();
    let mut lines = 0;
    while lines < wanted {
        let before = bytes.len();
        if !read_line(reader, &mut bytes)? {
            return Ok((bytes, lines, false));
        }
        if before > 0 && bytes.len() > limits::PAGE_BYTES {
            bytes.truncate(before);
            return Ok((bytes, lines, true));
        }
        lines += 1;
    }
    Ok((bytes, lines, !reader.fill_buf()?.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &str, wanted: usize) -> Vec<String> {
        let mut reader = text.as_bytes();
        let mut pages = Vec::new();
        loop {
            let mut rest = reader;
            let (bytes, lines, more) = take_lines(&mut rest, wanted).unwrap();
            pages.push(String::from_utf8(bytes).unwrap());
            for _ in 0..lines {
                assert!(read_line(&mut reader, &mut Vec::new()).unwrap());
            }
            if !more {
                return pages;
            }
        }
    }

    #[test]
    fn pages_are_whole_lines_and_together_the_whole_file() {
        let table: [(&str, usize, &[&str]); 4] = [
            ("a\nb\nc\n", 2, &["a\nb\n", "c\n"]),
            ("a\nb", 1, &["a\n", "b"]),
            ("", 9, &[""]),
            ("\n\n", 9, &["\n\n"]),
        ];
        for (text, wanted, expected) in table {
            assert_eq!(pages(text, wanted), expected);
        }
        for text in [
            "ä".repeat(limits::PAGE_BYTES),
            format!("x{}", "ä".repeat(limits::PAGE_BYTES)),
            format!("short\n{}\nlast", "x".repeat(limits::PAGE_BYTES)),
            "line\n".repeat(limits::PAGE_BYTES),
        ] {
            let pages = pages(&text, limits::PAGE_LINES);
            assert!(
                pages.len() > 1 && pages.iter().all(|page| page.len() <= limits::PAGE_BYTES + 3)
            );
            assert_eq!(pages.concat(), text);
        }
    }
}
