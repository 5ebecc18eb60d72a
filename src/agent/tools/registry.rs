//! Looking up a tool by its name, and those that a program adds to the built-in ones.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::tools::builtin::FormPlace;
use crate::tools::{
    ArgumentError, BuiltinCalls, PreparedCall, Tool, Tools, find_builtin, inexact_arguments,
    schema, unknown_tool_among,
};
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text;
use base::tool::{CallForm, ToolCall, ToolDefinition, ToolResult, parse_arguments};
use skills::other_clients;

/// Prefixes of tool names in the formats of some models, with `_` for all other characters.
const PREFIXES: [&str; 3] = ["functions_", "tools_", "default_api_"];

impl<'w> Tools<'w> {
    /// Adds a tool and offers it to the model.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`] if the name does not match `^[a-z_][a-z0-9_]*$`, is longer than
    /// [`limits::TOOL_NAME_CHARS`] or is in use, if the description is empty, or if the schema is
    /// invalid.
    pub fn with(mut self, tool: Box<dyn Tool + 'w>) -> Result<Tools<'w>> {
        let parameters = self.check_tool(&*tool).map_err(|cause| {
            let name = text::one_line(tool.name(), limits::SUMMARY_CHARS);
            Error::new(ErrorKind::Usage, format!("failed to add the tool `{name}`: {cause}"))
        })?;
        self.offer(&*tool, parameters);
        self.custom.push(tool);
        Ok(self)
    }

    /// Returns the tool's schema, or why the tool cannot be added.
    fn check_tool(&self, tool: &dyn Tool) -> std::result::Result<Value, String> {
        let name = tool.name();
        let is_first = |c: char| c.is_ascii_lowercase() || c == '_';
        let is_next = |c: char| is_first(c) || c.is_ascii_digit();
        if !name.starts_with(is_first) || !name.chars().all(is_next) {
            return Err(
                "a name consists of a to z, 0 to 9 and _, and does not start with a digit".into()
            );
        }
        if name.len() > limits::TOOL_NAME_CHARS {
            let most = limits::TOOL_NAME_CHARS;
            return Err(format!("a name has at most {most} characters"));
        }
        if self.find(name).is_some() || find_builtin(name).is_some() {
            return Err("a tool of this name exists".into());
        }
        if tool.description().trim().is_empty() {
            return Err("its description is empty".into());
        }
        schema::of_arguments(tool.parameters())
            .map_err(|error| format!("its schema is wrong: {error}"))
    }

    /// Offers a tool with these arguments to a model.
    pub(super) fn offer(&mut self, tool: &dyn Tool, parameters: Value) {
        let forms = tool.call_forms().into_iter().map(|(description, parameters)| CallForm {
            tool: tool.name().to_string(),
            description: description.to_string(),
            parameters,
        });
        self.forms.extend(forms);
        self.definitions.push(ToolDefinition {
            name: tool.name().to_string(),
            description: tool.description().to_string(),
            parameters,
        });
    }

    /// The forms of calls, for the system message of a model whose replies are constrained.
    pub fn call_forms(&self) -> Vec<CallForm> {
        let are_listed = self.context.history.listed_skills.get().is_some();
        let is_needed = |form: &&CallForm| form.tool != "list_skills" || !are_listed;
        let mut forms: Vec<CallForm> = self.forms.iter().filter(is_needed).cloned().collect();
        let place = |form: &CallForm| {
            find_builtin(&form.tool).map_or(FormPlace::Later, |row| row.form_place)
        };
        if self.offers("run_command") {
            forms.retain(|form| place(form) != FormPlace::WithoutCommands);
        }
        // Small models prefer what stands first.
        forms.sort_by_key(|form| place(form) != FormPlace::First);
        forms
    }

    /// Returns the tool with this name.
    pub(super) fn find(&self, name: &str) -> Option<&dyn Tool> {
        let own = self.custom.iter().find(|tool| tool.name() == name);
        let ours = || find_builtin(name).filter(|_| self.builtin != BuiltinCalls::None);
        own.map(|tool| &**tool as &dyn Tool).or_else(|| ours().map(|row| row.tool as &dyn Tool))
    }

    /// Reads the arguments of a call, or returns the message for the model about the problem.
    pub(super) fn prepare(&self, call: &ToolCall) -> std::result::Result<PreparedCall<'_>, String> {
        let (tool, mut meant) = match self.find(&call.name) {
            Some(tool) => (tool, Meant::default()),
            None => {
                let tool = self.find_meant(&call.name);
                let tool = tool.ok_or_else(|| self.unknown_tool(&call.name))?;
                (tool, Meant { tool: Some(tool.name().to_string()), skill: None })
            }
        };
        let row = find_builtin(tool.name());
        let is_without = self.builtin == BuiltinCalls::WithoutSkill;
        if is_without && row.is_some_and(|row| row.needs.acts_for_skills()) {
            return Err(format!(
                "{} works only where there is a skill: answer without it",
                tool.name()
            ));
        }
        let schema = tool.parameters();
        let mut prepare = |mut fields: Map<String, Value>| {
            if row.is_some() {
                fields = inexact_arguments::correct(fields, &schema)?;
                self.check_required(&fields, &schema)?;
                meant.skill = self.correct_skill_name(&mut fields);
            }
            tool.prepare(fields.into())
        };
        let prepared = parse_arguments(&call.arguments)
            .and_then(|fields| prepare(fields).map_err(|error: ArgumentError| error.to_string()))
            .map_err(|error| format!("the arguments of {} are wrong: {error}", tool.name()))?;
        if meant == Meant::default() {
            return Ok(prepared);
        }
        let PreparedCall { summary, run } = prepared;
        let is_json = tool.output().is_some();
        Ok(PreparedCall::new(summary, move |context| meant.add_note(run(context), is_json)))
    }

