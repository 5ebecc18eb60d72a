//! The linter: problems of a skill, here and in other clients.
//!
//! [`check`] examines one skill and changes nothing. Problems that only an interpreter can find
//! come from the probe and are described by [`check_python()`]. Every rule is a row of
//! [`crate::RULES`].
//!
//! The linter must not report problems in good skills: the rules were measured on published
//! skills.

use std::path::Path;

use crate::evals::{EvalsProblem, SkillEvals};
use crate::frontmatter::{self, Frontmatter};
use crate::yaml::fence::line_number;
use crate::{Catalogue, Problem, Rule, Severity, Skill};
use base::limits;
use base::text;

mod checked_skill;
mod document;
mod fields;
mod files;
mod mentions;
mod named_packages;
mod own_paths;
mod python;
#[cfg(test)]
mod reference_tests;
mod references;
mod scripts;
#[cfg(test)]
mod tests;

pub use checked_skill::{CheckedSkill, add_python_problems};
pub use fields::is_valid_name;
pub use python::check_python;

/// Returns all problems of a skill except those of its Python, sorted by file and line.
pub fn check(skill: &Skill) -> Vec<Problem> {
    let mut findings = Findings::default();
    let document = document::read(skill, &mut findings);
    let is_read = document.is_some();
    if let Some((file_name, text)) = document {
        let document = DocumentText::new(&file_name, &text);
        document::check(&document, &mut findings);
        fields::check(skill, &document, &mut findings);
        references::check(skill, &document, &mut findings);
    }
    // The skill was just deleted, so its files are not checked.
    if !findings.problems.iter().any(|problem| problem.rule == Rule::NoDocument) {
        files::check(skill, &mut findings);
        findings.extend(SkillEvals::read(skill).problems.into_iter().map(|problem| {
            let EvalsProblem { file, message } = problem;
            Problem::new(Rule::InvalidEvals, file, message)
        }));
    }
    let mut problems = findings.into_sorted();
    if !is_read {
        // Without its document no client loads the skill.
        let is_link = |it: &&mut Problem| it.rule == Rule::BrokenLink && is_document(&it.file);
        problems.iter_mut().filter(is_link).for_each(|link| link.severity = Severity::Error);
    }
    problems
}

fn is_document(file: &Path) -> bool {
    file.to_str().is_some_and(|name| name.eq_ignore_ascii_case(document::DOCUMENT_NAME))
}

/// Problems between skills and of the skills folders; their `file` is the absolute path of the
/// folder.
pub fn check_catalogue(catalogue: &Catalogue) -> Vec<Problem> {
    catalogue.folder_errors.iter().chain(&catalogue.problems).cloned().collect()
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

    /// Line number of the field in effect, or of the opening dashes.
    fn line_of(&self, key: &str) -> usize {
        let range = self.frontmatter.source.clone();
        let first_line = line_number(self.text, range.start.min(self.text.len()));
        self.frontmatter.field_line(key, self.text.get(range).unwrap_or_default(), first_line)
    }

    /// A problem in a line of the document.
    fn problem(&self, rule: Rule, line: usize, message: impl Into<String>) -> Problem {
        Problem::new(rule, self.file_name, message).at_line(line)
    }
}

/// A name or value shortened to one line, for messages.
fn display_value(value: &str) -> String {
    text::one_line(value, limits::SUMMARY_CHARS)
}

/// The first names of a list, in backticks, and the number of the others.
fn list_names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.iter().take(limits::SIMILAR_NAMES);
    let shown = shown.map(|name| format!("`{}`", text::one_line(name, limits::SUMMARY_CHARS)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(limits::SIMILAR_NAMES) {
        0 => shown,
        count => format!("{shown} and {count} more"),
    }
}

/// A line of a file of the skill.
struct Place<'a> {
    file: &'a str,
    line: usize,
}

/// The problems found so far.
#[derive(Default)]
struct Findings {
    problems: Vec<Problem>,
    /// Rules with more problems than are kept.
    cut: Vec<Rule>,
}

impl Findings {
    /// Adds a problem, up to the limit per rule.
    fn add(&mut self, problem: Problem) {
        let same = self.problems.iter().filter(|other| other.rule == problem.rule);
        if same.count() < limits::PROBLEMS {
            self.problems.push(problem);
        } else if !self.cut.contains(&problem.rule) {
            self.cut.push(problem.rule);
        }
    }

    fn extend(&mut self, problems: impl IntoIterator<Item = Problem>) {
        problems.into_iter().for_each(|problem| self.add(problem));
    }

    /// The problems by file and line; the last one kept of a rule says that there are more.
    fn into_sorted(mut self) -> Vec<Problem> {
        for rule in self.cut {
            let last = self.problems.iter_mut().rev().find(|problem| problem.rule == rule);
            if let Some(last) = last {
                last.message.push_str("; further problems of this kind are not listed");
            }
        }
        self.problems.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        self.problems
    }
}
