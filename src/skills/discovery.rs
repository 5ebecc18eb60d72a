//! Reading the skills folders: what there is, and what is wrong with it.
//!
//! Nothing that lies in a skills folder stops the reading, and nothing is lost
//! without a word: links that lead nowhere, names that are no text, names that
//! stand twice, collections of skills one level too high. Of a skill only the
//! frontmatter is read.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::limits;
use crate::skills::boundary::Forbidden;
use crate::skills::catalogue::{Catalogue, SkillSummary};
use crate::skills::check::is_name;
use crate::skills::invocation;
use crate::skills::listing::{self, FolderListing};
use crate::skills::metadata::{self, Metadata};
use crate::skills::nested;
use crate::skills::skeleton::valid_name;
use crate::skills::skill::{DOCUMENT, open_document};
use crate::skills::{Problem, Severity, Skills};
use crate::text;
use crate::world::confined::{Identity, OpenError, OpenFile, Root, identity};

/// Reads the folders, in the order in which they win a name.
pub(super) fn read(skills: &Skills) -> Catalogue {
    let mut reading = DiscoveryRun {
        forbidden: skills.boundary.draw(),
        head: vec![0; limits::FRONTMATTER_BYTES],
        skills: Vec::new(),
        folders: HashSet::new(),
        faults: Vec::new(),
        problems: Vec::new(),
        searched: 0,
    };
    for folder in &skills.folders {
        reading.add(folder, skills);
    }
    reading.finish()
}

/// What has been read so far.
struct DiscoveryRun {
    /// Where no link may lead.
    forbidden: Forbidden,
    /// Sorted by name.
    skills: Vec<NameEntry>,
    /// The skills folders themselves.
    folders: HashSet<Identity>,
    faults: Vec<Problem>,
    problems: Vec<Problem>,
    /// Folders that were searched for skills further below.
    searched: usize,
    /// Room for the beginning of a document.
    head: Vec<u8>,
}

/// What lies behind one name.
struct NameEntry {
    summary: SkillSummary,
    state: DiscoveryState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DiscoveryState {
    /// It cannot be entered, so it hides no other.
    Closed,
    /// A folder that is no skill, and holds none.
    Empty,
    /// A folder without a document, but with skills further below.
    Collection,
    /// A folder with a document.
    Full,
}

impl DiscoveryRun {
    fn add(&mut self, folder: &Path, skills: &Skills) {
        // Listed twice, or under two names: read once.
        if identity(folder).is_some_and(|identity| !self.folders.insert(identity)) {
            return;
        }
        let root = skills.open_folder(folder);
        if let Err(refusal @ OpenError::Foreign) = &root {
            return self.faults.push(listing::unused(folder, refusal));
        }
        let listing = match FolderListing::of(folder) {
            Ok(listing) => listing,
            Err(error) => return self.faults.push(listing::unreadable(folder, &error)),
        };
        self.problems.extend(listing.problems);
        let mut fresh = Vec::with_capacity(listing.names.len());
        for name in listing.names {
            if self.is_taken(folder, &name) {
                self.tell_hidden(folder, &name);
                continue;
            }
            let found = match &root {
                Ok(root) => self.look_into(root, folder, &name),
                Err(refusal) => Some(NameEntry::closed(folder, &name, refusal)),
            };
            let Some(found) = found else {
                continue;
            };
            if !self.gives_way(&found) {
                self.tell_hidden(folder, &name);
                continue;
            }
            // The parts of a skill are no skills, nor is what tools leave behind.
            let is_part = listing.is_skill || listing::is_made_by_tools(&name);
            if found.state == DiscoveryState::Empty && is_part {
                continue;
            }
            fresh.push(found);
        }
        let is_fresh = |name: &str| fresh.binary_search_by(|found| found.name().cmp(name)).is_ok();
        self.skills.retain(|found| found.state == DiscoveryState::Full || !is_fresh(found.name()));
        fresh.append(&mut self.skills);
        self.skills = fresh;
        self.skills.sort_unstable_by(|a, b| a.name().cmp(b.name()));
    }

