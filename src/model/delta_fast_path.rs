//! Fast path for stream events that differ only in their text.
//!
//! Nearly every event of a stream equals the previous one, byte for byte, except for the text.
//! Replacing one JSON value by another does not change the meaning of the rest, so only the
//! text is parsed. That makes reading a stream six times cheaper.

use memchr::arch::all::{is_prefix, is_suffix};

use crate::model::wire::{Chunk, LooseValue};

/// The bytes before and after the text of an event that contained only text.
#[derive(Debug, Default)]
pub(super) struct DeltaTemplate {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
    is_set: bool,
}

impl DeltaTemplate {
    /// The text of an event that matches the template.
    pub(super) fn extract_text<'e>(&self, event: &'e [u8]) -> Option<LooseValue<'e>> {
        if !self.is_set {
            return None;
        }
        // Not by `==`: musl compares byte by byte.
        let is_match = is_prefix(event, &self.prefix) && is_suffix(event, &self.suffix);
        let end = event.len().checked_sub(self.suffix.len())?;
        let text = event.get(self.prefix.len()..end).filter(|_| is_match)?;
        let text = serde_json::from_slice(text).ok()?;
        matches!(text, LooseValue::Text(_)).then_some(text)
    }

    /// Makes a template of this event if it contains only text. (Its text must have no escapes,
    /// or it would not be a slice of the event.)
    pub(super) fn learn(&mut self, event: &[u8], chunk: &Chunk<'_>) {
        let Some(text) = chunk.only_text() else {
            return;
        };
        let start = text.as_ptr().addr().wrapping_sub(event.as_ptr().addr());
        let end = start.wrapping_add(text.len());
        let (Some(quote), Some(suffix)) = (start.checked_sub(1), event.get(end + 1..)) else {
            return;
        };
        self.prefix.clear();
        self.prefix.extend_from_slice(&event[..quote]);
        self.suffix.clear();
        self.suffix.extend_from_slice(suffix);
        self.is_set = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template_from(event: &str) -> DeltaTemplate {
        let mut template = DeltaTemplate::default();
        let chunk: Chunk<'_> = serde_json::from_str(event).unwrap();
        template.learn(event.as_bytes(), &chunk);
        template
    }

    #[test]
    fn an_event_with_another_text_matches() {
        let event = |value: &str| {
            format!(
                r#"{{"id":"\"","choices":[{{"index":0,"delta":{{"role":"x","content":{value}}},"finish_reason":null}}]}}"#
            )
        };
        let template = template_from(&event(r#""The""#));
        for (value, text) in [
            (r#"" answer""#, Some(" answer")),
            (r#""""#, Some("")),
            (r#""\n\u00fc\"ü""#, Some("\nü\"ü")),
            // Events that do not match.
            ("null", None),
            (r#"["x"]"#, None),
            (r#""x","refusal":"no""#, None),
            (r#""x"},"finish_reason":"stop"},{"delta":{"content":"y""#, None),
            (r#""x"#, None),
            ("\"\n\"", None),
            ("", None),
        ] {
            let event = event(value);
            let found = template.extract_text(event.as_bytes());
            assert_eq!(found.as_ref().map(LooseValue::text).as_deref(), text, "{value}");
        }
        assert!(template.extract_text(event(r#""\"#).as_bytes()).is_none());
        let mut no_text = event(r#""x""#).into_bytes();
        let at = no_text.iter().rposition(|byte| *byte == b'x');
        no_text[at.unwrap()] = b'\xff';
        assert!(template.extract_text(&no_text).is_none());
        assert!(template.extract_text(br#"{"choices":[]}"#).is_none());
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
            assert!(template.extract_text(event.as_bytes()).is_none(), "{event}");
        }
        let event = r#"{"choices":[{"delta":{"content":"a","tool_calls":[],"refusal":""}}]}"#;
        assert!(template_from(event).extract_text(event.as_bytes()).is_some());
    }
}