    /// Reports all required arguments that are missing, with the skills to choose from.
    fn check_required(
        &self,
        fields: &Map<String, Value>,
        schema: &Value,
    ) -> std::result::Result<(), ArgumentError> {
        let required = schema["required"].as_array().into_iter().flatten();
        let names = required.filter_map(Value::as_str);
        let missing: Vec<&str> = names.filter(|name| !fields.contains_key(*name)).collect();
        let verb = match missing[..] {
            [] => return Ok(()),
            [_] => "is",
            _ => "are",
        };
        let mut problem = format!("`{}` {verb} missing", missing.join("`, `"));
        if missing.contains(&schema::SKILL_NAME) {
            let catalogue = self.context.skills.catalogue();
            problem.push_str(&match &schema::names_to_offer(&catalogue)[..] {
                [] => "; list_skills lists the skills".to_string(),
                names => format!("; the skills are: {}", names.join(", ")),
            });
        }
        Err(ArgumentError::new("", problem))
    }

    /// Returns the offered tool whose name differs only in a prefix, letter case or `-` for `_`.
    fn find_meant(&self, name: &str) -> Option<&dyn Tool> {
        // The model's reply was read with `-` for every character that names must not have.
        let name = name.to_ascii_lowercase().replace(['-', '.'], "_");
        let own = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
        let of_server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let own = own.or(of_server.map(|(_, own)| own)).unwrap_or(&name);
        self.find(own).filter(|_| self.offers(own))
    }

    /// The names in a text that are those of skills or of tools of other clients, as tools without
    /// arguments.
    pub(crate) fn foreign_tools(&self, text: &str) -> Vec<ToolDefinition> {
        let catalogue = self.context.skills.catalogue();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_foreign = |name: &&str| {
            other_clients::advice(name, |_| true).is_some() || catalogue.find(name).is_ok()
        };
        let text = &text[..text.floor_char_boundary(limits::HELD_TEXT_BYTES)];
        let names = text.split(|c| !is_part(c)).filter(is_foreign);
        let tool = |name: &str| ToolDefinition {
            name: name.to_string(),
            description: String::new(),
            parameters: Value::Null,
        };
        names.take(limits::QUOTED_NAMES).map(tool).collect()
    }

    /// Returns the message for a name that no tool has.
    pub fn unknown_tool(&self, name: &str) -> String {
        let offered = self.definitions.iter().map(|tool| tool.name.as_str());
        let can_read = offered.clone().any(|tool| tool == "get_skill");
        let catalogue = self.context.skills.catalogue();
        match catalogue.find_meant(name).filter(|_| can_read) {
            Some(skill) => {
                let skill = skill.display_name();
                format!(
                    "`{skill}` is a skill, not a tool: read it with `get_skill`, skill_name `{skill}`"
                )
            }
            None => unknown_tool_among(name, offered),
        }
    }

