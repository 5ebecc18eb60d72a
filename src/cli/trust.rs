//! `trust`: accepts the `.env` of a folder.

use std::path::Path;

use crate::cli::env_files::settings_without_files;
use crate::cli::folder_trust::{Answer, FolderFile, TrustRecords};
use crate::cli::options::CommonOptions;
use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::error::{Error, ErrorKind, Result};
use crate::settings::{EnvFile, FolderTrust, Settings};
use crate::world::output::Output;
use crate::world::process::is_in_script;

/// Records that the user accepts the file, and prints what it sets.
pub(super) fn run(
    folder: Option<&str>,
    options: &CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<()> {
    if is_in_script() {
        let message = "failed to accept .env: only the user can, not a script or command";
        return Err(Error::new(ErrorKind::Usage, message)
            .with_hint("tell the user to run: skills-runner trust"));
    }
    let folder = startup.folder.join(folder.unwrap_or(""));
    let shown = folder.join(".env");
    let failed = |cause: &str| usage(format!("failed to read `{}`: {cause}", shown.display()));
    let file = FolderFile::read(&folder).map_err(|cause| failed(&cause))?;
    let look_up = |name: &str| startup.variable(name)?.to_str().map(String::from);
    let parsed = EnvFile::of_folder(&file.bytes, &FolderTrust::Accepted, &look_up)
        .map_err(|problem| failed(&problem.to_string()))?;
    let records = TrustRecords::new(&settings_without_files(options, startup));
    let mut settings = Settings::default();
    settings.add_file(parsed);
    let lines =
        settings.display_values().filter_map(|shown| Some((shown.setting.name, shown.value?.0)));
    let lines: Vec<String> = lines.map(|(name, value)| format!("  {name}={value}")).collect();
    records.add(Answer::Accepted, &file)?;
    output.print(&accepted(&file.path, &lines));
    Ok(())
}

fn accepted(path: &Path, lines: &[String]) -> String {
    let start = format!("accepted {}, until it is changed:", path.display());
    lines.iter().fold(start, |text, line| format!("{text}\n{line}"))
}
