//! `list_skills`: lists the skills from which a model chooses.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::limits;
use crate::skills::{Catalogue, SkillSummary};
use crate::tool::{Effects, ToolResult};
use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext};

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
        "List the skills; with `query`, those that mention its words."
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
                            "invoked_by": {"type": "string"},
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

    fn is_offered(&self, _context: &ToolContext<'_>, has_skills: bool) -> bool {
        has_skills
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let ListSkillsArguments { query } = arguments.parse()?;
        Ok(PreparedCall::new(query.clone(), move |context| list(&query, context)))
    }
}

/// Lists the skills that mention the words of a query, or all.
fn list(query: &str, context: &ToolContext<'_>) -> ToolResult {
    let catalogue = context.skills.catalogue();
    let query = query.to_lowercase();
    let mut words: Vec<&str> = query_words(&query).map(singular).collect();
    words.sort_unstable();
    words.dedup();
    words.truncate(limits::QUERY_WORDS);
    let mut chosen =
        filter_skills(&catalogue, |skill| count_mentions(skill, &words) == words.len());
    let is_loose = chosen.is_empty() && words.len() > 1;
    if is_loose {
        // Short words occur in many other words.
        words.retain(|word| word.len() >= limits::QUERY_WORD_BYTES);
        chosen = filter_skills(&catalogue, |skill| count_mentions(skill, &words) > 0);
    }
    let found = chosen.len();
    let mut listed = Vec::new();
    let mut bytes = 0;
    for skill in chosen {
        // Beyond the limit, skills are only counted.
        if bytes <= limits::LIST_BYTES {
            let entry = SkillRow {
                name: &skill.name,
                description: describe(skill),
                invoked_by: (!skill.is_for_model).then_some("the user alone"),
            };
            // Measured as JSON: a control character takes six bytes. A structure of
            // strings always has a JSON form.
            let entry = serde_json::to_string(&entry).unwrap_or_default();
            bytes += entry.len();
            if bytes <= limits::LIST_BYTES {
                listed.push(entry);
            }
        }
    }
    let shown = listed.len();
    let note = list_note(shown, found, is_loose, &catalogue);
    let mut result = format!(r#"{{"skills":[{}]"#, listed.join(","));
    if let Some(note) = note {
        result.push_str(&format!(r#","note":{}"#, Value::from(note)));
    }
    result.push('}');
    let summary = match found {
        1 => "1 skill".to_string(),
        _ => format!("{found} skills"),
    };
    ToolResult::success(result, summary)
}

/// A listed skill; the order of the fields is that of the output.
#[derive(Serialize)]
struct SkillRow<'l> {
    name: &'l str,
    description: String,
    /// Present with `disable-model-invocation`: only the user invokes the skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    invoked_by: Option<&'static str>,
}

fn filter_skills(
    catalogue: &Catalogue,
    is_meant: impl Fn(&SkillSummary) -> bool,
) -> Vec<&SkillSummary> {
    let skills = catalogue.skills.iter().filter(|skill| skill.is_offered);
    skills.filter(|skill| is_meant(skill)).collect()
}

/// Counts the words that the skill mentions.
fn count_mentions(skill: &SkillSummary, words: &[&str]) -> usize {
    if words.is_empty() {
        return 0;
    }
    let text = format!("{} {}", skill.name, skill.description).to_lowercase();
    let mentioned = words.iter().filter(|word| text.contains(**word));
    mentioned.count()
}

/// Returns the words of a query without punctuation.
fn query_words(query: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| !c.is_alphanumeric() && !"-_.+#".contains(c);
    let words = query.split(is_between);
    let words = words.map(|word| word.trim_matches(['-', '_', '.']));
    words.filter(|word| !word.is_empty())
}

/// Removes the `s` of a plural, so that `forecasts` finds a forecast.
fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(rest) if rest.len() > 2 && !rest.ends_with('s') => rest,
        _ => word,
    }
}

/// Returns the description, or why the skill is not usable.
fn describe(skill: &SkillSummary) -> String {
    match &skill.error {
        Some(error) => format!("(not usable: {error})"),
        None => skill.description.clone(),
    }
}

/// Returns the note of an empty or shortened list.
fn list_note(shown: usize, found: usize, is_loose: bool, catalogue: &Catalogue) -> Option<String> {
    let all = catalogue.skills.iter().filter(|skill| skill.is_offered).count();
    let mut notes = Vec::new();
    if is_loose && found > 0 {
        notes.push("no skill mentions all of these words; these mention some of them".into());
    }
    if shown < found {
        notes.push(format!("{shown} of {found} skills are shown; narrow the list with `query`"));
    } else if all > 0 && found == 0 {
        notes.push(format!(
            "none of the {all} skills mentions any of these words; leave `query` out to see them"
        ));
    } else if all == 0 && catalogue.folder_errors.is_empty() {
        match catalogue.problems.first() {
            Some(problem) => notes.push(problem.with_remedy()),
            None => notes.push("there are no skills".to_string()),
        }
    }
    notes.extend(catalogue.folder_errors.iter().map(|problem| problem.message.clone()));
    (!notes.is_empty()).then(|| notes.join("; "))
}
