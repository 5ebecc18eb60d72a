//! A problem of a skill, as all commands report it.

use std::fmt;
use std::path::PathBuf;

use crate::skills::frontmatter::Diagnostic;
pub use crate::skills::yaml::Severity;

/// A problem of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Relative to the skill's folder; empty for the folder itself.
    pub file: PathBuf,
    /// Counted from 1; `None` if it concerns no single line.
    pub line: Option<usize>,
    /// A stable name for this kind of problem, in kebab case.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, for the user.
    pub message: String,
    /// The remedy, if it fits a sentence or a command.
    pub fix: Option<String>,
}

impl Problem {
    /// The problem for a diagnostic of a document's frontmatter.
    pub fn from_diagnostic(file_name: &str, finding: Diagnostic) -> Problem {
        Problem {
            file: PathBuf::from(file_name),
            line: Some(finding.line),
            rule: finding.rule,
            severity: finding.severity,
            fix: fix_for_rule(finding.rule).map(str::to_string),
            message: finding.message,
        }
    }

    /// The problem and its remedy on one line.
    pub fn with_fix(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{self}: {fix}"),
            None => self.to_string(),
        }
    }
}

/// The remedy for a rule of the frontmatter's reader.
pub(super) fn fix_for_rule(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "no-frontmatter" => "start the document with `---`, `name: …`, `description: …`, `---`",
        "late-frontmatter" => "remove the empty lines",
        "fenced-frontmatter" => "remove the lines of ``` at the start and at the end",
        "unclosed-frontmatter" => "add a line of `---` after the last field",
        "unquoted-colon" | "reserved-character" | "ambiguous-value" | "text-after-value"
        | "field-type" => "put the value in double quotes",
        "anchor-alias-tag" => {
            "write out the value of an anchor or tag, or put text in double quotes"
        }
        "bad-flow" => {
            "separate the items by commas and close every bracket, or put text in double quotes"
        }
        "unclosed-quote" => "close the quote",
        "unclosed-bracket" => "close the bracket, or put text in double quotes",
        "bad-escape" => "double the backslash, or use single quotes",
        "tab" => "use spaces",
        "indented-field" => "remove the white space before it",
        "field-in-text" => {
            "start the line at the first column, or put the whole value in double quotes"
        }
        "indentation" => "indent keys that belong together with the same number of spaces",
        "not-a-field" => "write it as `key: value`, with a space after the colon",
        "duplicate-key" => "keep one of them",
        "missing-name" => "add `name:` with the folder's name",
        "missing-description" => "add `description:` with what the skill does and when to use it",
        "not-utf8" => "save the document as UTF-8",
        _ => return None,
    })
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.as_os_str().is_empty() {
            write!(f, "{}", self.file.display())?;
            if let Some(line) = self.line {
                write!(f, " line {line}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}
