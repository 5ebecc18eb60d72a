//! The request for a setup, validated before anything changes.

use crate::config::ScriptSettings;
use crate::error::{Error, ErrorKind};
use crate::skills::Skill;
use crate::skills::setup::SetupProgress;
use crate::skills::setup::command_runner::ProgressSink;
use crate::skills::setup::requirements::{self, RequirementsFile};
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::confined::OpenError;
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
}

/// Returns the requested requirements, validated.
pub(super) fn requested_packages(request: &SetupRequest<'_>) -> Result<Vec<String>, Error> {
    let mut extra: Vec<String> = Vec::new();
    for requirement in request.extra {
        if let Err(cause) = requirements::validate(requirement) {
            let text = format!("failed to install `{}`: {cause}", requirement.escape_debug());
            return Err(Error::new(ErrorKind::Usage, text)
                .with_hint("name packages, as in: lxml \"openpyxl>=3.1\""));
        }
        let resolved = requirements::resolve_path(
            requirement,
            &request.scripts.user_folder,
            &request.skill.path,
        );
        if !extra.contains(&resolved) {
            extra.push(resolved);
        }
    }
    Ok(extra)
}

/// Returns the skill's requirements file with the extra requirements, and which of these are new.
pub(super) fn requirements_file(
    skill: &Skill,
    extra: &[String],
) -> Result<(Option<RequirementsFile>, Vec<String>), Error> {
    let path = skill.path.join(requirements::REQUIREMENTS_FILE);
    let failure = |verb: &str, cause: String| {
        let text = format!("failed to {verb} `{}`: {cause}", path.display());
        Error::new(ErrorKind::Io, text)
    };
    let file = RequirementsFile::read(&skill.root);
    let mut file = file.map_err(|error| failure("read", error.to_string()))?;
    let mut added: Vec<String> = Vec::new();
    for requirement in extra {
        let is_named = |file: &RequirementsFile| file.contains(&skill.root, requirement);
        if !file.as_ref().is_some_and(is_named) && !requirements::list_contains(&added, requirement)
        {
            added.push(requirement.clone());
        }
    }
    if !added.is_empty() {
        let file = file.get_or_insert_with(RequirementsFile::new);
        let writable = file.check_writable(&skill.root);
        let done = writable.map_err(|error| match error {
            OpenError::Link => "it is a link".into(),
            error => error.to_string(),
        });
        let done = done.and_then(|()| Ok(file.add(&added)?));
        done.map_err(|cause| {
            let lines = added.join("`, `");
            failure("add to", cause).with_hint(format!("add to it yourself: `{lines}`"))
        })?;
    }
    Ok((file, added))
}

/// Locks the skill against other setups, after waiting for a running one.
pub(super) fn lock_skill(
    request: &SetupRequest<'_>,
    on_progress: &mut ProgressSink<'_>,
) -> Result<FolderLock, Error> {
    let folder = &request.skill.path;
    let lock = FolderLock::acquire(folder, request.cancellation, &mut || {
        on_progress(SetupProgress::Waiting);
    });
    let lock = lock.map_err(|error| match StopReason::from_io_error(&error) {
        Some(stop) => stop.into(),
        None => {
            Error::new(ErrorKind::Io, format!("failed to lock `{}`: {error}", folder.display()))
        }
    })?;
    if !lock.is_held() {
        on_progress(SetupProgress::Unlocked);
    }
    Ok(lock)
}
