//! JSON Schemas of tools' arguments: what a model and the message about wrong arguments show.
//! Arguments are not checked against a schema: see `arguments`.

use std::slice;

use serde_json::{Value, json};

use crate::tools::hints::call_to_run;
use crate::tools::program::is_script;
use crate::tools::{ToolContext, Tools};
use base::limits;
use base::text;
use base::tool::CallForm;
use skills::ScriptSettings;
use skills::{Catalogue, Skill, evals, split_words};

/// The name of the argument that names a skill.
pub(super) const SKILL_NAME: &str = "skill_name";

/// Returns the schema with the fields that endpoints require, or why it is not the schema of an
/// object.
pub(super) fn of_arguments(mut schema: Value) -> Result<Value, &'static str> {
    let fields = schema.as_object_mut().ok_or("it is not an object")?;
    if fields.entry("type").or_insert("object".into()) != "object" {
        return Err("`type` is not \"object\"");
    }
    let properties = fields.entry("properties").or_insert(json!({})).as_object();
    if !properties.ok_or("`properties` is not an object")?.values().all(Value::is_object) {
        return Err("one of its `properties` is not an object");
    }
    Ok(schema)
}

/// Adds these names as an `enum` to the argument that names a skill. A call with another name is
/// not refused.
pub(super) fn add_skill_names(schema: &mut Value, skills: &[&str]) {
    if !skills.is_empty() {
        schema["properties"][SKILL_NAME]["enum"] = json!(skills);
    }
}

/// Returns the names to offer as an `enum`: those of all skills, if they are few. Some servers
/// allow a model only these values, so there are none if the user alone may invoke one of the
/// skills.
pub(super) fn names_to_offer(catalogue: &Catalogue) -> Vec<&str> {
    let names: Vec<&str> = catalogue.usable().map(|skill| skill.name.as_str()).collect();
    let bytes: usize = names.iter().map(|name| name.len() + r#""","#.len()).sum();
    let is_complete = catalogue.usable().all(|skill| skill.is_for_model);
    if is_complete && bytes <= limits::ENUM_BYTES { names } else { Vec::new() }
}

/// Optional arguments that a small model is offered, too: without them it could not go on.
const NEEDED_OPTIONS: [&str; 2] = ["offset", "all"];

/// The schema with fewer optional arguments: a small model fills in all that it is offered.
pub(super) fn for_small_models(mut schema: Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    if let Some(properties) = schema["properties"].as_object_mut() {
        let is_required = |name: &String| required.iter().any(|it| it == name.as_str());
        properties.retain(|name, _| is_required(name) || NEEDED_OPTIONS.contains(&&**name));
    }
    schema
}

/// Arguments of tools that may be empty text.
const MAY_BE_EMPTY: [&str; 2] = ["content", "new"];

impl Tools<'_> {
    /// The forms that the next reply may have. A skill is read before its files are used, and only
    /// once; one that was taken for a program is read next, and then its scripts are used. `read`
    /// are the names of those whose documents the conversation has. `left_out` is a tool whose last
    /// result was known.
    pub fn allowed_forms(&self, read: &[String], left_out: Option<&str>) -> Vec<CallForm> {
        let needed = self.context.history.needed_skill.borrow();
        let mut forms = self.call_forms();
        forms.retain(|form| left_out != Some(&*form.tool));
        if let Some(name) = needed.as_ref().filter(|name| !read.contains(name)) {
            forms.retain(|form| form.tool == "get_skill");
            for form in &mut forms {
                add_skill_names(&mut form.parameters, &[name]);
            }
            return forms;
        }
        let runs_file = |form: &&CallForm| form.parameters["properties"].get("file_path").is_some();
        let file_form = forms.iter().find(|it| it.tool == "run_python_script" && runs_file(it));
        let mut allowed = match (needed.as_ref(), file_form) {
            (Some(name), Some(form)) => self.restricted_forms(form, slice::from_ref(name)),
            _ => Vec::new(),
        };
        if allowed.is_empty() {
            let restricted = forms.iter().flat_map(|form| self.restricted_forms(form, read));
            allowed = restricted.collect();
        }
        for form in &mut allowed {
            require_text(&mut form.parameters);
        }
        allowed
    }

    /// Whether a tool starts programs.
    pub fn starts_programs(&self, name: &str) -> bool {
        self.find(name).is_some_and(|tool| tool.effects(&self.context).starts_programs)
    }

    /// A form with the skills that it may name; none if it needs one and there is none.
    fn restricted_forms(&self, form: &CallForm, read: &[String]) -> Vec<CallForm> {
        let with = |names: &[&str], paths: Vec<String>| {
            let mut form = form.clone();
            let properties = &mut form.parameters["properties"];
            properties[SKILL_NAME]["enum"] = json!(names);
            if !paths.is_empty() {
                properties["file_path"]["enum"] = json!(paths);
            }
            form
        };
        let names: Vec<&str> = read.iter().map(String::as_str).collect();
        let properties = &form.parameters["properties"];
        let is_required = (form.parameters["required"].as_array())
            .is_some_and(|required| required.iter().any(|name| name == SKILL_NAME));
        if properties.get(SKILL_NAME).is_none() {
            return vec![form.clone()];
        }
        if form.tool == "get_skill" {
            let catalogue = self.skills().catalogue();
            let offered = catalogue.usable().filter(|skill| skill.is_for_model);
            let offered = offered.map(|skill| skill.name.as_str());
            let offered: Vec<&str> = offered.filter(|name| !names.contains(name)).collect();
            return match offered.len() {
                0 => Vec::new(),
                1..=limits::OFFERED_SKILLS => vec![with(&offered, Vec::new())],
                _ => vec![form.clone()],
            };
        }
        if names.is_empty() && is_required {
            return Vec::new();
        }
        if names.is_empty() {
            let mut form = form.clone();
            if let Some(properties) = form.parameters["properties"].as_object_mut() {
                properties.remove(SKILL_NAME);
            }
            return vec![form];
        }
        if form.tool != "run_python_script" || !is_required {
            return vec![with(&names, Vec::new())];
        }
        let mut forms = Vec::new();
        for name in names {
            let Ok(skill) = self.skills().open(name) else { continue };
            let mut scripts = script_paths(&skill);
            if scripts.is_empty() {
                continue;
            }
            scripts.truncate(if scripts.len() > limits::OFFERED_SCRIPTS {
                0
            } else {
                scripts.len()
            });
            forms.push(with(&[name], scripts));
        }
        forms
    }
}

