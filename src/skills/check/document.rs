//! Checks of the document as a file and as text: its name, encoding, syntax and length.

use std::path::PathBuf;

use super::{DocumentText, Findings, remedy};
use crate::limits;
use crate::skills::frontmatter::{Diagnostic, Severity};
use crate::skills::yaml;
use crate::skills::{Problem, Skill};
use crate::text;
use crate::world::confined::{self, EntryKind, OpenError};

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
        if let Err(error @ OpenError::NotAFile(_)) = skill.root.file(DOCUMENT_NAME) {
            report_unreadable(DOCUMENT_NAME, &error, findings);
            return None;
        }
        let fix = format!("add a {DOCUMENT_NAME} to make it a skill");
        let message = format!("the folder has no {DOCUMENT_NAME}");
        findings.push("no-document", PathBuf::new(), None, message, Some(fix));
        return None;
    };
    if first != DOCUMENT_NAME {
        let message =
            format!("the document is named {first}; most clients only see {DOCUMENT_NAME}");
        let fix = format!("rename it to {DOCUMENT_NAME}");
        findings.push("document-case", first.into(), None, message, Some(fix));
    }
    for (other, _) in names.iter().filter(|(name, _)| name != first) {
        let message = format!("{first} is read, this file is ignored");
        let fix = "remove one of them".to_owned();
        findings.push("ambiguous-document", other.into(), None, message, Some(fix));
    }
    let read =
        skill.root.file(first).and_then(|file| confined::read_whole(&file, limits::DOCUMENT_BYTES));
    match read {
        Ok(piece) if piece.has_more => {
            let message = "it is larger than 1 MiB and is not read".to_owned();
            let fix = Some("move parts of it into other files".to_owned());
            findings.push("large-document", first.into(), None, message, fix);
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
            report_unreadable(first, &error, findings);
            None
        }
    }
}

fn report_unreadable(file_name: &str, error: &OpenError, findings: &mut Findings) {
    let message = format!("it cannot be read: {}", error.user_message());
    let fix = error.hint().map(str::to_owned);
    findings.push("unreadable-document", file_name.into(), None, message, fix);
}

/// Decodes the text; reports the first line that is not UTF-8 and replaces invalid bytes.
fn decode_utf8(file_name: &str, bytes: Vec<u8>, findings: &mut Findings) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.split(|&byte| byte == b'\n').count();
        let message =
            "bytes that are not UTF-8: clients refuse the file or show replacement characters";
        let fix = "save the file as UTF-8".to_owned();
        findings.add("not-utf8", file_name, line, message, fix);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// Reports the problems of the text, and the diagnostics of the frontmatter's reader.
pub(super) fn check(document: &DocumentText, findings: &mut Findings) {
    if document.text.starts_with('\u{feff}') {
        let message = "a byte order mark: many clients do not see the frontmatter after it";
        let fix = "save the file as UTF-8 without a byte order mark".to_owned();
        findings.add("byte-order-mark", document.file_name, 1, message, fix);
    }
    for finding in &document.frontmatter.diagnostics {
        report_diagnostic(document, finding, findings);
    }
    let source = yaml::normalize(document.source());
    check_strictly(document, &source, findings);
    // A control character is an error; the reader only warns about it.
    if let Some((_, c)) = yaml::find_odd_character(&source)
        && c.is_control()
        && c != '\u{85}'
    {
        let is_odd = |problem: &Problem| problem.rule == "odd-character";
        if let Some(problem) = findings.problems.iter_mut().find(|p| is_odd(p)) {
            problem.rule = "control-character";
            problem.severity = Severity::Error;
        }
    }
    check_length(document, findings);
    check_invisible_characters(document, findings);
    if document.body().trim().is_empty() {
        let message = "there is no text below the frontmatter: a model that loads the skill gets no \
                       instructions";
        let fix = "write what to do, step by step".to_owned();
        findings.add("empty-body", document.file_name, document.body_line(), message, fix);
    }
}

