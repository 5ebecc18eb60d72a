//! The tools a model may call.
//!
//! One table: a new tool is one file and one row. The API, `tool NAME`, the
//! help and the tests read the same table. A program that uses the crate adds
//! tools of its own ([`Tools::with`]). A failure is a result that the model can
//! mend, never an error that ends the run. Nothing here knows which model asks.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Instant;

use serde_json::{Map, Value};

use crate::config::{Config, ScriptSettings, Storage};
use crate::event::{Event, EventSink};
use crate::limits;
use crate::secret::Secrets;
use crate::skills::interpreter_shim::Shims;
use crate::skills::{Catalogue, SkillError, Skills};
use crate::text;
use crate::tool::{Effects, ToolCall, ToolDefinition, ToolResult, parse_arguments};
use crate::world::cancellation::{Cancellation, StopReason};
use crate::world::event_source::EventSource;

mod get_skill;
mod list_skills;
mod read_file;
mod registry;
mod remember_fact;
mod run_python;
mod schema;
mod write_daily_note;

pub(crate) use run_python::Consent;

pub use schema::{
    advise as advise_names, check as check_arguments, describe as describe_schema,
    validate as validate_schema,
};

/// The arguments of a call, checked against the tool's schema.
pub type Arguments = Map<String, Value>;

/// What tools work with.
#[derive(Clone, Debug)]
pub struct ToolContext<'w> {
    /// The skills.
    pub skills: &'w Skills,
    /// How scripts run; `None`: they do not.
    pub scripts: Option<&'w ScriptSettings>,
    /// What a person has allowed; `None`: everything.
    pub consent: Option<Rc<Consent>>,
    /// What is behind the `python3` that runs them.
    pub shims: Rc<Shims>,
    /// The conversation that calls: its session's name, or else its id.
    pub source: &'w str,
    /// Where facts and notes are kept.
    pub storage: &'w Storage,
    /// What is masked in every result.
    pub secrets: &'w Secrets,
    /// Whether the model is shown pictures.
    pub vision: bool,
    /// Signals and the deadline of the run.
    pub cancellation: &'w Cancellation,
    /// Whoever is served while a script runs.
    pub event_source: Option<&'w dyn EventSource>,
}

impl<'w> ToolContext<'w> {
    /// As configured: scripts run, nobody is asked, no conversation is named.
    pub fn new(
        config: &'w Config,
        skills: &'w Skills,
        cancellation: &'w Cancellation,
    ) -> ToolContext<'w> {
        ToolContext {
            skills,
            scripts: Some(&config.scripts),
            consent: None,
            shims: Rc::default(),
            source: "",
            storage: &config.storage,
            secrets: &config.secrets,
            vision: config.vision,
            cancellation,
            event_source: None,
        }
    }
}

/// A tool. What it says of itself stays the same.
pub trait Tool {
    /// Matches `^[a-z_][a-z0-9_]*$`.
    fn name(&self) -> &str;

    /// What it does and when to use it, for the model.
    fn description(&self) -> &str;

    /// JSON Schema of the arguments: an object. Arguments are checked against
    /// type, required, enum, items, properties and alternatives before the tool
    /// runs; what else it says is for the model.
    fn parameters(&self) -> Value;

    /// Whether it can work at all on this context, and with skills or without.
    fn is_offered(&self, context: &ToolContext<'_>, has_skills: bool) -> bool {
        let _ = (context, has_skills);
        true
    }

    /// The arguments in one line, for a person.
    fn summary(&self, arguments: &Arguments) -> String {
        // A map of strings and values always has a JSON form.
        serde_json::to_string(arguments).unwrap_or_default()
    }

    /// What it is called where people choose it.
    fn title(&self) -> &str {
        self.name()
    }

    /// JSON Schema of what it answers, an object, where that is JSON; a bare
    /// failure need not comply.
    fn output(&self) -> Option<Value> {
        None
    }

    /// What calling it may do.
    fn effects(&self, context: &ToolContext<'_>) -> Effects {
        let _ = context;
        Effects::ANY
    }

    /// Does what is asked. What takes long asks `context.cancellation` whether to go on.
    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> ToolResult;
}

/// Every tool of our own.
pub static TABLE: &[&(dyn Tool + Sync)] = &[
    &list_skills::ListSkills,
    &get_skill::GetSkill,
    &read_file::ReadFile,
    &run_python::RunPython,
    &remember_fact::RememberFact,
    &write_daily_note::WriteDailyNote,
];

/// The tools on a context. What the model is offered stays the same for the
/// whole conversation: endpoints cache the beginning of a prompt.
pub struct Tools<'w> {
    context: ToolContext<'w>,
    definitions: Vec<ToolDefinition>,
    has_skills: bool,
    /// Those of [`TABLE`] can be called.
    has_ours: bool,
    /// Those of the program that uses the crate.
    own: Vec<Box<dyn Tool + 'w>>,
}

