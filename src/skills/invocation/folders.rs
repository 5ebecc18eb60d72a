//! The placeholders for a skill's folder, also those of other clients.
//!
//! | placeholder | folder |
//! |---|---|
//! | `${CLAUDE_SKILL_DIR}`, `${SKILL_DIR}`, `{baseDir}`, `<SKILL_DIR>` | the skill's |
//! | `${CLAUDE_PLUGIN_ROOT}` | the plugin's, or the skill's if it is in none |
//! | `<skill-dir>`, `<skill_dir>`, `<path-to-skill>`, `{skill_dir}` | the skill's, if the document has one of its files behind it: it may mean any skill |
//! | `~/.claude/skills/NAME` (also `.codex`, `.agents`, and without `~/`) | the skill's, if NAME is its name |

use crate::names::is_plugin;
use crate::skill::is_document_name;
use crate::skill_file::listed_paths;
use crate::{Skill, frontmatter};

const PLUGIN_ROOT: &str = "${CLAUDE_PLUGIN_ROOT}";
/// Placeholders that always stand for a folder of this skill.
const OWN: [&str; 5] =
    ["${CLAUDE_SKILL_DIR}", "${SKILL_DIR}", PLUGIN_ROOT, "{baseDir}", "<SKILL_DIR>"];
/// Placeholders that may stand for the folder of any skill.
const ANY: [&str; 4] = ["<skill-dir>", "<skill_dir>", "<path-to-skill>", "{skill_dir}"];
/// Where other clients have their skills: a folder of the home or of the project, with skills in
/// a folder below it.
const PARENTS: [&str; 5] = ["~/", "$HOME/", "${HOME}/", "./", ""];
const CLIENTS: [&str; 3] = [".claude/skills/", ".codex/skills/", ".agents/skills/"];

/// The characters that a placeholder or its escape may start with.
pub(super) const START: [char; 6] = ['\\', '$', '{', '<', '~', '.'];

/// Values of the placeholders for folders.
pub struct SkillFolders {
    skill: String,
    plugin: String,
    /// The names of the skill in the paths of other clients.
    names: Vec<String>,
    /// Those of [`ANY`] that stand for this skill's folder.
    own: Vec<&'static str>,
}

impl SkillFolders {
    /// The folders of a skill that is in no plugin, and has no name or files.
    pub fn new(folder: &str) -> SkillFolders {
        let (skill, plugin) = (folder.to_string(), folder.to_string());
        SkillFolders { skill, plugin, names: Vec::new(), own: Vec::new() }
    }

    /// The folders for the document of a skill.
    pub fn of(skill: &Skill, document: &str) -> SkillFolders {
        let mut folders = SkillFolders::new(&skill.path.to_string_lossy());
        if document.contains(PLUGIN_ROOT) {
            let real = skill.path.canonicalize().unwrap_or_default();
            let above = skill.path.ancestors().chain(real.ancestors());
            if let Some(plugin) = { above }.find(|folder| is_plugin(folder)) {
                folders.plugin = plugin.to_string_lossy().into_owned();
            }
        }
        let fields = frontmatter::parse(document).fields;
        let title = fields.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        let names = [&*skill.folder_name(), &skill.name, title.trim()].map(str::to_string);
        folders.names = names.into_iter().filter(|name| !name.is_empty()).collect();
        folders.own = own_placeholders(skill, document);
        folders
    }

    /// The length of the placeholder for a folder that starts here, and the folder.
    pub(super) fn at(&self, here: &str, before: Option<char>) -> Option<(usize, &str)> {
        let found = OWN.iter().chain(&self.own).find(|name| here.starts_with(**name));
        if let Some(name) = found {
            // `${baseDir}` and `{{baseDir}}` belong to code or other templates.
            let is_code = !here.starts_with('$') && matches!(before, Some('$' | '{'));
            let folder = if *name == PLUGIN_ROOT { &self.plugin } else { &self.skill };
            return (!is_code).then_some((name.len(), folder));
        }
        let is_inside = |c: char| c.is_alphanumeric() || "/.-_~$}>".contains(c);
        if before.is_some_and(is_inside) {
            return None;
        }
        let below = PARENTS.iter().find_map(|parent| {
            let path = here.strip_prefix(parent)?;
            CLIENTS.iter().find_map(|client| path.strip_prefix(client))
        })?;
        let behind = self.names.iter().find_map(|name| {
            let behind = below.strip_prefix(name.as_str())?;
            let next = behind.strip_prefix('.').unwrap_or(behind);
            let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
            (!next.starts_with(goes_on)).then_some(behind)
        })?;
        Some((here.len() - behind.len(), &self.skill))
    }
}

/// The placeholders of [`ANY`] that the document uses for the skill itself: one of its files
/// follows, other than the document, which every skill has.
fn own_placeholders(skill: &Skill, document: &str) -> Vec<&'static str> {
    let mut used: Vec<&str> = ANY.into_iter().filter(|name| document.contains(name)).collect();
    if used.is_empty() {
        return used;
    }
    let tree = skill.all_files();
    let paths = listed_paths(&tree);
    let is_path = |c: char| c.is_alphanumeric() || "/.-_".contains(c);
    let has_file = |rest: &str| {
        let Some(rest) = rest.strip_prefix('/') else { return false };
        let path = rest.split(|c| !is_path(c)).next().unwrap_or_default();
        let path = path.trim_end_matches(['/', '.']);
        paths.contains(path) && !is_document_name(path)
    };
    used.retain(|name| document.split(name).skip(1).any(has_file));
    used
}