/// A skill whose name stands in the place of a program.
pub(super) struct NamedSkill {
    pub name: String,
    /// The scripts that its document names.
    pub scripts: Vec<String>,
    /// The words behind the name.
    pub args: Vec<String>,
    /// Whether it is the skill that was read last.
    pub is_read: bool,
}

/// Whether a skill has this name, and the model may read it.
pub(super) fn is_offered_skill(name: &str, context: &ToolContext<'_>) -> bool {
    let catalogue = context.skills.catalogue();
    catalogue.usable().any(|skill| skill.name == name && skill.is_for_model)
}

/// The skill whose name stands in the place of a program, such as in `calculator 2 + 2`.
pub(super) fn named_skill(line: &str, context: &ToolContext<'_>) -> Option<NamedSkill> {
    let words = split_words(line.trim(), limits::SCRIPT_ARGUMENTS_BYTES);
    let (name, args) = words.split_first().filter(|_| !line.trim().contains('\n'))?;
    let is_word = |word: &String| word.starts_with(|c: char| c.is_alphanumeric() || c == '-');
    let is_users = |it: &ScriptSettings| it.user_folder.join(name).exists();
    // The name may be that of a variable, before an operator.
    if args.first().is_some_and(|word| !is_word(word)) || context.scripts.is_some_and(is_users) {
        return None;
    }
    // As a file of its name, too: `status_report.py`.
    let name = name.trim_end_matches(".py").replace('_', "-");
    let skill = context.skills.open(&name).ok().filter(|_| is_offered_skill(&name, context))?;
    let is_read = context.history.recent_skill.borrow().as_ref() == Some(&name);
    let text = skill.read_document().map(|document| document.text).unwrap_or_default();
    let mut scripts = script_paths(&skill);
    scripts.retain(|path| text.contains(path.as_str()));
    Some(NamedSkill { name, scripts, args: args.to_vec(), is_read })
}

