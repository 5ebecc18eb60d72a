//! Credentials, and masking them in text.
//!
//! A [`Secret`] has no `Display`, hides its value in `Debug`, and is revealed only
//! in `chat_api/http/`, which sends requests (a test in `tests/tidy/` checks this).
//! Masking does not reveal it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

use crate::limits;

mod pattern;

use pattern::{Pattern, PatternMatch};

/// Credential that is not empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    value: String,
    /// The forms in which programs write the value.
    patterns: Vec<Pattern>,
}

/// Environment variables for `Debug`, with hidden values: any of them may be a secret.
pub struct HiddenValues<'v>(pub &'v [(OsString, OsString)]);

impl fmt::Debug for HiddenValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Replacement of a secret in a text.
pub const MASK: &str = "[secret]";

impl Secret {
    /// Creates a secret; `None` for an empty value.
    pub fn new(value: impl Into<String>) -> Option<Secret> {
        let value = value.into();
        (!value.is_empty()).then(|| Secret { patterns: pattern::patterns(&value), value })
    }

    /// The value. Only code that sends it may call this.
    pub fn reveal(&self) -> &str {
        &self.value
    }

    /// Whether the value is too long to be a word such as `ollama`, which would be
    /// masked in every text.
    pub fn is_worth_masking(&self) -> bool {
        self.value.len() >= limits::SECRET_BYTES
    }

    /// Whether the secret occurs in these bytes, in any form.
    pub fn occurs_in(&self, bytes: &[u8]) -> bool {
        let windows = bytes.windows(self.value.len());
        let is_plain = || windows.clone().any(|window| window == self.value.as_bytes());
        let is_written = |pattern: &Pattern| {
            let mut starts = 0..bytes.len();
            starts.any(|start| matches!(pattern.match_at(bytes, start), PatternMatch::Whole { .. }))
        };
        is_plain() || self.is_worth_masking() && self.patterns.iter().any(is_written)
    }

    /// Whether an HTTP header can contain the value.
    pub fn is_sendable(&self) -> bool {
        self.value.chars().all(|c| c.is_ascii_graphic() || c == ' ')
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Edges at which a text was cut out of a longer one. A part of a secret may remain
/// there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutEdges {
    /// Text is missing before the start.
    pub before: bool,
    /// Text is missing after the end.
    pub after: bool,
}

impl CutEdges {
    /// The text is the end of a longer one.
    pub const BEFORE: CutEdges = CutEdges { before: true, after: false };
    /// The text is the start of a longer one.
    pub const AFTER: CutEdges = CutEdges { before: false, after: true };
}

/// All secrets to be masked in a run: the key and the values of extra headers.
/// Secrets that are too short ([`Secret::is_worth_masking`]) are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    all: Vec<Secret>,
    /// The bytes with which a secret may start, in any form.
    first_bytes: BTreeSet<u8>,
}

