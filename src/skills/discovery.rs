//! Discovery: reads the skills folders into the catalogue.
//!
//! No entry of a skills folder stops the reading, and each one that is not used is
//! reported: broken links, names that are not UTF-8, duplicate names, collections of
//! skills one level too high. Only the frontmatter of a skill is read.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::limits;
use crate::skills::boundary::ForbiddenFolders;
use crate::skills::catalogue::{Catalogue, SkillSummary};
use crate::skills::check::is_name;
use crate::skills::invocation;
use crate::skills::listing::{self, FolderListing};
use crate::skills::metadata::{self, Metadata};
use crate::skills::nested;
use crate::skills::skeleton::nearest_valid_name;
use crate::skills::skill::{DOCUMENT_NAME, open_document};
use crate::skills::{Problem, Severity, Skills};
use crate::text;
use crate::world::confined::{Identity, OpenError, OpenFile, Root, identity};

/// Reads the folders in order: the first one wins a name.
pub(super) fn read(skills: &Skills) -> Catalogue {
    let mut run = DiscoveryRun {
        forbidden: skills.boundary.forbidden_folders(),
        head: vec![0; limits::FRONTMATTER_BYTES],
        skills: Vec::new(),
        folders: HashSet::new(),
        folder_errors: Vec::new(),
        problems: Vec::new(),
        searched_folders: 0,
    };
    for folder in &skills.folders {
        run.add_folder(folder, skills);
    }
    run.finish()
}

/// State of one discovery.
struct DiscoveryRun {
    /// The folders that no link may lead to.
    forbidden: ForbiddenFolders,
    /// Sorted by name.
    skills: Vec<NameEntry>,
    /// The skills folders themselves.
    folders: HashSet<Identity>,
    folder_errors: Vec<Problem>,
    problems: Vec<Problem>,
    /// Number of folders that were searched for nested skills.
    searched_folders: usize,
    /// Buffer for the start of a document.
    head: Vec<u8>,
}

/// The folder that was found for one name.
struct NameEntry {
    summary: SkillSummary,
    state: DiscoveryState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DiscoveryState {
    /// A folder that cannot be opened, so it hides no other.
    Unreadable,
    /// A folder that is not a skill and holds none.
    NotASkill,
    /// A folder without a document, but with nested skills.
    Collection,
    /// A folder with a document.
    Skill,
}

impl DiscoveryRun {
    fn add_folder(&mut self, folder: &Path, skills: &Skills) {
        // A folder that is listed twice, or under two names, is read once.
        if identity(folder).is_some_and(|identity| !self.folders.insert(identity)) {
            return;
        }
        let root = skills.open_folder(folder);
        if let Err(error @ OpenError::Foreign) = &root {
            return self.folder_errors.push(listing::untrusted_folder(folder, error));
        }
        let listing = match FolderListing::read(folder) {
            Ok(listing) => listing,
            Err(error) => {
                return self.folder_errors.push(listing::unreadable_folder(folder, &error));
            }
        };
        self.problems.extend(listing.problems);
        let mut fresh = Vec::with_capacity(listing.names.len());
        for name in listing.names {
            if self.is_name_taken(folder, &name) {
                self.report_hidden(folder, &name);
                continue;
            }
            let found = match &root {
                Ok(root) => self.inspect_folder(root, folder, &name),
                Err(error) => Some(NameEntry::unreadable(folder, &name, error)),
            };
            let Some(found) = found else {
                continue;
            };
            if !self.yields_to(&found) {
                self.report_hidden(folder, &name);
                continue;
            }
            // Subfolders of a skill are not skills, nor are folders that tools create.
            let is_part = listing.is_skill || listing::is_tool_folder(&name);
            if found.state == DiscoveryState::NotASkill && is_part {
                continue;
            }
            fresh.push(found);
        }
        let is_fresh = |name: &str| fresh.binary_search_by(|found| found.name().cmp(name)).is_ok();
        self.skills.retain(|found| found.state == DiscoveryState::Skill || !is_fresh(found.name()));
        fresh.append(&mut self.skills);
        self.skills = fresh;
        self.skills.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    }

    fn entry_named(&self, name: &str) -> Option<&NameEntry> {
        let at = self.skills.binary_search_by(|found| found.name().cmp(name));
        at.ok().map(|at| &self.skills[at])
    }

