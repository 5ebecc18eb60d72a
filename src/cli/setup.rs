//! From what was typed to a configuration, and a run's parts.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::agent::TurnLimits;
use crate::cli::args::{CommandLine, usage};
use crate::cli::env_files::{report_faults, settings, without_files};
use crate::cli::table::Command;
use crate::config::{Config, ConfigNeeds};
use crate::error::Result;
use crate::instructions::{self, PromptParts, SystemPromptOverride};
use crate::limits;
use crate::memory::Memory;
use crate::secret::HiddenValues;
use crate::settings::{SKILLS_FOLDER_PATH, Settings};
use crate::skills::python::Interpreter;
use crate::skills::{Catalogue, Problem, Skills};
use crate::text::{self, quoted};
use crate::tools::{Consent, ToolContext, Tools};
use crate::world::cancellation::Cancellation;
use crate::world::files;
use crate::world::hardening::IsSecret;
use crate::world::output::{Output, RunEnvironment};
use crate::world::random;
use crate::world::signal::Interrupt;

/// What the program was started with.
pub struct Startup {
    /// The process environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory, absolute.
    pub folder: PathBuf,
    /// Signals that ask to stop.
    pub interrupt: Interrupt,
    /// Takes credentials out of the environment of the process itself:
    /// [`hardening::forget`](crate::world::hardening::forget). Nothing, where that
    /// environment belongs to somebody else.
    pub forget: fn(IsSecret<'_>),
    /// The program's own file, if it can be told.
    pub program: fn() -> Option<PathBuf>,
}

/// In the root folder, with no environment and no signals: for what needs none.
impl Default for Startup {
    fn default() -> Startup {
        Startup {
            environment: Vec::new(),
            folder: "/".into(),
            interrupt: Interrupt::never(),
            forget: |_| {},
            program: || None,
        }
    }
}

impl fmt::Debug for Startup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start")
            .field("environment", &HiddenValues(&self.environment))
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// A configured run: everything that commands share.
#[derive(Debug)]
pub(super) struct Run {
    /// What was typed.
    pub typed: CommandLine,
    /// What it means, with the settings.
    pub config: Config,
    /// The skills.
    pub skills: Skills,
    /// Whether the user named their folders.
    pub names_folders: bool,
    /// The user's folder.
    pub folder: PathBuf,
    /// What `~` means.
    pub home: PathBuf,
    /// What stands in the place of the built-in instructions.
    pub given: SystemPromptOverride,
    /// What the run's conversation is called where something of it is kept: its
    /// session's name, or else its id.
    pub source: String,
    /// Signals and the deadline.
    pub cancellation: Cancellation,
}

/// A run as far as it is configured, and what is wrong with that.
#[derive(Debug)]
pub(super) struct ExaminedRun {
    /// The run; it has an endpoint to ask only if there is no problem.
    pub run: Run,
    /// Every problem, in the words that commands fail with.
    pub problems: Vec<String>,
    /// Where each value came from.
    pub settings: Settings,
}

/// Tells a log, and whoever reads records, that the run begins.
pub(super) fn start_log(catalogue: &Catalogue, output: &mut Output) {
    let names = catalogue.usable().map(|skill| skill.name.as_str());
    output.start(&names.collect::<Vec<_>>());
}

impl Run {
    /// Reads the settings and makes sense of them.
    pub(super) fn new(
        typed: CommandLine,
        start: &Startup,
        needs: ConfigNeeds,
        output: &mut Output,
    ) -> Result<Run> {
        let cancellation = cancellation(&typed, start);
        let settings = settings(&typed, start, &cancellation)?;
        report_faults(&settings, output);
        let config = Config::resolve(&settings, &start.folder, needs)?;
        output.hide(config.secrets.clone());
        for warning in &config.warnings {
            output.warn(warning);
        }
        let mut run = Run::of(typed, start, config, &settings, cancellation);
        output.end_at(run.cancellation.deadline);
        // Before a question is waited for.
        if matches!(run.typed.command, Command::Ask | Command::Chat) {
            run.given = run.read_given()?;
        }
        if let Some(log) = &run.typed.log
            && !run.typed.dry_run
        {
            if log.is_empty() {
                return Err(usage("failed to open the log ``: the name is empty"));
            }
            let path = settings.path(log, &start.folder);
            output.log_to(&path, run.circumstances(), start.interrupt.clone())?;
        }
        Ok(run)
    }

