//! Builds a run: reads the settings, and prepares the configuration, skills, system prompt and
//! tools that commands share.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::agent::TurnLimits;
use crate::cli::args::{CommandLine, usage};
use crate::cli::env_files::{read_settings, report_skipped_lines, settings_without_files};
use crate::cli::table::Command;
use crate::config::{Config, ConfigNeeds};
use crate::error::{Fault, Result};
use crate::limits;
use crate::memory::Memory;
use crate::secret::HiddenValues;
use crate::settings::{SKILLS_FOLDER_PATH, Settings};
use crate::skills::python::Interpreter;
use crate::skills::{Catalogue, Problem, Skills};
use crate::system_prompt::{self, PromptParts, SystemPromptOverride};
use crate::text::{self, shell_quoted};
use crate::tools::{Consent, ToolContext, Tools};
use crate::world::cancellation::Cancellation;
use crate::world::files;
use crate::world::hardening::IsSecret;
use crate::world::output::{Output, RunEnvironment};
use crate::world::random;
use crate::world::signal::Interrupt;

/// The environment that the program was started in.
pub struct Startup {
    /// The process environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working folder, absolute.
    pub folder: PathBuf,
    /// Signals that request a stop.
    pub interrupt: Interrupt,
    /// Removes credentials from the environment of the process itself. A library that runs in
    /// another program passes a function that does nothing.
    pub erase_credentials: fn(IsSecret<'_>),
    /// Returns the path of the program's own file, if known.
    pub program_path: fn() -> Option<PathBuf>,
}

/// Starts in the root folder, without environment variables and signals.
impl Default for Startup {
    fn default() -> Startup {
        Startup {
            environment: Vec::new(),
            folder: "/".into(),
            interrupt: Interrupt::never(),
            erase_credentials: |_| {},
            program_path: || None,
        }
    }
}

impl fmt::Debug for Startup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Startup")
            .field("environment", &HiddenValues(&self.environment))
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// A configured run: the parts that commands share.
#[derive(Debug)]
pub(super) struct Run {
    /// The command line.
    pub args: CommandLine,
    /// The configuration from command line and settings.
    pub config: Config,
    /// The skills.
    pub skills: Skills,
    /// Whether the user named the skills folders.
    pub has_named_folders: bool,
    /// The working folder.
    pub folder: PathBuf,
    /// The folder that `~` stands for.
    pub home: PathBuf,
    /// The text that replaces the built-in system prompt.
    pub prompt_override: SystemPromptOverride,
    /// The name of the conversation in sessions, facts and notes: the session's name, or an id.
    pub conversation_name: String,
    /// Signals and the deadline.
    pub cancellation: Cancellation,
}

/// A run that may be configured incompletely, with all problems.
#[derive(Debug)]
pub(super) struct ExaminedRun {
    /// The run. Its endpoint can be used only if there are no problems.
    pub run: Run,
    /// Every problem, with the message of a command that fails because of it.
    pub problems: Vec<Fault>,
    /// The settings, with the source of each value.
    pub settings: Settings,
}

/// Writes the start record to the log and to JSON lines output.
pub(super) fn record_start(catalogue: &Catalogue, output: &mut Output) {
    let names = catalogue.usable().map(|skill| skill.name.as_str());
    output.record_start(&names.collect::<Vec<_>>());
}

impl Run {
    /// Reads the settings and builds the run.
    pub(super) fn new(
        args: CommandLine,
        startup: &Startup,
        needs: ConfigNeeds,
        output: &mut Output,
    ) -> Result<Run> {
        let cancellation = cancellation(&args, startup);
        let settings = read_settings(&args, startup, &cancellation)?;
        report_skipped_lines(&settings, output);
        let config = Config::resolve(&settings, &startup.folder, needs)?;
        output.set_secrets(config.secrets.clone());
        for warning in &config.warnings {
            output.warn(&warning.to_string());
        }
        let mut run = Run::assemble(args, startup, config, &settings, cancellation);
        output.set_deadline(run.cancellation.deadline);
        // Before waiting for a question.
        if matches!(run.args.command, Command::Question | Command::Chat) {
            run.prompt_override = run.read_prompt_override()?;
        }
        if let Some(log) = &run.args.log
            && !run.args.dry_run
        {
            if log.is_empty() {
                return Err(usage("failed to open the log ``: the name is empty"));
            }
            let path = settings.path(log, &startup.folder);
            output.open_log(&path, run.log_environment(), startup.interrupt.clone())?;
        }
        Ok(run)
    }

