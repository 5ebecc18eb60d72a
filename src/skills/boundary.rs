//! The folders that no link among skills may lead to: `/`, the home, and every
//! folder above the home or above the working folder. Such a link would open to
//! a model all that lies there, and no skill needs it.
//!
//! What counts is which folder was opened, by device and inode, and not the text
//! of a path: `/proc/self/root`, chains of links and second names of a folder
//! lead to the same one. A folder that lies in the skills folder itself is not
//! judged here: its owner may well work inside it.

use std::path::{Path, PathBuf};

use crate::config::ScriptSettings;
use crate::skills::python::variable;
use crate::world::confined::{Identity, OpenError, Root, identity};

/// The home and the working folder, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Boundary {
    home: Option<PathBuf>,
    working_folder: Option<PathBuf>,
}

/// Folders that are no skills when a link leads to them, each with what it is.
pub(super) struct Forbidden(Vec<(Identity, &'static str)>);

impl Boundary {
    /// The boundary of the user for whom scripts run; the home is what `HOME` says.
    pub(super) fn of(scripts: &ScriptSettings) -> Boundary {
        let home = variable(scripts, "HOME").filter(|home| !home.is_empty());
        Boundary {
            home: home.map(|home| scripts.user_folder.join(home)),
            working_folder: Some(scripts.user_folder.clone()),
        }
    }

    /// The forbidden folders, as they are now.
    pub(super) fn draw(&self) -> Forbidden {
        let mut found = Vec::new();
        let mut add = |folder: &Path, what| found.extend(identity(folder).map(|it| (it, what)));
        add(Path::new("/"), "the root folder");
        for home in names(self.home.as_deref()) {
            add(&home, "the home folder");
            let above = home.ancestors().skip(1);
            above.for_each(|folder| add(folder, "a folder above the home"));
        }
        for folder in names(self.working_folder.as_deref()) {
            let above = folder.ancestors().skip(1);
            above.for_each(|folder| add(folder, "a folder above the working folder"));
        }
        Forbidden(found)
    }
}

impl Forbidden {
    /// What the folder is, if a link led to it and must not.
    pub(super) fn meets(&self, folder: &Root) -> Result<Option<&'static str>, OpenError> {
        if !folder.is_linked() {
            return Ok(None);
        }
        let own = folder.identity()?;
        Ok(self.names(own))
    }

    /// What a forbidden folder is.
    pub(super) fn names(&self, folder: Identity) -> Option<&'static str> {
        let mut found = self.0.iter();
        let (_, what) = found.find(|(identity, _)| *identity == folder)?;
        Some(what)
    }
}

/// A folder as it is called, and as it is called without links: its parents differ.
fn names(folder: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let real = folder.and_then(|folder| folder.canonicalize().ok());
    folder.map(Path::to_path_buf).into_iter().chain(real)
}
