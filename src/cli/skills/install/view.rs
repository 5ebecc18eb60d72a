//! The preview of a change of skills: names, descriptions, files, sizes, scripts, findings of the
//! check, and the lines that differ from what is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::run::Run;
use crate::cli::skills::install::{Change, Outcome, Planned};
use crate::ui::Output;
use agent::tools::diff;
use base::error::Result;
use base::limits;
use base::text;
use host::files;
use skills::check::CheckedSkill;
use skills::lock_file::{FileDigests, added, is_left_out, is_taken};
use skills::private::{holds_private_key, is_private_name};
use skills::program_files::is_program;
use skills::siblings::named_skills;
use skills::{Severity, Skills, is_document_name};

/// Shows all skills of a change, and returns whether something was cut; nothing is with `is_whole`.
/// With `--quiet` and `--yes` only what is not changed, and what is lost.
pub(super) fn show(change: &Change<'_>, is_whole: bool, output: &mut Output) -> Result<bool> {
    let new = change.staging.new_folder();
    let described = describe(new, change.run)?;
    let is_quiet = change.command.yes && output.is_quiet();
    let installed = change.planned.iter().filter(|planned| planned.outcome.is_installed());
    let is_brief = installed.count() > limits::SHOWN_SKILLS;
    let mut view = View { output, is_whole, is_brief, is_cut: false };
    for planned in &change.planned {
        let name = text::one_line_name(&planned.name);
        let left_out = change.left_out.get(&planned.name).filter(|all| !all.is_empty());
        if let Some(all) = left_out.filter(|_| planned.outcome.is_installed()) {
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let line = format!("{name} has files that are not copied: {}", text::first_names(&all));
            view.output.warn(&text::one_line_name(&line));
        }
        let lost = lost(planned, &change.folder);
        let verb = match &planned.outcome {
            Outcome::Kept(reason) | Outcome::Refused(reason) => {
                let is_kept = matches!(planned.outcome, Outcome::Kept(_));
                let what = if is_kept { "stays as it is" } else { "is left out" };
                let line = format!("{name} {what}: {reason}");
                view.output.warn(&text::one_line(&line, limits::LINE_BYTES));
                continue;
            }
            // Standard output says so.
            Outcome::Unchanged => continue,
            // What is lost is named in any case.
            Outcome::Removed => {
                if !is_quiet || !lost.is_empty() {
                    view.output.note_always(&format!("remove {name}"));
                    view.rows(&lost);
                }
                continue;
            }
            _ if is_quiet => continue,
            Outcome::Added => "add",
            Outcome::Updated => "update",
            Outcome::Restored => "restore",
        };
        view.output.note_always(&format!("{verb} {name} from {}", source(planned)));
        view.rows(described.get(&planned.name).map_or(&[], Vec::as_slice));
        let folders = [change.folder.join(&planned.name), new.join(&planned.name)];
        match (&planned.before, change.old.skills.get(&planned.name)) {
            (Some(Ok(there)), Some(old)) => {
                let listed = &old.files;
                view.differences(&folders, [there, listed, &planned.locked.files]);
                let (moved, stays): (Vec<_>, Vec<_>) =
                    added(listed, there).partition(|path| is_taken(path, &planned.locked.files));
                for (names, fate) in [(stays, "stay"), (moved, "stay, with the ending .orig")] {
                    if !names.is_empty() {
                        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
                        let names = text::one_line_name(&text::first_names(&names));
                        view.output.row(&format!("files that you added {fate}: {names}"));
                    }
                }
            }
            _ => {
                view.rows(&lost);
                view.files(&folders[1], &planned.locked.files);
            }
        }
    }
    Ok(view.is_cut)
}

/// Rows of what was changed by hand in a skill that is removed or replaced all the same.
fn lost(planned: &Planned, folder: &Path) -> Vec<String> {
    let row = |how: &str, what: &str| format!("{how}: {}", text::one_line_name(what));
    let is_removed = planned.outcome == Outcome::Removed;
    let tools = ["venv", "node_modules"].into_iter().filter(|_| is_removed);
    let tools = tools.filter(|it| folder.join(&planned.name).join(it).is_dir());
    let tools = tools.map(|it| format!("removed, too: {it}/"));
    match &planned.before {
        Some(Ok(there)) => {
            let listed = &planned.locked.files;
            let changed = there.iter().filter(|(path, digest)| listed.get(*path) != Some(digest));
            let how = |path| if listed.contains_key(path) { "changed by hand" } else { "added" };
            let changed = changed.map(|(path, _)| row(&format!("{}, and lost", how(path)), path));
            changed.chain(tools).collect()
        }
        Some(Err(cause)) => {
            let names = added_names(&folder.join(&planned.name), &planned.locked.files);
            [row("changed by hand", cause)].into_iter().chain(names).chain(tools).collect()
        }
        None => Vec::new(),
    }
}

