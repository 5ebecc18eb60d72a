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
            message: finding.message,
            fix: None,
        }
    }
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
