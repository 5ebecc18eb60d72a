//! Checks of the document as a file and as text: its name, encoding, syntax and length.

use super::{DocumentText, Findings};
use crate::{Problem, Rule, Severity, Skill};
use base::limits;
use base::text;
use host::confined::{self, EntryKind, OpenError};

/// The document's name in every client.
pub(super) const DOCUMENT_NAME: &str = "SKILL.md";

/// Returns the entries of the skill's folder that are named SKILL.md in any letter case, and
/// whether each is a link; `None` if the folder can be neither listed nor entered.
fn document_names(skill: &Skill) -> Option<Vec<(String, bool)>> {
    let Ok(entries) = skill.root.entries(limits::FOLDER_ENTRIES) else {
        // A folder that cannot be listed may still be entered.
        let is_there = !matches!(skill.root.file(DOCUMENT_NAME), Err(OpenError::NotFound));
        return is_there.then(|| vec![(DOCUMENT_NAME.to_owned(), false)]);
    };
    let files = entries.entries.into_iter();
    let files = files.filter(|entry| entry.kind != EntryKind::Folder);
    let names = files.filter_map(|entry| {
        let name = entry.name.into_string().ok()?;
        Some((name, entry.kind == EntryKind::Link))
    });
    Some(names.filter(|(name, _)| name.eq_ignore_ascii_case(DOCUMENT_NAME)).collect())
}

/// Finds the document and returns its file name and text, or reports why it cannot be read.
pub(super) fn read(skill: &Skill, findings: &mut Findings) -> Option<(String, String)> {
    let names = document_names(skill)?;
    let usual = names.iter().find(|(name, _)| name == DOCUMENT_NAME);
    let Some((first, is_link)) = usual.or(names.first()) else {
        findings.add(match skill.root.file(DOCUMENT_NAME) {
            Err(error @ OpenError::NotAFile(_)) => unreadable(DOCUMENT_NAME, &error),
            _ => Problem::new(Rule::NoDocument, "", format!("the folder has no {DOCUMENT_NAME}")),
        });
        return None;
    };
    if first != DOCUMENT_NAME {
        let message =
            format!("the document is named {first}; most clients only see {DOCUMENT_NAME}");
        findings.add(Problem::new(Rule::DocumentCase, first, message));
    }
    for (other, _) in names.iter().filter(|(name, _)| name != first) {
        let message = format!("{first} is read, this file is ignored");
        let problem = Problem::new(Rule::DocumentCase, other, message);
        findings.add(Problem { severity: Severity::Warning, ..problem });
    }
    let read =
        skill.root.file(first).and_then(|file| confined::read_whole(&file, limits::DOCUMENT_BYTES));
    match read {
        Ok(piece) if piece.has_more => {
            let message = "it is larger than 1 MiB and is not read";
            let problem = Problem::new(Rule::UnreadableDocument, first, message);
            findings.add(problem.with_fix("move parts of it into other files"));
            None
        }
        Ok(piece) => Some((first.clone(), decode_utf8(first, piece.bytes, findings))),
        // `files.rs` reports the broken link, with its fix.
        Err(
            OpenError::Outside
            | OpenError::NotFound
            | OpenError::TooManyLinks
            | OpenError::NotAFolder,
        ) if *is_link => None,
        Err(error) => {
            findings.add(unreadable(first, &error));
            None
        }
    }
}

fn unreadable(file_name: &str, error: &OpenError) -> Problem {
    let message = format!("it cannot be read: {}", error.user_message());
    let problem = Problem::new(Rule::UnreadableDocument, file_name, message);
    Problem { fix: error.hint().map(str::to_owned), ..problem }
}

/// Decodes the text; reports the first line that is not UTF-8 and replaces invalid bytes.
fn decode_utf8(file_name: &str, bytes: Vec<u8>, findings: &mut Findings) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.split(|&byte| byte == b'\n').count();
        let message =
            "bytes that are not UTF-8: clients refuse the file or show replacement characters";
        findings.add(Problem::new(Rule::NotUtf8, file_name, message).at_line(line));
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// Reports the problems of the text, and the diagnostics of the frontmatter's reader.
pub(super) fn check(document: &DocumentText, findings: &mut Findings) {
    // Without frontmatter that is the problem, and it is reported below.
    if document.text.starts_with('\u{feff}') && !document.frontmatter.source.is_empty() {
        let message = "a byte order mark: many clients do not see the frontmatter after it";
        let problem = document.problem(Rule::LateFrontmatter, 1, message);
        findings.add(problem.with_fix("save the file as UTF-8 without a byte order mark"));
    }
    for found in &document.frontmatter.diagnostics {
        findings.add(Problem::from_diagnostic(document.file_name, found.clone()));
    }
    check_length(document, findings);
    check_invisible_characters(document, findings);
}

/// Reports characters that a model reads and users do not see, one per line.
fn check_invisible_characters(document: &DocumentText, findings: &mut Findings) {
    // A byte order mark has its own problem.
    let text = document.text.trim_start_matches('\u{feff}');
    for (line, text) in (1..).zip(text.split('\n')) {
        let Some((_, c)) = text::find_hidden(text).first().copied() else {
            continue;
        };
        let message = format!(
            "an invisible character, U+{:04X}: users do not see it, but the model reads it",
            u32::from(c)
        );
        findings.add(document.problem(Rule::InvisibleCharacter, line, message));
    }
}

fn check_length(document: &DocumentText, findings: &mut Findings) {
    let (front, length) = (&document.frontmatter, document.body().len());
    // Fields that are not closed may have swallowed the text; that is reported already.
    if document.body().trim().is_empty() && !front.source.is_empty() && !front.is_unclosed {
        let message = "it has no text after its frontmatter";
        findings.add(Problem::new(Rule::EmptyDocument, document.file_name, message));
    }
    if length <= 2 * limits::ADVISED_DOCUMENT_BYTES {
        return;
    }
    let message = format!(
        "the document has {} KB, and all of it goes into the context; the specification advises \
         5,000 tokens, which are some {} KB",
        length.div_ceil(1000),
        limits::ADVISED_DOCUMENT_BYTES / 1000
    );
    findings.add(Problem::new(Rule::LongDocument, document.file_name, message));
}
