//! One start of the interpreter: the input from many skills, and the parsed output.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::files::{
    FileRole, file_role, file_tree, is_sample_file, own_modules, requirements, top_module,
};
use super::{DeclaredPackage, ProbeResult, ProbedImport};
use crate::config::ScriptSettings;
use crate::limits;
use crate::skills::packages::{namespaced_modules, package_of};
use crate::skills::python::{Interpreter, InterpreterQuery, python_path};
use crate::skills::requirements_text::decode;
use crate::skills::{Problem, Severity, Skill};
use crate::text::one_line;
use crate::world::cancellation::Cancellation;
use crate::world::capture::CaptureLimits;
use crate::world::confined::read_whole;
use crate::world::process::{ProcessOutcome, Restrictions};

const PROGRAM: &str = include_str!("probe.py");

/// Modules that Python runs at its start if it finds them.
const HOOKS: [&str; 2] = ["sitecustomize", "usercustomize"];

/// The skills of one start.
#[derive(Default)]
pub(super) struct ProbeBatch {
    pub(super) inputs: Vec<SkillInput>,
    bytes: Vec<u8>,
}

/// The input from one skill.
pub(super) struct SkillInput {
    pub(super) number: usize,
    /// The files that the interpreter gets, each with its length.
    files: Vec<(PathBuf, FileRole, usize)>,
    own_modules: BTreeSet<String>,
    /// Whether the list of its files is incomplete.
    is_cut: bool,
    /// The part of the result that needs no interpreter.
    probed: ProbeResult,
}

impl ProbeBatch {
    pub(super) fn has_room(&self) -> bool {
        self.bytes.len() < limits::PROBE_BATCH_BYTES
            && self.inputs.len() < limits::PROBE_BATCH_SKILLS
    }

    pub(super) fn needs_python(&self) -> bool {
        self.inputs.iter().any(|skill| !skill.files.is_empty())
    }

    /// Reads a skill's files.
    pub(super) fn add_skill(&mut self, number: usize, skill: &Skill) {
        let tree = file_tree(skill);
        let mut material = SkillInput {
            number,
            files: Vec::new(),
            own_modules: own_modules(&tree),
            is_cut: tree.is_cut,
            probed: ProbeResult::new(skill),
        };
        let begin = self.bytes.len();
        for path in &tree.files {
            let Some(role) = file_role(path) else { continue };
            let read =
                skill.root.file(path).and_then(|file| read_whole(&file, limits::PROBE_FILE_BYTES));
            let mut report = |message| material.probed.add_problem(path, None, "unprobed", message);
            match read {
                Err(error) => report(format!("it cannot be read: {}", error.user_message())),
                Ok(piece) if piece.has_more => report("it is too large to check".into()),
                Ok(piece) if role == FileRole::Requirements => {
                    let text = decode(&piece.bytes);
                    let mut found = requirements(path, &text);
                    if found.len() > limits::PROBE_ROWS {
                        found.truncate(limits::PROBE_ROWS);
                        let message = "it has more requirements than are read".to_string();
                        let probed = &mut material.probed;
                        probed.add_problem(path, None, "unreadable-requirements", message);
                    }
                    material.probed.declared.extend(found);
                }
                Ok(piece) => {
                    if self.bytes.len() + piece.bytes.len() - begin > limits::PROBE_SKILL_BYTES {
                        report("the skill's Python files are too large to check all".into());
                        break;
                    }
                    material.files.push((path.clone(), role, piece.bytes.len()));
                    self.bytes.extend(piece.bytes);
                }
            }
        }
        if material.is_cut {
            let message = "it has too many files to check all".to_string();
            material.probed.add_problem(Path::new(""), None, "unprobed", message);
        }
        self.inputs.push(material);
    }

    /// The number of the first skill: the owner of the venv, if the interpreter is a venv's.
    pub(super) fn first_skill(&self) -> usize {
        self.inputs.first().map_or(0, |skill| skill.number)
    }

