//! The linter: problems of a skill, here and in other clients.
//!
//! [`check`] examines one skill and changes nothing.
//! Problems that only an interpreter can find come from the probe and are described by
//! [`check_python()`]. Every rule is a row of [`RULES`].
//!
//! The linter must not report problems in good skills: the rules were measured on published
//! skills.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::frontmatter::{self, Frontmatter};
use crate::skills::yaml::fence::line_number;
use crate::skills::{Catalogue, Problem, Severity, Skill};

mod document;
mod fields;
mod files;
mod mentions;
mod python;
mod references;
mod remedy;
mod rules;
#[cfg(test)]
mod tests;

pub(super) use fields::is_name;
pub use python::check_python;
pub(crate) use python::without_interpreter;
pub use rules::RULES;

/// Returns all problems of a skill except those of its Python, sorted by file and line.
pub fn check(skill: &Skill) -> Vec<Problem> {
    let mut findings = Findings::default();
    if let Some((file_name, text)) = document::read(skill, &mut findings) {
        let document = DocumentText::new(&file_name, &text);
        document::check(&document, &mut findings);
        fields::check(skill, &document, &mut findings);
        references::check(skill, &document, &mut findings);
    }
    // The skill was just deleted, so its files are not checked.
    let is_deleted = |problem: &Problem| problem.rule == "no-document";
    if !findings.problems.iter().any(is_deleted) {
        files::check(skill, &mut findings);
    }
    findings.into_sorted()
}

/// Problems between skills and of the skills folders; their `file` is the absolute path of the
/// folder.
pub(crate) fn check_catalogue(catalogue: &Catalogue) -> Vec<Problem> {
    let judged =
        |problem: &Problem| Problem { severity: rules::severity(problem.rule), ..problem.clone() };
    let mut problems = folders_without_skills(catalogue);
    let found = catalogue.folder_errors.iter().chain(&catalogue.problems);
    problems.extend(found.map(judged));
    problems
}

/// Reports skills folders in which no subfolder has a document. A single subfolder without one
/// may be a skill that is being written.
fn folders_without_skills(catalogue: &Catalogue) -> Vec<Problem> {
    let mut folders: BTreeMap<&Path, (usize, bool)> = BTreeMap::new();
    for skill in &catalogue.skills {
        let folder = skill.path.parent().unwrap_or(Path::new(""));
        let (count, has_skill) = folders.entry(folder).or_default();
        *count += 1;
        *has_skill |= skill.not_a_skill.is_none();
    }
    let empty = folders.into_iter().filter(|(_, (count, has_skill))| *count > 1 && !has_skill);
    let problems = empty.map(|(folder, (count, _))| Problem {
        file: folder.to_path_buf(),
        line: None,
        rule: "no-skills",
        severity: rules::severity("no-skills"),
        message: format!("this is not a skills folder: none of its {count} folders has a SKILL.md"),
        fix: Some("name a skills folder: --skills DIR".to_owned()),
    });
    problems.collect()
}

/// A document's text and its parsed frontmatter.
struct DocumentText<'a> {
    file_name: &'a str,
    text: &'a str,
    frontmatter: Frontmatter,
}

impl<'a> DocumentText<'a> {
    fn new(file_name: &'a str, text: &'a str) -> DocumentText<'a> {
        let frontmatter = frontmatter::parse(text);
        DocumentText { file_name, text, frontmatter }
    }

    fn body(&self) -> &'a str {
        self.text.get(self.frontmatter.body_start..).unwrap_or_default()
    }

    /// Line number of the body's first line.
    fn body_line(&self) -> usize {
        line_number(self.text, self.frontmatter.body_start.min(self.text.len()))
    }

    /// The YAML between the lines of dashes.
    fn source(&self) -> &'a str {
        self.text.get(self.frontmatter.source.clone()).unwrap_or_default()
    }

    /// Line number of the first line of YAML.
    fn source_line(&self) -> usize {
        line_number(self.text, self.frontmatter.source.start.min(self.text.len()))
    }

    /// Line number of the field in effect, or of the opening dashes.
    fn line_of(&self, key: &str) -> usize {
        self.frontmatter.field_line(key, self.source(), self.source_line())
    }
}

/// Suffix of the last reported problem of a rule.
const MORE_OMITTED: &str = "; further problems of this kind are not listed";

/// The problems found so far.
#[derive(Default)]
struct Findings {
    problems: Vec<Problem>,
}

impl Findings {
    /// Adds a problem in a line of a file, with its fix.
    fn add(
        &mut self,
        rule: &'static str,
        file: &str,
        line: usize,
        message: impl Into<String>,
        fix: impl Into<Option<String>>,
    ) {
        let file = PathBuf::from(file);
        self.push(rule, file, Some(line), message.into(), fix.into());
    }

    /// Adds a problem. Beyond the limit per rule, only the last one kept says that there are
    /// more.
    fn push(
        &mut self,
        rule: &'static str,
        file: PathBuf,
        line: Option<usize>,
        message: String,
        fix: Option<String>,
    ) {
        let mut same = self.problems.iter_mut().filter(|p| p.rule == rule);
        if let Some(last) = same.nth(limits::PROBLEMS - 1) {
            if !last.message.ends_with(MORE_OMITTED) {
                last.message.push_str(MORE_OMITTED);
            }
            return;
        }
        self.problems.push(Problem {
            file,
            line,
            rule,
            severity: rules::severity(rule),
            message,
            fix,
        });
    }

    fn into_sorted(mut self) -> Vec<Problem> {
        self.problems.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        self.problems
    }
}
