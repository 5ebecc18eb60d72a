//! The names of skills: which skill wins a name, and by which longer name each other one is
//! reached.
//!
//! A longer name is `PLUGIN:SKILL`; where several skills have it, `PLUGIN/DIR:SKILL` with the
//! folders between; where that is equal, too, with more folders above the plugin.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Entries that only the folder of a plugin has.
const PLUGIN_MARKS: [&str; 3] = ["plugin.json", ".claude-plugin", ".codex-plugin"];

/// Whether the folder is that of a plugin.
pub(super) fn is_plugin(folder: &Path) -> bool {
    PLUGIN_MARKS.iter().any(|mark| folder.join(mark).exists())
}

/// The words before the colon in the names of the skill in this folder, the shortest first.
fn qualifiers(skill: &Path) -> Vec<String> {
    let above = skill.parent().unwrap_or(Path::new("/"));
    // Its links may hide the plugin's name.
    let above = above.canonicalize().unwrap_or_else(|_| above.to_path_buf());
    let folders: Vec<&Path> = above.ancestors().filter(|it| it.file_name().is_some()).collect();
    let has_own_name = |folder: &&Path| {
        let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
        name != b"skills" && !name.starts_with(b".")
    };
    let plugin = folders.iter().position(|folder| is_plugin(folder));
    let plugin = plugin.or_else(|| folders.iter().position(has_own_name)).unwrap_or_default();
    let name = folders.get(plugin).and_then(|folder| folder.file_name());
    let mut found: Vec<String> =
        name.map(|name| name.to_string_lossy().into()).into_iter().collect();
    for first in folders.get(plugin..).unwrap_or_default() {
        let base = first.parent().unwrap_or(Path::new("/"));
        let path = above.strip_prefix(base).unwrap_or(&above).to_string_lossy().into_owned();
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Whether `name` is a longer name of the skill in this folder.
pub(super) fn is_qualified_name(name: &str, skill: &Path) -> bool {
    let folder = skill.file_name().and_then(OsStr::to_str);
    let Some((qualifier, own)) = name.rsplit_once(':').filter(|(_, own)| Some(*own) == folder)
    else {
        return false;
    };
    !own.is_empty() && qualifiers(skill).iter().any(|known| known == qualifier)
}

/// The name of each of the skills in these folders, which have the same folder name: the first has
/// it, the others have the shortest name that neither another one nor a folder has.
pub(super) fn distinct_names(
    name: &str,
    skills: &[PathBuf],
    is_folder: impl Fn(&str) -> bool,
) -> Vec<String> {
    let all: Vec<Vec<String>> = skills.iter().map(|skill| qualifiers(skill)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for qualifier in all.iter().flatten() {
        *counts.entry(qualifier).or_default() += 1;
    }
    let is_own = |qualifier: &&String| {
        counts.get(qualifier.as_str()) == Some(&1) && !is_folder(&format!("{qualifier}:{name}"))
    };
    let names = all.iter().enumerate().map(|(at, known)| {
        let shortest = known.iter().find(is_own).or(known.last());
        match shortest {
            Some(qualifier) if at > 0 => format!("{qualifier}:{name}"),
            _ => name.to_string(),
        }
    });
    names.collect()
}
