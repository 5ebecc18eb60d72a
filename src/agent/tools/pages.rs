//! Pages of a file or folder, for the tools that read files.
//!
//! Returns text unchanged and in pages if it is long, the entries of a folder, an image if the
//! model accepts images, and only the type and size of any other file. Notes report all that is
//! omitted. Opens nothing.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use crate::tools::{ArgumentError, ToolContext};
use base::limits;
use base::media::{self, ImageInfo};
use base::secret::CutEdges;
use base::text::{counted, one_line_name};
use base::tool::{Action, ToolResult};
use host::confined::{EntryKind, PathTarget, Root};
use skills::private::is_private_name;
use skills::venv::SETUP_FOLDER;

/// The requested lines.
pub(super) struct LineRange {
    /// Number of the first line, from 1.
    first: usize,
    lines: usize,
}

impl LineRange {
    /// Reads the arguments `offset` and `limit`.
    pub(super) fn from_arguments(
        offset: Option<i64>,
        limit: Option<i64>,
    ) -> Result<LineRange, ArgumentError> {
        Ok(LineRange {
            // Models that count from 0 mean the first line, too.
            first: positive("offset", offset.filter(|first| *first != 0))?.unwrap_or(1),
            lines: positive("limit", limit)?.unwrap_or(limits::PAGE_LINES),
        })
    }

    /// Shows these lines of a file, or these entries of a folder. `action`: what the result lists
    /// if text of the file is shown.
    pub(super) fn of(
        &self,
        target: PathTarget,
        action: Option<Action>,
        context: &ToolContext<'_>,
    ) -> io::Result<ToolResult> {
        match target {
            PathTarget::Folder(folder) => Ok(list_folder(&folder, self, context)),
            PathTarget::File(file) => read_page(file.file, file.size, self, action, context),
        }
    }
}

fn positive(name: &str, value: Option<i64>) -> Result<Option<usize>, ArgumentError> {
    let check = |number: i64| match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(ArgumentError::new(name, format!("must be 1 or more, not {number}"))),
    };
    value.map(check).transpose()
}

/// Lists a folder's entries, in pages like the lines of a file.
fn list_folder(folder: &Root, page: &LineRange, context: &ToolContext<'_>) -> ToolResult {
    let before = page.first - 1;
    let needed = before.saturating_add(page.lines.min(limits::FOLDER_ENTRIES));
    let mut entries = match folder.entries(needed.min(limits::FOLDER_ENTRIES_PAGED)) {
        Ok(entries) => entries,
        Err(error) => {
            return ToolResult::failure(format!("the folder cannot be listed: {error}"));
        }
    };
    // The working folder of a running setup is temporary; what is private is not read either.
    let is_hidden = |name: &str| name == SETUP_FOLDER || is_private_name(name);
    entries.entries.retain(|entry| !is_hidden(&entry.name.to_string_lossy()));
    let all = entries.entries.len() + entries.omitted;
    let shown = entries.entries.get(before..).unwrap_or_default();
    let most_bytes = context.history.text_bytes(usize::MAX);
    let mut text = String::new();
    let mut count = 0;
    for entry in shown {
        if text.len() >= most_bytes {
            break;
        }
        count += 1;
        text.push_str(&one_line_name(&entry.name.to_string_lossy()));
        match (entry.kind, entry.size) {
            (EntryKind::Folder, _) => text.push('/'),
            (EntryKind::File, Some(size)) => text.push_str(&format!(" ({size} bytes)")),
            (EntryKind::File, None) => text.push_str(" (size unknown)"),
            (EntryKind::Link, _) => text.push_str(" (link)"),
            (EntryKind::Other, _) => text.push_str(" (special file)"),
        }
        text.push('\n');
    }
    if all == 0 {
        text.push_str("(the folder is empty)\n");
    } else if count == 0 {
        text.push_str(&format!("[the folder has only {}]\n", counted_entries(all)));
    } else if count < shown.len() || entries.omitted > 0 {
        let (first, last) = (page.first, before + count);
        text.push_str(&format!(
            "[entries {first} to {last} of {all}. Go on with offset {}]\n",
            last + 1
        ));
    }
    ToolResult::success(text, format!("folder, {}", counted_entries(count)))
}

/// A number of entries: `1 entry`, `2 entries`.
fn counted_entries(count: usize) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

