//! `get_skill`: returns a skill's whole document, with its folder and its other files. With
//! arguments, the placeholders of the document are replaced. The user's invocation of a skill
//! uses the same text.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::{ArgumentError, Arguments, PreparedCall, Tool, ToolContext, schema};
use base::limits;
use base::message::InvokedSkill;
use base::secret::CutEdges;
use base::text::{self, FenceLine, OpenFences, counted, one_line, one_line_name, shell_quoted};
use base::tool::{Action, Effects, ToolResult};
use host::confined::OpenError;
use skills::invocation::SkillFolders;
use skills::needs::Needs;
use skills::python::setup_command;
use skills::venv::path_in_skill;
use skills::{Document, Skill, evals, file_list, frontmatter, invocation};

#[derive(Deserialize)]
struct GetSkillArguments {
    skill_name: String,
    /// If there are any, even empty ones, placeholders are replaced.
    arguments: Option<String>,
}

/// The first line of a document, up to the path of its folder.
pub const BASE_DIRECTORY: &str = "Base directory for this skill: ";

/// The tool `get_skill`.
pub(super) struct GetSkill;

impl Tool for GetSkill {
    fn name(&self) -> &'static str {
        "get_skill"
    }

    fn description(&self) -> &'static str {
        "Read a skill's instructions before you use it; `arguments` fill its $ARGUMENTS."
    }

    fn title(&self) -> &'static str {
        "Read a skill"
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "skill_name": {"type": "string"},
                "arguments": {"type": "string"}
            },
            "required": ["skill_name"],
        })
    }

    fn call_forms(&self) -> Vec<(&str, Value)> {
        let parameters = schema::for_small_models(self.parameters());
        vec![("Read a skill's instructions before you use it.", parameters)]
    }

    fn effects(&self, _context: &ToolContext<'_>) -> Effects {
        Effects::READ_ONLY
    }

    fn prepare(&self, arguments: Arguments) -> Result<PreparedCall<'_>, ArgumentError> {
        let GetSkillArguments { skill_name, arguments } = arguments.parse()?;
        let summary = match arguments.as_deref() {
            None | Some("") => skill_name.clone(),
            Some(words) => format!("{skill_name}: {words}"),
        };
        Ok(PreparedCall::new(summary, move |context| {
            let skill = context.skills.open_any(&skill_name);
            let loaded = skill.and_then(|skill| {
                let document = skill.read_document()?;
                Ok(load(&skill, &document, arguments.as_deref(), context)?.result)
            });
            loaded.unwrap_or_else(ToolResult::failure)
        }))
    }
}

/// Returns the document of a skill that the user invokes with these arguments.
pub(super) fn invoke(
    context: &ToolContext<'_>,
    name: &str,
    arguments: &str,
) -> Result<InvokedSkill, String> {
    let skill = context.skills.open_any(name)?;
    let document = skill.read_document()?;
    if !invocation::is_for_users(&frontmatter::parse(&document.text)) {
        return Err(
            "it is for the model only (user-invocable: false): say what you need, and the model reads it"
                .into(),
        );
    }
    invoked(&skill, &document, arguments, context)
}

/// Returns the document of a skill that the user gives with a question.
pub(super) fn give(context: &ToolContext<'_>, name: &str) -> Result<InvokedSkill, String> {
    let skill = context.skills.open_any(name)?;
    let document = skill.read_document()?;
    invoked(&skill, &document, "", context)
}

fn invoked(
    skill: &Skill,
    document: &Document,
    arguments: &str,
    context: &ToolContext<'_>,
) -> Result<InvokedSkill, String> {
    let LoadedSkill { result, is_whole } = load(skill, document, Some(arguments), context)?;
    let text = format!(
        "I invoke the skill `{}`. Follow its instructions below; {}get_skill is not needed.\n\n{}",
        one_line_name(&skill.name),
        if is_whole { "they are whole, " } else { "" },
        result.full_text()
    );
    Ok(InvokedSkill {
        name: skill.name.clone(),
        arguments: arguments.to_string(),
        // Names and descriptions were shortened, so parts of a secret are masked, too.
        text: context.secrets.mask_shortened(&text).into_owned(),
    })
}

/// A skill's document as a result.
struct LoadedSkill {
    result: ToolResult,
    /// Whether it is the whole document, not its first part.
    is_whole: bool,
}

