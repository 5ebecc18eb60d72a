//! Blocks of Markdown whose lines are not read: code between fences, and comments. Up to three
//! spaces before them do not matter.

/// A block that is open after the lines so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenBlock {
    /// The line that closes it; `None` outside of blocks.
    closing: Option<String>,
}

impl OpenBlock {
    /// Reads a line; returns whether it belongs to a block.
    pub(super) fn read(&mut self, line: &str) -> bool {
        match &self.closing {
            Some(closing) => {
                let is_end = match closing.as_str() {
                    COMMENT_END => line.contains(COMMENT_END),
                    fence => unindented(line).is_some_and(|line| {
                        line.starts_with(fence) && is_one_character(line.trim_end())
                    }),
                };
                if is_end {
                    self.closing = None;
                }
                true
            }
            None => {
                self.closing = unindented(line).and_then(closing_of);
                self.closing.is_some()
            }
        }
    }

    /// The line that closes the open block, if there is one.
    pub(super) fn closing(&self) -> Option<&str> {
        self.closing.as_deref()
    }
}

/// The line that closes the block which a text leaves open. Indented lines open no block: they
/// may be part of a list item, in which the block would end.
pub(super) fn closing_line(text: &str) -> Option<String> {
    let mut block = OpenBlock::default();
    for line in text.lines() {
        if block.closing.is_some() || !line.starts_with(' ') {
            block.read(line);
        }
    }
    block.closing
}

/// A line without the spaces before it; `None` if there are more than three.
pub(super) fn unindented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then_some(text)
}

const COMMENT_END: &str = "-->";

/// The line that closes the block which this line opens.
fn closing_of(line: &str) -> Option<String> {
    if let Some(comment) = line.strip_prefix("<!--") {
        return (!comment.contains(COMMENT_END)).then(|| COMMENT_END.to_string());
    }
    let mark = line.chars().next().filter(|c| ['`', '~'].contains(c))?;
    let rest = line.trim_start_matches(mark);
    let fence = &line[..line.len() - rest.len()];
    let is_fence = fence.len() >= 3 && (mark == '~' || !rest.contains('`'));
    is_fence.then(|| fence.to_string())
}

fn is_one_character(line: &str) -> bool {
    let first = line.chars().next();
    line.chars().all(|c| Some(c) == first)
}
