//! The model's input besides the question: the system prompt and the tools.

use std::{fs, slice};

use crate::cli::installed_model::{NoModel, ONLY_MODEL, find_installed_model};
use crate::cli::options::{AskOptions, CommonOptions};
use crate::cli::run::Run;
use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::config::{ConfigNeeds, configuration_error};
use crate::ui::Output;
use agent::conversation::meter::TokenMeter;
use agent::system_prompt::{self, PromptParts, SystemPromptOverride};
use agent::tools::Tools;
use base::error::{Error, ErrorKind, Result};
use base::event::Event;
use base::limits;
use base::text::group_digits;
use chat_api::Model;
use chat_api::http::{ReportedModel, query_briefly};
use chat_api::{Endpoint, ToolCalling};
use host::files;
use skills::Catalogue;
use skills::python::Interpreter;

/// Writes the start record to the log and to JSON lines output.
pub(super) fn record_start(catalogue: &Catalogue, output: &mut Output) {
    let names = catalogue.usable().map(|skill| skill.name.as_str());
    output.record_start(&names.collect::<Vec<_>>());
}

impl Run {
    /// A run of a question or conversation. Reads everything but standard input, which it may
    /// have to wait for.
    pub(super) fn for_questions(
        ask: &AskOptions,
        options: CommonOptions,
        startup: &Startup,
        is_on_terminal: bool,
        output: &mut Output,
    ) -> Result<Run> {
        let mut run = Run::new(options, startup, ConfigNeeds::Endpoint, output)?;
        run.prompt_override = run.read_prompt_override(ask.system.as_deref())?;
        run.choose_model(output)?;
        if !ask.dry_run
            && (is_on_terminal || run.may_have_skills())
            && let Some(mut endpoint) = run.config.endpoint.take()
        {
            let queried = run.query_model(&mut endpoint, is_on_terminal, output);
            run.config.endpoint = Some(endpoint);
            queried?;
        }
        if !ask.dry_run {
            run.apply_tool_options(&ask.tools, output)?;
        }
        run.check_folders(output)?;
        run.check_lock_files()?;
        run.requirements = ask.requirements;
        let most = TokenMeter::result_bytes(run.window());
        Tools::builtin(run.tool_context()).limit_results(most);
        Ok(run)
    }

    /// Finds the model if none is set, and reports where the parts of the endpoint were set.
    fn choose_model(&mut self, output: &mut Output) -> Result<()> {
        if let Some(endpoint) = self.config.endpoint_without_model.take() {
            let mut sink = |event: Event<'_>| output.show(&event);
            let found = find_installed_model(endpoint, &self.cancellation, &mut sink);
            self.config.endpoint = Some(found.map_err(|cause| match cause {
                NoModel::Unset(problem) if problem.lines.is_empty() => {
                    let message = "failed to read the configuration";
                    Error::caused_by(ErrorKind::Config, message, problem.fault)
                }
                NoModel::Unset(problem) => configuration_error(slice::from_ref(&problem), &[]),
                NoModel::Failed(error) => error,
            })?);
        }
        if let Some(endpoint) = &self.config.endpoint {
            let Endpoint { address, model, sources, .. } = endpoint;
            let key = match sources.credentials_text() {
                Some(names) => format!("key from {names}"),
                None => "no key".into(),
            };
            let named = match &sources.model {
                Some(source) => format!(" from {source}"),
                None => format!(", {ONLY_MODEL}"),
            };
            let place = &sources.address;
            output.detail(&format!("endpoint {address} from {place}, {key}; model {model}{named}"));
        }
        Ok(())
    }

    /// Whether a skills folder contains anything. Without skills a run depends on the model only if
    /// it sends much.
    pub(super) fn may_have_skills(&self) -> bool {
        let has_entries =
            |path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        self.skills.folders().iter().any(|folder| has_entries(&folder.path))
    }

    /// Queries the size and the context window of the model, where they are not set and a server on
    /// this machine or network may report them. What goes wrong is left to the first request.
    pub(super) fn query_model(
        &self,
        endpoint: &mut Endpoint,
        is_on_terminal: bool,
        output: &mut Output,
    ) -> Result<()> {
        let address = &endpoint.address;
        let is_near = address.is_loopback() || is_on_terminal && !address.is_encrypted();
        let needs_window = is_near && self.config.context_window.is_none();
        if !needs_window && !endpoint.calls_by_size() {
            return Ok(());
        }
        let known = self.reported.get();
        let mut reported = ReportedModel::default();
        let mut sink = |event: Event<'_>| output.show(&event);
        let _ = query_briefly(endpoint, &self.cancellation, |query| {
            query.report_model(needs_window, &mut reported, &mut sink)
        });
        endpoint.parameters = reported.parameters.or(endpoint.parameters);
        reported.window = reported.window.or(known.window);
        self.reported.set(reported);
        self.cancellation.check()?;
        let count = reported.parameters.filter(|_| reported.parameters != known.parameters);
        if let Some(count) = count.filter(|_| endpoint.calling() == ToolCalling::Schema) {
            let count = group_digits(count);
            output.detail(&format!(
                "{} has {count} parameters: its replies are constrained (LLM_TOOLS=schema)",
                endpoint.model
            ));
        }
        if let Some(tokens) = reported.window.filter(|_| reported.window != known.window) {
            let tokens = group_digits(tokens);
            output.detail(&format!("the server reports a window of {tokens} tokens"));
        }
        Ok(())
    }

    /// The system prompt of a conversation with this first question, if it is known, and its tools.
    /// Without a usable skill it warns that there are none. Wrong usage must have been reported
    /// before, as this writes the start record.
    pub(super) fn prepare_model_input(
        &self,
        question: &str,
        model: &dyn Model,
        output: &mut Output,
    ) -> (String, Tools<'_>) {
        let catalogue = self.skills.catalogue();
        let tools = Tools::for_model(self.tool_context(), &catalogue);
        let consequence = match tools.definitions() {
            [] => "the model gets no tools",
            _ => "the model gets no tools for skills",
        };
        self.report_skills(&catalogue, consequence, output);
        let is_usable = catalogue.usable().next().is_some();
        if is_usable && !tools.offers("run_python_script") && self.options.scripts {
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
        (self.system_prompt(&catalogue, &tools, question, model, output), tools)
    }

    /// The system prompt of a conversation that starts now.
    pub(super) fn system_prompt(
        &self,
        catalogue: &Catalogue,
        tools: &Tools<'_>,
        question: &str,
        model: &dyn Model,
        output: &mut Output,
    ) -> String {
        system_prompt::system_prompt(&PromptParts {
            prompt_override: self.prompt_override.clone(),
            facts: self.facts_for_prompt(output),
            question,
            window: self.window(),
            is_constrained: model.tool_calling() == ToolCalling::Schema,
            ..PromptParts::new(catalogue, tools, &self.folder)
        })
    }

    /// The text that replaces the built-in system prompt; `--system` overrides the setting.
    fn read_prompt_override(&self, typed: Option<&str>) -> Result<SystemPromptOverride> {
        if let Some(value) = typed {
            return self.system_text(value).map(SystemPromptOverride::Text);
        }
        match &self.config.prompt_file {
            Some(path) => system_prompt::read_template(path, &self.cancellation)
                .map(SystemPromptOverride::Template),
            None => Ok(SystemPromptOverride::BuiltIn),
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
}