    /// The same with everything that is wrong beside it, and nothing said.
    pub(super) fn examine(typed: CommandLine, start: &Startup, output: &mut Output) -> ExaminedRun {
        let cancellation = cancellation(&typed, start);
        let (settings, unread) = match settings(&typed, start, &cancellation) {
            Ok(settings) => (settings, None),
            Err(error) => {
                // An unreadable file hides what else is wrong: the rest is read without it.
                let rest = without_files(&typed, start);
                (rest, Some(error.message().to_string()))
            }
        };
        let (config, problems) = Config::examine(&settings, &start.folder, ConfigNeeds::Endpoint);
        output.hide(config.secrets.clone());
        let run = Run::of(typed, start, config, &settings, cancellation);
        output.end_at(run.cancellation.deadline);
        ExaminedRun { run, problems: unread.into_iter().chain(problems).collect(), settings }
    }

    fn of(
        typed: CommandLine,
        start: &Startup,
        mut config: Config,
        settings: &Settings,
        cancellation: Cancellation,
    ) -> Run {
        if !typed.skills.is_empty() {
            config.skills_folders =
                typed.skills.iter().map(|dir| settings.path(dir, &start.folder)).collect();
        }
        if let (Some(log), Some(sandbox)) = (&typed.log, &mut config.scripts.sandbox) {
            sandbox.hidden.push(settings.path(log, &start.folder));
        }
        // Also where they stand under a name that is no setting's.
        (start.forget)(&|_, value| config.secrets.is_within(value.as_bytes()));
        // Without `/./` and the like, as they are shown.
        let folders = config.skills_folders.iter();
        config.skills_folders = folders.map(|folder| folder.components().collect()).collect();
        let names_folders =
            !typed.skills.is_empty() || settings.value(SKILLS_FOLDER_PATH).is_some();
        let mut skills = Skills::from_config(&config);
        if !names_folders && let Some(program) = (start.program)() {
            skills = skills.with_installed(&program);
        }
        if !typed.skills.is_empty() {
            skills = skills.named_by_path();
        }
        let folder = start.folder.clone();
        Run {
            typed,
            config,
            skills,
            names_folders,
            home: settings.path("~".as_ref(), &folder),
            folder,
            given: SystemPromptOverride::Nothing,
            // Without random bytes a conversation has no name.
            source: random::uuid().unwrap_or_default(),
            cancellation,
        }
    }

    /// What a log tells of it.
    fn circumstances(&self) -> RunEnvironment {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let endpoint = self.config.endpoint.as_ref();
        RunEnvironment {
            folder: text(&self.folder),
            sandbox: self.config.scripts.sandbox.is_some(),
            confirm: self.typed.confirm,
            endpoint: endpoint.map(|endpoint| endpoint.address.to_string()),
            skills_folders: self.skills.folders().iter().map(text).collect(),
            ..RunEnvironment::of_process()
        }
    }

    /// What tools work with.
    pub(super) fn tool_context(&self) -> ToolContext<'_> {
        ToolContext {
            scripts: self.typed.scripts.then_some(&self.config.scripts),
            consent: self.typed.confirm.then(Rc::<Consent>::default),
            source: &self.source,
            ..ToolContext::new(&self.config, &self.skills, &self.cancellation)
        }
    }

    /// Begins to serve: what is wrong with the skills is told, and a log that it starts.
    pub(super) fn begin_serving(&self, output: &mut Output) {
        let catalogue = self.skills.catalogue();
        let is_usable = catalogue.usable().next().is_some();
        if !is_usable {
            output.warn(&format!(
                "{}: there is nothing to serve yet (--skills DIR names a folder of skills)",
                self.without_skills(&catalogue)
            ));
        }
        self.tell_problems(&catalogue, is_usable, output);
        start_log(&catalogue, output);
    }

