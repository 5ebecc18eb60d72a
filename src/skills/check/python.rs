//! What the probe tells of a skill's Python, as problems with their remedy.
//!
//! A module is told once, at the file that needs it first. What a script does
//! without is a warning; a package is named only where it is well known, since
//! installing whatever bears a module's name is how strangers' code gets in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Findings;
use crate::config::ScriptSettings;
use crate::limits;
use crate::order;
use crate::skills::packages::{normalized, project};
use crate::skills::probe::{self, DeclaredPackage, ProbeResult, ProbedImport, is_material};
use crate::skills::python::{Interpreter, remedy, setup_command};
use crate::skills::setup::{REQUIREMENTS, is_archive, is_recorded, lacks_listed};
use crate::skills::venv::{self, VenvRecord};
use crate::skills::{Problem, Skill};
use crate::text;
use crate::world::cancellation::Cancellation;

/// What is wrong with the Python of skills, in their order: every interpreter
/// is started once for all the skills that it runs, and confined as scripts are. The
/// error says why the run
/// is to end.
pub fn python(
    skills: &[&Skill],
    scripts: &ScriptSettings,
    skills_folders: &[PathBuf],
    cancellation: &Cancellation,
) -> Result<Vec<Vec<Problem>>, String> {
    let groups = probe::group_by_interpreter(skills, scripts);
    let mut found: BTreeMap<PathBuf, Vec<Problem>> = BTreeMap::new();
    for (skill, reason) in groups.refused {
        found.insert(skill.path.clone(), refused(skill, &reason));
    }
    let until = Instant::now() + limits::PROBE_ALL;
    for group in groups.groups {
        let (python, of_group) = (&group.interpreter, &group.skills);
        let probed = match python.confine(scripts, skills_folders, limits::PROBE) {
            Ok(confine) => {
                probe::probe_until(python, of_group, scripts, confine.as_ref(), cancellation, until)
            }
            Err(cause) => Ok(probe::unprobed(of_group, &cause)),
        };
        cancellation.check().map_err(|stop| stop.to_string())?;
        for (at, skill) in group.skills.iter().enumerate() {
            let problems = match &probed {
                Ok(probed) => match probed.get(at) {
                    Some(probed) => check(skill, probed, &group.interpreter),
                    None => continue,
                },
                Err(reason) => refused(skill, reason),
            };
            found.insert(skill.path.clone(), problems);
        }
    }
    let of = |skill: &&Skill| found.get(&skill.path).cloned().unwrap_or_default();
    Ok(skills.iter().map(of).collect())
}

/// Nothing runs the skill's scripts; the reason names the remedy.
pub(crate) fn refused(skill: &Skill, reason: &str) -> Vec<Problem> {
    let mut findings = Findings::default();
    let venv = venv::of_skill(&skill.path);
    let rule = match &venv {
        Some(venv) if venv::is_begun(venv) => "unfinished-venv",
        Some(_) => "broken-venv",
        None => "no-python",
    };
    let fix = venv.as_ref().and_then(|venv| remedy(skill, venv));
    let name = venv.as_deref().and_then(Path::file_name);
    let file = name.map(PathBuf::from).unwrap_or_default();
    findings.push(rule, file, None, reason.to_owned(), fix);
    findings.problems
}

/// What was probed, put in words.
pub(super) fn check(
    skill: &Skill,
    probed: &ProbeResult,
    interpreter: &Interpreter,
) -> Vec<Problem> {
    let mut findings = Findings::default();
    findings.problems.extend(probed.syntax.iter().take(limits::PROBLEMS).cloned());
    findings.problems.extend(probed.faults.iter().take(limits::PROBLEMS).cloned());
    let mut is_whole = None;
    let mut is_whole = || *is_whole.get_or_insert_with(|| is_complete(skill, interpreter));
    let mut undeclared = Vec::new();
    for ((module, is_missing), imports) in by_module(probed) {
        let declared = match probed.declares(imports[0]) {
            // All that is listed is there, and does not bring it.
            Declaration::Perhaps if is_whole() => Declaration::No,
            declared => declared,
        };
        if is_missing {
            missing(skill, module, &imports, declared, &mut findings);
        } else if declared == Declaration::No
            && imports[0].package.is_some()
            && !imports[0].is_optional
        {
            undeclared.push(imports[0]);
        }
    }
    self::undeclared(skill, probed, interpreter, &undeclared, &mut findings);
    lacking(skill, probed, interpreter, &mut findings);
    stale(skill, probed, interpreter, &mut findings);
    findings.into_sorted()
}

