//! What each skill is called in addresses: a name of its own, whatever clashes.

use std::collections::HashMap;

use super::{McpServer, address};
use crate::order;
use crate::skills::{Catalogue, Skill, SkillSummary, frontmatter, is_valid_name};

/// A skill with its name here.
pub(super) struct PublishedSkill<'c> {
    /// The frontmatter's name where it is a valid one and no other skill's, else
    /// the folder's.
    pub name: &'c str,
    /// What the addresses of all its files begin with; the slash included.
    pub root: String,
    /// What the catalogue tells of it.
    pub skill: &'c SkillSummary,
}

/// What the addresses of a skill's files begin with.
pub(super) fn root(name: &str) -> String {
    address::of_skill(name) + "/"
}

/// Opens the skill that has this name here.
pub(super) fn find(server: &McpServer<'_>, name: &str) -> Result<Skill, String> {
    let skills = server.context.skills;
    // One that calls itself as its folder is called needs no look at the others:
    // nobody else is called so.
    let usual = skills.find(name).ok().filter(|skill| {
        let document = skill.document().ok().filter(|_| skill.name == name);
        let claimed = document.map(|document| frontmatter::parse(&document.text).name());
        claimed.is_some_and(|claimed| claimed.is_none_or(|claimed| claimed == name))
    });
    if let Some(skill) = usual {
        return Ok(skill);
    }
    let catalogue = server.catalogue();
    let mut all = named(&catalogue).into_iter();
    let found = all.find(|named| named.name == name);
    let named = found.ok_or("resources/list has what there is")?;
    skills.find(&named.skill.name)
}

/// The skills that can be used, in the order of their addresses.
pub(super) fn named(catalogue: &Catalogue) -> Vec<PublishedSkill<'_>> {
    let mut claims: HashMap<&str, usize> = HashMap::new();
    let aliases = catalogue.skills.iter();
    for alias in aliases.filter_map(|skill| skill.alias.as_deref()) {
        *claims.entry(alias).or_default() += 1;
    }
    let is_its_own = |alias: &&str| {
        is_valid_name(alias) && claims[alias] == 1 && catalogue.named(alias).is_none()
    };
    let mut named: Vec<PublishedSkill<'_>> = catalogue
        .usable()
        .map(|skill| {
            let alias = skill.alias.as_deref().filter(is_its_own);
            let name = alias.unwrap_or(&skill.name);
            let root = root(name);
            PublishedSkill { name, root, skill }
        })
        .collect();
    order::sort_by(&mut named, &|a, b| a.root.cmp(&b.root));
    named
}
