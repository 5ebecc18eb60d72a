//! The texts of requirements: what people ask for, and the lines of a
//! `requirements.txt`.
//!
//! Nothing is understood here that pip understands better: lines are compared
//! to see whether they have changed, and added to.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::limits;
use crate::world::confined::{self, Refusal, Root};

/// The file at the skill's root.
pub(super) const FILE: &str = "requirements.txt";

/// Whether a requirement can be one: an option or a control character cannot.
pub(super) fn check(requirement: &str) -> Result<(), &'static str> {
    if requirement.trim().is_empty() {
        Err("it is empty")
    } else if requirement.trim_start().starts_with('-') {
        Err("it is an option")
    } else if requirement.trim_start().starts_with('#') {
        Err("it is a comment")
    } else if requirement.chars().any(char::is_control) {
        Err("it holds a control character")
    } else {
        Ok(())
    }
}

/// A requirement that names a file of the person who asks, as it is found from
/// the skill's folder; any other stays.
pub(super) fn located(requirement: &str, user_folder: &Path, skill: &Path) -> String {
    let requirement = requirement.trim();
    let is_path = !requirement.contains("://") && !requirement.contains('@');
    let has_suffix = [".whl", ".tar.gz", ".zip"]
        .iter()
        .any(|suffix| requirement.ends_with(suffix));
    if !is_path || !(requirement.contains('/') || has_suffix) {
        return requirement.to_string();
    }
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    let (Some(file), Some(skill)) = (canonical(&user_folder.join(requirement)), canonical(skill))
    else {
        return requirement.to_string();
    };
    match file.strip_prefix(&skill) {
        Ok(inside) => format!("./{}", inside.display()),
        Err(_) => file.display().to_string(),
    }
}

/// A requirements file of a skill.
pub(super) struct RequirementsFile {
    text: String,
    /// The text is all of the file, byte for byte.
    is_exact: bool,
}

impl RequirementsFile {
    /// Reads the skill's; `None` if it has none.
    pub(super) fn of(root: &Root) -> Result<Option<RequirementsFile>, Refusal> {
        match read(root, FILE) {
            Ok((text, is_exact)) => Ok(Some(RequirementsFile { text, is_exact })),
            Err(Refusal::NotFound) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Whether it can be added to without a loss.
    pub(super) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// None yet.
    pub(super) fn empty() -> RequirementsFile {
        RequirementsFile {
            text: String::new(),
            is_exact: true,
        }
    }

    /// Its lines and those of the files that it names, without comments.
    pub(super) fn lines(&self, root: &Root) -> Vec<String> {
        lines(root, "", &self.text)
    }

    /// Whether the requirement stands in it, or, for a mere name, any
    /// requirement of that name.
    pub(super) fn names(&self, root: &Root, requirement: &str) -> bool {
        let wanted = compact(requirement);
        self.lines(root).iter().any(|line| {
            let is_name = project(requirement) == wanted.replace(['_', '.'], "-");
            compact(line) == wanted || (is_name && project(line) == project(requirement))
        })
    }

    /// Adds a line.
    pub(super) fn add(&mut self, requirement: &str) {
        let end = if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(end);
        }
        self.text.push_str(requirement.trim());
        self.text.push_str(end);
    }

    /// Writes it in place of the skill's, whole or not at all. `work` is a
    /// folder on the same file system.
    pub(super) fn write(&self, skill: &Path, work: &Path) -> io::Result<()> {
        // Also where it is a link, the file stays in its place.
        let target = skill.join(FILE);
        let target = fs::canonicalize(&target).unwrap_or(target);
        let new = work.join(FILE);
        fs::write(&new, &self.text)?;
        if let Ok(metadata) = target.metadata() {
            fs::set_permissions(
                &new,
                fs::Permissions::from_mode(metadata.permissions().mode()),
            )?;
        }
        fs::File::open(&new)?.sync_all()?;
        fs::rename(new, target)
    }
}

/// The lines of any requirements file of a skill, as [`RequirementsFile::lines`].
pub(super) fn lines_of(root: &Root, path: &str) -> Vec<String> {
    read(root, path).map_or_else(
        |_| Vec::new(),
        |(text, _)| lines(root, folder_of(path), &text),
    )
}

fn lines(root: &Root, folder: &str, text: &str) -> Vec<String> {
    let mut reading = Reading {
        root,
        files: 0,
        lines: Vec::new(),
    };
    reading.read(folder, text);
    reading.lines
}

/// Empty or with its slash.
fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

/// The lines of a file and of those that it names.
struct Reading<'r> {
    root: &'r Root,
    files: usize,
    lines: Vec<String>,
}

