//! The probe: finds out what the Python files of skills import and declare, with the
//! interpreter that runs them.
//!
//! Files are opened confined and read here; `probe.py` gets their bytes, parses them and
//! checks whether their imports are installed. No code of a skill is executed, and no
//! folder of a skill is on that program's path. One start serves many skills. A file that
//! crashes the interpreter affects only the results of its own skill.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::config::ScriptSettings;
use crate::limits;
use crate::skills::python::{Interpreter, InterpreterError};
use crate::skills::{Problem, Severity, Skill, venv};
use crate::text::one_line;
use crate::world::cancellation::Cancellation;
use crate::world::process::{ProcessExit, ProcessOutcome, Restrictions};

mod batch;
mod files;

use batch::ProbeBatch;
pub(crate) use files::is_sample_file;
use files::{file_role, file_tree};

/// The remedy for an interpreter that does not start in the sandbox.
pub(crate) const SANDBOX_FIX: &str = "name the files that it needs in SCRIPT_SANDBOX_READ, or set SCRIPT_PYTHON to another interpreter";

/// The probe's result for one skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeResult {
    /// The skill's name.
    pub skill: String,
    /// Syntax errors of Python files.
    pub syntax_problems: Vec<Problem>,
    /// Imports of modules that are neither in the standard library nor the skill's own; each
    /// module once per file.
    pub imports: Vec<ProbedImport>,
    /// The requirements that it declares in `requirements.txt`, `pyproject.toml` or
    /// `# /// script` blocks of its scripts.
    pub declared: Vec<DeclaredPackage>,
    /// The versions of Python that it requires; one that this interpreter does not satisfy
    /// is also a problem.
    pub requires_python: Vec<DeclaredPackage>,
    /// Other problems, and files that could not be checked.
    pub problems: Vec<Problem>,
}

/// A module that a file imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedImport {
    /// The first word of its name, or the part that the table of packages lists.
    pub module: String,
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// The line of the first import that is needed, or else of the first import.
    pub line: usize,
    /// The file works without it, needs it only for some functions, or is a sample (a
    /// template, an example, a test) and not a script of the skill.
    pub is_optional: bool,
    /// Whether the interpreter does not find it.
    pub is_missing: bool,
    /// The package that provides it; `None`: the module is not well known, and its package
    /// must not be guessed.
    pub package: Option<&'static str>,
}

/// A requirement that a skill declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredPackage {
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// Counted from 1, if known.
    pub line: Option<usize>,
    /// As written, without comments; in a `requirements.txt` it may be an option, such as
    /// `-r other.txt`.
    pub requirement: String,
}

/// Skills with the same interpreter.
#[derive(Debug)]
pub struct InterpreterGroup<'s> {
    /// The interpreter of their scripts.
    pub interpreter: Interpreter,
    /// In their original order.
    pub skills: Vec<&'s Skill>,
}

/// Skills with Python files, grouped by interpreter.
#[derive(Debug, Default)]
pub struct InterpreterGroups<'s> {
    /// In the order of their first skills.
    pub groups: Vec<InterpreterGroup<'s>>,
    /// Skills without a usable interpreter.
    pub refused: Vec<(&'s Skill, InterpreterError)>,
}

/// Selects the interpreter of each skill that has Python files, declares requirements or
/// has a venv; other skills are in no group.
pub fn group_by_interpreter<'s>(
    skills: &[&'s Skill],
    scripts: &ScriptSettings,
) -> InterpreterGroups<'s> {
    let mut found = InterpreterGroups::default();
    for skill in skills {
        let has_venv = venv::path_in_skill(&skill.path).is_some();
        if !has_venv && !file_tree(skill).files.iter().any(|path| file_role(path).is_some()) {
            continue;
        }
        match Interpreter::for_skill(skill, scripts) {
            Ok(interpreter) => {
                let mut groups = found.groups.iter_mut();
                match groups.find(|group| group.interpreter == interpreter) {
                    Some(group) => group.skills.push(skill),
                    None => {
                        found.groups.push(InterpreterGroup { interpreter, skills: vec![skill] });
                    }
                }
            }
            Err(error) => found.refused.push((skill, error)),
        }
    }
    found
}

/// Probes skills with an interpreter; returns the results in their order. Skills that it
/// does not get to have a problem that says so. Fails if the interpreter does not start or is
/// not a Python 3. After a cancellation the results are incomplete.
pub fn probe(
    interpreter: &Interpreter,
    skills: &[&Skill],
    scripts: &ScriptSettings,
    cancellation: &Cancellation,
) -> Result<Vec<ProbeResult>, InterpreterError> {
    let until = Instant::now() + limits::PROBE_TOTAL_TIMEOUT;
    probe_until(interpreter, skills, scripts, None, cancellation, until)
}

/// The results for skills whose interpreter must not be started.
pub(crate) fn unprobed_results(skills: &[&Skill], cause: &str) -> Vec<ProbeResult> {
    let mut probed = vec![ProbeResult::default(); skills.len()];
    finish_unprobed((0..skills.len()).collect(), skills, &mut probed, cause);
    probed
}

