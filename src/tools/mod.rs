//! The tools a model may call.
//!
//! One table: a new tool is one file and one row. The API, `tool NAME`, the
//! help and the tests read the same table. A failure is a result that the
//! model can mend, never an error that ends the run. Nothing here knows which
//! model asks.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::config::Scripts;
use crate::limits;
use crate::secret::Secrets;
use crate::skills::shim::Shims;
use crate::skills::{Catalogue, Fault, Skills};
use crate::text;
use crate::tool::{ToolCall, ToolDefinition, ToolResult, parse_arguments};
use crate::world::patience::Patience;

mod get_skill;
mod list_skills;
mod read_file;
mod run_python;
mod schema;

pub use run_python::Consent;

// What `fuzz/` feeds: nothing of it is public otherwise.
#[cfg(fuzzing)]
pub use schema::{check as check_arguments, describe as describe_schema};

/// The arguments of a call, checked against the tool's schema.
pub type Arguments = Map<String, Value>;

/// What tools work with.
#[derive(Debug)]
pub struct Workbench<'w> {
    /// The skills.
    pub skills: &'w Skills,
    /// How scripts run; `None`: they do not.
    pub scripts: Option<&'w Scripts>,
    /// What a person has allowed; `None`: everything.
    pub consent: Option<Consent>,
    /// What is behind the `python3` that runs them.
    pub shims: Shims,
    /// The conversation that calls: its session's name, or else its id.
    pub source: &'w str,
    /// What is masked in every result.
    pub secrets: &'w Secrets,
    /// Signals and the deadline of the run.
    pub patience: &'w Patience,
}

/// A tool.
pub trait Tool: Sync {
    /// Matches `^[a-z_][a-z0-9_]*$`.
    fn name(&self) -> &str;

    /// What it does and when to use it, for the model.
    fn description(&self) -> &str;

    /// JSON Schema of the arguments: an object of flat properties. The names
    /// of `skills`, if any, stand in it as an `enum`: advice for the model.
    fn parameters(&self, skills: &[&str]) -> Value;

