//! Differences between endpoints, as tables: the names of fields, the phrases of refusals, the
//! finish reasons.
//!
//! A new difference is one row here and a sample in `tests.rs`, which fails without the row. The
//! code that reads a table knows no endpoint by name.

pub(super) mod call_markers;
pub(super) mod changes;
pub(super) mod finish_reasons;
pub(super) mod refusals;
pub(super) mod servers;
#[cfg(test)]
mod tests;

/// Where servers say how long to wait before the next try.
pub(super) mod delays {
    /// Headers with seconds, a date, or a length such as `1m2s`. `LiteLLM` passes on the header of
    /// the provider.
    pub(crate) const HEADERS: [&str; 2] = ["retry-after", "llm_provider-retry-after"];

    /// Kinds of rate limits, as they end the headers `x-ratelimit-remaining` and
    /// `x-ratelimit-reset`.
    pub(crate) const RATE_LIMITS: [&str; 3] = ["", "-requests", "-tokens"];

    /// Fields in a body: Google's `RetryInfo`, and the headers that a gateway quotes.
    pub(crate) const FIELDS: [&str; 3] =
        ["\"retrydelay\"", "\"retry_after\"", "\"x-ratelimit-reset\""];

    /// Phrases before a length of time.
    pub(crate) const PHRASES: [&str; 5] =
        ["try again in ", "retry in ", "retry after ", "please wait ", "wait for "];
}

/// Whether the text contains one of the phrases; `#` at the end of a phrase stands for a digit.
pub(super) fn contains_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| match phrase.strip_suffix('#') {
        None => text.contains(phrase),
        Some(start) => text
            .match_indices(start)
            .any(|(at, _)| text[at + start.len()..].starts_with(|c: char| c.is_ascii_digit())),
    })
}

/// Fields with reasoning, in the order in which they are looked for. An endpoint may send several
/// of them with the same text.
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// Reasoning fields that endpoints expect back in messages with tool calls, but only within the
/// turn in which they came.
const RETURNED_REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Whether a field of a message is sent back only within its own turn.
pub fn is_reasoning_field(name: &str) -> bool {
    RETURNED_REASONING_FIELDS.contains(&name)
}