    /// Whether a skill in an earlier folder has the name.
    fn is_name_taken(&self, folder: &Path, name: &str) -> bool {
        let is_same =
            |kept: &NameEntry| identity(folder.join(name)) == identity(&kept.summary.path);
        let is_kept = |kept: &NameEntry| match kept.state {
            DiscoveryState::Unreadable => false,
            DiscoveryState::NotASkill | DiscoveryState::Collection => is_same(kept),
            DiscoveryState::Skill => true,
        };
        self.entry_named(name).is_some_and(is_kept)
    }

    /// Whether the name is new, or the folder found before is not a skill while this one
    /// is; the latter is reported.
    fn yields_to(&mut self, found: &NameEntry) -> bool {
        let Some(kept) = self.entry_named(found.name()) else {
            return true;
        };
        let problem = match kept.state {
            DiscoveryState::Unreadable => return true,
            DiscoveryState::NotASkill | DiscoveryState::Collection
                if found.state == DiscoveryState::Skill =>
            {
                Problem {
                    file: kept.summary.path.clone(),
                    line: None,
                    rule: "name-clash",
                    severity: Severity::Warning,
                    message: format!(
                        "it has no {DOCUMENT_NAME}, so the name `{}` means {}",
                        found.name(),
                        found.summary.path.display()
                    ),
                    fix: Some(format!("rename the folder, or write its {DOCUMENT_NAME}")),
                }
            }
            DiscoveryState::NotASkill | DiscoveryState::Collection | DiscoveryState::Skill => {
                return false;
            }
        };
        self.problems.push(problem);
        true
    }

    /// Reports that an earlier folder has the name.
    fn report_hidden(&mut self, folder: &Path, name: &str) {
        let Some(kept) = self.entry_named(name) else {
            return;
        };
        let hidden = folder.join(name);
        // A link to the same skill hides nothing.
        if identity(&hidden) != identity(&kept.summary.path) {
            let kept = kept.summary.path.display();
            self.problems.push(Problem {
                file: hidden,
                line: None,
                rule: "name-clash",
                severity: Severity::Warning,
                message: format!("hidden by {kept}: the first folder wins the name `{name}`"),
                fix: Some("rename one of the two folders, or leave one out".into()),
            });
        }
    }

    /// Reads the folder `name`; `None` if it was deleted since its name was read.
    fn inspect_folder(&mut self, root: &Root, folder: &Path, name: &str) -> Option<NameEntry> {
        // Fast path for the usual case; unusual names and links are checked below.
        let usual = [name, "/", DOCUMENT_NAME, "\0"].concat();
        let usual = CStr::from_bytes_with_nul(usual.as_bytes()).ok();
        let usual = usual.filter(|_| !root.is_linked());
        if let Some(open) = usual.and_then(|usual| root.open_plain_file(usual)) {
            return Some(NameEntry::skill(self.summary(folder, name, DOCUMENT_NAME, &open)));
        }
        let skill = match root.linked_folder(name) {
            Ok(skill) => skill,
            Err(OpenError::NotFound) => return None,
            Err(error) => return Some(NameEntry::unreadable(folder, name, &error)),
        };
        let forbidden = match self.forbidden.check_link(&skill) {
            Ok(forbidden) => forbidden,
            Err(error) => return Some(NameEntry::unreadable(folder, name, &error)),
        };
        let document = open_document(&skill);
        if let Some(what) = forbidden {
            let has_document = !matches!(document, Err(OpenError::NotFound));
            return Some(NameEntry::forbidden_link(folder, name, what, has_document));
        }
        Some(match document {
            Ok((file_name, file)) => {
                let size = file.metadata().map_or(0, |meta| meta.len());
                let open = OpenFile { file, size };
                NameEntry::skill(self.summary(folder, name, &file_name, &open))
            }
            Err(OpenError::NotFound) => self.without_document(&skill, folder, name),
            Err(error) => {
                let message = format!("{DOCUMENT_NAME} cannot be read: {}", error.user_message());
                NameEntry::skill(SkillSummary::unusable(folder, name, message))
            }
        })
    }

    /// The catalogue's entry for the skill `name` in a skills folder.
    fn summary(
        &mut self,
        folder: &Path,
        name: &str,
        file_name: &str,
        open: &OpenFile,
    ) -> SkillSummary {
        let Metadata { frontmatter, description, is_utf8 } =
            match metadata::read(open, &mut self.head) {
                Ok(read) => read,
                Err(error) => {
                    let message = format!("{file_name} cannot be read: {}", error.user_message());
                    return SkillSummary::unusable(folder, name, message);
                }
            };
        let is_large = open.size > limits::DOCUMENT_BYTES as u64;
        let refused = metadata::refusal_problem(file_name, is_large, is_utf8, &frontmatter);
        SkillSummary {
            name: name.to_string(),
            description,
            alias: frontmatter.name().filter(|alias| alias != name),
            argument_hint: frontmatter.as_written("argument-hint").map(|hint| {
                text::one_line(&text::without_invisible(&hint), limits::DESCRIPTION_BYTES)
            }),
            is_for_model: !is_true(frontmatter.fields.get("disable-model-invocation")),
            is_for_users: invocation::is_for_users(&frontmatter),
            not_a_skill: None,
            path: folder.join(name),
            problems: metadata::error_problems(frontmatter, file_name).chain(refused).collect(),
            error: None,
        }
    }

