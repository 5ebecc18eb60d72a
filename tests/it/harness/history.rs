//! Checks every completion request against the rules of the strictest providers.
//!
//! For each rule there is a real endpoint that answers a violation with an error. The server
//! makes these checks itself, so that tests need not.

use serde_json::Value;

/// Checks the body of a completion request. The error describes the first violation.
pub(super) fn check(body: &Value) -> Result<(), String> {
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("`model` is not a string".into());
    }
    if body.get("tools").is_some_and(|tools| tools.as_array().is_none_or(Vec::is_empty)) {
        return Err("`tools` is present but empty".into());
    }
    let messages = body["messages"].as_array().ok_or("`messages` is not a list")?;
    if messages.is_empty() {
        return Err("`messages` is empty".into());
    }
    let mut previous_role = "";
    let mut open_calls: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let violation = violation(message, role, previous_role, index, &mut open_calls);
        if let Some(violation) = violation {
            return Err(format!("messages[{index}] ({role}): {violation}"));
        }
        previous_role = role;
    }
    match (open_calls.first(), previous_role) {
        (Some(id), _) => Err(format!("call `{id}` has no result")),
        (None, "assistant") => Err("the last message is from the assistant".into()),
        (None, _) => Ok(()),
    }
}

/// Describes what is wrong with one message. `open_calls` holds the ids of the calls that have no
/// result yet, in order.
fn violation<'a>(
    message: &'a Value,
    role: &str,
    previous_role: &str,
    index: usize,
    open_calls: &mut Vec<&'a str>,
) -> Option<String> {
    if role != "tool" && !open_calls.is_empty() {
        return Some(format!("call `{}` has no result before it", open_calls[0]));
    }
    match role {
        "system" if index > 0 => Some("a system message that is not the first".into()),
        "system" => message["content"].as_str().is_none_or(str::is_empty).then(|| "empty".into()),
        "user" if previous_role == "user" => Some("two user messages in a row".into()),
        "user" => is_empty(&message["content"]).then(|| "empty".into()),
        "assistant" if matches!(previous_role, "" | "system" | "assistant") => {
            Some("an assistant message without a question".into())
        }
        "assistant" => {
            let calls = message.get("tool_calls");
            if calls.is_some_and(|calls| calls.as_array().is_none_or(Vec::is_empty)) {
                return Some("`tool_calls` is present but empty".into());
            }
            for call in calls.and_then(Value::as_array).into_iter().flatten() {
                let Some(id) = call["id"].as_str() else {
                    return Some("a call without an id".into());
                };
                if !call["function"]["arguments"].is_string() {
                    return Some(format!("the arguments of call `{id}` are not a string"));
                }
                open_calls.push(id);
            }
            (open_calls.is_empty() && is_empty(&message["content"])).then(|| "empty".into())
        }
        "tool" => {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if open_calls.first() != Some(&id) {
                return Some(format!(
                    "`{id}` is not the next call without a result: {open_calls:?}"
                ));
            }
            open_calls.remove(0);
            (!message["content"].is_string()).then(|| "its content is not a string".into())
        }
        _ => Some("unknown role".into()),
    }
}

/// Whether the content is missing, an empty string, or an empty list of parts.
fn is_empty(content: &Value) -> bool {
    match content {
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => true,
    }
}