    /// Starts the interpreter; returns its parsed output and how it ended. Fails if it is
    /// not a Python.
    pub(super) fn run(
        &self,
        interpreter: &Interpreter,
        scripts: &ScriptSettings,
        confine: Option<&Restrictions>,
        cancellation: &Cancellation,
        limit: Duration,
    ) -> io::Result<(ProbeOutput, ProcessOutcome)> {
        let outcome = self.start_interpreter(interpreter, scripts, confine, cancellation, limit)?;
        match ProbeOutput::parse(&outcome) {
            Some(answers) => Ok((answers, outcome)),
            None => Err(io::Error::other(not_python_error(interpreter, &outcome))),
        }
    }

    fn start_interpreter(
        &self,
        interpreter: &Interpreter,
        scripts: &ScriptSettings,
        confine: Option<&Restrictions>,
        cancellation: &Cancellation,
        limit: Duration,
    ) -> io::Result<ProcessOutcome> {
        let search = python_path(scripts);
        let search: Vec<_> = search.iter().map(|folder| folder.to_string_lossy()).collect();
        let skills: Vec<_> = self
            .inputs
            .iter()
            .map(|skill| {
                let files = skill.files.iter();
                let files: Vec<_> = files
                    .map(|(_, role, length)| json!([*role == FileRole::Project, length]))
                    .collect();
                json!([skill.number, files])
            })
            .collect();
        let request = json!({
            "namespaced": namespaced_modules().collect::<Vec<_>>(),
            "python_path": search,
            "max_rows": limits::PROBE_ROWS,
            "max_toml_chars": limits::PROBE_TOML_CHARS,
            "max_answer_bytes": limits::PROBE_SKILL_ANSWER_BYTES,
            "seconds": limits::PROBE_SKILL_SECONDS,
            "memory": limits::PROBE_MEMORY_BYTES,
            "skills": skills,
        });
        let mut stdin = request.to_string().into_bytes();
        stdin.push(b'\n');
        stdin.extend_from_slice(&self.bytes);
        let question = InterpreterQuery {
            source: PROGRAM,
            stdin: &stdin,
            environment: &interpreter.query_environment(scripts),
            limit,
            output_limits: CaptureLimits { head_bytes: limits::PROBE_ANSWER_BYTES, tail_bytes: 0 },
            restrictions: confine.cloned(),
        };
        question.run(&interpreter.program, cancellation)
    }

    /// Stores all results, with the answers if there are any. Returns the numbers of the
    /// skills without an answer.
    pub(super) fn store_answers(
        &mut self,
        answers: &ProbeOutput,
        probed: &mut [ProbeResult],
    ) -> Vec<usize> {
        let mut unanswered = Vec::new();
        let mut given = answers.skills.iter().peekable();
        for skill in &mut self.inputs {
            // Answers are in the order of the skills.
            match given.next_if(|answer| answer.skill == skill.number) {
                Some(answer) => {
                    skill.add_answer(answer, &answers.version);
                    skill.add_hidden_modules(&answers.standard);
                }
                None => unanswered.push(skill.number),
            }
            probed[skill.number] = std::mem::take(&mut skill.probed);
        }
        unanswered
    }

    /// Stores the results that need no interpreter.
    pub(super) fn store_known(self, probed: &mut [ProbeResult]) {
        for skill in self.inputs {
            probed[skill.number] = skill.probed;
        }
    }
}

