//! The problems of skills folders and of their entries, with their remedies.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::limits;
use crate::skills::check::is_name;
use crate::skills::skill::{DOCUMENT_NAME, is_document_name};
use crate::skills::{Problem, Rule, SkillSummary};
use crate::text::shell_quoted;
use crate::world::confined::OpenError;

/// The folders as command-line options.
fn skills_options<'p>(folders: impl IntoIterator<Item = &'p Path>) -> String {
    let options = folders.into_iter().map(|folder| format!("--skills {}", shell_quoted(folder)));
    options.collect::<Vec<_>>().join(" ")
}

/// A skills folder that cannot be read.
pub(super) fn unreadable_folder(folder: &Path, cause: &Error) -> Problem {
    let fix = match cause.kind() {
        ErrorKind::NotFound => {
            "create the folder, or name another one with --skills or SKILLS_FOLDER_PATH"
        }
        ErrorKind::PermissionDenied => {
            "make it readable, or name another one with --skills or SKILLS_FOLDER_PATH"
        }
        _ => "name a skills folder: --skills DIR",
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
                .map(|options| format!("; to name several folders, use {options}"));
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

/// A skills folder that is a skill itself.
pub(super) fn folder_is_skill(folder: &Path) -> Problem {
    let message = "this is a skill, not a folder of skills";
    let problem = Problem::new(Rule::FolderIsSkill, folder, message);
    match folder.parent() {
        Some(parent) => {
            problem.with_fix(format!("name the folder above it: {}", skills_options([parent])))
        }
        None => problem,
    }
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

/// A folder that another one of the same name hides.
pub(super) fn hidden(path: PathBuf, winner: &Path) -> Problem {
    let name = winner.file_name().unwrap_or_default().to_string_lossy();
    let winner = winner.display();
    let message = format!("hidden by {winner}: the first folder wins the name `{name}`");
    Problem::new(Rule::NameClash, path, message)
}

/// A folder without a document; `below` is a folder in it that contains skills.
pub(super) fn no_document(below: Option<&Path>) -> Problem {
    let Some(below) = below else {
        return Problem::new(Rule::NoDocument, "", format!("it has no {DOCUMENT_NAME}"));
    };
    let option = skills_options([below]);
    let message = format!(
        "it has no {DOCUMENT_NAME}, but there are skills below it, which need an option: {option}"
    );
    Problem::new(Rule::NoDocument, "", message)
        .with_fix(format!("name it as a skills folder: {option}"))
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

/// A skill whose name in the frontmatter is also another's.
pub(super) fn alias_clash(skill: &SkillSummary, message: String) -> Problem {
    let fix = if is_name(&skill.name) {
        format!("give it the name `{}` there, like its folder", skill.name)
    } else {
        "rename the folder, and give it the folder's name there".into()
    };
    Problem::new(Rule::NameClash, &skill.path, message).with_fix(fix)
}
