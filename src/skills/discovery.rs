//! Discovery: reads the skills folders into the catalogue.
//!
//! No entry of a skills folder stops the reading, and each one that is not used is
//! reported: broken links, names that are not UTF-8, duplicate names, collections of
//! skills one level too high. Only the frontmatter of a skill is read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::catalogue::{Catalogue, FolderSummary, SkillSummary};
use crate::folder_problems as problems;
use crate::invocation;
use crate::lock_file::LockFiles;
use crate::lookup::{Found, OpenFolders, OpenedFolder};
use crate::metadata::{self, Metadata};
use crate::names::distinct_names;
use crate::search::{self, FolderContents};
use crate::skill::DOCUMENT_NAME;
use crate::{Problem, Rule, Skills};
use base::limits;
use base::text;
use host::confined::{OpenError, OpenFile, identity};

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

/// Reads all skills folders.
pub(super) fn read(skills: &Skills) -> Catalogue {
    let opened = OpenFolders::of(skills);
    let mut run = DiscoveryRun::default();
    for folder in &opened.folders {
        run.read_folder(skills, &opened, folder);
    }
    let DiscoveryRun { mut catalogue, names, .. } = run;
    let left_out = names.len().saturating_sub(limits::SKILLS);
    let with_colon = names.keys().filter(|name| name.contains(':'));
    let with_colon: HashSet<String> = with_colon.cloned().collect();
    for (name, entries) in names.into_iter().take(limits::SKILLS) {
        entries.add_to(&name, &with_colon, &mut catalogue);
    }
    if left_out > 0 {
        catalogue.problems.push(problems::too_many(Path::new(""), left_out));
    }
    catalogue.skills.sort_by(|one, other| one.name.cmp(&other.name));
    for FolderSummary { folder, skills } in &mut catalogue.folders {
        let usable = catalogue.skills.iter().filter(|skill| skill.is_usable() && skill.is_offered);
        *skills = usable.filter(|skill| skill.path.starts_with(&folder.path)).count();
    }
    let clashes = alias_clashes(&catalogue);
    catalogue.problems.extend(clashes);
    catalogue
}

/// State of one discovery.
#[derive(Default)]
struct DiscoveryRun<'s> {
    catalogue: Catalogue,
    /// The folders' entries under each name.
    names: BTreeMap<String, NameEntries<'s>>,
    /// Buffer for the start of a document.
    head: Vec<u8>,
    /// The lock files, if skills are locked.
    locks: LockFiles,
}

/// Entries of skills folders under a name, in the order of the folders.
#[derive(Default)]
struct NameEntries<'s> {
    /// Skills with their folders; in one folder the shallower first, then by path.
    skills: Vec<(SkillSummary, &'s SkillsFolder)>,
    /// Direct subfolders that are no skills.
    no_skills: Vec<SkillSummary>,
}

impl<'s> DiscoveryRun<'s> {
    /// Reads a skills folder; reports one that cannot be used.
    fn read_folder(
        &mut self,
        skills: &Skills,
        folders: &OpenFolders<'s>,
        opened: &OpenedFolder<'s>,
    ) {
        let folder = opened.folder;
        self.head.resize(limits::FRONTMATTER_BYTES, 0);
        let mut found: Vec<(usize, SkillSummary)> = Vec::new();
        let contents = search::search(folders, opened, &mut |path, skill| {
            let name = Path::new(path).file_name().or(folder.path.file_name());
            let summary = SkillSummary {
                name: name.unwrap_or_default().to_string_lossy().into_owned(),
                path: folder.path.join(path).components().collect(),
                ..SkillSummary::default()
            };
            if let Found::Skill(document) = skill {
                let mut summary = self.read_summary(summary, document);
                if skills.is_locked
                    && summary.is_usable()
                    && let Some(root) = folders.open_at(opened, path)
                    && let Err(error) = skills.check_lock(&summary.path, &root, &mut self.locks)
                {
                    summary.error_rule = Rule::NotLocked;
                    summary.error = Some(error);
                }
                found.push((path.split('/').count(), summary));
            }
        });
        let contents = match contents {
            Ok(contents) => contents,
            Err(problem) => {
                self.catalogue.folder_errors.push(problem);
                return;
            }
        };
        found.sort_by(|(depth, one), (other_depth, other)| {
            (depth, &one.path).cmp(&(other_depth, &other.path))
        });
        self.catalogue.folders.push(FolderSummary { folder: folder.clone(), skills: 0 });
        for (_, summary) in found {
            let entries = self.names.entry(summary.name.clone()).or_default();
            // Nearly all names occur once.
            entries.skills.reserve_exact(1);
            entries.skills.push((summary, folder));
        }
        self.add_no_skills(folder, contents);
    }

