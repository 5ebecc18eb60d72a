//! Images in a conversation. Each is sent with every request, so their number and size are
//! limited.

use crate::conversation::Conversation;
use crate::limits;
use crate::message::Message;
use crate::tool::ToolResult;

impl Conversation {
    /// Removes an image that is already in the conversation or exceeds the limit, and adds a
    /// note.
    pub(super) fn without_repeated_image(&self, mut result: ToolResult) -> ToolResult {
        let Some(image) = &result.image else {
            return result;
        };
        let images = || self.messages().iter().flat_map(Message::images);
        let bytes: usize = images().map(|image| image.url.len()).sum();
        let note = if images().any(|known| known == image) {
            "[not shown again: the same image is above in this conversation]"
        } else if bytes + image.url.len() > limits::IMAGES_BYTES {
            "[not shown after all: this conversation has no room for more images]"
        } else {
            return result;
        };
        result.image = None;
        result.content = format!("{}\n{note}", result.content);
        result
    }
}