    /// The instructions of a conversation and the tools that go with them.
    /// Without a usable skill no tool is offered, and a line says why. From
    /// here on wrong usage cannot be found any more: the start is told.
    pub(super) fn equip(&self, output: &mut Output) -> (String, Tools<'_>) {
        let catalogue = self.skills.catalogue();
        let is_usable = catalogue.usable().next().is_some();
        let tools = Tools::offered(self.tool_context(), &catalogue);
        if !is_usable {
            let which = match tools.definitions() {
                [] => "tools",
                _ => "tools for skills",
            };
            // Stays with --quiet: without skills the program is another one.
            output.warn(&format!(
                "{}: the model gets no {which} (--skills DIR names a folder of skills)",
                self.without_skills(&catalogue)
            ));
        }
        self.tell_problems(&catalogue, is_usable, output);
        let runs_scripts = tools.offers_scripts();
        if is_usable && !runs_scripts && self.typed.scripts {
            let why = Interpreter::without_venv(&self.config.scripts).err();
            output.note(&format!(
                "run_python_script is not offered: no skill has a venv, and {}",
                why.unwrap_or_default()
            ));
        }
        start_log(&catalogue, output);
        if let SystemPromptOverride::Template(text) = &self.given
            && let Some(word) = instructions::unknown(text)
        {
            output.warn(&format!(
                "the instructions hold {word}, which is no placeholder and stays as it is"
            ));
        }
        let parts = PromptParts {
            given: self.given.clone(),
            facts: self.facts(output),
            ..PromptParts::new(&catalogue, &tools, &self.folder)
        };
        (instructions::system_prompt(&parts), tools)
    }

    /// What stands in the place of the built-in instructions; what was typed wins.
    fn read_given(&self) -> Result<SystemPromptOverride> {
        if let Some(value) = &self.typed.system {
            return self.system_text(value).map(SystemPromptOverride::Text);
        }
        match &self.config.prompt_file {
            Some(path) => {
                instructions::read(path, &self.cancellation).map(SystemPromptOverride::Template)
            }
            None => Ok(SystemPromptOverride::Nothing),
        }
    }

    /// The memory, where one is set.
    pub(super) fn memory(&self) -> Option<Memory<'_>> {
        let path = self.config.storage.facts.as_deref()?;
        let cancellation = &self.cancellation;
        Some(Memory { path, cancellation })
    }

    /// What the model is told of the facts. Without them a conversation goes on.
    fn facts(&self, output: &mut Output) -> String {
        match self.memory().map(|memory| memory.for_prompt()) {
            None => String::new(),
            Some(Ok(facts)) => self.config.secrets.mask(&facts).into_owned(),
            Some(Err(error)) => {
                output.warn(&error.to_string());
                String::new()
            }
        }
    }

    /// A command of `skills` for the folders that were typed, to be typed next.
    pub(super) fn skills_command(&self, word: &str) -> String {
        skills_command(word, &self.typed.skills)
    }

    /// Why there is no skill to use.
    fn without_skills(&self, catalogue: &Catalogue) -> String {
        let paths = self.skills.folders().iter();
        let folders = paths.map(|folder| folder.display().to_string());
        let folders = folders.collect::<Vec<_>>().join(", ");
        match catalogue.faults.first() {
            Some(fault) => fault.message.clone(),
            None if catalogue.skills.is_empty() => format!("there is no skill in {folders}"),
            None => format!("there is no usable skill in {folders}"),
        }
    }

    /// Tells what is wrong with the skills, the folders first; of many things only
    /// the first ones. Without a usable skill the first fault has been told.
    fn tell_problems(&self, catalogue: &Catalogue, is_usable: bool, output: &mut Output) {
        let folders = catalogue.faults.iter().skip(usize::from(!is_usable));
        let folders = folders.filter(|fault| !self.has_reported(fault));
        let unusable = catalogue.skills.iter().filter_map(|skill| {
            let fault = skill.fault.as_ref()?;
            Some(format!("the skill `{}` cannot be used: {fault}", skill.shown_name()))
        });
        let faulty = catalogue.skills.iter().flat_map(|skill| {
            let problems = skill.problems.iter();
            problems.map(|problem| {
                format!("the skill `{}`: {}", skill.shown_name(), problem.with_fix())
            })
        });
        let mut lines = folders
            .map(|fault| fault.message.clone())
            .chain(catalogue.problems.iter().map(Problem::with_fix))
            .chain(unusable)
            .chain(faulty);
        for line in lines.by_ref().take(limits::NAMES) {
            // A path may hold a line break.
            output.note(&text::one_line(&line, limits::LINE_BYTES));
        }
        let more = lines.count();
        if more > 0 {
            output.note(&format!(
                "… and {} of skills (`{}` lists them)",
                text::counted(more, "more problem"),
                self.skills_command("check")
            ));
        }
    }

    /// What bounds a turn.
    pub(super) fn bounds(&self) -> TurnLimits {
        TurnLimits {
            max_steps: self.typed.max_steps,
            window: self.config.context_window,
            cancellation: self.cancellation.clone(),
        }
    }

    /// `--system TEXT`, or `--system @FILE`.
    fn system_text(&self, value: &str) -> Result<String> {
        let Some(path) = value.strip_prefix('@') else {
            return Ok(value.to_string());
        };
        let failure = |cause: &str| usage(format!("no instructions from `{path}`: {cause}"));
        let (place, most) = (self.folder.join(path), limits::INSTRUCTIONS_BYTES);
        let bytes = files::read_given(&place, most, &self.cancellation)
            .map_err(|error| files::unread(&error, failure))?;
        String::from_utf8(bytes)
            .map_err(|_| usage(format!("the instructions `{path}` are not UTF-8 text")))
    }
}

