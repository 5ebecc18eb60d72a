//! Classification of finish reasons: there are dozens, and only three are standard.

use crate::model::FinishReason;

/// Classifies a finish reason. Unknown ones count as a normal end.
pub(super) fn classify_finish_reason(reason: &str) -> FinishReason {
    let reason = reason.to_ascii_lowercase();
    let contains_any = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if contains_any(&[
        "error",
        "abort",
        "cancel",
        "insufficient",
        "malformed",
        "overloaded",
        "time_limit",
        "incomplete",
    ]) {
        FinishReason::Cut
    } else if contains_any(&[
        "length",
        "max_tokens",
        "max_output",
        "token_limit",
        "window_exceeded",
    ]) {
        FinishReason::Length
    } else if contains_any(&[
        "filter",
        "safety",
        "sensitive",
        "guardrail",
        "recitation",
        "prohibited",
        "blocklist",
    ]) {
        FinishReason::Filtered
    } else {
        FinishReason::Complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_classified_by_their_words() {
        let table = [
            ("stop", FinishReason::Complete),
            ("tool_calls", FinishReason::Complete),
            ("eos", FinishReason::Complete),
            ("end_turn", FinishReason::Complete),
            ("length", FinishReason::Length),
            ("MAX_TOKENS", FinishReason::Length),
            ("model_length", FinishReason::Length),
            ("max_output_tokens", FinishReason::Length),
            ("model_context_window_exceeded", FinishReason::Length),
            ("content_filter", FinishReason::Filtered),
            ("content_filter: RECITATION", FinishReason::Filtered),
            ("SAFETY", FinishReason::Filtered),
            ("guardrail_intervened", FinishReason::Filtered),
            ("function_call_filter: MALFORMED_FUNCTION_CALL", FinishReason::Cut),
            ("error", FinishReason::Cut),
            ("time_limit", FinishReason::Cut),
            ("engine_overloaded", FinishReason::Cut),
        ];
        for (reason, finish) in table {
            assert_eq!(classify_finish_reason(reason), finish, "{reason}");
        }
    }
}
