//! What the user sees before skills are changed: names, descriptions, files, sizes, scripts,
//! findings of the check, and the lines that differ from what is there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::cli::run::Run;
use crate::cli::skills::install::{Change, Outcome, Planned};
use crate::error::Result;
use crate::limits;
use crate::skills::check::CheckedSkill;
use crate::skills::lock_file::FileDigests;
use crate::skills::{Problem, Rule, Severity, Skills};
use crate::text;
use crate::tools::diff;
use crate::world::files;
use crate::world::output::Output;

/// Shows all skills of a change. With `--quiet` and `--yes` only what is not changed.
pub(super) fn show(change: &Change<'_>, output: &mut Output) -> Result<()> {
    let new = change.staging.new_folder();
    let described = describe(&new, change.run)?;
    let is_quiet = change.command.yes && output.is_quiet();
    let installed = change.planned.iter().filter(|planned| planned.outcome.is_installed());
    let is_brief = installed.count() > limits::SHOWN_SKILLS;
    for planned in &change.planned {
        let name = text::one_line_name(&planned.name);
        let left_out = change.left_out.get(&planned.name).filter(|all| !all.is_empty());
        if let Some(all) = left_out.filter(|_| planned.outcome.is_installed()) {
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let line = format!("{name} has files that are not copied: {}", text::first_names(&all));
            output.warn(&text::one_line_name(&line));
        }
        match &planned.outcome {
            Outcome::Kept(reason) | Outcome::Refused(reason) => {
                let is_kept = matches!(planned.outcome, Outcome::Kept(_));
                let what = if is_kept { "stays as it is" } else { "is left out" };
                let line = format!("{name} {what}: {reason}");
                output.warn(&text::one_line(&line, limits::LINE_BYTES));
            }
            _ if is_quiet => {}
            // Standard output says so.
            Outcome::Unchanged => {}
            Outcome::Removed => {
                output.note_always(&format!("remove {name}"));
                show_lost(planned, output);
            }
            Outcome::Added | Outcome::Updated | Outcome::Restored => {
                let verb = match planned.outcome {
                    Outcome::Added => "add",
                    Outcome::Updated => "update",
                    _ => "restore",
                };
                output.note_always(&format!("{verb} {name} from {}", source(planned)));
                for row in described.get(&planned.name).into_iter().flatten() {
                    output.row(row);
                }
                let (old, new) = (change.folder.join(&planned.name), new.join(&planned.name));
                if let Some(Ok(there)) = &planned.before {
                    show_differences([&old, &new], [there, &planned.locked.files], output);
                } else {
                    show_lost(planned, output);
                    show_files(&new, &planned.locked.files, is_brief, output);
                }
            }
        }
    }
    Ok(())
}

/// Shows what was changed by hand in a skill that is removed all the same.
fn show_lost(planned: &Planned, output: &mut Output) {
    match &planned.before {
        Some(Ok(there)) => {
            let changed =
                there.iter().filter(|(path, it)| planned.locked.files.get(*path) != Some(it));
            for (path, _) in changed {
                output.row(&format!("changed by hand: {}", text::one_line_name(path)));
            }
        }
        Some(Err(cause)) => output.row(&format!("changed by hand: {}", text::one_line_name(cause))),
        None => {}
    }
}

/// Source, folder and revision in words.
fn source(planned: &Planned) -> String {
    let locked = &planned.locked;
    let folder = Some(&locked.folder).filter(|folder| !folder.is_empty());
    let parts = [Some(&locked.source), folder, locked.revision.as_ref()].into_iter().flatten();
    let parts = parts.map(|part| text::one_line_name(part));
    parts.collect::<Vec<_>>().join(", ")
}

/// Descriptions, errors and warnings as rows, with the names of the skills.
fn describe(folder: &Path, run: &Run) -> Result<BTreeMap<String, Vec<String>>> {
    let skills = Skills::new([folder.to_path_buf()]);
    let mut rows = BTreeMap::new();
    for summary in skills.catalogue().skills {
        run.cancellation.check()?;
        // Without Python, which could be one that the source brings.
        let one = CheckedSkill::open(summary, skills.clone());
        let name = one.summary.path.file_name().unwrap_or_default().to_string_lossy();
        let description = one.summary.description_line();
        let description = text::truncate_words(&description, limits::SENTENCE_BYTES);
        // The other skill may be in the folder that is changed.
        let is_shown = |it: &&Problem| !matches!(it.rule, Rule::MissingSkill);
        let found = one.problems.iter().filter(|it| it.severity != Severity::Note);
        let found = found.filter(is_shown);
        let found = found.map(|problem| {
            let row = format!("{}: {problem}", problem.severity.name());
            text::one_line(&row, limits::LINE_BYTES)
        });
        let all = [description.into_owned()].into_iter().chain(found);
        rows.insert(name.to_string(), all.collect());
    }
    Ok(rows)
}

