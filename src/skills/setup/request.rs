//! The request for a setup, validated before anything changes.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use super::progress::{ProgressSink, SetupProgress};
use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::secret::mask_url_logins;
use crate::skills::ScriptSettings;
use crate::skills::Skill;
use crate::skills::needs::InferredPackage;
use crate::skills::packages::{is_archive, package_name};
use crate::skills::requirements::{
    REQUIREMENTS_FILE, is_line_end, listed_requirements, with_added,
};
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::confined::{OpenError, read_whole};
use crate::world::lock::FolderLock;

/// A request for a setup.
pub(crate) struct SetupRequest<'s> {
    /// The skill.
    pub skill: &'s Skill,
    /// How its scripts run.
    pub scripts: &'s ScriptSettings,
    /// Signals and the deadline.
    pub cancellation: &'s Cancellation,
    /// Requirements that the user gave. Once installed they are added to the skill's
    /// `requirements.txt`.
    pub extra: &'s [String],
    /// The packages that install lines of documents name.
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
        let resolved =
            resolve_path(requirement.trim(), &request.scripts.user_folder, &request.skill.path);
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

/// Rewrites a requirement that names a file of the user for use in the skill's folder; returns
/// any other unchanged.
fn resolve_path(requirement: &str, user_folder: &Path, skill: &Path) -> String {
    // Extras and a marker may follow the name of the file.
    let end = requirement.find(['[', ';']).unwrap_or(requirement.len());
    let (file, rest) = requirement.split_at(requirement[..end].trim_end().len());
    let is_address = requirement.contains("://") || requirement.contains('@');
    if is_address || !(file.contains('/') || is_archive(file)) {
        return requirement.to_string();
    }
    let (Ok(file), Ok(skill)) = (fs::canonicalize(user_folder.join(file)), fs::canonicalize(skill))
    else {
        return requirement.to_string();
    };
    match file.strip_prefix(&skill) {
        Ok(inside) => format!("./{}{rest}", inside.display()),
        Err(_) => format!("{}{rest}", file.display()),
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

/// The addition of requested requirements to the skill's requirements file.
pub(super) struct RequirementsEdit {
    /// The text as read; `None`: the file does not exist.
    before: Option<String>,
    after: String,
    /// The requested requirements that no file lists yet.
    pub(super) added: Vec<String>,
}

impl RequirementsEdit {
    /// Reads the file, and checks that it can be written, before anything is installed.
    pub(super) fn prepare(skill: &Skill, extra: &[String]) -> Result<RequirementsEdit, Error> {
        let listed = listed_requirements(&skill.root).into_iter();
        let mut lines: Vec<String> = listed.map(|row| row.requirement).collect();
        let mut added = Vec::new();
        for requirement in extra {
            if !is_listed(&lines, requirement) {
                lines.push(requirement.clone());
                added.push(requirement.clone());
            }
        }
        let mut edit = RequirementsEdit { before: None, after: String::new(), added };
        if edit.added.is_empty() {
            return Ok(edit);
        }
        edit.read(skill).map_err(|cause| {
            let path = skill.path.join(REQUIREMENTS_FILE);
            let text = format!("failed to add to `{}`: {cause}", path.display());
            let lines = edit.added.join("`, `");
            Error::new(ErrorKind::Io, text).with_hint(format!("add to it yourself: `{lines}`"))
        })?;
        Ok(edit)
    }

    fn read(&mut self, skill: &Skill) -> Result<(), String> {
        let describe = |error: OpenError| match error {
            OpenError::Link => "it is a link".to_string(),
            error => error.to_string(),
        };
        match skill.root.check_replaceable(REQUIREMENTS_FILE) {
            Err(OpenError::NotFound) => {}
            Err(error) => return Err(describe(error)),
            Ok(()) => {
                let file = skill.root.file(REQUIREMENTS_FILE);
                let piece = file
                    .and_then(|file| read_whole(&file, limits::SETUP_REQUIREMENTS_BYTES))
                    .map_err(describe)?;
                let text = String::from_utf8(piece.bytes).ok().filter(|_| !piece.has_more);
                self.before = Some(text.ok_or("it is not UTF-8 text, or too large")?);
            }
        }
        let text = self.before.as_deref().unwrap_or_default();
        let after = with_added(text, &self.added);
        self.after = after.ok_or("the new lines would not be read as intended")?;
        Ok(())
    }

    /// Writes the file, atomically if it exists: owner and mode stay.
    pub(super) fn write(&self, skill: &Skill) -> Result<(), Error> {
        if self.added.is_empty() {
            return Ok(());
        }
        let path = skill.path.join(REQUIREMENTS_FILE);
        let written = match &self.before {
            Some(before) => {
                skill.root.replace(REQUIREMENTS_FILE, before.as_bytes(), self.after.as_bytes())
            }
            // Another process may have created one.
            None => File::create_new(&path)
                .and_then(|mut file| file.write_all(self.after.as_bytes()))
                .map_err(OpenError::from),
        };
        written.map_err(|error| {
            Error::new(ErrorKind::Io, format!("failed to write `{}`: {error}", path.display()))
        })
    }

    /// The added lines, without logins.
    pub(super) fn shown(&self) -> impl Iterator<Item = String> {
        self.added.iter().map(|line| mask_url_logins(line).into_owned())
    }
}

/// Whether one of the lines is the requirement, or, for a name without version, any requirement
/// of that name.
fn is_listed(lines: &[String], requirement: &str) -> bool {
    let is_name = requirement.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let name = package_name(requirement).filter(|_| is_name);
    let is_of_name = |line: &String| name.is_some() && package_name(line) == name;
    lines.iter().any(|line| line == requirement || is_of_name(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_requirements_are_not_added() {
        let lines = ["PyYAML >= 6", "ruamel.yaml", "lxml==5", "-r more.txt"].map(String::from);
        for (requirement, expected) in [
            ("pyyaml", true),
            ("PyYAML >= 6", true),
            ("pyyaml>=6.1", false),
            ("ruamel-yaml", true),
            ("lxml==6", false),
            ("yaml", false),
            ("lxml[html]", false),
            ("r", false),
        ] {
            assert_eq!(is_listed(&lines, requirement), expected, "{requirement}");
        }
    }
}
