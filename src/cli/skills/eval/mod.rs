//! `skills eval [NAME]...`: runs the tests of skills with the configured model.
//!
//! Each run is a process of its own ([`execute`]), forked from this one, with a fresh working
//! folder. This process starts them, stores each result at once ([`store`]), and reports.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use crate::cli::options::{AskOptions, CommonOptions, EvalCommand};
use crate::cli::run::Run;
use crate::cli::skills::json::print_json;
use crate::cli::skills::selection::SkillSelection;
use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::config::Endpoint;
use crate::digest::sha256;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::skills::evals::SkillEvals;
use crate::skills::{Skill, Skills};
use crate::world::output::Output;

mod execute;
mod html;
mod judge;
mod junit;
mod pool;
mod record;
mod run_files;
mod score;
mod store;
mod table;

use record::{EvalKind, RunKey};
use score::SkillScore;
use store::Store;

/// A skill and its tests.
struct Suite {
    /// The skill's name, or its path if another skill that is tested has the same name.
    label: String,
    /// The skill's name.
    name: String,
    /// The folder of the skill.
    path: PathBuf,
    /// All skills that the model gets.
    skills: Skills,
    evals: SkillEvals,
    /// Changes if a result could be another one: with the skill, its tests, or a model.
    digest: String,
}

/// A run that is still to be made.
struct PlannedRun<'s> {
    suite: &'s Suite,
    /// The index of the case among those of its kind.
    case: usize,
    key: RunKey,
}

