//! The file of a skill that a path means: the path itself, or the one file or folder that it
//! names with another letter case, with the skill's folder in front, or without `.py`.
//!
//! Every candidate is opened through the skill's confined root. Nearer guesses are not made here:
//! [`Skill::file_error`] suggests them.

use std::collections::BTreeSet;

use crate::Skill;
use base::text::one_line_name;
use host::confined::{FileTree, OpenError, PathTarget};

/// A file or folder of a skill, opened.
#[derive(Debug)]
pub struct ResolvedFile {
    /// Its path in the skill's folder.
    pub path: String,
    /// The opened file or folder.
    pub target: PathTarget,
    /// The path that was asked for, if there is no such file.
    asked: Option<String>,
}

impl ResolvedFile {
    /// The note for a model that another file was taken, e.g. "read `a.md`, there is no `A.md`";
    /// `verb` says what was done with it.
    pub fn note(&self, verb: &str) -> Option<String> {
        let asked = one_line_name(self.asked.as_deref()?);
        Some(format!("{verb} `{}`, there is no `{asked}`", one_line_name(&self.path)))
    }
}

impl Skill {
    /// Opens the file or folder that a path means. An absolute path into the skill is taken as
    /// relative.
    pub fn resolve_file(&self, path: &str) -> Result<ResolvedFile, OpenError> {
        let relative = self.root.relative_path(path)?;
        // Compiled files, which no lock file lists, are not read then.
        if self.is_locked && relative.split('/').any(|name| name == "__pycache__") {
            return Err(OpenError::NotFound);
        }
        match self.open_readable(&relative) {
            Ok(target) => Ok(ResolvedFile { path: relative, target, asked: None }),
            Err(OpenError::NotFound) => {
                let meant = self.file_meant(&relative).ok_or(OpenError::NotFound)?;
                let target = self.open_readable(&meant)?;
                Ok(ResolvedFile { path: meant, target, asked: Some(relative) })
            }
            Err(error) => Err(error),
        }
    }

    /// The path of the one file or folder that a path without a file can mean.
    fn file_meant(&self, path: &str) -> Option<String> {
        let path = path.trim_start_matches("./");
        let wanted = self.path_behind_skill(path).unwrap_or(path).trim_matches('/');
        if wanted.is_empty() {
            return None;
        }
        let tree = self.all_files();
        let names = listed_paths(&tree);
        if names.contains(wanted) {
            return Some(wanted.to_string());
        }
        // Among the files that are not listed, another one may fit, too.
        if tree.is_cut {
            return None;
        }
        let lower = wanted.to_lowercase();
        let fits = |name: &&str| {
            let name = name.to_lowercase();
            name == lower || name.strip_suffix(".py") == Some(&lower)
        };
        let mut fitting = names.into_iter().filter(fits);
        let only = fitting.next()?;
        fitting.next().is_none().then(|| only.to_string())
    }

    /// The rest of a path after this skill's folder: `skills/NAME/` or `NAME/`.
    fn path_behind_skill<'p>(&self, path: &'p str) -> Option<&'p str> {
        let without = |prefix: &str| {
            let start = path.get(..prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then(|| &path[prefix.len()..])
        };
        [&*self.folder_name(), &self.name]
            .iter()
            .find_map(|name| without(&format!("skills/{name}/")).or(without(&format!("{name}/"))))
    }
}

/// The paths of the files of a tree and of the folders that hold them.
pub(super) fn listed_paths(tree: &FileTree) -> BTreeSet<&str> {
    let files = tree.files.iter().filter_map(|file| file.to_str());
    let folders = files.clone().flat_map(|file| {
        let ends = file.match_indices('/');
        ends.map(|(end, _)| &file[..end])
    });
    files.chain(folders).collect()
}
