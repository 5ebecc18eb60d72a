//! What finish reasons mean: there are dozens, and only three are standard.

use crate::model::Finish;

/// What a finish reason means. Unknown ones are taken for an end, but for those
/// that say otherwise.
pub fn judge(reason: &str) -> Finish {
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
        Finish::Cut
    } else if has(&["length", "max_tokens", "max_output", "token_limit", "window_exceeded"]) {
        Finish::Length
    } else if has(&[
        "filter",
        "safety",
        "sensitive",
        "guardrail",
        "recitation",
        "prohibited",
        "blocklist",
    ]) {
        Finish::Filtered
    } else {
        Finish::Complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_judged_by_what_they_say() {
        let table = [
            ("stop", Finish::Complete),
            ("tool_calls", Finish::Complete),
            ("eos", Finish::Complete),
            ("end_turn", Finish::Complete),
            ("length", Finish::Length),
            ("MAX_TOKENS", Finish::Length),
            ("model_length", Finish::Length),
            ("max_output_tokens", Finish::Length),
            ("model_context_window_exceeded", Finish::Length),
            ("content_filter", Finish::Filtered),
            ("content_filter: RECITATION", Finish::Filtered),
            ("SAFETY", Finish::Filtered),
            ("guardrail_intervened", Finish::Filtered),
            ("function_call_filter: MALFORMED_FUNCTION_CALL", Finish::Cut),
            ("error", Finish::Cut),
            ("time_limit", Finish::Cut),
            ("engine_overloaded", Finish::Cut),
        ];
        for (reason, finish) in table {
            assert_eq!(judge(reason), finish, "{reason}");
        }
    }
}
