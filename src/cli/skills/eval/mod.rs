//! `skills eval [NAME]...`: runs the tests of skills with the configured model.
//!
//! Each run is a process of its own ([`execute`]), forked from this one, with a fresh working
//! folder. This process starts them, stores each result at once ([`store`]), and reports.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::options::{AskOptions, CommonOptions, EvalCommand};
use crate::cli::run::Run;
use crate::cli::skills::json::print_json;
use crate::cli::skills::selection::SkillSelection;
use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::ui::Output;
use base::digest::sha256;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use chat_api::Endpoint;
use host::confined::read_whole;
use skills::evals::{EvalCase, SkillEvals};
use skills::{Skill, Skills};

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

use record::{EvalKind, RunKey, RunRecord};
use score::SkillScore;
use store::Store;

/// The tests of skills, and their results.
struct Evaluation<'e> {
    command: &'e EvalCommand,
    /// The name of the model.
    model: String,
    suites: Vec<Suite>,
    store: Store,
}

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
    cases: Vec<EvalCase>,
    /// Changes if a result could be another one.
    digest: String,
}

/// A run that is still to be made.
struct PlannedRun<'s> {
    suite: &'s Suite,
    case: &'s EvalCase,
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
    let run = &mut Run::for_questions(&AskOptions::default(), options, startup, false, output)?;
    let model = run.config.endpoint()?.model;
    let (suites, mut is_complete) = select(command, run, output)?;
    check_places(command, run, &suites)?;
    let mut store = Store::open(command.out.as_deref(), &suites, run, output)?;
    let planned = plan(&suites, command, &store)?;
    let finished = pool::run_all(run, &planned, command, &mut store, output);
    let evaluation = Evaluation { command, model, suites, store };
    let suites = evaluation.suites.iter();
    let scores: Vec<SkillScore> = suites.map(|suite| SkillScore::new(&evaluation, suite)).collect();
    let finished = finished.and(evaluation.write_files(run, &scores));
    for score in scores.iter().filter(|score| !score.reaches(command.min())) {
        is_complete = false;
        output.note(&format!("{}: below --min, or not judged", score.name));
    }
    let status = match &finished {
        Ok(()) => u8::from(!is_complete),
        Err(error) => error.kind().exit_status(),
    };
    if is_json {
        print_json(&score::summary(&evaluation.model, &scores, &finished, status), output);
    } else if !scores.is_empty() {
        output.print(&table::lines(&scores));
    }
    finished.map(|()| status)
}

impl Suite {
    /// The cases of a kind.
    fn cases(&self, kind: EvalKind) -> impl Iterator<Item = &EvalCase> {
        self.cases.iter().filter(move |case| kind.covers(case))
    }

    /// The runs of a kind.
    fn runs(&self, kind: EvalKind, count: u32) -> impl Iterator<Item = PlannedRun<'_>> {
        self.cases(kind).flat_map(move |case| {
            (1..=count).map(move |run| {
                let (skill, name) = (self.label.clone(), case.id.clone());
                PlannedRun { suite: self, case, key: RunKey { skill, kind, case: name, run } }
            })
        })
    }
}

impl Evaluation<'_> {
    /// The results of a kind that count: of the cases that the suite has, and of as many runs as
    /// are asked for.
    fn records(&self, suite: &Suite, kind: EvalKind) -> Vec<&RunRecord> {
        let runs = suite.runs(kind, self.command.runs);
        runs.filter_map(|planned| self.store.record(&planned.key)).collect()
    }

    /// Writes the files of `--out` and `--junit`.
    fn write_files(&self, run: &Run, scores: &[SkillScore]) -> Result<()> {
        if let Some(folder) = self.store.folder() {
            run_files::write(folder, self, scores)?;
        }
        match &self.command.junit {
            Some(file) => {
                let file = run.folder.join(file);
                let folder = file.parent().unwrap_or(&file);
                let name = Path::new(file.file_name().unwrap_or_default());
                run_files::write_file(folder, name, &junit::xml(self))
            }
            None => Ok(()),
        }
    }
}

/// The runs that have no result yet: first all cases once, so that an interrupted evaluation has
/// something of each.
fn plan<'s>(
    suites: &'s [Suite],
    command: &EvalCommand,
    store: &Store,
) -> Result<Vec<PlannedRun<'s>>> {
    let runs = command.runs;
    let cases: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    if cases * runs as usize > limits::EVAL_PLANNED {
        let most = limits::EVAL_PLANNED;
        return Err(usage(format!("{cases} cases with --runs {runs} are more than {most} runs")));
    }
    let kinds = EvalKind::ALL.into_iter();
    let kinds = kinds.filter(|kind| *kind != EvalKind::Baseline || command.baseline);
    let all = kinds.flat_map(|kind| suites.iter().flat_map(move |suite| suite.runs(kind, runs)));
    let mut planned: Vec<PlannedRun<'_>> = all.filter(|planned| !store.has(&planned.key)).collect();
    planned.sort_by_key(|planned| planned.key.run);
    Ok(planned)
}

