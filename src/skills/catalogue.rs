//! The catalogue: all skills with their names, descriptions and problems. Skills that
//! cannot be used are listed too, with the reason.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::Problem;
use crate::text;

/// The catalogue's entry for a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillSummary {
    /// The folder's name: the skill's name everywhere.
    pub name: String,
    /// From the frontmatter, as it is written there; or the document's first line of
    /// text; empty if there is no document.
    pub description: String,
    /// The name in the frontmatter, if it differs from the folder's.
    pub alias: Option<String>,
    /// The arguments that the user types after the name, from the frontmatter, on one line.
    pub argument_hint: Option<String>,
    /// Whether the model may invoke it: not with `disable-model-invocation`, which
    /// leaves that to the user.
    pub is_for_model: bool,
    /// Whether the user may invoke it: not with `user-invocable: false`.
    pub is_for_users: bool,
    /// Why the folder is not a skill at all: it has no document, or is a link to a
    /// forbidden folder.
    pub not_a_skill: Option<Problem>,
    /// The folder, as a path below its skills folder.
    pub path: PathBuf,
    /// Problems of the document that do not prevent its use.
    pub problems: Vec<Problem>,
    /// Why the skill cannot be used; `None` if it can.
    pub error: Option<String>,
}

/// All skills.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Sorted by name.
    pub skills: Vec<SkillSummary>,
    /// Skills folders that are missing or cannot be read: each message names its folder,
    /// and `file` is the folder.
    pub folder_errors: Vec<Problem>,
    /// Problems of the skills folders and between skills: duplicate names, names that are
    /// not UTF-8. `file` is the folder concerned.
    pub problems: Vec<Problem>,
}

impl SkillSummary {
    /// The description without line ends and runs of blanks.
    pub fn description_line(&self) -> Cow<'_, str> {
        let description = self.description.trim();
        // Nearly all descriptions are one line already.
        let is_odd = |byte: u8| !byte.is_ascii_graphic() && byte != b' ';
        if description.contains("  ") || description.bytes().any(is_odd) {
            Cow::Owned(text::one_line(description, limits::DESCRIPTION_KEPT_BYTES))
        } else {
            Cow::Borrowed(description)
        }
    }

    /// The folder's name on one line and without control characters; the skill can be
    /// opened by it, too.
    pub fn display_name(&self) -> Cow<'_, str> {
        if self.name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Cow::Borrowed(&self.name);
        }
        Cow::Owned(text::one_line_name(&self.name))
    }

    pub(super) fn unusable(folder: &Path, name: &str, error: String) -> SkillSummary {
        SkillSummary {
            name: name.to_string(),
            description: String::new(),
            alias: None,
            argument_hint: None,
            is_for_model: true,
            is_for_users: true,
            not_a_skill: None,
            path: folder.join(name),
            problems: Vec::new(),
            error: Some(error),
        }
    }

    /// A folder that is not a skill; the problem's message is its error.
    pub(super) fn not_a_skill(folder: &Path, name: &str, problem: Problem) -> SkillSummary {
        SkillSummary {
            not_a_skill: Some(problem.clone()),
            ..SkillSummary::unusable(folder, name, problem.message)
        }
    }

    /// Whether the skill can be used.
    pub fn is_usable(&self) -> bool {
        self.error.is_none()
    }
}

impl Catalogue {
    /// The skills that can be used.
    pub fn usable(&self) -> impl Iterator<Item = &SkillSummary> {
        self.skills.iter().filter(|skill| skill.is_usable())
    }

    /// The skill whose folder has this name.
    pub fn skill_named(&self, name: &str) -> Option<&SkillSummary> {
        let at = self.skills.binary_search_by(|skill| skill.name.as_str().cmp(name));
        at.ok().map(|at| &self.skills[at])
    }

    /// The message for a name that opens no skill.
    pub(super) fn not_found_message(&self, name: &str) -> String {
        let names = || self.skills.iter().map(|skill| skill.name.as_str());
        let shown = text::one_line(name, limits::SUMMARY_CHARS);
        if let Some(error) = self.skill_named(name).and_then(|skill| skill.error.as_ref()) {
            return format!("the skill `{shown}` cannot be used: {error}");
        }
        if self.skills.is_empty() {
            let errors = self.folder_errors.iter().map(|problem| problem.message.as_str());
            let errors = errors.collect::<Vec<_>>().join("; ");
            let why = if errors.is_empty() { "" } else { ": " };
            return format!("there is no skill `{shown}`, and no other skill either{why}{errors}");
        }
        let near = text::similar_names(name, names(), limits::SIMILAR_NAMES);
        if !near.is_empty() {
            return format!(
                "there is no skill `{shown}`; did you mean `{}`?",
                text::one_line_name(&near.join("` or `"))
            );
        }
        let all: Vec<&str> = names().take(limits::LISTED_NAMES).collect();
        let more = match self.skills.len() - all.len() {
            0 => String::new(),
            more => format!(", … and {more} more"),
        };
        format!(
            "there is no skill `{shown}`; the skills are: {}{more}",
            text::one_line_name(&all.join(", "))
        )
    }
}
