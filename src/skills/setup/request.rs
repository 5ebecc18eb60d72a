//! What a setup is asked for, made sense of before anything is done.

use crate::config::ScriptSettings;
use crate::error::{Error, ErrorKind};
use crate::skills::Skill;
use crate::skills::setup::SetupProgress;
use crate::skills::setup::command_runner::ProgressSink;
use crate::skills::setup::requirements::{self, RequirementsFile};
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::confined::OpenError;
use crate::world::lock::FolderLock;

/// What is to be set up.
pub(crate) struct SetupRequest<'s> {
    /// The skill.
    pub skill: &'s Skill,
    /// How its scripts run.
    pub scripts: &'s ScriptSettings,
    /// What ends the setup early.
    pub cancellation: &'s Cancellation,
    /// Requirements of the person who asks. Once installed they stand in the
    /// skill's `requirements.txt`.
    pub extra: &'s [String],
}

/// The requirements that were asked for, if they are some.
pub(super) fn requested_packages(order: &SetupRequest<'_>) -> Result<Vec<String>, Error> {
    let mut extra: Vec<String> = Vec::new();
    for requirement in order.extra {
        if let Err(cause) = requirements::check(requirement) {
            let text = format!("failed to install `{}`: {cause}", requirement.escape_debug());
            return Err(Error::new(ErrorKind::Usage, text)
                .with_hint("name packages, as in: lxml \"openpyxl>=3.1\""));
        }
        let located =
            requirements::located(requirement, &order.scripts.user_folder, &order.skill.path);
        if !extra.contains(&located) {
            extra.push(located);
        }
    }
    Ok(extra)
}

/// The skill's requirements file with the extra requirements, and those of them
/// that are new in it.
pub(super) fn requirements_file(
    skill: &Skill,
    extra: &[String],
) -> Result<(Option<RequirementsFile>, Vec<String>), Error> {
    let path = skill.path.join(requirements::FILE);
    let failure = |verb: &str, cause: String| {
        let text = format!("failed to {verb} `{}`: {cause}", path.display());
        Error::new(ErrorKind::Io, text)
    };
    let file = RequirementsFile::of(&skill.root);
    let mut file = file.map_err(|refusal| failure("read", refusal.to_string()))?;
    let mut added: Vec<String> = Vec::new();
    for requirement in extra {
        let is_named = |file: &RequirementsFile| file.names(&skill.root, requirement);
        if !file.as_ref().is_some_and(is_named) && !requirements::are_naming(&added, requirement) {
            added.push(requirement.clone());
        }
    }
    if !added.is_empty() {
        let file = file.get_or_insert_with(RequirementsFile::empty);
        let writable = file.may_be_written(&skill.root);
        let done = writable.map_err(|refusal| match refusal {
            OpenError::Link => "it is a link".into(),
            refusal => refusal.to_string(),
        });
        let done = done.and_then(|()| Ok(file.add(&added)?));
        done.map_err(|cause| {
            let lines = added.join("`, `");
            failure("add to", cause).with_hint(format!("add to it yourself: `{lines}`"))
        })?;
    }
    Ok((file, added))
}

/// Keeps every other setup of the skill out, as soon as there is none.
pub(super) fn lock(
    order: &SetupRequest<'_>,
    tell: &mut ProgressSink<'_>,
) -> Result<FolderLock, Error> {
    let folder = &order.skill.path;
    let lock = FolderLock::take(folder, order.cancellation, &mut || tell(SetupProgress::Waits));
    let lock = lock.map_err(|error| match StopReason::within(&error) {
        Some(stop) => stop.into(),
        None => {
            Error::new(ErrorKind::Io, format!("failed to lock `{}`: {error}", folder.display()))
        }
    })?;
    if !lock.is_held() {
        tell(SetupProgress::Unlocked);
    }
    Ok(lock)
}
