//! Shortens messages of a conversation when the context is full.

use crate::conversation::Conversation;
use base::limits;
use base::message::Message;

impl Conversation {
    /// Shortens tool results of more than `most` bytes to their beginning and end. Returns their
    /// number. Skill documents stay: the model needs them to use a skill.
    pub fn shorten_results(&mut self, most: usize) -> usize {
        self.change_each(&mut |message| match message {
            Message::Tool(tool) if tool.document.is_none() => {
                let whole = tool.content.clone();
                let is_cut = shorten(&mut tool.content, most);
                if is_cut {
                    tool.untrusted.get_or_insert(whole);
                }
                tool.is_shortened |= is_cut;
                is_cut
            }
            _ => false,
        })
    }

    /// Shortens skill documents, when nothing else is left to shorten. A document in the last
    /// question stays.
    pub fn shorten_documents(&mut self, most: usize) -> usize {
        let question = self.latest_turn_start();
        let mut place = 0;
        self.change_each(&mut |message| {
            place += 1;
            match message {
                Message::Tool(tool) if tool.document.is_some() => {
                    tool.is_shortened =
                        shorten_document(&mut tool.document, &mut tool.content, most);
                    tool.is_shortened
                }
                Message::User(user) if place <= question => {
                    let skills = user.skills.iter_mut();
                    skills.fold(false, |is_cut, skill| shorten(&mut skill.text, most) | is_cut)
                }
                _ => false,
            }
        })
    }
}

/// Shortens a document together with the text after it, which then contains the rest of both.
/// Returns whether they were long enough.
pub(super) fn shorten_document(
    document: &mut Option<String>,
    content: &mut String,
    most: usize,
) -> bool {
    let mut whole = document.clone().unwrap_or_default() + content;
    let is_cut = shorten(&mut whole, most);
    if is_cut {
        (*document, *content) = (None, whole);
    }
    is_cut
}

/// Shortens a text of more than `most` bytes to its beginning and end. Returns whether it did.
fn shorten(text: &mut String, most: usize) -> bool {
    if text.len() <= most {
        return false;
    }
    // The note counts too; otherwise the text would be shortened again.
    let half = most.saturating_sub(limits::CUT_NOTE_BYTES) / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let left_out = text.len() - head.len() - tail.len();
    *text = format!("{head}\n[{left_out} bytes left out: the context is full]\n{tail}");
    true
}
