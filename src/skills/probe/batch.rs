//! One start of the interpreter: what it is handed of many skills, and what it
//! answers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::files::{FileRole, is_material, own_modules, requirements, role, top_module, tree};
use super::{DeclaredPackage, ProbeResult, ProbedImport};
use crate::config::ScriptSettings;
use crate::limits;
use crate::skills::packages::{namespaced, package_of};
use crate::skills::python::{Interpreter, InterpreterQuery, python_path};
use crate::skills::requirements_text::decoded;
use crate::skills::{Problem, Severity, Skill};
use crate::text::one_line;
use crate::world::cancellation::Cancellation;
use crate::world::capture::CaptureLimits;
use crate::world::confined::read_whole;
use crate::world::process::{ProcessOutcome, Restrictions};

const PROGRAM: &str = include_str!("probe.py");

/// Modules that Python runs at its start, where it finds them.
const HOOKS: [&str; 2] = ["sitecustomize", "usercustomize"];

/// Skills that one start is asked about.
#[derive(Default)]
pub(super) struct ProbeBatch {
    pub(super) materials: Vec<SkillMaterial>,
    bytes: Vec<u8>,
}

/// What one skill brings to it.
pub(super) struct SkillMaterial {
    pub(super) number: usize,
    /// Those that the interpreter is handed, and the length of each.
    files: Vec<(PathBuf, FileRole, usize)>,
    own_modules: BTreeSet<String>,
    /// Not all of its files are known.
    is_cut: bool,
    /// What is known without an interpreter.
    probed: ProbeResult,
}

impl ProbeBatch {
    pub(super) fn has_room(&self) -> bool {
        self.bytes.len() < limits::PROBE_BATCH_BYTES
            && self.materials.len() < limits::PROBE_BATCH_SKILLS
    }

    pub(super) fn needs_python(&self) -> bool {
        self.materials.iter().any(|skill| !skill.files.is_empty())
    }

    /// Reads a skill's files.
    pub(super) fn add(&mut self, number: usize, skill: &Skill) {
        let tree = tree(skill);
        let mut material = SkillMaterial {
            number,
            files: Vec::new(),
            own_modules: own_modules(&tree),
            is_cut: tree.cut,
            probed: ProbeResult::new(skill),
        };
        let begin = self.bytes.len();
        for path in &tree.files {
            let Some(role) = role(path) else { continue };
            let read =
                skill.root.file(path).and_then(|file| read_whole(&file, limits::PROBE_FILE_BYTES));
            let mut fault = |message| material.probed.fault(path, None, "unprobed", message);
            match read {
                Err(refusal) => fault(format!("it cannot be read: {}", refusal.for_people())),
                Ok(piece) if piece.more => fault("it is too large to be looked at".into()),
                Ok(piece) if role == FileRole::Requirements => {
                    let text = decoded(&piece.bytes);
                    let mut found = requirements(path, &text);
                    if found.len() > limits::PROBE_ROWS {
                        found.truncate(limits::PROBE_ROWS);
                        let message = "it has more requirements than are looked at".to_string();
                        let probed = &mut material.probed;
                        probed.fault(path, None, "unreadable-requirements", message);
                    }
                    material.probed.declared.extend(found);
                }
                Ok(piece) => {
                    if self.bytes.len() + piece.bytes.len() - begin > limits::PROBE_SKILL_BYTES {
                        fault("the skill's Python files are too large to look at all".into());
                        break;
                    }
                    material.files.push((path.clone(), role, piece.bytes.len()));
                    self.bytes.extend(piece.bytes);
                }
            }
        }
        if material.is_cut {
            let message = "it has too many files to look at all".to_string();
            material.probed.fault(Path::new(""), None, "unprobed", message);
        }
        self.materials.push(material);
    }

    /// The number of the skill whose venv it is, where there is one.
    pub(super) fn first(&self) -> usize {
        self.materials.first().map_or(0, |skill| skill.number)
    }

    /// One start of the interpreter: what it says, and how it ended. The error
    /// says that it is no Python.
    pub(super) fn answers(
        &self,
        interpreter: &Interpreter,
        scripts: &ScriptSettings,
        confine: Option<&Restrictions>,
        cancellation: &Cancellation,
        limit: Duration,
    ) -> Result<(ProbeOutput, ProcessOutcome), String> {
        let outcome = self.run_probe(interpreter, scripts, confine, cancellation, limit)?;
        match ProbeOutput::parse(&outcome) {
            Some(answers) => Ok((answers, outcome)),
            None => Err(no_python(interpreter, &outcome)),
        }
    }