/// Runs the tests; the status is 1 below `--min`, or if tests are missing or invalid.
pub(in crate::cli) fn run(
    command: &EvalCommand,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<u8> {
    let is_json = options.is_json();
    let run = &mut Run::for_questions(&AskOptions::default(), options, startup, output)?;
    let endpoint = run.config.endpoint()?;
    let (suites, mut is_complete) = select(command, run, output)?;
    check_places(command, run, &suites)?;
    let mut store = Store::open(command.out.as_deref(), &suites, run, output)?;
    let planned = plan(&suites, command, &store)?;
    let finished = pool::run_all(run, &planned, command, &mut store, output);
    let scores: Vec<SkillScore> =
        suites.iter().map(|suite| SkillScore::new(suite, command, store.records())).collect();
    let finished = finished.and(write_files(run, command, &suites, &scores, &store));
    for score in scores.iter().filter(|score| !score.reaches(command.min())) {
        is_complete = false;
        output.note(&format!("{}: below --min, or not judged", score.name));
    }
    let status = match &finished {
        Ok(()) => u8::from(!is_complete),
        Err(error) => error.kind().exit_status(),
    };
    if is_json {
        print_json(&score::summary(&endpoint.model, &scores, &finished, status), output);
    } else {
        output.print(table::lines(&scores).trim_end());
    }
    finished.map(|()| status)
}

/// Writes the files of `--out` and `--junit`.
fn write_files(
    run: &Run,
    command: &EvalCommand,
    suites: &[Suite],
    scores: &[SkillScore],
    store: &Store,
) -> Result<()> {
    let model = run.config.endpoint()?.model;
    if let Some(folder) = store.folder() {
        let report = html::page(&model, suites, scores, store.records());
        run_files::write(folder, &model, suites, command, store.records(), &report)?;
    }
    match &command.junit {
        Some(file) => junit::write(&run.folder.join(file), suites, command, store.records()),
        None => Ok(()),
    }
}

/// Returns an error if results cannot be written where they should be.
fn check_places(command: &EvalCommand, run: &Run, suites: &[Suite]) -> Result<()> {
    if let Some(out) = &command.out {
        let out = run.folder.join(out);
        if let Some(suite) = suites.iter().find(|suite| out.starts_with(&suite.path)) {
            let text = format!("--out is in the skill `{}`, which it would change", suite.name);
            return Err(usage(text).with_hint("name a folder outside of it"));
        }
    }
    let Some(file) = &command.junit else { return Ok(()) };
    let file = run.folder.join(file);
    check_file(&file)?;
    OpenOptions::new().append(true).create(true).open(&file).map(drop).map_err(|error| {
        Error::new(ErrorKind::Io, format!("failed to write `{}`: {error}", file.display()))
    })
}

/// Returns an error if this is something else than a file, such as a pipe, which would be waited for.
fn check_file(file: &Path) -> Result<()> {
    if file.exists() && !file.is_file() {
        let text = format!("failed to write `{}`: it is not a regular file", file.display());
        return Err(Error::new(ErrorKind::Io, text));
    }
    Ok(())
}

/// The skills with tests, and whether all that were named have valid ones.
fn select(command: &EvalCommand, run: &Run, output: &mut Output) -> Result<(Vec<Suite>, bool)> {
    let mut found: Vec<(Skills, Skill)> = Vec::new();
    for word in &command.names {
        let selection = SkillSelection::parse(word, run)?;
        match selection.name {
            Some(_) => found.push((selection.skills.clone(), selection.skill()?)),
            None => found.extend(all_skills(&selection.skills)),
        }
    }
    if command.names.is_empty() {
        found = all_skills(&run.skills);
    }
    let mut is_complete = true;
    let mut suites: Vec<Suite> = Vec::new();
    for (skills, skill) in found {
        let mut evals = SkillEvals::read(&skill);
        if evals.is_empty() {
            if !command.names.is_empty() {
                is_complete = false;
                output.warn(&format!("the skill `{}` has no tests in evals/", skill.name));
            }
            continue;
        }
        for problem in &evals.problems {
            is_complete = false;
            output.warn(&format!("{}: {problem}", skill.name));
        }
        if command.triggers != command.tasks {
            if command.triggers { evals.tasks.clear() } else { evals.triggers.clear() }
        }
        if evals.is_empty() {
            if !command.names.is_empty() {
                is_complete = false;
                output.warn(&format!("the skill `{}` has no tests of this kind", skill.name));
            }
            continue;
        }
        if suites.iter().any(|suite| suite.path == skill.path) {
            continue;
        }
        let is_taken = suites.iter().any(|suite| suite.label == skill.name);
        let label = if is_taken { skill.path.display().to_string() } else { skill.name.clone() };
        let digest = digest(&skill, &skills, command, run)?;
        suites.push(Suite { label, name: skill.name, path: skill.path, skills, evals, digest });
    }
    if suites.is_empty() && is_complete {
        let text = "failed to find a test: no skill has a file in evals/";
        return Err(Error::new(ErrorKind::Io, text).with_hint(
            "`skills-runner skills new NAME` writes one to begin with; docs/evals.md describes them",
        ));
    }
    Ok((suites, is_complete))
}

fn all_skills(skills: &Skills) -> Vec<(Skills, Skill)> {
    let catalogue = skills.catalogue();
    let opened = catalogue.usable().filter_map(|skill| skills.open_listed(skill).ok());
    opened.map(|skill| (skills.clone(), skill)).collect()
}

/// The digest of what results depend on: the skill's files, the models and settings, and what the
/// model reads about the skills beside it.
fn digest(skill: &Skill, skills: &Skills, command: &EvalCommand, run: &Run) -> Result<String> {
    let Endpoint { address, model, extra_body, tool_calling, .. } = run.config.endpoint()?;
    let scripts = &run.config.scripts;
    let options = &run.options;
    let mut text = format!(
        "{address} {model} {extra_body:?} {tool_calling:?} {:?} {} {} {} {:?} {:?} {:?} {}\n",
        command.judge,
        options.max_steps,
        options.scripts,
        scripts.sandbox.is_some(),
        scripts.limit,
        run.prompt_override,
        run.config.context_window,
        skills.catalogue().digest(),
    );
    for path in skill.all_files().files {
        let bytes = skill.root.file(&path).ok().and_then(|file| {
            crate::world::confined::read_whole(&file, limits::EVAL_DIGEST_BYTES).ok()
        });
        let bytes = bytes.map(|piece| piece.bytes).unwrap_or_default();
        text += &format!("{} {}\n", path.display(), sha256(&bytes));
    }
    Ok(sha256(text.as_bytes()))
}

/// The runs that are not stored yet: first all cases once, so that an interrupted evaluation has
/// something of each.
fn plan<'s>(
    suites: &'s [Suite],
    command: &EvalCommand,
    store: &Store,
) -> Result<Vec<PlannedRun<'s>>> {
    let cases = suites.iter().map(|suite| suite.evals.triggers.len() + suite.evals.tasks.len());
    if cases.sum::<usize>() * command.runs as usize > limits::EVAL_PLANNED {
        let most = limits::EVAL_PLANNED;
        return Err(usage(format!("--runs {} would be more than {most} runs", command.runs)));
    }
    let mut planned = Vec::new();
    for run in 1..=command.runs {
        for suite in suites {
            for kind in EvalKind::ALL {
                if kind == EvalKind::Baseline && !command.baseline {
                    continue;
                }
                for (case, id) in kind.ids(&suite.evals).enumerate() {
                    let skill = suite.label.clone();
                    let key = RunKey { skill, kind, case: id.to_string(), run };
                    if !store.has(&key) {
                        planned.push(PlannedRun { suite, case, key });
                    }
                }
            }
        }
    }
    Ok(planned)
}
