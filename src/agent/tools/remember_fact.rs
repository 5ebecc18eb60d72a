//! `remember_fact`: remembers a fact for later conversations.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::memory::facts::FactChange;
use crate::memory::{AddedFact, Memory};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::tool::{Effects, ToolResult};

#[derive(Deserialize)]
struct RememberFactArguments {
    content: String,
    #[serde(default)]
    important: bool,
    #[serde(default)]
    replaces: String,
}

/// The tool `remember_fact`.
pub(super) struct RememberFact;

impl Tool for RememberFact {
    fn name(&self) -> &'static str {
        "remember_fact"
    }

    fn description(&self) -> &'static str {
        "Remember a lasting fact about the user or the work for later conversations: one short \
         sentence that stands by itself, with #tags if any. When a fact is no longer true, name it in \
         `replaces`."
    }

    fn title(&self) -> &'static str {
        "Remember a fact"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "content": {"type": "string"},
                "important": {"type": "boolean"},
                "replaces": {
                    "type": "string",
                    "description": "the text of the fact that it takes the place of",
                },
            },
            "required": ["content"],
        })
    }

    fn output(&self) -> Option<Value> {
        Some(json!({
            "type": "object",
            "properties": {
                "remembered": {"type": "string"},
                "replaced": {"type": "string"},
                "near": {"type": "array", "items": {"type": "string"}},
                "note": {"type": "string"},
            },
            "required": ["remembered"],
        }))
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        // It may replace an older fact.
        Effects { is_read_only: false, is_destructive: true, ..Effects::READ_ONLY }
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let arguments: RememberFactArguments = arguments.parse()?;
        Ok(PreparedCall::new(arguments.content.clone(), move |context| {
            remember(&arguments, context)
        }))
    }
}

fn remember(arguments: &RememberFactArguments, context: &ToolContext<'_>) -> ToolResult {
    let Some(path) = context.storage.facts.as_deref() else {
        return ToolResult::failure(
            "there is no memory: the user can name a file for it with MEMORY_PATH",
        );
    };
    let memory = Memory { path, cancellation: context.cancellation };
    let text = context.secrets.mask(&arguments.content);
    let replaces = context.secrets.mask(&arguments.replaces);
    let replaces = Some(replaces.trim()).filter(|text| !text.is_empty());
    match memory.add(&text, arguments.important, replaces, context.source) {
        Ok(added) => result_of_change(&added),
        Err(error) => ToolResult::failure(error.to_string().replace("\nhint: ", "; ")),
    }
}

fn result_of_change(added: &AddedFact) -> ToolResult {
    let content = &added.content;
    let (mut result, summary) = match &added.change {
        FactChange::Known => (
            json!({"remembered": content, "note": "this was known already"}),
            "known already".to_string(),
        ),
        FactChange::Added => (json!({"remembered": content}), "remembered".to_string()),
        FactChange::Replaced(old) => (
            json!({"remembered": content, "replaced": old.content}),
            format!("in place of: {}", old.content),
        ),
    };
    if !added.similar.is_empty() {
        result["near"] = json!(added.similar);
    }
    ToolResult::success(result.to_string(), summary)
}
