//! The error type for loading a skill, from its name to the text that a model reads.

use std::error::Error;
use std::fmt;

/// Why a skill cannot be loaded. Each variant holds a sentence that names the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillError {
    /// There is no skill of that name, or its folder cannot be opened.
    NotFound(String),
    /// Its document is missing, or cannot be read as one.
    Document(String),
    /// It cannot be invoked by this caller or with these arguments.
    Invocation(String),
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (SkillError::NotFound(message)
        | SkillError::Document(message)
        | SkillError::Invocation(message)) = self;
        f.write_str(message)
    }
}

impl Error for SkillError {}

impl From<SkillError> for String {
    fn from(error: SkillError) -> String {
        error.to_string()
    }
}
