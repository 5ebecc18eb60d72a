//! Which files a document names, by its text alone.
//!
//! Links are promises; a path in code may as well be a file of the user's
//! project, an example, or something that is yet to be made. So of code only
//! that counts which looks like nothing else, and what is left out is left out
//! on purpose: a linter that cries wolf is switched off. Whether the files are
//! there is for [`super::references`]; nothing here opens one.
//!
//! Every line is looked at a bounded number of times, whatever stands in it.

use std::collections::BTreeMap;

/// A file that the document names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// Counted from 1, in the whole document.
    pub line: usize,
    /// Whether a Markdown link or image leads there, or code names it.
    pub is_link: bool,
    /// As it is written, but for what stands in front of it or behind it.
    pub path: String,
}

/// The folders that every skill may have by custom.
const CUSTOMARY: [&str; 3] = ["scripts", "references", "assets"];

/// What clients put the skill's folder for.
const SKILL_FOLDER: [&str; 8] = [
    "${CLAUDE_SKILL_DIR}/",
    "$CLAUDE_SKILL_DIR/",
    "${SKILL_DIR}/",
    "$SKILL_DIR/",
    "{baseDir}/",
    "{SKILL_DIR}/",
    "<SKILL_DIR>/",
    "<skill-dir>/",
];

/// What lies in the root of a machine, and hardly of a web site.
const SYSTEM: [&str; 14] = [
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

/// What is put in front of a file to run or to read it.
const RUNNERS: [&str; 22] = [
    "python", "python3", "py", "bash", "sh", "zsh", "node", "deno", "bun", "ruby", "perl",
    "Rscript", "pwsh", "source", ".", "cat", "less", "head", "tsx", "ts-node", "run", "exec",
];

/// Marks of names that stand for others.
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

/// Words that make the line around a path in code an example, or a thing to be
/// made.
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

/// The files that a body names; `first_line` is its first line's number in the
/// document, `folders` are the folders that the skill has.
pub(super) fn mentions(body: &str, first_line: usize, folders: &[String]) -> Vec<Mention> {
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
        } else if fence.takes(line) {
            // `# From the root of the repository`: no place of the skill.
            fence.is_shell &= !(line.trim_start().starts_with('#') && is_example(line));
            if fence.is_shell {
                in_command(line, folders, &mut |path| note(false, path));
            }
        } else if let Some(at) = line.find("<!--") {
            is_comment = !line[at..].contains("-->");
        } else {
            in_prose(line, before, folders, &mut note);
        }
        before = line;
    }
    found
}

/// The state of fenced code: how deep, and what the outermost fence is.
#[derive(Default)]
struct Fence {
    marks: Vec<(char, usize)>,
    is_shell: bool,
}

impl Fence {
    /// Whether the line belongs to fenced code, its fences included.
    fn takes(&mut self, line: &str) -> bool {
        let text = line.trim_start_matches([' ', '\t', '>']);
        let mark = text.chars().next().filter(|c| "`~".contains(*c));
        let length = mark.map_or(0, |mark| text.len() - text.trim_start_matches(mark).len());
        let was_open = !self.marks.is_empty();
        let Some(mark) = mark.filter(|_| length >= 3) else {
            return was_open;
        };
        let info = text[length..].trim();
        match self.marks.last() {
            // Backticks behind it make it inline code.
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
            // Strictly nothing nests, but many a template shows code in code.
            Some(&(open, _)) if open == mark && !info.is_empty() && self.marks.len() < 8 => {
                self.marks.push((mark, length));
            }
            Some(_) => {}
        }
        true
    }
}