fn read_page(
    file: File,
    size: u64,
    page: &LineRange,
    action: Option<Action>,
    context: &ToolContext<'_>,
) -> io::Result<ToolResult> {
    let mut reader = BufReader::with_capacity(limits::READ_BYTES, file);
    let start = reader.fill_buf()?;
    if let Some(kind) = media::binary_kind(start) {
        return show_binary(reader, kind, size, context.vision);
    }
    let too_far = |lines: usize| {
        let lines = counted(lines, "line");
        ToolResult::failure(format!("the file has only {lines}; offset must not be larger"))
    };
    let page_bytes = context.history.text_bytes(limits::PAGE_BYTES);
    let mut line = Vec::new();
    let mut position = 0;
    for number in 1..page.first {
        if position > limits::FILE_BYTES {
            let message = "the page begins too far into the file: let a script read it";
            return Ok(ToolResult::failure(message));
        }
        line.clear();
        if !read_line(&mut reader, &mut line, page_bytes)? {
            return Ok(too_far(number - 1));
        }
        position += line.len() as u64;
    }
    let is_unfinished = |line: &[u8]| line.last().is_some_and(|byte| *byte != b'\n');
    let starts_in_line = is_unfinished(&line);
    let (bytes, lines, more) = read_lines(&mut reader, page.lines, page_bytes)?;
    let ends_in_line = more && is_unfinished(&bytes);
    if lines == 0 && page.first > 1 {
        return Ok(too_far(page.first - 1));
    }
    if bytes.contains(&0) {
        let text =
            format!("[binary data from line {} on: a script can work with it]\n", page.first);
        return Ok(ToolResult::success(text, "binary data"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let action = action.filter(|_| !text.trim().is_empty());
    let has_replacements = matches!(text, Cow::Owned(_));
    let edges = CutEdges { before: starts_in_line, after: ends_in_line };
    let mut text = context.secrets.mask_cut(&text, edges).into_owned();
    let untrusted = Some(text.clone());
    if has_replacements {
        let note = "[some bytes are not UTF-8 and are shown as \u{fffd}: a script can read them in their encoding]";
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
    let result = ToolResult::success(text, format!("{} bytes", bytes.len()));
    Ok(ToolResult { untrusted, action, ..result })
}

/// Shows a binary file: an image if the model accepts images, otherwise its type and size.
fn show_binary(
    reader: BufReader<File>,
    kind: &str,
    size: u64,
    accepts_images: bool,
) -> io::Result<ToolResult> {
    let limit = limits::IMAGE_BYTES as u64;
    let reason = if !media::has_image_signature(reader.buffer()) {
        "not text".into()
    } else if !accepts_images {
        "vision is off (LLM_VISION)".into()
    } else {
        let mut bytes = Vec::new();
        reader.take(limit + 1).read_to_end(&mut bytes)?;
        match ImageInfo::from_bytes(&bytes) {
            Some(image) if bytes.len() as u64 <= limit => {
                let shown = image.describe(bytes.len());
                let text = format!("[{shown}: shown to you as an image]");
                return Ok(ToolResult {
                    image: Some(image.to_image(&bytes)),
                    ..ToolResult::success(text, shown)
                });
            }
            Some(_) => format!("larger than the limit of {} MiB for images", limit >> 20),
            None => "it is damaged".into(),
        }
    };
    let text =
        format!("{kind}, {size} bytes: {reason}, so it is not shown; a script can work with it");
    Ok(ToolResult::success(text, format!("{kind}, {size} bytes")))
}

/// Appends one line with its line break; returns false at the end of the file. A line longer
/// than a page is split after a whole character: the rest counts as the next line.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>, page_bytes: usize) -> io::Result<bool> {
    let read = reader.by_ref().take(page_bytes as u64).read_until(b'\n', line)?;
    // The remaining bytes of a split character.
    let is_continuation = |byte: &u8| *byte & 0xc0 == 0x80;
    for _ in 0..3 {
        let next = reader.fill_buf()?.first().copied().filter(is_continuation);
        let Some(byte) = next.filter(|_| !line.ends_with(b"\n")) else {
            break;
        };
        line.push(byte);
        reader.consume(1);
    }
    Ok(read > 0)
}

/// Reads up to `max_lines` lines that fit into a page, at least one. Returns the bytes, the number
/// of lines, and whether more follow.
fn read_lines(
    reader: &mut impl BufRead,
    max_lines: usize,
    page_bytes: usize,
) -> io::Result<(Vec<u8>, usize, bool)> {
    let mut bytes = Vec::new();
    let mut lines = 0;
    while lines < max_lines {
        let before = bytes.len();
        if !read_line(reader, &mut bytes, page_bytes)? {
            return Ok((bytes, lines, false));
        }
        if before > 0 && bytes.len() > page_bytes {
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

    fn pages(text: &str, max_lines: usize) -> Vec<String> {
        let mut reader = text.as_bytes();
        let mut pages = Vec::new();
        loop {
            let mut rest = reader;
            let (bytes, lines, more) =
                read_lines(&mut rest, max_lines, limits::PAGE_BYTES).unwrap();
            pages.push(String::from_utf8(bytes).unwrap());
            for _ in 0..lines {
                assert!(read_line(&mut reader, &mut Vec::new(), limits::PAGE_BYTES).unwrap());
            }
            if !more {
                return pages;
            }
        }
    }

    #[test]
    fn pages_consist_of_whole_lines_and_contain_the_whole_file() {
        let table: [(&str, usize, &[&str]); 4] = [
            ("a\nb\nc\n", 2, &["a\nb\n", "c\n"]),
            ("a\nb", 1, &["a\n", "b"]),
            ("", 9, &[""]),
            ("\n\n", 9, &["\n\n"]),
        ];
        for (text, max_lines, expected) in table {
            assert_eq!(pages(text, max_lines), expected);
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