    /// Like `new`, but collects all problems instead of failing or printing.
    pub(super) fn examine(
        args: CommandLine,
        startup: &Startup,
        output: &mut Output,
    ) -> ExaminedRun {
        let cancellation = cancellation(&args, startup);
        let (settings, unread) = match read_settings(&args, startup, &cancellation) {
            Ok(settings) => (settings, None),
            Err(error) => {
                // Read the rest without the file, to report other problems too.
                let rest = settings_without_files(&args, startup);
                (rest, Some(error.fault().clone()))
            }
        };
        let (config, problems) = Config::examine(&settings, &startup.folder, ConfigNeeds::Endpoint);
        output.set_secrets(config.secrets.clone());
        let run = Run::assemble(args, startup, config, &settings, cancellation);
        output.set_deadline(run.cancellation.deadline);
        let problems = problems.into_iter().map(|problem| problem.fault);
        ExaminedRun { run, problems: unread.into_iter().chain(problems).collect(), settings }
    }

    fn assemble(
        args: CommandLine,
        startup: &Startup,
        mut config: Config,
        settings: &Settings,
        cancellation: Cancellation,
    ) -> Run {
        if !args.skills.is_empty() {
            config.skills_folders =
                args.skills.iter().map(|dir| settings.path(dir, &startup.folder)).collect();
        }
        if let (Some(log), Some(sandbox)) = (&args.log, &mut config.scripts.sandbox) {
            sandbox.hidden.push(settings.path(log, &startup.folder));
        }
        // Also values in variables that are not settings.
        (startup.erase_credentials)(&|_, value| config.secrets.occur_in(value.as_bytes()));
        // Remove `/./` and the like from the paths, as they are shown.
        let folders = config.skills_folders.iter();
        config.skills_folders = folders.map(|folder| folder.components().collect()).collect();
        let names_folders = !args.skills.is_empty() || settings.value(SKILLS_FOLDER_PATH).is_some();
        let mut skills = Skills::from_config(&config);
        if !names_folders && let Some(program) = (startup.program_path)() {
            skills = skills.with_installed(&program);
        }
        if !args.skills.is_empty() {
            skills = skills.addressed_by_path();
        }
        let folder = startup.folder.clone();
        Run {
            args,
            config,
            skills,
            has_named_folders: names_folders,
            home: settings.path("~".as_ref(), &folder),
            folder,
            prompt_override: SystemPromptOverride::BuiltIn,
            // If the system has no random bytes, the conversation has no name.
            conversation_name: random::uuid().unwrap_or_default(),
            cancellation,
        }
    }

    /// The description of the run for the log.
    fn log_environment(&self) -> RunEnvironment {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let endpoint = self.config.endpoint.as_ref();
        RunEnvironment {
            folder: text(&self.folder),
            sandbox: self.config.scripts.sandbox.is_some(),
            confirm: self.args.confirm,
            endpoint: endpoint.map(|endpoint| endpoint.address.to_string()),
            skills_folders: self.skills.folders().iter().map(text).collect(),
            ..RunEnvironment::for_process()
        }
    }

    /// The context that tools run in.
    pub(super) fn tool_context(&self) -> ToolContext<'_> {
        ToolContext {
            scripts: self.args.scripts.then_some(&self.config.scripts),
            consent: self.args.confirm.then(Rc::<Consent>::default),
            source: &self.conversation_name,
            ..ToolContext::new(&self.config, &self.skills, &self.cancellation)
        }
    }

    /// Starts a server: reports problems of the skills and writes the start record.
    pub(super) fn start_serving(&self, output: &mut Output) {
        let catalogue = self.skills.catalogue();
        let is_usable = catalogue.usable().next().is_some();
        if !is_usable {
            output.warn(&format!(
                "{}: there is nothing to serve (use --skills DIR)",
                self.no_skills_reason(&catalogue)
            ));
        }
        self.report_problems(&catalogue, is_usable, output);
        record_start(&catalogue, output);
    }

