//! What is wrong with a skill, in one shape for everybody who tells it.

use std::fmt;
use std::path::PathBuf;

use crate::skills::frontmatter::Diagnostic;
pub use crate::skills::yaml::Severity;

/// One thing that is wrong with a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Relative to the skill's folder; empty for the folder itself.
    pub file: PathBuf,
    /// Counted from 1; `None` where it belongs to no line.
    pub line: Option<usize>,
    /// A stable name for this kind of problem, in kebab case.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, for people.
    pub message: String,
    /// What to do about it, where that can be said in a sentence or a command.
    pub fix: Option<String>,
}

impl Problem {
    /// What was found in the frontmatter of a document.
    pub fn of_document(file_name: &str, finding: Diagnostic) -> Problem {
        Problem {
            file: PathBuf::from(file_name),
            line: Some(finding.line),
            rule: finding.rule,
            severity: finding.severity,
            fix: remedy(finding.rule).map(str::to_string),
            message: finding.message,
        }
    }

    /// In one line, with what to do about it.
    pub fn with_fix(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{self}: {fix}"),
            None => self.to_string(),
        }
    }
}

/// What to do about what the reader of frontmatters has found.
pub(super) fn remedy(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "no-frontmatter" => "begin the document with `---`, `name: …`, `description: …`, `---`",
        "late-frontmatter" => "remove the empty lines",
        "fenced-frontmatter" => "remove the lines of ``` at the start and at the end",
        "unclosed-frontmatter" => "put a line of `---` behind the last field",
        "unquoted-colon" | "reserved-character" | "ambiguous-value" | "text-after-value"
        | "field-type" => "put the value in double quotes",
        "anchor-alias-tag" => {
            "write out what an anchor or a tag stands for, or put mere text in double quotes"
        }
        "bad-flow" => {
            "part the items by commas and close every bracket, or put mere text in double quotes"
        }
        "unclosed-quote" => "close the quote",
        "unclosed-bracket" => "close the bracket, or put mere text in double quotes",
        "bad-escape" => "double the backslash, or use single quotes",
        "tab" => "use spaces",
        "indented-field" => "take the white space in front of it away",
        "field-in-text" => {
            "begin the line at the first column, or put the whole value in double quotes"
        }
        "indentation" => "indent keys that belong together with the same number of spaces",
        "not-a-field" => "write it as `key: value`, with a space behind the colon",
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
