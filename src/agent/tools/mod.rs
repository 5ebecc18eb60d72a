//! The tools a model may call.
//!
//! A new tool is one file and one row of [`BUILTIN_TOOLS`], which says what it needs, and which the
//! API, the MCP server, the command `tool NAME`, the help and the tests read. A program that uses
//! the crate adds its own tools with [`Tools::with`]. A failure is a result to which the model can
//! react, never an error that ends the run. Nothing here depends on the model.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use serde_json::Value;

use crate::memory::Storage;
use base::event::{Event, EventSink, RunStats};
use base::limits;
use base::message::InvokedSkill;
use base::secret::Secrets;
use base::text;
use base::tool::{Action, CallForm, Effects, ToolCall, ToolDefinition, ToolResult};
use host::cancellation::{Cancellation, StopReason};
use host::event_source::EventSource;
use skills::ScriptSettings;
use skills::{Catalogue, Skills, other_clients};

mod arguments;
mod builtin;
mod call_history;
mod consent;
mod diff;
mod edit_file;
mod get_skill;
mod hints;
mod inexact_arguments;
mod list_skills;
mod pages;
mod program;
mod read_daily_note;
mod read_file;
mod read_file_in_skill;
mod registry;
mod remember_fact;
mod run_command;
mod run_python;
mod schema;
mod user_files;
mod write_daily_note;
mod write_file;

pub use arguments::{ArgumentError, Arguments};
pub use builtin::BUILTIN_TOOLS;
pub use builtin::find_builtin;
pub use diff::diff;
pub use get_skill::BASE_DIRECTORY;
pub(crate) use program::runs_language;
pub use {call_history::CallHistory, consent::Consent};

/// The context in which tools run.
#[derive(Clone, Debug)]
pub struct ToolContext<'w> {
    /// The skills.
    pub skills: &'w Skills,
    /// How scripts run; `None`: scripts are disabled.
    pub scripts: Option<&'w ScriptSettings>,
    /// The user's consent to scripts; `None`: consent is not required.
    pub consent: Option<Rc<Consent>>,
    /// The calling conversation: its session's name, or else its id.
    pub source: &'w str,
    /// Files of facts and notes.
    pub storage: &'w Storage,
    /// Secrets to mask in every result.
    pub secrets: &'w Secrets,
    /// Whether the tools for the user's own files and commands work.
    pub user_files: bool,
    /// Whether the model accepts images.
    pub vision: bool,
    /// The model's context window in tokens, if it is known.
    pub window: Option<u64>,
    /// Signals and the deadline of the run.
    pub cancellation: &'w Cancellation,
    /// Event source served while a script runs.
    pub event_source: Option<&'w dyn EventSource>,
    /// The record of earlier calls; the copies of a context share it.
    pub history: Rc<CallHistory>,
}

impl<'w> ToolContext<'w> {
    /// A context without scripts, consent and conversation.
    pub fn of_parts(
        skills: &'w Skills,
        storage: &'w Storage,
        secrets: &'w Secrets,
        cancellation: &'w Cancellation,
    ) -> ToolContext<'w> {
        ToolContext {
            skills,
            scripts: None,
            consent: None,
            source: "",
            storage,
            secrets,
            user_files: true,
            vision: false,
            window: None,
            cancellation,
            event_source: None,
            history: Rc::default(),
        }
    }

    /// The settings of commands and of the user's files; `None`: they may not be used.
    fn user_scripts(&self) -> Option<&'w ScriptSettings> {
        self.scripts.filter(|_| self.user_files)
    }

    /// Whether shell commands may be run.
    fn allows_commands(&self) -> bool {
        self.user_scripts().is_some_and(|scripts| scripts.shell.is_some())
    }
}

/// A tool. Its name, description and schemas must not change.
pub trait Tool {
    /// The name; matches `^[a-z_][a-z0-9_]*$`.
    fn name(&self) -> &str;

    /// The purpose and use of the tool, for the model.
    fn description(&self) -> &str;

    /// JSON Schema of the arguments, an object, for the model. [`Tool::prepare`] decides what is
    /// accepted.
    fn parameters(&self) -> Value;

    /// The forms of calls for a model whose replies are constrained, each with its description and
    /// the JSON Schema of its arguments.
    fn call_forms(&self) -> Vec<(&str, Value)> {
        vec![(self.description(), schema::for_small_models(self.parameters()))]
    }

    /// The title in user interfaces.
    fn title(&self) -> &str {
        self.name()
    }

    /// JSON Schema of the result, an object, if the result is JSON; a failure need not comply.
    fn output(&self) -> Option<Value> {
        None
    }

    /// The possible effects of a call.
    fn effects(&self, context: &ToolContext<'_>) -> Effects {
        let _ = context;
        Effects::UNKNOWN
    }

