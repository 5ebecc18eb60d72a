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

/// Folders in the root of a file system that are unlikely in a web site.
const SYSTEM_FOLDERS: [&str; 14] = [
    "Applications",
    "Library",
    "Users",
    "Volumes",
    "bin",
    "etc",
    "home",
    "mnt",
    "opt",
    "private",
    "root",
    "tmp",
    "usr",
    "var",
];

/// Programs that run or read the file named after them.
const RUNNERS: [&str; 22] = [
    "python", "python3", "py", "bash", "sh", "zsh", "node", "deno", "bun", "ruby", "perl",
    "Rscript", "pwsh", "source", ".", "cat", "less", "head", "tsx", "ts-node", "run", "exec",
];

/// Parts of placeholder names.
const PLACEHOLDERS: [&str; 15] = [
    "path/to",
    "your",
    "example",
    "foo",
    "bar.",
    "xxx",
    "yyy",
    "nnn",
    "placeholder",
    "my-",
    "my_",
    "template-name",
    "filename",
    "_name.",
    "...",
];

/// Words that mark a path in the same line as an example or as a file to be created.
const EXAMPLES: [&str; 34] = [
    "example",
    "e.g.",
    "such as",
    "for instance",
    "create",
    "creating",
    "write",
    "save",
    "saving",
    "generate",
    "output",
    "append",
    "into ",
    "add ",
    "adding",
    "new ",
    "project",
    "repo",
    "optional",
    "if present",
    "if it exists",
    "if exists",
    "if available",
    "may contain",
    "would be",
    "like ",
    "your ",
    "codebase",
    "plugin_root",
    "plugin root",
    "plugin-level",
    "preferred",
    "✅",
    "❌",
];

/// Returns the files that a body names. `first_line` is the number of its first line in the
/// document, `folders` are the skill's folders.
pub(super) fn find_mentions(body: &str, first_line: usize, folders: &[String]) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut fence = Fence::default();
    let mut is_comment = false;
    let mut before = "";
    for (number, line) in body.lines().enumerate() {
        let mut note = |is_link, path: &str| {
            found.push(Mention { line: first_line + number, is_link, path: path.to_owned() });
        };
        if is_comment {
            is_comment = !line.contains("-->");
        } else if fence.advance(line) {
            // After `# From the root of the repository` paths are not the skill's.
            fence.is_shell &= !(line.trim_start().starts_with('#') && is_example(line));
            if fence.is_shell {
                find_in_command(line, folders, &mut |path| note(false, path));
            }
        } else if let Some(at) = line.find("<!--") {
            is_comment = !line[at..].contains("-->");
        } else {
            find_in_prose(line, before, folders, &mut note);
        }
        before = line;
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

/// Finds links and inline code in a line of prose; `above` is the line above it.
fn find_in_prose(line: &str, above: &str, folders: &[String], note: &mut dyn FnMut(bool, &str)) {
    if let Some(path) = link_definition(line) {
        return note(true, path);
    }
    // Only inline code needs the answer.
    let is_example = line.contains('`') && is_example(line);
    let mut before = above;
    let spans = split_spans(line);
    for (at, (is_code, text)) in spans.iter().enumerate() {
        let is_last = at + 2 >= spans.len();
        let after = spans.get(at + 1).map_or("", |(_, after)| after);
        if !is_code {
            find_links(text, &mut |path| note(true, path));
        } else if !is_example
            && !ends_with_owner(before)
            && !after.starts_with("](")
            && (is_last || !says_elsewhere(after))
        {
            find_in_code(text, folders, &mut |path| note(false, path));
        }
        if !text.trim().is_empty() {
            before = text;
        }
    }
}

fn is_example(line: &str) -> bool {
    let line = line.to_lowercase();
    EXAMPLES.iter().any(|word| line.contains(word))
}

/// Whether the path after this text belongs to something else ("the skill's", "its own"), or
/// is said not to exist.
fn ends_with_owner(before: &str) -> bool {
    let before = before.trim_end();
    let ends = ["'s", "\u{2019}s", " its", " own", "No", " no"];
    ends.iter().any(|end| before.ends_with(end))
}

/// Whether the text after a path says that the file is elsewhere: "in `other`".
fn says_elsewhere(after: &str) -> bool {
    let after = after.trim_start();
    let rest = after.strip_prefix("in ").or_else(|| after.strip_prefix("of "));
    let rest = rest.map(|rest| rest.strip_prefix("the ").unwrap_or(rest));
    rest.is_some_and(|rest| rest.trim().is_empty() || rest.trim() == "skill")
}

/// Returns the path of a link definition, `[label]: path`; footnotes are not definitions.
fn link_definition(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('[')?;
    let (label, rest) = rest.split_once("]:")?;
    let is_label = !label.starts_with('^') && !label.contains(['[', ']', '`']);
    let target = rest.split_whitespace().next()?;
    let target = target.strip_prefix('<').unwrap_or(target);
    let target = target.strip_suffix('>').unwrap_or(target);
    (is_label && is_file_target(target)).then_some(without_fragment(target))
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
    let mut last = BTreeMap::new();
    for &(at, length) in &runs {
        last.insert(length, at);
    }
    let mut found = Vec::new();
    let (mut from, mut index) = (0, 0);
    while let Some(&(at, length)) = runs.get(index) {
        index += 1;
        if last.get(&length) == Some(&at) {
            continue;
        }
        // The text up to the next run of this length is code.
        while let Some(&(end, other)) = runs.get(index) {
            index += 1;
            if other == length {
                found.push((false, &line[from..at]));
                found.push((true, &line[at + length..end]));
                from = end + length;
                break;
            }
        }
    }
    found.push((false, &line[from..]));
    found
}

/// Finds the targets of links and images in text without code.
fn find_links(text: &str, note: &mut dyn FnMut(&str)) {
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        if let Some(target) = link_target(rest).filter(|target| is_file_target(target)) {
            note(without_fragment(target));
        }
    }
}

