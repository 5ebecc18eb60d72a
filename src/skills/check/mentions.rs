//! The files that a document names, found in its text alone.
//!
//! A link must lead to a file of the skill; a path in code may also be a file of the user's
//! project, an example, or a file to be created. So a path in code counts only if it cannot be
//! anything else: false reports would make authors switch the linter off.
//! [`super::references`] checks whether the files exist; nothing here opens one.
//!
//! The time is linear in the length of each line, whatever its content.

use std::collections::BTreeMap;

use super::own_paths::{MentionContext, is_placeholder};
use base::text::{FenceLine, OpenFences, fence_language, is_shell_language};

/// A file that a document names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// Line number in the document, from 1.
    pub line: usize,
    /// How it is named.
    pub kind: MentionKind,
    /// Whether the file may be missing on purpose: in a quotation, a template, a condition.
    pub is_doubtful: bool,
    /// The path as written, without prefix, fragment and query.
    pub path: String,
}

/// How a document names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MentionKind {
    /// As the target of a Markdown link or image.
    Link,
    /// As a path in the text, in code or in a command.
    Path,
    /// As a command, which executes the file itself.
    Command,
}

/// Programs that run or read the file named after them.
const RUNNERS: [&str; 22] = [
    "python", "python3", "py", "bash", "sh", "zsh", "node", "deno", "bun", "ruby", "perl",
    "Rscript", "pwsh", "source", ".", "cat", "less", "head", "tsx", "ts-node", "run", "exec",
];

/// Words that mark the code in their line as an example, as a file to be created, or as a file
/// of something else: another skill, the user's project, a link's own target.
const ELSEWHERE: [&str; 32] = [
    "cache",
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
    "its `",
    " own ",
    "no `",
    "`](",
];

/// Words directly before a path that ask the model to read it, whatever else the line says.
const READING: [&str; 8] =
    ["see", "read", "open", "load", "refer to", "consult", "follow", "check"];

/// Words that mark a file as one that may be missing.
const CONDITIONS: [&str; 6] =
    ["exist", "if present", "if available", "if any", "optional", "when available"];

/// Words between a file and the other skill that has it: "`a.md` in the `b` skill".
const OWNED: [&str; 3] = ["in the", "of the", "from the"];

/// Returns the files that a text names. `first_line` is the number of its first line in the
/// document.
pub(super) fn find_mentions(
    text: &str,
    first_line: usize,
    context: &MentionContext,
) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut fence = FencedCode::default();
    let mut is_comment = false;
    let mut is_template = false;
    // Without scripts in the skill they are the user's, or those of a cloned repository.
    let has_scripts =
        context.has("scripts") || (context.is_document && !text.contains("git clone"));
    let mut is_others = false;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let mut note = |kind, is_doubtful, path: &str| {
            if has_scripts || !path.starts_with("scripts/") {
                let (line, path) = (first_line + number, path.to_owned());
                found.push(Mention { line, kind, is_doubtful, path });
            }
        };
        if is_comment {
            is_comment = !line.contains("-->");
        } else if fence.advance(line) {
            fence.read_command(line, context, &mut |kind, path| note(kind, false, path));
        } else if let Some(at) = line.find("<!--") {
            is_comment = !line[at..].contains("-->");
        } else {
            if line.starts_with('#') {
                is_template = is_template_heading(line);
                // The heading of a file's content may name that file.
                let mut below = lines.clone().filter(|(_, line)| !line.trim().is_empty());
                if below.next().is_some_and(|(_, line)| line.starts_with("```")) {
                    continue;
                }
            }
            if !is_others {
                find_in_prose(line, is_template, context, &mut note);
            }
            is_others = ends_with_owner(line);
        }
    }
    found
}

/// Whether the section of a heading shows what another file may contain: a template, an output,
/// an example, or the file that the heading names.
fn is_template_heading(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    ["template", "output", "example", "format"].iter().any(|word| lower.contains(word))
        || split_spans(heading).iter().any(|(is_code, text)| *is_code && text.contains('.'))
}

/// The state of fenced code: the open fences, whether the outermost holds shell commands, and
/// whether a command continues on the next line.
#[derive(Default)]
struct FencedCode {
    fences: OpenFences,
    is_shell: bool,
    /// Without a language it may be the output of commands, too.
    is_plain: bool,
    is_continued: bool,
}

impl FencedCode {
    /// Reads a line; returns whether it belongs to fenced code, fences included.
    fn advance(&mut self, line: &str) -> bool {
        let line = self.fences.advance(line);
        if let FenceLine::Open(info) = line {
            let language = fence_language(info);
            self.is_shell = is_shell_language(&language);
            self.is_plain = language.is_empty();
            self.is_continued = false;
        }
        line != FenceLine::Outside
    }

    /// Finds the paths in a line of shell commands.
    fn read_command(
        &mut self,
        line: &str,
        context: &MentionContext,
        note: &mut dyn FnMut(MentionKind, &str),
    ) {
        // After `cd` paths are not the skill's.
        let leaves_skill = changes_folder(line);
        self.is_shell &= !leaves_skill;
        self.is_plain &= !leaves_skill;
        let is_prompt = line.starts_with("./") || line.starts_with("$ ");
        let is_command = self.is_shell || (self.is_plain && is_prompt);
        if is_command && !self.is_continued {
            find_in_command(line, context, note);
        }
        self.is_continued = line.ends_with('\\');
    }
}

