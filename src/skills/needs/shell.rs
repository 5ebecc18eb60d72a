//! Needs of lines of a shell: the programs that they start, the packages that they install, and the
//! hosts in their addresses.

use super::Needs;
use super::install::{Installer, install_command, is_before_command};
use crate::programs::is_everywhere;
use crate::words::split_words;
use base::limits;

/// A reading of a shell's lines, which may be continued and contain texts for other programs.
#[derive(Default)]
pub(super) struct ShellReader {
    /// A line that goes on.
    continued: String,
    /// The line that ends a text in the script (`<<EOF`).
    text_end: Option<String>,
    /// The quote of a text that goes on over lines.
    quote: Option<char>,
    /// A line had a prompt: those without one are output.
    has_prompt: bool,
}

impl ShellReader {
    /// Reads the next line.
    pub(super) fn read(&mut self, line: &str, needs: &mut Needs) {
        let line = line.trim();
        if let Some(end) = &self.text_end {
            if line == end {
                self.text_end = None;
            }
            return;
        }
        let was_quoted = self.quote.is_some();
        self.quote = open_quote(line, self.quote);
        if was_quoted {
            return;
        }
        let prompted = line.strip_prefix("$ ").filter(|_| self.continued.is_empty());
        if prompted.is_none() && self.has_prompt && self.continued.is_empty() {
            return;
        }
        self.has_prompt |= prompted.is_some();
        let line = prompted.unwrap_or(line);
        if let Some(start) = line.strip_suffix('\\') {
            self.continued.push_str(start);
            self.continued.push(' ');
            return;
        }
        let line = std::mem::take(&mut self.continued) + line;
        if let Some((_, end)) = line.split_once("<<").filter(|(_, end)| !end.starts_with('<')) {
            let end = end.trim_start_matches(['-', '~', ' ', '\'', '"']);
            let length = end.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            let end = &end[..length.unwrap_or(end.len())];
            // Of `1 << 2` the rest is no text.
            let is_word =
                |end: &String| end.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            self.text_end = Some(end.to_string()).filter(is_word);
        }
        read_line(&line, needs);
    }
}

/// Reads the commands of one whole line.
fn read_line(line: &str, needs: &mut Needs) {
    for command in commands(line) {
        let words = split_words(&command, limits::LISTED_NAMES);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let start = words.iter().position(|word| !is_before_command(word));
        let Some(start) = start else { continue };
        read_command(&command, &words[start..], needs);
    }
}

/// Reads a command, whose words are given from the program on.
fn read_command(command: &str, words: &[&str], needs: &mut Needs) {
    let program = words[0].trim_matches(['"', '\'', '(', ')', '{', '}']);
    let next = words.get(1).copied().unwrap_or_default();
    if let Some((name, _)) = words[0].split_once("()") {
        needs.functions.insert(name.to_string());
    } else if program == "function" || next.starts_with("()") {
        let name = if program == "function" { next } else { program };
        needs.functions.insert(name.trim_end_matches("()").to_string());
    }
    if !is_program_name(program) {
        return;
    }
    if let Some((installer, packages)) = install_command(command) {
        for package in packages {
            needs.named.add(installer, &package.name);
            if installer == Installer::Python {
                needs.infer(package);
            }
        }
    }
    if !is_everywhere(program) {
        needs.named.programs.insert(program.to_string());
    }
    needs.hosts.extend(words[1..].iter().filter_map(|word| host_in(word)));
}

/// The name of another machine in a word with an address: `api.example.com`.
fn host_in(word: &str) -> Option<String> {
    let (_, rest) = word.split_once("://")?;
    let host = rest.split(['/', ':', '?', '#']).next()?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let is_name = host.contains('.')
        && host.chars().all(is_part)
        && host.ends_with(|c: char| c.is_ascii_alphabetic());
    is_name.then(|| host.to_ascii_lowercase())
}

/// The quote that is open at the end of a line.
fn open_quote(line: &str, mut open: Option<char>) -> Option<char> {
    let mut last = ' ';
    for c in line.chars() {
        match open {
            Some(quote) if c == quote && last != '\\' => open = None,
            None if c == '#' && last == ' ' => break,
            // `don't` has no quote.
            None if (c == '"' || c == '\'') && !last.is_alphanumeric() && last != '\\' => {
                open = Some(c);
            }
            _ => {}
        }
        last = c;
    }
    open
}

/// Splits a line into its commands, outside of quotes and comments.
fn commands(line: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    let mut quote = None;
    let mut last = ' ';
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let is_substitution = c == '$' && chars.peek() == Some(&'(') && quote != Some('\'');
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '#' && last.is_whitespace() => break,
            // `2>&1` is no end of a command.
            None if matches!(c, '|' | '&' | ';' | '`') && !(c == '&' && last == '>') => {
                commands.push(String::new());
                last = ' ';
                continue;
            }
            _ => {}
        }
        if is_substitution {
            chars.next();
            quote = None;
            commands.push(String::new());
            continue;
        }
        last = c;
        if let Some(command) = commands.last_mut() {
            command.push(c);
        }
    }
    commands
}

/// Whether a word can be the name of a program that is found on the search path.
fn is_program_name(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.len() <= limits::PROGRAM_NAME_BYTES
        && word.chars().all(is_part)
        && !word.ends_with(['.', '-'])
        && ![".py", ".sh", ".js", ".ts", ".md", ".json"].iter().any(|end| word.ends_with(end))
}
