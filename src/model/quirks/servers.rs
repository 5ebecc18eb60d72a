//! Server programs, and what their lists of models contain.

use crate::model::http::ServerKind;

/// Owners of models in a list, and the server program that names them.
pub(in crate::model) const OWNERS: [(&str, ServerKind); 3] = [
    ("library", ServerKind::Ollama),
    ("llamacpp", ServerKind::LlamaCpp),
    ("vllm", ServerKind::Other),
];

/// The start of Ollama's page at `/`.
pub(in crate::model) const OLLAMA_GREETING: &[u8] = b"Ollama is running";

/// The default port of Ollama.
pub(in crate::model) const OLLAMA_PORT: u16 = 11434; // not a limit

/// Fields with the name of a model; the first with text counts.
pub(in crate::model) const MODEL_NAMES: [&str; 3] = ["id", "model", "name"];

/// Fields with the context window that is served. The provider behind a gateway may serve less
/// than the model can.
pub(in crate::model) const SERVED_CONTEXT: [&str; 5] = [
    "top_provider.context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
];

/// Fields with the context window that the model was trained for.
pub(in crate::model) const TRAINED_CONTEXT: [&str; 1] = ["meta.n_ctx_train"];
