//! Masks secrets in text that comes in pieces, even if a secret is split between
//! pieces.

use base::secret::Secrets;

/// Masks a stream of text. It holds back the end of a piece that may be the start of a
/// secret or of a line end.
#[derive(Debug, Default)]
pub struct StreamRedactor {
    held: String,
}

impl StreamRedactor {
    /// Adds a piece, and returns the masked text that can be shown now.
    pub fn add(&mut self, piece: &str, secrets: &Secrets) -> String {
        let mut text = std::mem::take(&mut self.held) + piece;
        let held = secrets.undecided_at_end(&text, usize::from(text.ends_with('\r')));
        self.held = text.split_off(text.floor_char_boundary(text.len() - held));
        secrets.mask(&text).into_owned()
    }

    /// Returns the masked rest at the end of the stream.
    pub fn end(&mut self, secrets: &Secrets) -> String {
        let held = std::mem::take(&mut self.held);
        secrets.mask(&held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::secret::Secret;

    #[test]
    fn a_split_secret_is_masked_and_other_text_is_kept() {
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
            let mut redactor = StreamRedactor::default();
            let mut shown: Vec<String> =
                pieces.iter().map(|piece| redactor.add(piece, &secrets)).collect();
            shown.push(redactor.end(&secrets));
            assert_eq!(shown, expected, "{pieces:?}");
        }
    }
}
