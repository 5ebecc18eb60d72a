//! Problems of a skill's Python, derived from the probe's results.
//!
//! A module is reported once, at the file that needs it first. A module that a script can do
//! without is a warning. A package is named only if it is well known: installing any package
//! with the name of a module is a way to install malicious code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Findings;
use crate::config::ScriptSettings;
use crate::limits;
use crate::secret::mask_url_logins;
use crate::skills::probe::{self, Declaration, ProbeResult, ProbedImport, is_sample_file};
use crate::skills::python::{Interpreter, InterpreterError, VenvDefect, setup_command};
use crate::skills::sandbox_grants::query_restrictions;
use crate::skills::venv::{self, VenvRecord, lacks_listed_requirements};
use crate::skills::{Problem, Skill};
use crate::text;
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
    let groups = probe::group_by_interpreter(skills, scripts);
    let mut found: BTreeMap<PathBuf, Vec<Problem>> = BTreeMap::new();
    for (skill, error) in groups.refused {
        found.insert(skill.path.clone(), without_interpreter(skill, &error));
    }
    let until = Instant::now() + limits::PROBE_TOTAL_TIMEOUT;
    for group in groups.groups {
        let (python, of_group) = (&group.interpreter, &group.skills);
        let confine = query_restrictions(python, scripts, skills_folders, limits::PROBE_TIMEOUT);
        let probed = match confine {
            Ok(confine) => {
                probe::probe(python, of_group, scripts, confine.as_ref(), cancellation, until)
            }
            Err(error) => {
                let cause = error.to_string();
                Ok(of_group.iter().map(|skill| probe::unprobed(skill, &cause)).collect())
            }
        };
        cancellation.check().map_err(|stop| stop.to_string())?;
        for (at, skill) in group.skills.iter().enumerate() {
            let problems = match &probed {
                Ok(probed) => match probed.get(at) {
                    Some(probed) => check(skill, probed, &group.interpreter),
                    None => continue,
                },
                Err(error) => without_interpreter(skill, error),
            };
            found.insert(skill.path.clone(), problems);
        }
    }
    let of = |skill: &&Skill| found.get(&skill.path).cloned().unwrap_or_default();
    Ok(skills.iter().map(of).collect())
}

/// Returns the problem of a skill whose scripts no interpreter can run.
pub(crate) fn without_interpreter(skill: &Skill, error: &InterpreterError) -> Vec<Problem> {
    let mut findings = Findings::default();
    let rule = match error.defect {
        Some(VenvDefect::Unfinished) => "unfinished-venv",
        Some(_) => "broken-venv",
        None => "no-python",
    };
    let venv = venv::path_in_skill(&skill.path);
    let name = venv.as_deref().and_then(Path::file_name);
    let file = name.map(PathBuf::from).unwrap_or_default();
    findings.push(rule, file, None, error.message.clone(), Some(error.fix.clone()));
    findings.problems
}

/// Returns the problems in the probe's result for a skill.
pub(super) fn check(
    skill: &Skill,
    probed: &ProbeResult,
    interpreter: &Interpreter,
) -> Vec<Problem> {
    let mut findings = Findings::default();
    findings.problems.extend(probed.problems.iter().take(limits::PROBLEMS).cloned());
    let mut is_whole = None;
    let mut is_whole = || *is_whole.get_or_insert_with(|| has_all_listed(skill, interpreter));
    let mut undeclared = Vec::new();
    for ((module, is_missing), imports) in group_by_module(probed) {
        let declared = match probed.declaration_of(imports[0]) {
            // All listed packages are installed, and none provides it.
            Declaration::Unknown if is_whole() => Declaration::No,
            declared => declared,
        };
        if is_missing {
            report_missing(skill, module, &imports, declared, &mut findings);
        } else if declared == Declaration::No
            && imports[0].package.is_some()
            && !imports[0].is_optional
        {
            undeclared.push(imports[0]);
        }
    }
    self::report_undeclared(skill, probed, interpreter, &undeclared, &mut findings);
    report_missing_venv(skill, probed, interpreter, &mut findings);
    report_stale_venv(skill, probed, interpreter, &mut findings);
    findings.into_sorted()
}

fn has_all_listed(skill: &Skill, interpreter: &Interpreter) -> bool {
    let venv = interpreter.venv.as_deref();
    venv.is_some_and(|venv| !lacks_listed_requirements(skill, venv))
}

/// Reports all modules that are installed but not declared in one problem, at the first import:
/// one command declares them all.
fn report_undeclared(
    skill: &Skill,
    probed: &ProbeResult,
    interpreter: &Interpreter,
    imports: &[&ProbedImport],
    findings: &mut Findings,
) {
    let Some(first) = imports.iter().min_by_key(|it| (&it.file, it.line)) else {
        return;
    };
    let modules = imports.iter().map(|it| format!("`{}`", it.module));
    let mut modules: Vec<String> = modules.collect();
    modules.sort();
    modules.dedup();
    let last = modules.pop().unwrap_or_default();
    let (what, whose) = match modules.as_slice() {
        [] => (format!("{last} is"), "its package"),
        _ => (format!("{} and {last} are", modules.join(", ")), "their packages"),
    };
    let message = format!(
        "{what} installed here, but the skill does not declare {whose}: other users have to \
         guess what to install"
    );
    let fix = Some(declare_command(skill, probed, interpreter));
    let (file, line) = (first.file.clone(), Some(first.line));
    findings.push("undeclared-import", file, line, message, fix);
}

