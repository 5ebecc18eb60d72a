//! The document as a file and as text: found, read, and of a size to be used.

use std::path::PathBuf;

use super::{DocumentText, Findings, remedy};
use crate::limits;
use crate::skills::frontmatter::{Diagnostic, Severity};
use crate::skills::yaml;
use crate::skills::{Problem, Skill};
use crate::text;
use crate::world::confined::{self, EntryKind, OpenError};

/// The name that every client looks for.
pub(super) const USUAL: &str = "SKILL.md";

/// The names in the skill's folder that are the document's in some letter case,
/// as they are on the disk, and whether each is a link. None: the folder cannot
/// be listed, and nothing can be said.
pub(super) fn names(skill: &Skill) -> Option<Vec<(String, bool)>> {
    let Ok(entries) = skill.root.entries(limits::FOLDER_ENTRIES) else {
        // It may be entered all the same.
        let is_there = !matches!(skill.root.file(USUAL), Err(OpenError::NotFound));
        return is_there.then(|| vec![(USUAL.to_owned(), false)]);
    };
    let files = entries.list.into_iter();
    let files = files.filter(|entry| entry.kind != EntryKind::Folder);
    let names = files.filter_map(|entry| {
        let name = entry.name.into_string().ok()?;
        Some((name, entry.kind == EntryKind::Link))
    });
    Some(names.filter(|(name, _)| name.eq_ignore_ascii_case(USUAL)).collect())
}

/// Whether the document is a link, which `--fix` does not write through.
pub(super) fn is_link(skill: &Skill, file_name: &str) -> bool {
    let names = names(skill).unwrap_or_default();
    names.contains(&(file_name.to_owned(), true))
}

/// Finds and reads the document; what stands in the way is reported.
pub(super) fn read(skill: &Skill, findings: &mut Findings) -> Option<(String, String)> {
    let names = names(skill)?;
    let usual = names.iter().find(|(name, _)| name == USUAL);
    let Some((first, is_link)) = usual.or(names.first()) else {
        if let Err(refusal @ OpenError::NotAFile(_)) = skill.root.file(USUAL) {
            unreadable(USUAL, &refusal, findings);
            return None;
        }
        let fix = format!("write its {USUAL}, if it is to be a skill");
        let message = format!("the folder has no {USUAL}");
        findings.push("no-document", PathBuf::new(), None, message, Some(fix));
        return None;
    };
    if first != USUAL {
        let message = format!("the document is named {first}; most clients only see {USUAL}");
        let fix = format!("rename it to {USUAL}");
        findings.push("document-case", first.into(), None, message, Some(fix));
    }
    for (other, _) in names.iter().filter(|(name, _)| name != first) {
        let message = format!("{first} is read, and this file is not");
        let fix = "remove one of them".to_owned();
        findings.push("ambiguous-document", other.into(), None, message, Some(fix));
    }
    let read =
        skill.root.file(first).and_then(|file| confined::read_whole(&file, limits::DOCUMENT_BYTES));
    match read {
        Ok(piece) if piece.more => {
            let message = "it is larger than 1 MiB, and is not read".to_owned();
            let fix = Some("move parts of it into files of their own".to_owned());
            findings.push("large-document", first.into(), None, message, fix);
            None
        }
        Ok(piece) => Some((first.clone(), decoded(first, piece.bytes, findings))),
        // Told as a link, with what to do about it.
        Err(
            OpenError::Outside
            | OpenError::NotFound
            | OpenError::TooManyLinks
            | OpenError::NotAFolder,
        ) if *is_link => None,
        Err(refusal) => {
            unreadable(first, &refusal, findings);
            None
        }
    }
}

fn unreadable(file_name: &str, refusal: &OpenError, findings: &mut Findings) {
    let message = format!("it cannot be read: {}", refusal.for_people());
    let fix = refusal.remedy().map(str::to_owned);
    findings.push("unreadable-document", file_name.into(), None, message, fix);
}

