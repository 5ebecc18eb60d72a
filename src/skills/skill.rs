//! One skill: its document and its files.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::limits;
use crate::skills::SkillError;
use crate::text;
use crate::world::confined::{self, EntryKind, FileTree, OpenError, Root, WalkLimits};

/// One skill, opened.
#[derive(Debug)]
pub struct Skill {
    /// The folder's name.
    pub name: String,
    /// What a command of the person takes for it: the name, or the path where
    /// the name would not be found.
    pub address: String,
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

impl Skill {
    /// The skill's files, as far as anybody wants to read a list of them.
    pub fn files(&self) -> FileTree {
        let limits = WalkLimits {
            depth: limits::WALK_DEPTH,
            files: limits::DOCUMENT_FILES + 1,
            entries: limits::WALK_ENTRIES,
        };
        self.root.walk(limits).unwrap_or_default()
    }

    /// Why a file of the skill cannot be read or run, for a model: with the
    /// files that it may have meant. `what` is how the file is called.
    pub fn explain(&self, what: &str, verb: &str, path: &str, refusal: &OpenError) -> String {
        let shown = text::one_line(path, limits::SUMMARY_CHARS);
        let name = &self.name;
        let message = format!("{what} `{shown}` of the skill `{name}` cannot be {verb}: {refusal}");
        if !matches!(refusal, OpenError::NotFound) {
            return message;
        }
        let tree = self.files();
        let names: Vec<_> = tree.files.iter().map(|path| path.to_string_lossy()).collect();
        let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
        // The right name in a wrong folder is the usual slip.
        let same = names.iter().filter(|name| base(name) == base(path)).map(AsRef::as_ref);
        let mut near: Vec<&str> = same.take(limits::NEAR_NAMES).collect();
        if near.is_empty() {
            near = text::nearest(path, names.iter().map(AsRef::as_ref), limits::NEAR_NAMES);
        }
        if near.is_empty() {
            let folders: BTreeSet<&str> = names
                .iter()
                .flat_map(|name| name.match_indices('/').map(|(end, _)| &name[..end]))
                .collect();
            near = text::nearest(path, folders.into_iter(), limits::NEAR_NAMES);
        }
        if near.is_empty() {
            return message;
        }
        format!("{message}; did you mean `{}`?", near.join("` or `"))
    }

    /// Reads the whole document. The error tells a model what is wrong.
    pub fn document(&self) -> Result<Document, SkillError> {
        let (file_name, file) = open_document(&self.root)
            .map_err(|refusal| SkillError::Document(self.document_fault(&refusal)))?;
        let fault = |what: &str| {
            SkillError::Document(format!("{file_name} of the skill `{}` {what}", self.name))
        };
        let piece = confined::read_whole(&file, limits::DOCUMENT_BYTES)
            .map_err(|refusal| fault(&format!("cannot be read: {refusal}")))?;
        if piece.more {
            return Err(fault("is larger than 1 MiB: read parts of it with read_file_in_skill"));
        }
        let text = String::from_utf8(piece.bytes)
            .map_err(|_| fault("is not UTF-8 text: its owner has to save it as UTF-8"))?;
        Ok(Document { file_name, text })
    }

    /// The document's file name, without reading it.
    pub fn document_name(&self) -> Result<String, String> {
        open_document(&self.root)
            .map(|(name, _)| name)
            .map_err(|refusal| self.document_fault(&refusal))
    }

    fn document_fault(&self, refusal: &OpenError) -> String {
        match refusal {
            OpenError::NotFound => format!("the skill `{}` has no SKILL.md", self.name),
            other => format!("SKILL.md of the skill `{}` cannot be read: {other}", self.name),
        }
    }
}

/// The document's usual name.
pub(super) const DOCUMENT: &str = "SKILL.md";

/// Whether this is a name of the document, in any letter case.
pub(super) fn is_document(name: &str) -> bool {
    name.eq_ignore_ascii_case(DOCUMENT)
}

/// `SKILL.md` itself first, then any other letter case. A folder of such a
/// name is passed over, and told where there is no file.
pub(super) fn open_document(root: &Root) -> Result<(String, fs::File), OpenError> {
    let lacking = match root.file(DOCUMENT) {
        Err(refusal @ (OpenError::NotFound | OpenError::NotAFile("a folder"))) => refusal,
        other => return other.map(|file| (DOCUMENT.to_string(), file)),
    };
    let entries = root.entries(limits::SKILLS)?;
    let files = entries.list.iter();
    let files = files.filter(|entry| entry.kind != EntryKind::Folder && entry.name != DOCUMENT);
    let mut names = files.filter_map(|entry| entry.name.to_str());
    let Some(name) = names.find(|name| is_document(name)) else {
        return Err(lacking);
    };
    let name = name.to_string();
    let file = root.file(&name)?;
    Ok((name, file))
}
