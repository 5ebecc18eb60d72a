//! A list of models, in the dialects in which endpoints give it: `{"data":
//! [{"id"}]}`, `{"models": [{"name"}]}`, the list alone, and what they add.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::bounded;
use crate::limits;
use crate::model::wire::LooseValue;
use crate::text;

/// Which program serves the models, where that makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// Ollama: models are pulled, and the context is small unless it is told otherwise.
    Ollama,
    /// llama.cpp's `llama-server`.
    LlamaCpp,
    /// Another one.
    Other,
}

/// One model of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedModel {
    /// As requests name it.
    pub name: String,
    /// Whose it is, as the server words it.
    pub owner: String,
    /// Tokens of context that are served.
    pub served: Option<u64>,
    /// Tokens of context that the model was made for.
    pub trained: Option<u64>,
}

/// The entry of a model: Ollama takes `model` for `model:latest`, Gemini
/// `model` for `models/model`.
pub(crate) fn find<'m>(
    models: &'m [ListedModel],
    wanted: &str,
    server: ServerKind,
) -> Option<&'m ListedModel> {
    let wanted = bare(wanted);
    let exact = models.iter().find(|model| model.name == wanted);
    exact.or_else(|| {
        let latest = format!("{wanted}:latest");
        let is_it = |model: &&ListedModel| model.name.eq_ignore_ascii_case(&latest);
        models.iter().find(is_it).filter(|_| server == ServerKind::Ollama)
    })
}

fn bare(name: &str) -> &str {
    name.strip_prefix("models/").unwrap_or(name)
}

/// The models of a list in any of its dialects; `None`: it is none.
pub(super) fn parse(body: &[u8]) -> Option<Vec<ListedModel>> {
    let ModelPage(models) = serde_json::from_slice(body).ok()?;
    models
}

/// `{"data": […]}`, `{"models": […]}` or the list itself.
struct ModelPage(Option<Vec<ListedModel>>);

/// A list of models, of which no more than may be are kept.
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
                Ok(ModelPage(Some(collect(list)?)))
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<ModelPage, A::Error> {
                let (mut data, mut models) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    // Ollama without any model says `null`.
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
                collect(list).map(ModelList)
            }
        }
        deserializer.deserialize_seq(ListVisitor)
    }
}

fn collect<'de, A: SeqAccess<'de>>(mut list: A) -> std::result::Result<Vec<ListedModel>, A::Error> {
    let mut models = Vec::new();
    loop {
        // Each entry is bounded by itself: the list may be long.
        bounded::begin();
        let Some(entry) = list.next_element::<Option<ModelEntry<'de>>>()? else {
            break;
        };
        let entry = entry.unwrap_or_default();
        let name = entry.name();
        if !name.is_empty() && models.len() < limits::MODELS {
            models.push(ListedModel {
                owner: text::cut(&entry.owned_by.text(), limits::SUMMARY_CHARS).into_owned(),
                served: entry.served(),
                trained: entry.meta.number("n_ctx_train"),
                name,
            });
        }
    }
    Ok(models)
}

/// A model as it stands in a list.
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

/// An object whose numbers are of interest, or anything else.
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
        let name = bare(name.map_or("", AsRef::as_ref));
        // No name is that long: whatever it is, no request can name it.
        text::cut(name, limits::QUOTED_BYTES).into_owned()
    }

    /// What a provider behind a gateway serves may be less than the model can.
    fn served(&self) -> Option<u64> {
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
    fn a_long_list_is_read_and_an_entry_that_is_none_passed_over() {
        let entry = |number: usize| {
            format!(r#"{{"id":"m{number}","meta":{{"a":1,"b":2,"n_ctx_train":8}}}}"#)
        };
        let entries: Vec<String> = (0..limits::MODELS).map(entry).collect();
        let list = format!(r#"{{"data":[null,{}]}}"#, entries.join(","));
        let models = parse(list.as_bytes()).unwrap();
        assert_eq!((models.len(), models[9].trained), (limits::MODELS, Some(8)));
    }

    #[test]
    fn a_list_is_read_in_every_dialect() {
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
            let models = parse(body.as_bytes());
            let names = models.map(|list| list.into_iter().map(|m| m.name).collect::<Vec<_>>());
            let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
            assert_eq!(names, expected, "{body}");
        }
    }

    #[test]
    fn the_context_is_found_under_every_name() {
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
            let model = &parse(format!(r#"[{{"id":"a",{fields}}}]"#).as_bytes()).unwrap()[0];
            assert_eq!((model.served, model.trained), (served, trained), "{fields}");
        }
    }

    #[test]
    fn a_model_is_found_as_its_server_finds_it() {
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
            assert_eq!(find(&models, wanted, server).is_some(), expected, "{wanted}");
        }
    }

    #[test]
    fn a_list_without_end_is_kept_short() {
        let body = format!("[{}{{}}]", r#"{"id":"a"},"#.repeat(limits::MODELS + 5));
        assert_eq!(parse(body.as_bytes()).unwrap().len(), limits::MODELS);
    }
}
