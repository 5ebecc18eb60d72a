//! The files of a skill: what cannot be opened, read or found.
//!
//! Folders that tools fill are not looked at. What is normal in `assets/`
//! (images, fonts, office documents, PDF) is not worth a word.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Findings;
use super::document::USUAL;
use crate::limits;
use crate::skills::Skill;
use crate::world::confined::{self, EntryKind, FolderEntry, OpenError, PathTarget};

/// What is told from the name alone: the extension, and what it means.
const BINARY: [(&[&str], &str); 3] = [
    (
        &["exe", "dll", "so", "dylib", "o", "a", "lib", "node", "msi", "dmg", "deb", "rpm"],
        "a program or library: it runs on one kind of machine only, and nobody can read it",
    ),
    (
        &["pyc", "pyo", "pyd", "class"],
        "compiled code: it belongs to one version of its language, and nobody can read it",
    ),
    (
        &["zip", "tar", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "whl", "jar"],
        "an archive: nobody can read what is in it without unpacking",
    ),
];

/// How a program begins, whatever its name.
const PROGRAMS: [&[u8]; 4] = [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ\x90\x00"];

/// Looks at every file and folder, level by level.
pub(super) fn check(skill: &Skill, findings: &mut Findings) {
    let mut left = limits::WALK_ENTRIES;
    let mut folders = VecDeque::from([(PathBuf::new(), 1)]);
    let mut is_cut = false;
    while let Some((path, depth)) = folders.pop_front() {
        let entries = skill.root.folder(&path).and_then(|folder| folder.entries(left));
        let entries = match entries {
            Ok(entries) => entries,
            Err(refusal) => {
                unreadable(path, &refusal, findings);
                continue;
            }
        };
        // A skill that is a venv itself has its own files in it, too.
        if depth > 1 && entries.are_of_venv() {
            continue;
        }
        is_cut |= entries.unread || entries.left_out > 0;
        left = left.saturating_sub(entries.list.len());
        for entry in entries.by_people() {
            let below = path.join(&entry.name);
            if entry.kind != EntryKind::Folder {
                look(skill, &entry, below, depth, findings);
            } else if depth == limits::WALK_DEPTH {
                is_cut = true;
            } else {
                folders.push_back((below, depth + 1));
            }
        }
    }
    if is_cut {
        let message = format!(
            "there are more than {} files, or folders deeper than {} levels; the rest was not \
             looked at",
            limits::WALK_ENTRIES,
            limits::WALK_DEPTH
        );
        findings.push("many-files", PathBuf::new(), None, message, None);
    }
}

fn look(skill: &Skill, entry: &FolderEntry, path: PathBuf, depth: usize, findings: &mut Findings) {
    let is_document = entry.name.eq_ignore_ascii_case(USUAL);
    // The document's own faults are told elsewhere.
    if is_document && depth == 1 && entry.kind == EntryKind::File {
        return;
    }
    match skill.root.node(&path) {
        Ok(_) if is_document && depth > 1 => {
            let message = "a skill inside a skill, where clients do not find it".to_owned();
            let fix = "put its folder beside the other skills".to_owned();
            findings.push("nested-skill", path, None, message, Some(fix));
        }
        Ok(PathTarget::File(open)) => {
            let head = confined::read_whole(&open.file, PROGRAMS[0].len());
            let head = head.map(|piece| piece.bytes).unwrap_or_default();
            if let Some(what) = binary(&path, &head) {
                let fix = if what.contains("archive") {
                    "unpack it: nothing in it is read".to_owned()
                } else {
                    "bring the source, or say how to install it".to_owned()
                };
                findings.push("binary-file", path, None, what.to_owned(), Some(fix));
            }
        }
        Err(OpenError::Outside) => {
            let message = "a link that leads out of the skill: nothing is read through it, and \
                           it leads elsewhere on other machines"
                .to_owned();
            let fix = "put a copy in its place".to_owned();
            findings.push("link-outside", path, None, message, Some(fix));
        }
        Err(OpenError::NotFound | OpenError::TooManyLinks | OpenError::NotAFolder)
            if entry.kind == EntryKind::Link =>
        {
            let message = "a link that leads nowhere".to_owned();
            findings.push("broken-link", path, None, message, None);
        }
        // Told as a document that cannot be read.
        Err(_) if is_document && depth == 1 => {}
        // Removed or replaced since its name was read.
        Ok(PathTarget::Folder(_)) | Err(OpenError::NotFound | OpenError::Changing) => {}
        Err(OpenError::NotAFile(kind)) => {
            let message = format!("{kind}, which nobody can read as a file");
            findings.push("special-file", path, None, message, None);
        }
        Err(refusal) => unreadable(path, &refusal, findings),
    }
}

fn unreadable(path: PathBuf, refusal: &OpenError, findings: &mut Findings) {
    let message = format!("it cannot be opened: {}", refusal.for_people());
    let fix = refusal.remedy().map(str::to_owned);
    findings.push("unreadable-file", path, None, message, fix);
}

/// What is worth a word about a file that is no text.
fn binary(path: &Path, head: &[u8]) -> Option<&'static str> {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let extension = extension.to_ascii_lowercase();
    let is_program = PROGRAMS.iter().any(|magic| head.starts_with(magic));
    let row = BINARY.iter().find(|(extensions, _)| extensions.contains(&extension.as_str()));
    // A text that is only named so is none.
    let is_text = !head.is_empty() && head.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
    match row {
        Some((_, what)) if !is_text => Some(what),
        _ => is_program.then_some(BINARY[0].1),
    }
}
