//! Environment files: which of them there are, what may stand in their place,
//! and how flags, the environment and they come together.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::cli::args::{CommandLine, EnvFiles};
use crate::cli::setup::Startup;
use crate::dotenv::{self, DotenvProblem, Variable};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::order;
use crate::settings::{EnvFile, Settings};
use crate::world::cancellation::Cancellation;
use crate::world::files;
use crate::world::output::Output;

/// Flags and environment.
pub(super) fn without_files(typed: &CommandLine, start: &Startup) -> Settings {
    let mut settings = Settings::new(start.environment.clone());
    for (name, value, flag) in &typed.settings {
        settings.set_flag(name, value.clone(), flag);
    }
    settings
}

/// Flags, environment and environment files, in the order in which they win.
pub(super) fn settings(
    typed: &CommandLine,
    start: &Startup,
    cancellation: &Cancellation,
) -> Result<Settings> {
    let mut settings = without_files(typed, start);
    let look_up = |name: &str| {
        let value = start.environment.iter().find(|(key, _)| key == name)?.1.to_str()?;
        Some(value.to_string())
    };
    match &typed.env_files {
        EnvFiles::Off => {}
        EnvFiles::Only(path) => {
            let place = settings.path(path, &start.folder);
            let file = read_env_file(&place, path, Some(cancellation), true, &look_up)?;
            let missing = || {
                Error::new(
                    ErrorKind::Config,
                    format!("failed to read {}: there is no such file", shown(path)),
                )
            };
            settings.add_file(file.ok_or_else(missing)?);
        }
        EnvFiles::Usual => {
            let here = start.folder.join(".env");
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

/// Tells the lines of environment files that were skipped.
pub(super) fn report_faults(settings: &Settings, output: &mut Output) {
    for file in settings.files() {
        let (path, faults) = (file.path.display(), &file.contents.faults);
        for fault in faults.iter().take(limits::NAMES) {
            output.warn(&format!("skipped {path} line {}: {}", fault.line, fault.message));
        }
        if faults.len() > limits::NAMES {
            output.warn(&format!("skipped {} more lines of {path}", faults.len() - limits::NAMES));
        }
    }
}

/// Reads an environment file; `None` where there is none. With `given`, the user
/// has named it, and it may be a pipe.
fn read_env_file(
    path: &Path,
    name: &OsStr,
    given: Option<&Cancellation>,
    trusted: bool,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<EnvFile>> {
    let failure = |cause: &str| {
        let error =
            Error::new(ErrorKind::Config, format!("failed to read {}: {cause}", shown(name)));
        match given {
            Some(_) => error,
            None => error.with_hint("--no-env-file reads none, --env-file FILE another"),
        }
    };
    if given.is_some() && path.is_dir() {
        return Err(failure("it is a folder"));
    }
    // A folder of that name is somebody's venv, not a file of settings.
    if path.metadata().map_or(true, |meta| meta.is_dir())
        && path.symlink_metadata().map_or(true, |meta| !meta.is_symlink())
    {
        return Ok(None);
    }
    let bytes = match given {
        None => files::read_whole(path, limits::ENV_FILE_BYTES).map_err(|cause| failure(&cause)),
        Some(cancellation) => files::read_given(path, limits::ENV_FILE_BYTES, cancellation)
            .map_err(|error| files::unread(&error, failure)),
    }?;
    let mut contents = dotenv::parse_bytes(&bytes, look_up)
        .map_err(|fault| failure(&format!("line {}: {}", fault.line, fault.message)))?;
    if given.is_some() {
        // Most likely a key alone, which must not go unnoticed nor be shown.
        let bare = contents.variables.iter().filter(|v| v.value.is_none());
        let bare = bare.map(|variable| DotenvProblem {
            line: variable.line,
            message: "no `=` after the name",
        });
        contents.faults.extend(bare);
        order::sort_by_key(&mut contents.faults, |fault| fault.line);
    }
    // The same without the environment: what differs holds something of it.
    let alone = dotenv::parse_bytes(&bytes, &|_| None).unwrap_or_default().variables;
    let differs = |variable: &&Variable| {
        !alone.iter().any(|other| other.name == variable.name && other.value == variable.value)
    };
    let dependent = contents.variables.iter().filter(differs).map(|v| v.name.clone()).collect();
    Ok(Some(EnvFile { path: PathBuf::from(name), trusted, contents, dependent }))
}

fn shown(path: &OsStr) -> std::path::Display<'_> {
    Path::new(path).display()
}