    /// Adds the direct subfolders that are no skills, if skills were to be expected there.
    fn add_no_skills(&mut self, folder: &'s SkillsFolder, contents: FolderContents) {
        self.catalogue.problems.extend(contents.problems);
        let with_skills_below = contents.with_skills_below;
        if !folder.is_named() && !with_skills_below.is_empty() {
            let problem = problems::skills_below(&folder.path, &with_skills_below);
            self.catalogue.problems.push(problem);
        }
        // Subfolders of a skill are not skills.
        let is_expected =
            if folder.is_named() { contents.has_direct_skill } else { !contents.is_skill };
        for (name, found) in contents.no_skills {
            let summary = SkillSummary {
                name: name.clone(),
                path: folder.path.join(&name),
                ..SkillSummary::default()
            };
            let is_collection = folder.is_named() && with_skills_below.contains(&name);
            let summary = match found {
                Found::Skill(_) => continue,
                Found::NoDocument if !is_expected || is_collection => continue,
                Found::NoDocument => {
                    // A link that leads nowhere was meant to be one.
                    let document = summary.path.join(DOCUMENT_NAME);
                    let is_on_purpose = folder.is_named() && document.symlink_metadata().is_err();
                    SkillSummary {
                        is_offered: !is_on_purpose,
                        ..summary.not_a_skill(problems::no_document(is_on_purpose))
                    }
                }
                Found::ForbiddenLink { .. } if contents.is_skill => continue,
                Found::ForbiddenLink { leads_to, has_document } => {
                    summary.not_a_skill(problems::forbidden_link(leads_to, has_document))
                }
                Found::Unreadable(reason) => {
                    summary.unusable(format!("it cannot be opened: {reason}"))
                }
            };
            let entries = self.names.entry(name).or_default();
            entries.no_skills.reserve_exact(1);
            entries.no_skills.push(summary);
        }
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
}

impl NameEntries<'_> {
    /// Adds the entries with their names: the first skill has the folder's name, the others have
    /// longer ones.
    fn add_to(mut self, name: &str, with_colon: &HashSet<String>, catalogue: &mut Catalogue) {
        if self.skills.len() > 1 {
            // A link to the same folder is not a clash.
            let mut seen = HashSet::new();
            self.skills
                .retain(|(skill, _)| identity(&skill.path).is_none_or(|found| seen.insert(found)));
        }
        if self.skills.is_empty() {
            // Of entries that cannot be used, one that shows why is best.
            let best = self.no_skills.iter().position(|entry| entry.not_a_skill.is_some());
            let best = self.no_skills.remove(best.unwrap_or_default());
            catalogue.skills.push(best);
        } else if self.skills.len() == 1 {
            catalogue.skills.extend(self.skills.pop().map(|(skill, _)| skill));
        } else {
            add_namesakes(name, self.skills, with_colon, catalogue);
            return;
        }
        let Some(winner) = catalogue.skills.last() else { return };
        let passed_over = self.no_skills.into_iter().filter(|entry| entry.not_a_skill.is_some());
        let passed_over = passed_over.map(|entry| problems::passed_over(entry.path, &winner.path));
        catalogue.problems.extend(passed_over);
    }
}

/// Adds skills whose folders have the same name. `with_colon`: the names of folders that look like
/// `PLUGIN:SKILL`.
fn add_namesakes(
    name: &str,
    mut skills: Vec<(SkillSummary, &SkillsFolder)>,
    with_colon: &HashSet<String>,
    catalogue: &mut Catalogue,
) {
    // What cannot be used hides nothing.
    skills.sort_by_key(|(skill, _)| !skill.is_usable());
    let paths: Vec<PathBuf> = skills.iter().map(|(skill, _)| skill.path.clone()).collect();
    let mut winner: Option<(PathBuf, FolderOrigin)> = None;
    let mut descriptions: HashSet<String> = HashSet::new();
    let names = distinct_names(name, &paths, |name| with_colon.contains(name));
    for ((mut skill, folder), name) in skills.into_iter().zip(names) {
        skill.name = name;
        let is_copy = !skill.is_usable() || descriptions.contains(&skill.description);
        if let Some((winner, origin)) = &winner {
            skill.is_offered = folder.is_named() && !is_copy;
            if !(folder.is_named() && is_copy) {
                let problem = problems::name_taken(
                    (&skill.path, folder.origin),
                    (winner, *origin),
                    &skill.name,
                );
                catalogue.problems.push(problem);
            }
        } else {
            winner = Some((skill.path.clone(), folder.origin));
        }
        if !is_copy {
            descriptions.insert(skill.description.clone());
        }
        catalogue.skills.push(skill);
    }
}

/// Reports names in frontmatters that are also another skill's name.
fn alias_clashes(catalogue: &Catalogue) -> Vec<Problem> {
    let mut clashes = Vec::new();
    let mut aliases: HashMap<&str, &SkillSummary> = HashMap::new();
    for skill in catalogue.skills.iter().filter(|skill| skill.is_offered) {
        let Some(alias) = skill.alias.as_deref() else {
            continue;
        };
        let namesake = catalogue.skill_named(alias).filter(|other| other.is_usable());
        let (other, relation) = match (namesake, aliases.get(alias)) {
            (Some(other), _) => (other, "which is the name of the folder"),
            (None, Some(first)) => (*first, "as does that of"),
            (None, None) => {
                aliases.insert(alias, skill);
                continue;
            }
        };
        clashes.push(problems::alias_clash(skill, relation, &other.path));
    }
    clashes
}