impl Reading<'_> {
    /// `folder` is the file's, relative to the skill's, empty or with a slash.
    fn read(&mut self, folder: &str, text: &str) {
        let joined = text
            .trim_start_matches('\u{feff}')
            .replace("\r\n", "\n")
            .replace("\\\n", "");
        for line in joined.lines() {
            let line = without_comment(line).trim();
            if line.is_empty() {
                continue;
            }
            self.lines.push(line.to_string());
            let Some(name) = file_named(line) else {
                continue;
            };
            self.files += 1;
            if self.files > limits::SETUP_REQUIREMENTS_FILES {
                return;
            }
            let path = format!("{folder}{name}");
            // pip says it better if it cannot be read.
            if let Ok((text, _)) = read(self.root, &path) {
                self.read(folder_of(&path), &text);
            }
        }
    }
}

/// The text of a file, and whether it is all of it, as it stands there.
fn read(root: &Root, path: &str) -> Result<(String, bool), Refusal> {
    let file = root.file(path)?;
    let piece = confined::read_whole(&file, limits::SETUP_REQUIREMENTS_BYTES)?;
    let text = String::from_utf8_lossy(&piece.bytes);
    let is_exact = !piece.more && text.as_bytes() == piece.bytes;
    Ok((text.into_owned(), is_exact))
}

/// A comment begins with `#` at the start or behind a blank.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before.is_whitespace() {
            return &line[..at];
        }
        before = c;
    }
    line
}

/// The file behind `-r` or `-c`.
fn file_named(line: &str) -> Option<&str> {
    ["--requirement", "--constraint", "-r", "-c"]
        .iter()
        .find_map(|option| line.strip_prefix(option))
        .map(|rest| rest.trim_start_matches('=').trim())
        .filter(|name| !name.is_empty() && !name.contains("://"))
}

/// The requirement without blanks and letter case.
fn compact(requirement: &str) -> String {
    requirement
        .chars()
        .filter(|c| !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The project's name at the beginning of a requirement, as indexes compare it.
pub(super) fn project(requirement: &str) -> String {
    let requirement = requirement.trim();
    let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c));
    let name = requirement[..end.unwrap_or(requirement.len())].to_lowercase();
    name.replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> RequirementsFile {
        RequirementsFile {
            text: text.into(),
            is_exact: true,
        }
    }

    #[test]
    fn lines_are_compared_as_pip_reads_them() {
        let root = Root::open(Path::new("/")).unwrap();
        let text =
            "\u{feff}# c\na==1 # why\nb \\\r\n  >=2\r\n\nhttps://x/y#egg=z\n-r missing.txt\n";
        let expected = ["a==1", "b   >=2", "https://x/y#egg=z", "-r missing.txt"];
        assert_eq!(file(text).lines(&root), expected);
    }

    #[test]
    fn what_is_named_already_is_not_added() {
        let root = Root::open(Path::new("/")).unwrap();
        let file = file("PyYAML >= 6\nruamel.yaml\nlxml==5\n");
        for (requirement, is_named) in [
            ("pyyaml", true),
            ("PyYAML>=6", true),
            ("pyyaml>=6.1", false),
            ("ruamel-yaml", true),
            ("lxml==6", false),
            ("yaml", false),
            ("lxml[html]", false),
        ] {
            assert_eq!(file.names(&root, requirement), is_named, "{requirement}");
        }
    }
}
