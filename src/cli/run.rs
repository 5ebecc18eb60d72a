//! A configured run: the settings, and what commands share because of them.

use std::cell::Cell;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::cli::env_files::{read_settings, report_skipped_lines, settings_without_files};
use crate::cli::options::{CommonOptions, Requirements, ToolOptions};
use crate::cli::startup::Startup;
use crate::config::{Config, ConfigNeeds};
use crate::ui::{Output, RunEnvironment};
use agent::memory::Memory;
use agent::system_prompt::SystemPromptOverride;
use agent::tools::{CallHistory, Consent, ToolContext};
use agent::turn::TurnLimits;
use base::error::{Fault, Result};
use base::settings::{Settings, misspelled};
use base::text;
use chat_api::http::ReportedModel;
use host::cancellation::Cancellation;
use host::random;
use skills::Skills;
use skills::SkillsFolder;

/// A configured run: the parts that commands share.
#[derive(Debug)]
pub(super) struct Run {
    /// The options of every command.
    pub options: CommonOptions,
    /// The settings, with the source of each value.
    pub settings: Settings,
    /// The configuration from options and settings.
    pub config: Config,
    /// The skills.
    pub skills: Skills,
    /// Whether the user named the skills folders.
    pub has_named_folders: bool,
    /// The working folder.
    pub folder: PathBuf,
    /// The text that replaces the built-in system prompt.
    pub prompt_override: SystemPromptOverride,
    /// The name of the conversation in sessions, facts and notes: the session's name, or an id.
    pub conversation_name: String,
    /// Signals and the deadline.
    pub cancellation: Cancellation,
    /// The endpoint's report on the model.
    pub reported: Cell<ReportedModel>,
    /// The required basis of an answer.
    pub requirements: Requirements,
    /// Whether the user must consent before a script runs.
    confirm: bool,
    /// The record of earlier calls, for hints.
    call_history: Rc<CallHistory>,
}

/// A run that may be configured incompletely, with all problems.
#[derive(Debug)]
pub(super) struct ExaminedRun {
    /// The run. Its endpoint can be used only if there are no problems.
    pub run: Run,
    /// Every problem, with the message of a command that fails because of it.
    pub problems: Vec<Fault>,
}

impl Run {
    /// Reads the settings and builds the run.
    pub(super) fn new(
        options: CommonOptions,
        startup: &Startup,
        needs: ConfigNeeds,
        output: &mut Output,
    ) -> Result<Run> {
        let cancellation = cancellation(&options, startup);
        let settings = read_settings(&options, startup, &cancellation)?;
        report_skipped_lines(&settings, output);
        let config = Config::resolve(&settings, &startup.folder, needs)?;
        output.set_secrets(config.secrets.clone());
        for warning in &config.warnings {
            output.warn(&warning.to_string());
        }
        if needs == ConfigNeeds::Endpoint {
            for warning in misspelled::warnings_in_files(&settings) {
                output.note(&warning.message);
            }
        }
        output.set_deadline(cancellation.deadline);
        Ok(Run::assemble(options, startup, config, settings, cancellation))
    }

    /// Like `new`, but collects all problems instead of failing or printing.
    pub(super) fn examine(
        options: CommonOptions,
        startup: &Startup,
        output: &mut Output,
    ) -> ExaminedRun {
        let cancellation = cancellation(&options, startup);
        let (settings, unread) = match read_settings(&options, startup, &cancellation) {
            Ok(settings) => (settings, None),
            Err(error) => {
                // Read the rest without the file, to report other problems too.
                let rest = settings_without_files(&options, startup);
                (rest, Some(error.fault().clone()))
            }
        };
        let (config, problems) = Config::examine(&settings, &startup.folder, ConfigNeeds::Endpoint);
        output.set_secrets(config.secrets.clone());
        output.set_deadline(cancellation.deadline);
        let run = Run::assemble(options, startup, config, settings, cancellation);
        let problems = problems.into_iter().map(|problem| problem.fault);
        ExaminedRun { run, problems: unread.into_iter().chain(problems).collect() }
    }

