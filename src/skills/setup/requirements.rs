//! The texts of requirements: those that the user gives, and the lines of a
//! `requirements.txt`.
//!
//! Lines are only compared, to detect changes, and added; pip interprets them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::limits;
use crate::secret::mask_url_logins;
use crate::skills::packages::project_name;
use crate::skills::requirements_text::{self, decode, ends_in_continuation, is_line_end};
use crate::skills::setup::syntax;
use crate::world::confined::{self, OpenError, Root};
use crate::world::files;

/// Name of the file in the skill's folder.
pub(crate) const REQUIREMENTS_FILE: &str = "requirements.txt";

/// Validates a requirement: it must have the shape of one, without options and control
/// characters.
pub(super) fn validate(requirement: &str) -> Result<(), &'static str> {
    if requirement.trim().is_empty() {
        Err("it is empty")
    } else if requirement.trim_start().starts_with('-') {
        Err("it is an option")
    } else if requirement.trim_start().starts_with('#') {
        Err("it is a comment")
    } else if requirement.chars().any(|c| (c.is_control() && c != '\t') || is_line_end(c)) {
        Err("it contains a control character")
    } else {
        syntax::syntax_error(requirement).map_or(Ok(()), Err)
    }
}

/// Rewrites a requirement that names a file of the user for use in the skill's folder; returns
/// any other unchanged.
pub(super) fn resolve_path(requirement: &str, user_folder: &Path, skill: &Path) -> String {
    let requirement = requirement.trim();
    let is_path = !requirement.contains("://") && !requirement.contains('@');
    let (file, rest) = syntax::split_file(requirement);
    if !is_path || !(file.contains('/') || syntax::is_archive(file)) {
        return requirement.to_string();
    }
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    let (Some(file), Some(skill)) = (canonical(&user_folder.join(file)), canonical(skill)) else {
        return requirement.to_string();
    };
    match file.strip_prefix(&skill) {
        Ok(inside) => format!("./{}{rest}", inside.display()),
        Err(_) => format!("{}{rest}", file.display()),
    }
}

/// A requirements file of a skill.
pub(super) struct RequirementsFile {
    /// The text as read; `None` if the file does not exist.
    before: Option<String>,
    text: String,
    /// Whether the text is the whole file, byte for byte.
    is_exact: bool,
}

impl RequirementsFile {
    /// Reads the skill's file; `None` if it has none.
    pub(super) fn read(root: &Root) -> Result<Option<RequirementsFile>, OpenError> {
        match read(root, REQUIREMENTS_FILE) {
            Ok((text, is_exact)) => {
                Ok(Some(RequirementsFile { before: Some(text.clone()), text, is_exact }))
            }
            Err(OpenError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A file that does not exist yet.
    pub(super) fn new() -> RequirementsFile {
        RequirementsFile { before: None, text: String::new(), is_exact: true }
    }

    /// Returns its lines and those of the files that it names, without comments.
    pub(super) fn lines(&self, root: &Root) -> Vec<String> {
        lines(root, "", &self.text)
    }

    /// Whether it lists the requirement, or, for a name without version, any requirement of that
    /// name.
    pub(super) fn contains(&self, root: &Root, requirement: &str) -> bool {
        list_contains(&self.lines(root), requirement)
    }

    /// Adds lines, so that pip reads each as one more requirement and all others as before.
    pub(super) fn add(&mut self, requirements: &[String]) -> Result<(), &'static str> {
        if !self.is_exact {
            return Err("it is not UTF-8 text, or too large");
        }
        let end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut text = self.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(end);
        }
        if ends_in_continuation(&text) {
            // An empty line ends the continued requirement, without changing its text.
            text.push_str(end);
        }
        for requirement in requirements {
            text.push_str(requirement.trim());
            text.push_str(end);
        }
        let mut expected = logical_lines(&self.text);
        expected.extend(requirements.iter().map(|line| line.trim().to_string()));
        if logical_lines(&text) != expected {
            return Err("the new lines would not be read as intended");
        }
        self.text = text;
        Ok(())
    }

    /// Checks that it can be written, before anything is installed.
    pub(super) fn check_writable(&self, root: &Root) -> Result<(), OpenError> {
        match root.check_replaceable(REQUIREMENTS_FILE) {
            Err(OpenError::NotFound) if self.before.is_none() => Ok(()),
            result => result,
        }
    }

    /// Replaces the skill's file atomically; owner and mode stay. `work` is a folder in the
    /// skill's file system.
    pub(super) fn write(&self, root: &Root, skill: &Path, work: &Path) -> Result<(), OpenError> {
        if let Some(before) = &self.before {
            return root.replace(REQUIREMENTS_FILE, before.as_bytes(), self.text.as_bytes());
        }
        // Another process may have created one.
        self.check_writable(root)?;
        let new = work.join(REQUIREMENTS_FILE);
        files::write_new(&new, self.text.as_bytes())?;
        Ok(fs::rename(new, skill.join(REQUIREMENTS_FILE))?)
    }
}

/// Whether one of the lines is the requirement, or, for a name without version, any requirement
/// of that name.
pub(super) fn list_contains(lines: &[String], requirement: &str) -> bool {
    let wanted = normalize_spelling(requirement);
    let is_name = project_name(requirement) == wanted;
    lines.iter().any(|line| {
        normalize_spelling(line) == wanted
            || (is_name && project_name(line) == project_name(requirement))
    })
}

/// Returns the first invalid line of a requirements file, and the reason.
pub(super) fn first_invalid_line(root: &Root, path: &str) -> Option<(String, &'static str)> {
    // The installer reads other encodings.
    let (text, _) = read(root, path).ok().filter(|(_, is_exact)| *is_exact)?;
    logical_lines(&text).into_iter().find_map(|line| {
        let error = syntax::syntax_error(&line)?;
        Some((line, error))
    })
}

/// Returns the lines of any requirements file of a skill, as [`RequirementsFile::lines`].
pub(super) fn read_lines(root: &Root, path: &str) -> Vec<String> {
    read(root, path).map_or_else(|_| Vec::new(), |(text, _)| lines(root, folder_of(path), &text))
}

fn lines(root: &Root, folder: &str, text: &str) -> Vec<String> {
    let mut reading = RequirementsReader {
        root,
        seen: BTreeSet::new(),
        left: limits::SETUP_REQUIREMENTS_BYTES,
        lines: Vec::new(),
    };
    reading.read(folder, text);
    reading.lines
}

/// Returns the folder of a path, empty or with its slash.
fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

/// Reads the lines of a file and of the files that it names.
struct RequirementsReader<'r> {
    root: &'r Root,
    /// Files that were named: what is named twice adds nothing.
    seen: BTreeSet<String>,
    /// How many bytes may still be read.
    left: usize,
    lines: Vec<String>,
}

