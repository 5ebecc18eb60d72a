//! `skills new NAME`: the skeleton of a skill.

use serde_json::json;

use crate::cli::args::usage;
use crate::cli::setup::{Run, skills_command};
use crate::cli::skills::{near, print_json};
use crate::error::{Error, Result};
use crate::limits;
use crate::skills::skeleton;
use crate::text::{self, quoted};
use crate::world::output::Output;

/// What the document of a new skill is called.
const DOCUMENT: &str = "SKILL.md";

/// Writes it into the first skills folder that did not come with the program, and prints the folder it made.
pub(super) fn run(run: &Run, name: &str, is_json: bool, output: &mut Output) -> Result<u8> {
    if name.contains('/') {
        return Err(no_path(name));
    }
    let usual = run.folder.join("skills");
    let folder = match run.skills.writable() {
        Some(folder) => folder,
        None if run.names_folders => return Err(usage("there is no skills folder to write to")),
        None => &usual,
    };
    if let Some(fault) = skeleton::name_fault(name) {
        let shown = text::one_line(name, limits::SUMMARY_CHARS);
        let error = usage(format!("`{shown}` is no name for a skill: {fault}"));
        return Err(match skeleton::valid_name(name) {
            Some(valid) => error.with_hint(format!("`{valid}` would be one")),
            None => error,
        });
    }
    let path = skeleton::write(folder, name)?;
    if is_json {
        print_json(&json!({"name": name, "path": path, "document": DOCUMENT}), output);
    } else {
        let shown = near(&path, &run.folder);
        output.print(&shown.display().to_string());
        output.note(&format!(
            "edit {}; `skills-runner skills check {}` tells what is wrong with it",
            shown.join(DOCUMENT).display(),
            quoted(run.skills.address(name, &path).as_ref())
        ));
    }
    Ok(0)
}

/// A name says where a skill is written only together with the skills folder.
fn no_path(word: &str) -> Error {
    let shown = text::one_line(word, limits::SUMMARY_CHARS);
    let (folder, name) = match word.trim_end_matches('/').rsplit_once('/') {
        Some(("", name)) => (Some("/"), name),
        Some((folder, name)) => (Some(folder), name),
        None => (None, word.trim_end_matches('/')),
    };
    let name = skeleton::valid_name(name).unwrap_or("NAME".into());
    let folders: Vec<_> = folder.map(Into::into).into_iter().collect();
    let command = skills_command(&format!("new {name}"), &folders);
    let place = folder.map_or("into the skills folder", |_| "there");
    usage(format!("`{shown}` is a path, not a name for a skill"))
        .with_hint(format!("`{command}` writes it {place}"))
}