/// Returns the fix that declares all packages that the scripts need.
fn declare_command(skill: &Skill, probed: &ProbeResult, interpreter: &Interpreter) -> String {
    let undeclared = probed
        .imports
        .iter()
        .filter(|import| !import.is_optional && probed.declaration_of(import) == Declaration::No);
    let mut packages: Vec<&str> = undeclared.filter_map(|import| import.package).collect();
    packages.sort();
    packages.dedup();
    let command = setup_command(&skill.address, &packages);
    if interpreter.venv.is_some() {
        format!("`{command}` writes this to requirements.txt")
    } else {
        format!("`{command}` creates a venv, and writes this to requirements.txt")
    }
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

fn report_missing(
    skill: &Skill,
    module: &str,
    imports: &[&ProbedImport],
    declared: Declaration,
    findings: &mut Findings,
) {
    let first = imports[0];
    let mut files: Vec<_> = imports.iter().map(|import| &import.file).collect();
    files.sort();
    files.dedup();
    let elsewhere = match files.len() - 1 {
        0 => String::new(),
        1 => ", also in one more file".to_owned(),
        more => format!(", also in {more} more files"),
    };
    let what = match (first.package, declared) {
        (_, Declaration::Yes) => "the skill declares it, but it is not installed".to_owned(),
        (_, Declaration::Unknown) => "it is not installed".to_owned(),
        (Some(package), Declaration::No) => {
            format!("its package `{package}` is neither installed nor declared")
        }
        (None, Declaration::No) => "the package that provides it is not known".to_owned(),
    };
    let shown = text::one_line(module, limits::SUMMARY_CHARS);
    let (rule, message) = if first.is_optional {
        let need = if imports.iter().all(|import| is_sample_file(&import.file)) {
            "only examples, templates or tests need it"
        } else {
            "the script can run without it"
        };
        let message = format!("`{shown}` is missing{elsewhere}; {need}: {what}");
        ("optional-import", message)
    } else {
        ("missing-import", format!("`{shown}` is missing{elsewhere}: {what}"))
    };
    let command = |packages: &[&str]| format!("`{}`", setup_command(&skill.address, packages));
    let fix = match first.package {
        _ if declared != Declaration::No => Some(command(&[])),
        // A setup installs optional packages only on request.
        Some(package) if first.is_optional => {
            Some(format!("{}, if you need it", command(&[package])))
        }
        Some(_) => Some(command(&[])),
        None if first.is_optional => None,
        None => Some(format!("{}, where PACKAGE provides it", command(&["PACKAGE"]))),
    };
    findings.push(rule, first.file.clone(), Some(first.line), message, fix);
}

/// Reports a skill that lacks packages and has no venv. If nothing is missing, the machine's
/// own packages suffice.
fn report_missing_venv(
    skill: &Skill,
    probed: &ProbeResult,
    interpreter: &Interpreter,
    findings: &mut Findings,
) {
    let lacks = |import: &ProbedImport| {
        import.is_missing && (!import.is_optional || !probed.declared.is_empty())
    };
    // A declared package that no import shows: a program or a plugin.
    let is_without_import = !probed.declared.is_empty() && probed.imports.is_empty();
    let is_lacking = probed.imports.iter().any(lacks) || is_without_import;
    if interpreter.venv.is_some() || !is_lacking {
        return;
    }
    let message = if !probed.declared.is_empty() {
        "the skill declares packages, but has no venv with them"
    } else {
        "the skill needs packages, but has no venv with them"
    };
    // A setup installs declared packages, and well-known ones by their imports.
    let helps = |import: &&ProbedImport| lacks(import) && import.package.is_some();
    let fix = if !probed.declared.is_empty() || probed.imports.iter().any(|it| helps(&it)) {
        format!("`{}`", setup_command(&skill.address, &[]))
    } else {
        let command = setup_command(&skill.address, &["PACKAGE"]);
        format!("`{command}`, where PACKAGE provides what is missing")
    };
    let fix = Some(fix);
    findings.push("missing-venv", PathBuf::new(), None, message.to_owned(), fix);
}

/// Reports a venv whose setup is older than the skill's declared requirements.
fn report_stale_venv(
    skill: &Skill,
    probed: &ProbeResult,
    interpreter: &Interpreter,
    findings: &mut Findings,
) {
    let Some(venv) = interpreter.venv.as_deref() else {
        return;
    };
    let Some(record) = VenvRecord::read(venv) else {
        return;
    };
    let declared = probed.declared.iter().map(|row| mask_url_logins(&row.requirement).into());
    let declared: BTreeSet<String> = declared.collect();
    let is_unread =
        |problem: &Problem| ["unprobed", "unreadable-requirements"].contains(&problem.rule);
    let is_whole = !probed.problems.iter().any(is_unread);
    let has_new = !declared.is_subset(&record.declared);
    let has_less = record.is_from_setup && is_whole && !record.declared.is_subset(&declared);
    if has_new || has_less {
        let file = venv.strip_prefix(&skill.path).unwrap_or(venv);
        let message = "the skill's requirements have changed since its venv was set up".to_owned();
        let fix = Some(format!("`{}`", setup_command(&skill.address, &[])));
        findings.push("stale-venv", file.to_path_buf(), None, message, fix);
    }
}
