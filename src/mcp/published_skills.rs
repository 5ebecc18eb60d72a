//! The skills and their files as clients see them: each has exactly one URI, even if names clash.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::McpServer;
use super::uri::{self, ResourceUri};
use base::limits;
use host::confined::{OpenError, PathTarget, WalkLimits};
use skills::{Catalogue, Skill, SkillSummary, is_valid_name};

/// Name of the document in URIs, whatever its letter case on disk.
pub(super) const DOCUMENT: &str = "SKILL.md";
/// Why a file is not published.
pub(super) const SECRET: &str = "it contains a secret of the user";

/// Skill with its name in URIs.
pub(super) struct PublishedSkill<'c> {
    /// The frontmatter's name if it is valid and not another skill's name, else the
    /// folder's name.
    name: &'c str,
    /// Prefix of the URIs of all its files, with the slash.
    pub root: String,
    /// Its entry in the catalogue.
    pub summary: &'c SkillSummary,
}

/// Returns the usable skills in the order of their URIs.
pub(super) fn published(catalogue: &Catalogue) -> Vec<PublishedSkill<'_>> {
    let mut claims: HashMap<&str, usize> = HashMap::new();
    let aliases = catalogue.skills.iter();
    for alias in aliases.filter_map(|skill| skill.alias.as_deref()) {
        *claims.entry(alias).or_default() += 1;
    }
    let is_its_own = |alias: &&str| {
        is_valid_name(alias) && claims[alias] == 1 && catalogue.skill_named(alias).is_none()
    };
    let mut published: Vec<PublishedSkill<'_>> = catalogue
        .usable()
        .map(|summary| {
            let name = summary.alias.as_deref().filter(is_its_own).unwrap_or(&summary.name);
            PublishedSkill { name, root: uri::skill_uri(name) + "/", summary }
        })
        .collect();
    published.sort_by(|a, b| a.root.cmp(&b.root));
    published
}

/// Returns the skill of a URI, and the path of the file or folder on disk.
pub(super) fn find(server: &McpServer<'_>, uri: &str) -> Result<(OpenSkill, PathBuf), String> {
    let ResourceUri { skill: name, path } = uri::parse(uri)?;
    if server.context.secrets.occur_in(path.as_bytes()) {
        return Err(SECRET.into());
    }
    let catalogue = server.catalogue();
    let published = published(&catalogue);
    let skill = published.iter().find(|skill| skill.name == name);
    let skill = skill.ok_or("there is no such skill; resources/list lists all files")?;
    let skill = skill.open(server)?;
    let path = skill.path_on_disk(path)?;
    Ok((skill, path))
}

impl PublishedSkill<'_> {
    /// Opens the skill.
    pub(super) fn open(&self, server: &McpServer<'_>) -> Result<OpenSkill, String> {
        let skill = server.context.skills.open_listed(self.summary)?;
        Ok(OpenSkill {
            document: skill.document_file_name()?,
            skill,
            summary: self.summary.clone(),
            name: self.name.to_string(),
            root: self.root.clone(),
        })
    }
}

/// An opened skill and the URIs of its files.
pub(super) struct OpenSkill {
    pub skill: Skill,
    pub summary: SkillSummary,
    /// Its name in URIs.
    pub name: String,
    /// Prefix of the URIs.
    root: String,
    /// File name of the document on disk.
    document: String,
}

/// The files of a skill.
pub(super) struct SkillFiles {
    /// URI and path below the skill's folder, in the order of URIs.
    pub list: Vec<(String, PathBuf)>,
    /// Whether the list is complete.
    pub is_whole: bool,
}

impl OpenSkill {
    /// Whether this is the path of the document.
    pub(super) fn is_document(&self, path: &Path) -> bool {
        path.as_os_str() == self.document.as_str()
    }

    /// The only URI of a path.
    pub(super) fn uri(&self, path: &Path) -> String {
        let path = if self.is_document(path) { Path::new(DOCUMENT) } else { path };
        uri::file_uri(&self.root, path)
    }

    fn path_on_disk(&self, path_in_uri: OsString) -> Result<PathBuf, String> {
        if path_in_uri == DOCUMENT {
            return Ok(PathBuf::from(&self.document));
        }
        if path_in_uri == OsStr::new(&self.document) {
            return Err(format!("its name in URIs is {DOCUMENT}"));
        }
        Ok(path_in_uri.into())
    }

    /// Lists at most `most` files.
    pub(super) fn files(&self, most: usize) -> SkillFiles {
        let walk = WalkLimits {
            depth: limits::RESOURCE_DEPTH,
            files: most,
            entries: limits::RESOURCE_ENTRIES,
        };
        let tree = self.skill.root.walk(walk);
        let is_whole = tree.as_ref().is_ok_and(|tree| !tree.is_cut && tree.unreadable == 0);
        let files = tree.unwrap_or_default().files.into_iter();
        let mut list: Vec<_> = files.map(|path| (self.uri(&path), path)).collect();
        list.sort();
        SkillFiles { list, is_whole }
    }

    /// Opens a file that is listed, or a folder that contains one; not a private one.
    pub(super) fn open(&self, path: &Path) -> Result<PathTarget, OpenError> {
        let target = self.skill.root.open_walked(path)?;
        self.skill.read_rule().check(path, target)
    }
}
