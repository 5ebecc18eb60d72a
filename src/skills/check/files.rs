//! Checks of a skill's files: broken links and unreadable files.
//!
//! Folders that tools fill are skipped.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::Findings;
use super::document::DOCUMENT_NAME;
use crate::{Problem, Rule, Skill};
use base::limits;
use host::confined::{EntryKind, FolderEntry, OpenError};

/// Checks every file and folder, level by level.
pub(super) fn check(skill: &Skill, findings: &mut Findings) {
    let mut left = limits::WALK_ENTRIES;
    let mut folders = VecDeque::from([(PathBuf::new(), 1)]);
    let mut is_cut = false;
    while let Some((path, depth)) = folders.pop_front() {
        let entries = skill.root.folder(&path).and_then(|folder| folder.entries(left));
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                findings.add(unreadable(path, &error));
                continue;
            }
        };
        // The skill's own folder is checked even if it is a venv.
        if depth > 1 && entries.is_venv() {
            continue;
        }
        is_cut |= entries.is_incomplete || entries.omitted > 0;
        left = left.saturating_sub(entries.entries.len());
        for entry in entries.without_tool_folders() {
            let below = path.join(&entry.name);
            if entry.kind != EntryKind::Folder {
                findings.extend(check_entry(skill, &entry, below, depth));
            } else if depth == limits::WALK_DEPTH {
                is_cut = true;
            } else {
                folders.push_back((below, depth + 1));
            }
        }
    }
    if is_cut {
        let message = format!(
            "the skill has more than {} files, or folders deeper than {} levels; the rest was \
             not checked",
            limits::WALK_ENTRIES,
            limits::WALK_DEPTH
        );
        findings.add(Problem::new(Rule::ManyFiles, "", message));
    }
}

fn check_entry(skill: &Skill, entry: &FolderEntry, path: PathBuf, depth: usize) -> Option<Problem> {
    let is_document = entry.name.eq_ignore_ascii_case(DOCUMENT_NAME);
    // `document` reports the problems of the document, except those of a link.
    if is_document && depth == 1 && entry.kind == EntryKind::File {
        return None;
    }
    Some(match skill.root.open_target(&path) {
        Err(OpenError::Outside) if skill.path.join(&path).exists() => {
            let message = "a link that leads out of the skill: it is not followed, and is broken \
                           where only the skill is installed";
            let is_there = is_in_repository(skill, &path);
            Problem::new(Rule::BrokenLink, path, message).into_note_if(is_there)
        }
        Err(
            OpenError::Outside
            | OpenError::NotFound
            | OpenError::TooManyLinks
            | OpenError::NotAFolder,
        ) if entry.kind == EntryKind::Link => {
            Problem::new(Rule::BrokenLink, path, "a link whose target cannot be reached")
        }
        // Reported as a document that cannot be read.
        Err(_) if is_document && depth == 1 => return None,
        // A good file, or one that was removed or replaced since the folder was listed.
        Ok(_) | Err(OpenError::NotFound | OpenError::Changing) => return None,
        Err(error) => unreadable(path, &error),
    })
}

/// Whether a link that leads to something is relative: other clients follow it in a clone of the
/// repository.
fn is_in_repository(skill: &Skill, link: &Path) -> bool {
    skill.path.join(link).read_link().is_ok_and(|target| target.is_relative())
}

fn unreadable(path: PathBuf, error: &OpenError) -> Problem {
    let message = format!("it cannot be opened: {}", error.user_message());
    let problem = Problem::new(Rule::UnreadableFile, path, message);
    Problem { fix: error.hint().map(str::to_owned), ..problem }
}
