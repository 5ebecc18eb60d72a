//! Refusals: the words and statuses of each kind, and the remedy.

use std::ops::RangeInclusive;

use crate::quirks::contains_any;
use base::error::FailedPart;

/// Meaning of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Another try may succeed.
    Temporary,
    /// The quota is used up, unless the endpoint requests a delay.
    Billing,
    /// The conversation has too many tokens.
    ContextFull,
    /// The request has too many bytes, or too many tokens: the endpoint does not say which.
    TooLarge,
    /// The credentials are refused.
    Credentials,
    /// The model or the server has no tools.
    NoTools(&'static str),
    /// The server cannot read the call of its own model.
    UnreadCall(&'static str),
    /// Something else that the user has to correct.
    Lasting(&'static str),
    /// The same, in a part of the setup that is known.
    Setup(FailedPart, &'static str),
    /// The address leads to another one.
    Redirect,
    /// There is no endpoint at the address.
    NoEndpoint,
    /// Nothing more is known.
    Unknown,
}

/// Statuses, phrases of which one is in the message (none: any message), and the meaning.
pub(crate) type RefusalRow = (RangeInclusive<u16>, &'static [&'static str], Meaning);

const ANY: RangeInclusive<u16> = 0..=999;

pub(crate) const QUOTA_HINT: &str = "the account's quota is used up";

const MODEL_HINT: &str = "check LLM_MODEL_NAME; `skills-runner doctor` lists similar names";

/// Refusals by their status and their message in lower case. The first row that matches decides.
pub(crate) static REFUSALS: &[RefusalRow] = &[
    (
        ANY,
        &[
            // llama.cpp
            "failed to parse input",
            "failed to parse tool call",
            // Ollama
            "error parsing tool call",
            // SGLang, LMDeploy
            "failed to parse fc related",
        ],
        Meaning::UnreadCall(
            "the server cannot read what its model writes: set LLM_TOOLS=prompted, or use a newer server",
        ),
    ),
    (
        400..=404,
        &["v1/responses"],
        Meaning::Lasting(
            "this program does not use /v1/responses: set LLM_TOOLS=prompted, or reasoning_effort in LLM_EXTRA_BODY to \"none\", or use another model (LLM_MODEL_NAME)",
        ),
    ),
    (
        ANY,
        &["--enable-auto-tool-choice", "--tool-call-parser"],
        Meaning::NoTools(
            "start vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model, or set LLM_TOOLS=prompted",
        ),
    ),
    (
        ANY,
        &["--jinja"],
        Meaning::NoTools("start llama.cpp's server with --jinja, or set LLM_TOOLS=prompted"),
    ),
    (
        ANY,
        &[
            "does not support tool",
            "support tool use",
            "does not support function",
            "tool use is not supported",
            "tools are not supported",
            "tools is not supported",
            "functions are not supported",
            "function calling is not enabled",
            "tool calling is not supported",
        ],
        Meaning::NoTools(
            "this model has no tools: set LLM_TOOLS=prompted, or use one that has (LLM_MODEL_NAME)",
        ),
    ),
    (401..=401, &[], Meaning::Credentials),
    (403..=403, &[], Meaning::Credentials),
    (
        402..=402,
        &["max_tokens"],
        Meaning::Lasting("lower max_tokens in LLM_EXTRA_BODY, or add credit to the account"),
    ),
    (402..=402, &[], Meaning::Lasting("the account has no credit left")),
    (
        400..=400,
        &[
            "api key not valid",
            "api_key_invalid",
            "incorrect api key",
            "invalid api key",
            "invalid_api_key",
        ],
        Meaning::Credentials,
    ),
    // A limit of tokens per minute is not the context limit, even if its words look like it.
    (
        ANY,
        &[
            "rate limit",
            "rate_limit",
            "please wait before",
            "per minute",
            "slow down",
            "too many requests",
        ],
        Meaning::Temporary,
    ),
    (
        429..=429,
        &[
            "insufficient_quota",
            "insufficient balance",
            "insufficient credit",
            "credit balance is too low",
            "payment required",
        ],
        Meaning::Lasting(QUOTA_HINT),
    ),
    (429..=429, &["check your plan", "billing"], Meaning::Billing),
    (429..=429, &[], Meaning::Temporary),
    (
        ANY,
        &[
            "contextwindowexceeded",
            "prompt is too long",
            "input is too long for requested model",
            "exceeds the context window",
            "reduce the length of the messages",
            "maximum context length",
            "maximum prompt length is #",
            "exceeds the available context size",
            "greater than the context length",
            "context window exceeds limit",
            "exceeded model token limit",
            "exceeds the limit of #",
            "model_context_window_exceeded",
            "context_length_exceeded",
            "context length exceeded",
            "context_length exceeded",
            "context length_exceeded",
            "too many tokens",
            "token limit exceeded",
            "exceeds the maximum number of tokens",
        ],
        Meaning::ContextFull,
    ),
    (413..=413, &[], Meaning::TooLarge),
    (
        400..=400,
        &["to https port", "to an https"],
        Meaning::Setup(FailedPart::Address, "use the same address with https://"),
    ),
    (
        400..=400,
        &["required ssl certificate"],
        Meaning::Setup(
            FailedPart::Route,
            "the server requires a client certificate, which this program does not support",
        ),
    ),
    // LiteLLM without a database, after a request with an unknown key.
    (400..=400, &["no connected db"], Meaning::Credentials),
    (
        407..=407,
        &[],
        Meaning::Setup(
            FailedPart::Route,
            "the proxy requires a login: write http://user:password@host:port as its address",
        ),
    ),
    (408..=409, &[], Meaning::Temporary),
    (500..=599, &[], Meaning::Temporary),
    (
        ANY,
        &["overloaded", "over capacity", "temporarily unavailable", "server is busy"],
        Meaning::Temporary,
    ),
    (300..=399, &[], Meaning::Redirect),
    (
        400..=400,
        &["invalid model", "unknown model", "model_not_found", "model not found"],
        Meaning::Setup(FailedPart::Model, MODEL_HINT),
    ),
    (404..=404, &["model"], Meaning::Setup(FailedPart::Model, MODEL_HINT)),
    (404..=405, &[], Meaning::NoEndpoint),
];

/// The meaning of a refusal with this message, in lower case.
pub(crate) fn meaning(status: u16, words: &str) -> Meaning {
    row(status, words).map_or(Meaning::Unknown, |(_, _, meaning)| *meaning)
}

/// The row that decides about a refusal.
pub(super) fn row(status: u16, words: &str) -> Option<&'static RefusalRow> {
    REFUSALS.iter().find(|(statuses, phrases, _)| {
        statuses.contains(&status) && (phrases.is_empty() || contains_any(words, phrases))
    })
}

/// Words in the code, status or type of an error object, and the HTTP status that they mean.
pub(crate) const STATUS_WORDS: &[(&str, u16)] = &[
    ("rate_limit", 429),
    ("resource_exhausted", 429),
    ("insufficient_quota", 429),
    ("overloaded", 529),
    ("server_error", 500),
    ("internal_error", 500),
    ("internalservererror", 500),
    ("unavailable", 503),
    ("authentication", 401),
    ("invalid_api_key", 401),
    ("permission", 403),
];

/// Fields with the message of an error, or with an object that contains it.
pub(crate) const MESSAGE_FIELDS: &[&str] =
    &["error", "message", "detail", "msg", "errors", "error_description"];

/// Headers with the server's id of a request.
pub(crate) const REQUEST_ID_HEADERS: &[&str] =
    &["x-request-id", "request-id", "apim-request-id", "x-amzn-requestid"];

/// Fields of an error with the context window, and with the tokens of the request.
pub(crate) const CONTEXT_FIELDS: (&str, &str) = ("n_ctx", "n_prompt_tokens");