impl RequirementsReader<'_> {
    /// `folder` is the file's folder, relative to the skill's, empty or with a slash.
    fn read(&mut self, folder: &str, text: &str) {
        for line in logical_lines(text) {
            self.lines.push(line.clone());
            let Some(name) = included_file(&line) else {
                continue;
            };
            let path = format!("{folder}{name}");
            if self.seen.len() == limits::SETUP_REQUIREMENTS_FILES
                || !self.seen.insert(path.clone())
            {
                continue;
            }
            // pip reports a file that cannot be read.
            if let Ok((text, _)) = read(self.root, &path)
                && let Some(left) = self.left.checked_sub(text.len())
            {
                self.left = left;
                self.read(folder_of(&path), &text);
            }
        }
    }
}

/// Returns the text of a file, and whether it is exactly the file's content.
fn read(root: &Root, path: &str) -> Result<(String, bool), OpenError> {
    let file = root.file(path)?;
    let piece = confined::read_whole(&file, limits::SETUP_REQUIREMENTS_BYTES)?;
    let text = decode(&piece.bytes);
    let is_exact = !piece.has_more && text.as_bytes() == piece.bytes;
    Ok((text.into_owned(), is_exact))
}

/// Returns the requirements and options in the text of one file.
fn logical_lines(text: &str) -> Vec<String> {
    let lines = requirements_text::logical_lines(text).into_iter();
    lines.map(|(_, line)| line).collect()
}

/// Returns the file named after `-r` or `-c`.
fn included_file(line: &str) -> Option<&str> {
    ["--requirement", "--constraint", "-r", "-c"]
        .iter()
        .find_map(|option| line.strip_prefix(option))
        .map(|rest| rest.trim_start_matches('=').trim())
        .filter(|name| !name.is_empty() && !name.contains("://"))
}

/// Normalizes each line with [`normalize_line`].
pub(super) fn normalize_lines(lines: &[String]) -> BTreeSet<String> {
    lines.iter().map(|line| normalize_line(line)).collect()
}

/// Normalizes a line for comparison: one spelling, and no logins, which records do not contain.
pub(super) fn normalize_line(line: &str) -> String {
    normalize_spelling(&mask_url_logins(line))
}

/// Returns the same text for all spellings of a requirement.
fn normalize_spelling(line: &str) -> String {
    let line = line.trim();
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let rest = line.trim_start_matches(is_name_char);
    let is_location = rest.contains(['/', '\\']) || syntax::is_archive(line);
    let is_named = !is_location || rest.trim_start().starts_with(['[', '@']);
    if line.starts_with('-') || !is_named {
        return normalize_location(line);
    }
    // Letter case does not matter in a name and its extras.
    let extras = rest.trim_start().starts_with('[');
    let end = rest.find(']').filter(|_| extras).map_or(0, |at| at + 1);
    let (after_name, name) = (&rest[end..], &line[..line.len() - rest.len() + end]);
    let name = without_blanks(name).to_lowercase().replace(['_', '.'], "-");
    match after_name.trim_start().strip_prefix('@') {
        Some(location) => format!("{name}@{}", normalize_location(location)),
        None if is_location => name + &normalize_location(after_name),
        None => name + &without_blanks(after_name),
    }
}

