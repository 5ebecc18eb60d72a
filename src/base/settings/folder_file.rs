//! `./.env`, whose author may not be the user: what counts of it.

use std::path::Path;

use super::{EnvFile, FolderRule, SETTINGS, Setting};
use crate::dotenv::{self, Dotenv, DotenvProblem, Variable};
use crate::error::Fault;

/// Whether the user trusts the author of `./.env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderTrust {
    /// The user has accepted the file: it counts as the user's own.
    Accepted,
    /// The file seems to be the user's. It may set an endpoint, but gets nothing of the user's.
    Unknown,
    /// The file may have another author, for this reason: only what restricts the program counts.
    Refused(String),
}

/// The remedy for what `./.env` may not do.
pub const TRUST_FIX: &str = "if .env is yours, run `skills-runner trust`";

impl EnvFile {
    /// Parses `./.env`, and leaves out what it may not set.
    pub fn of_folder(
        bytes: &[u8],
        trust: &FolderTrust,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<EnvFile, DotenvProblem> {
        let contents = match (dotenv::parse_bytes(bytes, environment), trust) {
            // It may be a file of another program.
            (Err(_), FolderTrust::Refused(_)) => Dotenv::default(),
            (contents, _) => contents?,
        };
        let trusted = *trust == FolderTrust::Accepted;
        let mut file = EnvFile {
            path: Path::new(".env").into(),
            trusted,
            contents,
            notices: Vec::new(),
            skipped: Vec::new(),
        };
        file.contents.variables.retain(|variable| {
            let is_allowed =
                row_of(variable).is_none_or(|row| row.folder_rule != FolderRule::UserFilesOnly);
            if !is_allowed {
                let message = format!("{} in ./.env is ignored, accepted or not", variable.name);
                let fix = "set it in the environment or in ~/.config/skills-runner/.env";
                file.notices.push(Fault::new(message, fix));
            }
            is_allowed
        });
        match trust {
            FolderTrust::Accepted => {}
            FolderTrust::Unknown => file.hide_environment(&dotenv::parse_bytes(bytes, &|_| None)?),
            FolderTrust::Refused(reason) => file.restrict(reason),
        }
        Ok(file)
    }

    /// Replaces values that others would get by those without the user's variables.
    fn hide_environment(&mut self, without: &Dotenv) {
        for variable in &mut self.contents.variables {
            let is_disclosed = row_of(variable).is_some_and(Setting::is_disclosed);
            if is_disclosed && variable.uses_environment {
                let message = format!(
                    "{} (.env line {}) gets no variables of the environment",
                    variable.name, variable.line
                );
                self.notices.push(Fault::new(message, TRUST_FIX));
                let other = without.variables.iter().find(|other| other.name == variable.name);
                variable.value = other.and_then(|other| other.value.clone());
            }
        }
    }

    /// Keeps only values that restrict the program.
    fn restrict(&mut self, reason: &str) {
        let variables = &mut self.contents.variables;
        let is_read = |row: &Setting| row.folder_rule != FolderRule::EnvironmentOnly;
        let rows = variables.iter().filter_map(row_of).filter(|row| is_read(row));
        self.skipped = rows.map(|row| row.name).collect();
        variables.retain(|variable| {
            let strict = row_of(variable).and_then(|row| row.folder_rule.strict_value());
            let value = variable.value.as_deref().map(str::trim);
            strict.zip(value).is_some_and(|(strict, value)| value.eq_ignore_ascii_case(strict))
        });
        self.contents.problems.clear();
        self.notices.clear();
        if !self.skipped.is_empty() {
            self.notices.push(Fault::new(format!("skipped .env: {reason}"), TRUST_FIX));
        }
    }
}

/// The setting that a variable sets.
fn row_of(variable: &Variable) -> Option<&'static Setting> {
    SETTINGS.iter().find(|row| row.names().any(|name| name == variable.name))
}