    /// Replaces the name of a skill that is not exact by that of the skill that it means, and
    /// returns this.
    fn correct_skill_name(&self, fields: &mut Map<String, Value>) -> Option<String> {
        let name = fields.get_mut("skill_name")?;
        let skills = self.context.skills;
        let given = name.as_str().filter(|given| skills.open_any(given).is_err())?;
        let catalogue = skills.catalogue();
        let skill = catalogue.find_meant(given).filter(|skill| skill.name != given)?;
        *name = skill.name.as_str().into();
        Some(skill.display_name().into_owned())
    }

    /// Records the facts in the system prompt.
    pub(crate) fn set_facts(&self, facts: &str) {
        self.context.history.facts.replace(facts.to_string());
    }

    /// The facts in the system prompt.
    pub fn facts(&self) -> std::cell::Ref<'_, String> {
        self.context.history.facts.borrow()
    }

    /// Whether the tool with this name only writes what the model gives it.
    pub(crate) fn writes_text(&self, name: &str) -> bool {
        let effects = self.find(name).map(|tool| tool.effects(&self.context));
        effects.is_some_and(|effects| !effects.is_read_only && !effects.starts_programs)
    }

    /// Returns the offered tools as a Markdown list for a prompt, each with its arguments.
    pub fn markdown(&self) -> String {
        let line = |text: &str| text::one_line(text, limits::LINE_BYTES);
        let mut list = String::new();
        for tool in &self.definitions {
            let _ = writeln!(list, "- `{}`: {}", tool.name, line(&tool.description));
            for argument in schema::arguments(&tool.parameters) {
                let _ = write!(list, "  - `{}` ({})", line(argument.name), argument.kind);
                match argument.description {
                    Some(about) => list.push_str(&format!(": {}\n", line(about))),
                    None => list.push('\n'),
                }
            }
        }
        list
    }
}

/// The meanings of inexact names.
#[derive(Default, PartialEq)]
struct Meant {
    tool: Option<String>,
    skill: Option<String>,
}

impl Meant {
    /// Adds what was meant to a result, which is JSON or text.
    fn add_note(&self, mut result: ToolResult, is_json: bool) -> ToolResult {
        let what = [("tool", &self.tool), ("skill", &self.skill)].into_iter();
        let what =
            what.filter_map(|(kind, name)| Some(format!("the {kind} is `{}`", name.as_ref()?)));
        let note = what.collect::<Vec<_>>().join(", ");
        let is_object = result.object.is_none() && (is_json || !result.ok);
        let object = serde_json::from_str(&result.content).ok().filter(|_| is_object);
        if let Some(Value::Object(mut fields)) = object {
            fields.insert("note".into(), note.into());
            result.content = Value::Object(fields).to_string();
            return result;
        }
        if result.document.is_some() {
            result.content.push_str(&format!("\n[{note}]\n"));
            return result;
        }
        result.with_note(Some(&note))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;
    use crate::memory::Storage;
    use crate::tools::{Arguments, ToolContext};
    use base::secret::{Secret, Secrets};
    use host::cancellation::Cancellation;
    use skills::Skills;

    /// Records the arguments of its calls.
    struct CustomTool<'o> {
        name: &'static str,
        description: &'static str,
        parameters: Value,
        calls: &'o RefCell<Vec<Value>>,
    }

    #[derive(Deserialize, Serialize)]
    struct CustomArguments {
        how: Die,
        sides: Option<u32>,
    }

    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Die {
        Fair,
        Loaded,
    }

    impl Tool for CustomTool<'_> {
        fn name(&self) -> &str {
            self.name
        }

        fn description(&self) -> &str {
            self.description
        }

        fn parameters(&self) -> Value {
            self.parameters.clone()
        }

