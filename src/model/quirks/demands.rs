//! Refusals that demand a field, or a value of one.

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