/// Rows of what is not listed in a skill that could not be compared, such as one with links.
fn added_names(skill: &Path, listed: &FileDigests) -> Vec<String> {
    let mut rows = Vec::new();
    // What a link leads to stays.
    let mut folders = if skill.is_symlink() { vec![] } else { vec![skill.to_path_buf()] };
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(skill).unwrap_or(&path).to_string_lossy();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if !is_left_out(&name) {
                    folders.push(path);
                }
            } else if !listed.contains_key(&*name) {
                rows.push(format!("added, and lost: {}", text::one_line_name(&name)));
            }
        }
    }
    rows.sort();
    rows
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
        let one = CheckedSkill::open(summary, &skills);
        let name = one.summary.path.file_name().unwrap_or_default().to_string_lossy();
        let description = one.summary.description_line();
        let description = text::truncate_words(&description, limits::SENTENCE_BYTES);
        let found = one.problems.iter().filter(|it| it.severity != Severity::Note);
        let found = found.map(|problem| {
            let row = format!("{}: {problem}", problem.severity.name());
            text::one_line(&row, limits::LINE_BYTES)
        });
        let all = [description.into_owned()].into_iter().chain(found);
        rows.insert(name.to_string(), all.collect());
    }
    Ok(rows)
}

/// Where the rows go, and how many.
struct View<'o> {
    output: &'o mut Output,
    /// Whether everything is shown.
    is_whole: bool,
    /// Whether there are so many skills that only scripts are listed.
    is_brief: bool,
    /// Whether something is not shown.
    is_cut: bool,
}

impl View<'_> {
    fn rows(&mut self, rows: &[String]) {
        for row in rows {
            self.output.row(row);
        }
    }

    /// How many of these are shown, if there is a limit.
    fn shown(&mut self, all: usize, most: usize) -> usize {
        let shown = if self.is_whole { all } else { all.min(most) };
        self.is_cut |= shown < all;
        shown
    }

    /// Lists files with sizes: all scripts, as they may run, then others.
    fn files(&mut self, skill: &Path, files: &FileDigests) {
        let size = |path: &String| fs::metadata(skill.join(path)).map_or(0, |meta| meta.len());
        let (scripts, others): (Vec<_>, Vec<_>) =
            files.keys().partition(|path| is_program(&skill.join(path)));
        let most =
            if self.is_brief { 0 } else { limits::SHOWN_FILES.saturating_sub(scripts.len()) };
        let (others, more) = others.split_at(self.shown(others.len(), most));
        let marked = scripts.iter().map(|path| (*path, "  script"));
        for (path, mark) in marked.chain(others.iter().map(|path| (*path, ""))) {
            let bytes = text::group_digits(size(path));
            self.output.row(&format!("{bytes:>9} bytes  {}{mark}", text::one_line_name(path)));
        }
        if !more.is_empty() {
            let bytes = text::group_digits(more.iter().map(|path| size(path)).sum());
            let number = text::counted(more.len(), "more file");
            self.output.row(&format!("{bytes:>9} bytes  {number}"));
        }
        let documents = files.keys().filter(|path| self.is_whole && is_document_name(path));
        for path in documents.collect::<Vec<_>>() {
            match files::read_whole(&skill.join(path), limits::COMPARED_BYTES) {
                Ok(bytes) => self.lines(&text::escape_bytes(&bytes)),
                Err(why) => {
                    let path = text::one_line_name(path);
                    self.output.row(&format!("not shown: {path} ({why})"));
                }
            }
        }
    }

    /// Lists files that differ, with the lines of text that do. `there`: the present files, of
    /// which those that are not listed are not the source's, and not shown.
    fn differences(&mut self, folders: &[PathBuf; 2], [there, listed, new]: [&FileDigests; 3]) {
        let old: FileDigests =
            there.clone().into_iter().filter(|it| listed.contains_key(&it.0)).collect();
        let mut all: Vec<(bool, &String)> = old
            .keys()
            .chain(new.keys())
            .map(|path| {
                let folder = &folders[usize::from(new.contains_key(path))];
                // What may run, and what tells the model what to do, first.
                (!(is_program(&folder.join(path)) || is_instruction(path)), path)
            })
            .collect();
        all.sort();
        all.dedup();
        for (_, path) in all {
            let mark = match (old.get(path), new.get(path)) {
                (one, other) if one == other => continue,
                (Some(_), Some(_)) => '~',
                (None, _) => '+',
                (Some(_), None) => '-',
            };
            let file = folders[usize::from(mark != '-')].join(path);
            let is_script = is_program(&file);
            let size = text::group_digits(fs::metadata(&file).map_or(0, |meta| meta.len()));
            let script = if is_script { "  script" } else { "" };
            let is_edited = mark != '+' && old.get(path) != listed.get(path);
            let read = |at: usize, is_there: bool| {
                let text = || text_of(&folders[at], path, is_script, is_edited);
                if is_there { text() } else { Ok(Vec::new()) }
            };
            let texts = if is_edited && mark == '-' {
                Err("changed by hand".into())
            } else {
                read(0, mark != '+').and_then(|before| Ok([before, read(1, mark != '-')?]))
            };
            let why = texts.as_ref().err().map(|why| format!("  not shown: {why}"));
            let row = format!("{mark} {}, {size} bytes{script}", text::one_line_name(path));
            self.output.row(&(row + &why.unwrap_or_default()));
            if let Ok([before, after]) = texts {
                self.lines(&diff(&before, &after));
            }
        }
    }

    /// Shows lines of text, long ones in several rows: `…` is where a line goes on.
    fn lines(&mut self, text: &str) {
        let mut rows = Vec::new();
        for line in text.lines() {
            let line = line.replace('\0', "\\x00");
            let line = text::printable(&line);
            let (mut rest, mut start) = (&*line, "");
            while rest.len() > limits::SHOWN_LINE_BYTES {
                let (part, next) =
                    rest.split_at(rest.floor_char_boundary(limits::SHOWN_LINE_BYTES));
                rows.push(format!("    {start}{part}…"));
                (rest, start) = (next, "…");
            }
            rows.push(format!("    {start}{rest}"));
        }
        let shown = self.shown(rows.len(), limits::SHOWN_LINES);
        self.rows(&rows[..shown]);
        if shown < rows.len() {
            let more = text::counted(rows.len() - shown, "more line");
            self.output.row(&format!("    … {more} of this file"));
        }
    }
}

