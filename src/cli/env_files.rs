//! Reads the environment files that the options select, and merges them with options and
//! environment variables.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::cli::folder_trust::FolderFile;
use crate::cli::options::{CommonOptions, EnvFiles};
use crate::cli::startup::Startup;
use crate::ui::Output;
use base::dotenv::{self, DotenvProblem};
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::settings::{EnvFile, Settings};
use host::cancellation::Cancellation;
use host::files;

/// The settings from options and environment variables only.
pub(super) fn settings_without_files(options: &CommonOptions, startup: &Startup) -> Settings {
    let mut settings = Settings::new(startup.environment.clone());
    for (name, value, flag) in &options.settings {
        settings.set_flag(name, value.clone(), flag);
    }
    settings
}

/// The settings from options, environment variables and environment files, in order of
/// precedence.
pub(super) fn read_settings(
    options: &CommonOptions,
    startup: &Startup,
    cancellation: &Cancellation,
) -> Result<Settings> {
    let mut settings = settings_without_files(options, startup);
    let look_up = |name: &str| startup.variable(name)?.to_str().map(String::from);
    match &options.env_files {
        EnvFiles::Off => {}
        EnvFiles::Only(path) => {
            let place = settings.path(path, &startup.folder);
            let file = read_env_file(&place, path, Some(cancellation), &look_up)?;
            let missing = || {
                Error::new(
                    ErrorKind::Config,
                    format!("failed to read `{}`: the file does not exist", shown(path)),
                )
            };
            settings.add_file(file.ok_or_else(missing)?);
        }
        EnvFiles::Usual => {
            let home = settings.xdg_folder("XDG_CONFIG_HOME", ".config");
            let own = match home.map(|home| home.join("skills-runner/.env")) {
                Some(path) => read_env_file(&path, path.as_os_str(), None, &look_up)?,
                None => None,
            };
            let files = [folder_file(&settings, startup, cancellation, &look_up)?, own];
            for file in files.into_iter().flatten() {
                settings.add_file(file);
            }
        }
    }
    Ok(settings)
}

/// Reports the lines of environment files that were skipped.
pub(super) fn report_skipped_lines(settings: &Settings, output: &mut Output) {
    for file in settings.files() {
        for notice in &file.notices {
            output.warn(&notice.to_string());
        }
        for fault in file.skipped_lines() {
            output.warn(&fault.message);
        }
        let more = file.contents.problems.len().saturating_sub(limits::LISTED_NAMES);
        if more > 0 {
            output.warn(&format!("skipped {more} more lines of {}", file.path.display()));
        }
    }
}

/// Reads an environment file; `None` if it does not exist. With `given`, the user named the
/// file, which may be a pipe.
fn read_env_file(
    path: &Path,
    name: &OsStr,
    given: Option<&Cancellation>,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<EnvFile>> {
    let failure = |cause: &str| unreadable(name, cause, given.is_none());
    if given.is_some() && path.is_dir() {
        return Err(failure("it is a folder"));
    }
    if !is_there(path) {
        return Ok(None);
    }
    let bytes = match given {
        None => files::read_whole(path, limits::ENV_FILE_BYTES).map_err(|cause| failure(&cause)),
        Some(cancellation) => files::read_file_or_pipe(path, limits::ENV_FILE_BYTES, cancellation)
            .map_err(|error| files::read_error(&error, failure)),
    }?;
    let mut contents =
        dotenv::parse_bytes(&bytes, look_up).map_err(|problem| failure(&problem.to_string()))?;
    if given.is_some() {
        // Most likely a bare key: report the line, but do not show it.
        let bare = contents.variables.iter().filter(|v| v.value.is_none());
        let bare = bare.map(|variable| DotenvProblem {
            line: variable.line,
            message: "no `=` after the name",
        });
        contents.problems.extend(bare);
        contents.problems.sort_by_key(|problem| problem.line);
    }
    Ok(Some(EnvFile {
        path: PathBuf::from(name),
        trusted: true,
        contents,
        notices: Vec::new(),
        skipped: Vec::new(),
    }))
}

/// Reads `./.env`; `None` if it does not exist.
fn folder_file(
    settings: &Settings,
    startup: &Startup,
    cancellation: &Cancellation,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<EnvFile>> {
    if !is_there(&startup.folder.join(".env")) {
        return Ok(None);
    }
    let failure = |cause: &str| unreadable(OsStr::new(".env"), cause, true);
    let file = FolderFile::read(&startup.folder).map_err(|cause| failure(&cause))?;
    let trust = file.trust(settings, cancellation)?;
    let parsed = EnvFile::of_folder(&file.bytes, &trust, look_up);
    parsed.map(Some).map_err(|problem| failure(&problem.to_string()))
}

/// Whether there is a file. A folder of that name is a venv, not a file of settings.
fn is_there(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| !meta.is_dir())
        || path.symlink_metadata().is_ok_and(|meta| meta.is_symlink())
}

/// The error for a file that cannot be read. `is_usual`: the user did not name it.
fn unreadable(name: &OsStr, cause: &str, is_usual: bool) -> Error {
    let message = format!("failed to read `{}`: {cause}", shown(name));
    let error = Error::new(ErrorKind::Config, message);
    if is_usual {
        error.with_hint("--no-env-file reads no file, --env-file FILE reads another one")
    } else {
        error
    }
}

fn shown(path: &OsStr) -> std::path::Display<'_> {
    Path::new(path).display()
}
