//! The texts of requirements: what people ask for, and the lines of a
//! `requirements.txt`.
//!
//! Nothing is understood here that pip understands better: lines are compared
//! to see whether they have changed, and added to.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::limits;
use crate::secret::without_logins;
use crate::skills::packages::project;
use crate::skills::requirements_text::{self, decoded, ends_line, is_continued};
use crate::skills::setup::syntax;
use crate::world::confined::{self, OpenError, Root};
use crate::world::files;

/// The file at the skill's root.
pub(crate) const FILE: &str = "requirements.txt";

/// Whether a requirement can be one: an option or a control character cannot,
/// nor what has no requirement's shape.
pub(super) fn check(requirement: &str) -> Result<(), &'static str> {
    if requirement.trim().is_empty() {
        Err("it is empty")
    } else if requirement.trim_start().starts_with('-') {
        Err("it is an option")
    } else if requirement.trim_start().starts_with('#') {
        Err("it is a comment")
    } else if requirement.chars().any(|c| (c.is_control() && c != '\t') || ends_line(c)) {
        Err("it holds a control character")
    } else {
        syntax::fault(requirement).map_or(Ok(()), Err)
    }
}

/// A requirement that names a file of the person who asks, as it is found from
/// the skill's folder; any other stays.
pub(super) fn located(requirement: &str, user_folder: &Path, skill: &Path) -> String {
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
    /// As it was read; `None`: there is none yet.
    before: Option<String>,
    text: String,
    /// The text is all of the file, byte for byte.
    is_exact: bool,
}

impl RequirementsFile {
    /// Reads the skill's; `None` if it has none.
    pub(super) fn of(root: &Root) -> Result<Option<RequirementsFile>, OpenError> {
        match read(root, FILE) {
            Ok((text, is_exact)) => {
                Ok(Some(RequirementsFile { before: Some(text.clone()), text, is_exact }))
            }
            Err(OpenError::NotFound) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// None yet.
    pub(super) fn empty() -> RequirementsFile {
        RequirementsFile { before: None, text: String::new(), is_exact: true }
    }

    /// Its lines and those of the files that it names, without comments.
    pub(super) fn lines(&self, root: &Root) -> Vec<String> {
        lines(root, "", &self.text)
    }

    /// Whether the requirement stands in it, or, for a mere name, any
    /// requirement of that name.
    pub(super) fn names(&self, root: &Root, requirement: &str) -> bool {
        are_naming(&self.lines(root), requirement)
    }

    /// Adds lines, so that pip reads each of them as one requirement more, and
    /// all others as before. The error says why that cannot be.
    pub(super) fn add(&mut self, requirements: &[String]) -> Result<(), &'static str> {
        if !self.is_exact {
            return Err("it is no UTF-8 text, or too large");
        }
        let end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut text = self.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(end);
        }
        if is_continued(&text) {
            // An empty line ends the requirement, whose own text stays.
            text.push_str(end);
        }
        for requirement in requirements {
            text.push_str(requirement.trim());
            text.push_str(end);
        }
        let mut due = meaningful(&self.text);
        due.extend(requirements.iter().map(|line| line.trim().to_string()));
        if meaningful(&text) != due {
            return Err("its lines would not be read as they are meant");
        }
        self.text = text;
        Ok(())
    }

    /// Whether it could be written, before anything is installed.
    pub(super) fn may_be_written(&self, root: &Root) -> Result<(), OpenError> {
        match root.may_replace(FILE) {
            Err(OpenError::NotFound) if self.before.is_none() => Ok(()),
            result => result,
        }
    }

    /// Writes it in place of the skill's, whole or not at all; its owner and
    /// mode stay. `work` is a folder of the skill's file system.
    pub(super) fn write(&self, root: &Root, skill: &Path, work: &Path) -> Result<(), OpenError> {
        if let Some(before) = &self.before {
            return root.replace(FILE, before.as_bytes(), self.text.as_bytes());
        }
        // Somebody may have made one meanwhile.
        self.may_be_written(root)?;
        let new = work.join(FILE);
        files::write_new(&new, self.text.as_bytes())?;
        Ok(fs::rename(new, skill.join(FILE))?)
    }
}

/// Whether one of the lines is the requirement, or, for a mere name, any
/// requirement of that name.
pub(super) fn are_naming(lines: &[String], requirement: &str) -> bool {
    let wanted = spelled(requirement);
    let is_name = project(requirement) == wanted;
    lines
        .iter()
        .any(|line| spelled(line) == wanted || (is_name && project(line) == project(requirement)))
}

/// The first line of a requirements file that cannot be a requirement, and why.
pub(super) fn fault_in(root: &Root, path: &str) -> Option<(String, &'static str)> {
    // Another encoding is the installer's to read.
    let (text, _) = read(root, path).ok().filter(|(_, is_exact)| *is_exact)?;
    meaningful(&text).into_iter().find_map(|line| {
        let fault = syntax::fault(&line)?;
        Some((line, fault))
    })
}

/// The lines of any requirements file of a skill, as [`RequirementsFile::lines`].
pub(super) fn lines_of(root: &Root, path: &str) -> Vec<String> {
    read(root, path).map_or_else(|_| Vec::new(), |(text, _)| lines(root, folder_of(path), &text))
}

