//! Names of skills in URIs: each skill has a unique name, even if names clash.

use std::collections::HashMap;

use super::{McpServer, uri};
use crate::skills::{Catalogue, Skill, SkillSummary, frontmatter, is_valid_name};

/// Skill with its name in URIs.
pub(super) struct PublishedSkill<'c> {
    /// The frontmatter's name if it is valid and not another skill's name, else the
    /// folder's name.
    pub name: &'c str,
    /// Prefix of the URIs of all its files, with the slash.
    pub root: String,
    /// Its entry in the catalogue.
    pub skill: &'c SkillSummary,
}

/// Prefix of the URIs of a skill's files.
pub(super) fn root_uri(name: &str) -> String {
    uri::skill_uri(name) + "/"
}

/// Opens the skill with this name in URIs.
pub(super) fn find(server: &McpServer<'_>, name: &str) -> Result<Skill, String> {
    let skills = server.context.skills;
    // If the name in the frontmatter is that of the folder, no other skill can have it,
    // and the catalogue is not needed.
    let direct = skills.open(name).ok().filter(|skill| {
        let document = skill.read_document().ok().filter(|_| skill.name == name);
        let claimed = document.map(|document| frontmatter::parse(&document.text).name());
        claimed.is_some_and(|claimed| claimed.is_none_or(|claimed| claimed == name))
    });
    if let Some(skill) = direct {
        return Ok(skill);
    }
    let catalogue = server.catalogue();
    let mut all = published(&catalogue).into_iter();
    let found = all.find(|skill| skill.name == name);
    let found = found.ok_or("there is no such skill; resources/list lists all files")?;
    skills.open(&found.skill.name)
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
        .map(|skill| {
            let alias = skill.alias.as_deref().filter(is_its_own);
            let name = alias.unwrap_or(&skill.name);
            let root = root_uri(name);
            PublishedSkill { name, root, skill }
        })
        .collect();
    published.sort_by(|a, b| a.root.cmp(&b.root));
    published
}
