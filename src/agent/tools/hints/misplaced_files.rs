//! Files that a program did not find, and that are in the other one of the skill's and the user's
//! folder.

use std::path::Path;

use super::{HintRequest, RunKind, StartFolder, quoted_list};
use base::limits;
use base::text::one_line_name;
use host::confined::{Root, identity};
use skills::protected::{is_home_or_above, private_paths};

/// Words of messages about missing files.
const MESSAGES: [&str; 12] = [
    "no such file",
    "enoent",
    "not found",
    "not exist",
    "doesn't exist",
    "cannot find",
    "can't find",
    "could not find",
    "cannot open",
    "can't open",
    "could not open",
    "no file",
];

/// Returns the hint about files that are in the other folder.
pub(super) fn hint(request: &HintRequest<'_>) -> Option<String> {
    let folder = other_folder(request)?;
    let mut found: Vec<&str> = Vec::new();
    for name in names(request).take(limits::HINT_CANDIDATES) {
        if found.len() < limits::HINT_NAMES
            && !found.contains(&name)
            && is_in_other_folder(request, name)
        {
            found.push(name);
        }
    }
    let starts_in_skill = request.start_folder == StartFolder::Skill;
    let whose = if starts_in_skill { "user" } else { "skill" };
    // In the sandbox a program reads only the folder in which it starts, and its skill's.
    if request.scripts.sandbox.is_some() && (starts_in_skill || request.skill.is_none()) {
        return None;
    }
    let remedy = match request.kind {
        RunKind::Command if request.skill.is_some() => "write \"$SKILL_DIR/…\"",
        _ => "give the absolute path",
    };
    let shown = |path: &Path| one_line_name(&path.display().to_string());
    Some(match found.as_slice() {
        [] => return None,
        [name] => {
            let path = shown(&folder.join(name));
            format!("{} is in the {whose}'s folder: {path} ({remedy})", quoted_list(&[name]))
        }
        names => {
            let (names, folder) = (quoted_list(names), shown(folder));
            format!("{names} are in the {whose}'s folder {folder} ({remedy})")
        }
    })
}

/// The one of the skill's and the user's folder that the program did not start in.
fn other_folder<'r>(request: &'r HintRequest<'_>) -> Option<&'r Path> {
    let skill = request.skill?;
    Some(match request.start_folder {
        StartFolder::Skill => &request.scripts.user_folder,
        StartFolder::User => &skill.path,
    })
}

/// The possible names of files in messages about missing ones, relative to the folder that the
/// program started in.
fn names<'h>(request: &HintRequest<'h>) -> impl Iterator<Item = &'h str> {
    let start = request.start_path();
    let is_message = |line: &&str| {
        let line = line.to_lowercase();
        MESSAGES.iter().any(|words| line.contains(words))
    };
    let is_quote = |c: char| "'\"`‘’“”".contains(c);
    let lines = request.lines().filter(is_message);
    lines.flat_map(move |line| {
        let quoted = line.split(is_quote);
        let words = line.split_whitespace().filter(|word| word.contains(['.', '/']));
        let parts = quoted.chain(line.split(": ")).chain(words);
        parts.filter_map(move |name| {
            let name = name.trim_matches(|c: char| is_quote(c) || " ,;:()".contains(c));
            let inner = Path::new(name).strip_prefix(start).ok().and_then(Path::to_str);
            let name = inner.unwrap_or(name);
            let name = name.trim_start_matches("./").trim_end_matches(['/', '.']);
            (!name.is_empty() && name.len() <= limits::PATH_BYTES).then_some(name)
        })
    })
}

/// Whether the relative path leads to a file or folder in the other folder, but not where the
/// program started. Never a hidden one, nor one that the file tools or the sandbox hide, nor a
/// document.
pub(super) fn is_in_other_folder(request: &HintRequest<'_>, name: &str) -> bool {
    let found = || {
        let folder = other_folder(request)?;
        Root::open(folder).and_then(|root| root.open_target(name)).ok()?;
        let (folder, path) = (folder.canonicalize().ok()?, folder.join(name).canonicalize().ok()?);
        let inner = path.strip_prefix(&folder).ok()?;
        let is_hidden = request.start_folder == StartFolder::Skill && is_protected(request, &path);
        Some(is_plain(inner) && !is_hidden)
    };
    is_plain(Path::new(name))
        && request.start_path().join(name).symlink_metadata().is_err()
        && found().unwrap_or(false)
}

/// Whether no part of a relative path is hidden, and it is no document.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| {
        let name = part.as_os_str().as_encoded_bytes();
        !name.starts_with(b".") && name != b"/" && !name.eq_ignore_ascii_case(b"SKILL.md")
    })
}

/// Whether the file tools or the sandbox hide this path in the user's folder.
fn is_protected(request: &HintRequest<'_>, path: &Path) -> bool {
    let scripts = request.scripts;
    let is_whole_home =
        || identity(&scripts.user_folder).is_none_or(|folder| is_home_or_above(scripts, folder));
    let skills =
        request.skills.folders().iter().filter_map(|folder| folder.path.canonicalize().ok());
    private_paths(scripts).chain(skills).any(|hidden| path.starts_with(hidden))
        || scripts.sandbox.is_some() && is_whole_home()
}