    /// Reads the arguments of a call, usually into a struct with [`Arguments::parse`].
    ///
    /// # Errors
    ///
    /// The problem with the arguments. The tool does not run, and the model gets the message.
    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError>;
}

/// A call of a tool whose arguments have been read.
pub struct PreparedCall<'t> {
    summary: String,
    run: Box<dyn FnOnce(&ToolContext<'_>) -> ToolResult + 't>,
}

impl<'t> PreparedCall<'t> {
    /// Creates the call. `summary` is the call in one line for the user. Long operations of `run`
    /// must check `context.cancellation`.
    pub fn new(
        summary: impl Into<String>,
        run: impl FnOnce(&ToolContext<'_>) -> ToolResult + 't,
    ) -> PreparedCall<'t> {
        PreparedCall { summary: summary.into(), run: Box::new(run) }
    }
}

/// The tools in a context. The definitions for the model stay the same for the whole
/// conversation, because endpoints cache the start of a prompt.
pub struct Tools<'w> {
    context: ToolContext<'w>,
    definitions: Vec<ToolDefinition>,
    forms: Vec<CallForm>,
    builtin: BuiltinCalls,
    /// Tools of the program that uses the crate.
    custom: Vec<Box<dyn Tool + 'w>>,
}

/// The built-in tools that can be called.
#[derive(Clone, Copy, PartialEq)]
enum BuiltinCalls {
    None,
    /// Those that neither run programs nor touch files of the user.
    WithoutSkill,
    All,
}

