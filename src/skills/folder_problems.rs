//! The problems of skills folders and of their entries, with their remedies.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::FolderOrigin;
use crate::check::is_valid_name;
use crate::skill::{DOCUMENT_NAME, is_document_name};
use crate::{Problem, Rule, SkillSummary};
use base::limits;
use base::text::{first_names, shell_quoted};
use host::confined::OpenError;
use host::files::dead_link;

/// The folders as command-line options.
fn skills_options<'p>(folders: impl IntoIterator<Item = &'p Path>) -> String {
    let options = folders.into_iter().map(|folder| format!("--skills {}", shell_quoted(folder)));
    options.collect::<Vec<_>>().join(" ")
}

/// A skills folder that cannot be read.
pub(super) fn unreadable_folder(folder: &Path, cause: &Error) -> Problem {
    let fix = match cause.kind() {
        ErrorKind::NotFound if dead_link(folder).is_some() => {
            "correct or remove the link, or make its target available"
        }
        ErrorKind::NotFound => {
            "create the folder, or name another one with --skills or SKILLS_FOLDER_PATH"
        }
        ErrorKind::PermissionDenied => {
            "make it readable, or name another one with --skills or SKILLS_FOLDER_PATH"
        }
        _ => "name a skills folder: --skills DIR; a skill is a folder with a SKILL.md",
    };
    let message =
        format!("the skills folder {} {}", folder.display(), why_unreadable(folder, cause));
    Problem::new(Rule::UnreadableFolder, folder, message).with_fix(fix)
}

/// Why a skills folder cannot be read, and which folder may have been meant.
fn why_unreadable(folder: &Path, cause: &Error) -> String {
    let name = folder.file_name().and_then(|name| name.to_str());
    match cause.kind() {
        ErrorKind::NotFound => {
            let meant = path_list_options(folder)
                .map(|options| format!("; to name several folders, use {options}"))
                .or_else(|| Some(format!(": {}", dead_link(folder)?)));
            format!("does not exist{}", meant.unwrap_or_default())
        }
        ErrorKind::NotADirectory if name.is_some_and(is_document_name) => {
            "cannot be read: it is a document; name the folder that contains its skill".into()
        }
        ErrorKind::NotADirectory => "cannot be read: it is not a folder".into(),
        _ => format!("cannot be read: {cause}"),
    }
}

/// The options that were meant by `--skills a:b`, if these folders exist.
fn path_list_options(folder: &Path) -> Option<String> {
    let parts = folder.to_str()?.split(':').filter(|part| !part.is_empty()).map(Path::new);
    let parts: Vec<&Path> = parts.collect();
    let is_list = parts.len() > 1 && parts.iter().all(|part| part.is_dir());
    is_list.then(|| skills_options(parts))
}

/// A file in a skills folder that was meant as a skill.
pub(super) fn flat_file(path: PathBuf) -> Problem {
    let to = Path::new(path.file_stem().unwrap_or_default()).join(DOCUMENT_NAME);
    let message = "it has the fields of a skill, but a skill is a folder with a SKILL.md";
    let problem = Problem::new(Rule::FlatFile, path, message);
    problem.with_fix(format!("move it to {}", shell_quoted(&to)))
}

/// A skills folder that other users may write in.
pub(super) fn untrusted_folder(folder: &Path, cause: &OpenError) -> Problem {
    let message = format!("the skills folder {} is not used: {cause}", folder.display());
    Problem::new(Rule::UnreadableFolder, folder, message)
        .with_fix("let only root or yourself own it and the folder above it, and write in them")
}

/// Too many skills; `folder` is empty if all folders together hold too many.
pub(super) fn too_many(folder: &Path, left_out: usize) -> Problem {
    let message =
        format!("more than {} skills: the last {left_out} by name are left out", limits::SKILLS);
    Problem::new(Rule::TooManySkills, folder, message)
}

