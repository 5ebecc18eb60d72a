//! `skills`: lists, shows, checks, creates and sets up skills.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::folders::{shown_folders, skills_command};
use crate::cli::options::{CommonOptions, SkillsCommand};
use crate::cli::run::Run;
use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::config::ConfigNeeds;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::settings::SCRIPT_SANDBOX;
use crate::skills::{Catalogue, Problem, Rule, Skill, Skills};
use crate::text;
use crate::world::confined::OpenError;
use crate::world::output::Output;

mod check;
mod json_path;
mod list;
mod new;
mod setup;
mod show;
mod skill_json;

/// Runs the subcommand, and returns the exit status.
pub(super) fn run(
    command: SkillsCommand,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<u8> {
    let is_json = options.is_json();
    let mut typed_settings = options.settings.iter();
    if matches!(command, SkillsCommand::Setup { .. })
        && typed_settings.any(|(name, ..)| *name == SCRIPT_SANDBOX)
    {
        let text = "--sandbox does not work with `skills setup`, which needs the network";
        return Err(usage(text).with_hint(
            "run the setup without a sandbox; scripts still use its packages in the sandbox",
        ));
    }
    let run = Run::new(options, startup, ConfigNeeds::Skills, output)?;
    // `new` creates the skills folder if it is missing.
    if !matches!(command, SkillsCommand::New(_)) {
        run.check_folders(output)?;
    }
    match command {
        SkillsCommand::List => list::run(&run, is_json, output).map(|()| 0),
        SkillsCommand::Show(name) => show::run(&run, &name, is_json, output).map(|()| 0),
        SkillsCommand::Check(names) => check::run(&run, &names, is_json, output),
        SkillsCommand::New(name) => new::run(&run, &name, is_json, output).map(|()| 0),
        SkillsCommand::Setup { name, packages } => {
            setup::run(&run, &name, &packages, is_json, output)
        }
    }
}

/// The skills that an argument selects: by a name in the skills folders, or by a path, which
/// contains a slash or is `.` or `..`.
struct SkillSelection {
    skills: Skills,
    /// The name of the skill; `None`: all skills of the folder.
    name: Option<String>,
    /// The command that lists these skills, for hints.
    list: String,
}

impl SkillSelection {
    fn parse(word: &str, run: &Run) -> Result<SkillSelection> {
        let path = run.folder.join(word);
        // A path of SKILL.md: CI passes the changed files.
        let is_document = is_document(path.file_name()) && path.is_file();
        if !word.contains('/') && !is_document && word != "." && word != ".." {
            return Ok(SkillSelection {
                skills: run.skills.clone(),
                name: Some(word.to_string()),
                list: run.skills_command("list"),
            });
        }
        let path = match path.parent() {
            Some(skill) if is_document => skill.to_path_buf(),
            _ => path,
        };
        let path = resolved_path(&path).map_err(|error| {
            let shown = text::one_line(word, limits::SUMMARY_CHARS);
            let cause = OpenError::from(error).user_message();
            Error::new(ErrorKind::Io, format!("failed to open `{shown}`: {cause}")).with_hint(
                format!(
                    "an argument with a slash is the path of a skill's folder; `{}` lists the names",
                    run.skills_command("list")
                ),
            )
        })?;
        match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
            (Some(folder), Some(name)) if holds_document(&path) => Ok(SkillSelection {
                list: skills_command("list", &[folder.into()]),
                skills: run.skills.with_folders(vec![folder.to_path_buf()]).addressed_by_path(),
                name: Some(name.to_string()),
            }),
            _ => Ok(SkillSelection {
                list: skills_command("list", &[path.clone().into()]),
                skills: run.skills.with_folders(vec![path]).addressed_by_path(),
                name: None,
            }),
        }
    }

    /// Opens the selected skill, which must be a single one.
    fn skill(&self) -> Result<Skill> {
        match &self.name {
            Some(name) => self.skills.open_any(name).map_err(|cause| {
                let catalogue = self.skills.catalogue();
                let error = catalogue.skill_named(name).and_then(|skill| skill.error.as_ref());
                match error {
                    // The catalogue has the message for users.
                    Some(error) => {
                        let name = text::one_line_name(name);
                        self.not_found(&format!("the skill `{name}` cannot be used: {error}"))
                    }
                    None => self.not_found(&cause),
                }
            }),
            None => Err(self.not_found(&format!(
                "{} contains no SKILL.md: it is not a skill",
                shown_folders(&self.skills)
            ))),
        }
    }

    /// The error for a skill that is not found; problems of the folders come first.
    fn not_found(&self, message: &str) -> Error {
        const FAILED: &str = "failed to find the skill";
        let catalogue = self.skills.catalogue();
        if let Some(problem) = unusable_folder(&catalogue) {
            return folder_error(FAILED, problem);
        }
        let error = match catalogue.folder_errors.first() {
            // The skill may be in the folder that cannot be read.
            Some(problem) => format!("{FAILED}: {message}; {}", problem.message),
            None => format!("{FAILED}: {message}"),
        };
        let error = Error::new(ErrorKind::Io, error);
        error.with_hint(if catalogue.skills.is_empty() {
            let folders = shown_folders(&self.skills);
            format!("{folders} contains no skills; use --skills DIR")
        } else {
            format!("`{}` lists all", self.list)
        })
    }
}

/// The path of a folder with all links resolved, except the last component: a skill that is a
/// link keeps its name and is treated as a link.
fn resolved_path(path: &Path) -> std::io::Result<PathBuf> {
    let found = path.canonicalize()?;
    let path: PathBuf = path.components().collect();
    Ok(match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if path.is_symlink() && !is_hidden(name) => {
            folder.canonicalize()?.join(name)
        }
        _ => found,
    })
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// The problem of a skills folder that explains why there are no skills.
fn unusable_folder(catalogue: &Catalogue) -> Option<&Problem> {
    let mut problems = catalogue.problems.iter();
    let skill = problems.find(|problem| problem.rule == Rule::FolderIsSkill);
    let found = catalogue.folder_errors.first().or(skill);
    found.filter(|_| catalogue.skills.is_empty())
}

/// The error for a problem of a skills folder.
fn folder_error(failed: &str, problem: &Problem) -> Error {
    let text = match problem.rule {
        // The message names the folder itself.
        Rule::UnreadableFolder => problem.message.clone(),
        _ => problem.to_string(),
    };
    let error = Error::new(ErrorKind::Io, format!("{failed}: {text}"));
    match &problem.fix {
        Some(fix) => error.with_hint(fix),
        None => error,
    }
}

/// The error for a skill that was deleted in the meantime.
fn deleted_error(name: &str) -> Error {
    Error::new(ErrorKind::Io, format!("failed to read the skill `{name}`: it was deleted"))
}

fn is_document(name: Option<&OsStr>) -> bool {
    name.is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"))
}

fn holds_document(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return false;
    };
    entries
        .take(limits::ENTRIES_READ)
        .filter_map(std::result::Result::ok)
        .any(|entry| is_document(Some(&entry.file_name())))
}

/// Prints one JSON object.
fn print_json(value: &impl Serialize, output: &mut Output) {
    // Structures of strings and numbers always serialize.
    output.print(&serde_json::to_string(value).unwrap_or_default());
}

/// A path relative to the working folder, where possible.
fn short_path(path: &Path, folder: &Path) -> PathBuf {
    match path.strip_prefix(folder) {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
        Ok(rest) => rest.to_path_buf(),
        Err(_) => path.to_path_buf(),
    }
}