/// Returns the skill's folder, document and other files, and what a model has to know about them.
fn load(
    skill: &Skill,
    document: &Document,
    arguments: Option<&str>,
    context: &ToolContext<'_>,
) -> Result<LoadedSkill, String> {
    let folder = skill.path.display().to_string();
    if arguments.is_none() && document.text.trim().is_empty() {
        return Err(format!("the document of the skill `{}` is empty", skill.name));
    }
    let folders = SkillFolders::of(skill, &document.text);
    let reader = context.skill_file_reader();
    let files = other_files(skill, &document.file_name, reader) + &missing_note(skill, context);
    let room = context.history.text_bytes(usize::MAX);
    let part = first_part(
        document,
        room.saturating_sub(files.len()).max(room / 2),
        context.history.text_bytes(limits::PAGE_BYTES),
        |next| reading_on(reader, &skill.path.join(&document.file_name), next),
    );
    let is_whole = part.is_none();
    let shown = part.as_ref().map_or(&*document.text, |part| part.text);
    let mut text = invocation::render(shown, &folders, arguments)?;
    let mut summary = format!("{}, {} bytes", document.file_name, text.len());
    if let Some(part) = part {
        summary.push_str(&format!(" of {}", document.text.len()));
        text = context.secrets.mask_cut(&text, CutEdges::AFTER).into_owned();
        text.push_str(&part.note);
    }
    let commands = commands_note(&invocation::commands_on_load(&text), context);
    let text = format!("{BASE_DIRECTORY}{folder}\n\n{text}");
    let files = files + &commands;
    let result = ToolResult {
        document: Some(text),
        action: Some(Action::ReadSkill(skill.name.clone())),
        untrusted: Some(String::new()),
        ..ToolResult::success(files, summary)
    };
    Ok(LoadedSkill { result, is_whole })
}

/// How to read on in a skill's document from this line with the tool `reader`.
fn reading_on(reader: &str, path: &Path, next: usize) -> String {
    match reader {
        "run_command" => {
            format!("{reader}, command `tail -n +{next} {}`", shell_quoted(path))
        }
        "read_file" => format!("{reader}, path \"{}\", offset {next}", path.display()),
        _ => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            format!("{reader}, file_path \"{name}\", offset {next}")
        }
    }
}

/// The start of a document that is too long for one result.
struct DocumentPart<'d> {
    /// Whole lines from the start of the document, up to a heading if one is near.
    text: &'d str,
    /// A note for the model about the rest.
    note: String,
}

/// Returns the part that fits, with its note, into this many bytes. `None`: the document fits.
/// A line longer than a page of this many bytes counts as several, as in the file's pages.
fn first_part(
    document: &Document,
    most_bytes: usize,
    page_bytes: usize,
    reading_on: impl Fn(usize) -> String,
) -> Option<DocumentPart<'_>> {
    let text = document.text.as_str();
    if text.len() <= most_bytes {
        return None;
    }
    // The headings get at most an eighth.
    let fitting = &text[..text.floor_char_boundary(most_bytes - most_bytes / 8)];
    let headings: Vec<(usize, &str)> = headings(text, page_bytes).collect();
    let start_of = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    let mut starts = headings.iter().map(|(_, heading)| start_of(heading)).rev();
    let heading = starts.find(|start| *start <= fitting.len());
    let heading = heading.filter(|start| *start > fitting.len() / 2);
    // The rest of a line that is longer is read with that line.
    let end = heading.or(fitting.rfind('\n').map(|at| at + 1)).unwrap_or(fitting.len());
    let shown = &text[..end];
    let count_lines =
        |text: &str| text.split_inclusive('\n').map(|it| it.len().div_ceil(page_bytes)).sum();
    let (shown_lines, all_lines): (usize, usize) = (count_lines(shown), count_lines(text));
    let next = if shown.ends_with('\n') { shown_lines + 1 } else { shown_lines };
    let mut note = format!(
        "\n[These are the first {} of {}: the document is too long for the context window. Read on with {}, before you do what the rest is about.",
        counted(shown_lines, "line"),
        all_lines,
        reading_on(next),
    );
    let mut room = most_bytes / 8;
    let later: Vec<_> = headings.iter().filter(|(number, _)| *number >= next).collect();
    let ends = later.iter().skip(1).map(|(number, _)| number - 1).chain([all_lines]);
    for (at, ((number, heading), end)) in later.iter().zip(ends).enumerate() {
        let row = format!("\nlines {number}-{end}: {}", one_line(heading, limits::SUMMARY_CHARS));
        if row.len() > room {
            note.push_str("\n…");
            break;
        }
        if at == 0 {
            note.push_str(" Its headings:");
        }
        room -= row.len();
        note.push_str(&row);
    }
    note.push(']');
    Some(DocumentPart { text: shown, note })
}

