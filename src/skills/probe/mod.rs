//! What the Python files of skills import and declare, told by the interpreter
//! that runs them.
//!
//! Files are read here, confined; `probe.py` is handed their bytes, parses them
//! and looks for what they import. Nothing of a skill is ever executed, and no
//! folder of a skill is on that program's path. Many skills share one start. A
//! file that ends the interpreter costs its skill alone.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::config::ScriptSettings;
use crate::limits;
use crate::skills::python::Interpreter;
use crate::skills::{Problem, Severity, Skill, venv};
use crate::text::one_line;
use crate::world::cancellation::Cancellation;
use crate::world::process::{ProcessExit, ProcessOutcome, Restrictions};

mod batch;
mod files;

use batch::ProbeBatch;
pub(crate) use files::is_material;
use files::{role, tree};

/// What is added where an interpreter does not answer in the sandbox.
const IN_SANDBOX: &str = ", in the sandbox (SCRIPT_SANDBOX_READ grants it more)";

/// What is known of one skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeResult {
    /// Its name.
    pub skill: String,
    /// Python files that do not parse.
    pub syntax: Vec<Problem>,
    /// What its files import that is neither the standard library's nor its
    /// own; a module once a file.
    pub imports: Vec<ProbedImport>,
    /// The requirements that it lists, in `requirements.txt`, `pyproject.toml`
    /// or its scripts' blocks `# /// script`.
    pub declared: Vec<DeclaredPackage>,
    /// The versions of Python that it asks for; one that this interpreter does
    /// not meet is among the faults too.
    pub requires_python: Vec<DeclaredPackage>,
    /// What else is wrong, and what could not be looked at.
    pub faults: Vec<Problem>,
}

/// A module that a file imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedImport {
    /// Its first word, or as much of its name as a package is known by.
    pub module: String,
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// Where it is first imported; where it is first needed, if it is.
    pub line: usize,
    /// The file does without it, needs it only for some of what it does, or is
    /// material (a template, an example, a test) and no script of the skill.
    pub is_optional: bool,
    /// The interpreter does not find it.
    pub is_missing: bool,
    /// The package that brings it; `None`: that is not well known, and must not
    /// be guessed.
    pub package: Option<&'static str>,
}

/// A line of what a skill declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredPackage {
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// Counted from 1, where it is known.
    pub line: Option<usize>,
    /// As it is written, without comments; in a `requirements.txt` it may be an
    /// option, such as `-r other.txt`.
    pub requirement: String,
}

/// Skills that one interpreter runs.
#[derive(Debug)]
pub struct InterpreterGroup<'s> {
    /// What runs them.
    pub interpreter: Interpreter,
    /// In the order in which they were given.
    pub skills: Vec<&'s Skill>,
}

/// Skills with Python in them, by what runs them.
#[derive(Debug, Default)]
pub struct InterpreterGroups<'s> {
    /// In the order of their first skills.
    pub groups: Vec<InterpreterGroup<'s>>,
    /// Those that nothing runs, each with the reason, which names the fix.
    pub refused: Vec<(&'s Skill, String)>,
}

/// Finds the interpreter of each skill that has Python files, declares
/// requirements or has a venv; other skills are in no group.
pub fn group_by_interpreter<'s>(
    skills: &[&'s Skill],
    scripts: &ScriptSettings,
) -> InterpreterGroups<'s> {
    let mut found = InterpreterGroups::default();
    for skill in skills {
        let has_venv = venv::of_skill(&skill.path).is_some();
        if !has_venv && !tree(skill).files.iter().any(|path| role(path).is_some()) {
            continue;
        }
        match Interpreter::of(skill, scripts) {
            Ok(interpreter) => {
                let mut groups = found.groups.iter_mut();
                match groups.find(|group| group.interpreter == interpreter) {
                    Some(group) => group.skills.push(skill),
                    None => {
                        found.groups.push(InterpreterGroup { interpreter, skills: vec![skill] });
                    }
                }
            }
            Err(reason) => found.refused.push((skill, reason)),
        }
    }
    found
}

/// Asks an interpreter about skills, and answers in their order. What it does
/// not get to is a fault of the skills concerned. The error says why it cannot
/// be asked at all: it does not start, it is no Python 3, or the run is to end.
pub fn probe(
    interpreter: &Interpreter,
    skills: &[&Skill],
    scripts: &ScriptSettings,
    cancellation: &Cancellation,
) -> Result<Vec<ProbeResult>, String> {
    let until = Instant::now() + limits::PROBE_ALL;
    probe_until(interpreter, skills, scripts, None, cancellation, until)
}

/// What is known of skills whose interpreter must not be asked.
pub(crate) fn unprobed(skills: &[&Skill], cause: &str) -> Vec<ProbeResult> {
    let mut probed = vec![ProbeResult::default(); skills.len()];
    give_up((0..skills.len()).collect(), skills, &mut probed, cause);
    probed
}