/// A skills folder with more folders than are searched.
pub(super) fn search_ended(folder: &Path) -> Problem {
    let most = limits::SEARCHED_FOLDERS;
    let message = format!("more than {most} folders: those after them are not searched for skills");
    Problem::new(Rule::TooManySkills, folder, message)
        .with_fix("name the folders with the skills that you need")
}

/// A folder whose name is not UTF-8.
pub(super) fn name_not_utf8(path: PathBuf) -> Problem {
    let message = "the folder's name is not UTF-8, so it cannot be a skill";
    Problem::new(Rule::NameNotUtf8, path, message)
}

/// A link that cannot be followed.
pub(super) fn broken_link(path: PathBuf, cause: String) -> Problem {
    Problem::new(Rule::BrokenLink, path, cause)
}

/// A folder without a document that does not hide the skill of the same name.
pub(super) fn passed_over(path: PathBuf, winner: &Path) -> Problem {
    let name = winner.file_name().unwrap_or_default().to_string_lossy();
    let winner = winner.display();
    let message = format!("it has no {DOCUMENT_NAME}, so the name `{name}` means {winner}");
    let fix = format!("rename the folder, or write its {DOCUMENT_NAME}");
    Problem::new(Rule::NameClash, path, message).with_fix(fix)
}

/// A skill whose name means another one; `qualified` is the name by which it is reached. If the
/// skills are of the user and of the working folder, the user may not know that.
pub(super) fn name_taken(
    skill: (&Path, FolderOrigin),
    winner: (&Path, FolderOrigin),
    qualified: &str,
) -> Problem {
    let name = winner.0.file_name().unwrap_or_default().to_string_lossy();
    let message =
        format!("the name `{name}` means {}, so this skill is `{qualified}`", winner.0.display());
    let rule = match (winner.1, skill.1) {
        (FolderOrigin::WorkingFolder, FolderOrigin::User) => Rule::NameClash,
        _ => Rule::NameTaken,
    };
    Problem::new(rule, skill.0, message)
}

/// A default folder with skills deeper than directly in it, where they are not searched for.
pub(super) fn skills_below(folder: &Path, subfolders: &BTreeSet<String>) -> Problem {
    let names = subfolders.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let message = format!("the skills below {} are not used", first_names(&names));
    Problem::new(Rule::SkillsBelow, folder, message)
        .with_fix(format!("name the folder: {}", skills_options([folder])))
}

/// A folder without a document. In a folder that was named it may be no skill on purpose.
pub(super) fn no_document(is_on_purpose: bool) -> Problem {
    let problem = Problem::new(Rule::NoDocument, "", format!("it has no {DOCUMENT_NAME}"));
    problem.into_note_if(is_on_purpose)
}

/// A link to a folder that no link may lead to.
pub(super) fn forbidden_link(leads_to: &str, has_document: bool) -> Problem {
    let message = format!("a link to {leads_to} is not a skill");
    if has_document {
        return Problem::new(Rule::LinkAbove, "", message);
    }
    let message = format!("it has no {DOCUMENT_NAME}, and {message}");
    Problem::new(Rule::NoDocument, "", message)
        .with_fix("remove the link, or point it to the skill's own folder")
}

/// A skill whose name in the frontmatter is also another's. In another folder that may be a copy,
/// or the work of another author.
pub(super) fn alias_clash(skill: &SkillSummary, relation: &str, other: &Path) -> Problem {
    let (name, path) = (skill.alias.as_deref().unwrap_or_default(), other.display());
    let message = format!("its frontmatter has the name `{name}`, {relation} {path}");
    let folder = skill.path.file_name().unwrap_or_default().to_string_lossy();
    let fix = if is_valid_name(&folder) {
        format!("give it the name `{folder}` there, like its folder")
    } else {
        "rename the folder, and give it the folder's name there".into()
    };
    let problem = Problem::new(Rule::NameClash, &skill.path, message).with_fix(fix);
    problem.into_note_if(skill.path.parent() != other.parent())
}