/// Returns an error if results cannot be written where they should be.
fn check_places(command: &EvalCommand, run: &Run, suites: &[Suite]) -> Result<()> {
    for (option, place) in [("--out", &command.out), ("--junit", &command.junit)] {
        let Some(place) = place else { continue };
        let place = run.folder.join(place);
        let folder = place.ancestors().find_map(|folder| folder.canonicalize().ok());
        let is_in = |suite: &&Suite| {
            let skill = suite.path.canonicalize().ok();
            skill.zip(folder.as_ref()).is_some_and(|(skill, folder)| folder.starts_with(skill))
        };
        if let Some(suite) = suites.iter().find(is_in) {
            let text = format!("{option} is in the skill `{}`, which it would change", suite.name);
            return Err(usage(text).with_hint("name a place outside of it"));
        }
    }
    let Some(file) = &command.junit else { return Ok(()) };
    let file = run.folder.join(file);
    check_file(&file)?;
    let opened = OpenOptions::new().append(true).create(true).open(&file);
    opened.map(drop).map_err(|error| write_error(&file, &error))
}

/// Returns an error if this is something else than a file, such as a pipe, which would be waited
/// for.
fn check_file(file: &Path) -> Result<()> {
    if file.exists() && !file.is_file() {
        return Err(write_error(file, &io::Error::other("it is not a regular file")));
    }
    Ok(())
}

/// The error for a file or folder that cannot be written.
fn write_error(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("failed to write `{}`: {error}", path.display()))
}

/// The skills with tests, and whether all that were named have valid ones.
fn select(command: &EvalCommand, run: &Run, output: &mut Output) -> Result<(Vec<Suite>, bool)> {
    let mut found: Vec<(Skills, Skill, bool)> = Vec::new();
    for word in &command.names {
        let selection = SkillSelection::parse(word, run)?;
        match selection.name {
            Some(_) => found.push((selection.skills.clone(), selection.skill()?, true)),
            None => found.extend(all_skills(&selection.skills)),
        }
    }
    if command.names.is_empty() {
        found = all_skills(&run.skills);
    }
    let mut is_complete = true;
    let mut suites: Vec<Suite> = Vec::new();
    for (skills, skill, is_named) in found {
        let SkillEvals { mut cases, problems } = SkillEvals::read(&skill);
        for problem in &problems {
            is_complete = false;
            let file = problem.file.display();
            output.warn(&format!("{}: {file}: {}", skill.name, problem.message));
        }
        if command.triggers != command.tasks {
            cases.retain(|case| EvalKind::Trigger.covers(case) == command.triggers);
        }
        if cases.is_empty() {
            if is_named && problems.is_empty() {
                is_complete = false;
                output.warn(&format!("the skill `{}` has no such tests in evals/", skill.name));
            }
        } else if !suites.iter().any(|suite| suite.path == skill.path) {
            let is_taken = suites.iter().any(|suite| suite.label == skill.name);
            let label =
                if is_taken { skill.path.display().to_string() } else { skill.name.clone() };
            let digest = digest(&skill, &skills, command, run)?;
            let (name, path) = (skill.name, skill.path);
            suites.push(Suite { label, name, path, skills, cases, digest });
        }
    }
    if suites.is_empty() && is_complete {
        let text = "failed to find a test: no skill has such tests in evals/";
        return Err(Error::new(ErrorKind::Io, text).with_hint(
            "`skills-runner skills new NAME` writes some to begin with; docs/evals.md describes them",
        ));
    }
    Ok((suites, is_complete))
}

/// All skills, none of which was named.
fn all_skills(skills: &Skills) -> Vec<(Skills, Skill, bool)> {
    let catalogue = skills.catalogue();
    let opened = catalogue.usable().filter_map(|skill| skills.open_listed(skill).ok());
    opened.map(|skill| (skills.clone(), skill, false)).collect()
}

/// The digest of what results depend on: the skill's files, the models and settings, and what the
/// model reads about the skills beside it.
fn digest(skill: &Skill, skills: &Skills, command: &EvalCommand, run: &Run) -> Result<String> {
    let endpoint = run.config.endpoint()?;
    let calling = endpoint.calling();
    let Endpoint { address, model, extra_body, .. } = endpoint;
    let scripts = &run.config.scripts;
    let options = &run.options;
    let mut text = format!(
        "{address} {model} {extra_body:?} {calling:?} {:?} {} {} {} {:?} {:?} {:?} {}\n",
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
        let piece = skill.root.file(&path).ok();
        let piece = piece.and_then(|file| read_whole(&file, limits::EVAL_DIGEST_BYTES).ok());
        let bytes = piece.map(|piece| piece.bytes).unwrap_or_default();
        text += &format!("{} {}\n", path.display(), sha256(&bytes));
    }
    Ok(sha256(text.as_bytes()))
}