fn lines(root: &Root, folder: &str, text: &str) -> Vec<String> {
    let mut reading = RequirementsReader {
        root,
        named: BTreeSet::new(),
        left: limits::SETUP_REQUIREMENTS_BYTES,
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
struct RequirementsReader<'r> {
    root: &'r Root,
    /// Files that were named: what is named twice adds nothing.
    named: BTreeSet<String>,
    /// How many bytes may still be read.
    left: usize,
    lines: Vec<String>,
}

impl RequirementsReader<'_> {
    /// `folder` is the file's, relative to the skill's, empty or with a slash.
    fn read(&mut self, folder: &str, text: &str) {
        for line in meaningful(text) {
            self.lines.push(line.clone());
            let Some(name) = file_named(&line) else {
                continue;
            };
            let path = format!("{folder}{name}");
            if self.named.len() == limits::SETUP_REQUIREMENTS_FILES
                || !self.named.insert(path.clone())
            {
                continue;
            }
            // pip says it better if it cannot be read.
            if let Ok((text, _)) = read(self.root, &path)
                && let Some(left) = self.left.checked_sub(text.len())
            {
                self.left = left;
                self.read(folder_of(&path), &text);
            }
        }
    }
}

/// The text of a file, and whether it is all of it, as it stands there.
fn read(root: &Root, path: &str) -> Result<(String, bool), OpenError> {
    let file = root.file(path)?;
    let piece = confined::read_whole(&file, limits::SETUP_REQUIREMENTS_BYTES)?;
    let text = decoded(&piece.bytes);
    let is_exact = !piece.more && text.as_bytes() == piece.bytes;
    Ok((text.into_owned(), is_exact))
}

/// The requirements and options in the text of one file.
fn meaningful(text: &str) -> Vec<String> {
    let lines = requirements_text::lines(text).into_iter();
    lines.map(|(_, line)| line).collect()
}

/// The file behind `-r` or `-c`.
fn file_named(line: &str) -> Option<&str> {
    ["--requirement", "--constraint", "-r", "-c"]
        .iter()
        .find_map(|option| line.strip_prefix(option))
        .map(|rest| rest.trim_start_matches('=').trim())
        .filter(|name| !name.is_empty() && !name.contains("://"))
}

/// Lines, as [`level`] has them.
pub(super) fn levelled(lines: &[String]) -> BTreeSet<String> {
    lines.iter().map(|line| level(line)).collect()
}

/// A line as it is compared: spelled in one way, and without logins, which no
/// record holds.
pub(super) fn level(line: &str) -> String {
    spelled(&without_logins(line))
}

/// A line as all spell it that mean the same.
fn spelled(line: &str) -> String {
    let line = line.trim();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let rest = line.trim_start_matches(is_of_name);
    let is_place = rest.contains(['/', '\\']) || syntax::is_archive(line);
    let is_named = !is_place || rest.trim_start().starts_with(['[', '@']);
    if line.starts_with('-') || !is_named {
        return level_place(line);
    }
    // Case is nothing in a name and in its extras.
    let extras = rest.trim_start().starts_with('[');
    let end = rest.find(']').filter(|_| extras).map_or(0, |at| at + 1);
    let (behind_name, name) = (&rest[end..], &line[..line.len() - rest.len() + end]);
    let name = unspaced(name).to_lowercase().replace(['_', '.'], "-");
    match behind_name.trim_start().strip_prefix('@') {
        Some(place) => format!("{name}@{}", level_place(place)),
        None if is_place => name + &level_place(behind_name),
        None => name + &unspaced(behind_name),
    }
}

/// An option, a path or an address: only blanks beside others are nothing, and
/// all of them in a marker.
fn level_place(line: &str) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let marker = [" ;", "; "].iter().filter_map(|mark| line.find(mark)).min();
    let Some((place, marker)) = marker.map(|at| line.split_at(at)) else {
        return words(line);
    };
    words(place) + " " + &unspaced(marker)
}

/// Without blanks; all quotes are the same.
fn unspaced(text: &str) -> String {
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
    fn files_in_a_circle_are_read_once() {
        let folder = Scratch::new(&std::env::temp_dir()).unwrap();
        let named = format!("a\n{}", "-r b.txt\n".repeat(50));
        folder.write("b.txt", named.as_bytes()).unwrap();
        let root = Root::open(folder.path()).unwrap();
        assert_eq!(lines_of(&root, "b.txt").len(), 2 * 51);
        let large = "x".repeat(limits::SETUP_REQUIREMENTS_BYTES - 1);
        for name in ["c.txt", "d.txt"] {
            folder.write(name, large.as_bytes()).unwrap();
        }
        let both = file("-r c.txt\n-r d.txt\n").lines(&root);
        assert_eq!(both.len(), 3, "all files together have one bound");
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

    /// Nobody makes a venv anew for it.
    #[test]
    fn spelling_is_no_change() {
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
            assert_eq!(level(one), level(other), "{one}");
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
            assert_ne!(level(one), level(other), "{one}");
        }
    }

    /// Whatever the file ends in, its requirements stay, and one is added.
    #[test]
    fn what_is_added_is_a_requirement_of_its_own() {
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
