//! A chat completion in `OpenAI`'s format, as one JSON body or as the events of a stream.

use serde_json::{Value, json};

use super::MODEL;

/// A message of the model.
#[derive(Clone, Default)]
pub(super) struct Completion {
    pub(super) text: Option<String>,
    pub(super) reasoning: Option<String>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) finish_reason: Option<String>,
}

/// A tool call. The server assigns a missing id.
#[derive(Clone)]
pub(super) struct ToolCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Completion {
    /// Assigns ids to the calls that have none: `call_1`, `call_2`, …
    pub(super) fn number_calls(&mut self, used: &mut usize) {
        for call in self.calls.iter_mut().filter(|call| call.id.is_none()) {
            *used += 1;
            call.id = Some(format!("call_{used}"));
        }
    }

    /// The response to a request without `"stream": true`.
    pub(super) fn json_body(&self) -> String {
        let mut message = json!({"role": "assistant", "content": self.text});
        if let Some(reasoning) = &self.reasoning {
            message["reasoning_content"] = reasoning.as_str().into();
        }
        if !self.calls.is_empty() {
            message["tool_calls"] =
                self.calls.iter().map(|call| call.json(&call.arguments)).collect();
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish()});
        let mut answer = envelope("chat.completion", json!([choice]));
        if let Some(usage) = self.usage {
            answer["usage"] = usage_json(usage);
        }
        answer.to_string()
    }

    /// The events of a stream: those with content, and those that end it. The usage is included
    /// only when the request asked for it.
    pub(super) fn events(&self, wants_usage: bool) -> (Vec<String>, Vec<String>) {
        let mut deltas = vec![json!({"role": "assistant", "content": self.opening()})];
        for part in split_like_tokens(self.reasoning.as_deref().unwrap_or_default()) {
            deltas.push(json!({"reasoning_content": part}));
        }
        for part in split_like_tokens(self.text.as_deref().unwrap_or_default()) {
            deltas.push(json!({"content": part}));
        }
        for (index, call) in self.calls.iter().enumerate() {
            let mut first = call.json("");
            first["index"] = index.into();
            deltas.push(json!({"tool_calls": [first]}));
            for part in split_like_tokens(&call.arguments) {
                let fragment = json!({"index": index, "function": {"arguments": part}});
                deltas.push(json!({"tool_calls": [fragment]}));
            }
        }
        let body = deltas.iter().map(|delta| chunk(delta, None, wants_usage)).collect();
        let mut end = vec![chunk(&json!({}), Some(self.finish()), wants_usage)];
        if let (true, Some(usage)) = (wants_usage, self.usage) {
            let mut last = envelope("chat.completion.chunk", json!([]));
            last["usage"] = usage_json(usage);
            end.push(format!("data: {last}"));
        }
        end.push("data: [DONE]".into());
        (body, end)
    }

    /// `content` of the first delta: `OpenAI` starts a text with `""` and tool calls with `null`.
    fn opening(&self) -> Option<&'static str> {
        self.text.as_ref().map(|_| "")
    }

    fn finish(&self) -> &str {
        match &self.finish_reason {
            Some(reason) => reason,
            None if self.calls.is_empty() => "stop",
            None => "tool_calls",
        }
    }
}

impl ToolCall {
    fn json(&self, arguments: &str) -> Value {
        let function = json!({"name": self.name, "arguments": arguments});
        json!({"id": self.id, "type": "function", "function": function})
    }
}

/// One `data:` line of a stream.
pub(super) fn chunk(delta: &Value, finish_reason: Option<&str>, wants_usage: bool) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    let mut chunk = envelope("chat.completion.chunk", json!([choice]));
    if wants_usage {
        chunk["usage"] = Value::Null;
    }
    format!("data: {chunk}")
}

fn envelope(object: &str, choices: Value) -> Value {
    let (id, created) = ("chatcmpl-test", 1_767_225_600);
    let mut envelope = json!({"id": id, "object": object, "created": created, "model": MODEL});
    envelope["choices"] = choices;
    envelope
}

fn usage_json((prompt, completion): (u64, u64)) -> Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    })
}

/// Splits a text into about 3 to 64 parts, like tokens; an empty text has none.
fn split_like_tokens(text: &str) -> Vec<&str> {
    let size = text.len().div_ceil((text.len() / 6).clamp(3, 64)).max(1);
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = (size.min(rest.len())..rest.len()).find(|&at| rest.is_char_boundary(at));
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(part);
        rest = after;
    }
    parts
}
