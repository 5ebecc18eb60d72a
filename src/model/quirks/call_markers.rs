//! Tool calls in the text of a reply, in the formats of different models.

/// Markers that start a call.
pub(crate) const STARTS: [&str; 13] = [
    "<tool_call>",
    "<function=",
    "<function_call>",
    "<function_calls>",
    "<invoke name=",
    "<minimax:tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<|tool_call|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|channel|>commentary to=",
    "<｜tool▁calls▁begin｜>",
];

/// Markers that end a call, in the formats that have one.
pub(crate) const ENDS: [&str; 5] =
    ["</tool_call>", "</function>", "</function_call>", "</function_calls>", "<|call|>"];

/// Markers between calls, names and arguments, and after all calls.
const BETWEEN: [&str; 25] = [
    "<tool_calls>",
    "</tool_calls>",
    "</minimax:tool_call>",
    "[/TOOL_CALLS]",
    "[ARGS]",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "</s>",
    "<|/tool_call|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
    "<|start|>assistant",
    "<|channel|>commentary",
    "<|channel|>analysis",
    "<|constrain|>json",
    "<|message|>",
    "to=",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "```json",
    "```",
];

/// All markers around calls in the text of a reply.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    STARTS.iter().chain(&ENDS).chain(&BETWEEN).copied()
}
