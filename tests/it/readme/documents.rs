//! The documents and their parts: blocks, links, anchors, text in backticks.

use std::fs;
use std::path::{Path, PathBuf};

/// A Markdown file of the repository.
pub(super) struct Document {
    /// Relative to the repository: `docs/settings.md`.
    pub name: String,
    pub text: String,
}

/// A fenced block.
pub(super) struct Block {
    /// `README.md:23`, the line of its first fence.
    pub place: String,
    pub language: String,
    /// Its lines, without the fence's indentation.
    pub text: String,
    /// The line of text above it that is not empty.
    pub lead: String,
}

/// What is wrong with the texts.
pub(super) type Faults = Vec<String>;

/// The repository.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documents whose blocks are run: the README, everything in `docs`, and what
/// contributors read.
pub(super) fn documents() -> Vec<Document> {
    let mut names = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from).to_vec();
    let docs = fs::read_dir(root().join("docs")).into_iter().flatten();
    let mut docs: Vec<PathBuf> = docs
        .flatten()
        .map(|entry| Path::new("docs").join(entry.file_name()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    docs.sort();
    names.append(&mut docs);
    names.iter().map(|name| Document::read(name)).collect()
}

impl Document {
    pub(super) fn read(name: &Path) -> Document {
        let text = fs::read_to_string(root().join(name));
        Document {
            name: name.to_string_lossy().into_owned(),
            text: text
                .unwrap_or_else(|error| panic!("failed to read `{}`: {error}", name.display())),
        }
    }

    /// The fenced blocks, in order.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut lead = "";
        let mut open: Option<(Block, usize)> = None;
        for (index, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (open.take(), fence) {
                (None, Some(language)) => {
                    let block = Block {
                        place: format!("{}:{}", self.name, index + 1),
                        language: language.trim().to_owned(),
                        text: String::new(),
                        lead: lead.to_owned(),
                    };
                    open = Some((block, line.len() - line.trim_start().len()));
                }
                (None, None) if !line.trim().is_empty() => lead = line.trim(),
                (None, None) => {}
                (Some((block, _)), Some("")) => blocks.push(block),
                (Some((mut block, indentation)), _) => {
                    let spaces = line.len() - line.trim_start().len();
                    block.text += &line[spaces.min(indentation)..];
                    block.text.push('\n');
                    open = Some((block, indentation));
                }
            }
        }
        assert!(open.is_none(), "{}: a block without its end", self.name);
        blocks
    }

    /// The text outside of fences, with the numbers of its lines.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut is_code = false;
        self.text.lines().enumerate().filter_map(move |(index, line)| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            (!is_code && !is_fence).then_some((index + 1, line))
        })
    }

    /// Text in backticks, which may continue on the next line, with the place of its
    /// end. The end of a table row or paragraph closes an open span.
    pub(super) fn spans(&self) -> Vec<(String, String)> {
        let mut spans = Vec::new();
        let mut open: Option<String> = None;
        for (number, line) in self.prose() {
            if line.trim().is_empty() || line.starts_with('|') {
                open = None;
            }
            if let Some(span) = &mut open {
                span.push(' ');
            }
            for (index, piece) in line.split('`').enumerate() {
                if index > 0 {
                    open = match open.take() {
                        Some(span) => {
                            spans.push((format!("{}:{number}", self.name), span));
                            None
                        }
                        None => Some(String::new()),
                    };
                }
                if let Some(span) = &mut open {
                    span.push_str(piece.trim_start_matches(if index == 0 { ' ' } else { '\0' }));
                }
            }
        }
        spans
    }

    /// The targets of links outside of code, with their places.
    pub(super) fn links(&self) -> Vec<(String, String)> {
        let mut links = Vec::new();
        for (number, line) in self.prose() {
            for rest in line.split("](").skip(1) {
                if let Some((target, _)) = rest.split_once(')') {
                    links.push((format!("{}:{number}", self.name), target.to_owned()));
                }
            }
        }
        links
    }

    /// The anchors of the headings, as GitHub generates them.
    pub(super) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for (_, line) in self.prose().filter(|(_, line)| line.starts_with('#')) {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
            let anchor: String = heading.chars().filter(kept).collect();
            let anchor = anchor.replace(' ', "-");
            let times = anchors.iter().filter(|known| **known == anchor).count();
            anchors.push(match times {
                0 => anchor,
                times => format!("{anchor}-{times}"),
            });
        }
        anchors
    }
}
