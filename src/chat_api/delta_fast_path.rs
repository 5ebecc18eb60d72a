//! Fast path for stream events that differ only in their text.
//!
//! Nearly every event of a stream equals the previous one, byte for byte, except for the text.
//! Replacing one JSON string by another does not change the meaning of the rest, so only the
//! text is parsed: less than half the work of reading a stream.

use std::borrow::Cow;

use memchr::arch::all::{is_prefix, is_suffix};
use memchr::memmem;

use crate::wire::Chunk;

/// How often a template is made in one reply: where every event has another form, it does not pay.
const MAX_TEMPLATES: usize = 4;

/// The bytes before and after the text of an event that contained only text.
#[derive(Debug, Default)]
pub(super) struct DeltaTemplate {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
    /// Index of the choice that the text belongs to.
    choice: Option<u64>,
    count: usize,
}

impl DeltaTemplate {
    /// The text of an event that matches the template, and the index of its choice.
    pub(super) fn read<'e>(&self, event: &'e [u8]) -> Option<(Cow<'e, str>, Option<u64>)> {
        // Not by `==`: musl compares byte by byte.
        let is_match = is_prefix(event, &self.prefix) && is_suffix(event, &self.suffix);
        if self.prefix.is_empty() || !is_match {
            return None;
        }
        let end = event.len() - self.suffix.len();
        let quoted = event.get(self.prefix.len()..end)?;
        // A text without escapes needs no copy.
        let text = match serde_json::from_slice::<&str>(quoted) {
            Ok(text) => text.into(),
            Err(_) => serde_json::from_slice::<String>(quoted).ok()?.into(),
        };
        Some((text, self.choice))
    }

    /// Makes a template of this event if it contains only text.
    pub(super) fn learn(&mut self, event: &[u8], chunk: &Chunk) {
        let Some((text, index)) = chunk.only_text().filter(|_| self.count < MAX_TEMPLATES) else {
            return;
        };
        self.count += 1;
        let quoted = format!("\"{text}\"");
        let Some(start) = memmem::find(event, quoted.as_bytes()) else {
            return;
        };
        let (prefix, suffix) = (&event[..start], &event[start + quoted.len()..]);
        // It is the right place if another text there becomes the text.
        let other = format!("{text}.");
        let probe = [prefix, format!("\"{other}\"").as_bytes(), suffix].concat();
        let probe = serde_json::from_slice::<Chunk>(&probe).unwrap_or_default();
        if probe.only_text() == Some((&other, index)) {
            (self.prefix, self.suffix) = (prefix.to_vec(), suffix.to_vec());
            self.choice = index.number();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template_from(event: &str) -> DeltaTemplate {
        let mut template = DeltaTemplate::default();
        template.learn(event.as_bytes(), &serde_json::from_str(event).unwrap());
        template
    }

    #[test]
    fn an_event_with_another_text_matches() {
        let event = |value: &str| {
            format!(
                r#"{{"id":"\"","model":"The","choices":[{{"index":0,"delta":{{"role":"x","content":{value}}},"finish_reason":null}}]}}"#
            )
        };
        let unlike = event(r#""The""#).replace(r#""model":"The""#, r#""model":"m""#);
        for (first, value, is_match) in [
            (unlike.as_str(), r#"" answer""#, true),
            (&unlike, r#""""#, true),
            (&unlike, r#""\n\u00fc\"ü""#, true),
            // Events that do not match.
            (&unlike, "null", false),
            (&unlike, r#"["x"]"#, false),
            (&unlike, r#""x","refusal":"no""#, false),
            (&unlike, r#""x"},"finish_reason":"stop"},{"delta":{"content":"y""#, false),
            (&unlike, r#""x"#, false),
            (&unlike, "\"\n\"", false),
            (&unlike, "", false),
            (&unlike, r#""\"#, false),
            // The text is also the value of another field.
            (&event(r#""The""#), r#"" answer""#, false),
        ] {
            let template = template_from(first);
            let event = event(value).replace(r#""model":"The""#, r#""model":"m""#);
            let found = template.read(event.as_bytes());
            assert_eq!(found.is_some(), is_match, "{value}");
            if let Some((text, choice)) = found {
                let parsed: Chunk = serde_json::from_str(&event).unwrap();
                let parsed = parsed.only_text().map(|(text, index)| (text, index.number()));
                assert_eq!(Some((&*text, choice)), parsed);
            }
        }
    }

    #[test]
    fn only_events_of_text_alone_make_a_template() {
        for event in [
            r#"{"choices":[{"delta":{"content":"a\n"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"},"usage":{"prompt_tokens":1}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"error":"x"}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}},{"index":1}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"message":{"content":"b"}}]}"#,
            r#"{"choices":[{"message":{"content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","refusal":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","extra_content":{}}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","tool_calls":[{}]}}]}"#,
            r#"{"choices":[{"delta":{"content":["a"]}}]}"#,
            r#"{"object":"error","choices":[{"delta":{"content":"a"}}]}"#,
        ] {
            let template = template_from(event);
            assert!(template.read(event.as_bytes()).is_none(), "{event}");
        }
        let event = r#"{"choices":[{"delta":{"content":"a","tool_calls":[],"refusal":null}}]}"#;
        assert!(template_from(event).read(event.as_bytes()).is_some());
    }
}
