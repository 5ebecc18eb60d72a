//! Values that must never be shown.
//!
//! A [`Secret`] has no `Display`, hides itself in `Debug`, and is revealed in
//! one place only, where requests are made (`model/http/`; the
//! tidy test holds everybody to it). Masking it in a text needs no reveal.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

use crate::limits;
use crate::order;

mod pattern;

use pattern::{Pattern, PatternMatch};

/// A credential. Empty ones cannot be made.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    value: String,
    /// The ways in which programs write it.
    patterns: Vec<Pattern>,
}

/// Variables with their values hidden, for `Debug`: any of them may be secret,
/// and not only ours.
pub(crate) struct HiddenValues<'v>(pub &'v [(OsString, OsString)]);

impl fmt::Debug for HiddenValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// What stands in a text where a secret stood.
pub const MASK: &str = "[secret]";

impl Secret {
    /// `None` for an empty value: there is nothing to keep secret.
    pub fn new(value: impl Into<String>) -> Option<Secret> {
        let value = value.into();
        (!value.is_empty()).then(|| Secret { patterns: pattern::patterns(&value), value })
    }

    /// The value itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.value
    }

    /// Whether it is long enough to be a secret and no mere word (`ollama`),
    /// which would be masked in every text.
    pub fn is_worth_masking(&self) -> bool {
        self.value.len() >= limits::SECRET_BYTES
    }

    /// Whether it stands somewhere in these bytes, in whatever form.
    pub fn is_within(&self, bytes: &[u8]) -> bool {
        let windows = bytes.windows(self.value.len());
        let is_plain = || windows.clone().any(|window| window == self.value.as_bytes());
        let is_written = |pattern: &Pattern| {
            let mut starts = 0..bytes.len();
            starts.any(|start| matches!(pattern.find(bytes, start), PatternMatch::Whole { .. }))
        };
        is_plain() || self.is_worth_masking() && self.patterns.iter().any(is_written)
    }

    /// Whether every character of it can stand in an HTTP header.
    pub fn is_sendable(&self) -> bool {
        self.value.chars().all(|c| c.is_ascii_graphic() || c == ' ')
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Where a text was cut out of a longer one, so that only a part of a secret
/// may stand there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutEdges {
    /// Something is missing before its beginning.
    pub before: bool,
    /// Something is missing behind its end.
    pub behind: bool,
}

impl CutEdges {
    /// Only the end of the longer text is there.
    pub const BEFORE: CutEdges = CutEdges { before: true, behind: false };
    /// Only the beginning of it is there.
    pub const BEHIND: CutEdges = CutEdges { before: false, behind: true };
}

/// Everything that is to be masked in a run: the key, the values of extra
/// headers. What is too short to be told from a word is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    all: Vec<Secret>,
    /// A bit for each two bytes with which one of them may begin.
    beginnings: Option<Box<[u64; limits::SECRET_TABLE]>>,
}

