//! What the strictest provider demands of a request, checked on every one.
//!
//! Each rule is here because some real endpoint answers its breach with an
//! error. A program that keeps them all talks to all of them, so a test never
//! has to ask: the server does.

use serde_json::Value;

/// What is wrong with the body of a request for a completion, if anything.
pub(super) fn check(body: &Value) -> Result<(), String> {
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("`model` is no text".into());
    }
    if body.get("tools").is_some_and(|tools| tools.as_array().is_none_or(Vec::is_empty)) {
        return Err("`tools` is there, and empty".into());
    }
    let messages = body["messages"].as_array().ok_or("`messages` is no list")?;
    if messages.is_empty() {
        return Err("`messages` is empty".into());
    }
    let mut before = "";
    let mut owed: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let fault = fault(message, role, before, index, &mut owed);
        if let Some(fault) = fault {
            return Err(format!("messages[{index}] ({role}): {fault}"));
        }
        before = role;
    }
    match (owed.first(), before) {
        (Some(id), _) => Err(format!("call `{id}` has no result")),
        (None, "assistant") => Err("the last message is the assistant's".into()),
        (None, _) => Ok(()),
    }
}

/// `owed` are the ids of the calls that still wait for their result, in order.
fn fault<'a>(
    message: &'a Value,
    role: &str,
    before: &str,
    index: usize,
    owed: &mut Vec<&'a str>,
) -> Option<String> {
    if role != "tool" && !owed.is_empty() {
        return Some(format!("call `{}` has no result before it", owed[0]));
    }
    match role {
        "system" if index > 0 => Some("a system message that is not the first".into()),
        "system" => message["content"].as_str().is_none_or(str::is_empty).then(|| "empty".into()),
        "user" if before == "user" => Some("two user messages in a row".into()),
        "user" => is_empty(&message["content"]).then(|| "empty".into()),
        "assistant" if matches!(before, "" | "system" | "assistant") => {
            Some("an assistant message without a question".into())
        }
        "assistant" => {
            let calls = message.get("tool_calls");
            if calls.is_some_and(|calls| calls.as_array().is_none_or(Vec::is_empty)) {
                return Some("`tool_calls` is there, and empty".into());
            }
            for call in calls.and_then(Value::as_array).into_iter().flatten() {
                let Some(id) = call["id"].as_str() else {
                    return Some("a call without an id".into());
                };
                if !call["function"]["arguments"].is_string() {
                    return Some(format!("the arguments of call `{id}` are no text"));
                }
                owed.push(id);
            }
            (owed.is_empty() && is_empty(&message["content"])).then(|| "empty".into())
        }
        "tool" => {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if owed.first() != Some(&id) {
                return Some(format!("`{id}` is not the call whose turn it is: {owed:?}"));
            }
            owed.remove(0);
            (!message["content"].is_string()).then(|| "its content is no text".into())
        }
        _ => Some("no such role".into()),
    }
}

/// Nothing at all, an empty text, or an empty list of parts.
fn is_empty(content: &Value) -> bool {
    match content {
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => true,
    }
}
