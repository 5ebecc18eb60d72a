//! Each row of a table, tested through the function that reads the table: it is found, and no
//! earlier row hides it. Real refusals are in the tests of these functions.

use serde_json::{Map, Value, json};

use crate::FinishReason;
use crate::dialect::{Dialect, DialectChange, SentFeatures};
use crate::quirks::{call_markers, changes, delays, finish_reasons, refusals};
use crate::request_failure::ErrorResponse;
use crate::{retry, text_calls};
use base::tool::ToolDefinition;

/// Returns the change after a refusal with these words, if everything was sent.
fn change(words: &str) -> Option<DialectChange> {
    let extra_fields = json!({"seed": 1}).as_object().cloned().unwrap_or_default();
    let sent = SentFeatures {
        has_tools: true,
        has_response_format: false,
        optional_fields: vec!["seed"],
        extra_fields: &extra_fields,
        has_empty_content: true,
        tool_message_positions: vec![3],
        has_images: true,
        is_stream: true,
    };
    Dialect::default().learn(&ErrorResponse::new(400, words.as_bytes()), &sent)
}

#[test]
fn each_refusal_has_its_meaning() {
    for (statuses, phrases, meaning) in refusals::REFUSALS {
        let words: Vec<String> = phrases.iter().map(|phrase| phrase.replace('#', "1")).collect();
        let words = if words.is_empty() { vec!["no words".into()] } else { words };
        // A row for all statuses is tested with one that has no meaning of its own.
        let status = if *statuses.start() == 0 { 499 } else { *statuses.end() };
        for words in words {
            assert_eq!(refusals::meaning(status, &words), *meaning, "{status} {words}");
        }
    }
}

/// One refusal for each row: status, message, and what the remedy or the kind must be.
const REFUSED: &[(u16, &str, &str)] = &[
    (500, "failed to parse input at pos 41: <tool_call>", "set LLM_TOOLS=prompted, or use a newer"),
    (404, "this model is only supported in v1/responses", "does not use /v1/responses"),
    (400, "\"auto\" tool choice requires --enable-auto-tool-choice", "start vLLM with"),
    (500, "tools param requires --jinja flag", "start llama.cpp's server"),
    (400, "registry.ollama.ai/library/x does not support tools", "this model has no tools"),
    (401, "", "Credentials"),
    (403, "", "Credentials"),
    (402, "you requested up to 65536 max_tokens, but can only afford 20", "lower max_tokens"),
    (402, "", "no credit left"),
    (400, "api key not valid. please pass a valid api key.", "Credentials"),
    (400, "rate limit reached for tokens per minute", "Temporary"),
    (429, "credit balance is too low", "quota is used up"),
    (429, "you exceeded your current quota, please check your plan", "Billing"),
    (429, "", "Temporary"),
    (400, "this model's maximum context length is 4096 tokens", "ContextFull"),
    (413, "", "TooLarge"),
    (400, "the plain http request was sent to https port", "https://"),
    (400, "no required ssl certificate was sent", "client certificate"),
    (400, "no connected db.", "Credentials"),
    (407, "", "requires a login"),
    (408, "", "Temporary"),
    (503, "", "Temporary"),
    (400, "overloaded_error", "Temporary"),
    (308, "", "Redirect"),
    (400, "model_not_found", "check LLM_MODEL_NAME"),
    (404, "model 'x' not found", "check LLM_MODEL_NAME"),
    (404, "", "NoEndpoint"),
];

/// A removed row changes the meaning of its sample, and a new row needs one.
#[test]
fn each_row_of_the_refusals_has_a_sample() {
    for (status, words, expected) in REFUSED {
        let meaning = format!("{:?}", refusals::meaning(*status, words));
        assert!(meaning.contains(expected), "{status} {words}: {meaning}, not {expected}");
    }
    for row in refusals::REFUSALS {
        let is_of_row = |sample: &(u16, &str, &str)| {
            refusals::row(sample.0, sample.1).is_some_and(|found| std::ptr::eq(found, row))
        };
        assert!(REFUSED.iter().any(is_of_row), "no sample for {row:?}");
    }
}