    fn known(&self, name: &str) -> Option<&NameEntry> {
        let at = self.skills.binary_search_by(|found| found.name().cmp(name));
        at.ok().map(|at| &self.skills[at])
    }

    /// Whether a skill in an earlier folder has the name.
    fn is_taken(&self, folder: &Path, name: &str) -> bool {
        let is_same =
            |kept: &NameEntry| identity(folder.join(name)) == identity(&kept.summary.path);
        let is_kept = |kept: &NameEntry| match kept.state {
            DiscoveryState::Closed => false,
            DiscoveryState::Empty | DiscoveryState::Collection => is_same(kept),
            DiscoveryState::Full => true,
        };
        self.known(name).is_some_and(is_kept)
    }

    /// Whether nothing of the name was found before, or nothing that could be
    /// a skill while this one can; the latter is told.
    fn gives_way(&mut self, found: &NameEntry) -> bool {
        let Some(kept) = self.known(found.name()) else {
            return true;
        };
        let problem = match kept.state {
            DiscoveryState::Closed => return true,
            DiscoveryState::Empty | DiscoveryState::Collection
                if found.state == DiscoveryState::Full =>
            {
                Problem {
                    file: kept.summary.path.clone(),
                    line: None,
                    rule: "name-clash",
                    severity: Severity::Warning,
                    message: format!(
                        "it has no {DOCUMENT}, so that the name `{}` means {}",
                        found.name(),
                        found.summary.path.display()
                    ),
                    fix: Some(format!("rename the folder, or write its {DOCUMENT}")),
                }
            }
            DiscoveryState::Empty | DiscoveryState::Collection | DiscoveryState::Full => {
                return false;
            }
        };
        self.problems.push(problem);
        true
    }

    /// Tells that an earlier folder has the name.
    fn tell_hidden(&mut self, folder: &Path, name: &str) {
        let Some(kept) = self.known(name) else {
            return;
        };
        let hidden = folder.join(name);
        // A link to the very same skill is no other one.
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

    /// None: the folder has gone since its name was read.
    fn look_into(&mut self, root: &Root, folder: &Path, name: &str) -> Option<NameEntry> {
        // The usual case at the least cost; what is unusual is looked at closely, and
        // so is what lies behind a link.
        let usual = [name, "/", DOCUMENT, "\0"].concat();
        let usual = CStr::from_bytes_with_nul(usual.as_bytes()).ok();
        let usual = usual.filter(|_| !root.is_linked());
        if let Some(open) = usual.and_then(|usual| root.plain_file(usual)) {
            return Some(NameEntry::full(self.summary(folder, name, DOCUMENT, &open)));
        }
        let skill = match root.linked_folder(name) {
            Ok(skill) => skill,
            Err(OpenError::NotFound) => return None,
            Err(refusal) => return Some(NameEntry::closed(folder, name, &refusal)),
        };
        let forbidden = match self.forbidden.meets(&skill) {
            Ok(forbidden) => forbidden,
            Err(refusal) => return Some(NameEntry::closed(folder, name, &refusal)),
        };
        let document = open_document(&skill);
        if let Some(what) = forbidden {
            let has_document = !matches!(document, Err(OpenError::NotFound));
            return Some(NameEntry::behind_link(folder, name, what, has_document));
        }
        Some(match document {
            Ok((file_name, file)) => {
                let size = file.metadata().map_or(0, |meta| meta.len());
                let open = OpenFile { file, size };
                NameEntry::full(self.summary(folder, name, &file_name, &open))
            }
            Err(OpenError::NotFound) => self.without_document(&skill, folder, name),
            Err(refusal) => {
                let fault = format!("{DOCUMENT} cannot be read: {}", refusal.for_people());
                NameEntry::full(SkillSummary::unusable(folder, name, fault))
            }
        })
    }

    /// What there is to tell of the skill `name` in a skills folder.
    fn summary(
        &mut self,
        folder: &Path,
        name: &str,
        file_name: &str,
        open: &OpenFile,
    ) -> SkillSummary {
        let Metadata { matter, description, is_text } = match metadata::read(open, &mut self.head) {
            Ok(read) => read,
            Err(refusal) => {
                let fault = format!("{file_name} cannot be read: {}", refusal.for_people());
                return SkillSummary::unusable(folder, name, fault);
            }
        };
        let is_large = open.size > limits::DOCUMENT_BYTES as u64;
        let refused = metadata::refused(file_name, is_large, is_text, &matter);
        SkillSummary {
            name: name.to_string(),
            description,
            alias: matter.name().filter(|alias| alias != name),
            argument_hint: matter.as_written("argument-hint").map(|hint| {
                text::one_line(&text::without_invisible(&hint), limits::DESCRIPTION_BYTES)
            }),
            is_for_model: !is_true(matter.fields.get("disable-model-invocation")),
            is_for_users: invocation::is_for_users(&matter),
            no_skill: None,
            path: folder.join(name),
            problems: metadata::problems(matter, file_name).chain(refused).collect(),
            fault: None,
        }
    }

    /// A folder without a document may be a collection of skills.
    fn without_document(&mut self, skill: &Root, folder: &Path, name: &str) -> NameEntry {
        self.searched += 1;
        let nested = if self.searched <= limits::NESTED_FOLDERS {
            nested::search(skill, &folder.join(name))
        } else {
            None
        };
        let (state, message, fix) = match nested {
            Some(below) => (DiscoveryState::Collection, below.fault(), below.fix()),
            None => (
                DiscoveryState::Empty,
                format!("it has no {DOCUMENT}"),
                format!("write its {DOCUMENT}, if it is to be a skill"),
            ),
        };
        NameEntry::no_skill(folder, name, state, "no-document", message, fix)
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
        Catalogue { skills, faults: self.faults, problems: self.problems }
    }
}

impl NameEntry {
    fn name(&self) -> &str {
        &self.summary.name
    }

