//! Files that a script changed and that affect later runs: a hint for the model, a warning for the
//! user.

use std::path::PathBuf;

use super::HintRequest;
use crate::limits;
use crate::skills::Skill;
use crate::skills::changes::SkillChanges;
use crate::text::one_line_name;

const LATER: &str = "later runs use what is there now";

/// Returns the hint about changed files, without those that [`left_hint`] names.
pub(super) fn hint(changes: &SkillChanges) -> Option<String> {
    let own = changes.own.iter().filter(|path| !changes.left.contains(path)).cloned();
    let what = changed_files(&own.collect::<Vec<_>>(), &changes.others)?;
    Some(format!("{what} while the script ran: {LATER}"))
}

/// Returns the hint about files that were left in the skill's folder.
pub(super) fn left_hint(request: &HintRequest<'_>) -> Option<String> {
    let (changes, skill, scripts) = (request.changes?, request.skill?, request.scripts);
    // The user may work on the skill.
    if scripts.user_folder.starts_with(&skill.path) {
        return None;
    }
    let names = name_paths(&changes.left)?;
    let noun = request.noun();
    let is_writable = scripts.sandbox.as_ref().is_none_or(|sandbox| {
        sandbox.write.iter().any(|folder| scripts.user_folder.starts_with(folder))
    });
    let folder = one_line_name(&scripts.user_folder.display().to_string());
    let advice = if is_writable {
        format!("write the user's files in {folder}")
    } else {
        "tell the user".to_string()
    };
    Some(format!("the {noun} left {names} in the skill's folder: {advice}"))
}

/// The files that were left in the skill's folder, for other programs.
pub(in crate::tools) fn left_in_skill(changes: &SkillChanges) -> Vec<String> {
    let shown = changes.left.iter().take(limits::LEFT_FILES_LISTED);
    shown.map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Returns the changes for the user, and notes if not all files were checked.
pub(in crate::tools) fn warning(skill: Option<&Skill>, changes: &SkillChanges) -> Option<String> {
    let cut = changes.is_cut.then(|| {
        "the skills folders have too many files: not all were checked for changes".to_owned()
    });
    let found = changed_files(&changes.own, &changes.others);
    let found = found.map(|what| format!("{what}: {LATER}"));
    let parts: Vec<String> = found.into_iter().chain(cut).collect();
    let list = parts.join("; ");
    let what = match skill {
        Some(skill) => format!("a script of the skill `{}`", skill.name),
        None => "a script".into(),
    };
    (!parts.is_empty()).then(|| format!("while {what} ran: {list}"))
}

/// Names the changed files that affect later runs.
fn changed_files(own: &[PathBuf], others: &[PathBuf]) -> Option<String> {
    let own = name_paths(own).map(|names| format!("{names} of the skill"));
    let whose: Vec<String> = own.into_iter().chain(name_paths(others)).collect();
    (!whose.is_empty()).then(|| format!("{} changed", whose.join(", and ")))
}

/// Lists the first of these paths, and the number of further ones.
fn name_paths(paths: &[PathBuf]) -> Option<String> {
    let shown = paths.iter().take(limits::CHANGES_NAMED);
    let mut names: Vec<String> =
        shown.map(|path| one_line_name(&path.display().to_string())).collect();
    if let Some(more @ 1..) = paths.len().checked_sub(limits::CHANGES_NAMED) {
        names.push(format!("{more} more"));
    }
    let last = names.pop()?;
    Some(match names.as_slice() {
        [] => last,
        _ => format!("{} and {last}", names.join(", ")),
    })
}
