//! The catalogue: all skills with their names, descriptions and problems. Skills that
//! cannot be used are listed too, with the reason.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::SkillsFolder;
use crate::names::is_qualified_name;
use crate::{Problem, Rule};
use base::limits;
use base::text;

/// The catalogue's entry for a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillSummary {
    /// The skill's name everywhere: the folder's name, or a longer one if that means another skill.
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
    /// Whether it is offered. Not if another skill takes its place, of which it is a copy or which
    /// lies in a default folder before it: it is reached by its name all the same. Not either if it
    /// is no skill on purpose.
    pub is_offered: bool,
    /// Why the folder is not a skill at all: it has no document, or is a link to a
    /// forbidden folder.
    pub not_a_skill: Option<Problem>,
    /// The folder, as a path below its skills folder.
    pub path: PathBuf,
    /// Problems of the document that do not prevent its use.
    pub problems: Vec<Problem>,
    /// Why the skill cannot be used; `None` if it can.
    pub error: Option<String>,
    /// The rule of that error.
    pub error_rule: Rule,
}

/// A skill without a document.
impl Default for SkillSummary {
    fn default() -> SkillSummary {
        SkillSummary {
            name: String::new(),
            description: String::new(),
            alias: None,
            argument_hint: None,
            is_for_model: true,
            is_for_users: true,
            is_offered: true,
            not_a_skill: None,
            path: PathBuf::new(),
            problems: Vec::new(),
            error: None,
            error_rule: Rule::UnreadableFile,
        }
    }
}

/// A skills folder, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderSummary {
    /// The folder.
    pub folder: SkillsFolder,
    /// Number of skills in it that can be used and are offered.
    pub skills: usize,
}

/// All skills.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Sorted by name.
    pub skills: Vec<SkillSummary>,
    /// The skills folders that were read, in their order; each real folder once.
    pub folders: Vec<FolderSummary>,
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

    /// Sets why the skill cannot be used.
    pub(super) fn unusable(self, error: String) -> SkillSummary {
        SkillSummary { error: Some(error), ..self }
    }

    /// Sets why the folder is not a skill; the problem's message is its error.
    pub(super) fn not_a_skill(self, problem: Problem) -> SkillSummary {
        let error = Some(problem.message.clone());
        SkillSummary { not_a_skill: Some(problem), error, ..self }
    }

    /// Whether the skill can be used.
    pub fn is_usable(&self) -> bool {
        self.error.is_none()
    }
}

impl Catalogue {
    /// The skills that can be used and are offered.
    pub fn usable(&self) -> impl Iterator<Item = &SkillSummary> {
        self.skills.iter().filter(|skill| skill.is_usable() && skill.is_offered)
    }

    /// A number for names, descriptions and errors of all offered skills.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for skill in self.skills.iter().filter(|skill| skill.is_offered) {
            (&skill.name, &skill.description, &skill.error).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The entry with this name.
    pub fn skill_named(&self, name: &str) -> Option<&SkillSummary> {
        let at = self.skills.binary_search_by(|skill| skill.name.as_str().cmp(name));
        at.ok().map(|at| &self.skills[at])
    }

    /// The usable skill that a name means: the skill's name, else the name in a frontmatter, the
    /// name as it is displayed on one line, or a name with a plugin (`PLUGIN:SKILL`).
    ///
    /// # Errors
    ///
    /// Why no skill is meant, for a model.
    pub fn find(&self, name: &str) -> Result<&SkillSummary, String> {
        let exact = self.skill_named(name);
        if let Some(skill) = exact.filter(|skill| skill.is_usable()) {
            return Ok(skill);
        }
        let is_meant = |skill: &&SkillSummary| {
            skill.alias.as_deref() == Some(name) || skill.display_name() == name
        };
        let mut found: Vec<&SkillSummary> = self.usable().filter(is_meant).collect();
        if found.is_empty() && name.contains(':') {
            let usable = self.skills.iter().filter(|skill| skill.is_usable());
            found = usable.filter(|skill| is_qualified_name(name, &skill.path)).collect();
        }
        match (found.as_slice(), exact.and_then(|skill| skill.error.as_ref())) {
            ([only], _) => Ok(only),
            ([first, ..], _) => {
                let names = found.iter().take(limits::LISTED_NAMES).map(|skill| &*skill.name);
                Err(format!(
                    "several skills have the name `{}`: use one of the names `{}`",
                    first.alias.as_deref().filter(|_| !name.contains(':')).unwrap_or(name),
                    names.collect::<Vec<_>>().join("`, `")
                ))
            }
            ([], Some(error)) => {
                let shown = text::one_line(name, limits::SUMMARY_CHARS);
                Err(format!("the skill `{shown}` cannot be used: {error}"))
            }
            ([], None) => Err(self.not_found_message(name)),
        }
    }

    /// The one usable skill whose name, or the name in its frontmatter, differs at most in letter
    /// case, `-`, `_` and blanks, and in what makes it a path: `skills/NAME/SKILL.md`.
    pub fn find_meant(&self, name: &str) -> Option<&SkillSummary> {
        let plain = |name: &str| {
            let letters = name.trim().chars().map(|c| if matches!(c, '_' | ' ') { '-' } else { c });
            letters.flat_map(char::to_lowercase).collect::<String>()
        };
        let path = plain(name);
        let own = path.trim_start_matches("./").trim_start_matches("skills/");
        let own = own.trim_end_matches("/skill.md").trim_end_matches('/');
        let is_meant = |skill: &&SkillSummary| {
            plain(&skill.name) == own || skill.alias.as_ref().is_some_and(|name| plain(name) == own)
        };
        let mut found = self.usable().filter(is_meant);
        found.next().filter(|_| found.next().is_none())
    }

    /// The message for a name that no skill has.
    fn not_found_message(&self, name: &str) -> String {
        let names = || self.usable().map(|skill| skill.name.as_str());
        let shown = text::one_line(name, limits::SUMMARY_CHARS);
        let own = Path::new(name.trim_end_matches(".md")).file_name();
        let is_meant = |it: &&Problem| it.rule == Rule::FlatFile && it.file.file_stem() == own;
        if let Some(flat) = self.problems.iter().find(is_meant) {
            return format!(
                "there is no skill `{shown}`: {}",
                text::one_line_name(&flat.with_remedy())
            );
        }
        if names().next().is_none() {
            let errors = self.folder_errors.iter().map(|problem| problem.message.as_str());
            let errors = errors.collect::<Vec<_>>().join("; ");
            let why = if errors.is_empty() { "" } else { ": " };
            return format!("there is no skill `{shown}`, and no other skill either{why}{errors}");
        }
        // A plugin may have another name here.
        let own = name.rsplit_once([':', '/']).map(|(_, own)| own);
        let near = match names().find(|known| Some(*known) == own) {
            Some(own) => vec![own],
            None => text::similar_names(name, names(), limits::SIMILAR_NAMES),
        };
        if !near.is_empty() {
            return format!(
                "there is no skill `{shown}`; did you mean `{}`?",
                text::one_line_name(&near.join("` or `"))
            );
        }
        let all: Vec<&str> = names().take(limits::LISTED_NAMES).collect();
        let more = match names().count() - all.len() {
            0 => String::new(),
            more => format!(", … and {more} more"),
        };
        format!(
            "there is no skill `{shown}`; the skills are: {}{more}",
            text::one_line_name(&all.join(", "))
        )
    }
}
