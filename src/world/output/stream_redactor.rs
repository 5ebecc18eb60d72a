//! Text that comes in pieces, with its secrets masked although one may be
//! spread over several of them.

use crate::secret::Secrets;

/// Holds back the end of what has come, as long as the next piece may change
/// what it is: the beginning of a secret, or of a line's end.
#[derive(Debug, Default)]
pub struct StreamRedactor {
    held: String,
}

impl StreamRedactor {
    /// Takes a piece and gives what can be shown by now, masked.
    pub fn add(&mut self, piece: &str, secrets: &Secrets) -> String {
        let mut text = std::mem::take(&mut self.held) + piece;
        let held = secrets.undecided_at_end(&text, usize::from(text.ends_with('\r')));
        self.held = text.split_off(text.floor_char_boundary(text.len() - held));
        secrets.mask(&text).into_owned()
    }

    /// Nothing more comes: gives the rest, masked.
    pub fn end(&mut self, secrets: &Secrets) -> String {
        let held = std::mem::take(&mut self.held);
        secrets.mask(&held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn a_secret_in_pieces_is_masked_and_everything_else_comes_through() {
        let mut secrets = Secrets::default();
        secrets.extend(Secret::new("sk-canary"));
        secrets.extend(Secret::new("sk-canary-2"));
        secrets.extend(Secret::new("ends-so\r"));
        let table: [(&[&str], &[&str]); 7] = [
            (&["x ends-so\r", "\n"], &["x ", "[secret]\n", ""]),
            (&["sk-canary", "-2 x"], &["", "[secret] x", ""]),
            (&["sk-canary-"], &["", "[secret]-"]),
            (&["a sk-", "can", "ary b", "d"], &["a ", "", "[secret] b", "d", ""]),
            (&["a sk-", "down"], &["a ", "sk-down", ""]),
            (&["ends in sk-c"], &["ends in ", "sk-c"]),
            (&["a\r", "\nb\r"], &["a", "\r\nb", "\r"]),
        ];
        for (pieces, expected) in table {
            let mut veil = StreamRedactor::default();
            let mut shown: Vec<String> =
                pieces.iter().map(|piece| veil.add(piece, &secrets)).collect();
            shown.push(veil.end(&secrets));
            assert_eq!(shown, expected, "{pieces:?}");
        }
    }
}
