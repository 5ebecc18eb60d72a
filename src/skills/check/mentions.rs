//! The files that a document names, found in its text alone.
//!
//! A link must lead to a file of the skill; a path in code may also be a file of the user's
//! project, an example, or a file to be created. So a path in code counts only if it cannot be
//! anything else: false reports would make authors switch the linter off.
//! [`super::references`] checks whether the files exist; nothing here opens one.
//!
//! The time is linear in the length of each line, whatever its content.

use std::collections::BTreeMap;

/// A file that the document names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// Line number in the document, from 1.
    pub line: usize,
    /// Whether it is the target of a Markdown link or image; otherwise code names it.
    pub is_link: bool,
    /// The path as written, without prefix, fragment and query.
    pub path: String,
}

/// Folders that skills have by convention.
const STANDARD_FOLDERS: [&str; 3] = ["scripts", "references", "assets"];

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

/// Programs that run or read the file named after them.
const RUNNERS: [&str; 22] = [
    "python", "python3", "py", "bash", "sh", "zsh", "node", "deno", "bun", "ruby", "perl",
    "Rscript", "pwsh", "source", ".", "cat", "less", "head", "tsx", "ts-node", "run", "exec",
];

/// Parts of placeholder names.
const PLACEHOLDERS: [&str; 10] =
    ["path/to", "your", "example", "foo", "bar.", "xxx", "my-", "my_", "name.", "..."];

/// Words that mark the code in their line as an example, as a file to be created, or as a file
/// of something else: another skill, the user's project, a link's own target.
const ELSEWHERE: [&str; 30] = [
    "example",
    "e.g.",
    "such as",
    "for instance",
    "creat",
    "writ",
    "save",
    "saving",
    "generate",
    "output",
    "append",
    "into ",
    "add",
    "new ",
    "project",
    "repo",
    "codebase",
    "plugin",
    "optional",
    "if present",
    "exists",
    "if available",
    "would be",
    "like ",
    "your ",
    "\u{2019}s `",
    "'s `",
    " own ",
    "no `",
    "`](",
];

/// Returns the files that a body names. `first_line` is the number of its first line in the
/// document, `folders` are the skill's folders.
pub(super) fn find_mentions(body: &str, first_line: usize, folders: &[String]) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut fence = Fence::default();
    let mut is_comment = false;
    for (number, line) in body.lines().enumerate() {
        let mut note = |is_link, path: &str| {
            found.push(Mention { line: first_line + number, is_link, path: path.to_owned() });
        };
        if is_comment {
            is_comment = !line.contains("-->");
        } else if fence.advance(line) {
            // After `# From the root of the repository` paths are not the skill's.
            fence.is_shell &= !(line.trim_start().starts_with('#') && names_elsewhere(line));
            if fence.is_shell {
                find_in_command(line, folders, &mut |path| note(false, path));
            }
        } else if let Some(at) = line.find("<!--") {
            is_comment = !line[at..].contains("-->");
        } else {
            find_in_prose(line, folders, &mut note);
        }
    }
    found
}

/// The state of fenced code: the open fences, and whether the outermost holds shell commands.
#[derive(Default)]
struct Fence {
    marks: Vec<(char, usize)>,
    is_shell: bool,
}

impl Fence {
    /// Reads a line; returns whether it belongs to fenced code, fences included.
    fn advance(&mut self, line: &str) -> bool {
        let text = line.trim_start_matches([' ', '\t', '>']);
        let mark = text.chars().next().filter(|c| "`~".contains(*c));
        let length = mark.map_or(0, |mark| text.len() - text.trim_start_matches(mark).len());
        let was_open = !self.marks.is_empty();
        let Some(mark) = mark.filter(|_| length >= 3) else {
            return was_open;
        };
        let info = text[length..].trim();
        match self.marks.last() {
            // With further backticks it is inline code.
            None if mark == '`' && info.contains('`') => return false,
            None => {
                let language = info.split([' ', '{', ',']).next().unwrap_or_default();
                self.is_shell = ["bash", "sh", "shell", "zsh", "console", "shell-session"]
                    .contains(&language.to_lowercase().as_str());
                self.marks.push((mark, length));
            }
            Some(&(open, least)) if open == mark && length >= least && info.is_empty() => {
                self.marks.pop();
            }
            // Fences do not nest in Markdown, but many templates show code in code.
            Some(&(open, _)) if open == mark && !info.is_empty() && self.marks.len() < 8 => {
                self.marks.push((mark, length));
            }
            Some(_) => {}
        }
        true
    }
}

