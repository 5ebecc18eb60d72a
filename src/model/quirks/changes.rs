//! Words of refusals after which a request is sent in another form.

/// Two names of one field, in both directions: some models accept only one of them.
pub(crate) const ALTERNATIVE_NAMES: [(&str, &str); 2] =
    [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")];

/// Phrases for a field that is unknown or not supported.
pub(crate) const UNKNOWN_FIELD: [&str; 16] = [
    "unsupported",
    "not supported",
    "not support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra_forbidden",
    "extra field",
    "additional propert",
    "cannot find field",
    "no such field",
    "not available",
    "deprecated",
    " instead",
];

/// Phrases for a known field with a wrong value.
pub(crate) const WRONG_VALUE: [&str; 12] = [
    "above max",
    "below min",
    "maximum",
    "minimum",
    "too large",
    "too high",
    "too low",
    "too small",
    "between",
    "out of range",
    "invalid schema",
    "must contain",
];

/// Words before a field's name.
pub(crate) const FIELD_LABELS: [&str; 6] =
    ["parameter", "field", "argument", "property", "supplied", "key"];

/// Phrases for a `content` of the wrong type.
pub(crate) const WRONG_CONTENT_TYPE: [&str; 9] =
    ["null", "nil", "none", "string", "type", "required", "empty", "missing", "expected"];

/// Phrases for text that a content policy rejects: another type would not help.
pub(crate) const CONTENT_POLICY: [&str; 4] = ["management", "policy", "filter", "safety"];

/// Phrases for a missing field.
pub(crate) const MISSING_FIELD: [&str; 11] = [
    "missing",
    "required",
    "requires",
    "empty",
    "blank",
    "must have",
    "must include",
    "must be provided",
    "should have",
    "no attribute",
    "be a valid string",
];

/// Words for a tool message, also those of Gemini and of Python clients.
pub(crate) const TOOL_MESSAGE: [&str; 8] = [
    "tool",
    "toolmessage",
    "tool_message",
    "tool_response",
    "toolresponse",
    "tool_result",
    "function_response",
    "functionresponse",
];

/// Phrases for refused images, without quotes.
pub(crate) const NO_IMAGES: [&str; 28] = [
    // Ollama, OpenRouter, xAI, LM Studio, Fireworks, Bedrock.
    "support image",
    "support the image",
    "support vision",
    "support multimodal",
    "support multi-modal",
    "images are not supported",
    "image inputs are not",
    "image input is not",
    "image input not supported",
    "image content is not supported",
    "image content is currently not",
    "image input modality is not",
    "required for image input",
    "does not accept image",
    "cannot process image",
    // Groq, for vision models if there is a system message.
    "prompting with images is incompatible",
    // OpenAI, Azure, Cerebras, Fireworks.
    "image_url is only supported",
    "image_url is not supported",
    "image_url not supported",
    "invalid value: image_url",
    "unsupported content type: image_url",
    // DeepSeek and other servers written in Rust.
    "unknown variant image_url",
    // vLLM, SiliconFlow, llama.cpp, mlx-lm.
    "not a multimodal model",
    "not a vlm",
    "at most 0 image",
    "mmproj",
    "unsupported content[].type",
    "only text content type is supported",
];

/// Phrases that may mean images or another content that is not text.
pub(crate) const TEXT_EXPECTED: [&str; 6] = [
    "must be a string",
    "be a valid string",
    "should be a string",
    "expected a string",
    "expected string",
    "value must be string",
];

/// Phrases of endpoints that do not stream.
pub(crate) const NO_STREAM: [&str; 6] = [
    "stream is not supported",
    "streaming is not supported",
    "streaming not supported",
    "not support stream",
    "unsupported stream",
    "stream=true is not",
];

/// Code of an endpoint that could not parse the tool call of its own model (Groq).
pub(crate) const BROKEN_CALL: &str = "tool_use_failed";