/// How long the run may go on, from now on.
fn cancellation(typed: &CommandLine, start: &Startup) -> Cancellation {
    let limit = typed.timeout_seconds.map(Duration::from_secs_f64);
    Cancellation {
        interrupt: start.interrupt.clone(),
        deadline: limit.map(|limit| Instant::now() + limit),
    }
}

/// A command of `skills` for these folders, as a shell takes it.
pub(super) fn skills_command(word: &str, folders: &[OsString]) -> String {
    let mut command = format!("skills-runner skills {word}");
    for folder in folders {
        command.push_str(" --skills ");
        command.push_str(&quoted(folder.as_ref()));
    }
    command
}

/// Whether colours are wanted, by the environment.
pub(super) fn wants_color(environment: &[(OsString, OsString)]) -> bool {
    let value =
        |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let no_color = value("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = value("TERM").is_none_or(|term| term == "dumb");
    !no_color && !dumb
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::args::{Invocation, parse};
    use crate::model::http::{EndpointQuery, HttpModel};
    use crate::world::output::{Format, Verbosity};
    use crate::world::scratch::Scratch;

    /// Whatever is set, `Debug` of nothing that holds it shows it.
    #[test]
    fn debug_shows_no_secret() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let file = scratch.write(".env", b"LLM_API_KEY=canary-1\nOTHER=canary-2\n");
        let arguments = ["--env-file".into(), file.unwrap().into(), "hi".into()];
        let variables = [
            ("LLM_EXTRA_HEADERS", r#"{"x-key": "canary-3"}"#),
            ("LLM_API_BASE_URL", "http://h.test/v1?key=canary-4"),
            ("LLM_MODEL_NAME", "m"),
            ("HTTP_PROXY", "http://canary-5:canary-6@p.test:1"),
            ("OF_SOMEBODY_ELSE", "canary-7"),
        ];
        let start = Startup {
            environment: variables.map(|(name, value)| (name.into(), value.into())).into(),
            folder: scratch.path().into(),
            ..Startup::default()
        };
        let Ok(Invocation::Run(typed)) = parse(arguments.into()) else {
            panic!("it is a question");
        };
        let mut output = Output::new(Format::Text, Verbosity::Quiet, false, Interrupt::never());
        let examined = Run::examine(*typed, &start, &mut output);
        assert_eq!(examined.problems, [""; 0]);
        let run = &examined.run;
        let endpoint = run.config.endpoint.clone().unwrap();
        let inquiry = EndpointQuery::new(endpoint.clone(), Cancellation::never());
        let model = HttpModel::new(endpoint, true, Cancellation::never());
        let shown =
            format!("{start:?}{examined:#?}{:?}{inquiry:?}{model:?}{output:?}", run.tool_context());
        assert!(shown.contains("OF_SOMEBODY_ELSE") && shown.contains("h.test"));
        let found = shown.match_indices("canary").map(|(at, _)| &shown[at - 30..at + 8]);
        assert_eq!(found.collect::<Vec<_>>(), [""; 0]);
    }
}