    /// A folder without a document may be a collection of skills.
    fn without_document(&mut self, skill: &Root, folder: &Path, name: &str) -> NameEntry {
        self.searched_folders += 1;
        let nested = if self.searched_folders <= limits::NESTED_FOLDERS {
            nested::find_nested_skills(skill, &folder.join(name))
        } else {
            None
        };
        let (state, message, fix) = match nested {
            Some(below) => (DiscoveryState::Collection, below.message(), below.fix()),
            None => (
                DiscoveryState::NotASkill,
                format!("it has no {DOCUMENT_NAME}"),
                format!("add a {DOCUMENT_NAME} to make it a skill"),
            ),
        };
        NameEntry::not_a_skill(folder, name, state, "no-document", message, fix)
    }

    fn finish(mut self) -> Catalogue {
        let found = self.skills.len();
        self.skills.truncate(limits::SKILLS);
        let summaries = self.skills.into_iter().map(|found| found.summary);
        let skills: Vec<SkillSummary> = summaries.collect();
        if found > limits::SKILLS {
            let problem = listing::too_many(Path::new(""), found - skills.len());
            self.problems.push(problem);
        }
        self.problems.extend(alias_clashes(&skills));
        Catalogue { skills, folder_errors: self.folder_errors, problems: self.problems }
    }
}

impl NameEntry {
    fn name(&self) -> &str {
        &self.summary.name
    }

    fn skill(summary: SkillSummary) -> NameEntry {
        let state = DiscoveryState::Skill;
        NameEntry { summary, state }
    }

    fn forbidden_link(folder: &Path, name: &str, what: &str, has_document: bool) -> NameEntry {
        let message = format!("a link to {what} is not a skill");
        let (rule, message) = if has_document {
            ("link-above", message)
        } else {
            ("no-document", format!("it has no {DOCUMENT_NAME}, and {message}"))
        };
        let fix = "remove the link, or point it to the skill's own folder".to_owned();
        NameEntry::not_a_skill(folder, name, DiscoveryState::NotASkill, rule, message, fix)
    }

    fn not_a_skill(
        folder: &Path,
        name: &str,
        state: DiscoveryState,
        rule: &'static str,
        message: String,
        fix: String,
    ) -> NameEntry {
        let problem = Problem {
            file: PathBuf::new(),
            line: None,
            rule,
            severity: Severity::Error,
            message,
            fix: Some(fix),
        };
        let summary = SkillSummary::not_a_skill(folder, name, problem);
        NameEntry { summary, state }
    }

    fn unreadable(folder: &Path, name: &str, error: &OpenError) -> NameEntry {
        let message = format!("it cannot be opened: {}", error.user_message());
        let summary = SkillSummary::unusable(folder, name, message);
        let state = DiscoveryState::Unreadable;
        NameEntry { summary, state }
    }
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(value)) => *value,
        Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
        _ => false,
    }
}

/// Reports names in frontmatters that are also another skill's name.
fn alias_clashes(skills: &[SkillSummary]) -> Vec<Problem> {
    let mut problems = Vec::new();
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
        problems.push(Problem {
            file: skill.path.clone(),
            line: None,
            rule: "alias-clash",
            severity: Severity::Warning,
            message,
            fix: Some(rename_advice(skill, skills)),
        });
    }
    problems
}

/// How to rename a skill whose name is also another's: to its folder's name, if valid.
fn rename_advice(skill: &SkillSummary, skills: &[SkillSummary]) -> String {
    if is_name(&skill.name) {
        return format!("give it the name `{}` there, like its folder", skill.name);
    }
    let is_free = |name: &String| !skills.iter().any(|other| other.name == *name);
    match nearest_valid_name(&skill.name).filter(is_free) {
        Some(valid) => format!("rename the folder to `{valid}`, and give it that name there"),
        None => "rename the folder, and give it the folder's name there".into(),
    }
}
