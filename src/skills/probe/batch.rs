//! One start of the interpreter: the input from many skills, and the parsed output.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::files::{FileRole, file_role, file_tree, is_sample_file, own_modules, top_module};
use super::result::{ProbeResult, ProbedImport};
use crate::ScriptSettings;
use crate::packages::{namespaced_modules, package_of};
use crate::python::{Interpreter, InterpreterQuery, python_path};
use crate::requirements::{DeclaredPackage, read_requirements};
use crate::{Problem, Rule, Skill};
use base::limits;
use base::text::one_line;
use host::cancellation::Cancellation;
use host::capture::CaptureLimits;
use host::confined::read_whole;
use host::process::{ProcessOutcome, Restrictions};

const PROGRAM: &str = include_str!("probe.py");

/// Modules that Python runs at its start if it finds them.
const HOOKS: [&str; 2] = ["sitecustomize", "usercustomize"];

/// The rules of the problems that `probe.py` reports.
const RULES: [Rule; 4] =
    [Rule::PythonSyntax, Rule::PythonVersion, Rule::Unprobed, Rule::UnreadableRequirements];

/// The skills of one start.
#[derive(Default)]
pub(super) struct ProbeBatch {
    pub(super) inputs: Vec<SkillInput>,
    bytes: Vec<u8>,
}

/// The input from one skill.
pub(super) struct SkillInput {
    number: usize,
    /// The files that the interpreter gets, each with its length.
    files: Vec<(PathBuf, FileRole, usize)>,
    own_modules: BTreeSet<String>,
    /// Whether the list of its files is incomplete.
    is_cut: bool,
    /// The part of the result that needs no interpreter.
    pub(super) result: ProbeResult,
}

impl ProbeBatch {
    /// Reads the files of the first of these skills.
    pub(super) fn read(numbers: &[usize], skills: &[&Skill]) -> ProbeBatch {
        let mut batch = ProbeBatch::default();
        for number in numbers.iter().take(limits::PROBE_BATCH_SKILLS) {
            let input = SkillInput::read(*number, skills[*number], &mut batch.bytes);
            batch.inputs.push(input);
            if batch.bytes.len() >= limits::PROBE_BATCH_BYTES {
                break;
            }
        }
        batch
    }

