//! What there is: the skills with their names and descriptions, and what is
//! wrong with each. What cannot be used is still listed, with the reason.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::Problem;
use crate::text;

/// What the catalogue tells of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillSummary {
    /// The folder's name: the skill's name everywhere.
    pub name: String,
    /// From the frontmatter, as it is written there; or the document's first
    /// line of text; empty where there is no document.
    pub description: String,
    /// Another name, from the frontmatter.
    pub alias: Option<String>,
    /// What a person types behind the name, as the frontmatter says it, in one line.
    pub argument_hint: Option<String>,
    /// Whether the model is told of it: not with `disable-model-invocation`,
    /// then it is the user who invokes it.
    pub is_for_model: bool,
    /// Whether a person may invoke it: not with `user-invocable: false`.
    pub is_for_users: bool,
    /// Why the folder is no skill at all, if it is none: it has no document, or a
    /// link leads where none may lead.
    pub no_skill: Option<Problem>,
    /// The folder, as it was found.
    pub path: PathBuf,
    /// What is wrong with the document and stops nothing.
    pub problems: Vec<Problem>,
    /// Why the skill cannot be used, if it cannot.
    pub fault: Option<String>,
}

/// All skills.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Sorted by name.
    pub skills: Vec<SkillSummary>,
    /// Folders that are missing or cannot be read: each message names its
    /// folder, which `file` is.
    pub faults: Vec<Problem>,
    /// What is wrong with the skills folders and between skills: names that
    /// stand twice, names that are no text. `file` is the folder in question.
    pub problems: Vec<Problem>,
}

impl SkillSummary {
    /// The description without line ends and runs of blanks.
    pub fn description_line(&self) -> Cow<'_, str> {
        let description = self.description.trim();
        // Nearly all are one line already.
        let is_odd = |byte: u8| !byte.is_ascii_graphic() && byte != b' ';
        if description.contains("  ") || description.bytes().any(is_odd) {
            Cow::Owned(text::one_line(description, limits::DESCRIPTION_KEPT_BYTES))
        } else {
            Cow::Borrowed(description)
        }
    }

    /// The folder's name as one line, whatever a stranger called it; it opens
    /// the skill, too.
    pub fn shown_name(&self) -> Cow<'_, str> {
        if self.name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Cow::Borrowed(&self.name);
        }
        Cow::Owned(text::one_name(&self.name))
    }

    pub(super) fn unusable(folder: &Path, name: &str, fault: String) -> SkillSummary {
        SkillSummary {
            name: name.to_string(),
            description: String::new(),
            alias: None,
            argument_hint: None,
            is_for_model: true,
            is_for_users: true,
            no_skill: None,
            path: folder.join(name),
            problems: Vec::new(),
            fault: Some(fault),
        }
    }

    /// A folder that is no skill; what the problem says is its fault.
    pub(super) fn no_skill(folder: &Path, name: &str, problem: Problem) -> SkillSummary {
        SkillSummary {
            no_skill: Some(problem.clone()),
            ..SkillSummary::unusable(folder, name, problem.message)
        }
    }

    /// Whether it can be used.
    pub fn is_usable(&self) -> bool {
        self.fault.is_none()
    }
}

impl Catalogue {
    /// The skills that can be used.
    pub fn usable(&self) -> impl Iterator<Item = &SkillSummary> {
        self.skills.iter().filter(|skill| skill.is_usable())
    }

    /// The skill whose folder has this name.
    pub fn named(&self, name: &str) -> Option<&SkillSummary> {
        let at = self.skills.binary_search_by(|skill| skill.name.as_str().cmp(name));
        at.ok().map(|at| &self.skills[at])
    }

    /// The message for a name that opens no skill.
    pub(super) fn not_found(&self, name: &str) -> String {
        let names = || self.skills.iter().map(|skill| skill.name.as_str());
        let shown = text::one_line(name, limits::SUMMARY_CHARS);
        if let Some(fault) = self.named(name).and_then(|skill| skill.fault.as_ref()) {
            return format!("the skill `{shown}` cannot be used: {fault}");
        }
        if self.skills.is_empty() {
            let faults = self.faults.iter().map(|fault| fault.message.as_str());
            let faults = faults.collect::<Vec<_>>().join("; ");
            let why = if faults.is_empty() { "" } else { ": " };
            return format!("there is no skill `{shown}`, and no other skill either{why}{faults}");
        }
        let near = text::nearest(name, names(), limits::NEAR_NAMES);
        if !near.is_empty() {
            return format!(
                "there is no skill `{shown}`; did you mean `{}`?",
                text::one_name(&near.join("` or `"))
            );
        }
        let all: Vec<&str> = names().take(limits::NAMES).collect();
        let more = match self.skills.len() - all.len() {
            0 => String::new(),
            more => format!(", … and {more} more"),
        };
        format!(
            "there is no skill `{shown}`; the skills are: {}{more}",
            text::one_name(&all.join(", "))
        )
    }
}