impl Secrets {
    /// Masks every occurrence of a secret in a text.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        mask_spans(text, self.spans(text))
    }

    /// Masks all strings in a JSON value, including the names of fields.
    pub fn mask_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.mask(text) {
                    *text = masked;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask_json(value)),
            Value::Object(fields) => {
                for (name, mut value) in std::mem::take(fields) {
                    self.mask_json(&mut value);
                    fields.insert(self.mask(&name).into_owned(), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Same as [`Secrets::mask`] for a part of a longer text: also masks a part of a
    /// secret at a cut edge.
    pub fn mask_cut<'t>(&self, text: &'t str, cut: CutEdges) -> Cow<'t, str> {
        let mut spans = self.spans(text);
        if cut.after {
            spans.extend(self.partial_at_end(text));
        }
        if cut.before {
            let suffixes = self.patterns();
            let suffixes = suffixes.filter_map(|pattern| pattern.suffix_at_start(text.as_bytes()));
            spans.extend(suffixes.max().map(|length| 0..length));
        }
        mask_spans(text, spans)
    }

    /// Same as [`Secrets::mask`] for a text with truncated parts: also masks the start
    /// of a secret before an ellipsis.
    pub fn mask_shortened<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut spans = self.spans(text);
        let mut start = 0;
        for (end, ellipsis) in text.match_indices('…') {
            let beginning = self.partial_at_end(&text[start..end]);
            spans.extend(beginning.map(|span| start + span.start..end));
            start = end + ellipsis.len();
        }
        mask_spans(text, spans)
    }

    /// Number of bytes at the end of a text that may be part of a secret, depending on
    /// the next piece of the text. At least `least`.
    pub fn undecided_at_end(&self, text: &str, least: usize) -> usize {
        let mut held = least;
        self.search(text, |start, found| {
            let is_undecided = match found {
                PatternMatch::Beginning { .. } => true,
                PatternMatch::Whole { is_open, .. } => is_open,
                PatternMatch::Nothing => false,
            };
            if is_undecided {
                held = held.max(text.len() - start);
            }
        });
        // A complete secret that overlaps the held bytes must not be split.
        let spans = self.spans(text);
        while let Some(span) =
            spans.iter().find(|span| span.start < text.len() - held && span.end > text.len() - held)
        {
            held = text.len() - span.start;
        }
        held
    }

    /// Whether any secret occurs in these bytes.
    pub fn occur_in(&self, bytes: &[u8]) -> bool {
        self.all.iter().any(|secret| secret.occurs_in(bytes))
    }

    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.all.iter().flat_map(|secret| &secret.patterns)
    }

    /// Calls `visit` with the position of each secret, in any form, that starts in the
    /// text.
    fn search(&self, text: &str, mut visit: impl FnMut(usize, PatternMatch)) {
        let bytes = text.as_bytes();
        // A table, for speed: every text that is shown or sent is searched.
        let mut is_first = [false; 256];
        self.first_bytes.iter().for_each(|byte| is_first[usize::from(*byte)] = true);
        for (start, byte) in bytes.iter().enumerate() {
            if is_first[usize::from(*byte)] {
                let found = self.patterns().map(|pattern| pattern.match_at(bytes, start));
                found.for_each(|found| visit(start, found));
            }
        }
    }

    /// Positions of all complete secrets.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        self.search(text, |start, found| {
            if let PatternMatch::Whole { end, .. } = found {
                spans.push(start..end);
            }
        });
        spans
    }

    /// Position of the longest start of a secret at the end of the text, if it is long
    /// enough to reveal something.
    fn partial_at_end(&self, text: &str) -> Option<Range<usize>> {
        let mut longest: Option<usize> = None;
        self.search(text, |start, found| {
            if let PatternMatch::Beginning { bytes } = found
                && bytes >= limits::SECRET_PART_BYTES
            {
                longest.get_or_insert(start);
            }
        });
        longest.map(|start| start..text.len())
    }
}

/// Masks these parts of a text; overlapping parts are masked once.
fn mask_spans(text: &str, mut spans: Vec<Range<usize>>) -> Cow<'_, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_by_key(|span| (span.start, span.end));
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for (index, span) in spans.iter().enumerate() {
        if index == 0 || span.start >= done {
            masked.push_str(&text[done..span.start]);
            masked.push_str(MASK);
        }
        done = done.max(span.end);
    }
    masked.push_str(&text[done..]);
    Cow::Owned(masked)
}

/// Masks the user information of every URL in a text. A user name alone is a token,
/// except for `ssh`; variables such as `${TOKEN}` are not masked. In an invalid
/// authority (`https://me:a/b@host`) too much rather than too little is masked.
pub fn mask_url_logins(text: &str) -> Cow<'_, str> {
    let ends_url = |c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '`');
    let login = |(at, mark): (usize, &str)| {
        let start = at + mark.len();
        let rest = &text[start..];
        let url = &rest[..rest.find(ends_url).unwrap_or(rest.len())];
        let authority = &url[..url.find(['/', '?', '#', '\\']).unwrap_or(url.len())];
        let is_port = |port: &str| port.ends_with(']') || port.bytes().all(|b| b.is_ascii_digit());
        let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
        let end = match authority.rfind('@') {
            None if !is_port(port) => url.rfind('@')?,
            end => end?,
        };
        let login = &url[..end];
        let is_variable = |part: &str| part.starts_with("${") && part.ends_with('}');
        let is_ssh = text[..at].ends_with("ssh") && !login.contains(':');
        let is_open = is_ssh || login.is_empty() || login.split(':').all(is_variable);
        (!is_open).then_some(start..start + end)
    };
    mask_spans(text, text.match_indices("://").filter_map(login).collect())
}

