//! Discovery: reads the skills folders into the catalogue.
//!
//! No entry of a skills folder stops the reading, and each one that is not used is
//! reported: broken links, names that are not UTF-8, duplicate names, collections of
//! skills one level too high. Only the frontmatter of a skill is read.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::limits;
use crate::skills::catalogue::{Catalogue, SkillSummary};
use crate::skills::folder_problems as problems;
use crate::skills::invocation;
use crate::skills::listing::{FolderListing, is_tool_folder};
use crate::skills::lookup::{Found, OpenFolders, Resolved};
use crate::skills::metadata::{self, Metadata};
use crate::skills::nested;
use crate::skills::skill::DOCUMENT_NAME;
use crate::skills::{Problem, Skills};
use crate::text;
use crate::world::confined::{OpenError, OpenFile, Root};

/// Reads all skills folders.
pub(super) fn read(skills: &Skills) -> Catalogue {
    let opened = OpenFolders::of(skills);
    let mut run = DiscoveryRun {
        catalogue: Catalogue::default(),
        head: vec![0; limits::FRONTMATTER_BYTES],
        searched_folders: 0,
    };
    // Folders that are skills themselves.
    let mut are_skills = vec![false; opened.folders.len()];
    let mut names: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, folder) in opened.folders.iter().enumerate() {
        let Some(listing) = run.list_folder(folder.path, &folder.root) else {
            continue;
        };
        are_skills[index] = listing.is_skill;
        for name in listing.names {
            names.entry(name).or_default().push(index);
        }
    }
    let left_out = names.len().saturating_sub(limits::SKILLS);
    for (name, folders) in names.into_iter().take(limits::SKILLS) {
        let Some(resolved) = opened.resolve(&name, folders) else {
            continue;
        };
        // Subfolders of a skill are not skills, nor are folders that tools create.
        let is_part = are_skills[resolved.winner.folder] || is_tool_folder(&name);
        run.add(name, resolved, is_part);
    }
    if left_out > 0 {
        run.catalogue.problems.push(problems::too_many(Path::new(""), left_out));
    }
    let clashes = alias_clashes(&run.catalogue.skills);
    run.catalogue.problems.extend(clashes);
    run.catalogue
}

/// State of one discovery.
struct DiscoveryRun {
    catalogue: Catalogue,
    /// Buffer for the start of a document.
    head: Vec<u8>,
    /// Number of folders that were searched for nested skills.
    searched_folders: usize,
}

impl DiscoveryRun {
    /// Lists a skills folder; reports one that cannot be used.
    fn list_folder(
        &mut self,
        path: &Path,
        root: &Result<Root, OpenError>,
    ) -> Option<FolderListing> {
        let listing = match root {
            Err(error @ OpenError::Foreign) => Err(problems::untrusted_folder(path, error)),
            _ => {
                FolderListing::read(path).map_err(|error| problems::unreadable_folder(path, &error))
            }
        };
        match listing {
            Ok(mut listing) => {
                self.catalogue.problems.append(&mut listing.problems);
                Some(listing)
            }
            Err(problem) => {
                self.catalogue.folder_errors.push(problem);
                None
            }
        }
    }

    /// Adds the entry for a name; `is_part`: a folder without a document is no mistake there.
    fn add(&mut self, name: String, resolved: Resolved, is_part: bool) {
        let Resolved { winner, without_document, hidden } = resolved;
        let path = winner.path;
        let problems = &mut self.catalogue.problems;
        problems.extend(without_document.into_iter().map(|it| problems::passed_over(it, &path)));
        problems.extend(hidden.into_iter().map(|it| problems::hidden(it, &path)));
        let summary = SkillSummary { name, path, ..SkillSummary::default() };
        let summary = match winner.found {
            Found::Skill(document) => self.read_summary(summary, document),
            Found::NoDocument(_) | Found::ForbiddenLink { .. } if is_part => return,
            Found::NoDocument(folder) => {
                let problem = self.without_document(&folder, &summary.path);
                summary.not_a_skill(problem)
            }
            Found::ForbiddenLink { leads_to, has_document } => {
                summary.not_a_skill(problems::forbidden_link(leads_to, has_document))
            }
            Found::Unreadable(reason) => summary.unusable(format!("it cannot be opened: {reason}")),
        };
        self.catalogue.skills.push(summary);
    }

    /// Completes the entry of a skill from the start of its document.
    fn read_summary(
        &mut self,
        summary: SkillSummary,
        document: Result<(String, OpenFile), OpenError>,
    ) -> SkillSummary {
        let unreadable = |file_name: &str, error: &OpenError| {
            format!("{file_name} cannot be read: {}", error.user_message())
        };
        let (file_name, open) = match document {
            Ok(document) => document,
            Err(error) => return summary.unusable(unreadable(DOCUMENT_NAME, &error)),
        };
        let read = match metadata::read(&open, &mut self.head) {
            Ok(read) => read,
            Err(error) => return summary.unusable(unreadable(&file_name, &error)),
        };
        let Metadata { frontmatter, description, is_utf8 } = read;
        let is_large = open.size > limits::DOCUMENT_BYTES as u64;
        let refused = metadata::refusal_problem(&file_name, is_large, is_utf8, &frontmatter);
        SkillSummary {
            description,
            alias: frontmatter.name().filter(|alias| *alias != summary.name),
            argument_hint: frontmatter.as_written("argument-hint").map(|hint| {
                text::one_line(&text::without_invisible(&hint), limits::DESCRIPTION_BYTES)
            }),
            is_for_model: invocation::is_for_model(&frontmatter),
            is_for_users: invocation::is_for_users(&frontmatter),
            problems: metadata::error_problems(frontmatter, &file_name).chain(refused).collect(),
            ..summary
        }
    }

    /// Why a folder without a document is not a skill; it may be a collection of skills.
    fn without_document(&mut self, folder: &Root, path: &Path) -> Problem {
        self.searched_folders += 1;
        let is_searched = self.searched_folders <= limits::NESTED_FOLDERS;
        let nested = is_searched.then(|| nested::find_skills_folder(folder, path)).flatten();
        problems::no_document(nested.as_deref())
    }
}

/// Reports names in frontmatters that are also another skill's name.
fn alias_clashes(skills: &[SkillSummary]) -> Vec<Problem> {
    let mut clashes = Vec::new();
    let mut aliases: HashMap<&str, &SkillSummary> = HashMap::new();
    for skill in skills {
        let Some(alias) = skill.alias.as_deref() else {
            continue;
        };
        let folder = skills.binary_search_by(|other| other.name.as_str().cmp(alias));
        let message = match (folder, aliases.get(alias)) {
            (Ok(at), _) => format!(
                "its frontmatter has the name `{alias}`, which is the name of the folder {}",
                skills[at].path.display()
            ),
            (Err(_), Some(first)) => format!(
                "its frontmatter has the name `{alias}`, as does that of {}",
                first.path.display()
            ),
            (Err(_), None) => {
                aliases.insert(alias, skill);
                continue;
            }
        };
        clashes.push(problems::alias_clash(skill, message));
    }
    clashes
}