impl<'w> Tools<'w> {
    /// No tool at all, until one is added ([`Tools::with`]).
    pub fn new(context: ToolContext<'w>) -> Tools<'w> {
        Tools {
            context,
            definitions: Vec::new(),
            has_skills: false,
            has_ours: false,
            own: Vec::new(),
        }
    }

    /// All of ours can be called, and none is offered: for calls by hand.
    pub fn by_hand(context: ToolContext<'w>) -> Tools<'w> {
        Tools { has_ours: true, ..Tools::new(context) }
    }

    /// The model is told of the tools that can work here, and of these skills.
    pub fn offered(context: ToolContext<'w>, catalogue: &Catalogue) -> Tools<'w> {
        let names = schema::names_to_offer(catalogue);
        let cost = schema::cost(&names);
        // The choice is made with get_skill; a skill that the user invoked has
        // been read, and goes on with the other tools.
        let is_whole = schema::is_whole(catalogue);
        let is_advised = |tool: &dyn Tool| is_whole || tool.name() == get_skill::GetSkill.name();
        let mut left = limits::ENUM_BYTES;
        let mut tools = Tools::by_hand(context);
        tools.has_skills = catalogue.usable().next().is_some();
        for tool in TABLE {
            if !tool.is_offered(&tools.context, tools.has_skills) {
                continue;
            }
            let mut parameters = tool.parameters();
            if cost <= left && is_advised(*tool) && schema::advise(&mut parameters, &names) {
                left -= cost;
            }
            tools.offer(*tool, parameters);
        }
        tools
    }

    fn offer(&mut self, tool: &dyn Tool, parameters: Value) {
        self.definitions.push(ToolDefinition {
            name: tool.name().to_string(),
            description: tool.description().to_string(),
            parameters,
        });
    }

    /// What the model is offered.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Whether the model is offered to run scripts.
    pub fn offers_scripts(&self) -> bool {
        let name = run_python::RunPython.name();
        self.definitions.iter().any(|tool| tool.name == name)
    }

    /// The call in one line, for a person: the tool's arguments.
    pub fn summary(&self, call: &ToolCall) -> String {
        let line = match (self.find(&call.name), parse_arguments(&call.arguments)) {
            (Some(tool), Ok(arguments)) => tool.summary(&arguments),
            _ => call.arguments.clone(),
        };
        // Masked first: a cut would leave a part that nobody knows.
        let line = self.context.secrets.mask(&line);
        text::one_line(&line, limits::SUMMARY_CHARS)
    }

    /// Runs a call. Whatever is wrong with it is told in the result.
    pub fn call(&self, call: &ToolCall) -> ToolResult {
        let result = match self.prepare(call) {
            Ok((tool, arguments)) => tool.run(&arguments, &self.context),
            Err(message) => ToolResult::failure(message),
        };
        self.masked(result)
    }

    /// The same between the events that tell of it. What nobody can write down,
    /// or nobody waits for, does not run.
    pub fn call_told(
        &self,
        call: &ToolCall,
        sink: &mut EventSink<'_>,
    ) -> Result<ToolResult, StopReason> {
        let summary = &self.summary(call);
        sink(Event::ToolCall { call, summary });
        self.context.cancellation.check()?;
        let start = Instant::now();
        let result = self.call(call);
        sink(Event::ToolResult { call, result: &result, duration: start.elapsed() });
        if let Some(warning) = &result.warning {
            sink(Event::Warning(warning));
        }
        Ok(result)
    }

    /// What the model reads when a person invokes a skill: its instructions
    /// with these arguments, as `get_skill` gives them.
    pub fn invoke(&self, skill_name: &str, arguments: &str) -> Result<String, SkillError> {
        let result = get_skill::invoke(self.context.skills, skill_name, arguments)?;
        Ok(self.masked(result).content)
    }

    fn masked(&self, result: ToolResult) -> ToolResult {
        // Names and descriptions have been shortened.
        let mask = |text: String| match self.context.secrets.mask_shortened(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        };
        let (document, _) = result.parts();
        let document = document.map(|text| self.context.secrets.mask_shortened(text));
        ToolResult {
            document_bytes: document.map(|text| text.len()),
            content: mask(result.content),
            summary: mask(result.summary),
            warning: result.warning.map(mask),
            ..result
        }
    }
}

/// The tool of our own with this name.
pub(crate) fn find(name: &str) -> Option<&'static dyn Tool> {
    let tool = TABLE.iter().copied().find(|tool| tool.name() == name)?;
    Some(tool)
}

/// The message for a name that is no tool's.
pub(crate) fn unknown(name: &str) -> String {
    not_among(name, TABLE.iter().map(|tool| tool.name()))
}

/// The same where only some can be called.
pub(crate) fn not_among<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    let shown = text::one_line(name, limits::SUMMARY_CHARS);
    let all = names.clone().collect::<Vec<_>>().join(", ");
    match text::nearest(name, names, 1).first() {
        Some(near) => {
            format!("there is no tool `{shown}`; did you mean `{near}`? The tools are: {all}")
        }
        None => format!("there is no tool `{shown}`; the tools are: {all}"),
    }
}

/// A text argument; empty where it is missing.
fn text_of<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-REG-1.
    #[test]
    fn every_row_of_the_table_is_well_formed() {
        let mut names: Vec<&str> = TABLE.iter().map(|tool| tool.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len(), "names are unique");
        for tool in TABLE {
            let starts_well = tool.name().starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(starts_well && tool.name().chars().all(is_plain), "{}", tool.name());
            assert!(!tool.description().is_empty());
            let mut schema = tool.parameters();
            assert_eq!(schema::validate(&schema), Ok(()));
            assert!(!schema.to_string().contains("enum"));
            let properties = schema["properties"].as_object().unwrap();
            assert!(!properties.is_empty(), "some endpoints refuse empty properties");
            let has_skill = properties.contains_key("skill_name");
            assert_eq!(schema::advise(&mut schema, &["a"]), has_skill);
            let advised = &schema["properties"]["skill_name"]["enum"];
            assert!(!has_skill || *advised == serde_json::json!(["a"]));
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        assert!(unknown("get_skills").contains("did you mean `get_skill`?"));
        assert!(unknown("fly").contains("the tools are: list_skills, get_skill"));
    }
}
