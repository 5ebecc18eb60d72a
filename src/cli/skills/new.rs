//! `skills new NAME`: creates a skill from a template.

use serde_json::json;

use crate::cli::run::Run;
use crate::cli::skills::json::print_json;
use crate::cli::values::usage;
use crate::ui::Output;
use base::error::Result;
use base::limits;
use base::text::{self, shell_quoted};
use skills::skeleton;

/// The name of the document of a new skill.
const DOCUMENT: &str = "SKILL.md";

/// Creates the skill in the first skills folder that is not the one installed with the program,
/// and prints its folder.
pub(super) fn run(run: &Run, name: &str, is_json: bool, output: &mut Output) -> Result<()> {
    if name.contains('/') {
        let shown = text::one_line(name, limits::SUMMARY_CHARS);
        return Err(usage(format!("`{shown}` is a path, not a skill name"))
            .with_hint("name the folder of the new skill with --skills DIR"));
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
        let shown = run.short_path(&path);
        output.print(&shown.display().to_string());
        output.note(&format!(
            "edit {}; `skills-runner skills check {}` reports its problems",
            shown.join(DOCUMENT).display(),
            shell_quoted(run.skills.command_address(name, &path).as_ref())
        ));
    }
    Ok(())
}
