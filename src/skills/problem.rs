//! A problem of a skill, as all commands report it.

use std::fmt;
use std::path::PathBuf;

use crate::frontmatter::Diagnostic;
use crate::{Rule, Severity};
use base::text::counted;

/// A problem of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Relative to the skill's folder; empty for the folder itself.
    pub file: PathBuf,
    /// Counted from 1; `None` if it concerns no single line.
    pub line: Option<usize>,
    /// The rule that is broken.
    pub rule: Rule,
    /// How bad it is.
    pub severity: Severity,
    /// A message for the user.
    pub message: String,
    /// The remedy, if it fits a sentence or a command.
    pub fix: Option<String>,
}

impl Problem {
    /// A problem of a file, with the severity and the fix of its rule.
    pub fn new(rule: Rule, file: impl Into<PathBuf>, message: impl Into<String>) -> Problem {
        Problem {
            file: file.into(),
            line: None,
            rule,
            severity: rule.severity(),
            message: message.into(),
            fix: rule.fix().map(str::to_owned),
        }
    }

    /// Adds the line.
    pub(crate) fn at_line(self, line: usize) -> Problem {
        Problem { line: Some(line), ..self }
    }

    /// Replaces the fix of the rule by a more specific one.
    pub(crate) fn with_fix(self, fix: impl Into<String>) -> Problem {
        Problem { fix: Some(fix.into()), ..self }
    }

    /// Makes it a note if it is harmless there.
    pub(crate) fn into_note_if(self, is_harmless: bool) -> Problem {
        let severity = if is_harmless { Severity::Note } else { self.severity };
        Problem { severity, ..self }
    }

    /// The problem for a diagnostic of a document's frontmatter.
    pub(crate) fn from_diagnostic(file_name: &str, found: Diagnostic) -> Problem {
        Problem::new(found.rule, file_name, found.message).at_line(found.line)
    }

    /// The problem and its remedy on one line.
    pub fn with_remedy(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{self}: {fix}"),
            None => self.to_string(),
        }
    }
}

/// The number of problems of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProblemCounts {
    /// Those of [`Severity::Error`].
    pub errors: usize,
    /// Those of [`Severity::Warning`].
    pub warnings: usize,
    /// Those of [`Severity::Note`].
    pub notes: usize,
}

impl ProblemCounts {
    /// Counts problems.
    pub fn of<'p>(problems: impl IntoIterator<Item = &'p Problem>) -> ProblemCounts {
        let mut counts = ProblemCounts::default();
        for problem in problems {
            *match problem.severity {
                Severity::Error => &mut counts.errors,
                Severity::Warning => &mut counts.warnings,
                Severity::Note => &mut counts.notes,
            } += 1;
        }
        counts
    }

    /// The severity of the worst problem.
    pub fn worst(self) -> Option<Severity> {
        match self {
            ProblemCounts { errors: 1.., .. } => Some(Severity::Error),
            ProblemCounts { warnings: 1.., .. } => Some(Severity::Warning),
            ProblemCounts { notes: 1.., .. } => Some(Severity::Note),
            _ => None,
        }
    }
}

impl fmt::Display for ProblemCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (errors, warnings) = (counted(self.errors, "error"), counted(self.warnings, "warning"));
        write!(f, "{errors}, {warnings}")?;
        match self.notes {
            0 => Ok(()),
            notes => write!(f, ", {}", counted(notes, "note")),
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
