//! The skills that an argument of a `skills` command selects.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::cli::folders::{shown_folders, skills_command};
use crate::cli::run::Run;
use base::error::{Error, ErrorKind, Fault, Result};
use base::limits;
use base::text;
use host::confined::OpenError;
use skills::{Catalogue, Problem, Rule, Skill, SkillSummary, Skills};

/// The skills that an argument selects: by a name in the skills folders, or by a path, which
/// contains a slash or is `.` or `..`.
pub(super) struct SkillSelection {
    /// The skills of the folders.
    pub skills: Skills,
    /// The name of the skill; `None`: all skills of the folder.
    pub name: Option<String>,
    /// The command that lists these skills, for hints.
    list: String,
}

impl SkillSelection {
    /// Finds what the argument selects.
    pub(super) fn parse(word: &str, run: &Run) -> Result<SkillSelection> {
        let path = run.folder.join(word);
        // A path of SKILL.md: CI passes the changed files.
        let is_document = is_document(path.file_name()) && path.is_file();
        // `PLUGIN/DIR:SKILL` is a name.
        let is_path = word.contains('/') && (!word.contains(':') || path.exists());
        if !is_path && !is_document && word != "." && word != ".." {
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
        let name = path.file_name().and_then(OsStr::to_str).filter(|_| holds_document(&path));
        Ok(SkillSelection {
            list: skills_command("list", &[path.clone().into()]),
            name: name.map(str::to_string),
            skills: run.skills.with_folder(path).addressed_by_path(),
        })
    }

    /// Opens the selected skill, which must be a single one.
    pub(super) fn skill(&self) -> Result<Skill> {
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

    /// The entry of the selected skill in a catalogue, and the folders of that: where there are
    /// more skills than are listed, the skill's own.
    pub(super) fn entry(&self, skill: &Skill) -> Result<(SkillSummary, Skills)> {
        let find = |skills: Skills, name: &str| {
            let summary = skills.catalogue().skill_named(name)?.clone();
            Some((summary, skills))
        };
        find(self.skills.clone(), &skill.name)
            .or_else(|| find(self.skills.with_folder(skill.path.clone()), &skill.folder_name()))
            .ok_or_else(|| {
                let text = format!("failed to read the skill `{}`: it was deleted", skill.name);
                Error::new(ErrorKind::Io, text)
            })
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
pub(super) fn unusable_folder(catalogue: &Catalogue) -> Option<&Problem> {
    catalogue.folder_errors.first().filter(|_| catalogue.skills.is_empty())
}

/// The error for a problem of a skills folder.
pub(super) fn folder_error(failed: &str, problem: &Problem) -> Error {
    let text = match problem.rule {
        // The message names the folder itself.
        Rule::UnreadableFolder => problem.message.clone(),
        _ => problem.to_string(),
    };
    let fault = Fault { message: text, fix: problem.fix.clone() };
    Error::caused_by(ErrorKind::Io, failed, fault)
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