/// Whether the paths in later commands are relative to another folder.
fn changes_folder(command: &str) -> bool {
    let command = command.trim_start();
    command.trim_start_matches("$ ").starts_with("cd ") || command.contains("&& cd ")
}

/// Finds links, inline code and paths in a line of prose.
fn find_in_prose(
    line: &str,
    is_template: bool,
    context: &MentionContext,
    note: &mut dyn FnMut(MentionKind, bool, &str),
) {
    // Only paths need the answers.
    if !line.contains(['/', '`', ']']) {
        return;
    }
    let is_elsewhere = names_elsewhere(line);
    let lower = line.to_lowercase();
    let is_conditional = line.trim_start().starts_with('>')
        || CONDITIONS.iter().any(|condition| lower.contains(condition));
    let is_example = is_template || is_elsewhere || has_placeholder(line);
    let mut is_read = false;
    let spans = split_spans(line);
    for (at, &(is_code, text)) in spans.iter().enumerate() {
        let is_conditional =
            is_conditional || is_owned(spans.get(at + usize::from(is_code)..).unwrap_or_default());
        let is_named = std::mem::replace(&mut is_read, !is_code && ends_with_reading(text));
        if !is_code {
            find_links(text, &mut |path| {
                let is_doubtful = is_conditional || (is_example && !context.is_known(path));
                note(MentionKind::Link, is_doubtful, path);
            });
        }
        // What a command runs is a reference, whatever the sentence says.
        let is_command = is_code && text.trim().contains(char::is_whitespace);
        if is_elsewhere && !is_named && !is_command {
            continue;
        }
        let is_conditional = is_conditional && !is_command;
        let is_doubtful = is_conditional || is_template || context.is_about_skills();
        let mut note = |kind, path: &str| note(kind, is_doubtful, path);
        if is_code {
            find_in_code(text, context, &mut note);
        } else {
            for word in text.split_whitespace() {
                let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
                if context.is_known(word)
                    && let Some(path) = context.skill_path(word)
                {
                    note(MentionKind::Path, path);
                }
            }
        }
    }
}

/// Whether a file directly before these spans is of another skill, which they name.
fn is_owned(spans: &[(bool, &str)]) -> bool {
    let [(_, joint), (_, _), (_, behind), ..] = spans else { return false };
    let joint = joint.rsplit([')', '`']).next().unwrap_or_default().trim();
    OWNED.contains(&joint) && behind.starts_with(" skill")
}

/// Whether a line ends before a file of something else: "see `other`'s".
fn ends_with_owner(line: &str) -> bool {
    let line = line.trim_end();
    ["'s", "\u{2019}s", "`'", " its"].iter().any(|end| line.ends_with(end))
}

fn ends_with_reading(text: &str) -> bool {
    let text = text.trim_end_matches([' ', '*', '(', '[']).to_lowercase();
    let text = text.trim_end_matches("the").trim_end();
    READING.iter().any(|word| text.ends_with(word))
}

/// Whether a line has words in brackets that are no link: `[Description]`.
fn has_placeholder(line: &str) -> bool {
    line.split('[').skip(1).any(|rest| {
        let is_word = rest.starts_with(char::is_alphabetic);
        is_word
            && rest.split_once(']').is_some_and(|(inner, after)| {
                inner.len() > 1 && !after.starts_with(['(', '[', ':'])
            })
    })
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

/// Finds the path in inline code: the code itself, or the file that a command runs or reads.
/// Text names a script with its options without meaning a line for a shell.
fn find_in_code(code: &str, context: &MentionContext, note: &mut dyn FnMut(MentionKind, &str)) {
    let code = code.trim();
    if code.contains(char::is_whitespace) {
        if !changes_folder(code) {
            find_in_command(code, context, &mut |kind, path| match kind {
                MentionKind::Command if !code.starts_with("$ ") => note(MentionKind::Path, path),
                _ => note(kind, path),
            });
        }
    } else if let Some(path) = context.skill_path(code) {
        note(MentionKind::Path, path);
    }
}

/// Finds paths in a shell command: the program, and the file that it runs or reads.
fn find_in_command(line: &str, context: &MentionContext, note: &mut dyn FnMut(MentionKind, &str)) {
    let line = line.trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    if line.starts_with('#') {
        return;
    }
    // How a path at this place is named; `None`: it may be any argument.
    let mut place = Some(MentionKind::Command);
    for word in line.split_whitespace() {
        let word = word.rsplit("$(").next().unwrap_or_default();
        let word = word.trim_matches(['"', '\'', '(', ')', ';', '`']);
        if let Some(kind) = place
            && let Some(path) = context.script_path(word)
            && (kind != MentionKind::Command || context.is_own(word))
        {
            note(kind, path);
        }
        let is_start = matches!(word, "&&" | "||" | "|" | ";" | "then" | "do" | "sudo" | "time");
        let is_option = word.starts_with('-') && word.len() > 1 && word != "-m";
        place = if is_start || (place == Some(MentionKind::Command) && is_assignment(word)) {
            Some(MentionKind::Command)
        } else if RUNNERS.contains(&word) {
            Some(MentionKind::Path)
        } else {
            place.filter(|_| is_option)
        };
    }
}

/// Whether a word of a command sets a variable for it.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
