//! The requirements files of a skill, as pip reads them: decoded, joined at backslashes, without
//! comments, and with the files that they include. They are compared and shown; pip installs
//! from the files themselves.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::limits;
use host::confined::{Root, read_whole};

/// The files that `pip install -r` gets, relative to the skill's folder.
pub const REQUIREMENTS_FILES: [&str; 2] = ["requirements.txt", "scripts/requirements.txt"];

/// A requirement that a skill declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredPackage {
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// Counted from 1, if known.
    pub line: Option<usize>,
    /// As written, without comments; in a requirements file it may be an option, such as
    /// `-r other.txt`.
    pub requirement: String,
    /// Whether a requirements file has it, which pip reads itself.
    pub is_listed: bool,
}

/// Reads a requirements file, and those that it includes. The error says why it is not read
/// whole; what was read stays in `found`.
pub(crate) fn read_requirements(
    root: &Root,
    path: &Path,
    found: &mut Vec<DeclaredPackage>,
) -> Result<(), String> {
    let bytes_left = limits::SETUP_REQUIREMENTS_BYTES;
    let seen = BTreeSet::from([path.to_path_buf()]);
    RequirementsReader { root, seen, bytes_left, found }.read(path)
}

/// All requirements that the skill's files list.
pub(crate) fn listed_requirements(root: &Root) -> Vec<DeclaredPackage> {
    let mut found = Vec::new();
    for path in REQUIREMENTS_FILES {
        // `skills check` and a setup report a file that cannot be read.
        let _ = read_requirements(root, Path::new(path), &mut found);
    }
    found
}

struct RequirementsReader<'r> {
    root: &'r Root,
    /// Files that were named: what is named twice adds nothing.
    seen: BTreeSet<PathBuf>,
    /// How many bytes may still be read.
    bytes_left: usize,
    found: &'r mut Vec<DeclaredPackage>,
}

impl RequirementsReader<'_> {
    fn read(&mut self, path: &Path) -> Result<(), String> {
        let piece = self.root.file(path).and_then(|file| read_whole(&file, self.bytes_left));
        let piece =
            piece.map_err(|error| format!("it cannot be read: {}", error.user_message()))?;
        if piece.has_more {
            return Err("it is too large to check".into());
        }
        self.bytes_left -= piece.bytes.len();
        for (line, requirement) in logical_lines(&decode(&piece.bytes)) {
            if self.found.len() >= limits::PROBE_ROWS {
                return Err("it has more requirements than are read".into());
            }
            let included = included_file(&requirement);
            let included = included.map(|name| path.with_file_name("").join(name));
            self.found.push(DeclaredPackage {
                file: path.to_path_buf(),
                line: Some(line),
                requirement,
                is_listed: true,
            });
            if let Some(path) = included
                && self.seen.len() < limits::SETUP_REQUIREMENTS_FILES
                && self.seen.insert(path.clone())
            {
                // pip reports a file that cannot be read.
                let _ = self.read(&path);
            }
        }
        Ok(())
    }
}

/// The file named after `-r` or `-c`.
fn included_file(line: &str) -> Option<&str> {
    let options = ["--requirement", "--constraint", "-r", "-c"];
    let name = options.iter().find_map(|option| line.strip_prefix(option))?;
    let name = name.trim_start_matches('=').trim();
    Some(name).filter(|name| !name.is_empty() && !name.contains("://"))
}

/// Decodes the text: UTF-16 with a byte order mark, as PowerShell writes it, or else UTF-8.
/// Invalid characters are replaced.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let (unit, rest): (fn([u8; 2]) -> u16, _) = match bytes {
        [0xff, 0xfe, rest @ ..] => (u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => (u16::from_be_bytes, rest),
        _ => return String::from_utf8_lossy(bytes),
    };
    let (pairs, _) = rest.as_chunks();
    let units = pairs.iter().map(|pair| unit(*pair));
    let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    text.collect()
}

