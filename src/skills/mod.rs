//! The skills folders: what is there, and one skill of it.
//!
//! A skill is a direct, non-hidden subfolder (or a link to a folder). Nothing
//! is remembered between two calls: a skill changed on disk is seen by the
//! next one. Discovery reads the frontmatter only. What cannot be used is
//! still listed, with the reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::frontmatter::{Frontmatter, Severity};
use crate::text;
use crate::world::confined::{self, Refusal, Root, Tree, WalkLimits};

pub mod frontmatter;
pub mod python;
pub mod yaml;

/// The folders that skills are looked for in; the first one wins a name.
#[derive(Clone, Debug)]
pub struct Skills {
    folders: Vec<PathBuf>,
}

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
    /// What is wrong with the document and stops nothing, with its line.
    pub findings: Vec<String>,
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

/// One skill, opened.
#[derive(Debug)]
pub struct Skill {
    /// The folder's name.
    pub name: String,
    /// The folder, absolute.
    pub path: PathBuf,
    /// The only door to what is in it.
    pub root: Root,
}

/// A skill's document.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// Its file name: `SKILL.md` in any letter case.
    pub file_name: String,
    /// All of its text.
    pub text: String,
}

impl Skills {
    /// Looks into these folders, which may be missing.
    pub fn new(folders: Vec<PathBuf>) -> Skills {
        Skills { folders }
    }

    /// The folders, for messages.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Reads what there is.
    pub fn catalogue(&self) -> Catalogue {
        let mut skills = BTreeMap::new();
        let mut faults = Vec::new();
        for folder in &self.folders {
            match names(folder) {
                Ok(names) => {
                    for name in names {
                        if skills.len() < limits::SKILLS {
                            skills
                                .entry(name)
                                .or_insert_with_key(|name| summary(folder, name));
                        }
                    }
                }
                Err(error) => faults.push(describe(folder, &error)),
            }
        }
        Catalogue {
            skills: skills.into_values().collect(),
            faults,
        }
    }

    /// Opens a skill by its folder's name, or by the name in its frontmatter.
    /// The error tells a model what to do instead.
    pub fn find(&self, name: &str) -> Result<Skill, String> {
        if let Some(skill) = self.open(name)? {
            return Ok(skill);
        }
        let catalogue = self.catalogue();
        let by_alias = catalogue
            .skills
            .iter()
            .find(|skill| skill.alias.as_deref() == Some(name));
        if let Some(skill) = by_alias
            .map(|skill| self.open(&skill.name))
            .transpose()?
            .flatten()
        {
            return Ok(skill);
        }
        Err(catalogue.not_found(name))
    }

    fn open(&self, name: &str) -> Result<Option<Skill>, String> {
        if !is_skill_name(name) {
            return Ok(None);
        }
        for folder in &self.folders {
            let path = folder.join(name);
            match Root::open(&path) {
                Ok(root) => {
                    return Ok(Some(Skill {
                        name: name.to_string(),
                        path,
                        root,
                    }));
                }
                Err(Refusal::NotFound | Refusal::NotAFolder) => {}
                Err(refusal) => {
                    return Err(format!("the skill `{name}` cannot be opened: {refusal}"));
                }
            }
        }
        Ok(None)
    }
}

impl Catalogue {
    /// The message for a name that is no skill's.
    fn not_found(&self, name: &str) -> String {
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

impl Skill {
    /// The skill's files, as far as anybody wants to read a list of them.
    pub fn files(&self) -> Tree {
        let limits = WalkLimits {
            depth: limits::WALK_DEPTH,
            files: limits::DOCUMENT_FILES + 1,
            entries: limits::WALK_ENTRIES,
        };
        self.root.walk(limits).unwrap_or_default()
    }

    /// Why a file of the skill cannot be read or run, for a model: with the
    /// files that it may have meant. `what` is how the file is called.
    pub fn explain(&self, what: &str, verb: &str, path: &str, refusal: &Refusal) -> String {
        let shown = text::one_line(path, limits::SUMMARY_CHARS);
        let name = &self.name;
        let message = format!("{what} `{shown}` of the skill `{name}` cannot be {verb}: {refusal}");
        if !matches!(refusal, Refusal::NotFound) {
            return message;
        }
        let tree = self.files();
        let names: Vec<_> = tree
            .files
            .iter()
            .map(|path| path.to_string_lossy())
            .collect();
        let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
        // The right name in a wrong folder is the usual slip.
        let same = names
            .iter()
            .filter(|name| base(name) == base(path))
            .map(AsRef::as_ref);
        let mut near: Vec<&str> = same.take(limits::NEAR_NAMES).collect();
        if near.is_empty() {
            near = text::nearest(path, names.iter().map(AsRef::as_ref), limits::NEAR_NAMES);
        }
        if near.is_empty() {
            return message;
        }
        format!("{message}; did you mean `{}`?", near.join("` or `"))
    }

    /// Reads the whole document. The error tells a model what is wrong.
    pub fn document(&self) -> Result<Document, String> {
        let (file_name, file) =
            open_document(&self.root).map_err(|refusal| self.document_fault(&refusal))?;
        let fault = |what: &str| format!("{file_name} of the skill `{}` {what}", self.name);
        let piece = confined::read_whole(&file, limits::DOCUMENT_BYTES)
            .map_err(|refusal| fault(&format!("cannot be read: {refusal}")))?;
        if piece.more {
            return Err(fault(
                "is larger than 1 MiB: read parts of it with read_file_in_skill",
            ));
        }
        let text = String::from_utf8(piece.bytes)
            .map_err(|_| fault("is not UTF-8 text: its owner has to save it as UTF-8"))?;
        Ok(Document { file_name, text })
    }

    fn document_fault(&self, refusal: &Refusal) -> String {
        match refusal {
            Refusal::NotFound => format!(
                "the skill `{}` has no SKILL.md; read_file_in_skill with file_path \".\" lists what it has",
                self.name
            ),
            other => format!(
                "SKILL.md of the skill `{}` cannot be read: {other}",
                self.name
            ),
        }
    }
}

/// Whether a name can be that of a skill's folder.
fn is_skill_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']) && name.len() <= 255
}

/// Names of the subfolders that are skills.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
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

fn describe(folder: &Path, error: &std::io::Error) -> String {
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

fn summary(folder: &Path, name: &str) -> Summary {
    let empty = |fault: String| Summary {
        name: name.to_string(),
        description: String::new(),
        alias: None,
        findings: Vec::new(),
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
            findings: findings(&matter, &file_name),
            name: name.to_string(),
            fault: None,
        },
        Err(refusal) => empty(format!("{file_name} cannot be read: {refusal}")),
    }
}

/// The faults of a frontmatter; what was repaired is no fault.
fn findings(matter: &Frontmatter, file_name: &str) -> Vec<String> {
    let faults = matter
        .diagnostics
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    faults
        .map(|fault| format!("{file_name} line {}: {}", fault.line, fault.message))
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

/// `SKILL.md` itself first, then any other letter case.
fn open_document(root: &Root) -> Result<(String, fs::File), Refusal> {
    const USUAL: &str = "SKILL.md";
    match root.file(USUAL) {
        Err(Refusal::NotFound) => {}
        other => return other.map(|file| (USUAL.to_string(), file)),
    }
    let entries = root.entries(limits::SKILLS)?;
    let is_document = |name: &&str| name.eq_ignore_ascii_case(USUAL);
    let mut names = entries.list.iter().filter_map(|entry| entry.name.to_str());
    let name = names
        .find(is_document)
        .ok_or(Refusal::NotFound)?
        .to_string();
    let file = root.file(&name)?;
    Ok((name, file))
}
