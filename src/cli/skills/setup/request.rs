//! The request for a setup, validated before anything changes.

use std::fs;
use std::path::Path;

use crate::cli::skills::setup::progress::{ProgressSink, SetupProgress};
use ::skills::needs::InferredPackage;
use ::skills::packages::is_archive;
use ::skills::requirements::is_line_end;
use ::skills::{ScriptSettings, Skill};
use base::error::{Error, ErrorKind};
use host::cancellation::{Cancellation, StopReason};
use host::lock::FolderLock;

/// A request for a setup.
pub(super) struct SetupRequest<'s> {
    /// The skill.
    pub skill: &'s Skill,
    /// How its scripts run.
    pub scripts: &'s ScriptSettings,
    /// Signals and the deadline.
    pub cancellation: &'s Cancellation,
    /// Requirements that the user gave.
    pub extra: &'s [String],
    /// The packages that documents install.
    pub inferred: &'s [InferredPackage],
    /// Asks the user whether to install packages that the skill does not declare.
    pub agree: &'s dyn Fn(&[&InferredPackage]) -> Result<bool, Error>,
}

/// Returns the requested requirements, validated.
pub(super) fn requested_packages(request: &SetupRequest<'_>) -> Result<Vec<String>, Error> {
    let mut extra: Vec<String> = Vec::new();
    for requirement in request.extra {
        if let Err(cause) = validate(requirement) {
            let text = format!("failed to install `{}`: {cause}", requirement.escape_debug());
            return Err(Error::new(ErrorKind::Usage, text)
                .with_hint("name packages, as in: lxml \"openpyxl>=3.1\""));
        }
        let resolved = resolve_path(requirement.trim(), &request.scripts.user_folder);
        if !extra.contains(&resolved) {
            extra.push(resolved);
        }
    }
    Ok(extra)
}

/// Refuses what an installer would not read as one requirement: an option could do anything.
pub(super) fn validate(requirement: &str) -> Result<(), &'static str> {
    match requirement.trim_start().chars().next() {
        None => Err("it is empty"),
        Some('-') => Err("it is an option"),
        Some('#') => Err("it is a comment"),
        _ if requirement.chars().any(|c| (c.is_control() && c != '\t') || is_line_end(c)) => {
            Err("it contains a control character")
        }
        _ => Ok(()),
    }
}

/// Makes the path of a requirement that names a file of the user absolute, for use in the skill's
/// folder; returns any other unchanged.
fn resolve_path(requirement: &str, user_folder: &Path) -> String {
    // Extras and a marker may follow the name of the file.
    let end = requirement.find(['[', ';']).unwrap_or(requirement.len());
    let (file, rest) = requirement.split_at(requirement[..end].trim_end().len());
    let is_address = requirement.contains("://") || requirement.contains('@');
    if is_address || !(file.contains('/') || is_archive(file)) {
        return requirement.to_string();
    }
    match fs::canonicalize(user_folder.join(file)) {
        Ok(file) => format!("{}{rest}", file.display()),
        Err(_) => requirement.to_string(),
    }
}

/// Locks the skill against other setups, after waiting for a running one.
pub(super) fn lock_skill(
    request: &SetupRequest<'_>,
    on_progress: &mut ProgressSink<'_>,
) -> Result<FolderLock, Error> {
    let folder = &request.skill.path;
    let lock = FolderLock::acquire(folder, request.cancellation, &mut || {
        on_progress(SetupProgress::Note("waiting for another setup of this skill"));
    });
    let lock = lock.map_err(|error| match StopReason::from_io_error(&error) {
        Some(stop) => stop.into(),
        None => {
            Error::new(ErrorKind::Io, format!("failed to lock `{}`: {error}", folder.display()))
        }
    })?;
    if !lock.is_held() {
        on_progress(SetupProgress::Warning(
            "cannot lock the skill's folder: do not run another setup of it at the same time",
        ));
    }
    Ok(lock)
}
