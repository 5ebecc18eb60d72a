//! Parser of model lists in the forms of different endpoints: `{"data": [{"id"}]}`,
//! `{"models": [{"name"}]}`, a bare list, and their additional fields.

use serde::de::{Deserialize, Deserializer};

use crate::quirks::servers::{self, ServerKind};
use crate::wire::{FirstItems, LooseValue};
use base::bounded;
use base::limits;
use base::text;

/// Model in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// The name used in requests.
    pub name: String,
    /// The owner, as the server names it.
    pub owner: String,
    /// The context window that is served, in tokens.
    pub served_tokens: Option<u64>,
    /// The context window that the model was trained for, in tokens.
    pub trained_tokens: Option<u64>,
    /// The number of parameters.
    pub parameters: Option<u64>,
}

/// Finds the entry of a model: Ollama accepts `model` for `model:latest`, Gemini `model` for
/// `models/model`.
pub fn find_model<'m>(
    models: &'m [ListedModel],
    wanted: &str,
    server: ServerKind,
) -> Option<&'m ListedModel> {
    let wanted = without_prefix(wanted);
    let exact = models.iter().find(|model| model.name == wanted);
    exact.or_else(|| {
        let latest = format!("{wanted}:latest");
        let is_latest = |model: &&ListedModel| model.name.eq_ignore_ascii_case(&latest);
        models.iter().find(is_latest).filter(|_| server == ServerKind::Ollama)
    })
}

fn without_prefix(name: &str) -> &str {
    name.strip_prefix("models/").unwrap_or(name)
}

/// Parses a list in any of its forms; `None` if the body is not a list of models.
pub(super) fn parse_models(body: &[u8]) -> Option<Vec<ListedModel>> {
    /// `{"data": […]}` or `{"models": […]}`.
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct ModelPage {
        #[serde(deserialize_with = "present")]
        data: Option<ModelList>,
        #[serde(deserialize_with = "present")]
        models: Option<ModelList>,
    }
    let list = match body.trim_ascii_start().first() {
        Some(b'[') => serde_json::from_slice(body).ok(),
        _ => {
            let page: ModelPage = serde_json::from_slice(body).ok()?;
            page.data.or(page.models)
        }
    };
    let mut models = list?.items;
    models.retain(|model| !model.name.is_empty());
    Some(models)
}

type ModelList = FirstItems<ListedModel, { limits::MODELS }>;

/// Reads a list that is in the page, even if it is `null`: Ollama sends that if it has no models.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ModelList>, D::Error> {
    ModelList::deserialize(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for ListedModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ListedModel, D::Error> {
        // The limit on values applies to each entry: the list may be long.
        bounded::reset_count();
        let entry = LooseValue::deserialize(deserializer)?;
        let number = |paths: &[&str]| {
            let mut values = paths.iter().filter_map(|path| entry.number_at(path));
            values.find(|tokens| *tokens > 0)
        };
        let names = servers::MODEL_NAMES.iter().filter_map(|name| entry.field(name).as_str());
        let name = without_prefix(names.into_iter().find(|name| !name.is_empty()).unwrap_or(""));
        let owner = entry.field("owned_by").as_str().unwrap_or_default();
        Ok(ListedModel {
            // No valid name is longer than this, or has control characters.
            name: text::one_line_name(&text::truncate(name, limits::QUOTED_BYTES)),
            owner: text::truncate(owner, limits::SUMMARY_CHARS).into_owned(),
            served_tokens: number(&servers::SERVED_CONTEXT),
            trained_tokens: number(&servers::TRAINED_CONTEXT),
            parameters: number(&servers::PARAMETERS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_long_list_and_skips_null_entries() {
        let entry = |number: usize| {
            format!(r#"{{"id":"m{number}","meta":{{"a":1,"b":2,"n_ctx_train":8}}}}"#)
        };
        let entries: Vec<String> = (1..limits::MODELS).map(entry).collect();
        let list = format!(r#"{{"data":[null,{}]}}"#, entries.join(","));
        let models = parse_models(list.as_bytes()).unwrap();
        assert_eq!((models.len(), models[9].trained_tokens), (limits::MODELS - 1, Some(8)));
    }

    #[test]
    fn reads_lists_in_every_form() {
        let table: &[(&str, Option<&[&str]>)] = &[
            (r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#, Some(&["a", "b"])),
            (r#"{"models":[{"name":"a"},{"model":"b"},{"id":"c"}]}"#, Some(&["a", "b", "c"])),
            (r#"{"models":[{"name":"a"}],"data":[{"id":"b"}]}"#, Some(&["b"])),
            (r#"[{"id":"a"},{"id":null},{"id":3,"name":"b"}]"#, Some(&["a", "b"])),
            (r#"{"data":[{"id":"models/gemini-x"}]}"#, Some(&["gemini-x"])),
            (r#"{"object":"list","data":null}"#, Some(&[])),
            (r#"{"data":{"id":"a"}}"#, None),
            (r#"{"error":"x"}"#, None),
            ("<html>", None),
            ("3", None),
            ("", None),
        ];
        for (body, expected) in table {
            let models = parse_models(body.as_bytes());
            let names = models.map(|list| list.into_iter().map(|m| m.name).collect::<Vec<_>>());
            let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
            assert_eq!(names, expected, "{body}");
        }
    }

    #[test]
    fn finds_the_context_window_under_every_name() {
        let table = [
            (r#""max_model_len":8192"#, Some(8192), None),
            (r#""context_length":"8192""#, Some(8192), None),
            (r#""max_context_length":9,"loaded_context_length":8192"#, Some(8192), None),
            (r#""context_window":8192"#, Some(8192), None),
            (r#""max_context_length":8192"#, Some(8192), None),
            (r#""context_length":9,"top_provider":{"context_length":8192}"#, Some(8192), None),
            (r#""meta":{"n_ctx_train":8192}"#, None, Some(8192)),
            (r#""context_length":0,"meta":[1],"top_provider":null"#, None, None),
        ];
        for (fields, served, trained) in table {
            let model = &parse_models(format!(r#"[{{"id":"a",{fields}}}]"#).as_bytes()).unwrap()[0];
            assert_eq!((model.served_tokens, model.trained_tokens), (served, trained), "{fields}");
        }
    }

    #[test]
    fn finds_models_by_the_rules_of_the_server() {
        let models = ["qwen3:latest", "gemini-x"]
            .map(|name| ListedModel { name: name.into(), ..ListedModel::default() });
        let table = [
            ("qwen3", ServerKind::Ollama, true),
            ("qwen3", ServerKind::Other, false),
            ("qwen3:latest", ServerKind::Other, true),
            ("qwen3:8b", ServerKind::Ollama, false),
            ("models/gemini-x", ServerKind::Other, true),
        ];
        for (wanted, server, expected) in table {
            assert_eq!(find_model(&models, wanted, server).is_some(), expected, "{wanted}");
        }
    }

    #[test]
    fn a_list_is_cut_to_the_limit() {
        let body = format!("[{}{{}}]", r#"{"id":"a"},"#.repeat(limits::MODELS + 5));
        assert_eq!(parse_models(body.as_bytes()).unwrap().len(), limits::MODELS);
    }
}