impl Secrets {
    /// The text with every occurrence of any of them masked.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        covered(text, self.spans(text))
    }

    /// Masks every text in there, the names of fields too.
    pub fn mask_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.mask(text) {
                    *text = masked;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask_all(value)),
            Value::Object(fields) => {
                for (name, mut value) in std::mem::take(fields) {
                    self.mask_all(&mut value);
                    fields.insert(self.mask(&name).into_owned(), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The same for a text that is part of a longer one: what a cut has left
    /// of a secret is masked too.
    pub fn mask_cut<'t>(&self, text: &'t str, cut: CutEdges) -> Cow<'t, str> {
        let mut spans = self.spans(text);
        if cut.behind {
            spans.extend(self.beginning_at_end(text));
        }
        if cut.before {
            let rests = self.patterns();
            let rests = rests.filter_map(|pattern| pattern.rest_at_start(text.as_bytes()));
            spans.extend(rests.max().map(|length| 0..length));
        }
        covered(text, spans)
    }

    /// The same for a text of which parts were shortened, each with an
    /// ellipsis where its end was.
    pub fn mask_shortened<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut spans = self.spans(text);
        let mut start = 0;
        for (end, ellipsis) in text.match_indices('…') {
            let beginning = self.beginning_at_end(&text[start..end]);
            spans.extend(beginning.map(|span| start + span.start..end));
            start = end + ellipsis.len();
        }
        covered(text, spans)
    }

    /// How many bytes at the end of a text may turn out to be one of them, or
    /// a longer one, with the next piece. `least` are held back in any case.
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
        // A whole one that reaches into what is held must not be torn apart.
        let spans = self.spans(text);
        while let Some(span) =
            spans.iter().find(|span| span.start < text.len() - held && span.end > text.len() - held)
        {
            held = text.len() - span.start;
        }
        held
    }

    /// Whether one of them stands somewhere in these bytes.
    pub fn is_within(&self, bytes: &[u8]) -> bool {
        self.all.iter().any(|secret| secret.is_within(bytes))
    }

    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.all.iter().flat_map(|secret| &secret.patterns)
    }

    /// Tells of each place where one of them stands, in whatever form, or begins.
    fn search(&self, text: &str, mut tell: impl FnMut(usize, PatternMatch)) {
        let bytes = text.as_bytes();
        let mut look = |start: usize| {
            let found = self.patterns().map(|pattern| pattern.find(bytes, start));
            found.for_each(|found| tell(start, found));
        };
        let Some((last, table)) = bytes.len().checked_sub(1).zip(self.beginnings.as_deref()) else {
            return;
        };
        // Nearly everything is told apart by two bytes. A plain loop: every text that is
        // shown or sent goes through it.
        let mut at = 0;
        let mut byte = usize::from(bytes[0]);
        while at < last {
            let next = usize::from(bytes[at + 1]);
            if table[byte << 2 | next >> 6] >> (next & 63) & 1 != 0 {
                look(at);
            }
            byte = next;
            at += 1;
        }
        look(last);
    }

    /// Where they stand.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        self.search(text, |start, found| {
            if let PatternMatch::Whole { end, .. } = found {
                spans.push(start..end);
            }
        });
        spans
    }

    /// The longest beginning of one of them that ends with the text, if it is long
    /// enough to tell something.
    fn beginning_at_end(&self, text: &str) -> Option<Range<usize>> {
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

/// The text with these parts of it masked, each once where they overlap.
fn covered(text: &str, mut spans: Vec<Range<usize>>) -> Cow<'_, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    order::sort_by_key(&mut spans, |span| (span.start, span.end));
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

/// The text with the user information of every URL in it masked. A user alone
/// is a token, but for `ssh`; variables are filled in by whoever reads them.
/// Where an authority is none (`https://me:a/b@host`), rather too much is
/// hidden than too little.
pub(crate) fn without_logins(text: &str) -> Cow<'_, str> {
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
    covered(text, text.match_indices("://").filter_map(login).collect())
}

impl Extend<Secret> for Secrets {
    fn extend<T: IntoIterator<Item = Secret>>(&mut self, secrets: T) {
        for secret in secrets {
            if secret.is_worth_masking() && !self.all.contains(&secret) {
                for pattern in &secret.patterns {
                    self.note_beginnings(pattern);
                }
                self.all.push(secret);
            }
        }
    }
}

impl Secrets {
    fn note_beginnings(&mut self, pattern: &Pattern) {
        let table = self.beginnings.get_or_insert_with(|| Box::new([0; limits::SECRET_TABLE]));
        for byte in (0..=u8::MAX).filter(|byte| pattern.can_begin(*byte)) {
            for next in (0..=u8::MAX).filter(|next| pattern.may_begin(byte, *next)) {
                let row = usize::from(byte) << 2 | usize::from(next >> 6);
                table[row] |= 1 << (next & 63);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_itself_nowhere() {
        let key = Secret::new("sk-canary").unwrap();
        assert_eq!(format!("{key:?}"), "[secret]");
        assert_eq!(Secret::new(""), None);
    }

    #[test]
    fn what_stands_before_the_host_of_a_url_is_masked() {
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
            assert_eq!(without_logins(text), masked, "{text}");
        }
    }

    fn secrets<const N: usize>(values: [&str; N]) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.extend(values.map(|value| Secret::new(value).unwrap()));
        secrets
    }

    #[test]
    fn a_secret_is_known_however_it_is_written() {
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
    fn what_a_cut_has_left_of_a_secret_is_masked() {
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
        for (text, (before, behind), masked) in table {
            assert_eq!(one.mask_cut(text, CutEdges { before, behind }), masked, "{text}");
        }
        assert_eq!(one.mask_shortened("a sk-can… sk-can b"), "a [secret]… sk-can b");
    }

    #[test]
    fn several_secrets_are_masked_the_longest_first() {
        let secrets = secrets(["sk-canary", "sk-canary-2", "short"]);
        assert_eq!(secrets.mask("sk-canary-2 sk-canary short"), "[secret] [secret] short");
        assert_eq!(secrets.undecided_at_end("x sk-canary-", 0), 10);
        assert_eq!(secrets.undecided_at_end("x sk-canary", 0), 9);
        assert_eq!(secrets.undecided_at_end("x sk-canary-2s", 0), 1);
        assert_eq!(secrets.undecided_at_end("x sk-canary-2 ", 0), 0);
        assert_eq!(secrets.mask("sk-canarysk-canary"), "[secret][secret]");
        assert!(secrets.is_within(b"(sk-canary)") && !secrets.is_within(b"short"));
        assert_eq!(Secrets::default().mask("x"), "x");
    }
}
