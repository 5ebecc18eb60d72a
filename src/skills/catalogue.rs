//! What there is: discovery, which reads the frontmatter only. What cannot be
//! used is still listed, with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::frontmatter::{self, Frontmatter};
use crate::skills::skill::open_document;
use crate::skills::{Problem, Severity, is_skill_name};
use crate::text;
use crate::world::confined::{self, Refusal, Root};

/// What the catalogue tells of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The folder's name: the skill's name everywhere.
    pub name: String,
    /// From the frontmatter, or the document's first line of text; empty where
    /// there is no document.
    pub description: String,
    /// Another name, from the frontmatter.
    pub alias: Option<String>,
    /// The folder, as it was found.
    pub path: PathBuf,
    /// What is wrong with the document and stops nothing.
    pub problems: Vec<Problem>,
    /// Why the skill cannot be used, if it cannot.
    pub fault: Option<String>,
}

/// All skills.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Sorted by name.
    pub skills: Vec<Summary>,
    /// Folders that are missing or cannot be read, with the reason.
    pub faults: Vec<String>,
}

impl Catalogue {
    /// The message for a name that is no skill's.
    pub(super) fn not_found(&self, name: &str) -> String {
        let names = || self.skills.iter().map(|skill| skill.name.as_str());
        let shown = text::one_line(name, limits::SUMMARY_CHARS);
        if self.skills.is_empty() {
            return format!("there is no skill `{shown}`, and no other skill either");
        }
        let near = text::nearest(name, names(), limits::NEAR_NAMES);
        if !near.is_empty() {
            return format!(
                "there is no skill `{shown}`; did you mean `{}`?",
                near.join("` or `")
            );
        }
        let mut all: Vec<&str> = names().take(limits::NAMES).collect();
        if self.skills.len() > all.len() {
            all.push("… (list_skills gives all)");
        }
        format!(
            "there is no skill `{shown}`; the skills are: {}",
            all.join(", ")
        )
    }
}

/// Names of the subfolders that are skills.
pub(super) fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)?.take(limits::SKILLS) {
        let entry = entry?;
        // A name that is no text cannot be called by a model.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let kind = entry.file_type()?;
        let is_folder = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
        if is_folder && is_skill_name(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Why a skills folder cannot be read.
pub(super) fn describe(folder: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("the skills folder {} does not exist", folder.display())
        }
        _ => format!(
            "the skills folder {} cannot be read: {error}",
            folder.display()
        ),
    }
}

/// What there is to tell of the skill `name` in a skills folder.
pub(super) fn summary(folder: &Path, name: &str) -> Summary {
    let empty = |fault: String| Summary {
        name: name.to_string(),
        description: String::new(),
        alias: None,
        problems: Vec::new(),
        path: folder.join(name),
        fault: Some(fault),
    };
    let opened = Root::open(&folder.join(name)).and_then(|root| open_document(&root));
    let (file_name, file) = match opened {
        Ok(opened) => opened,
        Err(Refusal::NotFound) => return empty("it has no SKILL.md".into()),
        Err(refusal) => return empty(format!("SKILL.md cannot be read: {refusal}")),
    };
    match read_metadata(&file) {
        Ok((matter, description)) => Summary {
            alias: matter.name().filter(|alias| alias != name),
            description: text::cut(&description, limits::DESCRIPTION_BYTES).into_owned(),
            problems: problems(matter, &file_name),
            path: folder.join(name),
            name: name.to_string(),
            fault: None,
        },
        Err(refusal) => empty(format!("{file_name} cannot be read: {refusal}")),
    }
}

/// The faults of a frontmatter; what was repaired is no fault.
fn problems(matter: Frontmatter, file_name: &str) -> Vec<Problem> {
    let faults = matter
        .diagnostics
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error);
    faults
        .map(|fault| Problem::of_document(file_name, fault))
        .collect()
}

/// Name and description, from as little of the document as it takes.
fn read_metadata(file: &fs::File) -> Result<(Frontmatter, String), Refusal> {
    let mut head = confined::read_whole(file, limits::FRONTMATTER_BYTES)?;
    let matter = match frontmatter::parse_head(&head.bytes, !head.more) {
        Some(matter) => matter,
        None => {
            head = confined::read_whole(file, limits::DOCUMENT_BYTES)?;
            frontmatter::parse_head(&head.bytes, true).unwrap_or_default()
        }
    };
    let description = matter
        .description()
        .filter(|text| !text.trim().is_empty())
        .or_else(|| {
            let body = head.bytes.get(matter.body_start..).unwrap_or_default();
            frontmatter::first_line_of_text(&String::from_utf8_lossy(body)).map(str::to_string)
        });
    let description = description.map(|text| text::one_line(&text, limits::DESCRIPTION_BYTES));
    Ok((matter, description.unwrap_or_default()))
}
