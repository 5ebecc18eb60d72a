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

/// All markers around calls in the text of a reply: before, between and after names and arguments.
pub(crate) const ALL: [&str; 40] = [
    "<tool_call>",
    "</tool_call>",
    "<tool_calls>",
    "</tool_calls>",
    "<function_call>",
    "</function_call>",
    "<function_calls>",
    "</function_calls>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "[TOOL_CALLS]",
    "[/TOOL_CALLS]",
    "[ARGS]",
    "<|python_tag|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "</s>",
    "<|tool_call|>",
    "<|/tool_call|>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
    "<|start|>assistant",
    "<|channel|>commentary",
    "<|channel|>analysis",
    "<|constrain|>json",
    "<|message|>",
    "<|call|>",
    "to=",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "```json",
    "```",
    "</function>",
];
