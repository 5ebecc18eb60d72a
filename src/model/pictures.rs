//! Pictures in a request, and endpoints that refuse them.
//!
//! A message with pictures is a list of parts. A tool's result must be text
//! everywhere, so what tools show follows in a person's message behind all
//! results of the step. Some refuse a person's message right after a tool's:
//! an assistant's line stands between, always, since nobody refuses that.

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::json;

use crate::limits;
use crate::message::{Image, Message};
use crate::model::request_failure::RequestFailure;
use crate::text::{one_line, sendable};
use crate::tool::ToolCall;

/// What the assistant says in front of a message that it did not ask for.
const FOLLOWS: &str = "(What the tools have shown follows as images.)";

/// The text for an endpoint that is shown no pictures.
pub(super) fn without_image(text: &str) -> String {
    let space = if text.is_empty() { "" } else { "\n" };
    format!("{text}{space}[image left out: the model is shown none]")
}

/// A text and pictures, each behind its label; what is empty is left out.
pub(super) struct ContentParts<'p>(pub &'p str, pub Vec<(&'p str, &'p Image)>);

impl Serialize for ContentParts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum ContentPart<'p> {
            Text { text: &'p str },
            ImageUrl { image_url: ImageUrl<'p> },
        }
        #[derive(serde::Serialize)]
        struct ImageUrl<'p> {
            url: &'p str,
        }
        let mut list = serializer.serialize_seq(None)?;
        let ContentParts(text, images) = self;
        if !text.is_empty() {
            list.serialize_element(&ContentPart::Text { text })?;
        }
        for (label, image) in images {
            if !label.is_empty() {
                list.serialize_element(&ContentPart::Text { text: label })?;
            }
            let image_url = ImageUrl { url: &image.url };
            list.serialize_element(&ContentPart::ImageUrl { image_url })?;
        }
        list.end()
    }
}

/// What the tools of a step have shown, while their results are written.
#[derive(Default)]
pub(super) struct ShownPictures<'m> {
    calls: &'m [ToolCall],
    results: usize,
    images: Vec<(String, &'m Image)>,
}

impl<'m> ShownPictures<'m> {
    /// A message has been written.
    pub(super) fn note(&mut self, message: &'m Message) {
        match message {
            Message::Assistant(said) => {
                self.calls = &said.calls;
                self.results = 0;
            }
            Message::Tool { name, image, .. } => {
                let call = self.calls.get(self.results);
                self.results += 1;
                if let Some(image) = image {
                    let arguments = call.map_or("", |call| &call.arguments);
                    let label = format!("{name} {arguments}:");
                    let label = one_line(&sendable(&label), limits::SUMMARY_CHARS);
                    self.images.push((label, image));
                }
            }
            Message::System(_) | Message::User(_) => {}
        }
    }

    /// What was shown goes before the first message that is no result.
    pub(super) fn end_before<L: SerializeSeq>(
        &mut self,
        message: &Message,
        list: &mut L,
    ) -> Result<(), L::Error> {
        match message {
            Message::Tool { .. } => Ok(()),
            _ => self.end(list),
        }
    }

    /// The results are written: what they have shown is next.
    pub(super) fn end<L: SerializeSeq>(&mut self, list: &mut L) -> Result<(), L::Error> {
        #[derive(serde::Serialize)]
        struct PicturesMessage<'p> {
            role: &'static str,
            content: ContentParts<'p>,
        }
        if self.images.is_empty() {
            return Ok(());
        }
        list.serialize_element(&json!({"role": "assistant", "content": FOLLOWS}))?;
        let images = self.images.iter();
        let images = images.map(|(label, image)| (label.as_str(), *image));
        list.serialize_element(&PicturesMessage {
            role: "user",
            content: ContentParts("", images.collect()),
        })?;
        self.images.clear();
        Ok(())
    }
}

/// How endpoints and models refuse pictures, in lower case and without quotes.
const REFUSALS: [&str; 28] = [
    // Ollama, OpenRouter, xAI, LM Studio, Fireworks, Bedrock.
    "support image",
    "support the image",
    "support vision",
    "support multimodal",
    "support multi-modal",
    "images are not supported",
    "image inputs are not",
    "image input is not",
    "image input not supported",
    "image content is not supported",
    "image content is currently not",
    "image input modality is not",
    "required for image input",
    "does not accept image",
    "cannot process image",
    // Groq, of models that see, but not beside a system message.
    "prompting with images is incompatible",
    // OpenAI, Azure, Cerebras, Fireworks.
    "image_url is only supported",
    "image_url is not supported",
    "image_url not supported",
    "invalid value: image_url",
    "unsupported content type: image_url",
    // DeepSeek and all whose server is written in Rust.
    "unknown variant image_url",
    // vLLM, SiliconFlow, llama.cpp, mlx-lm.
    "not a multimodal model",
    "not a vlm",
    "at most 0 image",
    "mmproj",
    "unsupported content[].type",
    "only text content type is supported",
];

/// How others refuse a list of parts, or a result or an empty content as well.
const WANTS_TEXT: [&str; 6] = [
    "must be a string",
    "be a valid string",
    "should be a string",
    "expected a string",
    "expected string",
    "value must be string",
];

/// Whether a refusal says that pictures are not taken. With `in_doubt` also one
/// that only says that a text was expected.
pub(super) fn are_refused(failure: &RequestFailure, in_doubt: bool) -> bool {
    let Some(answer) = &failure.answer else {
        return false;
    };
    let is_judgement = matches!(answer.status, 200 | 400 | 404 | 415 | 422 | 500 | 501);
    let mut text = String::from_utf8_lossy(&answer.body).to_lowercase();
    text.retain(|c| !matches!(c, '\'' | '"' | '`' | '\\'));
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    // Whoever names the field does not take it.
    let is_named = matches!(answer.status, 400 | 415 | 422) && text.contains("image_url");
    is_judgement && (is_named || has(&REFUSALS) || in_doubt && has(&WANTS_TEXT))
}