    /// The system prompt of a conversation and its tools. Without a usable skill it warns that
    /// there are none. Wrong usage must have been reported before, as this writes the start record.
    pub(super) fn prepare_model_input(&self, output: &mut Output) -> (String, Tools<'_>) {
        let catalogue = self.skills.catalogue();
        let is_usable = catalogue.usable().next().is_some();
        let tools = Tools::for_model(self.tool_context(), &catalogue);
        if !is_usable {
            let which = match tools.definitions() {
                [] => "tools",
                _ => "tools for skills",
            };
            // Shown with --quiet too: without skills the program has little use.
            output.warn(&format!(
                "{}: the model gets no {which} (use --skills DIR)",
                self.no_skills_reason(&catalogue)
            ));
        }
        self.report_problems(&catalogue, is_usable, output);
        let runs_scripts = tools.offers_scripts();
        if is_usable && !runs_scripts && self.args.scripts {
            let why = Interpreter::without_venv(&self.config.scripts).err();
            let why = why.map(|error| error.to_string()).unwrap_or_default();
            output
                .note(&format!("run_python_script is not offered: no skill has a venv, and {why}"));
        }
        record_start(&catalogue, output);
        if let SystemPromptOverride::Template(text) = &self.prompt_override
            && let Some(word) = system_prompt::unknown_placeholder(text)
        {
            output.warn(&format!(
                "the system prompt contains {word}, which is not a placeholder and is left unchanged"
            ));
        }
        let parts = PromptParts {
            prompt_override: self.prompt_override.clone(),
            facts: self.facts_for_prompt(output),
            ..PromptParts::new(&catalogue, &tools, &self.folder)
        };
        (system_prompt::system_prompt(&parts), tools)
    }

    /// The text that replaces the built-in system prompt; `--system` overrides the setting.
    fn read_prompt_override(&self) -> Result<SystemPromptOverride> {
        if let Some(value) = &self.args.system {
            return self.system_text(value).map(SystemPromptOverride::Text);
        }
        match &self.config.prompt_file {
            Some(path) => system_prompt::read_template(path, &self.cancellation)
                .map(SystemPromptOverride::Template),
            None => Ok(SystemPromptOverride::BuiltIn),
        }
    }