/// Finds links and inline code in a line of prose.
fn find_in_prose(line: &str, folders: &[String], note: &mut dyn FnMut(bool, &str)) {
    // Only inline code needs the answer.
    let is_elsewhere = line.contains('`') && names_elsewhere(line);
    for (is_code, text) in split_spans(line) {
        if !is_code {
            find_links(text, &mut |path| note(true, path));
        } else if !is_elsewhere {
            find_in_code(text, folders, &mut |path| note(false, path));
        }
    }
}

fn names_elsewhere(line: &str) -> bool {
    let line = line.to_lowercase();
    ELSEWHERE.iter().any(|word| line.contains(word))
}

/// Splits a line into text and inline code; the flag marks code.
fn split_spans(line: &str) -> Vec<(bool, &str)> {
    // The start and length of each run of backticks, and the last run of each length.
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in line.match_indices('`') {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    let last: BTreeMap<usize, usize> = runs.iter().map(|&(at, length)| (length, at)).collect();
    let mut found = Vec::new();
    let mut from = 0;
    let mut runs = runs.into_iter();
    while let Some((at, length)) = runs.next() {
        if last.get(&length) == Some(&at) {
            continue;
        }
        // The text up to the next run of this length is code.
        if let Some((end, _)) = runs.find(|(_, other)| *other == length) {
            found.push((false, &line[from..at]));
            found.push((true, &line[at + length..end]));
            from = end + length;
        }
    }
    found.push((false, &line[from..]));
    found
}

/// The characters that no target of a link contains.
const TARGET_ENDS: [char; 6] = ['(', ')', '[', ']', ' ', '\t'];

/// Finds the targets of links and images in text without code. Each byte is read for one link
/// only, since a bracket ends a target.
fn find_links(text: &str, note: &mut dyn FnMut(&str)) {
    for rest in text.split("](").skip(1) {
        let (target, end) = rest.split_at(rest.find(TARGET_ENDS).unwrap_or_default());
        if end.starts_with([')', ' ']) && is_file_target(target) {
            note(without_fragment(target));
        }
    }
}

/// Whether a link's target is a file of the skill, not an address, a page of a web site (which
/// starts with a slash or has no extension), or a hidden file, which tools create for the user.
fn is_file_target(target: &str) -> bool {
    let path = without_fragment(target);
    let path = path.strip_prefix("./").unwrap_or(path);
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_above = path.starts_with("../");
    let is_path = is_above || (last.contains('.') && !path.starts_with(['/', '~', '.']));
    is_path && !path.contains(':') && !is_placeholder(path)
}

/// Returns a target without fragment and query.
fn without_fragment(target: &str) -> &str {
    target.split(['#', '?']).next().unwrap_or_default()
}

fn is_placeholder(path: &str) -> bool {
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

/// Finds the path in inline code: the code itself, or the file that a command runs or reads.
fn find_in_code(code: &str, folders: &[String], note: &mut dyn FnMut(&str)) {
    let code = code.trim();
    if code.contains(char::is_whitespace) {
        find_in_command(code, folders, note);
    } else if let Some(path) = skill_path(code, folders) {
        note(path);
    }
}

/// Finds paths in a shell command: the program, and the file that it runs or reads.
fn find_in_command(line: &str, folders: &[String], note: &mut dyn FnMut(&str)) {
    let line = line.trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    // After `cd` a path may be anywhere.
    if line.starts_with('#') || line.starts_with("cd ") || line.contains("&& cd ") {
        return;
    }
    let mut may_name = true;
    for word in line.split_whitespace() {
        let word = word.trim_matches(['"', '\'', '(', ')', ';', '`']);
        if may_name && let Some(path) = skill_path(word, folders) {
            note(path);
        }
        let is_start = matches!(word, "&&" | "||" | "|" | ";" | "then" | "do" | "sudo" | "time");
        let is_option = may_name && word.starts_with('-') && word.len() > 1 && word != "-m";
        may_name = is_start || is_option || RUNNERS.contains(&word);
    }
}

/// Returns the path in a word of code if it is one of the skill.
fn skill_path<'a>(word: &'a str, folders: &[String]) -> Option<&'a str> {
    let given = SKILL_FOLDER_PREFIXES.iter().find_map(|mark| word.strip_prefix(mark));
    let path = given.unwrap_or(word);
    let path = path.strip_prefix("./").unwrap_or(path);
    let path = path.split(['#', ':', '?']).next().unwrap_or_default();
    let path = path.trim_end_matches(['.', ',', ')']);
    let (folder, _) = path.split_once('/')?;
    let is_known = STANDARD_FOLDERS.contains(&folder) || folders.iter().any(|name| name == folder);
    let (stem, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
    let is_file = !stem.is_empty()
        && (1..=5).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.bytes().all(|b| b.is_ascii_alphanumeric());
    ((is_known || given.is_some()) && is_file && !is_placeholder(path)).then_some(path)
}
