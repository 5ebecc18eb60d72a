//! Words of refusals that demand a field, or a value of one.

/// Phrases before a value, and whether the name of the field stands directly before them. The
/// first that leads to a value counts.
pub(crate) const VALUE_PHRASES: [(&str, bool); 9] = [
    // OpenAI, for tools: set reasoning_effort to 'none'.
    (" to ", true),
    // Alibaba, Anthropic: it must be set to false.
    (" be set to ", true),
    (" must be ", true),
    (" should be ", true),
    // Moonshot: invalid temperature: only 1 is allowed.
    (": only ", true),
    // OpenAI, Azure: only the default (1) value is supported.
    ("only the default ", false),
    ("supported values are", false),
    ("allowed values are", false),
    ("valid values are", false),
];

/// Words between a field's name and a phrase of [`VALUE_PHRASES`].
pub(crate) const FILL_WORDS: [&str; 8] =
    ["may", "must", "can", "only", "value", "parameter", "field", "input"];

/// Words between a phrase and the value.
pub(crate) const BEFORE_A_VALUE: [&str; 3] = ["exactly ", "equal to ", "one of"];

/// What follows a number that is not the start of a range.
pub(crate) const AFTER_A_NUMBER: [&str; 11] =
    [")", "]", ",", ";", "(", "is ", "for ", "when ", "with ", "if ", "in "];

/// Fields whose names are common words.
pub(crate) const PLAIN_FIELDS: [&str; 3] = ["temperature", "thinking", "verbosity"];

/// The starts of names that no refusal changes: those of the program's own fields, and of parts of
/// messages.
pub(crate) const OWN_FIELDS: [&str; 9] =
    ["model", "message", "tool", "function", "stream", "content", "role", "name", "type"];

/// Fields that some endpoints require (Anthropic, Bedrock) without naming a value.
pub(crate) const TOKEN_LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];
