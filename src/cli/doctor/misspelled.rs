//! Variables that were meant to be settings and are none.
//!
//! A misspelt name is silent everywhere else: the environment is full of names
//! that are nobody's business. Only `doctor` looks at those that begin as
//! settings do.

use crate::limits;
use crate::settings::{self, Setting, Settings};
use crate::text::{nearest, one_line};

/// What the names of the program's own settings begin with.
const PREFIXES: [&str; 3] = ["LLM_", "SCRIPT_", "SKILL"];

/// Names of other programs: the tool `llm`, `OpenHands`, CGI, and what scripts
/// of skills are told.
const OTHERS: [&str; 11] = [
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

/// Each name that is near a setting's, with what to do about it.
pub(super) fn warnings(settings: &Settings) -> Vec<(String, String)> {
    let in_environment = settings.environment().iter().filter_map(|(name, value)| {
        let name = name.to_str().filter(|_| !value.is_empty())?;
        Some((name, "environment".to_string()))
    });
    let in_files = settings.files().iter().flat_map(|file| {
        let variables = file.contents.variables.iter();
        let set =
            variables.filter(|variable| variable.value.as_deref().is_some_and(|v| !v.is_empty()));
        set.map(|variable| {
            let origin = format!("{} line {}", file.path.display(), variable.line);
            (variable.name.as_str(), origin)
        })
    });
    let warning = |(name, origin): (&str, String)| {
        let meant = meant(name, settings)?;
        let name = one_line(name, limits::SUMMARY_CHARS);
        Some((
            format!("{name} ({origin}) is no setting; did you mean {meant}?"),
            format!("rename it to {meant}, unless it is another program's"),
        ))
    };
    let all = in_environment.chain(in_files);
    all.filter_map(warning).take(limits::NAMES).collect()
}

/// The setting that was meant by a name that is none.
fn meant(name: &str, settings: &Settings) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    let is_ours = PREFIXES.iter().any(|prefix| upper.starts_with(prefix));
    let is_row = || settings::SETTINGS.iter().flat_map(Setting::names).any(|row| row == name);
    if !is_ours || is_row() {
        return None;
    }
    let rows = settings::SETTINGS.iter().map(|row| row.name);
    let near = nearest(name, rows, limits::NEAR_NAMES);
    // `LLM_API_URL` is as near to the key as to the address: the last word decides.
    let last_word = |name: &str| name.rsplit('_').next().map(str::to_ascii_uppercase);
    let alike = near.iter().find(|row| last_word(row) == last_word(name));
    let meant = *alike.or(near.first())?;
    // Another program's name may still be a slip where the setting is missing.
    let is_set = || settings::setting(meant).is_some_and(|row| settings.value(row.name).is_some());
    (!OTHERS.contains(&name) || !is_set()).then_some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_near_a_setting_are_found_and_those_of_others_are_not() {
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
            assert_eq!(meant(name, &settings), expected, "{name}");
        }
    }
}
