//! Problems of a skill's Python, derived from the probe's results.
//!
//! Faults with one remedy are one problem: all modules that are missing on this machine, all whose
//! packages the skill does not name. Samples (templates, examples, tests) need nothing. A package
//! is named only if it is well known: installing any package with the name of a module is a way to
//! install malicious code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::named_packages::NamedPackages;
use super::{Findings, display_value};
use crate::probe::{
    Declaration, ProbeResult, ProbedImport, ProbedSkill, is_sample_file, probe_skills,
};
use crate::python::{Interpreter, InterpreterError, setup_command};
use crate::venv::{self, VenvRecord, lacks_listed_requirements};
use crate::{Problem, Rule, Skill};
use crate::{ScriptSettings, SkillsFolder};
use base::secret::mask_url_logins;
use host::cancellation::Cancellation;

/// Returns the Python problems of each skill, in the order of `skills`. Every interpreter is
/// started once for all skills that it runs, and confined like their scripts.
///
/// # Errors
///
/// The run was cancelled; the text says why.
pub fn check_python(
    skills: &[&Skill],
    scripts: &ScriptSettings,
    skills_folders: &[SkillsFolder],
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
fn without_interpreter(skill: &Skill, error: &InterpreterError) -> Problem {
    let rule = if error.defect.is_some() { Rule::BrokenVenv } else { Rule::NoPython };
    let venv = venv::path_in_skill(&skill.path);
    let name = venv.as_deref().and_then(Path::file_name);
    let file = name.map(PathBuf::from).unwrap_or_default();
    let fault = &error.fault;
    Problem { fix: fault.fix.clone(), ..Problem::new(rule, file, fault.message.as_str()) }
}

/// Modules that come with many other packages, so that few skills name theirs.
const DEPENDENCIES: [&str; 8] = [
    "google.auth",
    "google.oauth2",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "typing_extensions",
    "urllib3",
];

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
        findings.extend(self.of_files());
        let imports = self.probed.imports.iter().filter(|it| !is_sample_file(&it.file));
        let mut imports: Vec<&ProbedImport> = imports.collect();
        // A module counts where it is needed first.
        imports.sort_by_key(|it| (it.is_optional, &it.file, it.line));
        let mut seen = BTreeSet::new();
        imports.retain(|it| seen.insert(it.module.as_str()));
        let missing: Vec<_> = imports.iter().copied().filter(|it| it.is_missing).collect();
        let (optional, required): (Vec<_>, Vec<_>) =
            missing.into_iter().partition(|it| it.is_optional);
        findings.extend(self.missing_imports(&required));
        findings.extend(self.optional_imports(&optional));
        imports.retain(|it| !it.is_optional);
        findings.extend(self.undeclared_imports(&imports));
        findings.extend(self.missing_venv());
        // The same command installs missing modules.
        if required.is_empty() {
            findings.extend(self.stale_venv());
        }
        findings.into_sorted()
    }

    /// The problems that the probe found in single files. What another version of Python
    /// remedies is one problem, also where the present one cannot read a file.
    fn of_files(&self) -> Vec<Problem> {
        let mut found = self.probed.problems.clone();
        let is_version = |problem: &Problem| problem.rule == Rule::PythonVersion;
        let files = found.iter().filter(|it| is_version(it)).map(|it| it.file.clone());
        let files: Vec<PathBuf> = files.collect();
        found.retain(|problem| {
            let is_unread =
                |file: &PathBuf| *file == problem.file || file.extension() != Some("py".as_ref());
            problem.rule != Rule::PythonSyntax || !files.iter().any(is_unread)
        });
        let mut is_first = true;
        found.retain(|problem| !is_version(problem) || std::mem::take(&mut is_first));
        if self.interpreter.venv.is_none() {
            let fix = "set SCRIPT_PYTHON to a Python of another version";
            found.iter_mut().filter(|it| is_version(it)).for_each(|it| it.fix = Some(fix.into()));
        }
        found
    }

    fn is_undeclared(&self, import: &ProbedImport) -> bool {
        match self.probed.declaration_of(import) {
            // All listed packages are installed, and none provides it.
            Declaration::Unknown => self.has_all_listed,
            declared => declared == Declaration::No,
        }
    }

    /// The command that installs these packages and those that the skill needs.
    fn setup(&self, packages: &[&str]) -> String {
        format!("`{}`", setup_command(self.skill, packages))
    }

    /// The problem of modules that scripts need and that are missing on this machine, at the
    /// first import.
    fn missing_imports(&self, imports: &[&ProbedImport]) -> Option<Problem> {
        let first = imports.first()?;
        let message = format!("missing on this machine: {}", modules(imports));
        let problem = Problem::new(Rule::MissingImport, &first.file, message).at_line(first.line);
        let undeclared = imports.iter().copied().filter(|it| self.is_undeclared(it));
        let (known, unknown): (Vec<_>, Vec<_>) = undeclared.partition(|it| it.package.is_some());
        let mut packages = packages(&known);
        Some(if unknown.is_empty() {
            problem.with_fix(self.setup(&packages))
        } else {
            packages.push("PACKAGE");
            let (command, unknown) = (self.setup(&packages), modules(&unknown));
            problem.with_fix(format!("{command}, where PACKAGE provides {unknown}"))
        })
    }

    /// The problem of missing modules that scripts need only for some of what they do, at the
    /// first import.
    fn optional_imports(&self, imports: &[&ProbedImport]) -> Option<Problem> {
        let first = imports.first()?;
        let message = format!(
            "missing on this machine, and needed only for some uses of the scripts: {}",
            modules(imports)
        );
        let problem = Problem::new(Rule::OptionalImport, &first.file, message).at_line(first.line);
        let (undeclared, declared): (Vec<&ProbedImport>, Vec<_>) =
            imports.iter().partition(|it| self.is_undeclared(it));
        // A setup installs optional packages only on request.
        let packages = packages(&undeclared);
        Some(if packages.is_empty() && declared.is_empty() {
            problem
        } else {
            let them = if imports.len() == 1 { "it" } else { "them" };
            problem.with_fix(format!("{}, if you need {them}", self.setup(&packages)))
        })
    }

    /// The problem of modules whose packages the skill neither declares nor mentions, at the
    /// first import. A module without a known package may be of a declared one with another
    /// name, or, if it is installed, of no package.
    fn undeclared_imports(&self, required: &[&ProbedImport]) -> Option<Problem> {
        let declares_none = self.probed.declared.is_empty();
        let is_certain = |it: &&&ProbedImport| {
            let is_of_none = it.is_missing && declares_none;
            self.is_undeclared(it) && (it.package.is_some() || is_of_none)
        };
        let imports = required.iter().filter(is_certain);
        let mut imports: Vec<&ProbedImport> = imports.copied().collect();
        if imports.is_empty() {
            return None;
        }
        let named = NamedPackages::read(self.skill);
        imports.retain(|it| !named.includes(&it.module, it.package));
        if imports.len() < required.len() {
            imports.retain(|it| !DEPENDENCIES.contains(&it.module.as_str()));
        }
        let first = imports.first()?;
        let noun = if imports.len() == 1 { "package" } else { "packages" };
        let message = format!(
            "no file of the skill names the {noun} of {}: users have to guess what to install",
            modules(&imports)
        );
        let known = packages(&imports);
        let packages = match known.len() {
            0 => format!("the {noun}"),
            _ => quoted(known.into_iter()),
        };
        let problem = Problem::new(Rule::UndeclaredImport, &first.file, message);
        let fix = format!("name {packages} in requirements.txt or in the document");
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

    /// The problem of a venv whose setup is older than some of the skill's requirements.
    fn stale_venv(&self) -> Option<Problem> {
        let venv = self.interpreter.venv.as_deref()?;
        let record = VenvRecord::read(venv)?;
        let mut declared = self.probed.declared.iter();
        declared.any(|row| !record.declared.contains(&*mask_url_logins(&row.requirement))).then(
            || {
                let file = venv.strip_prefix(&self.skill.path).unwrap_or(venv);
                let message = "the skill declares requirements since its venv was set up";
                Problem::new(Rule::StaleVenv, file, message).with_fix(self.setup(&[]))
            },
        )
    }
}

/// The names of modules, for messages.
fn modules(imports: &[&ProbedImport]) -> String {
    let names: BTreeSet<String> = imports.iter().map(|it| display_value(&it.module)).collect();
    quoted(names.iter().map(String::as_str))
}

/// The known packages that provide modules.
fn packages(imports: &[&ProbedImport]) -> Vec<&'static str> {
    let names: BTreeSet<&str> = imports.iter().filter_map(|it| it.package).collect();
    names.into_iter().collect()
}

fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