    /// The memory, if `MEMORY_PATH` is set.
    pub(super) fn memory(&self) -> Option<Memory<'_>> {
        let path = self.config.storage.facts.as_deref()?;
        let cancellation = &self.cancellation;
        Some(Memory { path, cancellation })
    }

    /// The facts for the system prompt. If they cannot be read, a warning is printed.
    fn facts_for_prompt(&self, output: &mut Output) -> String {
        match self.memory().map(|memory| memory.for_prompt()) {
            None => String::new(),
            Some(Ok(facts)) => self.config.secrets.mask(&facts).into_owned(),
            Some(Err(error)) => {
                output.warn(&error.to_string());
                String::new()
            }
        }
    }

    /// A `skills` command with the `--skills` options of this run, for hints.
    pub(super) fn skills_command(&self, word: &str) -> String {
        skills_command(word, &self.args.skills)
    }

    /// The reason why no skill is usable.
    fn no_skills_reason(&self, catalogue: &Catalogue) -> String {
        let paths = self.skills.folders().iter();
        let folders = paths.map(|folder| folder.display().to_string());
        let folders = folders.collect::<Vec<_>>().join(", ");
        match catalogue.folder_errors.first() {
            Some(problem) => problem.message.clone(),
            None if catalogue.skills.is_empty() => format!("there are no skills in {folders}"),
            None => format!("there is no usable skill in {folders}"),
        }
    }

    /// Reports the first problems of folders and skills. If no skill is usable, the first folder
    /// problem has been reported already.
    fn report_problems(&self, catalogue: &Catalogue, is_usable: bool, output: &mut Output) {
        let folders = catalogue.folder_errors.iter().skip(usize::from(!is_usable));
        let folders = folders.filter(|problem| !self.is_already_reported(problem));
        let unusable = catalogue.skills.iter().filter_map(|skill| {
            let error = skill.error.as_ref()?;
            Some(format!("the skill `{}` cannot be used: {error}", skill.display_name()))
        });
        let faulty = catalogue.skills.iter().flat_map(|skill| {
            let problems = skill.problems.iter();
            problems.map(|problem| {
                format!("the skill `{}`: {}", skill.display_name(), problem.with_fix())
            })
        });
        let mut lines = folders
            .map(|problem| problem.message.clone())
            .chain(catalogue.problems.iter().map(Problem::with_fix))
            .chain(unusable)
            .chain(faulty);
        for line in lines.by_ref().take(limits::LISTED_NAMES) {
            // A path may contain a line break.
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

    /// The limits of a turn.
    pub(super) fn turn_limits(&self) -> TurnLimits {
        TurnLimits {
            max_steps: self.args.max_steps,
            window: self.config.context_window,
            cancellation: self.cancellation.clone(),
        }
    }

    /// The value of `--system TEXT` or `--system @FILE`.
    fn system_text(&self, value: &str) -> Result<String> {
        let Some(path) = value.strip_prefix('@') else {
            return Ok(value.to_string());
        };
        let failure =
            |cause: &str| usage(format!("the system prompt `{path}` cannot be read: {cause}"));
        let (place, most) = (self.folder.join(path), limits::SYSTEM_PROMPT_BYTES);
        let bytes = files::read_file_or_pipe(&place, most, &self.cancellation)
            .map_err(|error| files::read_error(&error, failure))?;
        String::from_utf8(bytes)
            .map_err(|_| usage(format!("the system prompt `{path}` is not UTF-8 text")))
    }
}

/// The signals and the deadline of the run; its time starts now.
fn cancellation(args: &CommandLine, startup: &Startup) -> Cancellation {
    let limit = args.timeout_seconds.map(Duration::from_secs_f64);
    Cancellation {
        interrupt: startup.interrupt.clone(),
        deadline: limit.map(|limit| Instant::now() + limit),
    }
}

/// A `skills` command for these folders, quoted for a shell.
pub(super) fn skills_command(word: &str, folders: &[OsString]) -> String {
    let mut command = format!("skills-runner skills {word}");
    for folder in folders {
        command.push_str(" --skills ");
        command.push_str(&shell_quoted(folder.as_ref()));
    }
    command
}

/// Whether the environment allows colours.
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

    /// No `Debug` output contains a secret setting.
    #[test]
    fn debug_output_has_no_secrets() {
        let scratch = Scratch::new(Path::new("/tmp")).unwrap();
        let file = scratch.write_file(".env", b"LLM_API_KEY=canary-1\nOTHER=canary-2\n");
        let arguments = ["--env-file".into(), file.unwrap().into(), "hi".into()];
        let variables = [
            ("LLM_EXTRA_HEADERS", r#"{"x-key": "canary-3"}"#),
            ("LLM_API_BASE_URL", "http://h.test/v1?key=canary-4"),
            ("LLM_MODEL_NAME", "m"),
            ("HTTP_PROXY", "http://canary-5:canary-6@p.test:1"),
            ("OF_ANOTHER_PROGRAM", "canary-7"),
        ];
        let startup = Startup {
            environment: variables.map(|(name, value)| (name.into(), value.into())).into(),
            folder: scratch.path().into(),
            ..Startup::default()
        };
        let Ok(Invocation::Run(args)) = parse(arguments.into()) else {
            panic!("it is a question");
        };
        let mut output = Output::new(Format::Text, Verbosity::Quiet, false, Interrupt::never());
        let examined = Run::examine(*args, &startup, &mut output);
        assert_eq!(examined.problems, []);
        let run = &examined.run;
        let endpoint = run.config.endpoint.clone().unwrap();
        let query = EndpointQuery::new(endpoint.clone(), Cancellation::never());
        let model = HttpModel::new(endpoint, true, Cancellation::never());
        let shown =
            format!("{startup:?}{examined:#?}{:?}{query:?}{model:?}{output:?}", run.tool_context());
        assert!(shown.contains("OF_ANOTHER_PROGRAM") && shown.contains("h.test"));
        let found = shown.match_indices("canary").map(|(at, _)| &shown[at - 30..at + 8]);
        assert_eq!(found.collect::<Vec<_>>(), [""; 0]);
    }
}
