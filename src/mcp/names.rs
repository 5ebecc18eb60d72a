//! What each skill is called in addresses: a name of its own, whatever clashes.

use std::collections::HashMap;

use super::address;
use crate::skills::{Catalogue, Summary, is_valid_name};

/// A skill with its name here.
pub struct Named<'c> {
    /// The frontmatter's name where it is a valid one and no other skill's, else
    /// the folder's.
    pub name: &'c str,
    /// What the addresses of all its files begin with; the slash included.
    pub root: String,
    /// What the catalogue tells of it.
    pub skill: &'c Summary,
}

/// The skills that can be used, in the order of their addresses.
pub fn named(catalogue: &Catalogue) -> Vec<Named<'_>> {
    let mut claims: HashMap<&str, usize> = HashMap::new();
    let aliases = catalogue.skills.iter();
    for alias in aliases.filter_map(|skill| skill.alias.as_deref()) {
        *claims.entry(alias).or_default() += 1;
    }
    let is_its_own = |alias: &&str| {
        is_valid_name(alias) && claims[alias] == 1 && catalogue.named(alias).is_none()
    };
    let mut named: Vec<Named<'_>> = catalogue
        .usable()
        .map(|skill| {
            let alias = skill.alias.as_deref().filter(is_its_own);
            let name = alias.unwrap_or(&skill.name);
            let root = address::of_skill(name) + "/";
            Named { name, root, skill }
        })
        .collect();
    named.sort_by(|a, b| a.root.cmp(&b.root));
    named
}