/// The same where several interpreters share the time that a check may take, and
/// in a sandbox if need be.
pub fn probe_until(
    interpreter: &Interpreter,
    skills: &[&Skill],
    scripts: &ScriptSettings,
    confine: Option<&Restrictions>,
    cancellation: &Cancellation,
    until: Instant,
) -> Result<Vec<ProbeResult>, String> {
    let mut probed: Vec<ProbeResult> = skills.iter().map(|skill| ProbeResult::new(skill)).collect();
    let mut left: VecDeque<usize> = (0..skills.len()).collect();
    let (mut deaths, mut has_answered) = (0, false);
    while !left.is_empty() {
        let mut batch = ProbeBatch::default();
        while let Some(number) = left.front().copied().filter(|_| batch.has_room()) {
            left.pop_front();
            batch.add(number, skills[number]);
        }
        // Whether a venv's interpreter starts is only known by its start.
        if !batch.needs_python() && interpreter.venv.is_none() {
            batch.finish(&mut probed);
            continue;
        }
        let limit = until.saturating_duration_since(Instant::now());
        if limit.is_zero() {
            left.extend(batch.materials.iter().map(|skill| skill.number));
            give_up(left, skills, &mut probed, "the others took too long");
            break;
        }
        // A start that would have no time to begin says nothing of its interpreter.
        let limit = limit.clamp(limits::PYTHON_START, limits::PROBE);
        let answered = batch.answers(interpreter, scripts, confine, cancellation, limit);
        cancellation.check().map_err(|stop| stop.to_string())?;
        let (answers, outcome) = match answered {
            Ok(answered) => answered,
            Err(cause) if has_answered => {
                left.extend(batch.materials.iter().map(|skill| skill.number));
                give_up(left, skills, &mut probed, &cause);
                break;
            }
            // It may well start without one.
            Err(cause) if confine.is_some() => return Err(cause + IN_SANDBOX),
            Err(cause) => return Err(interpreter.explain(skills[batch.first()], &cause)),
        };
        has_answered = true;
        let unanswered = batch.take(&answers, &mut probed);
        let Some((first, rest)) = unanswered.split_first() else {
            continue;
        };
        for number in rest.iter().rev() {
            left.push_front(*number);
        }
        // Not the fault of the one that was next.
        let is_full = outcome.stdout.truncated() || outcome.timed_out;
        if is_full && unanswered.len() < batch.materials.len() {
            left.push_front(*first);
            continue;
        }
        let message = format!("its Python files cannot be looked at: {}", end_of(&outcome));
        probed[*first].fault(Path::new(""), None, "unprobed", message);
        deaths += 1;
        if deaths > limits::PROBE_DEATHS {
            let cause = format!(
                "{} ended over {deaths} skills, the last of them `{}`",
                interpreter.program.display(),
                skills[*first].name
            );
            give_up(left, skills, &mut probed, &cause);
            break;
        }
    }
    Ok(probed)
}

/// Files what is known of skills without asking about them.
fn give_up(left: VecDeque<usize>, skills: &[&Skill], probed: &mut [ProbeResult], cause: &str) {
    for number in left {
        let mut alone = ProbeBatch::default();
        alone.add(number, skills[number]);
        let lacks_answer = alone.needs_python();
        alone.finish(probed);
        if lacks_answer {
            let message = format!("its Python files were not looked at: {cause}");
            probed[number].fault(Path::new(""), None, "unprobed", message);
        }
    }
}

/// How an interpreter ended that did not answer.
fn end_of(outcome: &ProcessOutcome) -> String {
    let stderr = outcome.stderr.text();
    let last = one_line(stderr.trim_end().lines().last().unwrap_or_default(), limits::QUOTED_BYTES);
    match outcome.ending {
        _ if outcome.timed_out => "Python did not get through them in time".into(),
        _ if outcome.stdout.truncated() => "there is too much to tell of them".into(),
        // The clock in `probe.py`.
        ProcessExit::Signaled(libc::SIGVTALRM) => "they take too long".into(),
        ProcessExit::Signaled(signal) => format!("Python died of signal {signal} over them"),
        _ if last.is_empty() => "Python ended over them".into(),
        _ => format!("Python ended over them: {last}"),
    }
}

impl ProbeResult {
    fn new(skill: &Skill) -> ProbeResult {
        ProbeResult { skill: skill.name.clone(), ..ProbeResult::default() }
    }

    fn fault(&mut self, file: &Path, line: Option<usize>, rule: &'static str, message: String) {
        self.faults.push(Problem {
            file: file.to_path_buf(),
            line,
            rule,
            severity: Severity::Warning,
            message,
            fix: None,
        });
    }
}