impl<'w> Tools<'w> {
    /// Creates an empty set, to which [`Tools::with`] adds tools.
    pub fn new(context: ToolContext<'w>) -> Tools<'w> {
        Tools {
            context,
            definitions: Vec::new(),
            forms: Vec::new(),
            builtin: BuiltinCalls::None,
            custom: Vec::new(),
        }
    }

    /// Creates a set whose built-in tools can all be called, but are not offered to a model.
    pub fn builtin(context: ToolContext<'w>) -> Tools<'w> {
        Tools { builtin: BuiltinCalls::All, ..Tools::new(context) }
    }

    /// Creates a set whose built-in tools can be called by another program; `has_skills`: whether
    /// there are usable skills, without which no program runs and no file of the user is touched.
    pub fn for_client(context: ToolContext<'w>, has_skills: bool) -> Tools<'w> {
        let builtin = if has_skills { BuiltinCalls::All } else { BuiltinCalls::WithoutSkill };
        Tools { builtin, ..Tools::new(context) }
    }

    /// Creates the set for a model: it offers the built-in tools that work in this context, with
    /// the names of these skills.
    pub fn for_model(context: ToolContext<'w>, catalogue: &Catalogue) -> Tools<'w> {
        let names = schema::names_to_offer(catalogue);
        let has_skills = catalogue.usable().next().is_some();
        let mut tools = Tools::for_client(context, has_skills);
        for row in BUILTIN_TOOLS {
            if row.is_for_model(&tools.context, has_skills) {
                let mut parameters = row.tool.parameters();
                // The model chooses a skill here, and has read its name when it uses the others.
                if row.tool.name() == get_skill::GetSkill.name() {
                    schema::add_skill_names(&mut parameters, &names);
                }
                tools.offer(row.tool, parameters);
            }
        }
        tools
    }

    /// The skills of the context.
    pub fn skills(&self) -> &'w Skills {
        self.context.skills
    }

    /// Records whether the system prompt lists all of these skills with whole descriptions.
    pub(crate) fn set_listed(&self, catalogue: &Catalogue, are_all_whole: bool) {
        self.context.history.listed_skills.set(are_all_whole.then(|| catalogue.digest()));
    }

    /// Sets the most bytes of a result. `None`: the context window is unknown.
    pub fn limit_results(&self, bytes: Option<usize>) {
        self.context.history.most_result_bytes.set(bytes);
    }

    /// The definitions of the offered tools.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Whether the tool with this name only reads.
    pub fn is_read_only(&self, name: &str) -> bool {
        self.find(name).is_some_and(|tool| tool.effects(&self.context).is_read_only)
    }

    /// Whether the tool with this name is offered to the model.
    pub fn offers(&self, name: &str) -> bool {
        self.definitions.iter().any(|tool| tool.name == name)
    }

    /// Runs a call; problems with it are reported in the result.
    pub fn call(&self, call: &ToolCall) -> ToolResult {
        self.run(call, self.prepare(call))
    }

    /// Runs a call between its two records, the events before and after it, and counts it.
    /// `around` gets the function that runs the call, and returns the result to record. After a
    /// cancellation, also one by the sink, nothing runs and the call has no result.
    pub fn call_with_events(
        &self,
        call: &ToolCall,
        stats: &mut RunStats,
        sink: &mut EventSink<'_>,
        around: impl FnOnce(Box<dyn FnOnce() -> ToolResult + '_>) -> ToolResult,
    ) -> Result<ToolResult, StopReason> {
        let prepared = self.prepare(call);
        let summary = prepared.as_ref().map_or(&call.arguments, |prepared| &prepared.summary);
        // Masked before shortening, which could leave an unmasked part of a secret.
        let summary = self.context.secrets.mask(summary);
        // The line breaks of a script stay visible.
        let summary = summary.trim().replace('\n', " ⏎ ");
        let summary = &text::one_line(&summary, limits::SUMMARY_CHARS);
        sink(Event::ToolCall { call, summary });
        // A failed write to the log raises a signal: a call that is not logged must not run.
        self.context.cancellation.check()?;
        let start = Instant::now();
        let result = around(Box::new(|| self.run(call, prepared)));
        stats.tool_calls = stats.tool_calls.saturating_add(1);
        if let Some(action) = result.action.clone() {
            stats.actions.add(action);
        }
        sink(Event::ToolResult { call, result: &result, duration: start.elapsed() });
        if let Some(warning) = &result.warning {
            sink(Event::Warning(warning));
        }
        Ok(result)
    }

    fn run(&self, call: &ToolCall, prepared: Result<PreparedCall<'_>, String>) -> ToolResult {
        let call = digest(call);
        let history = &self.context.history;
        let has_failed = history.last_failure.take() == Some(call);
        history.failed_before.set(has_failed);
        history.needed_skill.take();
        let mut result = match prepared {
            Ok(prepared) => (prepared.run)(&self.context),
            Err(message) => ToolResult::failure(message),
        };
        history.shorten(&mut result, self.context.secrets);
        if let Some(Action::ReadSkill(name)) = &result.action {
            self.context.history.recent_skill.replace(Some(name.clone()));
        }
        if !result.ok {
            if has_failed {
                result.content = hints::with_repetition(result.content);
            }
            history.last_failure.set(Some(call));
        }
        self.mask_result(result)
    }

    /// Returns the document of a skill that the user invokes with these arguments, as `get_skill`
    /// would.
    pub fn invoke(&self, skill_name: &str, arguments: &str) -> Result<InvokedSkill, String> {
        get_skill::invoke(&self.context, skill_name, arguments)
    }

    /// Returns the document of a skill that the user gives to the model with a question. Unlike
    /// [`Tools::invoke`] this works with `user-invocable: false`, too.
    pub fn give(&self, skill_name: &str) -> Result<InvokedSkill, String> {
        get_skill::give(&self.context, skill_name)
    }

    /// Sets the skill whose document the conversation has read last.
    pub(crate) fn set_recent_skill(&self, name: Option<String>) {
        self.context.history.recent_skill.replace(name);
    }

    fn mask_result(&self, result: ToolResult) -> ToolResult {
        // Names and descriptions were shortened, so parts of a secret are masked, too.
        let mask = |text: String| match self.context.secrets.mask_shortened(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        };
        ToolResult {
            object: result.object.map(mask),
            document: result.document.map(mask),
            content: mask(result.content),
            summary: mask(result.summary),
            warning: result.warning.map(mask),
            ..result
        }
    }
}

/// A number for the name and the arguments of a call.
fn digest(call: &ToolCall) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&call.name, &call.arguments).hash(&mut hasher);
    hasher.finish()
}

/// A relative path without components that name the same folder.
fn plain_path(path: &str) -> String {
    let names = Path::new(path).components().filter(|name| *name != Component::CurDir);
    names.collect::<PathBuf>().to_string_lossy().into_owned()
}

/// Returns the message for an unknown tool name.
pub fn unknown_tool(name: &str) -> String {
    unknown_tool_among(name, BUILTIN_TOOLS.iter().map(|row| row.tool.name()))
}

/// Returns the message for a name that is not among the available tools.
pub fn unknown_tool_among<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    let shown = text::one_line(name, limits::SUMMARY_CHARS);
    let all = names.clone().collect::<Vec<_>>().join(", ");
    if let Some(advice) = other_clients::advice(name, |tool| names.clone().any(|it| it == tool)) {
        return format!("there is no tool `{shown}` here: {advice}");
    }
    match text::similar_names(name, names, 1).first() {
        _ if all.is_empty() => format!("there is no tool `{shown}`; no tools are available"),
        Some(near) => {
            format!("there is no tool `{shown}`; did you mean `{near}`? The tools are: {all}")
        }
        None => format!("there is no tool `{shown}`; the tools are: {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        assert!(unknown_tool("get_skills").contains("did you mean `get_skill`?"));
        assert!(unknown_tool("fly").contains("the tools are: list_skills, get_skill"));
    }
}