/// Links and inline code of a line of prose, which stands below another line.
fn in_prose(line: &str, above: &str, folders: &[String], note: &mut dyn FnMut(bool, &str)) {
    if let Some(path) = definition(line) {
        return note(true, path);
    }
    // Only code is asked about.
    let is_example = line.contains('`') && is_example(line);
    let mut before = above;
    let spans = spans(line);
    for (at, (is_code, text)) in spans.iter().enumerate() {
        let is_last = at + 2 >= spans.len();
        let after = spans.get(at + 1).map_or("", |(_, after)| after);
        if !is_code {
            in_text(text, &mut |path| note(true, path));
        } else if !is_example
            && !is_owned(before)
            && !after.starts_with("](")
            && (is_last || !is_elsewhere(after))
        {
            in_code(text, folders, &mut |path| note(false, path));
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

/// Whether what follows this text is somebody else's ("the skill's", "its
/// own"), or is said not to be there.
fn is_owned(before: &str) -> bool {
    let before = before.trim_end();
    let ends = ["'s", "\u{2019}s", " its", " own", "No", " no"];
    ends.iter().any(|end| before.ends_with(end))
}

/// Whether the text behind a path says that it lies elsewhere: "in `other`".
fn is_elsewhere(after: &str) -> bool {
    let after = after.trim_start();
    let rest = after.strip_prefix("in ").or_else(|| after.strip_prefix("of "));
    let rest = rest.map(|rest| rest.strip_prefix("the ").unwrap_or(rest));
    rest.is_some_and(|rest| rest.trim().is_empty() || rest.trim() == "skill")
}

/// `[label]: path`, which is no footnote.
fn definition(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('[')?;
    let (label, rest) = rest.split_once("]:")?;
    let is_label = !label.starts_with('^') && !label.contains(['[', ']', '`']);
    let target = rest.split_whitespace().next()?;
    let target = target.strip_prefix('<').unwrap_or(target);
    let target = target.strip_suffix('>').unwrap_or(target);
    (is_label && is_target(target)).then_some(clean(target))
}

/// The line in turns of text and inline code.
fn spans(line: &str) -> Vec<(bool, &str)> {
    // Where each run of backticks begins, and the last place of each length.
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
        // There is a later run of this length: what lies between is code.
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

/// Targets of links and images in text without code.
fn in_text(text: &str, note: &mut dyn FnMut(&str)) {
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        if let Some(target) = target(rest).filter(|target| is_target(target)) {
            note(clean(target));
        }
    }
}

/// The target of a link that begins here. A bracket ends the search, so that
/// no byte is looked at for two links.
fn target(text: &str) -> Option<&str> {
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

/// Whether a link's target means a file of the skill.
fn is_target(target: &str) -> bool {
    let scheme = target.split(':').next().unwrap_or_default();
    let has_scheme = scheme.len() < target.len()
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let path = clean(target);
    // A word without an extension is as often a page of a wiki, or of nothing.
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_path = (last.is_empty() || last.contains('.')) && !path.starts_with(['/', '~', '\\'])
        || path.starts_with("../")
        || is_of_system(path);
    // What begins with a dot is made by tools, in the user's folder.
    let is_hidden = path.starts_with('.') && !path.starts_with("./") && !path.starts_with("../");
    !has_scheme && is_path && !is_hidden && !path.is_empty() && !is_placeholder(path)
}

/// Whether a path begins at the root of a machine. Other links that begin with
/// a slash are pages of a web site.
pub(super) fn is_of_system(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("") && parts.next().is_some_and(|top| SYSTEM.contains(&top))
}

/// A target without fragment and query.
fn clean(target: &str) -> &str {
    target.split(['#', '?']).next().unwrap_or_default()
}

fn is_placeholder(path: &str) -> bool {
    let lower = path.to_lowercase();
    // `phaseN.md` is one of several.
    let is_counted = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default();
        let rest = stem.strip_suffix(['N', 'X']);
        rest.is_some_and(|rest| !rest.ends_with(|c: char| c.is_uppercase()))
    };
    path.contains(|c: char| "<>{}$*[]|…\\@=,;'\"".contains(c))
        || PLACEHOLDERS.iter().any(|word| lower.contains(word))
        || path.split('/').any(is_counted)
}

/// Inline code: one path, or a command that runs or reads one.
fn in_code(code: &str, folders: &[String], note: &mut dyn FnMut(&str)) {
    let code = code.trim();
    if code.contains(char::is_whitespace) && !code.starts_with(SKILL_FOLDER[6]) {
        in_command(code, folders, note);
    } else if let Some(path) = path_of(code, folders) {
        note(path);
    }
}

/// A line of a shell: the program, and what is run or read by one.
fn in_command(line: &str, folders: &[String], note: &mut dyn FnMut(&str)) {
    let line = line.trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    if line.starts_with('#') {
        return;
    }
    // Behind a change of folders a path may mean anything.
    if line.starts_with("cd ") || line.contains("&& cd ") {
        return;
    }
    let mut may_name = true;
    for word in line.split_whitespace() {
        let word = word.trim_matches(['"', '\'', '(', ')', ';', '`']);
        if may_name && let Some(path) = path_of(word, folders) {
            note(path);
        }
        let is_start = matches!(word, "&&" | "||" | "|" | ";" | "then" | "do" | "sudo" | "time");
        let is_option = may_name && word.starts_with('-') && word.len() > 1 && word != "-m";
        may_name = is_start || is_option || RUNNERS.contains(&word);
    }
}

/// The path in a word of code, if it is one of the skill.
fn path_of<'a>(word: &'a str, folders: &[String]) -> Option<&'a str> {
    let given = SKILL_FOLDER.iter().find_map(|mark| word.strip_prefix(mark));
    let is_sure = given.is_some();
    let path = given.unwrap_or(word);
    let path = path.strip_prefix("./").unwrap_or(path);
    let path = path.split(['#', ':', '?']).next().unwrap_or_default();
    let path = path.trim_end_matches(['.', ',', ')']);
    let (folder, _) = path.split_once('/')?;
    let is_known = CUSTOMARY.contains(&folder) || folders.iter().any(|name| name == folder);
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