    fn run_probe(
        &self,
        interpreter: &Interpreter,
        scripts: &ScriptSettings,
        confine: Option<&Restrictions>,
        cancellation: &Cancellation,
        limit: Duration,
    ) -> Result<ProcessOutcome, String> {
        cancellation.check().map_err(|stop| stop.to_string())?;
        let search = python_path(scripts);
        let search: Vec<_> = search.iter().map(|folder| folder.to_string_lossy()).collect();
        let skills: Vec<_> = self
            .materials
            .iter()
            .map(|skill| {
                let files = skill.files.iter();
                let files: Vec<_> = files
                    .map(|(_, role, length)| json!([*role == FileRole::Project, length]))
                    .collect();
                json!([skill.number, files])
            })
            .collect();
        let asked = json!({
            "namespaced": namespaced().collect::<Vec<_>>(),
            "python_path": search,
            "most": limits::PROBE_ROWS,
            "most_toml": limits::PROBE_TOML_CHARS,
            "most_told": limits::PROBE_SKILL_ANSWER_BYTES,
            "seconds": limits::PROBE_SKILL_SECONDS,
            "memory": limits::PROBE_MEMORY_BYTES,
            "skills": skills,
        });
        let mut stdin = asked.to_string().into_bytes();
        stdin.push(b'\n');
        stdin.extend_from_slice(&self.bytes);
        let question = InterpreterQuery {
            source: PROGRAM,
            stdin: &stdin,
            environment: &interpreter.own_environment(scripts),
            limit,
            caps: CaptureLimits { head_bytes: limits::PROBE_ANSWER_BYTES, tail_bytes: 0 },
            confine: confine.cloned(),
        };
        let outcome = question.run(&interpreter.program, cancellation);
        cancellation.check().map_err(|stop| stop.to_string())?;
        outcome.map_err(|cause| format!("{} {cause}", interpreter.program.display()))
    }

    /// Files what was answered, and what is known without an answer, and gives the
    /// numbers of the skills that have none.
    pub(super) fn take(&mut self, answers: &ProbeOutput, probed: &mut [ProbeResult]) -> Vec<usize> {
        let mut unanswered = Vec::new();
        let mut given = answers.skills.iter().peekable();
        for skill in &mut self.materials {
            // They come in order.
            match given.next_if(|answer| answer.skill == skill.number) {
                Some(answer) => {
                    skill.add(answer, &answers.version);
                    skill.add_hidden(&answers.standard);
                }
                None => unanswered.push(skill.number),
            }
            probed[skill.number] = std::mem::take(&mut skill.probed);
        }
        unanswered
    }

    /// Files what is known without an interpreter.
    pub(super) fn finish(self, probed: &mut [ProbeResult]) {
        for skill in self.materials {
            probed[skill.number] = skill.probed;
        }
    }
}

impl SkillMaterial {
    /// Adds what the interpreter tells of the skill.
    fn add(&mut self, answer: &SkillLine, version: &str) {
        let files = &self.files;
        let path = |index: usize| {
            let file = files.get(index).map(|(path, _, _)| path.clone());
            file.unwrap_or_default()
        };
        for (index, line, message) in &answer.syntax {
            let file = path(*index);
            let is_material = is_material(&file);
            self.probed.syntax.push(Problem {
                line: *line,
                rule: "python-syntax",
                severity: if is_material { Severity::Warning } else { Severity::Error },
                message: format!("Python {version} cannot read it: {message}"),
                fix: None,
                file,
            });
        }
        for row in &answer.imports {
            let root = row.module.split('.').next().unwrap_or_default();
            if self.own_modules.contains(root) {
                continue;
            }
            let file = path(row.file);
            let package = package_of(&row.module);
            // What a file puts on its path may bring whatever nobody knows.
            let is_certain = package.is_some() || !(row.extends_path || self.is_cut);
            self.probed.imports.push(ProbedImport {
                line: row.line,
                is_optional: row.is_optional || is_material(&file),
                is_missing: row.is_missing && is_certain,
                package,
                module: row.module.clone(),
                file,
            });
        }
        for (index, message) in &answer.unread {
            let message = message.clone();
            self.probed.fault(&path(*index), None, "unprobed", message);
        }
        self.add_declared(answer, version);
        let (declaring, looking): (Vec<&str>, Vec<&str>) = (answer.cut.iter())
            .map(String::as_str)
            .partition(|kind| ["declared", "pythons", "faults"].contains(kind));
        if !looking.is_empty() {
            let message = "it imports more than is looked at".to_string();
            self.probed.fault(Path::new(""), None, "unprobed", message);
        }
        if !declaring.is_empty() {
            let message = "it declares more than is read".to_string();
            self.probed.fault(Path::new(""), None, "unreadable-requirements", message);
        }
    }