fn is_complete(skill: &Skill, interpreter: &Interpreter) -> bool {
    let venv = interpreter.venv.as_deref();
    venv.is_some_and(|venv| !lacks_listed(skill, venv))
}

/// Modules that are installed and declared nowhere, all at the first of them:
/// one command declares them all.
fn undeclared(
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
    order::sort(&mut modules);
    modules.dedup();
    let last = modules.pop().unwrap_or_default();
    let (what, whose) = match modules.as_slice() {
        [] => (format!("{last} is"), "its package"),
        _ => (format!("{} and {last} are", modules.join(", ")), "their packages"),
    };
    let message = format!(
        "{what} installed here, and the skill declares {whose} nowhere: others have to guess what \
         to install"
    );
    let fix = Some(declare(skill, probed, interpreter));
    let (file, line) = (first.file.clone(), Some(first.line));
    findings.push("undeclared-import", file, line, message, fix);
}

/// How all packages that scripts need come to be declared, at once.
fn declare(skill: &Skill, probed: &ProbeResult, interpreter: &Interpreter) -> String {
    let undeclared = probed
        .imports
        .iter()
        .filter(|import| !import.is_optional && probed.declares(import) == Declaration::No);
    let mut packages: Vec<&str> = undeclared.filter_map(|import| import.package).collect();
    order::sort(&mut packages);
    packages.dedup();
    let command = setup_command(&skill.address, &packages);
    if interpreter.venv.is_some() {
        format!("`{command}` writes that into requirements.txt")
    } else {
        format!("`{command}` makes a venv, and writes that into requirements.txt")
    }
}

const TEST_FRAMEWORKS: [&str; 3] = ["hypothesis", "nose", "pytest"];

/// Imports by module, what is needed first, and by whether they are missing.
fn by_module(probed: &ProbeResult) -> BTreeMap<(&str, bool), Vec<&ProbedImport>> {
    let mut found: BTreeMap<(&str, bool), Vec<&ProbedImport>> = BTreeMap::new();
    for import in &probed.imports {
        // Whoever runs a skill's tests has them; nobody else misses them.
        if import.is_optional && TEST_FRAMEWORKS.contains(&import.module.as_str()) {
            continue;
        }
        let key = (import.module.as_str(), import.is_missing);
        found.entry(key).or_default().push(import);
    }
    for imports in found.values_mut() {
        order::sort_by_key(imports, |import| import.is_optional);
    }
    found
}

fn missing(
    skill: &Skill,
    module: &str,
    imports: &[&ProbedImport],
    declared: Declaration,
    findings: &mut Findings,
) {
    let first = imports[0];
    let mut files: Vec<_> = imports.iter().map(|import| &import.file).collect();
    order::sort(&mut files);
    files.dedup();
    let elsewhere = match files.len() - 1 {
        0 => String::new(),
        1 => ", as in one more file".to_owned(),
        more => format!(", as in {more} more files"),
    };
    let what = match (first.package, declared) {
        (_, Declaration::Yes) => "the skill declares it, and it is not installed".to_owned(),
        (_, Declaration::Perhaps) => "it is not installed".to_owned(),
        (Some(package), Declaration::No) => {
            format!("its package `{package}` is neither installed nor declared")
        }
        (None, Declaration::No) => "which package brings it is not known here".to_owned(),
    };
    let shown = text::one_line(module, limits::SUMMARY_CHARS);
    let (rule, message) = if first.is_optional {
        let need = if imports.iter().all(|import| is_material(&import.file)) {
            "only examples, templates or tests need it"
        } else {
            "can be done without"
        };
        let message = format!("`{shown}` is missing{elsewhere}, and {need}: {what}");
        ("optional-import", message)
    } else {
        ("missing-import", format!("`{shown}` is missing{elsewhere}: {what}"))
    };
    let command = |packages: &[&str]| format!("`{}`", setup_command(&skill.address, packages));
    let fix = match first.package {
        _ if declared != Declaration::No => Some(command(&[])),
        // A setup installs what is needed, and no more unless it is asked to.
        Some(package) if first.is_optional => {
            Some(format!("{}, if that is wanted", command(&[package])))
        }
        Some(_) => Some(command(&[])),
        None if first.is_optional => None,
        None => Some(format!("{}, with the package that brings it", command(&["PACKAGE"]))),
    };
    findings.push(rule, first.file.clone(), Some(first.line), message, fix);
}

