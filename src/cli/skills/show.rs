//! `skills show NAME`: the details of one skill.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::run::Run;
use crate::cli::skills::check::check_all;
use crate::cli::skills::json::{self, print_json};
use crate::cli::skills::selection::SkillSelection;
use crate::cli::skills::skill_json::SkillJson;
use crate::ui::Output;
use base::error::Result;
use base::limits;
use base::text;
use skills::file_list;
use skills::frontmatter;

/// One skill in JSON output: the fields of the list, the frontmatter and the files.
#[derive(Serialize)]
struct SkillDetailsJson {
    #[serde(flatten)]
    view: SkillJson,
    /// The parsed frontmatter.
    frontmatter: Map<String, Value>,
    /// The skill's files, the document included.
    #[serde(serialize_with = "json::list")]
    files: Vec<PathBuf>,
    /// Whether there are more files than listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more_files: bool,
}

/// Shows the skill and its problems.
pub(super) fn run(run: &Run, name: &str, is_json: bool, output: &mut Output) -> Result<()> {
    let place = SkillSelection::parse(name, run)?;
    let skill = place.skill()?;
    let checked = check_all([place.entry(&skill)?], run)?.remove(0);
    let tree = skill.files();
    let document = skill.read_document().ok();
    let show = SkillDetailsJson {
        view: SkillJson::new(checked, run),
        frontmatter: document
            .as_ref()
            .map(|document| frontmatter::parse(&document.text).fields)
            .unwrap_or_default(),
        files: tree.files,
        more_files: tree.is_cut,
    };
    if is_json {
        print_json(&show, output);
    } else {
        let size = document.map(|document| document.text.len());
        output.print(&describe(&show, size));
    }
    Ok(())
}

fn describe(show: &SkillDetailsJson, document_bytes: Option<usize>) -> String {
    let view = &show.view;
    let shown = |key: &&String| *key != "name" && *key != "description";
    let labels = show.frontmatter.keys().filter(shown);
    let widths = labels.map(|key| text::one_line(key, limits::SUMMARY_CHARS).chars().count());
    // At least as wide as the longest of the fixed labels.
    let widest = widths.max().unwrap_or(0).clamp(12, limits::REPORT_COLUMNS / 3);
    let row = |label: &str, text: &str| row(label, widest + 1, text);
    let mut lines = vec![
        row("name", &view.name),
        row("description", &view.description),
        row("folder", &view.path.display().to_string()),
    ];
    lines.push(match (&view.document, document_bytes) {
        (Some(name), Some(bytes)) => {
            row("document", &format!("{name}, {}", text::counted(bytes, "byte")))
        }
        (Some(name), None) => row("document", name),
        (None, _) => row("document", "none"),
    });
    for (key, value) in &show.frontmatter {
        if shown(&key) {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            lines.push(row(key, &value));
        }
    }
    let python = match (&view.python, &view.venv) {
        (Some(python), Some(_)) => format!("{}, the skill's own", python.display()),
        (Some(python), None) => format!("{}; the skill has no venv", python.display()),
        (None, _) => "none".to_string(),
    };
    lines.push(row("python", &python));
    let needs = view.needs.kinds().into_iter().map(|(kind, names)| ("needs", kind, names));
    let missing = view.missing.kinds().into_iter().map(|(kind, names)| ("missing", kind, names));
    let needs = needs.chain(missing);
    lines.extend(needs.map(|(label, kind, names)| row(label, &format!("{kind} {names}"))));
    let more = if show.more_files { " and more" } else { "" };
    lines.push(row("files", &format!("{}{more}", show.files.len())));
    lines.extend(folded_files(&show.files));
    if !view.problems.is_empty() {
        lines.push(row("problems", &view.counts.to_string()));
    }
    for problem in &view.problems {
        let place = match (&problem.file, problem.line) {
            (Some(file), Some(line)) => format!("{} line {line}: ", file.display()),
            (Some(file), None) => format!("{}: ", file.display()),
            (None, _) => String::new(),
        };
        let text = format!("{}: {place}{}", problem.severity, problem.message);
        lines.push(format!("  {}", text::one_line(&text, limits::LINE_BYTES)));
        if let Some(fix) = &problem.fix {
            lines.push(format!("    fix: {}", text::one_line(fix, limits::LINE_BYTES)));
        }
    }
    lines.join("\n")
}

/// The files, of which folders of many alike are one line.
fn folded_files(files: &[PathBuf]) -> impl Iterator<Item = String> {
    let files: Vec<String> =
        files.iter().map(|file| text::one_line_name(&file.to_string_lossy())).collect();
    let (folded, _) = file_list::fold(files.iter().map(String::as_str));
    folded.into_iter().map(|line| format!("  {}", line.trim_start_matches("- ").trim_end()))
}

/// A line with the label in its own column.
fn row(label: &str, columns: usize, text: &str) -> String {
    let label = format!("{}:", text::one_line(label, limits::SUMMARY_CHARS));
    format!("{label:columns$} {}", text::one_line(text, limits::LINE_BYTES))
}