    fn assemble(
        options: CommonOptions,
        startup: &Startup,
        mut config: Config,
        settings: Settings,
        cancellation: Cancellation,
    ) -> Run {
        // Also values in variables that are not settings.
        (startup.erase_credentials)(&|_, value| config.secrets.occur_in(value.as_bytes()));
        let is_typed = !options.skills.is_empty();
        if is_typed {
            let folders = options.skills.iter();
            let folders = folders.map(|folder| settings.path(folder, &startup.folder));
            config.skills_folders = folders.map(|path| SkillsFolder::named(&path)).collect();
        }
        let has_named_folders = config.skills_folders.iter().any(SkillsFolder::is_named);
        let search = startup.variable("PATH").map(OsString::as_os_str);
        let mut skills = config.skills().started_as(&startup.program, search);
        if !has_named_folders && let Some(program) = (startup.program_path)() {
            skills = skills.with_installed(&program);
        }
        if is_typed {
            skills = skills.addressed_by_path();
        }
        Run {
            options,
            settings,
            config,
            skills,
            has_named_folders,
            folder: startup.folder.clone(),
            prompt_override: SystemPromptOverride::BuiltIn,
            // If the system has no random bytes, the conversation has no name.
            conversation_name: random::uuid().unwrap_or_default(),
            cancellation,
            reported: Cell::default(),
            requirements: Requirements::default(),
            confirm: false,
            call_history: Rc::default(),
        }
    }

    /// Applies the options of a command whose tools can run scripts, and opens the log.
    pub(super) fn apply_tool_options(
        &mut self,
        tools: &ToolOptions,
        output: &mut Output,
    ) -> Result<()> {
        self.confirm = tools.confirm;
        if self.options.scripts
            && let Some(text) = self.withheld_variables()
        {
            output.detail(&text);
        }
        let Some(log) = &tools.log else {
            return Ok(());
        };
        let path = self.settings.path(log, &self.folder);
        self.config.scripts.private_files.push(path.clone());
        self.skills.add_private_file(path.clone());
        output.open_log(&path, self.log_environment(), self.cancellation.interrupt.clone())
    }

    /// The variables that scripts do not get, and what changes that; `None`: there are none.
    pub(super) fn withheld_variables(&self) -> Option<String> {
        let names: Vec<&str> = self.config.scripts.withheld_names().collect();
        let first = text::first_names(&names);
        (!names.is_empty()).then(|| {
            format!("scripts and commands do not get {first}, unless SCRIPT_ENV names them")
        })
    }

    /// The description of the run for the log.
    fn log_environment(&self) -> RunEnvironment {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let endpoint = self.config.endpoint.as_ref();
        RunEnvironment {
            folder: text(&self.folder),
            sandbox: self.config.scripts.sandbox.is_some(),
            confirm: self.confirm,
            endpoint: endpoint.map(|endpoint| endpoint.address.to_string()),
            skills_folders: self.skills.folders().iter().map(|folder| text(&folder.path)).collect(),
            ..RunEnvironment::for_process()
        }
    }

    /// The context that tools run in.
    pub(super) fn tool_context(&self) -> ToolContext<'_> {
        ToolContext {
            scripts: self.options.scripts.then_some(&self.config.scripts),
            consent: self.confirm.then(Rc::<Consent>::default),
            source: &self.conversation_name,
            window: self.window(),
            history: Rc::clone(&self.call_history),
            ..self.config.tool_context(&self.skills, &self.cancellation)
        }
    }

    /// The memory, if `MEMORY_PATH` is set.
    pub(super) fn memory(&self) -> Option<Memory<'_>> {
        let path = self.config.storage.facts.as_deref()?;
        let cancellation = &self.cancellation;
        Some(Memory { path, cancellation })
    }

    /// A path relative to the working folder, where possible.
    pub(super) fn short_path(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.folder) {
            Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
            Ok(rest) => rest.to_path_buf(),
            Err(_) => path.to_path_buf(),
        }
    }

    /// The context window in tokens, as it is set or else reported.
    pub(super) fn window(&self) -> Option<u64> {
        self.config.context_window.or(self.reported.get().window)
    }

    /// The limits of a turn.
    pub(super) fn turn_limits(&self) -> TurnLimits {
        TurnLimits {
            max_steps: self.options.max_steps,
            window: self.window(),
            asks_without_tools: self.prompt_override == SystemPromptOverride::BuiltIn
                && self.requirements == Requirements::default(),
            cancellation: self.cancellation.clone(),
        }
    }
}

/// The signals and the deadline of the run; its time starts now.
fn cancellation(options: &CommonOptions, startup: &Startup) -> Cancellation {
    let limit = options.timeout_seconds.map(Duration::from_secs_f64);
    Cancellation {
        interrupt: startup.interrupt.clone(),
        deadline: limit.map(|limit| Instant::now() + limit),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::args::{Invocation, parse};
    use crate::ui::TerminalFeatures;
    use crate::ui::{Format, Verbosity};
    use chat_api::http::{EndpointQuery, HttpModel};
    use host::scratch::Scratch;
    use host::signal::Interrupt;

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
        let Ok(Invocation::Run(line)) = parse(arguments.into()) else {
            panic!("it is a question");
        };
        let mut output = Output::new(
            Format::Text,
            Verbosity::Quiet,
            TerminalFeatures::default(),
            Interrupt::never(),
        );
        let examined = Run::examine(line.options, &startup, &mut output);
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
