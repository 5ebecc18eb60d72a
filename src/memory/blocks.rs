//! Blocks of Markdown whose lines are not read: code between fences, and comments. They start
//! at the first column.

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
                    fence => line.starts_with(fence) && is_one_character(line.trim_end()),
                };
                if is_end {
                    self.closing = None;
                }
                true
            }
            None => {
                self.closing = closing_of(line);
                self.closing.is_some()
            }
        }
    }

    /// The line that closes the open block, if there is one.
    pub(super) fn closing(&self) -> Option<&str> {
        self.closing.as_deref()
    }
}

/// The line that closes the block which a text leaves open.
pub(super) fn closing_line(text: &str) -> Option<String> {
    let mut block = OpenBlock::default();
    for line in text.lines() {
        block.read(line);
    }
    block.closing
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