/// Like [`probe`], with a deadline that several interpreters share, and in a sandbox if
/// there is one.
pub fn probe_until(
    interpreter: &Interpreter,
    skills: &[&Skill],
    scripts: &ScriptSettings,
    confine: Option<&Restrictions>,
    cancellation: &Cancellation,
    until: Instant,
) -> Result<Vec<ProbeResult>, InterpreterError> {
    let mut probed: Vec<ProbeResult> = skills.iter().map(|skill| ProbeResult::new(skill)).collect();
    let mut left: VecDeque<usize> = (0..skills.len()).collect();
    let (mut deaths, mut has_answered) = (0, false);
    while !left.is_empty() {
        let mut batch = ProbeBatch::default();
        while let Some(number) = left.front().copied().filter(|_| batch.has_room()) {
            left.pop_front();
            batch.add_skill(number, skills[number]);
        }
        // A venv's interpreter is started in any case, to find out whether it works.
        if !batch.needs_python() && interpreter.venv.is_none() {
            batch.store_known(&mut probed);
            continue;
        }
        let limit = until.saturating_duration_since(Instant::now());
        if limit.is_zero() {
            left.extend(batch.inputs.iter().map(|skill| skill.number));
            finish_unprobed(left, skills, &mut probed, "the others took too long");
            break;
        }
        // A timeout shorter than a normal start would say nothing about the interpreter.
        let limit = limit.clamp(limits::PYTHON_START_TIMEOUT, limits::PROBE_TIMEOUT);
        let answered = batch.run(interpreter, scripts, confine, cancellation, limit);
        if cancellation.check().is_err() {
            break;
        }
        let (answers, outcome) = match answered {
            Ok(answered) => answered,
            Err(error) if has_answered => {
                left.extend(batch.inputs.iter().map(|skill| skill.number));
                finish_unprobed(left, skills, &mut probed, &error.to_string());
                break;
            }
            // The interpreter may well start without the sandbox.
            Err(error) if confine.is_some() => {
                return Err(InterpreterError::new(format!("{error}, in the sandbox"), SANDBOX_FIX));
            }
            Err(error) => return Err(interpreter.start_error(skills[batch.first_skill()], &error)),
        };
        has_answered = true;
        let unanswered = batch.store_answers(&answers, &mut probed);
        let Some((first, rest)) = unanswered.split_first() else {
            continue;
        };
        for number in rest.iter().rev() {
            left.push_front(*number);
        }
        // The first unanswered skill is not the cause: the start's own limit was reached.
        let is_full = outcome.stdout.is_truncated() || outcome.timed_out;
        if is_full && unanswered.len() < batch.inputs.len() {
            left.push_front(*first);
            continue;
        }
        let message = format!("its Python files cannot be checked: {}", ending_cause(&outcome));
        probed[*first].add_problem(Path::new(""), None, "unprobed", message);
        deaths += 1;
        if deaths > limits::PROBE_CRASHES {
            let cause = format!(
                "{}crashed on {deaths} skills, last on `{}`",
                interpreter.program.display(),
                skills[*first].name
            );
            finish_unprobed(left, skills, &mut probed, &cause);
            break;
        }
    }
    Ok(probed)
}

/// Stores the results of skills that are not probed, each with a problem that says why.
fn finish_unprobed(
    left: VecDeque<usize>,
    skills: &[&Skill],
    probed: &mut [ProbeResult],
    cause: &str,
) {
    for number in left {
        let mut alone = ProbeBatch::default();
        alone.add_skill(number, skills[number]);
        let lacks_answer = alone.needs_python();
        alone.store_known(probed);
        if lacks_answer {
            let message = format!("its Python files were not checked: {cause}");
            probed[number].add_problem(Path::new(""), None, "unprobed", message);
        }
    }
}

/// Why an interpreter ended without answering.
fn ending_cause(outcome: &ProcessOutcome) -> String {
    let stderr = outcome.stderr.text();
    let last = one_line(stderr.trim_end().lines().last().unwrap_or_default(), limits::QUOTED_BYTES);
    match outcome.exit {
        _ if outcome.timed_out => "Python took too long".into(),
        _ if outcome.stdout.is_truncated() => "the result is too large".into(),
        // From the timer in `probe.py`.
        ProcessExit::Signaled(libc::SIGVTALRM) => "they take too long".into(),
        ProcessExit::Signaled(signal) => format!("Python was killed by signal {signal}"),
        _ if last.is_empty() => "Python ended".into(),
        _ => format!("Python ended: {last}"),
    }
}

impl ProbeResult {
    fn new(skill: &Skill) -> ProbeResult {
        ProbeResult { skill: skill.name.clone(), ..ProbeResult::default() }
    }

    fn add_problem(
        &mut self,
        file: &Path,
        line: Option<usize>,
        rule: &'static str,
        message: String,
    ) {
        self.problems.push(Problem {
            file: file.to_path_buf(),
            line,
            rule,
            severity: Severity::Warning,
            message,
            fix: None,
        });
    }
}