    fn full(summary: SkillSummary) -> NameEntry {
        let state = DiscoveryState::Full;
        NameEntry { summary, state }
    }

    fn behind_link(folder: &Path, name: &str, what: &str, has_document: bool) -> NameEntry {
        let message = format!("a link to {what} is no skill");
        let (rule, message) = if has_document {
            ("link-above", message)
        } else {
            ("no-document", format!("it has no {DOCUMENT}, and {message}"))
        };
        let fix = "remove the link, or let it lead to the skill's own folder".to_owned();
        NameEntry::no_skill(folder, name, DiscoveryState::Empty, rule, message, fix)
    }

    fn no_skill(
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
        let summary = SkillSummary::no_skill(folder, name, problem);
        NameEntry { summary, state }
    }

    fn closed(folder: &Path, name: &str, refusal: &OpenError) -> NameEntry {
        let fault = format!("it cannot be opened: {}", refusal.for_people());
        let summary = SkillSummary::unusable(folder, name, fault);
        let state = DiscoveryState::Closed;
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

/// Names in frontmatters that mean no skill, or more than one.
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
                "its frontmatter has the name `{alias}`, which is that of the folder {}",
                skills[at].path.display()
            ),
            (Err(_), Some(first)) => format!(
                "its frontmatter has the name `{alias}`, and so has that of {}",
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
            fix: Some(own_name(skill, skills)),
        });
    }
    problems
}

/// What to call a skill whose name is another's: as its folder, if that may be.
fn own_name(skill: &SkillSummary, skills: &[SkillSummary]) -> String {
    if is_name(&skill.name) {
        return format!("give it the name `{}` there, as its folder has it", skill.name);
    }
    let is_free = |name: &String| !skills.iter().any(|other| other.name == *name);
    match valid_name(&skill.name).filter(is_free) {
        Some(valid) => format!("rename the folder to `{valid}`, and give it that name there"),
        None => "rename the folder, and give it the folder's name there".into(),
    }
}