#[test]
fn each_refusal_of_a_form_changes_requests() {
    let omitted = DialectChange::Omit("seed".into());
    for phrase in changes::UNKNOWN_FIELD {
        assert_eq!(change(&format!("`seed` {phrase}")).as_ref(), Some(&omitted), "{phrase}");
    }
    for phrase in changes::WRONG_VALUE {
        let body = json!({"error": {"message": phrase, "param": "seed"}}).to_string();
        assert_eq!(change(&body), None, "{phrase}");
    }
    for label in changes::FIELD_LABELS {
        assert_eq!(change(&format!("unknown {label} seed")).as_ref(), Some(&omitted));
    }
    for phrase in changes::WRONG_CONTENT_TYPE {
        let words = format!("the content {phrase}");
        assert_eq!(change(&words), Some(DialectChange::SendEmptyText), "{words}");
        for policy in changes::CONTENT_POLICY {
            assert_eq!(change(&format!("{words} {policy}")), None);
        }
    }
    for phrase in changes::MISSING_FIELD {
        let words = format!("tool message: name {phrase}");
        assert_eq!(change(&words), Some(DialectChange::SendToolName), "{words}");
    }
    for message in changes::TOOL_MESSAGE {
        let words = format!("{message}: name is missing");
        assert_eq!(change(&words), Some(DialectChange::SendToolName), "{words}");
    }
    for phrase in changes::NO_IMAGES.iter().chain(&changes::TEXT_EXPECTED) {
        assert_eq!(change(phrase), Some(DialectChange::OmitImages), "{phrase}");
    }
    for phrase in changes::NO_STREAM {
        assert_eq!(change(phrase), Some(DialectChange::OmitStream), "{phrase}");
    }
}

#[test]
fn each_finish_reason_is_classified() {
    for (part, finish) in finish_reasons::REASONS {
        assert_eq!(finish_reasons::classify(&part.to_uppercase()), *finish, "{part}");
    }
    let cut = "error abort cancelled insufficient_system_resource MALFORMED_FUNCTION_CALL \
               engine_overloaded time_limit incomplete";
    let length = "length max_tokens max_output_tokens token_limit model_context_window_exceeded";
    let filtered = "content_filter SAFETY sensitive guardrail_intervened RECITATION \
                    PROHIBITED_CONTENT BLOCKLIST";
    for (reasons, finish) in [
        (cut, FinishReason::Cut),
        (length, FinishReason::Length),
        (filtered, FinishReason::Filtered),
    ] {
        for reason in reasons.split_whitespace() {
            assert_eq!(finish_reasons::classify(reason), finish, "{reason}");
        }
    }
    for reason in ["stop", "tool_calls", "eos", "end_turn", "function_call"] {
        assert_eq!(finish_reasons::classify(reason), FinishReason::Complete, "{reason}");
    }
}

#[test]
fn each_marker_starts_a_call() {
    let tools = [ToolDefinition {
        name: "list_skills".into(),
        description: "d".into(),
        parameters: Value::Object(Map::new()),
    }];
    for start in call_markers::STARTS {
        let text = format!("{start} list_skills");
        assert!(text_calls::is_unparsed_call(&text, &tools), "{text}");
    }
    for end in call_markers::ENDS {
        let text = format!("I look. <tool_call>list_skills {end}");
        assert!(text_calls::is_unparsed_call(&text, &tools), "{text}");
    }
}

#[test]
fn each_delay_is_found() {
    let now = std::time::SystemTime::now();
    let delay = |header: &str, body: &str| {
        let value = |name: &str| (name == header).then_some("7");
        retry::requested_delay(&value, body.as_bytes(), now).map(|delay| delay.as_secs())
    };
    for header in delays::HEADERS {
        assert_eq!(delay(header, ""), Some(7), "{header}");
    }
    for limit in delays::RATE_LIMITS {
        assert_eq!(delay(&format!("x-ratelimit-reset{limit}"), ""), Some(7), "{limit}");
    }
    for field in delays::FIELDS {
        assert_eq!(delay("", &format!("{{{field}: 7}}")), Some(7), "{field}");
    }
    for phrase in delays::PHRASES {
        assert_eq!(delay("", &format!("Please {phrase}7 s.")), Some(7), "{phrase}");
    }
}
