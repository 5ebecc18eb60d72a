//! The folders that no link in a skills folder may lead to: `/`, the home folder, and
//! every folder above the home folder or above the working folder. Such a link would
//! give a model access to everything there, and no skill needs it.
//!
//! Folders are compared by device and inode, not by path: `/proc/self/root`, chains of
//! links and bind mounts lead to the same folder. A real folder in a skills folder is
//! not checked: the user may well work inside it.

use std::path::{Path, PathBuf};

use crate::ScriptSettings;
use host::confined::{Identity, Root, identity, real_path};

/// The folders from which the forbidden folders are computed, if known.
#[derive(Clone, Debug, Default)]
pub(super) struct Boundary {
    home: Option<PathBuf>,
    working_folder: Option<PathBuf>,
    /// The folder that no link may lead out of.
    limit: Option<PathBuf>,
}

/// Folders that a link must not lead to, each with its description.
pub(super) struct ForbiddenFolders(Vec<(Identity, &'static str)>);

impl Boundary {
    /// Creates the boundary from the settings of scripts; the home folder is the value of `HOME`.
    pub(super) fn new(scripts: &ScriptSettings) -> Boundary {
        let home = scripts.variable("HOME").filter(|home| !home.is_empty());
        Boundary {
            home: home.map(|home| scripts.user_folder.join(home)),
            working_folder: Some(scripts.user_folder.clone()),
            limit: None,
        }
    }

    /// The boundary that also refuses links out of the working folder.
    pub(super) fn within_working_folder(self) -> Boundary {
        let limit = self.working_folder.as_ref().and_then(|folder| folder.canonicalize().ok());
        Boundary { limit, ..self }
    }

    /// Returns the description of an opened folder if it lies outside of the limit.
    pub(super) fn outside(&self, folder: &Root) -> Option<&'static str> {
        let limit = self.limit.as_ref()?;
        let is_inside = real_path(folder).is_ok_and(|path| path.starts_with(limit));
        (!is_inside).then_some("a folder outside the working folder")
    }

    /// Returns the forbidden folders that exist now.
    pub(super) fn forbidden_folders(&self) -> ForbiddenFolders {
        let mut found = Vec::new();
        let mut add = |folder: &Path, what| found.extend(identity(folder).map(|it| (it, what)));
        add(Path::new("/"), "the root folder");
        for home in path_variants(self.home.as_deref()) {
            add(&home, "the home folder");
            let above = home.ancestors().skip(1);
            above.for_each(|folder| add(folder, "a folder above the home"));
        }
        for folder in path_variants(self.working_folder.as_deref()) {
            let above = folder.ancestors().skip(1);
            above.for_each(|folder| add(folder, "a folder above the working folder"));
        }
        ForbiddenFolders(found)
    }
}

impl ForbiddenFolders {
    /// Returns the description of a folder if it is forbidden.
    pub(super) fn describe(&self, folder: Identity) -> Option<&'static str> {
        let mut found = self.0.iter();
        let (_, what) = found.find(|(identity, _)| *identity == folder)?;
        Some(what)
    }
}

/// Returns a path as given and with its links resolved, because their parents may differ.
fn path_variants(folder: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let real = folder.and_then(|folder| folder.canonicalize().ok());
    folder.map(Path::to_path_buf).into_iter().chain(real)
}
