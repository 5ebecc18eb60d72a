//! Name and description of a skill, from the start of its document, and the problems
//! that keep a model from reading the whole document.

use std::borrow::Cow;

use serde_json::Value;

use crate::frontmatter::{self, Frontmatter};
use crate::{Problem, Rule};
use base::limits;
use base::text;
use host::confined::{self, OpenError, OpenFile};

/// The errors in a frontmatter, without the warnings about what was repaired.
pub(super) fn error_problems(
    matter: Frontmatter,
    file_name: &str,
) -> impl Iterator<Item = Problem> {
    let errors = matter.diagnostics.into_iter().filter(|found| found.is_lost);
    errors.map(move |error| Problem::from_diagnostic(file_name, error))
}

/// Why `get_skill` refuses the document, judged by its size and its start: the rest has
/// not been read yet.
pub(super) fn refusal_problem(
    file_name: &str,
    is_large: bool,
    is_text: bool,
    matter: &Frontmatter,
) -> Option<Problem> {
    if is_large {
        let message = "it is larger than 1 MiB, so get_skill refuses it";
        let problem = Problem::new(Rule::UnreadableDocument, file_name, message);
        return Some(problem.with_fix("move parts of it into other files"));
    }
    let is_reported = matter.diagnostics.iter().any(|found| found.rule == Rule::NotUtf8);
    (!is_text && !is_reported).then(|| {
        let message = "bytes that are not UTF-8, so get_skill refuses it";
        Problem::new(Rule::NotUtf8, file_name, message)
    })
}

/// The metadata in the start of a document.
pub(super) struct Metadata {
    /// The frontmatter, from which the description may have been moved out.
    pub frontmatter: Frontmatter,
    pub description: String,
    /// Whether all bytes that were read are UTF-8.
    pub is_utf8: bool,
}

/// Reads name and description from as little of the document as possible.
pub(super) fn read(open: &OpenFile, head: &mut [u8]) -> Result<Metadata, OpenError> {
    let length = confined::read_head(&open.file, open.size, head)?;
    let is_whole = length < head.len();
    if let Some(matter) = frontmatter::parse_head(&head[..length], is_whole) {
        return Ok(with_description(matter, &head[..length], is_whole));
    }
    let document = confined::read_whole(&open.file, limits::DOCUMENT_BYTES)?.bytes;
    let matter = frontmatter::parse_head(&document, true).unwrap_or_default();
    let is_whole = document.len() < limits::DOCUMENT_BYTES;
    Ok(with_description(matter, &document, is_whole))
}

/// Whether the bytes are UTF-8. Unless `is_whole`, the last character may be incomplete.
fn is_utf8(bytes: &[u8], is_whole: bool) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => !is_whole && error.error_len().is_none(),
    }
}

/// Adds the description: that of the frontmatter, or the document's first line of text.
fn with_description(mut matter: Frontmatter, document: &[u8], is_whole: bool) -> Metadata {
    // Moved, not copied: there may be thousands, and the field is not read again.
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
    // A model would read text that the user who chose the skill has never seen.
    if let Cow::Owned(visible) = text::without_invisible(&description) {
        description = visible;
    }
    if description.len() > limits::DESCRIPTION_KEPT_BYTES {
        let cut = text::truncate_words(&description, limits::DESCRIPTION_KEPT_BYTES);
        description = cut.into_owned();
    }
    Metadata { frontmatter: matter, description, is_utf8: is_utf8(document, is_whole) }
}