/// The call that is meant where a part of a user's path has the name of a skill, such as in
/// `brand/logo.png`, or where one skill's description has the name of the file.
pub(super) fn call_of_skill_in_path(path: &str, context: &ToolContext<'_>) -> Option<String> {
    let recent = context.history.recent_skill.borrow();
    let parts = path.split('/').map(|part| part.split('.').next().unwrap_or_default());
    let mut names = parts.filter(|name| !name.is_empty() && recent.as_deref() != Some(name));
    if let Some(name) = names.find(|name| is_offered_skill(name, context)) {
        return Some(call_of_skill(name, "", context));
    }
    let file = path.rsplit('/').next().unwrap_or_default();
    let stem = file.split('.').next().filter(|stem| stem.len() > 3)?.to_lowercase();
    let catalogue = context.skills.catalogue();
    let mut describing = catalogue.usable().filter(|skill| {
        let description = skill.description.to_lowercase();
        let mut words = description.split(|c: char| !c.is_alphanumeric());
        skill.is_for_model && words.any(|word| word == stem)
    });
    let skill = describing.next().filter(|_| describing.next().is_none())?;
    let is_new = Some(&*skill.name) != recent.as_deref();
    is_new.then(|| call_of_skill(&skill.name, &format!(" about {stem}"), context))
}

/// The call that reads a skill, which a small model must make next. `what`: what it is not.
pub(super) fn call_of_skill(name: &str, what: &str, context: &ToolContext<'_>) -> String {
    context.history.needed_skill.replace(Some(name.to_string()));
    format!("{name} is a skill{what}: get_skill {}", json!({ SKILL_NAME: name }))
}

/// The call that runs a script which one skill alone has.
pub(super) fn call_of_script(
    path: &str,
    args: &[String],
    context: &ToolContext<'_>,
) -> Option<String> {
    let catalogue = context.skills.catalogue();
    let skills = catalogue.usable().filter_map(|skill| context.skills.open(&skill.name).ok());
    let mut having = skills.filter(|skill| skill.open_readable(path).is_ok());
    let skill = having.next().filter(|_| having.next().is_none())?;
    let call = call_to_run(&skill.name, path, args);
    Some(format!("`{path}` is a file of the skill {}: use {call}", skill.name))
}

/// Requires that required text is not empty, where it may not be.
fn require_text(parameters: &mut Value) {
    let required = parameters["required"].as_array().cloned().unwrap_or_default();
    let names = required.iter().filter_map(Value::as_str);
    for name in names.filter(|name| !MAY_BE_EMPTY.contains(name)) {
        let property = &mut parameters["properties"][name];
        if property["type"] == "string" && property.get("enum").is_none() {
            property["minLength"] = 1.into();
        }
    }
}

/// The paths of a skill's scripts.
pub(super) fn script_paths(skill: &Skill) -> Vec<String> {
    let files = skill.all_files().files;
    let scripts = files.iter().filter(|path| !path.starts_with(evals::FOLDER) && is_script(path));
    scripts.filter_map(|path| path.to_str().map(str::to_string)).collect()
}

/// An argument, as a schema describes it.
pub(super) struct SchemaArgument<'s> {
    pub name: &'s str,
    /// Its type, and whether it is optional: `string, optional`.
    pub kind: String,
    pub description: Option<&'s str>,
}

/// Returns the arguments of a schema.
pub(super) fn arguments(schema: &Value) -> impl Iterator<Item = SchemaArgument<'_>> {
    let required = schema["required"].as_array();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(move |(name, property)| {
        let kind = match &property["type"] {
            Value::String(one) => one.clone(),
            Value::Array(several) => {
                several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            _ => "any value".into(),
        };
        let kind = text::one_line(&kind, limits::SUMMARY_CHARS);
        let is_required = required.is_some_and(|names| names.iter().any(|it| it == name.as_str()));
        SchemaArgument {
            name,
            kind: if is_required { kind } else { format!("{kind}, optional") },
            description: property["description"].as_str(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_that_of_an_object() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [json!({}), json!({"type": "object"}), json!({"properties": {}})] {
            assert_eq!(of_arguments(schema), Ok(empty.clone()));
        }
        for (schema, error) in [
            (json!([]), "it is not an object"),
            (json!({"type": "string"}), "`type` is not \"object\""),
            (json!({"properties": []}), "`properties` is not an object"),
            (json!({"properties": {"a": "string"}}), "one of its `properties` is not an object"),
        ] {
            assert_eq!(of_arguments(schema), Err(error));
        }
    }
}