/// The text of a file, or why it is not shown. `is_edited`: the user has changed it.
fn text_of(
    folder: &Path,
    path: &str,
    is_script: bool,
    is_edited: bool,
) -> std::result::Result<Vec<u8>, String> {
    let bytes = files::read_whole(&folder.join(path), limits::COMPARED_BYTES)?;
    let is_private =
        || path.split('/').any(is_private_name) || holds_private_key(Path::new(path), &bytes);
    if is_edited && is_private() {
        return Err("it is private".into());
    }
    // A shell runs a script whose first line is text; Windows writes UTF-16.
    let first = bytes.split(|byte| *byte == b'\n').next().filter(|_| is_script);
    let is_text = is_instruction(path)
        || bytes.starts_with(b"\xff\xfe")
        || bytes.starts_with(b"\xfe\xff")
        || !first.unwrap_or(&bytes).contains(&0);
    is_text.then_some(bytes).ok_or_else(|| "it is not text".into())
}

/// Whether models read a file as instructions.
fn is_instruction(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end.eq_ignore_ascii_case("md"))
}

/// Warns about the skills that the installed ones name and that will not be beside them: those of
/// the source, and those that are surely skills.
pub(super) fn warn_of_siblings(change: &Change<'_>, output: &mut Output) {
    let new = Skills::new([change.staging.new_folder().to_path_buf()]);
    let installed = || change.planned.iter().filter(|planned| planned.outcome.is_installed());
    let is_there = |name: &str| {
        installed().any(|planned| planned.name == name) || change.folder.join(name).is_dir()
    };
    for planned in installed() {
        let Ok(document) = new.open_any(&planned.name).and_then(|skill| skill.read_document())
        else {
            continue;
        };
        let named = named_skills(&document.text).into_iter();
        let is_skill = |name: &str, is_sure| is_sure || change.offered.contains(name);
        let missing = named.filter(|(name, is_sure)| is_skill(name, *is_sure) && !is_there(name));
        let missing: Vec<String> = missing.map(|(name, _)| name).collect();
        if missing.is_empty() {
            continue;
        }
        let list = text::first_names(&missing.iter().map(String::as_str).collect::<Vec<_>>());
        let line = format!("{} needs skills that are left behind: {list}", planned.name);
        output.warn(&text::one_line(&line, limits::LINE_BYTES));
    }
}
