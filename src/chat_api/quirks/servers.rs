//! Server programs, and what their lists of models contain.

/// Server program that needs its own rules or messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerKind {
    /// Ollama: models are pulled, and the context window is small by default.
    Ollama,
    /// llama.cpp's `llama-server`.
    LlamaCpp,
    /// Any other program.
    #[default]
    Other,
}

/// Owners of models in a list, and the server program that names them.
pub(crate) const OWNERS: [(&str, ServerKind); 3] = [
    ("library", ServerKind::Ollama),
    ("llamacpp", ServerKind::LlamaCpp),
    ("vllm", ServerKind::Other),
];

/// Where Ollama returns its version, as `{"version"}`.
pub(crate) const OLLAMA_VERSION: &str = "/api/version";

/// Fields with the name of a model; the first with text counts.
pub(crate) const MODEL_NAMES: [&str; 3] = ["id", "model", "name"];

/// Fields with the context window that is served. The provider behind a gateway may serve less
/// than the model can, and LM Studio loads a model with less.
pub(crate) const SERVED_CONTEXT: [&str; 6] = [
    "loaded_context_length",
    "top_provider.context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
];

/// Fields with the context window that the model was trained for.
pub(crate) const TRAINED_CONTEXT: [&str; 1] = ["meta.n_ctx_train"];

/// Fields with the number of a model's parameters.
pub(crate) const PARAMETERS: [&str; 1] = ["meta.n_params"];

/// The field of Ollama's description with that number.
pub(crate) const DESCRIBED_PARAMETERS: &str = "general.parameter_count";

/// Units of Ollama's `parameter_size`, such as `1.5B`.
pub(crate) const SIZE_UNITS: [(char, f64); 3] = [('K', 1e3), ('M', 1e6), ('B', 1e9)];

/// Words of errors that refuse only the list of models to a key that is valid for answers:
/// OpenAI's restricted keys lack a scope, and Anthropic's list needs headers of its own API.
pub(crate) const LIST_REFUSALS: [&str; 3] = ["scope", "x-api-key", "anthropic-version"];
