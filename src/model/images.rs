//! Images in a request, and endpoints that refuse them.
//!
//! A message with images is a list of parts. Tool results must be text everywhere, so
//! images that tools show follow in a user message after all results of the step. Some
//! endpoints refuse a user message right after a tool message: an assistant message is always
//! put between them, which no endpoint refuses.

use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::json;

use crate::limits;
use crate::media::Image;
use crate::message::Message;
use crate::model::request_failure::RequestFailure;
use crate::text::{one_line, sendable};
use crate::tool::ToolCall;

/// The text of the assistant message before the images.
const IMAGES_FOLLOW: &str = "(What the tools have shown follows as images.)";

/// The text that replaces a message with an image where images are not sent.
pub(super) fn without_image(text: &str) -> String {
    let separator = if text.is_empty() { "" } else { "\n" };
    format!("{text}{separator}[image left out: the model is shown none]")
}

/// A text and images, each after its label; empty texts are omitted.
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

/// Images that the tools of a step have shown, collected while their results are written.
#[derive(Default)]
pub(super) struct ShownImages<'m> {
    calls: &'m [ToolCall],
    results: usize,
    images: Vec<(String, &'m Image)>,
}

impl<'m> ShownImages<'m> {
    /// Records a message that was written.
    pub(super) fn record(&mut self, message: &'m Message) {
        match message {
            Message::Assistant(assistant) => {
                self.calls = &assistant.calls;
                self.results = 0;
            }
            Message::Tool(result) => {
                let call = self.calls.get(self.results);
                self.results += 1;
                if let Some(image) = &result.image {
                    let arguments = call.map_or("", |call| &call.arguments);
                    let label = format!("{} {arguments}:", result.name);
                    let label = one_line(&sendable(&label), limits::SUMMARY_CHARS);
                    self.images.push((label, image));
                }
            }
            Message::System(_) | Message::User(_) => {}
        }
    }

    /// Writes the images before the first message that is not a tool result.
    pub(super) fn flush_before<L: SerializeSeq>(
        &mut self,
        message: &Message,
        list: &mut L,
    ) -> Result<(), L::Error> {
        match message {
            Message::Tool(_) => Ok(()),
            _ => self.flush(list),
        }
    }

    /// Writes the images after the tool results.
    pub(super) fn flush<L: SerializeSeq>(&mut self, list: &mut L) -> Result<(), L::Error> {
        #[derive(serde::Serialize)]
        struct ImagesMessage<'p> {
            role: &'static str,
            content: ContentParts<'p>,
        }
        if self.images.is_empty() {
            return Ok(());
        }
        list.serialize_element(&json!({"role": "assistant", "content": IMAGES_FOLLOW}))?;
        let images = self.images.iter();
        let images = images.map(|(label, image)| (label.as_str(), *image));
        list.serialize_element(&ImagesMessage {
            role: "user",
            content: ContentParts("", images.collect()),
        })?;
        self.images.clear();
        Ok(())
    }
}

/// Phrases with which endpoints and models refuse images, in lower case and without quotes.
const IMAGE_REFUSALS: [&str; 28] = [
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
    // Groq, for vision models if there is a system message.
    "prompting with images is incompatible",
    // OpenAI, Azure, Cerebras, Fireworks.
    "image_url is only supported",
    "image_url is not supported",
    "image_url not supported",
    "invalid value: image_url",
    "unsupported content type: image_url",
    // DeepSeek and other servers written in Rust.
    "unknown variant image_url",
    // vLLM, SiliconFlow, llama.cpp, mlx-lm.
    "not a multimodal model",
    "not a vlm",
    "at most 0 image",
    "mmproj",
    "unsupported content[].type",
    "only text content type is supported",
];

/// Phrases of a refusal that may mean images or another content that is not text.
const TEXT_EXPECTED: [&str; 6] = [
    "must be a string",
    "be a valid string",
    "should be a string",
    "expected a string",
    "expected string",
    "value must be string",
];

/// Whether the failure is a refusal of images. With `accept_vague` also one that only says
/// that text was expected.
pub(super) fn are_refused(failure: &RequestFailure, accept_vague: bool) -> bool {
    let Some(answer) = &failure.answer else {
        return false;
    };
    let is_refusal = matches!(answer.status, 200 | 400 | 404 | 415 | 422 | 500 | 501);
    let mut text = String::from_utf8_lossy(&answer.body).to_lowercase();
    text.retain(|c| !matches!(c, '\'' | '"' | '`' | '\\'));
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    // A refusal that names the field means the images.
    let is_named = matches!(answer.status, 400 | 415 | 422) && text.contains("image_url");
    is_refusal && (is_named || has(&IMAGE_REFUSALS) || accept_vague && has(&TEXT_EXPECTED))
}
