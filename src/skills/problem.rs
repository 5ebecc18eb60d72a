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
            fix: fix_of(finding.rule).map(str::to_string),
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

/// What helps against what is wrong with a frontmatter.
fn fix_of(rule: &str) -> Option<&'static str> {
    Some(match rule {
        "no-frontmatter" => {
            "begin the document with the four lines `---`, `name: …`, `description: …`, `---`"
        }
        "missing-name" => "add a line `name: …` with the folder's name",
        "missing-description" => {
            "add a line `description: …` that says what the skill does and when to use it"
        }
        "unclosed-frontmatter" => "end it with a line of `---`",
        "late-frontmatter" => "remove the lines in front of the first `---`",
        "unclosed-bracket" | "bad-flow" | "reserved-character" | "unquoted-colon" => {
            "put the whole value into double quotes, or correct it"
        }
        "unclosed-quote" => "close the quotes where the value ends",
        "text-after-value" => "put the whole value into one pair of quotes",
        "bad-escape" => "double the backslash, or use single quotes",
        "not-a-field" => "write it as `key: value`, or indent it below its key",
        "indentation" => "indent with blanks, the same number for keys that belong together",
        "tab" => "indent with blanks, not with tabs",
        "duplicate-key" => "keep one of them",
        "field-type" => "put the value into quotes",
        "anchor-alias-tag" => "put the value into quotes, or write it out",
        "not-utf8" => "save the document as UTF-8",
        "odd-character" => "remove the character",
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