/// Returns the target of a link that starts here. A bracket ends the search, so that no byte is
/// read for two links.
fn link_target(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(' ');
    if let Some(inner) = text.strip_prefix('<') {
        let end = inner.find(['>', '<', ']'])?;
        return inner[end..].starts_with('>').then_some(&inner[..end]);
    }
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(&text[..at]),
            ')' => depth -= 1,
            ' ' | '\t' => {
                let is_title = text[at..].trim_start().starts_with(['"', '\'', '(', ')']);
                return is_title.then_some(&text[..at]);
            }
            '[' | ']' => return None,
            _ => {}
        }
    }
    None
}

/// Whether a link's target is a file of the skill.
fn is_file_target(target: &str) -> bool {
    let scheme = target.split(':').next().unwrap_or_default();
    let has_scheme = scheme.len() < target.len()
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let path = without_fragment(target);
    // A word without an extension may as well be a wiki page.
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_path = (last.is_empty() || last.contains('.')) && !path.starts_with(['/', '~', '\\'])
        || path.starts_with("../")
        || is_system_path(path);
    // Tools create hidden files, in the user's folder.
    let is_hidden = path.starts_with('.') && !path.starts_with("./") && !path.starts_with("../");
    !has_scheme && is_path && !is_hidden && !path.is_empty() && !is_placeholder(path)
}

/// Whether an absolute path is one of the file system. Other links that start with a slash are
/// pages of a web site.
pub(super) fn is_system_path(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("") && parts.next().is_some_and(|top| SYSTEM_FOLDERS.contains(&top))
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
    if code.contains(char::is_whitespace) && !code.starts_with(SKILL_FOLDER_PREFIXES[6]) {
        find_in_command(code, folders, note);
    } else if let Some(path) = skill_path(code, folders) {
        note(path);
    }
}

/// Finds paths in a shell command: the program, and the file that it runs or reads.
fn find_in_command(line: &str, folders: &[String], note: &mut dyn FnMut(&str)) {
    let line = line.trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    if line.starts_with('#') {
        return;
    }
    // After `cd` a path may be anywhere.
    if line.starts_with("cd ") || line.contains("&& cd ") {
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
    let is_sure = given.is_some();
    let path = given.unwrap_or(word);
    let path = path.strip_prefix("./").unwrap_or(path);
    let path = path.split(['#', ':', '?']).next().unwrap_or_default();
    let path = path.trim_end_matches(['.', ',', ')']);
    let (folder, _) = path.split_once('/')?;
    let is_known = STANDARD_FOLDERS.contains(&folder) || folders.iter().any(|name| name == folder);
    let is_file = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).is_some_and(
        |(stem, extension)| {
            !stem.is_empty()
                && (1..=5).contains(&extension.len())
                && extension.starts_with(|c: char| c.is_ascii_alphabetic())
                && extension.bytes().all(|b| b.is_ascii_alphanumeric())
        },
    );
    ((is_known || is_sure) && is_file && !is_placeholder(path)).then_some(path)
}