/// Reports what a strict reader refuses if the tolerant one reported no problem of syntax.
fn check_strictly(document: &DocumentText, source: &str, findings: &mut Findings) {
    const NOT_SYNTAX: [&str; 9] = [
        "missing-name",
        "missing-description",
        "field-type",
        "duplicate-key",
        "odd-character",
        "late-frontmatter",
        "fenced-frontmatter",
        "unclosed-frontmatter",
        "not-utf8",
    ];
    let is_syntax = |finding: &Diagnostic| !NOT_SYNTAX.contains(&finding.rule);
    if document.frontmatter.diagnostics.iter().any(is_syntax) {
        return;
    }
    if let Err(error) = yaml::parse(source) {
        let finding = Diagnostic {
            line: document.source_line() + error.line - 1,
            severity: Severity::Error,
            rule: error.rule,
            message: error.message,
        };
        push_diagnostic(document, finding, findings);
    }
}

fn push_diagnostic(document: &DocumentText, finding: Diagnostic, findings: &mut Findings) {
    let specific_fix = remedy::find_remedy(document, &finding);
    let problem = Problem::from_diagnostic(document.file_name, finding);
    let (message, fix) = (problem.message, specific_fix.or(problem.fix));
    findings.push(problem.rule, problem.file, problem.line, message, fix);
}

/// Adds a diagnostic of the tolerant reader, with the severity of its rule: the reader only
/// warns about problems that can make other clients lose the skill.
fn report_diagnostic(document: &DocumentText, finding: &Diagnostic, findings: &mut Findings) {
    let is_wrong_type = finding.rule == "missing-name"
        && document
            .frontmatter
            .fields
            .get("name")
            .is_some_and(|name| !name.is_null() && !name.is_string());
    if is_wrong_type || finding.rule == "not-utf8" {
        // Reported as `field-type`, or by `decode_utf8` with the right line.
        return;
    }
    let is_tools = finding.message.contains("'allowed-tools'");
    if finding.rule == "field-type" && is_tools {
        // Reported as `allowed-tools-type`.
        return;
    }
    push_diagnostic(document, finding.clone(), findings);
}

/// Reports characters that a model reads and users do not see, one per line.
fn check_invisible_characters(document: &DocumentText, findings: &mut Findings) {
    // The byte order mark has its own rule.
    let text = document.text.trim_start_matches('\u{feff}');
    for (line, text) in (1..).zip(text.split('\n')) {
        let is_reported =
            |problem: &Problem| problem.rule == "odd-character" && problem.line == Some(line);
        let Some((_, c)) = text::find_hidden(text).first().copied() else {
            continue;
        };
        if findings.problems.iter().any(is_reported) {
            continue;
        }
        let message = format!(
            "an invisible character, U+{:04X}: users do not see it, but the model reads it",
            u32::from(c)
        );
        let fix = "remove it, or write what it stands for".to_owned();
        findings.add("invisible-character", document.file_name, line, message, fix);
    }
}

fn check_length(document: &DocumentText, findings: &mut Findings) {
    let body = document.body();
    let lines = body.lines().count();
    if lines <= limits::LONG_DOCUMENT_LINES && body.len() <= limits::LONG_DOCUMENT_BYTES {
        return;
    }
    let message = format!(
        "the document has {} and {} KB, and all of it goes into the context; at most {} lines \
         and {} KB are advised",
        text::counted(lines, "line"),
        body.len().div_ceil(1000),
        limits::LONG_DOCUMENT_LINES,
        limits::LONG_DOCUMENT_BYTES / 1000
    );
    let fix = "move what is not always needed into files under references/".to_owned();
    findings.push("long-document", document.file_name.into(), None, message, Some(fix));
}

/// A name or value shortened to one line, for messages.
pub(super) fn display_value(value: &str) -> String {
    text::one_line(value, limits::SUMMARY_CHARS)
}
