//! What the beginning of a document tells: name, description, and whether
//! there is something in the way of reading it whole.

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::Value;

use crate::limits;
use crate::skills::frontmatter::{self, Frontmatter};
use crate::skills::{Problem, Severity};
use crate::text;
use crate::world::confined::{self, OpenError, OpenFile};

/// The faults of a frontmatter; what was repaired is no fault.
pub(super) fn problems(matter: Frontmatter, file_name: &str) -> impl Iterator<Item = Problem> {
    let faults =
        matter.diagnostics.into_iter().filter(|finding| finding.severity == Severity::Error);
    faults.map(move |fault| Problem::of_document(file_name, fault))
}

/// Why the model cannot have the document, as far as its size and its
/// beginning tell: what is odd further below nobody has read yet.
pub(super) fn refused(
    file_name: &str,
    is_large: bool,
    is_text: bool,
    matter: &Frontmatter,
) -> Option<Problem> {
    let (rule, message, fix) = if is_large {
        (
            "large-document",
            "it is larger than 1 MiB, so that get_skill refuses it",
            "move parts of it into files of their own",
        )
    } else if !is_text && !matter.diagnostics.iter().any(|found| found.rule == "not-utf8") {
        (
            "not-utf8",
            "bytes that are not UTF-8, so that get_skill refuses it",
            "save the document as UTF-8",
        )
    } else {
        return None;
    };
    Some(Problem {
        file: PathBuf::from(file_name),
        line: None,
        rule,
        severity: Severity::Error,
        message: message.to_owned(),
        fix: Some(fix.to_owned()),
    })
}

/// What the beginning of a document says.
pub(super) struct Metadata {
    /// Without its description.
    pub matter: Frontmatter,
    pub description: String,
    /// Nothing in what was read is other than UTF-8.
    pub is_text: bool,
}

/// Name and description, from as little of the document as it takes.
pub(super) fn read(open: &OpenFile, head: &mut [u8]) -> Result<Metadata, OpenError> {
    let length = confined::read_head(&open.file, open.size, head)?;
    let is_whole = length < head.len();
    if let Some(matter) = frontmatter::parse_head(&head[..length], is_whole) {
        return Ok(described(matter, &head[..length], is_whole));
    }
    let document = confined::read_whole(&open.file, limits::DOCUMENT_BYTES)?.bytes;
    let matter = frontmatter::parse_head(&document, true).unwrap_or_default();
    let is_whole = document.len() < limits::DOCUMENT_BYTES;
    Ok(described(matter, &document, is_whole))
}

/// Whether the bytes are UTF-8; a character at their end may be cut.
fn is_text(bytes: &[u8], is_whole: bool) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => !is_whole && error.error_len().is_none(),
    }
}

/// The description in the frontmatter, or the document's first line of text.
fn described(mut matter: Frontmatter, document: &[u8], is_whole: bool) -> Metadata {
    // Taken, not copied: there are thousands, and nobody asks the fields again.
    let written = match matter.fields.get_mut("description") {
        Some(Value::String(text)) if !text.trim().is_empty() => Some(std::mem::take(text)),
        _ => None,
    };
    let description = written.or_else(|| matter.description()).or_else(|| {
        let body = document.get(matter.body_start..).unwrap_or_default();
        let body = String::from_utf8_lossy(body);
        frontmatter::first_line_of_text(&body).map(str::to_string)
    });
    let mut description = description.unwrap_or_default();
    // A model would read what nobody who chose the skill has seen.
    if let Cow::Owned(visible) = text::without_invisible(&description) {
        description = visible;
    }
    if description.len() > limits::DESCRIPTION_KEPT_BYTES {
        let cut = text::cut_words(&description, limits::DESCRIPTION_KEPT_BYTES);
        description = cut.into_owned();
    }
    Metadata { matter, description, is_text: is_text(document, is_whole) }
}
