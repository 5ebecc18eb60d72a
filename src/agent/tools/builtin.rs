//! The built-in tools: what each needs, and where it is offered.

use FormPlace::{First, Later, WithoutCommands};

use crate::tools::{
    Tool, ToolContext, edit_file, get_skill, list_skills, read_daily_note, read_file,
    read_file_in_skill, remember_fact, run_command, run_python, write_daily_note, write_file,
};
use base::limits::{ALL_TOOLS_WINDOW, FILE_TOOLS_WINDOW};
use skills::python::Interpreter;

/// A row of [`BUILTIN_TOOLS`].
pub struct BuiltinTool {
    /// The tool itself.
    pub tool: &'static (dyn Tool + Sync),
    pub needs: ToolNeeds,
    /// The context window from which on it is offered: in a smaller one others do what it does.
    window: u64,
    pub(super) form_place: FormPlace,
}

/// The needs of a tool.
#[derive(Clone, Copy)]
pub enum ToolNeeds {
    /// A skill, of which it only reads.
    Skill,
    /// A skill, and something that runs scripts.
    Interpreter,
    /// A skill, and the user's own files.
    UserFiles,
    /// A skill, the user's own files and a shell.
    Shell,
    /// The file of facts.
    Facts,
    /// The folder of notes.
    Notes,
}

/// Where the forms of a tool's calls stand that a small model is offered.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum FormPlace {
    First,
    Later,
    /// Later, and not where it has commands: it invents the text that `edit_file` replaces, and
    /// `read_file` also reads the files of the skill that was read last.
    WithoutCommands,
}

/// The built-in tools, in the order in which they are offered.
pub static BUILTIN_TOOLS: &[BuiltinTool] = &[
    row(&list_skills::ListSkills, ToolNeeds::Skill, ALL_TOOLS_WINDOW, Later),
    row(&get_skill::GetSkill, ToolNeeds::Skill, 0, First),
    row(&read_file_in_skill::ReadFileInSkill, ToolNeeds::Skill, ALL_TOOLS_WINDOW, WithoutCommands),
    row(&run_python::RunPython, ToolNeeds::Interpreter, 0, Later),
    row(&run_command::RunCommand, ToolNeeds::Shell, 0, First),
    row(&read_file::ReadFile, ToolNeeds::UserFiles, FILE_TOOLS_WINDOW, First),
    row(&write_file::WriteFile, ToolNeeds::UserFiles, FILE_TOOLS_WINDOW, First),
    row(&edit_file::EditFile, ToolNeeds::UserFiles, ALL_TOOLS_WINDOW, WithoutCommands),
    row(&remember_fact::RememberFact, ToolNeeds::Facts, 0, Later),
    row(&write_daily_note::WriteDailyNote, ToolNeeds::Notes, 0, Later),
    row(&read_daily_note::ReadDailyNote, ToolNeeds::Notes, 0, Later),
];

const fn row(
    tool: &'static (dyn Tool + Sync),
    needs: ToolNeeds,
    window: u64,
    form_place: FormPlace,
) -> BuiltinTool {
    BuiltinTool { tool, needs, window, form_place }
}

/// Returns the built-in tool with this name.
pub fn find_builtin(name: &str) -> Option<&'static BuiltinTool> {
    BUILTIN_TOOLS.iter().find(|row| row.tool.name() == name)
}

impl BuiltinTool {
    /// Whether a model is offered the tool; `has_skills`: whether there are usable skills.
    pub(super) fn is_for_model(&self, context: &ToolContext<'_>, has_skills: bool) -> bool {
        let is_for_skills = !matches!(self.needs, ToolNeeds::Facts | ToolNeeds::Notes);
        self.fits(context) && (has_skills || !is_for_skills) && self.needs.are_met(context)
    }

    /// Whether a client is offered the tool. Those that only read skills, and their scripts, are
    /// offered even without a skill: one may be added later.
    pub fn is_for_client(&self, context: &ToolContext<'_>, has_skills: bool) -> bool {
        let is_for_user = matches!(self.needs, ToolNeeds::UserFiles | ToolNeeds::Shell);
        (has_skills || !is_for_user) && self.needs.are_met(context)
    }