/// The headings outside of code, with the numbers of their lines, from 1.
fn headings(text: &str, page_bytes: usize) -> impl Iterator<Item = (usize, &str)> {
    let (mut fences, mut next) = (OpenFences::default(), 1);
    text.split_inclusive('\n').filter_map(move |line| {
        let number = next;
        next += line.len().div_ceil(page_bytes);
        let is_prose = fences.advance(line) == FenceLine::Outside;
        (is_prose && line.starts_with('#')).then_some((number, line))
    })
}

/// Lists the skill's other files that may be read; empty without any. Its tests are not for the
/// model: they contain the answers.
fn other_files(skill: &Skill, document: &str, reader: &str) -> String {
    let tree = skill.all_files();
    let is_private = |path: &PathBuf| matches!(skill.open_readable(path), Err(OpenError::Private));
    let others = tree.files.iter().filter(|path| !path.starts_with(evals::FOLDER));
    let others = others.filter(|path| !is_private(path));
    let names: Vec<_> = others.map(|path| path.to_string_lossy()).collect();
    let others = names.iter().map(AsRef::as_ref).filter(|name| *name != document);
    let (lines, is_folded) = file_list::fold(others);
    if lines.is_empty() {
        return String::new();
    }
    let folder = if is_folded { ", and lists a folder" } else { "" };
    let mut text = format!("\n\nOther files of this skill ({reader} reads them{folder}):\n");
    text.extend(lines.iter().take(limits::DOCUMENT_FILES).map(String::as_str));
    if tree.is_cut || lines.len() > limits::DOCUMENT_FILES {
        text.push_str(&format!("- … and more; {reader} with a folder lists it\n"));
    }
    text
}

/// Says what the skill needs and this machine lacks, in two lines: what its code needs, and what it
/// names; empty if nothing. A setup that has been done is not asked for again.
fn missing_note(skill: &Skill, context: &ToolContext<'_>) -> String {
    let Some(scripts) = context.scripts else { return String::new() };
    let needs = Needs::of(skill);
    let mut missing = needs.named.missing(skill, scripts);
    let needed: Vec<String> = needs.required.intersection(&missing.python).cloned().collect();
    missing.python.retain(|package| !needs.required.contains(package));
    let mut lines = String::new();
    let mut push = |title: &str, list: &str, end: &str| {
        let room = limits::MISSING_NOTE_BYTES.saturating_sub(end.len());
        let list = text::truncate_words(list, room);
        if !list.is_empty() {
            lines.push_str(&format!("{title}: {list}{end}\n"));
        }
    };
    let mut advice = ". Code of this skill needs them".to_string();
    if path_in_skill(&skill.path).is_none() {
        let packages: Vec<&str> = needed.iter().map(String::as_str).collect();
        let command = setup_command(skill, &packages);
        advice.push_str(&format!("; the user must first run: {command}"));
    }
    push("Not installed here", &needed.join(", "), &advice);
    let named = missing.kinds().into_iter().map(|(kind, names)| format!("{kind} {names}"));
    push("Also named, perhaps not needed", &named.collect::<Vec<_>>().join("; "), "");
    if lines.is_empty() { lines } else { format!("\n\n{lines}") }
}

/// Says that the commands of a document were not run; empty without any.
fn commands_note(commands: &[&str], context: &ToolContext<'_>) -> String {
    if commands.is_empty() {
        return String::new();
    }
    let shown = commands.iter().take(limits::LISTED_COMMANDS);
    let shown = shown.map(|command| format!("!`{}`", one_line(command, limits::SUMMARY_CHARS)));
    let mut shown = shown.collect::<Vec<_>>().join(", ");
    if commands.len() > limits::LISTED_COMMANDS {
        shown.push_str(&format!(" and {} more", commands.len() - limits::LISTED_COMMANDS));
    }
    let advice = if context.allows_commands() {
        "run them with run_command if you need their output"
    } else {
        "they were not run"
    };
    format!("\n\nCommands that another client would have run first ({shown}): {advice}.\n")
}
