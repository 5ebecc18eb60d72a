//! Content that a conversation already contains: a skill's document and an image are sent once.

use crate::conversation::{Conversation, shorten};
use base::limits;
use base::message::Message;
use base::tool::ToolResult;

/// The note that replaces a document which is already in the conversation.
pub(super) const UNCHANGED_DOCUMENT: &str = "[unchanged: the text is above in this conversation]";

/// Follows the note if the skill's other files were deleted.
pub(super) const NO_FILES: &str = "\n\nThis skill has no other files any more.";

impl Conversation {
    /// Replaces a document that the conversation already contains by a note, with the list of
    /// files after it only if that has changed. A document that was removed or shortened is
    /// sent again.
    pub fn without_repeated_content(&self, result: ToolResult) -> ToolResult {
        let mut result = self.without_repeated_image(result);
        let Some(document) = &result.document else {
            return result;
        };
        let base = document.lines().next().unwrap_or_default();
        // It was shortened in this turn: the whole document would not fit now.
        let is_cut = |message: &Message| match message {
            Message::Tool(tool) => tool.is_shortened && tool.content.lines().next() == Some(base),
            _ => false,
        };
        if self.messages()[self.latest_turn_start()..].iter().any(is_cut) {
            let most = limits::SHORTENED_RESULT_BYTES;
            shorten::shorten_document(&mut result.document, &mut result.content, most);
            result.summary = "cut again: the context is full".into();
            return result;
        }
        let Some(earlier_files) = self.files_after_earlier(document, base, &result) else {
            return result;
        };
        let mut note = format!("{base}\n\n{UNCHANGED_DOCUMENT}");
        if result.content != earlier_files {
            note.push_str(if result.content.is_empty() { NO_FILES } else { &result.content });
        }
        ToolResult {
            action: result.action,
            untrusted: result.untrusted,
            ..ToolResult::success(note, "unchanged, already read")
        }
    }

    /// Returns the text after the same document earlier in the conversation.
    fn files_after_earlier<'a>(
        &'a self,
        document: &str,
        base: &str,
        result: &'a ToolResult,
    ) -> Option<&'a str> {
        let whole = result.full_text();
        let earlier = self.messages().iter().rev().find_map(|message| match message {
            Message::Tool(tool) => match &tool.document {
                Some(other) if other == document => Some(Some(tool.content.as_str())),
                // An older version with this text comes before a newer one, so the text is
                // sent again. With arguments it is another text, not another version.
                Some(other) if is_same_skill(other, document) => Some(None),
                _ => None,
            },
            Message::User(user) => user.skills.iter().rev().find_map(|skill| {
                let is_meant = skill.text.contains(&format!("{base}\n"));
                is_meant.then(|| skill.text.ends_with(&*whole).then_some(result.content.as_str()))
            }),
            _ => None,
        });
        earlier.flatten()
    }

    /// Removes an image that is already in the conversation or exceeds the limit, and adds a
    /// note.
    fn without_repeated_image(&self, mut result: ToolResult) -> ToolResult {
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

/// Whether two documents have the same first lines: the same skill and the same start.
pub(crate) fn is_same_skill(one: &str, other: &str) -> bool {
    const LINES: usize = 3;
    one.lines().take(LINES).eq(other.lines().take(LINES))
}