    pub(super) fn needs_python(&self) -> bool {
        self.inputs.iter().any(SkillInput::needs_python)
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
        let search = python_path(scripts);
        let search: Vec<_> = search.iter().map(|folder| folder.to_string_lossy()).collect();
        let request = json!({
            "namespaced": namespaced_modules().collect::<Vec<_>>(),
            "python_path": search,
            "max_rows": limits::PROBE_ROWS,
            "max_toml_chars": limits::PROBE_TOML_CHARS,
            "max_answer_bytes": limits::PROBE_SKILL_ANSWER_BYTES,
            "seconds": limits::PROBE_SKILL_SECONDS,
            "memory": limits::PROBE_MEMORY_BYTES,
            "skills": self.inputs.iter().map(SkillInput::to_json).collect::<Vec<_>>(),
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
        let outcome = question.run(&interpreter.program, cancellation)?;
        match ProbeOutput::parse(&outcome) {
            Some(output) => Ok((output, outcome)),
            None => Err(io::Error::other(not_python_error(interpreter, &outcome))),
        }
    }

    /// Stores all results, with the answers if there are any. Returns the numbers of the
    /// skills without an answer.
    pub(super) fn store_answers(
        self,
        output: &ProbeOutput,
        results: &mut [ProbeResult],
    ) -> Vec<usize> {
        let mut unanswered = Vec::new();
        let mut answers = output.skills.iter().peekable();
        for mut skill in self.inputs {
            // Answers are in the order of the skills.
            match answers.next_if(|answer| answer.skill == skill.number) {
                Some(answer) => {
                    skill.add_answer(answer);
                    skill.add_hidden_modules(&output.standard);
                }
                None => unanswered.push(skill.number),
            }
            results[skill.number] = skill.result;
        }
        unanswered
    }

    /// Stores the results that need no interpreter.
    pub(super) fn store_known(self, results: &mut [ProbeResult]) {
        for skill in self.inputs {
            results[skill.number] = skill.result;
        }
    }
}

impl SkillInput {
    /// Reads a skill's files; the interpreter gets the bytes.
    pub(super) fn read(number: usize, skill: &Skill, bytes: &mut Vec<u8>) -> SkillInput {
        let tree = file_tree(skill);
        let mut files = Vec::new();
        let mut result = ProbeResult::default();
        let begin = bytes.len();
        for path in &tree.files {
            let Some(role) = file_role(path) else { continue };
            if role == FileRole::Requirements {
                if let Err(why) = read_requirements(&skill.root, path, &mut result.declared) {
                    result.add_problem(path, None, Rule::UnreadableRequirements, why);
                }
                continue;
            }
            let read =
                skill.root.file(path).and_then(|file| read_whole(&file, limits::PROBE_FILE_BYTES));
            let mut report = |message| result.add_problem(path, None, Rule::Unprobed, message);
            match read {
                Err(error) => report(format!("it cannot be read: {}", error.user_message())),
                Ok(piece) if piece.has_more => report("it is too large to check".into()),
                Ok(piece)
                    if bytes.len() + piece.bytes.len() - begin > limits::PROBE_SKILL_BYTES =>
                {
                    report("the skill's Python files are too large to check all".into());
                    break;
                }
                Ok(piece) => {
                    files.push((path.clone(), role, piece.bytes.len()));
                    bytes.extend(piece.bytes);
                }
            }
        }
        if tree.is_cut {
            result.add_unprobed("it has too many files to check all".into());
        }
        SkillInput { number, files, own_modules: own_modules(&tree), is_cut: tree.is_cut, result }
    }

    pub(super) fn needs_python(&self) -> bool {
        !self.files.is_empty()
    }

    fn to_json(&self) -> serde_json::Value {
        let files = self.files.iter();
        let files: Vec<_> =
            files.map(|(_, role, length)| json!([*role == FileRole::Project, length])).collect();
        json!([self.number, files])
    }

    fn path(&self, index: usize) -> PathBuf {
        self.files.get(index).map(|(path, _, _)| path.clone()).unwrap_or_default()
    }

    /// Adds the interpreter's answer for the skill.
    fn add_answer(&mut self, answer: &SkillLine) {
        for row in &answer.imports {
            let root = row.module.split('.').next().unwrap_or_default();
            if self.own_modules.contains(root) {
                continue;
            }
            let file = self.path(row.file);
            let package = package_of(&row.module);
            // Folders that a file adds to `sys.path` may provide any unknown module.
            let is_certain = package.is_some() || !(row.extends_path || self.is_cut);
            self.result.imports.push(ProbedImport {
                line: row.line,
                is_optional: row.is_optional || is_sample_file(&file),
                is_missing: row.is_missing && is_certain,
                package,
                module: row.module.clone(),
                file,
            });
        }
        for (index, line, requirement) in &answer.declared {
            let file = self.path(*index);
            // Those of samples are for what is made from the sample, not for the skill.
            if !is_sample_file(&file) {
                let (line, requirement) = (*line, requirement.clone());
                let declared = DeclaredPackage { file, line, requirement, is_listed: false };
                self.result.declared.push(declared);
            }
        }
        for (rule, index, line, message) in &answer.problems {
            let file = self.path(*index);
            let Some(rule) = RULES.into_iter().find(|known| known.name() == rule) else { continue };
            // Samples may have placeholders, or errors on purpose.
            if rule == Rule::Unprobed || !is_sample_file(&file) {
                self.result.add_problem(&file, *line, rule, message.clone());
            }
        }
        if answer.is_cut {
            self.result.add_unprobed("it has more imports or requirements than are read".into());
        }
    }

    /// Reports modules that are never imported, as Python has its own of the name.
    fn add_hidden_modules(&mut self, standard: &BTreeSet<String>) {
        let scripts = self.files.iter().filter(|(_, role, _)| *role == FileRole::Script);
        let scripts = scripts.map(|(path, _, _)| path.as_path());
        let packages = scripts.clone().filter(|path| path.ends_with("__init__.py"));
        let packages: BTreeSet<&Path> = packages.filter_map(Path::parent).collect();
        let mut hidden = Vec::new();
        for path in scripts.filter(|path| !is_sample_file(path)) {
            let Some(name) = top_module(path, &|folder| packages.contains(folder)) else {
                continue;
            };
            let message = if HOOKS.contains(&name.as_str()) {
                format!("`{name}` never runs here; elsewhere it may run with every script")
            } else if standard.contains(&name) {
                format!(
                    "`{name}` is a module of Python's standard library: this one is never \
                     imported here, and elsewhere it may take the place of that one"
                )
            } else {
                continue;
            };
            hidden.push(Problem::new(Rule::HiddenModule, path, message));
        }
        self.result.problems.append(&mut hidden);
    }
}

/// The program's parsed output.
pub(super) struct ProbeOutput {
    /// The modules of the interpreter's standard library.
    standard: BTreeSet<String>,
    skills: Vec<SkillLine>,
}

#[derive(Deserialize)]
struct StartLine {
    standard: BTreeSet<String>,
}

#[derive(Deserialize)]
struct SkillLine {
    skill: usize,
    imports: Vec<ImportRow>,
    /// File, line and requirement.
    declared: Vec<(usize, Option<usize>, String)>,
    /// Rule, file, line and message.
    problems: Vec<(String, usize, Option<usize>, String)>,
    /// Whether rows are left out.
    is_cut: bool,
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
        begin.map(|start| ProbeOutput { standard: start.standard, skills })
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