impl Extend<Secret> for Secrets {
    fn extend<T: IntoIterator<Item = Secret>>(&mut self, secrets: T) {
        for secret in secrets {
            if secret.is_worth_masking() && !self.all.contains(&secret) {
                let starts = |byte: &u8| secret.patterns.iter().any(|it| it.can_start_with(*byte));
                self.first_bytes.extend((0..=u8::MAX).filter(starts));
                self.all.push(secret);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_in_debug_output() {
        let key = Secret::new("sk-canary").unwrap();
        assert_eq!(format!("{key:?}"), "[secret]");
        assert_eq!(Secret::new(""), None);
    }

    #[test]
    fn user_information_of_urls_is_masked() {
        for (text, masked) in [
            ("-i https://me:pw@h:9/simple?a=b@c x@y", "-i https://[secret]@h:9/simple?a=b@c x@y"),
            ("x@https://token@h/x.zip", "x@https://[secret]@h/x.zip"),
            ("http://a:b@c@h/", "http://[secret]@h/"),
            ("http://a:b@h/,http://d:@i", "http://[secret]@h/,http://[secret]@i"),
            ("'https://me:p'w@[::1]:9/x'", "'https://[secret]@[::1]:9/x'"),
            ("https://me:p/w@h/x", "https://[secret]@h/x"),
            ("git+https://h/x.git@v1", "git+https://h/x.git@v1"),
            ("https://[::1]:9/x@v1", "https://[::1]:9/x@v1"),
            ("git+ssh://git@h:me/x.git@v1", "git+ssh://git@h:me/x.git@v1"),
            ("ssh://me:pw@h/x", "ssh://[secret]@h/x"),
            ("https://${USER}:${TOKEN}@h/", "https://${USER}:${TOKEN}@h/"),
            ("https://${USER}:pw@h/", "https://[secret]@h/"),
            ("https://@h/ :// me@h ://", "https://@h/ :// me@h ://"),
        ] {
            assert_eq!(mask_url_logins(text), masked, "{text}");
        }
    }

    fn secrets<const N: usize>(values: [&str; N]) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.extend(values.map(|value| Secret::new(value).unwrap()));
        secrets
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let one = secrets(["k\"e\\y/+%=x"]);
        for written in [
            r#"k"e\y/+%=x"#,
            r#"k\"e\\y/+%=x"#,
            r#"k\"e\\y\/+%=x"#,
            "k%22e%5Cy%2F%2B%25%3Dx",
            "k%22e%5cy%2f%2b%25%3dx",
            "k%22e%5Cy/%2B%25%3Dx",
            r"\u006b\u0022e\u005Cy/+%=x",
            r#"\\u006b\\\"e\\\\y/+\\u0025=x"#,
            r"\x6b\x22\x65\x5C\x79/+\045=x",
            r"\u{6b}\U00000022e\u{00005c}y\/\+%=x",
        ] {
            let text = format!("<{written}>");
            assert_eq!(one.mask(&text), "<[secret]>", "{written}");
        }
        assert_eq!(one.mask("k\\u0022e is none"), "k\\u0022e is none");
    }

    #[test]
    fn parts_of_a_secret_at_a_cut_are_masked() {
        let one = secrets(["sk-canary-123"]);
        let table = [
            ("x sk-c", (false, true), "x [secret]"),
            ("x sk-", (false, true), "x sk-"),
            ("x sk-canary-12", (false, true), "x [secret]"),
            ("x sk-canary-12", (true, false), "x sk-canary-12"),
            ("-123 x", (true, false), "[secret] x"),
            ("123 x", (true, false), "123 x"),
            ("k-canary-123 x", (true, false), "[secret] x"),
            ("k-canary-123 x", (false, true), "k-canary-123 x"),
            ("sk-canary-123", (true, true), "[secret]"),
            ("-123 sk-canary-123 sk-c", (true, true), "[secret] [secret] [secret]"),
            ("", (true, true), ""),
        ];
        for (text, (before, after), masked) in table {
            assert_eq!(one.mask_cut(text, CutEdges { before, after }), masked, "{text}");
        }
        assert_eq!(one.mask_shortened("a sk-can… sk-can b"), "a [secret]… sk-can b");
    }

    #[test]
    fn several_secrets_are_masked_with_the_longest_first() {
        let secrets = secrets(["sk-canary", "sk-canary-2", "short"]);
        assert_eq!(secrets.mask("sk-canary-2 sk-canary short"), "[secret] [secret] short");
        assert_eq!(secrets.undecided_at_end("x sk-canary-", 0), 10);
        assert_eq!(secrets.undecided_at_end("x sk-canary", 0), 9);
        assert_eq!(secrets.undecided_at_end("x sk-canary-2s", 0), 1);
        assert_eq!(secrets.undecided_at_end("x sk-canary-2 ", 0), 0);
        assert_eq!(secrets.mask("sk-canarysk-canary"), "[secret][secret]");
        assert!(secrets.occur_in(b"(sk-canary)") && !secrets.occur_in(b"short"));
        assert_eq!(Secrets::default().mask("x"), "x");
    }
}