/// Normalizes an option, a path or an address: only repeated blanks do not matter, and in a
/// marker no blank does.
fn normalize_location(line: &str) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let marker = [" ;", "; "].iter().filter_map(|mark| line.find(mark)).min();
    let Some((place, marker)) = marker.map(|at| line.split_at(at)) else {
        return words(line);
    };
    words(place) + " " + &without_blanks(marker)
}

/// Removes blanks, and unifies quotes.
fn without_blanks(text: &str) -> String {
    let text = text.chars().filter(|c| !c.is_whitespace());
    text.map(|c| if c == '\'' { '"' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::scratch::Scratch;

    fn file(text: &str) -> RequirementsFile {
        RequirementsFile { before: None, text: text.into(), is_exact: true }
    }

    #[test]
    fn lines_are_compared_as_pip_reads_them() {
        let root = Root::open(Path::new("/")).unwrap();
        let text =
            "\u{feff}# c\na==1 # why\nb \\\r\n  >=2\r\n\nhttps://x/y#egg=z\n-r missing.txt\n";
        let expected = ["a==1", "b   >=2", "https://x/y#egg=z", "-r missing.txt"];
        assert_eq!(file(text).lines(&root), expected);
        let text = "# c \\\na\\\n# c\nb\u{c}c\rd \\";
        assert_eq!(file(text).lines(&root), ["a", "b", "c", "d"]);
    }

    /// A file that names itself, once or often, is read once.
    #[test]
    fn files_that_include_each_other_are_read_once() {
        let folder = Scratch::new(&std::env::temp_dir()).unwrap();
        let named = format!("a\n{}", "-r b.txt\n".repeat(50));
        folder.write_file("b.txt", named.as_bytes()).unwrap();
        let root = Root::open(folder.path()).unwrap();
        assert_eq!(read_lines(&root, "b.txt").len(), 2 * 51);
        let large = "x".repeat(limits::SETUP_REQUIREMENTS_BYTES - 1);
        for name in ["c.txt", "d.txt"] {
            folder.write_file(name, large.as_bytes()).unwrap();
        }
        let both = file("-r c.txt\n-r d.txt\n").lines(&root);
        assert_eq!(both.len(), 3, "all files together have one limit");
    }

    #[test]
    fn listed_requirements_are_not_added() {
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
            assert_eq!(file.contains(&root, requirement), is_named, "{requirement}");
        }
    }

    /// Spelling alone does not recreate a venv.
    #[test]
    fn another_spelling_is_not_a_change() {
        for (one, other) in [
            ("six;python_version<\"2\"", "SIX ; python_version < '2'"),
            ("ruamel.yaml >= 1, <2", "Ruamel_Yaml>=1,<2"),
            ("a[B , c]>1", "A[b,c] > 1"),
            ("a [x]@ https://h/a", "a[x] @ https://h/a"),
            ("a @ https://h/a ; os_name == 'x'", "A@https://h/a ; os_name==\"x\""),
            ("a@https://me:pw@h/a", "a@https://[secret]@h/a"),
            ("-r  more.txt", "-r more.txt"),
            ("./a.whl ; os_name == 'x'", "./a.whl ;os_name==\"x\""),
        ] {
            assert_eq!(normalize_line(one), normalize_line(other), "{one}");
        }
        for (one, other) in [
            ("six;python_version<\"2\"", "six;python_version<\"3\""),
            ("a-b", "ab"),
            ("./A.whl", "./a.whl"),
            ("./a b.whl", "./ab.whl"),
            ("A-1.whl; os_name=='x'", "a-1.whl; os_name=='x'"),
            ("a@https://h/A", "a@https://h/a"),
            ("a@https://me:pw@h/a@1", "a@https://me:pw@h/a@2"),
            ("-r A.txt", "-r a.txt"),
            ("a[b]", "a[c]"),
        ] {
            assert_ne!(normalize_line(one), normalize_line(other), "{one}");
        }
    }

    /// Whatever the end of the file, its requirements stay, and one is added.
    #[test]
    fn an_added_line_is_a_separate_requirement() {
        let table = [
            ("", "new\n"),
            ("six", "six\nnew\n"),
            ("six \\", "six \\\n\nnew\n"),
            ("six \\\n", "six \\\n\nnew\n"),
            ("six \\\r\n", "six \\\r\n\r\nnew\r\n"),
            ("six\\\n\n", "six\\\n\nnew\n"),
            ("six \\\u{c}", "six \\\u{c}\nnew\n"),
            ("# why \\\nsix\n", "# why \\\nsix\nnew\n"),
            ("six\n  # why \\", "six\n  # why \\\nnew\n"),
        ];
        for (before, after) in table {
            let mut file = file(before);
            assert_eq!(file.add(&["new".into()]), Ok(()), "{before:?}");
            assert_eq!(file.text, after, "{before:?}");
        }
        for bad in ["new\\", "new # why", "new\nmore", "new\u{2028}more"] {
            let mut file = file("six\n");
            assert!(file.add(&[bad.into()]).is_err(), "{bad:?}");
            assert_eq!(file.text, "six\n");
        }
    }
}