    /// Modules that are never imported, since Python has its own of the name.
    fn add_hidden(&mut self, standard: &BTreeSet<String>) {
        let scripts = || {
            let files = self.files.iter();
            let scripts = files.filter(|(_, role, _)| *role == FileRole::Script);
            scripts.map(|(path, _, _)| path.as_path())
        };
        let packages: BTreeSet<&Path> = scripts()
            .filter(|path| path.ends_with("__init__.py"))
            .filter_map(Path::parent)
            .collect();
        let is_package = |folder: &Path| packages.contains(folder);
        let hidden = scripts()
            .filter(|path| !is_material(path))
            .filter_map(|path| Some((path, top_module(path, &is_package)?)))
            .filter_map(|(path, name)| {
                let message = if HOOKS.contains(&name.as_str()) {
                    format!("`{name}` never runs here; elsewhere it may run with every script")
                } else if standard.contains(&name) {
                    format!(
                        "`{name}` is a module of Python's standard library: this one is never \
                         imported here, and elsewhere it may take the place of that one"
                    )
                } else {
                    return None;
                };
                Some(Problem {
                    file: path.to_path_buf(),
                    line: None,
                    rule: "hidden-module",
                    severity: Severity::Warning,
                    message,
                    fix: Some("give it a name of its own".to_owned()),
                })
            });
        let hidden: Vec<Problem> = hidden.collect();
        self.probed.faults.extend(hidden);
    }

    /// What scripts and projects declare. Material declares it for what is made
    /// of it, not for the skill.
    fn add_declared(&mut self, answer: &SkillLine, version: &str) {
        let (files, probed) = (&self.files, &mut self.probed);
        let path = |index: usize| {
            let (path, _, _) = files.get(index)?;
            Some(path.clone()).filter(|path| !is_material(path))
        };
        for (index, line, requirement) in &answer.declared {
            let Some(file) = path(*index) else { continue };
            probed.declared.push(DeclaredPackage {
                file,
                line: *line,
                requirement: requirement.clone(),
            });
        }
        for (index, line, asked, fits) in &answer.pythons {
            let Some(file) = path(*index) else { continue };
            let message = match fits {
                Some(true) => None,
                Some(false) => {
                    Some(format!("it asks for Python {asked}, and Python {version} runs it"))
                }
                None => Some(format!("`{asked}` names no versions of Python")),
            };
            if let Some(message) = message {
                probed.fault(&file, *line, "python-version", message);
            }
            probed.requires_python.push(DeclaredPackage {
                file,
                line: *line,
                requirement: asked.clone(),
            });
        }
        for (index, line, message) in &answer.faults {
            let Some(file) = path(*index) else { continue };
            let message = message.clone();
            probed.fault(&file, *line, "unreadable-requirements", message);
        }
    }
}

/// What the program says, line by line.
pub(super) struct ProbeOutput {
    version: String,
    /// The modules of its standard library.
    standard: BTreeSet<String>,
    skills: Vec<SkillLine>,
}

#[derive(Deserialize)]
struct StartLine {
    python: String,
    standard: BTreeSet<String>,
}

#[derive(Deserialize)]
struct SkillLine {
    skill: usize,
    syntax: Vec<(usize, Option<usize>, String)>,
    imports: Vec<ImportRow>,
    declared: Vec<(usize, Option<usize>, String)>,
    pythons: Vec<(usize, Option<usize>, String, Option<bool>)>,
    faults: Vec<(usize, Option<usize>, String)>,
    unread: Vec<(usize, String)>,
    /// The kinds of rows of which there are more.
    cut: Vec<String>,
}

/// An import, as an array.
#[derive(Deserialize)]
struct ImportRow {
    file: usize,
    module: String,
    line: usize,
    is_optional: bool,
    is_missing: bool,
    extends_path: bool,
}

impl ProbeOutput {
    /// Whatever else the interpreter may have printed is passed over; `None`
    /// where it did not begin to answer.
    fn parse(outcome: &ProcessOutcome) -> Option<ProbeOutput> {
        let (mut begin, mut skills) = (None, Vec::new());
        for line in outcome.stdout.head().split(|byte| *byte == b'\n') {
            if let Ok(start) = serde_json::from_slice::<StartLine>(line) {
                begin = Some(start);
            } else if let Ok(answer) = serde_json::from_slice(line) {
                skills.push(answer);
            }
        }
        begin.map(|start| ProbeOutput { version: start.python, standard: start.standard, skills })
    }
}

fn no_python(interpreter: &Interpreter, outcome: &ProcessOutcome) -> String {
    let program = interpreter.program.display();
    if outcome.timed_out {
        return format!("{program} does not start in time");
    }
    let stderr = outcome.stderr.text();
    let words = stderr.trim_end().lines().last().unwrap_or("it says nothing");
    let words = one_line(words, limits::QUOTED_BYTES);
    format!("{program} is no working Python 3.6 or later: {words}")
}