        fn prepare(
            &self,
            arguments: Arguments,
        ) -> std::result::Result<PreparedCall<'_>, ArgumentError> {
            let arguments: CustomArguments = arguments.parse()?;
            Ok(PreparedCall::new("a die", move |_| {
                self.calls.borrow_mut().push(json!(arguments));
                ToolResult::success("done", "done")
            }))
        }
    }

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.extend(Secret::new("canary-1"));
        secrets
    }

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall { name: name.into(), arguments: arguments.into(), ..ToolCall::default() }
    }

    #[test]
    fn an_invalid_tool_is_refused_with_its_name_and_the_reason() {
        let (secrets, skills) = (secrets(), Skills::new(Vec::new()));
        let storage = Storage::default();
        let (cancellation, calls) = (Cancellation::never(), RefCell::default());
        let add = |name, description, parameters| {
            let tool = |name, description, parameters| {
                let calls = &calls;
                Box::new(CustomTool { name, description, parameters, calls })
            };
            let good = json!({"type": "object", "properties": {}});
            let tools =
                Tools::new(ToolContext::of_parts(&skills, &storage, &secrets, &cancellation));
            let tools = tools.with(tool("taken", "d", good)).unwrap();
            let error = tools.with(tool(name, description, parameters)).err()?;
            assert_eq!(error.kind(), ErrorKind::Usage);
            Some(error.message().to_string())
        };
        let good = || json!({"type": "object", "properties": {}});
        let long = Box::leak("x".repeat(limits::TOOL_NAME_CHARS + 1).into_boxed_str());
        let name_rule = "a name consists of a to z, 0 to 9 and _, and does not start with a digit";
        let table = [
            ("", "d", good(), name_rule),
            ("Roll", "d", good(), name_rule),
            ("1st", "d", good(), name_rule),
            ("a-b", "d", good(), name_rule),
            ("würfel", "d", good(), name_rule),
            (long, "d", good(), "a name has at most 64 characters"),
            ("taken", "d", good(), "a tool of this name exists"),
            ("get_skill", "d", good(), "a tool of this name exists"),
            ("roll", " \n", good(), "its description is empty"),
            (
                "roll",
                "d",
                json!({"type": "string"}),
                "its schema is wrong: `type` is not \"object\"",
            ),
        ];
        for (name, description, parameters, cause) in table {
            let expected = format!("failed to add the tool `{name}`: {cause}");
            assert_eq!(add(name, description, parameters), Some(expected));
        }
        for name in ["_", "roll_2", &long[1..]] {
            assert_eq!(add(Box::leak(name.into()), "d", good()), None);
        }
    }

    #[test]
    fn an_added_tool_is_offered_listed_and_called_like_the_built_in_ones() {
        let (secrets, skills) = (secrets(), Skills::new(Vec::new()));
        let storage = Storage::default();
        let (cancellation, calls) = (Cancellation::never(), RefCell::default());
        let tools = Tools::new(ToolContext::of_parts(&skills, &storage, &secrets, &cancellation));
        let parameters = json!({
            "type": "object",
            "properties": {
                "how": {"type": "string", "enum": ["fair", "loaded"], "description": "Which\ndie."},
                "sides": {"type": ["integer", "null"]},
            },
            "required": ["how"],
        });
        let own =
            CustomTool { name: "roll", description: "Rolls a die.", parameters, calls: &calls };
        let tools = tools.with(Box::new(own)).unwrap();
        assert_eq!(tools.definitions()[0].name, "roll");
        assert_eq!(
            tools.markdown(),
            "- `roll`: Rolls a die.\n  - `how` (string): Which die.\n  - `sides` (integer or null, optional)\n"
        );
        let wrong = tools.call(&call("roll", r#"{"how": "odd"}"#));
        assert!(!wrong.ok && calls.borrow().is_empty());
        let message =
            r#"the arguments of roll are wrong: `how` must be one of "fair", "loaded", not "odd""#;
        assert_eq!(wrong.content, json!({ "error": message }).to_string());
        let good = call("roll", r#"{"how": "fair", "sides": "6"}"#);
        assert!(tools.call(&good).ok);
        assert_eq!(*calls.borrow(), [json!({"how": "fair", "sides": 6})]);
        let unknown = tools.call(&call("rol", "{}")).content;
        assert!(unknown.contains("did you mean `roll`? The tools are: roll\"}"), "{unknown}");
    }
}
