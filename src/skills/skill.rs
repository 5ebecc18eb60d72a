//! One skill: its document and its files.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::private::{PrivateFiles, ReadRule};
use base::limits;
use base::text;
use host::confined::{
    self, EntryKind, FileTree, OpenError, OpenFile, PathTarget, Root, WalkLimits,
};

/// One skill, opened.
#[derive(Debug)]
pub struct Skill {
    /// The name by which the tools find it: the folder's, or a longer one.
    pub name: String,
    /// The argument by which a command finds it: the name, or the path where the name
    /// would not be found.
    pub address: String,
    /// The program in commands that are suggested to the user, as a shell takes it.
    pub program: String,
    /// The folder, absolute.
    pub path: PathBuf,
    /// The opened folder: all files of the skill are opened through it.
    pub root: Root,
    /// Whether only what the lock file lists may be used of it.
    pub is_locked: bool,
    /// The files that the settings make private.
    pub(super) private: Rc<PrivateFiles>,
    /// Rule for reading it; made for the first file.
    pub(super) read_rule: OnceCell<ReadRule>,
}

/// A skill's document.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// Its file name: `SKILL.md` in any letter case.
    pub file_name: String,
    /// Its whole text.
    pub text: String,
}

impl Skill {
    /// The folder's name.
    pub fn folder_name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// The skill's files, as many as a list shows.
    pub fn files(&self) -> FileTree {
        self.walk(limits::DOCUMENT_FILES + 1)
    }

    /// The skill's files, as many as a search visits.
    pub fn all_files(&self) -> FileTree {
        self.walk(limits::WALK_ENTRIES)
    }

    fn walk(&self, files: usize) -> FileTree {
        let limits = WalkLimits { depth: limits::WALK_DEPTH, files, entries: limits::WALK_ENTRIES };
        self.root.walk(limits).unwrap_or_default()
    }

    /// Opens a file or folder that may be read for a model or client.
    pub fn open_readable(&self, path: impl AsRef<Path>) -> Result<PathTarget, OpenError> {
        let path = path.as_ref();
        self.root.open_target(path).and_then(|target| self.read_rule().check(path, target))
    }

    /// Rule for reading it for a model or client.
    pub fn read_rule(&self) -> &ReadRule {
        self.read_rule.get_or_init(|| self.private.rule_for(&self.root))
    }

    /// Error message for a model about a file of the skill that cannot be read or run,
    /// with the names that it may have meant. `what` is the kind of the file.
    pub fn file_error(&self, what: &str, verb: &str, path: &str, error: &OpenError) -> String {
        let shown = text::one_line(path, limits::SUMMARY_CHARS);
        let name = &self.name;
        let failure = format!("{what} `{shown}` of the skill `{name}` cannot be {verb}");
        let message = format!("{failure}: {error}");
        if !matches!(error, OpenError::NotFound) {
            return message;
        }
        let tree = self.files();
        let names: Vec<_> = tree.files.iter().map(|path| path.to_string_lossy()).collect();
        let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
        // The most common mistake is the right name in a wrong folder.
        let same = names.iter().filter(|name| base(name) == base(path)).map(AsRef::as_ref);
        let mut near: Vec<&str> = same.take(limits::SIMILAR_NAMES).collect();
        if near.is_empty() {
            near =
                text::similar_names(path, names.iter().map(AsRef::as_ref), limits::SIMILAR_NAMES);
        }
        if near.is_empty() {
            let is_similar = |name: &&str| {
                !text::similar_names(&base(path), [&*base(name)].into_iter(), 1).is_empty()
            };
            let similar = names.iter().map(AsRef::as_ref).filter(is_similar);
            near = similar.take(limits::SIMILAR_NAMES).collect();
        }
        if near.is_empty() {
            let folders: BTreeSet<&str> = names
                .iter()
                .flat_map(|name| name.match_indices('/').map(|(end, _)| &name[..end]))
                .collect();
            near = text::similar_names(path, folders.into_iter(), limits::SIMILAR_NAMES);
        }
        if near.is_empty() {
            return message;
        }
        format!(
            "{failure}: no such file or folder; did you mean `{}`? Otherwise list the folder",
            near.join("` or `")
        )
    }

    /// Reads the whole document. The error is meant for a model.
    pub fn read_document(&self) -> Result<Document, String> {
        let (file_name, open) = self.open_document()?;
        let describe = |what: &str| format!("{file_name} of the skill `{}` {what}", self.name);
        let piece = confined::read_whole(&open.file, limits::DOCUMENT_BYTES)
            .map_err(|error| describe(&format!("cannot be read: {error}")))?;
        if piece.has_more {
            return Err(describe("is larger than 1 MiB: read parts of it with read_file_in_skill"));
        }
        let text = String::from_utf8(piece.bytes)
            .map_err(|_| describe("is not UTF-8 text: its owner has to save it as UTF-8"))?;
        Ok(Document { file_name, text })
    }

    /// The document's file name, without reading it.
    pub fn document_file_name(&self) -> Result<String, String> {
        self.open_document().map(|(name, _)| name)
    }

    fn open_document(&self) -> Result<(String, OpenFile), String> {
        let opened = open_document(&self.root).and_then(|(name, open)| {
            Ok((name.clone(), self.read_rule().check_file(name.as_ref(), open)?))
        });
        opened.map_err(|error| match error {
            OpenError::NotFound => format!("the skill `{}` has no SKILL.md", self.name),
            other => format!("SKILL.md of the skill `{}` cannot be read: {other}", self.name),
        })
    }
}

/// The document's standard name.
pub(super) const DOCUMENT_NAME: &str = "SKILL.md";

/// Whether this is a name of the document, in any letter case.
pub fn is_document_name(name: &str) -> bool {
    name.eq_ignore_ascii_case(DOCUMENT_NAME)
}

/// Whether the folder has a document, also one that cannot be opened.
pub(super) fn has_document(root: &Root) -> bool {
    !matches!(open_document(root), Err(OpenError::NotFound))
}

/// Opens `SKILL.md` itself or else a file of this name in any letter case. A folder of
/// that name is skipped, and is the reported error if there is no such file.
pub(super) fn open_document(root: &Root) -> Result<(String, OpenFile), OpenError> {
    let open = |name: &str| match root.open_target(name)? {
        PathTarget::File(open) => Ok((name.to_string(), open)),
        PathTarget::Folder(_) => Err(OpenError::NotAFile("a folder")),
    };
    let lacking = match open(DOCUMENT_NAME) {
        Err(error @ (OpenError::NotFound | OpenError::NotAFile("a folder"))) => error,
        other => return other,
    };
    let entries = root.entries(limits::SKILLS)?;
    let files = entries.entries.iter();
    let files =
        files.filter(|entry| entry.kind != EntryKind::Folder && entry.name != DOCUMENT_NAME);
    let mut names = files.filter_map(|entry| entry.name.to_str());
    match names.find(|name| is_document_name(name)) {
        Some(name) => open(name),
        None => Err(lacking),
    }
}
