//! `skills new NAME`: creates a skill from a template.

use serde_json::json;

use crate::cli::folders::skills_command;
use crate::cli::run::Run;
use crate::cli::skills::{print_json, short_path};
use crate::cli::values::usage;
use crate::error::{Error, Result};
use crate::limits;
use crate::skills::skeleton;
use crate::text::{self, shell_quoted};
use crate::world::output::Output;

/// The name of the document of a new skill.
const DOCUMENT: &str = "SKILL.md";

/// Creates the skill in the first skills folder that is not the one installed with the program,
/// and prints its folder.
pub(super) fn run(run: &Run, name: &str, is_json: bool, output: &mut Output) -> Result<()> {
    if name.contains('/') {
        return Err(path_error(name));
    }
    let usual = run.folder.join("skills");
    let folder = match run.skills.folder_for_new_skills() {
        Some(folder) => folder,
        None if run.has_named_folders => {
            return Err(usage("there is no skills folder to write to"));
        }
        None => &usual,
    };
    // Names with other letters cannot be published by MCP.
    let not_ascii = (!name.is_ascii()).then_some("it may hold only letters a-z");
    if let Some(reason) = skeleton::invalid_name_reason(name).or(not_ascii) {
        let shown = text::one_line(name, limits::SUMMARY_CHARS);
        let error = usage(format!("`{shown}` is not a valid skill name: {reason}"));
        return Err(match skeleton::nearest_valid_name(name) {
            Some(valid) => error.with_hint(format!("try `{valid}`")),
            None => error,
        });
    }
    let path = skeleton::write(folder, name)?;
    if is_json {
        print_json(&json!({"name": name, "path": path, "document": DOCUMENT}), output);
    } else {
        let shown = short_path(&path, &run.folder);
        output.print(&shown.display().to_string());
        output.note(&format!(
            "edit {}; `skills-runner skills check {}` reports its problems",
            shown.join(DOCUMENT).display(),
            shell_quoted(run.skills.command_address(name, &path).as_ref())
        ));
    }
    Ok(())
}

/// The error for a path in place of a name, with the command for that folder.
fn path_error(word: &str) -> Error {
    let shown = text::one_line(word, limits::SUMMARY_CHARS);
    let (folder, name) = match word.trim_end_matches('/').rsplit_once('/') {
        Some(("", name)) => (Some("/"), name),
        Some((folder, name)) => (Some(folder), name),
        None => (None, word.trim_end_matches('/')),
    };
    let name = skeleton::nearest_valid_name(name).unwrap_or("NAME".into());
    let folders: Vec<_> = folder.map(Into::into).into_iter().collect();
    let command = skills_command(&format!("new {name}"), &folders);
    let place = folder.map_or("in the skills folder", |_| "there");
    usage(format!("`{shown}` is a path, not a skill name"))
        .with_hint(format!("`{command}` creates it {place}"))
}
