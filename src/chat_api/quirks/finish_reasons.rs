//! Finish reasons: there are dozens, and only three are standard.

use crate::FinishReason;

/// Parts of finish reasons; the first that a reason contains decides.
pub(crate) const REASONS: &[(&str, FinishReason)] = &[
    ("error", FinishReason::Cut),
    ("abort", FinishReason::Cut),
    ("cancel", FinishReason::Cut),
    ("insufficient", FinishReason::Cut),
    ("malformed", FinishReason::Cut),
    ("overloaded", FinishReason::Cut),
    ("time_limit", FinishReason::Cut),
    ("incomplete", FinishReason::Cut),
    ("length", FinishReason::Length),
    ("max_tokens", FinishReason::Length),
    ("max_output", FinishReason::Length),
    ("token_limit", FinishReason::Length),
    ("window_exceeded", FinishReason::Length),
    ("filter", FinishReason::Filtered),
    ("safety", FinishReason::Filtered),
    ("sensitive", FinishReason::Filtered),
    ("guardrail", FinishReason::Filtered),
    ("recitation", FinishReason::Filtered),
    ("prohibited", FinishReason::Filtered),
    ("blocklist", FinishReason::Filtered),
];

/// Classifies a finish reason. Unknown ones count as a normal end.
pub(crate) fn classify(reason: &str) -> FinishReason {
    let reason = reason.to_ascii_lowercase();
    let found = REASONS.iter().find(|(part, _)| reason.contains(part));
    found.map_or(FinishReason::Complete, |(_, finish)| *finish)
}