/// The text; what is not UTF-8 is reported at its first line and replaced.
fn decoded(file_name: &str, bytes: Vec<u8>, findings: &mut Findings) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.split(|&byte| byte == b'\n').count();
        let message = "bytes that are not UTF-8; clients refuse the file, or show marks instead";
        let fix = "save the file as UTF-8".to_owned();
        findings.add("not-utf8", file_name, line, message, fix);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// Reports what is wrong with the text, and all that its reader had to say.
pub(super) fn check(page: &DocumentText, findings: &mut Findings) {
    if page.text.starts_with('\u{feff}') {
        let message = "a byte order mark, behind which many clients see no frontmatter";
        let fix = "save the file as UTF-8 without a byte order mark".to_owned();
        findings.add("byte-order-mark", page.file_name, 1, message, fix);
    }
    for finding in &page.front.diagnostics {
        report(page, finding, findings);
    }
    let source = yaml::normalize(page.source());
    strictly(page, &source, findings);
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
    length(page, findings);
    invisible(page, findings);
    if page.body().trim().is_empty() {
        let message = "nothing stands below the frontmatter: a model that loads the skill learns \
                       no more than it knew";
        let fix = "write what to do, step by step".to_owned();
        findings.add("empty-body", page.file_name, page.body_line(), message, fix);
    }
}

/// What stops a strict reader, should the tolerant one have passed over it.
fn strictly(page: &DocumentText, source: &str, findings: &mut Findings) {
    const HARMLESS: [&str; 9] = [
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
    let told = |finding: &Diagnostic| !HARMLESS.contains(&finding.rule);
    if page.front.diagnostics.iter().any(told) {
        return;
    }
    if let Err(fault) = yaml::parse(source) {
        let finding = Diagnostic {
            line: page.source_line() + fault.line - 1,
            severity: Severity::Error,
            rule: fault.rule,
            message: fault.message,
        };
        tell(page, finding, findings);
    }
}

fn tell(page: &DocumentText, finding: Diagnostic, findings: &mut Findings) {
    let own = remedy::of(page, &finding);
    let problem = Problem::of_document(page.file_name, finding);
    let (message, fix) = (problem.message, own.or(problem.fix));
    findings.push(problem.rule, problem.file, problem.line, message, fix);
}

/// What the reader found. It reads on wherever it can; other clients do not, so
/// what it calls a warning is an error here, if the skill is lost elsewhere.
fn report(page: &DocumentText, finding: &Diagnostic, findings: &mut Findings) {
    let is_twin = finding.rule == "missing-name"
        && page.front.fields.get("name").is_some_and(|name| !name.is_null() && !name.is_string());
    if is_twin || finding.rule == "not-utf8" {
        // Told already, and better: as `field-type`, or with the right line.
        return;
    }
    let is_tools = finding.message.contains("'allowed-tools'");
    if finding.rule == "field-type" && is_tools {
        return;
    }
    tell(page, finding.clone(), findings);
}

/// Characters that a model reads and nobody sees, once a line.
fn invisible(page: &DocumentText, findings: &mut Findings) {
    // The mark in front of the text has a rule of its own.
    let text = page.text.trim_start_matches('\u{feff}');
    for (line, text) in (1..).zip(text.split('\n')) {
        let is_told =
            |problem: &Problem| problem.rule == "odd-character" && problem.line == Some(line);
        let Some((_, c)) = text::hidden(text).first().copied() else {
            continue;
        };
        if findings.problems.iter().any(is_told) {
            continue;
        }
        let message = format!(
            "an invisible character, U+{:04X}: people do not see it, and a model reads it",
            u32::from(c)
        );
        let fix = "remove it, or write what it stands for".to_owned();
        findings.add("invisible-character", page.file_name, line, message, fix);
    }
}

fn length(page: &DocumentText, findings: &mut Findings) {
    let body = page.body();
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
    findings.push("long-document", page.file_name.into(), None, message, Some(fix));
}

/// A name or value on one line, as messages show it.
pub(super) fn shown(value: &str) -> String {
    text::one_line(value, limits::SUMMARY_CHARS)
}
