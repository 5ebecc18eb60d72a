//! Problems of a skill's Python, derived from the probe's results.
//!
//! A module is reported once, at the file that needs it first. A module that a script can do
//! without is a warning. A package is named only if it is well known: installing any package
//! with the name of a module is a way to install malicious code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Findings, display_value};
use crate::config::ScriptSettings;
use crate::secret::mask_url_logins;
use crate::skills::probe::{
    Declaration, ProbeResult, ProbedImport, ProbedSkill, is_sample_file, probe_skills,
};
use crate::skills::python::{Interpreter, InterpreterError, setup_command};
use crate::skills::venv::{self, VenvRecord, lacks_listed_requirements};
use crate::skills::{Problem, Rule, Skill};
use crate::world::cancellation::Cancellation;

/// Returns the Python problems of each skill, in the order of `skills`. Every interpreter is
/// started once for all skills that it runs, and confined like their scripts.
///
/// # Errors
///
/// The run was cancelled; the text says why.
pub fn check_python(
    skills: &[&Skill],
    scripts: &ScriptSettings,
    skills_folders: &[PathBuf],
    cancellation: &Cancellation,
) -> Result<Vec<Vec<Problem>>, String> {
    let probed = probe_skills(skills, scripts, skills_folders, cancellation);
    cancellation.check().map_err(|stop| stop.to_string())?;
    let problems = skills.iter().zip(probed).map(|(skill, probed)| match probed {
        ProbedSkill::WithoutPython => Vec::new(),
        ProbedSkill::Refused(error) => vec![without_interpreter(skill, &error)],
        ProbedSkill::Probed(python, result) => PythonCheck::new(skill, &result, &python).run(),
    });
    Ok(problems.collect())
}

/// Returns the problem of a skill whose scripts no interpreter can run.
pub(crate) fn without_interpreter(skill: &Skill, error: &InterpreterError) -> Problem {
    let rule = if error.defect.is_some() { Rule::BrokenVenv } else { Rule::NoPython };
    let venv = venv::path_in_skill(&skill.path);
    let name = venv.as_deref().and_then(Path::file_name);
    let file = name.map(PathBuf::from).unwrap_or_default();
    let fault = &error.fault;
    Problem { fix: fault.fix.clone(), ..Problem::new(rule, file, fault.message.as_str()) }
}

const TEST_FRAMEWORKS: [&str; 3] = ["hypothesis", "nose", "pytest"];

/// Groups imports by module and by whether they are missing; required imports come first.
fn group_by_module(probed: &ProbeResult) -> BTreeMap<(&str, bool), Vec<&ProbedImport>> {
    let mut found: BTreeMap<(&str, bool), Vec<&ProbedImport>> = BTreeMap::new();
    for import in &probed.imports {
        // Only the skill's own tests need them.
        if import.is_optional && TEST_FRAMEWORKS.contains(&import.module.as_str()) {
            continue;
        }
        let key = (import.module.as_str(), import.is_missing);
        found.entry(key).or_default().push(import);
    }
    for imports in found.values_mut() {
        imports.sort_by_key(|import| import.is_optional);
    }
    found
}

/// The check of one skill.
struct PythonCheck<'a> {
    skill: &'a Skill,
    probed: &'a ProbeResult,
    interpreter: &'a Interpreter,
    /// Whether the skill's venv has all packages that its requirements files list.
    has_all_listed: bool,
}

