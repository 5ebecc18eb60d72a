//! Files that a script changed and that affect later runs: a hint for the model, a warning for the
//! user.

use std::path::PathBuf;

use crate::limits;
use crate::skills::Skill;
use crate::skills::changes::SkillChanges;
use crate::text;

const LATER: &str = "later runs use what is there now";

pub(super) fn hint(changes: &SkillChanges) -> Option<String> {
    changed_files(changes).map(|what| format!("{what} while the script ran: {LATER}"))
}

/// Returns the same for the user, and notes if not all files were checked.
pub(in crate::tools) fn warning(skill: Option<&Skill>, changes: &SkillChanges) -> Option<String> {
    let cut = changes.is_cut.then(|| {
        "the skills folders have too many files: not all were checked for changes".to_owned()
    });
    let found = changed_files(changes).map(|what| format!("{what}: {LATER}"));
    let parts: Vec<String> = found.into_iter().chain(cut).collect();
    let list = parts.join("; ");
    let what = match skill {
        Some(skill) => format!("a script of the skill `{}`", skill.name),
        None => "a script".into(),
    };
    (!parts.is_empty()).then(|| format!("while {what} ran: {list}"))
}

/// Names the changed files that affect later runs.
fn changed_files(changes: &SkillChanges) -> Option<String> {
    let own = name_paths(&changes.own).map(|names| format!("{names} of the skill"));
    let whose: Vec<String> = own.into_iter().chain(name_paths(&changes.others)).collect();
    (!whose.is_empty()).then(|| format!("{} changed", whose.join(", and ")))
}

/// Lists the first of these paths, and the number of further ones.
fn name_paths(paths: &[PathBuf]) -> Option<String> {
    let shown = paths.iter().take(limits::CHANGES_NAMED);
    let mut names: Vec<String> =
        shown.map(|path| text::one_line_name(&path.display().to_string())).collect();
    if let Some(more @ 1..) = paths.len().checked_sub(limits::CHANGES_NAMED) {
        names.push(format!("{more} more"));
    }
    let last = names.pop()?;
    Some(match names.as_slice() {
        [] => last,
        _ => format!("{} and {last}", names.join(", ")),
    })
}
