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
