//! Filter for cumulative pieces of text.
//!
//! Some endpoints repeat the whole text so far in each piece: `The`, `The answer`,
//! `The answer is`. Ordinary pieces look like that only by chance (`1`, `10`), at the very start
//! and not twice in a row, so the third piece decides.

/// If the first piece has at least this length, two pieces suffice to count as cumulative.
const CERTAIN_BYTES: usize = 8;

/// Passes on the new text of each piece.
#[derive(Debug, Default)]
pub(super) struct CumulativeFilter {
    state: CumulativeState,
    /// The last piece, while the next one may start with it.
    last: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Reads a piece and passes on the new text in it and in what was held back.
    pub(super) fn feed(&mut self, piece: &str, on_new: &mut dyn FnMut(&str)) {
        if piece.is_empty() {
            return;
        }
        let is_continuation = piece.starts_with(&self.last);
        let is_longer = piece.len() > self.last.len();
        match self.state {
            CumulativeState::Incremental => return on_new(piece),
            CumulativeState::Start if self.last.is_empty() => on_new(piece),
            CumulativeState::Start
                if is_continuation && is_longer && !is_repeated(piece, &self.last) =>
            {
                self.state = CumulativeState::Undecided(self.last.len());
            }
            CumulativeState::Undecided(first_length)
                if is_continuation && (is_longer || self.last.len() >= CERTAIN_BYTES) =>
            {
                self.state = CumulativeState::Cumulative;
                on_new(&piece[first_length..]);
            }
            CumulativeState::Cumulative if is_continuation => {
                if is_longer {
                    on_new(&piece[self.last.len()..]);
                }
            }
            CumulativeState::Cumulative => {
                on_new(piece);
                self.last.push_str(piece);
                return;
            }
            CumulativeState::Start | CumulativeState::Undecided(_) => {
                if self.state != CumulativeState::Start {
                    on_new(&self.last);
                }
                self.state = CumulativeState::Incremental;
                self.last = String::new();
                return on_new(piece);
            }
        }
        self.last.clear();
        self.last.push_str(piece);
    }

    /// Ends the text: passes on what was held back.
    pub(super) fn finish(&mut self, on_new: &mut dyn FnMut(&str)) {
        if let CumulativeState::Undecided(first_length) = self.state {
            let is_cumulative = first_length >= CERTAIN_BYTES;
            on_new(&self.last[if is_cumulative { first_length } else { 0 }..]);
            self.state = CumulativeState::Incremental;
        }
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
                filter.feed(piece, &mut |new| all.push_str(new));
            }
            filter.finish(&mut |new| all.push_str(new));
            assert_eq!(all, *expected, "{pieces:?}");
        }
    }
}
