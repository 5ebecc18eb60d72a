//! The probe: finds out what the Python files of skills import and declare, with the
//! interpreter that runs them.
//!
//! Files are opened confined and read here; `probe.py` gets their bytes, parses them and
//! checks whether their imports are installed. No code of a skill is executed, and no
//! folder of a skill is on that program's path. One start serves many skills. A file that
//! crashes the interpreter affects only the results of its own skill.

use std::time::Instant;

use crate::config::ScriptSettings;
use crate::error::Fault;
use crate::limits;
use crate::skills::python::{Interpreter, InterpreterError};
use crate::skills::{Skill, venv};
use crate::text::one_line;
use crate::world::cancellation::Cancellation;
use crate::world::process::{ProcessExit, ProcessOutcome, Restrictions};

mod batch;
mod files;
mod result;

use batch::{ProbeBatch, SkillInput};
pub(crate) use files::is_sample_file;
use files::{file_role, file_tree};
pub use result::ProbeResult;
pub(crate) use result::{Declaration, ProbedImport};

/// The remedy for an interpreter that does not start in the sandbox.
pub(crate) const SANDBOX_FIX: &str = "name the files that it needs in SCRIPT_SANDBOX_READ, or set SCRIPT_PYTHON to another interpreter";

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

/// Probes skills with an interpreter, in a sandbox if there is one, until a time that several
/// interpreters may share; returns the results in the order of the skills. Skills that it does
/// not get to have a problem that says so. Fails if the interpreter does not start or is not a
/// Python 3. After a cancellation the results are incomplete.
pub fn probe(
    interpreter: &Interpreter,
    skills: &[&Skill],
    scripts: &ScriptSettings,
    confine: Option<&Restrictions>,
    cancellation: &Cancellation,
    until: Instant,
) -> Result<Vec<ProbeResult>, InterpreterError> {
    let mut results = vec![ProbeResult::default(); skills.len()];
    let mut left: Vec<usize> = (0..skills.len()).collect();
    let (mut crashes, mut has_answered) = (0, false);
    let cause = loop {
        if left.is_empty() {
            return Ok(results);
        }
        let batch = ProbeBatch::read(&left, skills);
        let taken = batch.inputs.len();
        // A venv's interpreter is started in any case, to find out whether it works.
        if !batch.needs_python() && interpreter.venv.is_none() {
            batch.store_known(&mut results);
            left.drain(..taken);
            continue;
        }
        let limit = until.saturating_duration_since(Instant::now());
        if limit.is_zero() {
            break "the others took too long".to_string();
        }
        // A timeout shorter than a normal start would say nothing about the interpreter.
        let limit = limit.clamp(limits::PYTHON_START_TIMEOUT, limits::PROBE_TIMEOUT);
        let answered = batch.run(interpreter, scripts, confine, cancellation, limit);
        if cancellation.check().is_err() {
            return Ok(results);
        }
        let (output, outcome) = match answered {
            Ok(answered) => answered,
            Err(error) if has_answered => break error.to_string(),
            // The interpreter may well start without the sandbox.
            Err(error) if confine.is_some() => {
                return Err(Fault::new(format!("{error}, in the sandbox"), SANDBOX_FIX).into());
            }
            Err(error) => return Err(interpreter.start_error(skills[left[0]], &error)),
        };
        has_answered = true;
        let mut unanswered = batch.store_answers(&output, &mut results);
        // The first unanswered skill is not the cause if the start's own limit was reached.
        let is_full = outcome.stdout.is_truncated() || outcome.timed_out;
        if !unanswered.is_empty() && (!is_full || unanswered.len() == taken) {
            let first = unanswered.remove(0);
            let cause = ending_cause(&outcome);
            results[first].add_unprobed(format!("its Python files cannot be checked: {cause}"));
            crashes += 1;
            if crashes > limits::PROBE_CRASHES {
                left.splice(..taken, unanswered);
                let (program, name) = (interpreter.program.display(), &skills[first].name);
                break format!("{program} crashed on {crashes} skills, last on `{name}`");
            }
        }
        left.splice(..taken, unanswered);
    };
    for number in left {
        results[number] = unprobed(skills[number], &cause);
    }
    Ok(results)
}

/// The result for a skill whose interpreter is not started.
pub(crate) fn unprobed(skill: &Skill, cause: &str) -> ProbeResult {
    let input = SkillInput::read(0, skill, &mut Vec::new());
    let needs_python = input.needs_python();
    let mut result = input.result;
    if needs_python {
        result.add_unprobed(format!("its Python files were not checked: {cause}"));
    }
    result
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
