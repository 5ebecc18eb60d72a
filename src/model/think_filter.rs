//! Separates reasoning in the text (`<think>…</think>` at its start) from the answer, piece by
//! piece as the text is streamed.

use crate::limits;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The position of the filter in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThinkState {
    /// Only white space, or a part of the opening tag.
    #[default]
    Start,
    /// Between the tags.
    Thinking,
    /// In the white space after the closing tag.
    Gap,
    /// In the answer, to the end.
    Answering,
}

/// A piece of the text, classified.
#[derive(Debug, PartialEq, Eq)]
pub enum ThinkPiece<'t> {
    /// Part of the answer.
    Text(&'t str),
    /// Part of the reasoning.
    Reasoning(&'t str),
}

/// A filter for one message.
#[derive(Debug, Default)]
pub struct ThinkFilter {
    state: ThinkState,
    /// Text that may be part of a tag.
    held: String,
    has_reasoning: bool,
}

impl ThinkFilter {
    /// Filters a piece of text and passes on what is certain so far.
    pub fn feed(&mut self, text: &str, on_piece: &mut dyn FnMut(ThinkPiece<'_>)) {
        if self.state == ThinkState::Answering {
            return on_piece(ThinkPiece::Text(text));
        }
        self.held.push_str(text);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        if self.state == ThinkState::Start {
            let trimmed = rest.trim_start();
            if let Some(reasoning) = trimmed.strip_prefix(OPEN) {
                self.state = ThinkState::Thinking;
                self.has_reasoning = true;
                rest = reasoning;
            } else if OPEN.starts_with(trimmed) && rest.len() < limits::LEADING_BLANKS {
                self.held.push_str(rest);
                return;
            } else {
                self.state = ThinkState::Answering;
            }
        }
        if self.state == ThinkState::Thinking {
            if let Some((reasoning, after)) = rest.split_once(CLOSE) {
                if !reasoning.is_empty() {
                    on_piece(ThinkPiece::Reasoning(reasoning));
                }
                self.state = ThinkState::Gap;
                rest = after;
            } else {
                let certain = rest.len() - tag_prefix_at_end(rest);
                self.held.push_str(&rest[certain..]);
                if certain > 0 {
                    on_piece(ThinkPiece::Reasoning(&rest[..certain]));
                }
                return;
            }
        }
        if self.state == ThinkState::Gap {
            rest = rest.trim_start();
            if !rest.is_empty() {
                self.state = ThinkState::Answering;
            }
        }
        if !rest.is_empty() {
            on_piece(ThinkPiece::Text(rest));
        }
    }

    /// Whether the text contained reasoning.
    pub fn has_reasoning(&self) -> bool {
        self.has_reasoning
    }

    /// Ends the message: passes on the text held back.
    pub fn finish(&mut self, on_piece: &mut dyn FnMut(ThinkPiece<'_>)) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            _ if held.is_empty() => {}
            ThinkState::Thinking => on_piece(ThinkPiece::Reasoning(&held)),
            _ => on_piece(ThinkPiece::Text(&held)),
        }
    }
}

/// The answer in a text whose reasoning has no opening tag: where the server puts that tag into
/// the prompt, the reply has only the closing one, on a line of its own or after the end of a
/// sentence.
pub(super) fn strip_unopened_reasoning(text: String) -> String {
    let close = |line: &str| {
        let reasoning = line.trim_end().strip_suffix(CLOSE);
        reasoning.is_some_and(|reasoning| {
            reasoning.is_empty() || reasoning.ends_with(['.', '!', '?', '…', '"', ')'])
        })
    };
    let mut after = 0;
    for line in text.split_inclusive('\n') {
        // A text about the tags is not reasoning.
        if line.contains(OPEN) || line.contains('`') {
            break;
        }
        after += line.len();
        if close(line) {
            return text[after..].trim_start().to_string();
        }
    }
    text
}

/// How many bytes at the end may be the start of the closing tag.
fn tag_prefix_at_end(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|&length| text.ends_with(&CLOSE[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pieces: &[&str]) -> (String, String) {
        let (mut answer, mut reasoning) = (String::new(), String::new());
        let mut filter = ThinkFilter::default();
        let mut collect = |piece: ThinkPiece<'_>| match piece {
            ThinkPiece::Text(text) => answer.push_str(text),
            ThinkPiece::Reasoning(text) => reasoning.push_str(text),
        };
        for piece in pieces {
            filter.feed(piece, &mut collect);
        }
        filter.finish(&mut collect);
        (answer, reasoning)
    }

    #[test]
    fn reasoning_at_the_start_is_separated_however_it_is_cut() {
        let table = [
            ("plain", "plain", ""),
            ("<think>why</think>\n\nbecause", "because", "why"),
            ("\n <think>a < b </thin k></think>c", "c", "a < b </thin k>"),
            ("<thinking>is a word", "<thinking>is a word", ""),
            ("later <think>x</think>", "later <think>x</think>", ""),
            ("<think>never closed", "", "never closed"),
            ("<thi", "<thi", ""),
            ("  indented", "  indented", ""),
            ("<think></think>ü", "ü", ""),
        ];
        for (text, answer, reasoning) in table {
            let expected = (answer.to_string(), reasoning.to_string());
            assert_eq!(filter(&[text]), expected, "{text:?}");
            let mut buffer = [0; 4];
            let pieces: Vec<String> =
                text.chars().map(|c| c.encode_utf8(&mut buffer).to_string()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            assert_eq!(filter(&pieces), expected, "{text:?} by character");
        }
    }

    #[test]
    fn reasoning_without_opening_tag_ends_at_the_closing_one() {
        for (text, answer) in [
            ("reasoning\n</think>\n\nanswer", "answer"),
            ("</think>\r\nanswer", "answer"),
            ("the tag `</think>` ends thoughts", "the tag `</think>` ends thoughts"),
            ("so:\n<think>\n</think>\n", "so:\n<think>\n</think>\n"),
            ("answer", "answer"),
            ("reasoning\n</think>", ""),
            ("reasoning.</think>\n\nanswer", "answer"),
        ] {
            assert_eq!(strip_unopened_reasoning(text.into()), answer);
        }
    }

    #[test]
    fn leading_spaces_are_not_held_back_forever() {
        let blanks = " ".repeat(limits::LEADING_BLANKS);
        assert_eq!(filter(&[&blanks, "x"]).0.len(), blanks.len() + 1);
    }
}
