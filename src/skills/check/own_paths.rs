//! Which of the paths in a document are those of its skill.

/// Names to compare with paths in a document.
pub(super) struct MentionContext {
    /// The skill's name, which may be part of a path.
    pub skill_name: String,
    /// The skill's folders.
    pub folders: Vec<String>,
    /// The files beside the document.
    pub files: Vec<String>,
    /// Whether the text is the skill's document.
    pub is_document: bool,
}

/// Folders that skills have by convention.
const STANDARD_FOLDERS: [&str; 5] = ["scripts", "references", "reference", "resources", "assets"];

/// Placeholders that clients replace with the skill's folder.
const SKILL_FOLDER_PREFIXES: [&str; 8] = [
    "${CLAUDE_SKILL_DIR}/",
    "$CLAUDE_SKILL_DIR/",
    "${SKILL_DIR}/",
    "$SKILL_DIR/",
    "{baseDir}/",
    "{SKILL_DIR}/",
    "<SKILL_DIR>/",
    "<skill-dir>/",
];

/// Parts of placeholder names.
const PLACEHOLDERS: [&str; 10] =
    ["path/to", "your", "example", "foo", "bar.", "xxx", "my-", "my_", "name.", "..."];

impl MentionContext {
    /// Whether a relative path begins with a folder that the skill has, or skills have by
    /// convention.
    pub(super) fn is_known(&self, path: &str) -> bool {
        let path = path.strip_prefix("./").unwrap_or(path);
        let folder = path.split_once('/').map_or("", |(folder, _)| folder);
        // Other files compare the skill's folders with those of the things they describe.
        STANDARD_FOLDERS.contains(&folder) || (self.is_document && self.has(folder))
    }

    pub(super) fn has(&self, folder: &str) -> bool {
        self.folders.iter().any(|name| name == folder)
    }

    /// Whether a command that is a path can be a file of the skill: `./scripts/x.sh` is the
    /// user's if the skill has no scripts.
    pub(super) fn is_own(&self, word: &str) -> bool {
        let path = word.strip_prefix("./").unwrap_or(word);
        let folder = path.split_once('/').map_or("", |(folder, _)| folder);
        self.has(folder) || self.is_beside(word) || self.below_skill(word).is_some()
    }

    /// Whether a path in a command is that of a file beside the document.
    fn is_beside(&self, word: &str) -> bool {
        let path = word.strip_prefix("./").unwrap_or(word);
        self.files.iter().any(|name| name == path)
    }

    /// Whether the skill is about skills, whose files it names as examples.
    pub(super) fn is_about_skills(&self) -> bool {
        self.skill_name.contains("skill") || self.skill_name.contains("plugin")
    }

    /// The part of a path that follows the skill's own folder, if the path names it.
    fn below_skill<'w>(&self, word: &'w str) -> Option<&'w str> {
        let named = || {
            let (_, rest) = word.split_once("skills/")?;
            let rest = rest.strip_prefix(self.skill_name.as_str())?.strip_prefix('/')?;
            // Other files may be the skill's data, which a script creates.
            let extension = rest.rsplit('.').next().unwrap_or_default();
            let is_part = ["md", "py", "sh", "js", "mjs", "ts"].contains(&extension);
            (is_part || self.is_known(rest)).then_some(rest)
        };
        SKILL_FOLDER_PREFIXES.iter().find_map(|mark| word.strip_prefix(mark)).or_else(named)
    }

    /// Returns the path of a script in a word of a command.
    pub(super) fn script_path<'w>(&self, word: &'w str) -> Option<&'w str> {
        let beside = self.is_beside(word).then(|| word.strip_prefix("./").unwrap_or(word));
        beside.or_else(|| self.skill_path(word))
    }

    /// Returns the path in a word of code if it is one of the skill, or another skill's document.
    pub(super) fn skill_path<'w>(&self, word: &'w str) -> Option<&'w str> {
        if word.contains("://") {
            return None;
        }
        let given = self.below_skill(word);
        let path = given.unwrap_or(word);
        let path = path.strip_prefix("./").unwrap_or(path);
        let path = path.split(['#', ':', '?']).next().unwrap_or_default();
        let path = path.trim_end_matches(['.', ',', ')']);
        let is_ours = given.is_some() || self.is_known(path) || path.ends_with("/SKILL.md");
        let (stem, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
        let is_file = !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.starts_with(|c: char| c.is_ascii_alphabetic())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric());
        (is_ours && is_file && !is_placeholder(path)).then_some(path)
    }
}

/// Whether a path stands for several files, or for one of the reader.
pub(super) fn is_placeholder(path: &str) -> bool {
    let lower = path.to_lowercase();
    // `phaseN.md` stands for several files.
    let is_counted = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default();
        let rest = stem.strip_suffix(['N', 'X']);
        rest.is_some_and(|rest| !rest.ends_with(|c: char| c.is_uppercase()))
    };
    path.contains(|c: char| "<>{}$*[]|…\\@=,;'\"".contains(c))
        || PLACEHOLDERS.iter().any(|word| lower.contains(word))
        || path.split('/').any(is_counted)
}
