//! `skills`: what there is, what is wrong with it, a new one, a venv for one.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::args::{Typed, usage};
use crate::cli::setup::{Run, Start};
use crate::config::Needs;
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::skills::{Skill, Skills};
use crate::text;
use crate::world::output::{Format, Output};

mod check;
mod list;
mod new;
mod setup;
mod show;
mod view;

/// The words that `skills` knows.
const WORDS: [&str; 5] = ["list", "show", "check", "new", "setup"];

/// Does what the first word says; without one the skills are listed.
pub fn run(mut typed: Typed, start: &Start, output: &mut Output) -> Result<u8> {
    let mut words = typed.words.drain(..).map(|word| {
        word.into_string()
            .map_err(|word| usage(format!("`{}` is not UTF-8 text", word.to_string_lossy())))
    });
    let word = words.next().transpose()?.unwrap_or("list".into());
    let names: Vec<String> = words.collect::<Result<_>>()?;
    if !WORDS.contains(&word.as_str()) {
        return Err(unknown(&word));
    }
    if typed.fix && word != "check" {
        return Err(usage("--fix belongs to `skills check`"));
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
        ("new", [name]) => new::run(&open(typed, start, output)?, name, is_json, output),
        ("setup", [name, requirements @ ..]) => {
            let run = open(typed, start, output)?;
            setup::run(&run, name, requirements, is_json, output)
        }
        ("list", _) => Err(surplus("list", "takes no names")),
        (word, []) => Err(surplus(word, "needs the name of a skill")),
        (word, _) => Err(surplus(word, "takes one name")),
    }
}

fn open(typed: Typed, start: &Start, output: &mut Output) -> Result<Run> {
    Run::new(typed, start, Needs::Skills, output)
}

fn surplus(word: &str, what: &str) -> Error {
    usage(format!("skills {word} {what}"))
        .with_hint("a prompt that begins with `skills` comes after --: skills-runner -- skills …")
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
struct Place {
    skills: Skills,
    /// The skill's name; `None`: all that lie in the folder.
    name: Option<String>,
}

impl Place {
    fn of(word: &str, run: &Run) -> Result<Place> {
        if !word.contains('/') && word != "." && word != ".." {
            return Ok(Place {
                skills: run.skills.clone(),
                name: Some(word.to_string()),
            });
        }
        let path = run.folder.join(word);
        let path = path.canonicalize().map_err(|error| {
            let shown = text::one_line(word, limits::SUMMARY_CHARS);
            Error::new(Kind::Io, format!("failed to open `{shown}`: {error}"))
        })?;
        match (
            path.parent(),
            path.file_name().and_then(|name| name.to_str()),
        ) {
            (Some(folder), Some(name)) if holds_document(&path) => Ok(Place {
                skills: Skills::new(vec![folder.to_path_buf()]),
                name: Some(name.to_string()),
            }),
            _ => Ok(Place {
                skills: Skills::new(vec![path]),
                name: None,
            }),
        }
    }

    /// The one skill that was named.
    fn skill(&self) -> Result<Skill> {
        let found = match &self.name {
            Some(name) => self.skills.find(name),
            None => Err(format!(
                "{} holds no SKILL.md: it is no skill",
                shown_folders(&self.skills)
            )),
        };
        found
            .map_err(|message| Error::new(Kind::Io, format!("failed to find the skill: {message}")))
    }
}

fn holds_document(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return false;
    };
    entries
        .take(limits::ENTRIES_READ)
        .filter_map(std::result::Result::ok)
        .any(|entry| entry.file_name().eq_ignore_ascii_case("SKILL.md"))
}

fn shown_folders(skills: &Skills) -> String {
    let folders = skills
        .folders()
        .iter()
        .map(|folder| folder.display().to_string());
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
        Ok(rest) if !rest.as_os_str().is_empty() => rest.to_path_buf(),
        _ => path.to_path_buf(),
    }
}
