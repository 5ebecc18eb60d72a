//! `edit_file`: replaces a text in a file below the working folder.
//!
//! Works on bytes: all that is not replaced stays, whatever the encoding.

use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::user_files::{UserFiles, WRITING, shown};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::limits;
use base::secret::MASK;
use base::text::counted;
use base::tool::{Action, Effects, ToolResult};

#[derive(Deserialize)]
struct EditFileArguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

/// The tool `edit_file`.
pub(super) struct EditFile;

impl Tool for EditFile {
    fn name(&self) -> &'static str {
        "edit_file"
    }

    fn description(&self) -> &'static str {
        "Replace `old`, which occurs exactly once (or `all`), in a file of the user."
    }

    fn title(&self) -> &'static str {
        "Edit a file"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "old": {"type": "string"},
                "new": {"type": "string"},
                "all": {"type": "boolean"}
            },
            "required": ["path", "old", "new"],
        })
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        WRITING
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let arguments: EditFileArguments = arguments.parse()?;
        Ok(PreparedCall::new(arguments.path.clone(), move |context| {
            edit(&arguments, context).unwrap_or_else(ToolResult::failure)
        }))
    }
}

fn edit(arguments: &EditFileArguments, context: &ToolContext<'_>) -> Result<ToolResult, String> {
    let EditFileArguments { path, old, new, all } = arguments;
    if old.is_empty() {
        return Err(
            "`old` is empty: give the text to replace; write_file writes whole files".into()
        );
    }
    if old == new {
        return Err("`old` and `new` are the same: nothing to change".into());
    }
    let files = UserFiles::open(context)?;
    let mut file = files.file(path)?;
    let mut note = None;
    if file.place.found().is_none() {
        let meant = files.meant(path, &file.path, "edited");
        let meant = meant.map_err(|error| format!("{error}; write_file creates a file"))?;
        (file, note) = (files.file(&meant.path)?, Some(meant.note));
    }
    let path = file.path.clone();
    let piece = file.place.read(limits::EDITED_FILE_BYTES);
    let piece = piece.map_err(|error| files.error(&path, "edited", &error))?;
    let refused = |cause: &str| {
        Err(format!("`{path}` cannot be edited: {cause}; change it with a script or run_command"))
    };
    let too_large = format!("more than {} MiB", limits::EDITED_FILE_BYTES >> 20); // not a limit
    if piece.has_more {
        return refused(&too_large);
    }
    let text = piece.bytes;
    if text.contains(&0) {
        return refused("a binary file, or text as UTF-16");
    }
    let replacement = Replacement::find(&text, old, new);
    if replacement.places.is_empty() {
        // It quotes the file.
        let failure = ToolResult::failure(not_found(&path, &text, old));
        return Ok(ToolResult { untrusted: None, ..failure });
    }
    if !all {
        replacement.check_unique(&path, &text)?;
    }
    let places = replacement.places.len();
    let growth = replacement.new.len().saturating_mul(places);
    if text.len().saturating_add(growth) > 2 * limits::EDITED_FILE_BYTES {
        return refused(&too_large);
    }
    let consent = files.write(file, Some(&text), &replacement.apply(&text))?;
    let summary = format!("edited {}: {}", shown(&path), counted(places, "place"));
    let result = ToolResult::success(summary.clone(), summary).with_note(note.as_deref());
    Ok(ToolResult { consent, action: Some(Action::WroteFile(path)), ..result })
}

/// A replacement of text, and its places.
struct Replacement {
    old: Vec<u8>,
    new: Vec<u8>,
    places: Vec<usize>,
}

impl Replacement {
    /// Finds `old`, with the line breaks of the file: models see and write all as `\n`.
    fn find(text: &[u8], old: &str, new: &str) -> Replacement {
        let at = |old: Vec<u8>, new: Vec<u8>| Replacement {
            places: memmem::find_iter(text, &old).collect(),
            old,
            new,
        };
        let with_crlf = || {
            let convert = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n").into();
            at(convert(old), convert(new))
        };
        // A `\r` is written on purpose.
        let is_plain = !old.contains('\r') && !new.contains('\r');
        let breaks = memmem::find_iter(text, b"\n").count();
        if is_plain && breaks > 0 && breaks == memmem::find_iter(text, b"\r\n").count() {
            return with_crlf();
        }
        let exact = at(old.into(), new.into());
        if exact.places.is_empty() && is_plain && old.contains('\n') { with_crlf() } else { exact }
    }

    /// Returns an error if the text occurs several times; two places may overlap.
    fn check_unique(&self, path: &str, text: &[u8]) -> Result<(), String> {
        let after = self.places.first().map_or(0, |first| first + 1);
        let next = memmem::find(&text[after..], &self.old).map(|at| at + after);
        let overlapping = next.filter(|_| self.places.len() == 1);
        let count = self.places.len() + usize::from(overlapping.is_some());
        if count < 2 {
            return Ok(());
        }
        let places = self.places.iter().copied().chain(overlapping).take(limits::LISTED_PLACES);
        let lines: Vec<usize> = places.map(|at| line_number(text, at)).collect();
        Err(format!(
            "`old` occurs {count} times in `{path}`, in {}: give more of the text around the one that is meant, \
             or `all`: true",
            listed(&lines, count)
        ))
    }

    fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut result = Vec::with_capacity(text.len());
        let mut done = 0;
        for &place in &self.places {
            result.extend_from_slice(&text[done..place]);
            result.extend_from_slice(&self.new);
            done = place + self.old.len();
        }
        result.extend_from_slice(&text[done..]);
        result
    }
}