    /// Whether it can work at all on this bench, and with skills or without.
    fn is_offered(&self, bench: &Workbench<'_>, has_skills: bool) -> bool;

    /// The arguments in one line, for a person.
    fn summary(&self, arguments: &Arguments) -> String;

    /// Does what is asked.
    fn run(&self, arguments: &Arguments, bench: &Workbench<'_>) -> ToolResult;
}

/// Every tool there is.
pub static TABLE: &[&dyn Tool] = &[
    &list_skills::ListSkills,
    &get_skill::GetSkill,
    &read_file::ReadFile,
    &run_python::RunPython,
];

/// The tools on a bench. What the model is offered stays the same for the
/// whole conversation: endpoints cache the beginning of a prompt.
pub struct Tools<'w> {
    bench: Workbench<'w>,
    definitions: Vec<ToolDefinition>,
}

impl<'w> Tools<'w> {
    /// All tools can be called, and none is offered.
    pub fn new(bench: Workbench<'w>) -> Tools<'w> {
        let definitions = Vec::new();
        Tools { bench, definitions }
    }

    /// The model is told of the tools that can work here, and of these skills.
    pub fn offered(bench: Workbench<'w>, catalogue: &Catalogue) -> Tools<'w> {
        let names = schema::names_to_offer(catalogue);
        let cost = schema::cost(&names);
        // The choice is made with get_skill; a skill that the user invoked has
        // been read, and goes on with the other tools.
        let is_whole = schema::is_whole(catalogue);
        let is_advised = |tool: &dyn Tool| is_whole || tool.name() == get_skill::GetSkill.name();
        let mut left = limits::ENUM_BYTES;
        let mut parameters = |tool: &dyn Tool| {
            let plain = tool.parameters(&[]);
            if cost > left || !is_advised(tool) {
                return plain;
            }
            let advised = tool.parameters(&names);
            left -= if advised == plain { 0 } else { cost };
            advised
        };
        let has_skills = catalogue.usable().next().is_some();
        let rows = TABLE.iter();
        let rows = rows.filter(|tool| tool.is_offered(&bench, has_skills));
        let definitions = rows.map(|tool| ToolDefinition {
            name: tool.name().to_string(),
            description: tool.description().to_string(),
            parameters: parameters(*tool),
        });
        let definitions = definitions.collect();
        Tools { bench, definitions }
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
        let line = match (find(&call.name), parse_arguments(&call.arguments)) {
            (Some(tool), Ok(arguments)) => tool.summary(&arguments),
            _ => call.arguments.clone(),
        };
        // Masked first: a cut would leave a part that nobody knows.
        let line = self.bench.secrets.mask(&line);
        text::one_line(&line, limits::SUMMARY_CHARS)
    }

    /// Runs a call. Whatever is wrong with it is told in the result.
    pub fn call(&self, call: &ToolCall) -> ToolResult {
        let result = match prepare(call, self.bench.skills) {
            Ok((tool, arguments)) => tool.run(&arguments, &self.bench),
            Err(message) => ToolResult::failure(message),
        };
        self.masked(result)
    }

    /// What the model reads when a person invokes a skill: its instructions
    /// with these arguments, as `get_skill` gives them.
    pub fn invoke(&self, skill_name: &str, arguments: &str) -> Result<String, Fault> {
        let result = get_skill::invoke(self.bench.skills, skill_name, arguments)?;
        Ok(self.masked(result).content)
    }

    fn masked(&self, result: ToolResult) -> ToolResult {
        // Names and descriptions have been shortened.
        let mask = |text: String| match self.bench.secrets.mask_shortened(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        };
        let (document, _) = result.parts();
        let document = document.map(|text| self.bench.secrets.mask_shortened(text));
        ToolResult {
            document_bytes: document.map(|text| text.len()),
            content: mask(result.content),
            summary: mask(result.summary),
            ..result
        }
    }
}

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    TABLE.iter().copied().find(|tool| tool.name() == name)
}

fn prepare(call: &ToolCall, skills: &Skills) -> Result<(&'static dyn Tool, Arguments), String> {
    let tool = find(&call.name).ok_or_else(|| unknown(&call.name))?;
    let parameters = tool.parameters(&[]);
    // A number is a skill's name only where there is such a skill.
    let is_name = |number: &str| skills.find(number).is_ok();
    let arguments = parse_arguments(&call.arguments)
        .and_then(|arguments| schema::check_name(arguments, &is_name))
        .and_then(|arguments| schema::check(arguments, &parameters))
        .map_err(|fault| {
            format!(
                "the arguments of {} are wrong: {fault}; {}",
                tool.name(),
                schema::describe(&parameters)
            )
        })?;
    Ok((tool, arguments))
}

/// The message for a name that is no tool's.
pub fn unknown(name: &str) -> String {
    let names = || TABLE.iter().map(|tool| tool.name());
    let shown = text::one_line(name, limits::SUMMARY_CHARS);
    let all = names().collect::<Vec<_>>().join(", ");
    match text::nearest(name, names(), 1).first() {
        Some(near) => {
            format!("there is no tool `{shown}`; did you mean `{near}`? The tools are: {all}")
        }
        None => format!("there is no tool `{shown}`; the tools are: {all}"),
    }
}

/// A text argument; empty where it is missing.
fn text_of<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
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
            let starts_well = tool
                .name()
                .starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(
                starts_well && tool.name().chars().all(is_plain),
                "{}",
                tool.name()
            );
            assert!(!tool.description().is_empty());
            let schema = tool.parameters(&["a"]);
            assert_eq!(schema["type"], "object");
            let properties = schema["properties"].as_object().unwrap();
            assert!(
                !properties.is_empty(),
                "some endpoints refuse empty properties"
            );
            let skill = properties.get("skill_name");
            assert!(skill.is_none_or(|skill| skill["enum"] == serde_json::json!(["a"])));
            assert!(!tool.parameters(&[]).to_string().contains("enum"));
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(properties.contains_key(required.as_str().unwrap()));
            }
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        assert!(unknown("get_skills").contains("did you mean `get_skill`?"));
        assert!(unknown("fly").contains("the tools are: list_skills, get_skill"));
    }
}
