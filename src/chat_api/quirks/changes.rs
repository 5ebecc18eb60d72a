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

/// Phrases of a server that does not constrain replies by a schema.
pub(crate) const NO_SCHEMA: [&str; 5] =
    ["response_format", "response format", "schema", "grammar", "requested parameters"];

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

/// Patterns of demands, for any letter case, with [`NAME`] and [`VALUE`].
pub(crate) const DEMANDS: [&str; 5] = [
    // OpenAI, for tools: set reasoning_effort to 'none'.
    r"\bset(?: the)?NAME to VALUE",
    // Alibaba, Anthropic: parameter.enable_thinking must be set to false.
    r"NAME(?: parameter| value)?:?(?: may| must| should| can)(?: only)? be (?:set to |exactly |equal to |one of )*VALUE",
    // Moonshot: invalid temperature: only 1 is allowed.
    r"NAME: only VALUE",
    // OpenAI, Azure: only the default (1) value is supported.
    r"only the default \(VALUE",
    r"(?:supported|allowed|valid) values are:? \[?VALUE",
];

/// The name of a field, not of one inside another.
pub(crate) const NAME: &str =
    r#"(?:^|[^\w.\]])['"`]?(?:parameter\.|body\.)?(?<name>[a-z]\w*)['"`]?"#;

/// A word in quotes, or a number that starts no range, or `true` or `false`; perhaps others follow.
pub(crate) const VALUE: &str = r#"(?:['"`](?<word>[^\s'"`]{1,64})['"`]|(?<plain>-?\d+(?:\.\d+)?|true|false)(?:$|[.,;)\]]+(?:\s|$)| \(| (?:is|for|when|with|if|in) ))(?<more>(?:[,|/ ]|or |and )*['"`\d])?"#;

/// Fields whose names are common words.
pub(crate) const PLAIN_FIELDS: [&str; 3] = ["temperature", "thinking", "verbosity"];

/// The starts of names that no refusal changes: those of the program's own fields, and of parts of
/// messages.
pub(crate) const OWN_FIELDS: [&str; 9] =
    ["model", "message", "tool", "function", "stream", "content", "role", "name", "type"];

/// Fields that some endpoints require (Anthropic, Bedrock) without naming a value.
pub(crate) const TOKEN_LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];