/// Lists files with sizes, and marks scripts; with `is_brief` only their numbers.
fn show_files(skill: &Path, files: &FileDigests, is_brief: bool, output: &mut Output) {
    let mut rows: Vec<(bool, &String, u64)> = files
        .keys()
        .map(|path| {
            let size = fs::metadata(skill.join(path)).map_or(0, |meta| meta.len());
            (!is_script(skill, path), path, size)
        })
        .collect();
    // Scripts first: they are what may run.
    rows.sort();
    let scripts = rows.iter().filter(|(is_plain, ..)| !is_plain).count();
    let shown = if is_brief { 0 } else { rows.len().min(limits::SHOWN_FILES) };
    let more = rows.split_off(shown);
    for (is_plain, path, size) in rows {
        let mark = if is_plain { "" } else { "  script" };
        let path = text::one_line_name(path);
        output.row(&format!("{:>9} bytes  {path}{mark}", text::group_digits(size)));
    }
    if !more.is_empty() {
        let size = more.iter().map(|(_, _, size)| size).sum();
        let size = text::group_digits(size);
        output.row(&if is_brief {
            let files = text::counted(more.len(), "file");
            format!("{files}, {size} bytes, {}", text::counted(scripts, "script"))
        } else {
            format!("{size:>9} bytes  {}", text::counted(more.len(), "more file"))
        });
    }
}

/// Lists files that differ, with the lines of text files that do.
fn show_differences([old, new]: [&Path; 2], files: [&FileDigests; 2], output: &mut Output) {
    let [old_files, new_files] = files;
    let mut all: Vec<&String> = old_files.keys().chain(new_files.keys()).collect();
    // What tells the model what to do, and what may run, first.
    let is_document = |path: &str| Path::new(path).extension() == Some("md".as_ref());
    all.sort_by_cached_key(|path| (!(is_script(new, path) || is_document(path)), *path));
    all.dedup();
    for path in all {
        let mark = match (old_files.get(path), new_files.get(path)) {
            (Some(one), Some(other)) if one == other => continue,
            (Some(_), Some(_)) => '~',
            (None, _) => '+',
            (Some(_), None) => '-',
        };
        let folder = if mark == '-' { old } else { new };
        let size = fs::metadata(folder.join(path)).map_or(0, |meta| meta.len());
        let size = text::group_digits(size);
        let script = if is_script(folder, path) { "  script" } else { "" };
        output.row(&format!("{mark} {}, {size} bytes{script}", text::one_line_name(path)));
        // Text that is not too large; of a missing file, none.
        let read = |folder: &Path, is_there: bool| {
            let read = || files::read_whole(&folder.join(path), limits::COMPARED_BYTES).ok();
            let bytes = if is_there { read() } else { Some(Vec::new()) };
            bytes.filter(|bytes| std::str::from_utf8(bytes).is_ok())
        };
        let texts = (read(old, mark != '+'), read(new, mark != '-'));
        let (Some(before), Some(after)) = texts else { continue };
        let lines = diff(&before, &after);
        for line in lines.lines().take(limits::SHOWN_LINES) {
            output.row(&format!(
                "    {}",
                text::truncate(&text::printable(line), limits::LINE_BYTES)
            ));
        }
        let more = lines.lines().count().saturating_sub(limits::SHOWN_LINES);
        if more > 0 {
            output.row(&format!("    … {} of this file", text::counted(more, "more line")));
        }
    }
}

/// Whether a file is executable or has the extension of a script.
fn is_script(skill: &Path, path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|it| it.to_str()).unwrap_or_default();
    ["py", "sh", "bash", "js", "mjs", "cjs", "ts", "rb", "pl", "ps1", "bat"].contains(&extension)
        || fs::metadata(skill.join(path)).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}
