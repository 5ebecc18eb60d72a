//! Images in a request.
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
