//! `skills`: what there is, what is wrong with it, a new one, a venv for one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::args::{CommandLine, usage};
use crate::cli::setup::{Run, Startup, skills_command};
use crate::cli::values;
use crate::config::ConfigNeeds;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::settings::SCRIPT_SANDBOX;
use crate::skills::{Catalogue, Problem, Skill, Skills};
use crate::text;
use crate::world::confined::OpenError;
use crate::world::output::{Format, Output};

mod check;
mod json_path;
mod list;
mod new;
mod setup;
mod show;
mod skill_json;

/// The words that `skills` knows.
const WORDS: [&str; 5] = ["list", "show", "check", "new", "setup"];

/// Does what the first word says; without one the skills are listed.
pub(super) fn run(mut typed: CommandLine, start: &Startup, output: &mut Output) -> Result<u8> {
    let mut words = values::texts(std::mem::take(&mut typed.words))?.into_iter();
    let word = words.next().unwrap_or("list".into());
    let names: Vec<String> = words.collect();
    if !WORDS.contains(&word.as_str()) {
        return Err(unknown(&word));
    }
    if typed.fix && word != "check" {
        return Err(usage("--fix belongs to `skills check`"));
    }
    let mut typed_settings = typed.settings.iter();
    if word == "setup" && typed_settings.any(|(name, ..)| *name == SCRIPT_SANDBOX) {
        let text = "--sandbox does not go with `skills setup`, which needs the network";
        return Err(usage(text)
            .with_hint("a setup runs without a sandbox; what it installs is used in one"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let is_json = typed.format != Format::Text;
    match (word.as_str(), names.as_slice()) {
        ("list", []) => list::run(&open(typed, start, output)?, is_json, output),
        ("show", [name]) => show::run(&open(typed, start, output)?, name, is_json, output),
        ("check", names) => {
            let fix = typed.fix;
            let run = open(typed, start, output)?;
            check::run(&run, names, fix, is_json, output)
        }
        // It makes the folder where it is missing.
        ("new", [name]) => {
            let run = Run::new(typed, start, ConfigNeeds::Skills, output)?;
            new::run(&run, name, is_json, output)
        }
        ("setup", [name, requirements @ ..]) => {
            let run = open(typed, start, output)?;
            setup::run(&run, name, requirements, is_json, output)
        }
        ("list", _) => Err(surplus("list", "takes no names")),
        (word, []) => Err(nameless(word)),
        (word, _) => Err(surplus(word, "takes one name")),
    }
}

fn open(typed: CommandLine, start: &Startup, output: &mut Output) -> Result<Run> {
    Run::with_skills(typed, start, ConfigNeeds::Skills, output)
}

fn surplus(word: &str, what: &str) -> Error {
    usage(format!("skills {word} {what}"))
        .with_hint("a prompt that begins with `skills` comes after --: skills-runner -- skills …")
}

fn nameless(word: &str) -> Error {
    let more = if word == "setup" { " [PACKAGE]..." } else { "" };
    usage(format!("skills {word} needs the name of a skill"))
        .with_hint(format!("skills-runner skills {word} NAME{more}"))
}

fn unknown(word: &str) -> Error {
    let shown = text::one_line(word, limits::SUMMARY_CHARS);
    let hint = match text::nearest(word, WORDS.into_iter(), 1).first() {
        Some(near) => format!("did you mean `skills {near}`?"),
        None => format!(
            "its words are {}; a prompt that begins with `skills` comes after --: skills-runner -- skills …",
            WORDS.join(", ")
        ),
    };
    usage(format!("`skills {shown}` is no command")).with_hint(hint)
}

/// Skills that a person names: in the skills folders by their names, anywhere
/// else by a path, which is known by its slash (or is `.` or `..`).
struct SkillSelection {
    skills: Skills,
    /// The skill's name; `None`: all that lie in the folder.
    name: Option<String>,
    /// What lists them, for a name that is none.
    list: String,
}

impl SkillSelection {
    fn of(word: &str, run: &Run) -> Result<SkillSelection> {
        let path = run.folder.join(word);
        // As CI has it, which goes by the files that were changed.
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
        let path = real(&path).map_err(|error| {
            let shown = text::one_line(word, limits::SUMMARY_CHARS);
            let cause = OpenError::from(error).for_people();
            Error::new(ErrorKind::Io, format!("failed to open `{shown}`: {cause}")).with_hint(
                format!(
                    "a word with a slash is the path of a skill's folder; `{}` gives the names",
                    run.skills_command("list")
                ),
            )
        })?;
        match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
            (Some(folder), Some(name)) if holds_document(&path) => Ok(SkillSelection {
                list: skills_command("list", &[folder.into()]),
                skills: run.skills.elsewhere(vec![folder.to_path_buf()]).named_by_path(),
                name: Some(name.to_string()),
            }),
            _ => Ok(SkillSelection {
                list: skills_command("list", &[path.clone().into()]),
                skills: run.skills.elsewhere(vec![path]).named_by_path(),
                name: None,
            }),
        }
    }

    /// The one skill that was named.
    fn skill(&self) -> Result<Skill> {
        match &self.name {
            Some(name) => self.skills.find_any(name).map_err(|cause| {
                let catalogue = self.skills.catalogue();
                let fault = catalogue.named(name).and_then(|skill| skill.fault.as_ref());
                match fault {
                    // In words for people.
                    Some(fault) => {
                        let name = text::one_name(name);
                        self.lacks(&format!("the skill `{name}` cannot be used: {fault}"))
                    }
                    None => self.lacks(&cause),
                }
            }),
            None => Err(self.lacks(&format!(
                "{} holds no SKILL.md: it is no skill",
                shown_folders(&self.skills)
            ))),
        }
    }

    /// Why the skill is not found: first of all for its folders.
    fn lacks(&self, message: &str) -> Error {
        const FAILED: &str = "failed to find the skill";
        let catalogue = self.skills.catalogue();
        if let Some(problem) = unusable_folder(&catalogue) {
            return cause(FAILED, problem);
        }
        let error = match catalogue.faults.first() {
            // It may lie in there.
            Some(fault) => format!("{FAILED}: {message}; {}", fault.message),
            None => format!("{FAILED}: {message}"),
        };
        let error = Error::new(ErrorKind::Io, error);
        error.with_hint(if catalogue.skills.is_empty() {
            let folders = shown_folders(&self.skills);
            format!("nothing is in {folders}; --skills DIR names a folder of skills")
        } else {
            format!("`{}` gives all", self.list)
        })
    }
}

/// Where a folder lies, without links on the way. A skill that is a link itself stays
/// one: it has its own name, and what holds for links.
fn real(path: &Path) -> std::io::Result<PathBuf> {
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

/// What is wrong with the skills folders, where that is why there is no skill.
fn unusable_folder(catalogue: &Catalogue) -> Option<&Problem> {
    let mut problems = catalogue.problems.iter();
    let skill = problems.find(|problem| problem.rule == "folder-is-skill");
    let found = catalogue.faults.first().or(skill);
    found.filter(|_| catalogue.skills.is_empty())
}

/// The failure that a problem with a skills folder is.
fn cause(failed: &str, problem: &Problem) -> Error {
    let text = match problem.rule {
        // It names the folder itself.
        "unreadable-folder" => problem.message.clone(),
        _ => problem.to_string(),
    };
    let error = Error::new(ErrorKind::Io, format!("{failed}: {text}"));
    match &problem.fix {
        Some(fix) => error.with_hint(fix),
        None => error,
    }
}

/// A skill that has been removed between two looks.
fn gone(name: &str) -> Error {
    Error::new(ErrorKind::Io, format!("failed to read the skill `{name}`: it is gone"))
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

fn shown_folders(skills: &Skills) -> String {
    let folders = skills.folders().iter().map(|folder| folder.display().to_string());
    folders.collect::<Vec<_>>().join(", ")
}

/// One object for programs.
fn print_json(value: &impl Serialize, output: &mut Output) {
    // A structure of strings and numbers always has a JSON form.
    output.print(&serde_json::to_string(value).unwrap_or_default());
}

/// A path as short as a person would write it: relative to where they are.
fn near(path: &Path, folder: &Path) -> PathBuf {
    match path.strip_prefix(folder) {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
        Ok(rest) => rest.to_path_buf(),
        Err(_) => path.to_path_buf(),
    }
}
