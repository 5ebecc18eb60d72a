//! Tells thoughts that stand in the text (`<think>…</think>` at its
//! beginning) from what the model says, piece by piece as they stream in.

use crate::limits;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Where in the text the filter is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThinkState {
    /// Nothing but white space yet, or the beginning of the opening tag.
    #[default]
    Start,
    /// Inside.
    Thinking,
    /// After the closing tag, white space not yet over.
    Gap,
    /// Everything from here on is said.
    Saying,
}

/// What a piece of the text was.
#[derive(Debug, PartialEq, Eq)]
pub enum ThinkPiece<'t> {
    /// Meant for the person.
    Said(&'t str),
    /// Thought.
    Thought(&'t str),
}

/// The filter of one message.
#[derive(Debug, Default)]
pub struct ThinkFilter {
    state: ThinkState,
    /// Text that may turn out to be part of a tag.
    held: String,
    has_thought: bool,
}

impl ThinkFilter {
    /// Takes a piece of text and gives what is certain so far.
    pub fn feed(&mut self, text: &str, on_piece: &mut dyn FnMut(ThinkPiece<'_>)) {
        if self.state == ThinkState::Saying {
            return on_piece(ThinkPiece::Said(text));
        }
        self.held.push_str(text);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        if self.state == ThinkState::Start {
            let trimmed = rest.trim_start();
            if let Some(thought) = trimmed.strip_prefix(OPEN) {
                self.state = ThinkState::Thinking;
                self.has_thought = true;
                rest = thought;
            } else if OPEN.starts_with(trimmed) && rest.len() < limits::LEADING_BLANKS {
                self.held.push_str(rest);
                return;
            } else {
                self.state = ThinkState::Saying;
            }
        }
        if self.state == ThinkState::Thinking {
            if let Some((thought, after)) = rest.split_once(CLOSE) {
                if !thought.is_empty() {
                    on_piece(ThinkPiece::Thought(thought));
                }
                self.state = ThinkState::Gap;
                rest = after;
            } else {
                let certain = rest.len() - tag_prefix_at_end(rest);
                self.held.push_str(&rest[certain..]);
                if certain > 0 {
                    on_piece(ThinkPiece::Thought(&rest[..certain]));
                }
                return;
            }
        }
        if self.state == ThinkState::Gap {
            rest = rest.trim_start();
            if !rest.is_empty() {
                self.state = ThinkState::Saying;
            }
        }
        if !rest.is_empty() {
            on_piece(ThinkPiece::Said(rest));
        }
    }

    /// Whether thoughts stood in the text.
    pub fn has_thought(&self) -> bool {
        self.has_thought
    }

    /// The message is over: gives what was held back.
    pub fn finish(&mut self, on_piece: &mut dyn FnMut(ThinkPiece<'_>)) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            _ if held.is_empty() => {}
            ThinkState::Thinking => on_piece(ThinkPiece::Thought(&held)),
            _ => on_piece(ThinkPiece::Said(&held)),
        }
    }
}

/// What is said in a text whose thoughts end without having begun: where the
/// server puts the opening tag into the prompt, only the closing one comes, on
/// a line of its own or behind a sentence's end.
pub(super) fn split_unopened(text: String) -> String {
    let close = |line: &str| {
        let thought = line.trim_end().strip_suffix(CLOSE);
        thought.is_some_and(|thought| {
            thought.is_empty() || thought.ends_with(['.', '!', '?', '…', '"', ')'])
        })
    };
    let mut after = 0;
    for line in text.split_inclusive('\n') {
        // Where the tag itself is the subject, it is no end of thoughts.
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

/// How many bytes at the end may be the beginning of the closing tag.
fn tag_prefix_at_end(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|&length| text.ends_with(&CLOSE[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pieces: &[&str]) -> (String, String) {
        let (mut said, mut thought) = (String::new(), String::new());
        let mut filter = ThinkFilter::default();
        let mut collect = |piece: ThinkPiece<'_>| match piece {
            ThinkPiece::Said(text) => said.push_str(text),
            ThinkPiece::Thought(text) => thought.push_str(text),
        };
        for piece in pieces {
            filter.feed(piece, &mut collect);
        }
        filter.finish(&mut collect);
        (said, thought)
    }

    #[test]
    fn thoughts_at_the_beginning_are_told_apart_however_they_are_cut() {
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
        for (text, said, thought) in table {
            let expected = (said.to_string(), thought.to_string());
            assert_eq!(filter(&[text]), expected, "{text:?}");
            let mut buffer = [0; 4];
            let pieces: Vec<String> =
                text.chars().map(|c| c.encode_utf8(&mut buffer).to_string()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            assert_eq!(filter(&pieces), expected, "{text:?} by character");
        }
    }

    #[test]
    fn thoughts_that_never_began_end_on_a_line_of_their_own() {
        for (text, said) in [
            ("thought\n</think>\n\nanswer", "answer"),
            ("</think>\r\nanswer", "answer"),
            ("the tag `</think>` ends thoughts", "the tag `</think>` ends thoughts"),
            ("so:\n<think>\n</think>\n", "so:\n<think>\n</think>\n"),
            ("answer", "answer"),
            ("thought\n</think>", ""),
            ("thought.</think>\n\nanswer", "answer"),
        ] {
            assert_eq!(split_unopened(text.into()), said);
        }
    }

    #[test]
    fn blanks_are_not_held_back_for_ever() {
        let blanks = " ".repeat(limits::LEADING_BLANKS);
        assert_eq!(filter(&[&blanks, "x"]).0.len(), blanks.len() + 1);
    }
}