impl SkillInput {
    /// Adds the interpreter's answer for the skill.
    fn add_answer(&mut self, answer: &SkillLine, version: &str) {
        let files = &self.files;
        let path = |index: usize| {
            let file = files.get(index).map(|(path, _, _)| path.clone());
            file.unwrap_or_default()
        };
        for (index, line, message) in &answer.syntax {
            let file = path(*index);
            let is_material = is_sample_file(&file);
            self.probed.syntax_problems.push(Problem {
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
            // Folders that a file adds to `sys.path` may provide any unknown module.
            let is_certain = package.is_some() || !(row.extends_path || self.is_cut);
            self.probed.imports.push(ProbedImport {
                line: row.line,
                is_optional: row.is_optional || is_sample_file(&file),
                is_missing: row.is_missing && is_certain,
                package,
                module: row.module.clone(),
                file,
            });
        }
        for (index, message) in &answer.unchecked {
            let message = message.clone();
            self.probed.add_problem(&path(*index), None, "unprobed", message);
        }
        self.add_declared(answer, version);
        let (declaring, looking): (Vec<&str>, Vec<&str>) = (answer.cut.iter())
            .map(String::as_str)
            .partition(|kind| ["declared", "python_versions", "problems"].contains(kind));
        if !looking.is_empty() {
            let message = "it imports more modules than are checked".to_string();
            self.probed.add_problem(Path::new(""), None, "unprobed", message);
        }
        if !declaring.is_empty() {
            let message = "it declares more requirements than are read".to_string();
            self.probed.add_problem(Path::new(""), None, "unreadable-requirements", message);
        }
    }

    /// Reports modules that are never imported, as Python has its own of the name.
    fn add_hidden_modules(&mut self, standard: &BTreeSet<String>) {
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
            .filter(|path| !is_sample_file(path))
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
                    fix: Some("give it another name".to_owned()),
                })
            });
        let hidden: Vec<Problem> = hidden.collect();
        self.probed.problems.extend(hidden);
    }

    /// Adds the requirements of scripts and projects. Those of samples are for what is made
    /// from the sample, not for the skill.
    fn add_declared(&mut self, answer: &SkillLine, version: &str) {
        let (files, probed) = (&self.files, &mut self.probed);
        let path = |index: usize| {
            let (path, _, _) = files.get(index)?;
            Some(path.clone()).filter(|path| !is_sample_file(path))
        };
        for (index, line, requirement) in &answer.declared {
            let Some(file) = path(*index) else { continue };
            probed.declared.push(DeclaredPackage {
                file,
                line: *line,
                requirement: requirement.clone(),
            });
        }
        for (index, line, required, fits) in &answer.python_versions {
            let Some(file) = path(*index) else { continue };
            let message = match fits {
                Some(true) => None,
                Some(false) => {
                    Some(format!("it requires Python {required}, and Python {version} runs it"))
                }
                None => Some(format!("`{required}` is not a valid version specifier")),
            };
            if let Some(message) = message {
                probed.add_problem(&file, *line, "python-version", message);
            }
            probed.requires_python.push(DeclaredPackage {
                file,
                line: *line,
                requirement: required.clone(),
            });
        }
        for (index, line, message) in &answer.problems {
            let Some(file) = path(*index) else { continue };
            let message = message.clone();
            probed.add_problem(&file, *line, "unreadable-requirements", message);
        }
    }
}

/// The program's parsed output.
pub(super) struct ProbeOutput {
    version: String,
    /// The modules of the interpreter's standard library.
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
    python_versions: Vec<(usize, Option<usize>, String, Option<bool>)>,
    problems: Vec<(usize, Option<usize>, String)>,
    unchecked: Vec<(usize, String)>,
    /// The kinds of rows that were cut.
    cut: Vec<String>,
}

/// An import; a JSON array.
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
    /// Parses the answers; all other output is ignored. `None` if there is no first line.
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

fn not_python_error(interpreter: &Interpreter, outcome: &ProcessOutcome) -> String {
    let program = interpreter.program.display();
    if outcome.timed_out {
        return format!("{program} did not start in time");
    }
    let stderr = outcome.stderr.text();
    let words = stderr.trim_end().lines().last().unwrap_or("it printed nothing");
    let words = one_line(words, limits::QUOTED_BYTES);
    format!("{program} is not a working Python 3.6 or later: {words}")
}
