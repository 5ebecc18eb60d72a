//! The linter: what is wrong with a skill, or will be elsewhere.
//!
//! [`check`] looks at one skill and changes nothing; `fix` mends what can
//! be mended with proof. What needs an interpreter comes from the probe and is
//! put in words by [`python()`]. Every rule is a row of [`RULES`].
//!
//! It must be quiet about good skills: rules were measured on published ones,
//! and what cannot be told from good work is not reported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::order;
use crate::skills::frontmatter::{self, Frontmatter};
use crate::skills::yaml::fence::line_number;
use crate::skills::{Catalogue, Problem, Severity, Skill};
use crate::text::quoted;

mod document;
mod fields;
mod files;
mod fix;
mod mentions;
mod python;
mod references;
mod remedy;
mod rules;
#[cfg(test)]
mod tests;

pub(super) use fields::is_name;
pub(crate) use fix::{Fixed, fix};
pub use python::python;
pub(crate) use python::refused;
pub use rules::RULES;

/// What `fix` makes of a document in the folder of this name, and the rules
/// that it broke: for `fuzz/`, without a file.
pub fn mended(document: &str, folder: &str) -> Option<(String, Vec<(usize, &'static str)>)> {
    fix::mend(document, folder).map(|mended| (mended.text, mended.fixed))
}

/// All that is wrong with a skill, but for its Python; in the order of files
/// and lines.
pub fn check(skill: &Skill) -> Vec<Problem> {
    let mut findings = Findings::default();
    if let Some((file_name, text)) = document::read(skill, &mut findings) {
        let page = DocumentText::new(&file_name, &text);
        document::check(&page, &mut findings);
        fields::check(skill, &page, &mut findings);
        promise(skill, &page, &mut findings);
        references::check(skill, &page, &mut findings);
    }
    // It was there a moment ago; what is left may be anything.
    let is_gone = |problem: &Problem| problem.rule == "no-document";
    if !findings.problems.iter().any(is_gone) {
        files::check(skill, &mut findings);
    }
    findings.into_sorted()
}

/// What is wrong between skills and with the skills folders. `file` is the
/// folder in question, absolute.
pub(crate) fn between(catalogue: &Catalogue) -> Vec<Problem> {
    let judged =
        |problem: &Problem| Problem { severity: rules::severity(problem.rule), ..problem.clone() };
    let mut problems = no_skills(catalogue);
    let found = catalogue.faults.iter().chain(&catalogue.problems);
    problems.extend(found.map(judged));
    problems
}

/// Folders of which none has a document are no skills, and what holds them is
/// no skills folder. One alone may be a skill that is being written.
fn no_skills(catalogue: &Catalogue) -> Vec<Problem> {
    let mut folders: BTreeMap<&Path, (usize, bool)> = BTreeMap::new();
    for skill in &catalogue.skills {
        let folder = skill.path.parent().unwrap_or(Path::new(""));
        let (count, has_skill) = folders.entry(folder).or_default();
        *count += 1;
        *has_skill |= skill.no_skill.is_none();
    }
    let empty = folders.into_iter().filter(|(_, (count, has_skill))| *count > 1 && !has_skill);
    let told = empty.map(|(folder, (count, _))| Problem {
        file: folder.to_path_buf(),
        line: None,
        rule: "no-skills",
        severity: rules::severity("no-skills"),
        message: format!("this is no folder of skills: none of its {count} folders has a SKILL.md"),
        fix: Some("name a folder of skills: --skills DIR".to_owned()),
    });
    told.collect()
}

/// Names the command that mends what can be mended: the rules that are broken
/// no longer in the document as it would be written.
fn promise(skill: &Skill, page: &DocumentText, findings: &mut Findings) {
    if findings.problems.is_empty() {
        return;
    }
    let mut after = Findings::default();
    // What is not UTF-8 was replaced to be read, and a link is not written through.
    let is_as_read = findings.problems.iter().all(|it| it.rule != "not-utf8");
    let is_written = || is_as_read && !document::is_link(skill, page.file_name);
    let mended = fix::mend(page.text, &skill.name).filter(|_| is_written());
    if let Some(mended) = &mended {
        let page = DocumentText::new(page.file_name, &mended.text);
        document::check(&page, &mut after);
        fields::check(skill, &page, &mut after);
    }
    for problem in &mut findings.problems {
        let is_left = after.problems.iter().any(|left| left.rule == problem.rule);
        let is_mended = match problem.rule {
            "document-case" => fix::can_rename(skill),
            _ => mended.is_some() && !is_left && is_of_text(problem.rule),
        };
        if is_mended {
            let name = quoted(Path::new(&skill.address));
            let command = format!("`skills-runner skills check --fix {name}` does it");
            problem.fix = Some(match problem.fix.take() {
                Some(fix) => format!("{fix} ({command})"),
                None => command,
            });
        }
    }
}

/// Whether a rule judges the text, and not where it stands.
fn is_of_text(rule: &str) -> bool {
    !["ambiguous-document", "not-utf8"].contains(&rule)
}

/// A document that was read as text.
struct DocumentText<'a> {
    file_name: &'a str,
    text: &'a str,
    front: Frontmatter,
}

impl<'a> DocumentText<'a> {
    fn new(file_name: &'a str, text: &'a str) -> DocumentText<'a> {
        let front = frontmatter::parse(text);
        DocumentText { file_name, text, front }
    }

    fn body(&self) -> &'a str {
        self.text.get(self.front.body_start..).unwrap_or_default()
    }

    /// The number of the body's first line.
    fn body_line(&self) -> usize {
        line_number(self.text, self.front.body_start.min(self.text.len()))
    }

    /// The YAML between the lines of dashes.
    fn source(&self) -> &'a str {
        self.text.get(self.front.source.clone()).unwrap_or_default()
    }

    /// The number of the first line of YAML.
    fn source_line(&self) -> usize {
        line_number(self.text, self.front.source.start.min(self.text.len()))
    }

    /// The line of the field that counts, or that of the opening dashes.
    fn line_of(&self, key: &str) -> usize {
        self.front.line_of(key, self.source(), self.source_line())
    }
}

/// Behind the last problem of a kind that is told.
const MORE: &str = "; more of the kind are not told one by one";

/// What was found so far.
#[derive(Default)]
struct Findings {
    problems: Vec<Problem>,
}

impl Findings {
    /// Adds a problem in a line of a file, with its remedy.
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

    /// Adds a problem, unless the rule has been broken too often to be told
    /// each time: then only the last one kept says that there are more.
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
            if !last.message.ends_with(MORE) {
                last.message.push_str(MORE);
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
        order::sort_by(&mut self.problems, &|one, other| {
            (&one.file, one.line).cmp(&(&other.file, other.line))
        });
        self.problems
    }
}