/// A skill without a venv, which lacks something that one would hold. Where
/// all is there, the machine's own packages do.
fn lacking(
    skill: &Skill,
    probed: &ProbeResult,
    interpreter: &Interpreter,
    findings: &mut Findings,
) {
    let lacks =
        |import: &ProbedImport| import.is_missing && (!import.is_optional || probed.has_declared());
    // Declared, and not to be seen in an import: a program, or a plugin.
    let is_unseen = probed.has_declared() && probed.imports.is_empty();
    let is_lacking = probed.imports.iter().any(lacks) || is_unseen;
    if interpreter.venv.is_some() || !is_lacking {
        return;
    }
    let message = if probed.has_declared() {
        "the skill declares what it needs, and has no venv that holds it"
    } else {
        "the skill needs packages, and has no venv that holds them"
    };
    // A setup installs what is declared, and what is known by its import alone.
    let helps = |import: &&ProbedImport| lacks(import) && import.package.is_some();
    let fix = if probed.has_declared() || probed.imports.iter().any(|it| helps(&it)) {
        format!("`{}`", setup_command(&skill.address, &[]))
    } else {
        let command = setup_command(&skill.address, &["PACKAGE"]);
        format!("`{command}`, with the packages that bring what is missing")
    };
    let fix = Some(fix);
    findings.push("missing-venv", PathBuf::new(), None, message.to_owned(), fix);
}

/// A venv that a setup filled, and what the skill declares has changed since.
fn stale(skill: &Skill, probed: &ProbeResult, interpreter: &Interpreter, findings: &mut Findings) {
    let Some(venv) = interpreter.venv.as_deref() else {
        return;
    };
    let Some(record) = VenvRecord::of(venv) else {
        return;
    };
    let declared = || probed.declared.iter();
    let is_listed = |row: &&DeclaredPackage| row.file.ends_with(REQUIREMENTS);
    let is_new = |row: &DeclaredPackage| !is_recorded(&row.requirement, &record);
    let has_new =
        lacks_listed(skill, venv) || declared().any(|row| !is_listed(&row) && is_new(row));
    // What other files list, or nobody could read, is not known here.
    let is_option = |row: &DeclaredPackage| row.requirement.starts_with('-');
    let is_whole = probed.faults.is_empty() && !declared().any(is_option);
    let names: Vec<String> = declared().map(|row| project(&row.requirement)).collect();
    let is_gone = |line: &String| !names.contains(&project(line));
    let has_less = record.made && is_whole && record.declared.iter().any(is_gone);
    if has_new || has_less {
        let file = venv.strip_prefix(&skill.path).unwrap_or(venv);
        let message = "what the skill declares has changed since its venv was set up".to_owned();
        let fix = Some(format!("`{}`", setup_command(&skill.address, &[])));
        findings.push("stale-venv", file.to_path_buf(), None, message, fix);
    }
}

/// Whether the package of an import is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declaration {
    Yes,
    /// There are requirements that do not tell what they bring.
    Perhaps,
    No,
}

impl ProbeResult {
    fn has_declared(&self) -> bool {
        !self.declared.is_empty()
    }

    fn declares(&self, import: &ProbedImport) -> Declaration {
        let module = normalized(&import.module);
        let package = import.package.map(normalized);
        let names: Vec<Option<String>> = self.declared.iter().map(package_name).collect();
        let is_it = |name: &Option<String>| {
            name.as_ref().is_some_and(|name| *name == module || Some(name) == package.as_ref())
        };
        if names.iter().any(is_it) {
            Declaration::Yes
        } else if names.contains(&None) {
            Declaration::Perhaps
        } else {
            Declaration::No
        }
    }
}

/// The name in a requirement; none in an option, a path or an address.
fn package_name(declared: &DeclaredPackage) -> Option<String> {
    let text = declared.requirement.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let rest = text.trim_start_matches(is_part);
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !rest.starts_with(['/', ':', '+', '\\'])
        && !is_archive(text);
    is_name.then(|| project(text))
}
