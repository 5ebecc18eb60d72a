//! The source files below `src`, whole and in parts.

use std::fs;
use std::path::{Path, PathBuf};

/// One source file.
pub(crate) struct Source {
    /// Its path relative to `src`, with slashes.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The parts of Rust source that have different rules for words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Code,
    /// A comment, with its slashes.
    Comment,
    /// The content of a string literal.
    Text,
}

/// All files of a folder with this extension, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every source file below `src`.
pub(crate) fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |path: &PathBuf| Source {
        name: path.strip_prefix(&root).unwrap().to_string_lossy().into_owned(),
        text: fs::read_to_string(path).unwrap(),
    };
    files(&root, "rs").iter().map(read).collect()
}

impl Source {
    pub(crate) fn is_test(&self) -> bool {
        self.name.ends_with("tests.rs")
    }

    /// The text without the unit tests at the end.
    pub(crate) fn without_tests(&self) -> &str {
        let end = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        &self.text[..end]
    }

    /// Lines of code with their numbers, without comments and the unit tests at the end.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.without_tests().lines().enumerate();
        lines
            .map(|(index, line)| (index + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// The first sentences of the doc comments, each with the number of its first line.
    pub(crate) fn first_sentences(&self) -> Vec<(usize, String)> {
        let mut sentences: Vec<(usize, String)> = Vec::new();
        let mut is_open = false;
        for (index, line) in self.without_tests().lines().enumerate() {
            let line = line.trim_start();
            let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(doc) = doc.map(str::trim).filter(|doc| !doc.is_empty()) else {
                // A blank line ends the sentence, not the comment.
                is_open = false;
                if !line.starts_with("//") {
                    sentences.push((0, String::new()));
                }
                continue;
            };
            match sentences.last_mut() {
                Some((_, sentence)) if is_open => {
                    sentence.push(' ');
                    sentence.push_str(doc);
                }
                Some((_, sentence)) if !sentence.is_empty() => continue,
                _ => sentences.push((index + 1, doc.into())),
            }
            let (_, sentence) = sentences.last_mut().unwrap();
            let end = sentence.find(". ").map(|end| end + 1);
            sentence.truncate(end.unwrap_or(sentence.len()));
            is_open = !sentence.ends_with('.');
        }
        sentences.retain(|(_, sentence)| !sentence.is_empty());
        sentences
    }
}

/// Splits source into its parts, each with the number of its first line.
pub(crate) fn parts(source: &str) -> Vec<(usize, Part, &str)> {
    let mut parts = Vec::new();
    let (mut at, mut code, mut line) = (0, 0, 1);
    while at < source.len() {
        let rest = &source[at..];
        let (part, open, close, end) = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            (Part::Comment, 0, end, end)
        } else if let Some((open, close, end)) = literal(rest) {
            (Part::Text, open, close, end)
        } else {
            // A quote as a character opens no literal.
            let is_quote = ["'\"'", "'\\\"'"].iter().find(|quote| rest.starts_with(**quote));
            at += is_quote.map_or(rest.chars().next().unwrap().len_utf8(), |quote| quote.len());
            continue;
        };
        for (part, text) in [(Part::Code, &source[code..at]), (part, &rest[open..close])] {
            parts.push((line, part, text));
            line += text.matches('\n').count();
        }
        at += end;
        code = at;
    }
    parts.push((line, Part::Code, &source[code..]));
    parts
}

/// Where the content of a string literal begins and ends, and where the literal ends.
fn literal(rest: &str) -> Option<(usize, usize, usize)> {
    if let Some(raw) = rest.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let content = raw[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let open = rest.len() - content.len();
        let end = open + content.find(&close).unwrap();
        return Some((open, end, end + close.len()));
    }
    let content = rest.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = content.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    let end = 1 + end.unwrap();
    Some((1, end, end + 1))
}
