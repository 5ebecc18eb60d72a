//! Values that must never be shown.
//!
//! A [`Secret`] has no `Display`, hides itself in `Debug`, and is revealed in
//! one place only, where the request's headers are made (`model/http.rs`; the
//! tidy test holds everybody to it). Masking it in a text needs no reveal.

use std::borrow::Cow;
use std::fmt;

/// A credential. Empty ones cannot be made.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What stands in a text where a secret stood.
pub const MASK: &str = "[secret]";

impl Secret {
    /// `None` for an empty value: there is nothing to keep secret.
    pub fn new(value: impl Into<String>) -> Option<Secret> {
        let value = value.into();
        (!value.is_empty()).then_some(Secret(value))
    }

    /// The value itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text with every occurrence of the secret masked.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // The same inside a JSON string, where it looks otherwise.
        let escaped = serde_json::Value::from(self.0.as_str()).to_string();
        let escaped = &escaped[1..escaped.len() - 1];
        if text.contains(&self.0) || text.contains(escaped) {
            Cow::Owned(text.replace(&self.0, MASK).replace(escaped, MASK))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Whether it is long enough to be a secret and no mere word (`ollama`),
    /// which would be masked in every text.
    pub fn is_worth_masking(&self) -> bool {
        self.0.len() >= crate::limits::SECRET_BYTES
    }

    /// How many bytes at the end of a text may be the beginning of the secret,
    /// whose rest comes with the next piece.
    pub fn beginning_at_end(&self, text: &str) -> usize {
        let longest = self.0.len().saturating_sub(1).min(text.len());
        (1..=longest)
            .rev()
            .find(|&length| text.as_bytes().ends_with(&self.0.as_bytes()[..length]))
            .unwrap_or(0)
    }

    /// Whether it stands somewhere in these bytes.
    pub fn is_within(&self, bytes: &[u8]) -> bool {
        bytes
            .windows(self.0.len())
            .any(|window| window == self.0.as_bytes())
    }

    /// Whether every character of it can stand in an HTTP header.
    pub fn is_sendable(&self) -> bool {
        self.0.chars().all(|c| c.is_ascii_graphic() || c == ' ')
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Everything that is to be masked in a run: the key, the values of extra
/// headers. What is too short to be told from a word is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// The text with every occurrence of any of them masked.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.iter().fold(Cow::Borrowed(text), |text, secret| {
            match secret.mask(&text) {
                Cow::Borrowed(_) => text,
                Cow::Owned(masked) => Cow::Owned(masked),
            }
        })
    }

    /// How many bytes at the end of a text may turn out to be one of them, or
    /// a longer one, with the next piece.
    pub fn undecided_at_end(&self, text: &str) -> usize {
        let beginnings = self.0.iter().map(|secret| secret.beginning_at_end(text));
        let mut held = beginnings.max().unwrap_or(0);
        // A whole one that reaches into what is held must not be torn apart.
        let spans = |secret: &Secret| -> Vec<(usize, usize)> {
            let starts = text.match_indices(&secret.0).map(|(at, _)| at);
            starts.map(|at| (at, at + secret.0.len())).collect()
        };
        let spans: Vec<(usize, usize)> = self.0.iter().flat_map(spans).collect();
        while let Some(&(start, _)) = spans
            .iter()
            .find(|(start, end)| *start < text.len() - held && *end > text.len() - held)
        {
            held = text.len() - start;
        }
        held
    }

    /// Whether one of them stands somewhere in these bytes.
    pub fn is_within(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|secret| secret.is_within(bytes))
    }
}

impl Extend<Secret> for Secrets {
    fn extend<T: IntoIterator<Item = Secret>>(&mut self, secrets: T) {
        let worth_masking = secrets.into_iter().filter(Secret::is_worth_masking);
        self.0.extend(worth_masking);
        // The longest first: one may be the beginning of another.
        self.0
            .sort_by_key(|secret| std::cmp::Reverse(secret.0.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_itself_nowhere() {
        let key = Secret::new("sk-canary").unwrap();
        assert_eq!(format!("{key:?}"), "[secret]");
        assert_eq!(
            key.mask("got sk-canary, sk-canary"),
            "got [secret], [secret]"
        );
        assert_eq!(key.mask("nothing here"), "nothing here");
        assert_eq!(Secret::new(""), None);
        assert_eq!(
            ["x sk-ca", "sk-", "x", "sk-canary"].map(|text| key.beginning_at_end(text)),
            [5, 3, 0, 0]
        );
        let quoted = Secret::new("a\"b\\c").unwrap();
        assert_eq!(quoted.mask(r#"{"x":"a\"b\\c"}"#), r#"{"x":"[secret]"}"#);
    }

    #[test]
    fn several_secrets_are_masked_the_longest_first() {
        let mut secrets = Secrets::default();
        secrets
            .extend(["sk-canary", "sk-canary-2", "short"].map(|text| Secret::new(text).unwrap()));
        assert_eq!(
            secrets.mask("sk-canary-2 sk-canary short"),
            "[secret] [secret] short"
        );
        assert_eq!(secrets.undecided_at_end("x sk-canary-"), 10);
        assert_eq!(secrets.undecided_at_end("x sk-canary"), 9);
        assert_eq!(secrets.undecided_at_end("x sk-canary-2s"), 1);
        assert_eq!(secrets.undecided_at_end("x sk-canary-2 "), 0);
        assert!(secrets.is_within(b"(sk-canary)") && !secrets.is_within(b"short"));
        assert_eq!(Secrets::default().mask("x"), "x");
    }
}
