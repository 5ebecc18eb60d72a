//! Other skills that the installed ones need, and that are left behind in the source.

use crate::cli::skills::install::Change;
use crate::limits;
use crate::skills::Skills;
use crate::skills::siblings::named_skills;
use crate::text;
use crate::world::output::Output;

/// Warns about the skills that the installed ones name and that will not be beside them: those of
/// the source, and those that are surely skills.
pub(super) fn warn(change: &Change<'_>, output: &mut Output) {
    let new = Skills::new([change.staging.new_folder().to_path_buf()]);
    let installed = || change.planned.iter().filter(|planned| planned.outcome.is_installed());
    let is_there = |name: &str| {
        installed().any(|planned| planned.name == name) || change.folder.join(name).is_dir()
    };
    for planned in installed() {
        let Ok(document) = new.open_any(&planned.name).and_then(|skill| skill.read_document())
        else {
            continue;
        };
        let named = named_skills(&document.text).into_iter();
        let is_skill = |name: &str, is_sure| is_sure || change.offered.contains(name);
        let missing = named.filter(|(name, is_sure)| is_skill(name, *is_sure) && !is_there(name));
        let missing: Vec<String> = missing.map(|(name, _)| name).collect();
        if missing.is_empty() {
            continue;
        }
        let list = text::first_names(&missing.iter().map(String::as_str).collect::<Vec<_>>());
        let line = format!("{} needs skills that are left behind: {list}", planned.name);
        output.warn(&text::one_line(&line, limits::LINE_BYTES));
    }
}
