//! What the model gets besides the question: the system prompt and the tools.

use std::slice;

use crate::cli::installed_model::{NoModel, ONLY_MODEL, find_installed_model};
use crate::cli::options::{AskOptions, CommonOptions};
use crate::cli::run::Run;
use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::config::{ConfigNeeds, Endpoint, ToolCalling, configuration_error};
use crate::conversation::meter::TokenMeter;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::limits;
use crate::model::Model;
use crate::model::http::{ModelListing, query_briefly};
use crate::skills::Catalogue;
use crate::skills::python::Interpreter;
use crate::system_prompt::{self, PromptParts, SystemPromptOverride};
use crate::text::group_digits;
use crate::tools::Tools;
use crate::world::files;
use crate::world::output::Output;

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
        output: &mut Output,
    ) -> Result<Run> {
        let mut run = Run::new(options, startup, ConfigNeeds::Endpoint, output)?;
        run.prompt_override = run.read_prompt_override(ask.system.as_deref())?;
        run.choose_model(output)?;
        if !ask.dry_run
            && let Some(mut endpoint) = run.config.endpoint.take()
        {
            let learned = run.learn_size(&mut endpoint, output);
            run.config.endpoint = Some(endpoint);
            learned?;
        }
        if !ask.dry_run {
            run.apply_tool_options(&ask.tools, output)?;
        }
        run.check_folders(output)?;
        run.check_lock_files()?;
        run.requirements = ask.requirements;
        let most = TokenMeter::result_bytes(run.config.context_window);
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

    /// Asks an endpoint on this machine for the size of its model, where it decides how the model
    /// calls tools. What goes wrong is left to the first request.
    pub(super) fn learn_size(&self, endpoint: &mut Endpoint, output: &mut Output) -> Result<()> {
        if !endpoint.calls_by_size() {
            return Ok(());
        }
        let mut sink = |event: Event<'_>| output.show(&event);
        let asked = query_briefly(endpoint, &self.cancellation, |query| {
            let ModelListing::Models(models) = query.list_models(&mut sink)? else {
                return Ok(None);
            };
            let server = query.server_kind(&models, &mut sink)?;
            query.parameters(&models, server, &mut sink)
        });
        endpoint.parameters = asked.ok().flatten().flatten();
        self.cancellation.check()?;
        if endpoint.calling() == ToolCalling::Schema {
            let count = group_digits(endpoint.parameters.unwrap_or_default());
            output.detail(&format!(
                "{} has {count} parameters: its replies are constrained (LLM_TOOLS=schema)",
                endpoint.model
            ));
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
        let window = self.config.context_window;
        (self.system_prompt(&catalogue, &tools, question, (window, model), output), tools)
    }

    /// The system prompt of a conversation that starts now.
    pub(super) fn system_prompt(
        &self,
        catalogue: &Catalogue,
        tools: &Tools<'_>,
        question: &str,
        (window, model): (Option<u64>, &dyn Model),
        output: &mut Output,
    ) -> String {
        system_prompt::system_prompt(&PromptParts {
            prompt_override: self.prompt_override.clone(),
            facts: self.facts_for_prompt(output),
            question,
            window,
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
