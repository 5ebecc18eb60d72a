//! Checks of a skill's files: broken links, special files, binaries, nested skills.
//!
//! Folders that tools fill are skipped. What is usual in `assets/` (images, fonts, office
//! documents, PDF) is not reported.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Findings;
use super::document::DOCUMENT_NAME;
use crate::limits;
use crate::skills::Skill;
use crate::world::confined::{self, EntryKind, FolderEntry, OpenError, PathTarget};

/// Extensions of binary files, and their message.
const BINARY_EXTENSIONS: [(&[&str], &str); 3] = [
    (
        &["exe", "dll", "so", "dylib", "o", "a", "lib", "node", "msi", "dmg", "deb", "rpm"],
        "a program or library: it runs on one platform only, and its content cannot be reviewed",
    ),
    (
        &["pyc", "pyo", "pyd", "class"],
        "compiled code: it needs one version of its language, and its content cannot be reviewed",
    ),
    (
        &["zip", "tar", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "whl", "jar"],
        "an archive: its content cannot be reviewed without unpacking",
    ),
];

/// First bytes of programs: ELF, Mach-O (and fat or Java class files), PE.
const PROGRAM_HEADS: [&[u8]; 4] =
    [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ\x90\x00"];

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
                report_unreadable(path, &error, findings);
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
                check_entry(skill, &entry, below, depth, findings);
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
        findings.push("many-files", PathBuf::new(), None, message, None);
    }
}

fn check_entry(
    skill: &Skill,
    entry: &FolderEntry,
    path: PathBuf,
    depth: usize,
    findings: &mut Findings,
) {
    let is_document = entry.name.eq_ignore_ascii_case(DOCUMENT_NAME);
    // `document` reports the problems of the document.
    if is_document && depth == 1 && entry.kind == EntryKind::File {
        return;
    }
    match skill.root.open_target(&path) {
        Ok(_) if is_document && depth > 1 => {
            let message = "a skill inside a skill, where clients do not find it".to_owned();
            let fix = "move its folder next to the other skills".to_owned();
            findings.push("nested-skill", path, None, message, Some(fix));
        }
        Ok(PathTarget::File(open)) => {
            let head = confined::read_whole(&open.file, PROGRAM_HEADS[0].len());
            let head = head.map(|piece| piece.bytes).unwrap_or_default();
            if let Some(what) = describe_binary(&path, &head) {
                let fix = if what.contains("archive") {
                    "unpack it: archives are not read".to_owned()
                } else {
                    "include the source, or say how to install it".to_owned()
                };
                findings.push("binary-file", path, None, what.to_owned(), Some(fix));
            }
        }
        Err(OpenError::Outside) => {
            let message = "a link that leads out of the skill: it is not followed, and on other \
                           machines it leads elsewhere"
                .to_owned();
            let fix = "replace it with a copy".to_owned();
            findings.push("link-outside", path, None, message, Some(fix));
        }
        Err(OpenError::NotFound | OpenError::TooManyLinks | OpenError::NotAFolder)
            if entry.kind == EntryKind::Link =>
        {
            let message = "a link whose target cannot be reached".to_owned();
            findings.push("broken-link", path, None, message, None);
        }
        // Reported as a document that cannot be read.
        Err(_) if is_document && depth == 1 => {}
        // Removed or replaced since the folder was listed.
        Ok(PathTarget::Folder(_)) | Err(OpenError::NotFound | OpenError::Changing) => {}
        Err(OpenError::NotAFile(kind)) => {
            let message = format!("{kind}, which cannot be read as a file");
            findings.push("special-file", path, None, message, None);
        }
        Err(error) => report_unreadable(path, &error, findings),
    }
}

fn report_unreadable(path: PathBuf, error: &OpenError, findings: &mut Findings) {
    let message = format!("it cannot be opened: {}", error.user_message());
    let fix = error.hint().map(str::to_owned);
    findings.push("unreadable-file", path, None, message, fix);
}

/// Returns the message for a binary file; `None` for any other.
fn describe_binary(path: &Path, head: &[u8]) -> Option<&'static str> {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let extension = extension.to_ascii_lowercase();
    let is_program = PROGRAM_HEADS.iter().any(|magic| head.starts_with(magic));
    let row =
        BINARY_EXTENSIONS.iter().find(|(extensions, _)| extensions.contains(&extension.as_str()));
    // Text with such an extension is not binary.
    let is_text = !head.is_empty() && head.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
    match row {
        Some((_, what)) if !is_text => Some(what),
        _ => is_program.then_some(BINARY_EXTENSIONS[0].1),
    }
}
