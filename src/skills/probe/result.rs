//! The probe's result for one skill.

use std::path::{Path, PathBuf};

use crate::packages::{normalized_name, package_name};
use crate::requirements::DeclaredPackage;
use crate::{Problem, Rule};

/// The probe's result for one skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeResult {
    /// Imports of modules that are neither in the standard library nor the skill's own; each
    /// module once per file.
    pub imports: Vec<ProbedImport>,
    /// The requirements that it declares in requirements files, `pyproject.toml` or
    /// `# /// script` blocks of its scripts.
    pub declared: Vec<DeclaredPackage>,
    /// Syntax errors, other problems, and files that could not be checked.
    pub problems: Vec<Problem>,
}

/// A module that a file imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedImport {
    /// The first word of its name, or the part that the table of packages lists.
    pub module: String,
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// The line of the first import that is needed, or else of the first import.
    pub line: usize,
    /// The file works without it, needs it only for some functions, or is a sample (a
    /// template, an example, a test) and not a script of the skill.
    pub is_optional: bool,
    /// Whether the interpreter does not find it.
    pub is_missing: bool,
    /// The package that provides it; `None`: the module is not well known, and its package
    /// must not be guessed.
    pub package: Option<&'static str>,
}

/// Whether the package of an import is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declaration {
    Yes,
    /// Some requirement does not show which package it is.
    Unknown,
    No,
}

impl ProbeResult {
    /// Whether the skill declares the package of an import.
    pub(crate) fn declaration_of(&self, import: &ProbedImport) -> Declaration {
        let module = normalized_name(&import.module);
        let package = import.package.map(normalized_name);
        let mut names = self.declared.iter().map(|declared| package_name(&declared.requirement));
        let mut is_unknown = false;
        let is_declared = names.any(|name| {
            is_unknown |= name.is_none();
            name.is_some_and(|name| name == module || Some(name) == package)
        });
        match (is_declared, is_unknown) {
            (true, _) => Declaration::Yes,
            (false, true) => Declaration::Unknown,
            (false, false) => Declaration::No,
        }
    }

    pub(super) fn add_problem(
        &mut self,
        file: &Path,
        line: Option<usize>,
        rule: Rule,
        message: String,
    ) {
        self.problems.push(Problem { line, ..Problem::new(rule, file, message) });
    }

    /// Adds the problem that something of the whole skill was not checked.
    pub(super) fn add_unprobed(&mut self, message: String) {
        self.add_problem(Path::new(""), None, Rule::Unprobed, message);
    }
}
