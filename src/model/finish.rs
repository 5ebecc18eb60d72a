//! What finish reasons mean: there are dozens, and only three are standard.

use crate::model::FinishReason;

/// What a finish reason means. Unknown ones are taken for an end, but for those
/// that say otherwise.
pub(super) fn judge(reason: &str) -> FinishReason {
    let reason = reason.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if has(&[
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
    } else if has(&["length", "max_tokens", "max_output", "token_limit", "window_exceeded"]) {
        FinishReason::Length
    } else if has(&[
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
    fn reasons_are_judged_by_what_they_say() {
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
            assert_eq!(judge(reason), finish, "{reason}");
        }
    }
}
