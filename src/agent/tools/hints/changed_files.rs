//! Files that a script changed in its skill's folder: a hint for the model, a warning for the user.

use std::path::PathBuf;

use super::HintRequest;
use base::limits;
use base::text::one_line_name;
use skills::Skill;
use skills::changes::SkillChanges;

const LATER: &str = "later runs use what is there now";

/// Returns the hint about changed files.
pub(super) fn hint(changes: &SkillChanges) -> Option<String> {
    let names = name_paths(&changes.changed)?;
    Some(format!("{names} of the skill changed while the script ran: {LATER}"))
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
pub(in crate::tools) fn warning(skill: &Skill, changes: &SkillChanges) -> Option<String> {
    let cut = changes
        .is_cut
        .then(|| "the skill has too many files: not all were checked for changes".to_owned());
    let found = name_paths(&changes.changed);
    let found = found.map(|names| format!("{names} of the skill changed: {LATER}"));
    let parts: Vec<String> = found.into_iter().chain(cut).collect();
    let list = parts.join("; ");
    let is_any = !parts.is_empty();
    is_any.then(|| format!("while a script of the skill `{}` ran: {list}", skill.name))
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
