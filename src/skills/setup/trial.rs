//! The trial of a setup: imports what the scripts import, in their interpreter. An installed
//! package may lack a module, or a library of the system. No code of the skill runs.

use std::collections::HashMap;
use std::path::Path;

use super::command_runner::CommandRunner;
use super::progress::MissingModule;
use crate::error::Error;
use crate::limits;
use crate::text::one_line;
use crate::world::process::{ProcessExit, ProcessOutcome};

const PROGRAM: &str = include_str!("trial.py");

/// Tries imports that the interpreter finds; returns those that fail, each with the reason. A name
/// that several files import is tried once. `search`: folders of modules, separated by colons.
pub(super) fn failing_imports(
    runner: &CommandRunner<'_>,
    python: &Path,
    search: &str,
    imports: &[MissingModule],
) -> Result<Vec<MissingModule>, Error> {
    let mut reasons: HashMap<&str, Option<String>> = HashMap::new();
    let mut left: Vec<&str> = Vec::new();
    for import in imports {
        if reasons.insert(&import.module, None).is_none() {
            left.push(&import.module);
        }
    }
    while !left.is_empty() {
        let args = ["-I", "-c", PROGRAM, search].into_iter().chain(left.iter().copied());
        let args: Vec<_> = args.map(Into::into).collect();
        let outcome = runner.query(python, &args, limits::SETUP_TRIAL_TIMEOUT)?;
        let (tried, end) = match &outcome {
            Ok(outcome) => (read_answer(outcome, &left, &mut reasons), early_end(outcome)),
            Err(error) => (0, Some(error.to_string())),
        };
        // The name that was tried last ended the interpreter, and would do so again by others of
        // its package.
        let Some(end) = end else { break };
        let root = |name: &str| name.split('.').next().unwrap_or_default().to_string();
        let culprit = root(left[tried.saturating_sub(1)]);
        left.drain(..tried.saturating_sub(1));
        for name in left.extract_if(.., |name| root(name) == culprit) {
            reasons.insert(name, Some(end.clone()));
        }
    }
    let failing = imports.iter().filter_map(|import| {
        let reason = reasons.get(import.module.as_str())?.clone()?;
        Some(MissingModule { reason: Some(reason), ..import.clone() })
    });
    Ok(failing.collect())
}

/// Stores the reasons of failures; returns how many names were tried.
fn read_answer<'n>(
    outcome: &ProcessOutcome,
    names: &[&'n str],
    reasons: &mut HashMap<&'n str, Option<String>>,
) -> usize {
    let mut tried = 0;
    for line in String::from_utf8_lossy(outcome.stdout.head()).lines() {
        if line == "+" && tried < names.len() {
            tried += 1;
        } else if let Some(reason) = line.strip_prefix('-').filter(|_| tried > 0) {
            let reason = one_line(reason, limits::QUOTED_BYTES);
            reasons.insert(names[tried - 1], Some(reason));
        }
    }
    tried
}

/// Why the interpreter ended before it had tried all names; `None`: it had.
fn early_end(outcome: &ProcessOutcome) -> Option<String> {
    match outcome.exit {
        _ if outcome.timed_out => Some("importing it takes too long".into()),
        ProcessExit::Signaled(signal) => {
            Some(format!("importing it ends Python by signal {signal}"))
        }
        _ if outcome.stdout.head().ends_with(b".\n") => None,
        _ => Some("importing it ends Python".into()),
    }
}