/// The requirements and options, each with the number of its first line, from 1.
pub fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut started: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(physical_lines(text)) {
        let (_, whole) = started.get_or_insert_with(|| (number, String::new()));
        let is_comment = line.trim_start().starts_with('#');
        if line.ends_with('\\') && !is_comment {
            whole.push_str(line.trim_matches('\\'));
            continue;
        }
        if is_comment {
            // A comment line also ends a continued requirement.
            whole.push(' ');
        }
        whole.push_str(line);
        lines.extend(started.take());
    }
    lines.extend(started);
    let meant = |(number, line): (usize, String)| {
        let line = without_comment(&line).trim();
        (!line.is_empty()).then(|| (number, line.to_string()))
    };
    lines.into_iter().filter_map(meant).collect()
}

/// The lines as Python splits them.
fn physical_lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim_start_matches('\u{feff}');
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.split(is_line_end)
    })
}

/// Whether a character other than a line feed ends a line in Python.
pub fn is_line_end(c: char) -> bool {
    matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The line without its comment, which starts with `#` at the start or after white space.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before.is_whitespace() {
            return &line[..at];
        }
        before = c;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::scratch::Scratch;

    #[test]
    fn text_is_decoded_by_its_byte_order_mark() {
        let utf_16: Vec<u16> = "six # \u{1f40d}\n".encode_utf16().collect();
        let little: Vec<u8> = utf_16.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = utf_16.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for (mark, text) in [(&b"\xff\xfe"[..], little), (b"\xfe\xff", big)] {
            assert_eq!(decode(&[mark, &text].concat()), "six # \u{1f40d}\n", "{mark:?}");
        }
        for (bytes, text) in [
            (&b"\xef\xbb\xbfsix"[..], "\u{feff}six"),
            (b"six # \xc3\xbc", "six # \u{fc}"),
            (b"six # \xfc", "six # \u{fffd}"),
            (b"\xff\xfea\0b", "a"),
            (b"\xff\xfe\0\xd8a\0", "\u{fffd}a"),
            (b"", ""),
        ] {
            assert_eq!(decode(bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn lines_are_read_as_pip_reads_them() {
        let text = "\u{feff}# all of it\nopenpyxl>=3.1  # tables\n\n  pandas\t# frames\r\n-r other.txt\n\
                    git+https://host.example/a.git#egg=a\nrequests \\\n  --hash=sha256:00 \\\n  # not part of it\nlxml";
        let expected = [
            (2, "openpyxl>=3.1"),
            (4, "pandas"),
            (5, "-r other.txt"),
            (6, "git+https://host.example/a.git#egg=a"),
            (7, "requests   --hash=sha256:00"),
            (10, "lxml"),
        ];
        let found = logical_lines(text);
        let found: Vec<_> = found.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(found, expected);
        let found = logical_lines("# c \\\na\\\n# c\nb\u{c}c\rd \\");
        let found: Vec<_> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(found, ["a", "b", "c", "d"]);
    }

    /// A file that is named often, or that names itself, is read once; all files together have
    /// one limit.
    #[test]
    fn files_that_include_each_other_are_read_once() {
        let folder = Scratch::new(&std::env::temp_dir()).unwrap();
        let large = "x".repeat(limits::SETUP_REQUIREMENTS_BYTES - 100);
        for (name, text) in [
            ("requirements.txt", "-r b.txt\n-r c.txt\n-r d.txt\n-r missing.txt\n"),
            ("b.txt", "a\n-r requirements.txt\n-r b.txt\n"),
            ("c.txt", &large),
            ("d.txt", &large),
        ] {
            folder.write_file(name, text.as_bytes()).unwrap();
        }
        let root = Root::open(folder.path()).unwrap();
        let found = listed_requirements(&root);
        assert_eq!(found.len(), 4 + 3 + 1, "{found:?}");
        assert_eq!(found[1].file, Path::new("b.txt"));
    }
}
