//! Text that is sent again and again.
//!
//! Some endpoints send with each piece everything so far: `The`, `The answer`,
//! `The answer is`. Ordinary pieces look so by chance only (`1`, `10`), at the
//! very beginning and not twice in a row, so the third piece decides.

/// Two pieces alone count as the same text sent again from this length on.
const TELLING_BYTES: usize = 8;

/// Gives of each piece what is new.
#[derive(Debug, Default)]
pub(super) struct CumulativeFilter {
    state: CumulativeState,
    /// The last piece, as long as the next one may begin with it.
    last: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CumulativeState {
    /// At most one piece has come.
    #[default]
    Beginning,
    /// The second piece began with the first, of this length; it is held back.
    Doubtful(usize),
    /// Each piece begins with all before it.
    Resent,
    /// Each piece is new.
    New,
}

impl CumulativeFilter {
    /// Takes a piece and gives what of it, and of what was held back, is new.
    pub(super) fn feed(&mut self, piece: &str, on_new: &mut dyn FnMut(&str)) {
        if piece.is_empty() {
            return;
        }
        let begins_alike = piece.starts_with(&self.last);
        let is_longer = piece.len() > self.last.len();
        match self.state {
            CumulativeState::New => return on_new(piece),
            CumulativeState::Beginning if self.last.is_empty() => on_new(piece),
            CumulativeState::Beginning
                if begins_alike && is_longer && !is_repeated(piece, &self.last) =>
            {
                self.state = CumulativeState::Doubtful(self.last.len());
            }
            CumulativeState::Doubtful(told)
                if begins_alike && (is_longer || self.last.len() >= TELLING_BYTES) =>
            {
                self.state = CumulativeState::Resent;
                on_new(&piece[told..]);
            }
            CumulativeState::Resent if begins_alike => {
                if is_longer {
                    on_new(&piece[self.last.len()..]);
                }
            }
            CumulativeState::Resent => {
                on_new(piece);
                self.last.push_str(piece);
                return;
            }
            CumulativeState::Beginning | CumulativeState::Doubtful(_) => {
                if self.state != CumulativeState::Beginning {
                    on_new(&self.last);
                }
                self.state = CumulativeState::New;
                self.last = String::new();
                return on_new(piece);
            }
        }
        self.last.clear();
        self.last.push_str(piece);
    }

    /// No more pieces come: gives what was held back.
    pub(super) fn finish(&mut self, on_new: &mut dyn FnMut(&str)) {
        if let CumulativeState::Doubtful(told) = self.state {
            let is_resent = told >= TELLING_BYTES;
            on_new(&self.last[if is_resent { told } else { 0 }..]);
            self.state = CumulativeState::New;
        }
    }
}

/// Whether a text is another one several times over: `ha `, `ha ha ha `.
fn is_repeated(text: &str, part: &str) -> bool {
    text.len().is_multiple_of(part.len())
        && text.as_bytes().chunks(part.len()).all(|piece| piece == part.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_given() {
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
            let (mut resent, mut all) = (CumulativeFilter::default(), String::new());
            for piece in *pieces {
                resent.feed(piece, &mut |new| all.push_str(new));
            }
            resent.finish(&mut |new| all.push_str(new));
            assert_eq!(all, *expected, "{pieces:?}");
        }
    }
}
