//! Reads the environment files that the options select, and merges them with options and
//! environment variables.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::cli::options::{CommonOptions, EnvFiles};
use crate::cli::startup::Startup;
use crate::dotenv::{self, DotenvProblem};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::settings::{EnvFile, Settings};
use crate::world::cancellation::Cancellation;
use crate::world::files;
use crate::world::output::Output;

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
            let file = read_env_file(&place, path, Some(cancellation), true, &look_up)?;
            let missing = || {
                Error::new(
                    ErrorKind::Config,
                    format!("failed to read `{}`: the file does not exist", shown(path)),
                )
            };
            settings.add_file(file.ok_or_else(missing)?);
        }
        EnvFiles::Usual => {
            let here = startup.folder.join(".env");
            let home = settings.xdg_folder("XDG_CONFIG_HOME", ".config");
            let files = [
                read_env_file(&here, OsStr::new(".env"), None, false, &look_up)?,
                match home.map(|home| home.join("skills-runner/.env")) {
                    Some(path) => read_env_file(&path, path.as_os_str(), None, true, &look_up)?,
                    None => None,
                },
            ];
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
    trusted: bool,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<EnvFile>> {
    let failure = |cause: &str| {
        let error =
            Error::new(ErrorKind::Config, format!("failed to read `{}`: {cause}", shown(name)));
        match given {
            Some(_) => error,
            None => {
                error.with_hint("--no-env-file reads no file, --env-file FILE reads another one")
            }
        }
    };
    if given.is_some() && path.is_dir() {
        return Err(failure("it is a folder"));
    }
    // A folder of that name is a venv, not a file of settings.
    if path.metadata().map_or(true, |meta| meta.is_dir())
        && path.symlink_metadata().map_or(true, |meta| !meta.is_symlink())
    {
        return Ok(None);
    }
    let bytes = match given {
        None => files::read_whole(path, limits::ENV_FILE_BYTES).map_err(|cause| failure(&cause)),
        Some(cancellation) => files::read_file_or_pipe(path, limits::ENV_FILE_BYTES, cancellation)
            .map_err(|error| files::read_error(&error, failure)),
    }?;
    let mut contents = dotenv::parse_bytes(&bytes, look_up)
        .map_err(|problem| failure(&format!("line {}: {}", problem.line, problem.message)))?;
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
    Ok(Some(EnvFile { path: PathBuf::from(name), trusted, contents }))
}

fn shown(path: &OsStr) -> std::path::Display<'_> {
    Path::new(path).display()
}
