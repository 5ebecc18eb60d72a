//! Why a skill cannot be had: one type for everything between its name and
//! the text that a model reads.

use std::error::Error;
use std::fmt;

/// Why a skill cannot be had. Each holds a sentence that says what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillError {
    /// There is no skill of that name, or its folder cannot be opened.
    NotFound(String),
    /// Its document is missing, or cannot be read as one.
    Document(String),
    /// It cannot be invoked so: by this party, with these arguments.
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
    fn from(fault: SkillError) -> String {
        fault.to_string()
    }
}
