//! Separates reasoning in the text (such as `<think>…</think>` at its start) from the answer, piece
//! by piece as the text is streamed.

use base::limits;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The tags around reasoning: of most models, of gpt-oss, of Gemma.
const TAGS: [(&str, &str); 3] = [
    (OPEN, CLOSE),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|channel>thought", "<channel|>"),
];

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

/// The result of a piece of text: reasoning, then text of the answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ThinkPiece {
    /// Part of the reasoning.
    pub reasoning: String,
    /// Part of the answer.
    pub text: String,
}

/// A filter for one message.
#[derive(Debug, Default)]
pub struct ThinkFilter {
    state: ThinkState,
    /// Text that may be part of a tag.
    held: String,
    /// The reasoning's end tag.
    close: &'static str,
    has_reasoning: bool,
}

impl ThinkFilter {
    /// Filters a piece of text and returns what is certain so far.
    pub fn feed(&mut self, text: &str) -> ThinkPiece {
        self.held.push_str(text);
        let mut piece = ThinkPiece::default();
        if self.state == ThinkState::Start {
            let start = self.held.trim_start();
            let opened = |(open, close)| Some((start.strip_prefix(open)?.to_string(), close));
            if let Some((reasoning, close)) = TAGS.into_iter().find_map(opened) {
                self.held = reasoning;
                self.close = close;
                self.has_reasoning = true;
                self.state = ThinkState::Thinking;
            } else if TAGS.iter().any(|(open, _)| open.starts_with(start))
                && self.held.len() < limits::LEADING_BLANKS
            {
                return piece;
            } else {
                self.state = ThinkState::Answering;
            }
        }
        if self.state == ThinkState::Thinking {
            let Some((reasoning, after)) = self.held.split_once(self.close) else {
                let certain = self.held.len() - tag_prefix_at_end(&self.held, self.close);
                piece.reasoning.extend(self.held.drain(..certain));
                return piece;
            };
            piece.reasoning = reasoning.into();
            self.held = after.into();
            self.state = ThinkState::Gap;
        }
        piece.text = std::mem::take(&mut self.held);
        if self.state == ThinkState::Gap {
            piece.text = piece.text.trim_start().into();
            if !piece.text.is_empty() {
                self.state = ThinkState::Answering;
            }
        }
        piece
    }

    /// Whether all further text is a part of the answer.
    pub fn is_over(&self) -> bool {
        self.state == ThinkState::Answering && self.held.is_empty()
    }

    /// Whether the text contained reasoning.
    pub fn has_reasoning(&self) -> bool {
        self.has_reasoning
    }

    /// Ends the message: returns the text held back.
    pub fn finish(&mut self) -> ThinkPiece {
        let held = std::mem::take(&mut self.held);
        match self.state {
            ThinkState::Thinking => ThinkPiece { reasoning: held, ..ThinkPiece::default() },
            _ => ThinkPiece { text: held, ..ThinkPiece::default() },
        }
    }
}

/// The answer in a text whose reasoning has no opening tag: where the server puts that tag into
/// the prompt, the reply has only the closing one, on a line of its own or after the end of a
/// sentence.
pub(super) fn strip_unopened_reasoning(text: String) -> String {
    let mut after = 0;
    for line in text.split_inclusive('\n') {
        // A text about the tags is not reasoning.
        if line.contains(OPEN) || line.contains('`') {
            break;
        }
        after += line.len();
        let sentence = line.trim_end().strip_suffix(CLOSE);
        let is_end = |text: &str| text.is_empty() || text.ends_with(['.', '!', '?', '…', '"', ')']);
        if sentence.is_some_and(is_end) {
            return text[after..].trim_start().to_string();
        }
    }
    text
}

/// How many bytes at the end may be the start of the closing tag.
fn tag_prefix_at_end(text: &str, close: &str) -> usize {
    (1..close.len()).rev().find(|&length| text.ends_with(&close[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pieces: &[&str]) -> (String, String) {
        let mut filter = ThinkFilter::default();
        let mut found: Vec<ThinkPiece> = pieces.iter().map(|piece| filter.feed(piece)).collect();
        found.push(filter.finish());
        let answer = found.iter().map(|piece| piece.text.as_str());
        let reasoning = found.iter().map(|piece| piece.reasoning.as_str());
        (answer.collect(), reasoning.collect())
    }

    #[test]
    fn reasoning_at_the_start_is_separated_however_it_is_cut() {
        let table = [
            ("plain", "plain", ""),
            ("<think>why</think>\n\nbecause", "because", "why"),
            ("<|channel|>analysis<|message|>why<|end|>\nbecause", "because", "why"),
            ("<|channel>thoughtwhy<channel|>because", "because", "why"),
            ("<|channel|>final", "<|channel|>final", ""),
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
