//! Filter for cumulative pieces of text.
//!
//! Some endpoints repeat the whole text so far in each piece: `The`, `The answer`,
//! `The answer is`. Ordinary pieces look like that only by chance (`1`, `10`), at the very start
//! and not twice in a row, so the third piece decides.

use std::borrow::Cow;

/// If the first piece has at least this length, two pieces suffice to count as cumulative.
const CERTAIN_BYTES: usize = 8;

/// Filter for the pieces of one text.
#[derive(Debug, Default)]
pub(super) struct CumulativeFilter {
    state: CumulativeState,
    /// The last piece, while the next one may start with it.
    last: String,
}

#[derive(Clone, Copy, Debug, Default)]
enum CumulativeState {
    /// At most one piece was received.
    #[default]
    Start,
    /// The second piece started with the first, of this length; it is held back.
    Undecided(usize),
    /// Each piece starts with all text before it.
    Cumulative,
    /// Each piece is new text.
    Incremental,
}

impl CumulativeFilter {
    /// The new text in a piece and in what was held back.
    pub(super) fn feed<'p>(&mut self, piece: &'p str) -> Cow<'p, str> {
        use CumulativeState::{Cumulative, Incremental, Start, Undecided};
        if piece.is_empty() {
            return piece.into();
        }
        let last = std::mem::take(&mut self.last);
        let rest = piece.strip_prefix(last.as_str());
        let is_longer = rest.is_some_and(|rest| !rest.is_empty());
        let (state, new_text) = match (self.state, rest) {
            (Start, _) if last.is_empty() => (Start, piece.into()),
            (Start, Some(_)) if is_longer && !is_repeated(piece, &last) => {
                (Undecided(last.len()), "".into())
            }
            (Undecided(first), Some(_)) if is_longer || last.len() >= CERTAIN_BYTES => {
                (Cumulative, piece[first..].into())
            }
            (Cumulative, Some(rest)) => (Cumulative, rest.into()),
            (Cumulative, None) => {
                self.last = last + piece;
                return piece.into();
            }
            (Undecided(_), _) => (Incremental, Cow::Owned(last + piece)),
            (Start | Incremental, _) => (Incremental, piece.into()),
        };
        self.state = state;
        if !matches!(state, Incremental) {
            self.last = piece.to_string();
        }
        new_text
    }

    /// Ends the text: returns what was held back.
    pub(super) fn finish(&mut self) -> String {
        let CumulativeState::Undecided(first) = std::mem::take(&mut self.state) else {
            return String::new();
        };
        let start = if first >= CERTAIN_BYTES { first } else { 0 };
        self.last.split_off(start)
    }
}

/// Whether a text is another one repeated several times: `ha `, `ha ha ha `.
fn is_repeated(text: &str, part: &str) -> bool {
    text.len().is_multiple_of(part.len())
        && text.as_bytes().chunks(part.len()).all(|piece| piece == part.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_text_is_passed_on() {
        let table: &[(&[&str], &str)] = &[
            (&["The", " answer", " is"], "The answer is"),
            (&["The", "The answer", "The answer is"], "The answer is"),
            (&["The answer", "The answer is"], "The answer is"),
            (
                &["hello world\n", "hello world\nhello world\n"],
                "hello world\nhello world\nhello world\n",
            ),
            (&["ha ", "ha ha ", "ha ha ha ha "], "ha ha ha ha ha ha ha "),
            (&["The", "The answer", "The answer", "The answer"], "The answer"),
            (&["a", "ab", "abc", "", "abc", "!"], "abc!"),
            (&["1", "10"], "110"),
            (&["1", "1,", "2"], "11,2"),
            (&["ha", "ha", "haha"], "hahahaha"),
            (&["1", "10", "10"], "11010"),
            (&["", "a"], "a"),
            (&[], ""),
        ];
        for (pieces, expected) in table {
            let (mut filter, mut all) = (CumulativeFilter::default(), String::new());
            for piece in *pieces {
                all.push_str(&filter.feed(piece));
            }
            all.push_str(&filter.finish());
            assert_eq!(all, *expected, "{pieces:?}");
        }
    }
}
