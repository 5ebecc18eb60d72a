//! The skills folders: those that the user named, or the default ones that exist.

use std::path::{Component, Path, PathBuf};

use super::ConfigReader;
use crate::settings;
use crate::world::confined::identity;

/// Skills folders of a project, relative to the working folder.
const IN_WORKING_FOLDER: [&str; 3] = ["skills", ".agents/skills", ".claude/skills"];

/// Skills folders of a user, relative to the home.
const IN_HOME: [&str; 2] = [".agents/skills", ".claude/skills"];

/// A skills folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillsFolder {
    /// The folder, absolute.
    pub path: PathBuf,
    /// Why it is read.
    pub origin: FolderOrigin,
}

/// Why a skills folder is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderOrigin {
    /// The user named it: the folders below it are searched for skills, too.
    Named,
    /// It is a default folder in the working folder, whose author may not be the user.
    WorkingFolder,
    /// It is a default folder of the user.
    User,
    /// It was installed with the program.
    Installed,
}

impl SkillsFolder {
    /// A folder that the user named. A final slash is removed, as `path/` hides that `path` is
    /// a link; so is `/./`. A path with `..`, which no tool accepts, is replaced by the real one.
    pub fn named(path: &Path) -> SkillsFolder {
        let has_parent = path.components().any(|part| part == Component::ParentDir);
        let real = path.canonicalize().ok().filter(|_| has_parent);
        let path = real.unwrap_or_else(|| path.components().collect());
        SkillsFolder { path, origin: FolderOrigin::Named }
    }

    /// Whether the user named it.
    pub fn is_named(&self) -> bool {
        self.origin == FolderOrigin::Named
    }
}

impl AsRef<Path> for SkillsFolder {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl ConfigReader<'_> {
    /// The folders of the setting, else the default ones that exist.
    pub(super) fn skills_folders(&self) -> Vec<SkillsFolder> {
        if let Some((value, _)) = self.settings.value(settings::SKILLS_FOLDER_PATH) {
            return self.resolve_paths(&value).iter().map(|it| SkillsFolder::named(it)).collect();
        }
        // A dangling link is kept, so that it is reported as a mistake.
        let is_there = |folder: &PathBuf| folder.is_dir() || folder.is_symlink();
        let of_user: Vec<PathBuf> = self.of_user().into_iter().filter(is_there).collect();
        let here = IN_WORKING_FOLDER.map(|path| self.user_folder.join(path));
        // In the home, the folders of the project are the user's.
        let is_of_user = |folder: &PathBuf| {
            let found = identity(folder);
            found.is_some() && of_user.iter().any(|other| identity(other) == found)
        };
        let project = here.iter().filter(|folder| is_there(folder) && !is_of_user(folder));
        let with_origin = |path, origin| SkillsFolder { path, origin };
        let project = project.cloned().map(|path| with_origin(path, FolderOrigin::WorkingFolder));
        let mut found: Vec<SkillsFolder> = project.collect();
        found.extend(of_user.into_iter().map(|path| with_origin(path, FolderOrigin::User)));
        found
    }

    /// The default folders, whether they exist or not.
    pub(super) fn default_skills_folders(&self) -> Vec<PathBuf> {
        let here = IN_WORKING_FOLDER.map(|path| self.user_folder.join(path));
        here.into_iter().chain(self.of_user()).collect()
    }

    /// The default folders of the user.
    fn of_user(&self) -> Vec<PathBuf> {
        let shared = self.settings.user_skills_folder();
        let home = self.settings.home();
        let in_home = home.iter().flat_map(|home| IN_HOME.map(|path| home.join(path)));
        shared.into_iter().chain(in_home).collect()
    }
}
