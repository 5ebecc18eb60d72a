//! `list_skills`: lists the skills from which a model chooses.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};
use base::limits;
use base::text::{self, counted};
use base::tool::{Effects, ToolResult};
use skills::ranking::Ranking;
use skills::{Catalogue, Problem, Rule, SkillSummary};

#[derive(Deserialize)]
struct ListSkillsArguments {
    #[serde(default)]
    query: String,
}

/// The tool `list_skills`.
pub(super) struct ListSkills;

impl Tool for ListSkills {
    fn name(&self) -> &'static str {
        "list_skills"
    }

    fn description(&self) -> &'static str {
        "List the skills; with `query`, those that fit it best."
    }

    fn title(&self) -> &'static str {
        "List skills"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"query": {"type": "string"}},
        })
    }

    fn output(&self) -> Option<Value> {
        Some(json!({
            "type": "object",
            "properties": {
                "skills": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "description": {"type": "string"},
                        },
                        "required": ["name", "description"],
                    },
                },
                "note": {"type": "string"},
            },
            "required": ["skills"],
        }))
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        Effects::READ_ONLY
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let ListSkillsArguments { query } = arguments.parse()?;
        Ok(PreparedCall::new(query.clone(), move |context| list(&query, context)))
    }
}

/// Advice if no skill fits.
const NOT_FOUND: &str = "; if other or English words find none either, do without one, or say so";

/// Lists the skills that fit a query best, or all.
fn list(query: &str, context: &ToolContext<'_>) -> ToolResult {
    let catalogue = context.skills.catalogue();
    let offered = catalogue.skills.iter().filter(|skill| skill.is_offered && skill.is_for_model);
    let offered: Vec<&SkillSummary> = offered.collect();
    let is_searched = |skill: &&SkillSummary| skill.error_rule != Rule::NotLocked;
    let searched: Vec<&SkillSummary> = offered.iter().copied().filter(is_searched).collect();
    match Ranking::new(context.skills, &searched, query) {
        Some(ranking) => {
            let found = ranking.found();
            let mut note = ranking.note(&searched);
            if found.is_empty() {
                note.push_str(NOT_FOUND);
            }
            let rows = rows(
                context.history.text_bytes(limits::LIST_BYTES),
                found.iter().map(|skill| {
                    let most = limits::FOUND_DESCRIPTION_BYTES;
                    let description = Some(text::first_sentences(&skill.description, most));
                    SkillRow { description, ..SkillRow::new(skill) }
                }),
            );
            result(&rows, Some(notes([note], &catalogue)), found.len())
        }
        None if context.history.lists_all(&catalogue) => {
            let note = "your system message has the whole descriptions of all these skills";
            let names =
                offered.iter().map(|skill| SkillRow { description: None, ..SkillRow::new(skill) });
            result(&rows(limits::LIST_BYTES, names), Some(note.into()), offered.len())
        }
        None => list_all(&offered, &catalogue, context.history.text_bytes(limits::LIST_BYTES)),
    }
}

/// Lists the skills by name, as many as fit. Those with `disable-model-invocation` are only named,
/// so that the model can answer a question about them.
fn list_all(offered: &[&SkillSummary], catalogue: &Catalogue, most_bytes: usize) -> ToolResult {
    let rows = rows(most_bytes, offered.iter().map(|skill| SkillRow::new(skill)));
    let of_user = catalogue.usable().filter(|skill| !skill.is_for_model);
    let of_user: Vec<_> = of_user.map(SkillSummary::display_name).collect();
    let of_user: Vec<&str> = of_user.iter().map(AsRef::as_ref).collect();
    let note = if rows.len() < offered.len() {
        let shown = rows.len();
        Some(format!("{shown} of {} skills are shown; `query` finds the others", offered.len()))
    } else if !of_user.is_empty() {
        Some(format!("only the user invokes {}", text::first_names(&of_user)))
    } else if offered.is_empty() && catalogue.folder_errors.is_empty() {
        let problem = catalogue.problems.first().map(Problem::with_remedy);
        Some(problem.unwrap_or_else(|| "there are no skills".to_string()))
    } else {
        None
    };
    let note = Some(notes(note, catalogue)).filter(|note| !note.is_empty());
    result(&rows, note, offered.len())
}

/// A note, and the errors of skills folders.
fn notes(note: impl IntoIterator<Item = String>, catalogue: &Catalogue) -> String {
    let errors = catalogue.folder_errors.iter().map(|problem| problem.message.clone());
    note.into_iter().chain(errors).collect::<Vec<_>>().join("; ")
}

fn result(rows: &[String], note: Option<String>, found: usize) -> ToolResult {
    let mut result = format!(r#"{{"skills":[{}]"#, rows.join(","));
    if let Some(note) = note {
        result.push_str(&format!(r#","note":{}"#, Value::from(note)));
    }
    result.push('}');
    let untrusted = Some(String::new());
    ToolResult { untrusted, ..ToolResult::success(result, counted(found, "skill")) }
}

/// The rows as JSON, as many as the limit allows.
fn rows<'l>(most_bytes: usize, rows: impl Iterator<Item = SkillRow<'l>>) -> Vec<String> {
    let mut bytes = 0;
    // A structure of strings always has a JSON form.
    let rows = rows.map(|row| serde_json::to_string(&row).unwrap_or_default());
    // Measured as JSON: a control character takes six bytes.
    let fits = |row: &String| {
        bytes += row.len();
        bytes <= most_bytes
    };
    rows.take_while(fits).collect()
}

/// A listed skill; the order of the fields is that of the output.
#[derive(Serialize)]
struct SkillRow<'l> {
    name: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'l, str>>,
}

impl SkillRow<'_> {
    fn new(skill: &SkillSummary) -> SkillRow<'_> {
        let description = match &skill.error {
            Some(error) => format!("(not usable: {error})").into(),
            None => Cow::Borrowed(&*skill.description),
        };
        SkillRow { name: &skill.name, description: Some(description) }
    }
}
