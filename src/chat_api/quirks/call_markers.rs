//! Tool calls in the text of a reply, in the formats of different models.

use std::borrow::Cow;

/// Markers that start a call.
pub(crate) const STARTS: [&str; 28] = [
    "<tool_call>",
    "<tool_call-",
    "<tool_calls>",
    "<tool-use>",
    "<tools>",
    "<function=",
    "<function_call>",
    "<function_calls>",
    "<invoke name=",
    "<minimax:tool_call>",
    "<start_function_call>",
    "[TOOL_CALLS]",
    "[TOOL_CALL]",
    "[TOOL_REQUEST]",
    "[Calling tool:",
    "<|python_tag|>",
    "<|python_start|>",
    "<|tool_call|>",
    "<|tool_call>",
    "<|tool_call_start|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|channel|>commentary to=",
    "<|start|>assistant<|channel|>commentary to=",
    "commentary to=functions.",
    "to=functions.",
    "functools[",
    "<｜tool▁calls▁begin｜>",
];

/// Markers that end a call, in the formats that have one.
pub(crate) const ENDS: [&str; 12] = [
    "</tool_call>",
    "</tool_calls>",
    "</function>",
    "</function_call>",
    "</function_calls>",
    "</invoke>",
    "</tools>",
    "[/TOOL_CALL]",
    "[END_TOOL_REQUEST]",
    "<tool_call|>",
    "<end_function_call>",
    "<|call|>",
];

/// Markers between calls, names and arguments, and after all calls.
const BETWEEN: [&str; 28] = [
    "</tool-use>",
    "</minimax:tool_call>",
    "[/TOOL_CALLS]",
    "[ARGS]",
    "with arguments:",
    "<|python_end|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "</s>",
    "<|/tool_call|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_argument_begin|>",
    "<|start|>assistant",
    "<|channel|>commentary",
    "<|constrain|>json",
    "<|message|>",
    "to=",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "<｜end▁of▁sentence｜>",
    "</details>",
    "```json",
    "```",
];

/// Tags with the name of a tool as an attribute.
pub(crate) const NAMED_TAGS: [&str; 4] = ["invoke", "tool_call", "function_call", "function"];

/// Ends of a parameter whose own end is missing.
pub(crate) const PARAMETER_ENDS: [&str; 4] =
    ["<parameter", "</function>", "</invoke>", "</tool_call>"];

/// Texts that `DeepSeek` and `MiniMax` add to tags.
const NOISE: [&str; 3] = ["｜｜DSML｜｜", "｜DSML｜", "]<]minimax[>["];

/// The tags around a call as a model without native calls is asked to write it. A small model keeps
/// this form of the mark; one before the tag, or in the JSON, it does not.
pub fn marked_tags(mark: &str) -> [String; 2] {
    [format!("<tool_call-{mark}>"), format!("</tool_call-{mark}>")]
}

/// All markers around calls in the text of a reply.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    STARTS.iter().chain(&ENDS).chain(&BETWEEN).copied()
}

/// A text without what models write into their tags.
pub(crate) fn without_noise(text: &str) -> Cow<'_, str> {
    NOISE
        .iter()
        .filter(|noise| text.contains(**noise))
        .fold(Cow::Borrowed(text), |text, noise| Cow::Owned(text.replace(noise, "")))
}
