//! Parser of model lists in the forms of different endpoints: `{"data": [{"id"}]}`,
//! `{"models": [{"name"}]}`, a bare list, and their additional fields.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::bounded;
use crate::limits;
use crate::model::wire::LooseValue;
use crate::text;

/// Server program that needs its own rules or messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// Ollama: models are pulled, and the context window is small by default.
    Ollama,
    /// llama.cpp's `llama-server`.
    LlamaCpp,
    /// Any other program.
    Other,
}

/// Model in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedModel {
    /// The name used in requests.
    pub name: String,
    /// The owner, as the server names it.
    pub owner: String,
    /// The context window that is served, in tokens.
    pub served_tokens: Option<u64>,
    /// The context window that the model was trained for, in tokens.
    pub trained_tokens: Option<u64>,
}

/// Finds the entry of a model: Ollama accepts `model` for `model:latest`, Gemini `model` for
/// `models/model`.
pub(crate) fn find_model<'m>(
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
    let ModelPage(models) = serde_json::from_slice(body).ok()?;
    models
}

/// `{"data": […]}`, `{"models": […]}` or a bare list.
struct ModelPage(Option<Vec<ListedModel>>);

/// A list of models, cut to the limit.
struct ModelList(Vec<ListedModel>);

impl<'de> Deserialize<'de> for ModelPage {
    fn deserialize<D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<ModelPage, D::Error> {
        struct PageVisitor;
        impl<'de> Visitor<'de> for PageVisitor {
            type Value = ModelPage;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of models")
            }
            fn visit_seq<A: SeqAccess<'de>>(
                self,
                list: A,
            ) -> std::result::Result<ModelPage, A::Error> {
                Ok(ModelPage(Some(collect_models(list)?)))
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<ModelPage, A::Error> {
                let (mut data, mut models) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    // Ollama sends `null` if it has no models.
                    let list = match key.as_str() {
                        "data" => &mut data,
                        "models" => &mut models,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    let ModelList(entries) =
                        map.next_value::<Option<ModelList>>()?.unwrap_or(ModelList(Vec::new()));
                    *list = Some(entries);
                }
                Ok(ModelPage(data.or(models)))
            }
        }
        deserializer.deserialize_any(PageVisitor)
    }
}

impl<'de> Deserialize<'de> for ModelList {
    fn deserialize<D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<ModelList, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = ModelList;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of models")
            }
            fn visit_seq<A: SeqAccess<'de>>(
                self,
                list: A,
            ) -> std::result::Result<ModelList, A::Error> {
                collect_models(list).map(ModelList)
            }
        }
        deserializer.deserialize_seq(ListVisitor)
    }
}

fn collect_models<'de, A: SeqAccess<'de>>(
    mut list: A,
) -> std::result::Result<Vec<ListedModel>, A::Error> {
    let mut models = Vec::new();
    loop {
        // The limit on values applies to each entry: the list may be long.
        bounded::reset_count();
        let Some(entry) = list.next_element::<Option<ModelEntry<'de>>>()? else {
            break;
        };
        let entry = entry.unwrap_or_default();
        let name = entry.name();
        if !name.is_empty() && models.len() < limits::MODELS {
            models.push(ListedModel {
                owner: text::truncate(&entry.owned_by.text(), limits::SUMMARY_CHARS).into_owned(),
                served_tokens: entry.served_tokens(),
                trained_tokens: entry.meta.number("n_ctx_train"),
                name,
            });
        }
    }
    Ok(models)
}

/// Entry of a list as the endpoint sends it.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct ModelEntry<'e> {
    #[serde(borrow)]
    id: LooseValue<'e>,
    #[serde(borrow)]
    name: LooseValue<'e>,
    #[serde(borrow)]
    model: LooseValue<'e>,
    #[serde(borrow)]
    owned_by: LooseValue<'e>,
    #[serde(borrow)]
    max_model_len: LooseValue<'e>,
    #[serde(borrow)]
    context_length: LooseValue<'e>,
    #[serde(borrow)]
    context_window: LooseValue<'e>,
    #[serde(borrow)]
    max_context_length: LooseValue<'e>,
    #[serde(borrow)]
    top_provider: ModelFields<'e>,
    #[serde(borrow)]
    meta: ModelFields<'e>,
}

/// Nested object with numeric fields; a value of any other type is ignored.
#[derive(Default, serde::Deserialize)]
#[serde(transparent)]
struct ModelFields<'f>(#[serde(borrow)] LooseValue<'f>);

impl ModelFields<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        match &self.0 {
            LooseValue::Other(value) => value.get(name)?.as_u64(),
            _ => None,
        }
    }
}

impl ModelEntry<'_> {
    fn name(&self) -> String {
        let names = [&self.id, &self.model, &self.name].map(LooseValue::text);
        let name = names.iter().find(|name| !name.is_empty());
        let name = without_prefix(name.map_or("", AsRef::as_ref));
        // No valid name is longer than this.
        text::truncate(name, limits::QUOTED_BYTES).into_owned()
    }

    /// The context window that is served: the provider behind a gateway may serve less than the
    /// model can.
    fn served_tokens(&self) -> Option<u64> {
        self.top_provider
            .number("context_length")
            .or_else(|| self.max_model_len.number())
            .or_else(|| self.context_length.number())
            .or_else(|| self.context_window.number())
            .or_else(|| self.max_context_length.number())
            .filter(|tokens| *tokens > 0)
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
        let entries: Vec<String> = (0..limits::MODELS).map(entry).collect();
        let list = format!(r#"{{"data":[null,{}]}}"#, entries.join(","));
        let models = parse_models(list.as_bytes()).unwrap();
        assert_eq!((models.len(), models[9].trained_tokens), (limits::MODELS, Some(8)));
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