/// The number of the line at this offset, from 1.
fn line_number(text: &[u8], offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[..offset]).count() + 1
}

/// Line numbers as words: `line 3`, `lines 3, 9, … `.
fn listed(lines: &[usize], all: usize) -> String {
    let noun = if all == 1 { "line" } else { "lines" };
    let numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let more = if all > lines.len() { ", …" } else { "" };
    format!("{noun} {}{more}", numbers.join(", "))
}

/// The message for a text that does not occur: where it nearly does.
fn not_found(path: &str, text: &[u8], old: &str) -> String {
    let begin = format!("`old` does not occur in `{path}`");
    if old.contains(MASK) {
        return format!(
            "{begin}: {MASK} stands for a secret that is not shown; leave it out of `old`"
        );
    }
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').take(limits::NEAR_LINES).collect();
    let wanted: Vec<String> = old.trim().lines().take(limits::NEAR_OLD_LINES).map(fold).collect();
    let (starts, matched) = nearest(&lines, &wanted);
    let Some(&first) = starts.first() else {
        let part = if wanted.len() == 1 { "" } else { ", nor does its first line" };
        return format!("{begin}{part}: read the file again");
    };
    let quote = |from: usize, count: usize| {
        let lines = lines.iter().skip(from).take(count);
        let text = lines.map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join("\n");
        base::text::truncate(&text, limits::QUOTED_LINES_BYTES).into_owned()
    };
    let numbers: Vec<usize> =
        starts.iter().take(limits::LISTED_PLACES).map(|start| start + 1).collect();
    let places = listed(&numbers, starts.len());
    if matched == wanted.len() {
        let text = quote(first, matched);
        return format!(
            "{begin}, but with other white space, letter case or quotes from {places} on; copy it exactly:\n{text}"
        );
    }
    let next = first + matched;
    format!(
        "{begin}; its beginning does from {places} on, but line {} is different:\n{}",
        next + 1,
        quote(next, 1)
    )
}

/// A line without white space, in lower case and with plain quotes.
fn fold(line: &str) -> String {
    let letters = line.chars().filter(|c| !c.is_whitespace());
    let plain = letters.map(|c| match c {
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        other => other,
    });
    plain.flat_map(char::to_lowercase).collect()
}

/// Finds the lines from which most of these lines follow, folded: their indices, and how many
/// match.
fn nearest(lines: &[&[u8]], wanted: &[String]) -> (Vec<usize>, usize) {
    let lines: Vec<String> =
        lines.iter().map(|line| fold(&String::from_utf8_lossy(line))).collect();
    let (mut starts, mut most) = (Vec::new(), 0);
    let is_match = |line: &str, index: usize| {
        let part = wanted[index].as_str();
        match (index == 0, index + 1 == wanted.len()) {
            (true, true) => line.contains(part),
            (true, false) => line.ends_with(part),
            (false, true) => line.starts_with(part),
            (false, false) => line == part,
        }
    };
    for start in 0..lines.len() {
        let following = lines[start..].iter().take(wanted.len()).enumerate();
        let count = following.take_while(|(index, line)| is_match(line, *index)).count();
        if count > most {
            (starts, most) = (Vec::new(), count);
        }
        if count > 0 && count == most {
            starts.push(start);
        }
    }
    (starts, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_other_bytes_stay() {
        type Row = (&'static [u8], &'static str, &'static str, &'static [u8], usize);
        let table: [Row; 7] = [
            (b"a\xffb\xe4", "b", "x", b"a\xffx\xe4", 1),
            (b"aaa", "aa", "b", b"ba", 1),
            (b"a\r\nb\r\n", "a\nb", "c\nd", b"c\r\nd\r\n", 1),
            (b"a\r\nb\r\n", "\nb", "\nc", b"a\r\nc\r\n", 1),
            (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n", 1),
            (b"a\r\nb\nc", "a\nb", "x\ny", b"x\r\ny\nc", 1),
            (b"\xef\xbb\xbfa, a", "a", "b", b"\xef\xbb\xbfb, b", 2),
        ];
        for (text, old, new, expected, places) in table {
            let found = Replacement::find(text, old, new);
            assert_eq!(found.places.len(), places, "{old:?}");
            assert_eq!(found.apply(text), expected, "{old:?}");
        }
    }

    #[test]
    fn a_text_that_nearly_occurs_is_located() {
        let text = b"def f():\n\tif a:\n\t\treturn 1\n\ndef g():\n\tif a:\n\t\treturn 2\n";
        let table = [
            (
                "if a:\n  return 1",
                "`old` does not occur in `p`, but with other white space, letter case or quotes from line 2 on; copy it exactly:\n\tif a:\n\t\treturn 1",
            ),
            (
                "if a :",
                "`old` does not occur in `p`, but with other white space, letter case or quotes from lines 2, 6 on; copy it exactly:\n\tif a:",
            ),
            (
                "def g():\n\tif b:\n",
                "`old` does not occur in `p`; its beginning does from line 5 on, but line 6 is different:\n\tif a:",
            ),
            ("def h()", "`old` does not occur in `p`: read the file again"),
            (
                "DEF F():\n\tif \u{201c}",
                "`old` does not occur in `p`; its beginning does from line 1 on, but line 2 is different:\n\tif a:",
            ),
            ("x\ny", "`old` does not occur in `p`, nor does its first line: read the file again"),
            (
                "k = [secret]",
                "`old` does not occur in `p`: [secret] stands for a secret that is not shown; leave it out of `old`",
            ),
        ];
        for (old, expected) in table {
            assert_eq!(not_found("p", text, old), expected);
        }
        assert!(not_found("p", text, " \n ").contains("read the file again"));
    }
}
