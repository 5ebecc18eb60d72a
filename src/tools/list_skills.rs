//! `list_skills`: what there is, for a model to choose from.

use serde::Serialize;
use serde_json::{Value, json};

use crate::limits;
use crate::skills::Summary;
use crate::text;
use crate::tool::ToolResult;
use crate::tools::{Arguments, Tool, Workbench, text_of};

/// The tool.
pub struct ListSkills;

impl Tool for ListSkills {
    fn name(&self) -> &'static str {
        "list_skills"
    }

    fn description(&self) -> &'static str {
        "List the available skills with their descriptions."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Only skills that mention all of these words."}
            },
        })
    }

    fn is_offered(&self, _bench: &Workbench<'_>) -> bool {
        true
    }

    fn summary(&self, arguments: &Arguments) -> String {
        text_of(arguments, "query").to_string()
    }

    fn run(&self, arguments: &Arguments, bench: &Workbench<'_>) -> ToolResult {
        let catalogue = bench.skills.catalogue();
        let words: Vec<String> = text_of(arguments, "query")
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        let mut listed = Vec::new();
        let mut bytes = 0;
        let mut found = 0;
        for skill in catalogue
            .skills
            .iter()
            .filter(|skill| mentions(skill, &words))
        {
            found += 1;
            let description = describe(skill);
            bytes += skill.name.len() + description.len();
            if bytes <= limits::LIST_BYTES {
                listed.push(Listed {
                    name: &skill.name,
                    description,
                });
            }
        }
        let shown = listed.len();
        let note = note(shown, found, catalogue.skills.len(), &catalogue.faults);
        // A structure of strings always has a JSON form.
        let result = serde_json::to_string(&List {
            skills: listed,
            note,
        })
        .unwrap_or_default();
        let summary = match found {
            1 => "1 skill".to_string(),
            _ => format!("{found} skills"),
        };
        ToolResult::success(result, summary)
    }
}

/// The result, in this order of its fields.
#[derive(Serialize)]
struct List<'l> {
    skills: Vec<Listed<'l>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Listed<'l> {
    name: &'l str,
    description: String,
}

fn mentions(skill: &Summary, words: &[String]) -> bool {
    let text = format!("{} {}", skill.name, skill.description).to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

/// The description, or the reason why there is none.
fn describe(skill: &Summary) -> String {
    match &skill.fault {
        Some(fault) => format!("(not usable: {fault})"),
        None => text::cut(&skill.description, limits::DESCRIPTION_BYTES).into_owned(),
    }
}

/// What a list that is empty or cut has to say.
fn note(shown: usize, found: usize, all: usize, faults: &[String]) -> Option<String> {
    if shown < found {
        return Some(format!(
            "{shown} of {found} skills are shown; narrow the list with `query`"
        ));
    }
    if all > 0 && found == 0 {
        return Some(format!(
            "none of the {all} skills mentions all of these words; leave `query` out to see them"
        ));
    }
    if all == 0 {
        return Some(match faults {
            [] => "the skills folder is empty".to_string(),
            faults => faults.join("; "),
        });
    }
    (!faults.is_empty()).then(|| faults.join("; "))
}