    /// Whether the context window has room for the tool.
    fn fits(&self, context: &ToolContext<'_>) -> bool {
        context.window.is_none_or(|window| window >= self.window)
    }
}

impl ToolNeeds {
    /// Whether the tool is there for skills, but could do anything for the user without one.
    pub fn acts_for_skills(self) -> bool {
        matches!(self, ToolNeeds::Interpreter | ToolNeeds::UserFiles | ToolNeeds::Shell)
    }

    /// Whether the context has what the tool needs besides a skill.
    fn are_met(self, context: &ToolContext<'_>) -> bool {
        match self {
            ToolNeeds::Skill => true,
            ToolNeeds::Interpreter => context.scripts.is_some_and(|scripts| {
                Interpreter::without_venv(scripts).is_ok() || context.skills.has_any_venv()
            }),
            ToolNeeds::UserFiles => context.user_scripts().is_some(),
            ToolNeeds::Shell => context.allows_commands(),
            ToolNeeds::Facts => context.storage.facts.is_some(),
            ToolNeeds::Notes => context.storage.notes.is_some(),
        }
    }
}

impl ToolContext<'_> {
    /// The tool that is offered to read files of skills.
    pub(super) fn skill_file_reader(&self) -> &'static str {
        let fits = |name| find_builtin(name).is_some_and(|row| row.fits(self));
        match self.user_scripts() {
            Some(_) if !fits("read_file") => "run_command",
            Some(_) if !fits("read_file_in_skill") => "read_file",
            _ => "read_file_in_skill",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::tools::schema;

    #[test]
    fn every_row_of_the_table_is_well_formed() {
        let mut names: Vec<&str> = BUILTIN_TOOLS.iter().map(|row| row.tool.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BUILTIN_TOOLS.len(), "names are unique");
        for BuiltinTool { tool, .. } in BUILTIN_TOOLS {
            let starts_well = tool.name().starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(starts_well && tool.name().chars().all(is_plain), "{}", tool.name());
            assert!(!tool.description().is_empty());
            let mut schema = tool.parameters();
            assert_eq!(schema::of_arguments(schema.clone()).as_ref(), Ok(&schema));
            let properties = schema["properties"].as_object().unwrap();
            assert!(!properties.is_empty(), "some endpoints refuse empty properties");
            if tool.name() == "get_skill" {
                schema::add_skill_names(&mut schema, &["a"]);
                assert_eq!(schema["properties"]["skill_name"]["enum"], json!(["a"]));
            }
        }
    }

    /// The schema that the model gets and the struct that is read are written separately.
    #[test]
    fn the_arguments_of_a_schema_are_those_of_the_struct() {
        for BuiltinTool { tool, .. } in BUILTIN_TOOLS {
            let schema = tool.parameters();
            let samples =
                schema["properties"].as_object().unwrap().iter().map(|(name, property)| {
                    let choice = &property["enum"][0];
                    let (sample, wrong) = match property["type"].as_str().unwrap() {
                        "string" if choice.is_string() => (choice.clone(), json!("x")),
                        "string" => (json!("x"), json!([])),
                        "integer" => (json!(7), json!("x")),
                        "boolean" => (json!(true), json!("x")),
                        "array" => (json!(["x"]), json!({})),
                        other => panic!("no sample for {other}"),
                    };
                    (name.clone(), sample, wrong)
                });
            let samples: Vec<_> = samples.collect();
            let all = || samples.iter().map(|(name, sample, _)| (name.clone(), sample.clone()));
            let error = |fields: Map<String, Value>| {
                tool.prepare(fields.into()).err().map(|error| error.to_string())
            };
            assert_eq!(error(all().collect()), None, "{}", tool.name());
            let required = schema["required"].as_array();
            for (name, _, wrong) in &samples {
                let is_required = required.is_some_and(|names| names.contains(&json!(name)));
                let missing = is_required.then(|| format!("`{name}` is missing"));
                assert_eq!(error(all().filter(|(other, _)| other != name).collect()), missing);
                let mut fields: Map<String, Value> = all().collect();
                fields.insert(name.clone(), wrong.clone());
                assert!(error(fields).unwrap().starts_with(&format!("`{name}` must be ")));
            }
        }
    }
}
