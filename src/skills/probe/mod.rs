//! The probe: finds out what the Python files of skills import and declare, with the
//! interpreter that runs them.
//!
//! Files are opened confined and read here; `probe.py` gets their bytes, parses them and
//! checks whether their imports are installed. No code of a skill is executed, and no
//! folder of a skill is on that program's path. One start serves many skills. A file that
//! crashes the interpreter affects only the results of its own skill.

use std::time::Instant;

use crate::python::{Interpreter, InterpreterError, guardian_fault};
use crate::sandbox_grants::query_restrictions;
use crate::{ScriptSettings, SkillsFolder};
use crate::{Skill, venv};
use base::error::Fault;
use base::limits;
use base::text::one_line;
use host::cancellation::Cancellation;
use host::process::{ProcessExit, ProcessOutcome, Restrictions};

mod batch;
mod files;
mod result;

use batch::{ProbeBatch, SkillInput};
use files::file_role;
pub(crate) use files::{file_tree, is_sample_file, own_modules};
pub use result::ProbeResult;
pub(crate) use result::{Declaration, ProbedImport};

/// The remedy for an interpreter that does not start in the sandbox.
pub const SANDBOX_FIX: &str = "name the files that it needs in SCRIPT_SANDBOX_READ, or set SCRIPT_PYTHON to another interpreter";

/// A skill after the probe.
#[derive(Clone, Debug)]
pub enum ProbedSkill {
    /// It has no Python files, declares no requirements and has no venv.
    WithoutPython,
    /// No interpreter can run its scripts.
    Refused(InterpreterError),
    /// The interpreter of its scripts, and the result.
    Probed(Interpreter, ProbeResult),
}

/// Probes each skill with the interpreter of its scripts, in their sandbox; returns the results
/// in the order of the skills. Every interpreter is started for all of its skills together.
/// After a cancellation the results are incomplete.
pub fn probe_skills(
    skills: &[&Skill],
    scripts: &ScriptSettings,
    skills_folders: &[SkillsFolder],
    cancellation: &Cancellation,
) -> Vec<ProbedSkill> {
    let mut probed = vec![ProbedSkill::WithoutPython; skills.len()];
    let mut groups: Vec<(Interpreter, Vec<usize>)> = Vec::new();
    for (number, skill) in skills.iter().enumerate() {
        let has_venv = venv::path_in_skill(&skill.path).is_some();
        if !has_venv && !file_tree(skill).files.iter().any(|path| file_role(path).is_some()) {
            continue;
        }
        match Interpreter::for_skill(skill, scripts) {
            Ok(interpreter) => match groups.iter_mut().find(|(known, _)| *known == interpreter) {
                Some((_, numbers)) => numbers.push(number),
                None => groups.push((interpreter, vec![number])),
            },
            Err(error) => probed[number] = ProbedSkill::Refused(error),
        }
    }
    let until = Instant::now() + limits::PROBE_TOTAL_TIMEOUT;
    for (python, numbers) in groups {
        if cancellation.check().is_err() {
            break;
        }
        let group: Vec<&Skill> = numbers.iter().map(|number| skills[*number]).collect();
        let confine = query_restrictions(&python, scripts, skills_folders, limits::PROBE_TIMEOUT);
        let results = match confine {
            Ok(confine) => probe(&python, &group, scripts, confine.as_ref(), cancellation, until),
            Err(fault) => {
                let cause = fault.to_string();
                Ok(group.iter().map(|skill| unprobed(skill, &cause)).collect())
            }
        };
        match results {
            Ok(results) => {
                for (number, result) in numbers.into_iter().zip(results) {
                    probed[number] = ProbedSkill::Probed(python.clone(), result);
                }
            }
            Err(error) => {
                for number in numbers {
                    probed[number] = ProbedSkill::Refused(error.clone());
                }
            }
        }
    }
    probed
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
            Err(error) if confine.is_some() && guardian_fault(&error).is_none() => {
                return Err(Fault::new(format!("{error}, in the sandbox"), SANDBOX_FIX).into());
            }
            Err(error) => return Err(interpreter.start_error(Some(skills[left[0]]), &error)),
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
fn unprobed(skill: &Skill, cause: &str) -> ProbeResult {
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
