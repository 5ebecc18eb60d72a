//! `skills new NAME`: the skeleton of a skill.

use serde_json::json;

use std::io::ErrorKind;
use std::path::Path;

use crate::cli::args::usage;
use crate::cli::setup::Run;
use crate::cli::skills::{near, print_json};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::skills::python::quoted;
use crate::skills::skeleton;
use crate::text;
use crate::world::output::Output;

/// What the document of a new skill is called.
const DOCUMENT: &str = "SKILL.md";

/// Writes it into the first skills folder, or where a path says, and prints
/// the folder it made.
pub fn run(run: &Run, word: &str, is_json: bool, output: &mut Output) -> Result<u8> {
    let (folder, name) = match word.trim_end_matches('/').rsplit_once('/') {
        Some((folder, name)) => {
            let folder = run.folder.join(Path::new(&format!("{folder}/")));
            (folder.components().collect(), name)
        }
        None => match run.skills.folders() {
            [first, ..] => (first.clone(), word),
            [] => return Err(usage("there is no skills folder to write to")),
        },
    };
    if let Some(fault) = skeleton::name_fault(name) {
        let shown = text::one_line(name, limits::SUMMARY_CHARS);
        let error = usage(format!("`{shown}` is no name for a skill: {fault}"));
        return Err(match skeleton::valid_name(name) {
            Some(valid) => error.with_hint(format!("`{valid}` would be one")),
            None => error,
        });
    }
    let path =
        skeleton::write(&folder, name).map_err(|error| failure(&folder.join(name), &error))?;
    if is_json {
        print_json(
            &json!({"name": name, "path": path, "document": DOCUMENT}),
            output,
        );
    } else {
        let shown = near(&path, &run.folder);
        output.print(&shown.display().to_string());
        // As it was typed, or as the next command finds it.
        let address = if word.contains('/') {
            word.to_string()
        } else {
            run.skills.address(name, &path)
        };
        output.note(&format!(
            "edit {}; `skills-runner skills check {}` tells what is wrong with it",
            shown.join(DOCUMENT).display(),
            quoted(address.as_ref())
        ));
    }
    Ok(0)
}

fn failure(path: &Path, error: &std::io::Error) -> Error {
    let failure = Error::new(
        Kind::Io,
        format!("failed to write the skill {}: {error}", path.display()),
    );
    match error.kind() {
        ErrorKind::AlreadyExists => failure.with_hint("nothing was changed; choose another name"),
        _ => failure,
    }
}