impl<'a> PythonCheck<'a> {
    fn new(
        skill: &'a Skill,
        probed: &'a ProbeResult,
        interpreter: &'a Interpreter,
    ) -> PythonCheck<'a> {
        let venv = interpreter.venv.as_deref();
        let has_all_listed = venv.is_some_and(|venv| !lacks_listed_requirements(skill, venv));
        PythonCheck { skill, probed, interpreter, has_all_listed }
    }

    /// Returns the problems in the probe's result.
    fn run(&self) -> Vec<Problem> {
        let mut findings = Findings::default();
        findings.extend(self.probed.problems.iter().cloned());
        let mut undeclared = Vec::new();
        for ((_, is_missing), imports) in group_by_module(self.probed) {
            let first = imports[0];
            if is_missing {
                findings.add(self.missing_import(&imports));
            } else if first.package.is_some() && self.is_undeclared(first) {
                undeclared.push(first);
            }
        }
        findings.extend(self.undeclared_imports(&undeclared));
        findings.extend(self.missing_venv());
        findings.extend(self.stale_venv());
        findings.into_sorted()
    }

    fn declaration_of(&self, import: &ProbedImport) -> Declaration {
        match self.probed.declaration_of(import) {
            // All listed packages are installed, and none provides it.
            Declaration::Unknown if self.has_all_listed => Declaration::No,
            declared => declared,
        }
    }

    /// Whether the scripts need a module whose package is not declared.
    fn is_undeclared(&self, import: &ProbedImport) -> bool {
        !import.is_optional && self.declaration_of(import) == Declaration::No
    }

    /// The command that installs these packages and those that the skill needs.
    fn setup(&self, packages: &[&str]) -> String {
        format!("`{}`", setup_command(&self.skill.address, packages))
    }

    /// The problem of a module that is not installed, at its first import.
    fn missing_import(&self, imports: &[&ProbedImport]) -> Problem {
        let first = imports[0];
        let declared = self.declaration_of(first);
        let what = match (first.package, declared) {
            (_, Declaration::Yes) => "the skill declares it, but it is not installed".to_owned(),
            (_, Declaration::Unknown) => "it is not installed".to_owned(),
            (Some(package), Declaration::No) => {
                format!("its package `{package}` is neither installed nor declared")
            }
            (None, Declaration::No) => "the package that provides it is not known".to_owned(),
        };
        let (rule, need) = if !first.is_optional {
            (Rule::MissingImport, "")
        } else if imports.iter().all(|import| is_sample_file(&import.file)) {
            (Rule::OptionalImport, "; only examples, templates or tests need it")
        } else {
            (Rule::OptionalImport, "; the script can run without it")
        };
        let module = display_value(&first.module);
        let message = format!("`{module}` is missing{need}: {what}");
        let problem = Problem::new(rule, &first.file, message).at_line(first.line);
        match first.package {
            _ if declared != Declaration::No => problem.with_fix(self.setup(&[])),
            // A setup installs optional packages only on request.
            Some(package) if first.is_optional => {
                problem.with_fix(format!("{}, if you need it", self.setup(&[package])))
            }
            Some(_) => problem.with_fix(self.setup(&[])),
            None if first.is_optional => problem,
            None => {
                let command = self.setup(&["PACKAGE"]);
                problem.with_fix(format!("{command}, where PACKAGE provides it"))
            }
        }
    }

    /// The problem of modules that are installed but not declared, at the first import: one
    /// command declares all.
    fn undeclared_imports(&self, imports: &[&ProbedImport]) -> Option<Problem> {
        let first = imports.iter().min_by_key(|it| (&it.file, it.line))?;
        let mut modules: Vec<String> =
            imports.iter().map(|it| format!("`{}`", it.module)).collect();
        modules.sort();
        modules.dedup();
        let message = format!(
            "the packages of {} are installed here, but not declared: other users have to guess \
             what to install",
            modules.join(", ")
        );
        // Also those that are missing.
        let needed = self.probed.imports.iter().filter(|import| self.is_undeclared(import));
        let mut packages: Vec<&str> = needed.filter_map(|it| it.package).collect();
        packages.sort_unstable();
        packages.dedup();
        let fix = format!("{} writes this to requirements.txt", self.setup(&packages));
        let problem = Problem::new(Rule::UndeclaredImport, &first.file, message);
        Some(problem.at_line(first.line).with_fix(fix))
    }

    /// The problem of a skill without a venv that declares packages, but imports none: it needs
    /// programs or plugins. Missing imports are reported by themselves.
    fn missing_venv(&self) -> Option<Problem> {
        let probed = self.probed;
        let is_lacking = !probed.declared.is_empty() && probed.imports.is_empty();
        (is_lacking && self.interpreter.venv.is_none()).then(|| {
            let message = "the skill declares packages, but has no venv with them";
            Problem::new(Rule::MissingVenv, "", message).with_fix(self.setup(&[]))
        })
    }

    /// The problem of a venv whose setup is older than the skill's declared requirements.
    fn stale_venv(&self) -> Option<Problem> {
        let venv = self.interpreter.venv.as_deref()?;
        let record = VenvRecord::read(venv)?;
        let declared = self.probed.declared.iter();
        let declared: BTreeSet<String> =
            declared.map(|row| mask_url_logins(&row.requirement).into()).collect();
        let is_unread = |problem: &Problem| {
            [Rule::Unprobed, Rule::UnreadableRequirements].contains(&problem.rule)
        };
        let is_whole = !self.probed.problems.iter().any(is_unread);
        let has_new = !declared.is_subset(&record.declared);
        let has_less = record.is_from_setup && is_whole && !record.declared.is_subset(&declared);
        (has_new || has_less).then(|| {
            let file = venv.strip_prefix(&self.skill.path).unwrap_or(venv);
            let message = "the skill's requirements have changed since its venv was set up";
            Problem::new(Rule::StaleVenv, file, message).with_fix(self.setup(&[]))
        })
    }
}
