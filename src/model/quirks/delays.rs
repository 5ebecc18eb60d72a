//! Where servers say how long to wait before the next try.

/// Headers with seconds, a date, or a length such as `1m2s`. `LiteLLM` passes on the header of the
/// provider.
pub(crate) const HEADERS: [&str; 2] = ["retry-after", "llm_provider-retry-after"];

/// Kinds of rate limits, as they end the headers `x-ratelimit-remaining` and `x-ratelimit-reset`.
pub(crate) const RATE_LIMITS: [&str; 3] = ["", "-requests", "-tokens"];

/// Fields in a body: Google's `RetryInfo`, and the headers that a gateway quotes.
pub(crate) const FIELDS: [&str; 3] = ["\"retrydelay\"", "\"retry_after\"", "\"x-ratelimit-reset\""];

/// Phrases before a length of time.
pub(crate) const PHRASES: [&str; 5] =
    ["try again in ", "retry in ", "retry after ", "please wait ", "wait for "];
