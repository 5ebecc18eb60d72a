//! What a script has changed of what decides about later runs: its skill's document,
//! the venv that runs it, what a setup installs, what git does in its folder.
//!
//! Small files are compared; of folders the time of the last change (`ctime`) tells,
//! which no program can set. On a file system of another machine, with another clock,
//! and for what was written through memory on a `tmpfs`, it may say nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::Skill;
use crate::skills::skill::is_document;
use crate::skills::venv::SETUP_FOLDER;
use crate::world::confined::{Root, read_whole};

/// A moment, by the clock of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(i64, i64);

impl Moment {
    fn of(status: &Metadata) -> Moment {
        Moment(status.ctime(), status.ctime_nsec())
    }
}

/// What decides about a skill, before a script of it runs.
#[derive(Debug)]
pub struct Before {
    watched: BTreeMap<PathBuf, State>,
    moment: Moment,
}

/// What a watched name is.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// A small file with these bytes.
    File(Vec<u8>),
    /// A folder that lies here; a large file, or one behind a link that leads out.
    Other(Option<PathBuf>),
}

/// Whether this name in a skill's folder decides about later runs.
fn is_watched(name: &str) -> bool {
    // The last two make a repository of the folder itself.
    let others = [
        "venv",
        ".venv",
        SETUP_FOLDER,
        "pyproject.toml",
        ".git",
        "HEAD",
        "config",
    ];
    is_document(name) || name.starts_with("requirements") || others.contains(&name)
}

impl Before {
    /// What there is, at the moment when `mark` was changed last.
    pub fn of(skill: &Skill, mark: &Path) -> io::Result<Before> {
        Ok(Before {
            watched: watched(&skill.path),
            moment: Moment::of(&mark.symlink_metadata()?),
        })
    }

    /// What has changed since, as paths in the skill; of a folder what is found first.
    pub fn changed(&self, skill: &Skill) -> Vec<String> {
        let after = watched(&skill.path);
        let names: BTreeSet<&PathBuf> = self.watched.keys().chain(after.keys()).collect();
        let found =
            names
                .into_iter()
                .filter_map(|name| match (self.watched.get(name), after.get(name)) {
                    (Some(State::Other(Some(before))), Some(State::Other(Some(now))))
                        if before == now =>
                    {
                        let inner = first_changed(now, self.moment)?;
                        match inner.strip_prefix(now) {
                            Ok(rest) if !rest.as_os_str().is_empty() => Some(name.join(rest)),
                            _ => Some(name.clone()),
                        }
                    }
                    (before, now) => (before != now).then(|| name.clone()),
                });
        found.map(|path| path.display().to_string()).collect()
    }
}

/// Through the confined door, as everything of a skill; a folder that has taken the
/// place of another is opened anew.
fn watched(folder: &Path) -> BTreeMap<PathBuf, State> {
    let root = Root::open(folder);
    let small = |name: &str| {
        let file = root.as_ref().ok()?.file(name).ok()?;
        let piece = read_whole(&file, limits::DOCUMENT_BYTES).ok()?;
        (!piece.more).then_some(piece.bytes)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| is_watched(name));
    names
        .map(|name| {
            let state = match small(&name) {
                Some(bytes) => State::File(bytes),
                None => State::Other(folder.join(&name).canonicalize().ok()),
            };
            (PathBuf::from(name), state)
        })
        .collect()
}

/// The first thing in that folder, or the folder itself, that was changed later, or
/// comes after so many that nobody can say. What is added or removed changes its folder.
fn first_changed(folder: &Path, moment: Moment) -> Option<PathBuf> {
    let mut waiting = vec![folder.to_path_buf()];
    let mut left = limits::VENV_FILES;
    while let Some(path) = waiting.pop() {
        let Ok(status) = path.symlink_metadata() else {
            return Some(path);
        };
        left = left.saturating_sub(1);
        if Moment::of(&status) > moment || left == 0 {
            return Some(path);
        }
        if status.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.map(|entry| entry.path()));
        }
    }
    None
}
