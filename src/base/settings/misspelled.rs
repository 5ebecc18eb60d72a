//! Finds misspelled settings.
//!
//! Most of the environment belongs to other programs, so only names with the prefixes of settings
//! are looked at, by `doctor` and where a setting is missing. A file of settings belongs to this
//! program, mostly, so its names are looked at by each command that asks a model.

use super::{Setting, Settings};
use crate::error::Fault;
use crate::limits;
use crate::settings;
use crate::text::{one_line, similar_names};

/// The prefixes of settings.
const PREFIXES: [&str; 3] = ["LLM_", "SCRIPT_", "SKILL"];

/// Names used by others: the tool `llm`, `OpenHands`, CGI, and the variables of scripts.
const FOREIGN_NAMES: [&str; 11] = [
    "LLM_BASE_URL",
    "LLM_LOAD_PLUGINS",
    "LLM_MODEL",
    "LLM_RAISE_ERRORS",
    "LLM_USER_PATH",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "SCRIPT_URI",
    "SCRIPT_URL",
    "SKILL_DIR",
    "SKILL_NAME",
];

/// A warning and its remedy for each name that is similar to a setting.
pub fn warnings(settings: &Settings) -> Vec<Fault> {
    let all = in_environment(settings).chain(in_files(settings));
    all.filter_map(|found| warning(found, settings)).take(limits::LISTED_NAMES).collect()
}

/// The same for names in files only.
pub fn warnings_in_files(settings: &Settings) -> Vec<Fault> {
    let all = in_files(settings).filter_map(|found| warning(found, settings));
    all.take(limits::LISTED_NAMES).collect()
}

/// A name and where it is set.
type FoundName<'s> = (&'s str, String);

fn in_environment(settings: &Settings) -> impl Iterator<Item = FoundName<'_>> {
    settings.environment().iter().filter_map(|(name, value)| {
        let name = name.to_str().filter(|_| !value.is_empty())?;
        Some((name, "environment".to_string()))
    })
}

fn in_files(settings: &Settings) -> impl Iterator<Item = FoundName<'_>> {
    settings.files().iter().flat_map(|file| {
        let variables = file.contents.variables.iter();
        let set =
            variables.filter(|variable| variable.value.as_deref().is_some_and(|v| !v.is_empty()));
        set.map(|variable| {
            let origin = format!("{} line {}", file.path.display(), variable.line);
            (variable.name.as_str(), origin)
        })
    })
}

fn warning((name, origin): FoundName<'_>, settings: &Settings) -> Option<Fault> {
    let meant = intended_setting(name, settings)?;
    let name = one_line(name, limits::SUMMARY_CHARS);
    Some(Fault::new(
        format!("{name} ({origin}) is not a setting; did you mean {meant}?"),
        format!("rename it to {meant}, unless it belongs to another program"),
    ))
}

/// The setting that an unknown name probably means.
fn intended_setting(name: &str, settings: &Settings) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    let is_ours = PREFIXES.iter().any(|prefix| upper.starts_with(prefix));
    let is_row = || settings::SETTINGS.iter().flat_map(Setting::names).any(|row| row == name);
    if !is_ours || is_row() {
        return None;
    }
    let rows = settings::SETTINGS.iter().map(|row| row.name);
    let near = similar_names(name, rows, limits::SIMILAR_NAMES);
    // `LLM_API_URL` is as similar to the key as to the address: the last word decides.
    let last_word = |name: &str| name.rsplit('_').next().map(str::to_ascii_uppercase);
    let alike = near.iter().find(|row| last_word(row) == last_word(name));
    let meant = *alike.or(near.first())?;
    // A name of the tool `llm` may still be a mistake if the setting is missing.
    let is_unset =
        || settings::setting(meant).is_some_and(|row| settings.value(row.name).is_none());
    let may_be_meant = name.starts_with("LLM_") && is_unset();
    (!FOREIGN_NAMES.contains(&name) || may_be_meant).then_some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_similar_to_a_setting_are_reported() {
        let table = [
            ("LLM_MODEL_NAM", Some("LLM_MODEL_NAME")),
            ("llm_model_name", Some("LLM_MODEL_NAME")),
            ("LLM_MODEL", Some("LLM_MODEL_NAME")),
            ("LLM_API_URL", Some("LLM_API_BASE_URL")),
            ("LLM_API_BASEURL", Some("LLM_API_BASE_URL")),
            ("LLM_BASE_URL", None),
            ("LLM_KEY", Some("LLM_API_KEY")),
            ("LLM_APIKEY", Some("LLM_API_KEY")),
            ("LLM_TIMEOUT", Some("LLM_TIMEOUT_SECONDS")),
            ("SCRIPT_TIMEOUT", Some("SCRIPT_TIMEOUT_SECONDS")),
            ("SCRIPTS_PYTHON", None),
            ("SCRIPT_PYTON", Some("SCRIPT_PYTHON")),
            ("SKILL_FOLDER_PATH", Some("SKILLS_FOLDER_PATH")),
            ("SKILLS_FOLDER", Some("SKILLS_FOLDER_PATH")),
            ("LLM_USER_PATH", None),
            ("LLM_PROVIDER", None),
            ("LLM_TEMPERATURE", None),
            ("SCRIPT_NAME", None),
            ("SKILL_DIR", None),
            ("LLM_MODEL_NAME", None),
            ("HTTP_PROXI", None),
        ];
        let address = (settings::LLM_API_BASE_URL.into(), "https://h".into());
        let settings = Settings::new(vec![address]);
        for (name, expected) in table {
            assert_eq!(intended_setting(name, &settings), expected, "{name}");
        }
    }
}
