//! What lines of a shell need: the programs that they start, and the packages that they install.

use super::install::{InstallCommand, Installer, install_command, is_before_command};
use super::{LineKind, Needs};
use crate::skills::packages::package_named;
use crate::skills::programs::{is_everywhere, is_known};

/// A reading of a shell's lines, which may be continued and contain texts for other programs.
#[derive(Default)]
pub(super) struct ShellReader {
    /// A line that goes on.
    continued: String,
    /// The line that ends a text in the script (`<<EOF`).
    text_end: Option<String>,
    /// The quote of a text that goes on over lines.
    quote: Option<char>,
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
        let line = line.strip_prefix("$ ").unwrap_or(line);
        if let Some(start) = line.strip_suffix('\\') {
            self.continued.push_str(start);
            self.continued.push(' ');
            return;
        }
        let line = std::mem::take(&mut self.continued) + line;
        if let Some((_, end)) = line.split_once("<<").filter(|(_, end)| !end.starts_with('<')) {
            let end = end.trim_start_matches(['-', '~', ' ', '\'', '"']);
            let length = end.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let end = &end[..length.unwrap_or(end.len())];
            self.text_end = Some(end.to_string()).filter(|end| !end.is_empty());
        }
        read_line(&line, needs);
    }
}

/// Reads the commands of one whole line.
pub(super) fn read_line(line: &str, needs: &mut Needs) {
    for command in commands(line) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let start = words.iter().position(|word| !is_before_command(word));
        let Some(words) = start.map(|start| &words[start..]) else { continue };
        read_command(&command, words, needs);
    }
}

/// Programs that alone are no reason for a shell: a tool of its own runs Python, and files are made
/// without one.
const NO_SHELL: [&str; 10] =
    ["python", "python3", "pip", "pip3", "uv", "echo", "cat", "cd", "mkdir", "export"];

/// Reads a command, whose words are given from the program on.
fn read_command(command: &str, words: &[&str], needs: &mut Needs) {
    let program = words[0].trim_matches(['"', '\'', '(', ')', '{', '}']);
    if !is_program_name(program) {
        return;
    }
    needs.shell |= !NO_SHELL.contains(&program);
    if let Some(InstallCommand { installer, packages, is_run }) = install_command(command) {
        let is_prose = needs.line_kind == LineKind::Prose;
        for package in packages {
            needs.add_package(installer, &package.name);
            let is_known = installer == Installer::Python && package_named(&package.name).is_some();
            if !is_run && (is_known || !is_prose) {
                let requirement = package.requirement.filter(|_| !is_prose);
                needs.infer(installer, &package.name, requirement);
            }
        }
    }
    // A word alone, or with a capital letter, is output or the line of a settings file. A function
    // of the script, or a line of a program in it, is no program.
    let is_likely = needs.line_kind == LineKind::Command
        && program.starts_with(|c: char| c.is_ascii_lowercase())
        && !program.contains('_')
        && words.get(1).is_some_and(|next| !next.starts_with(['=', '(', ':', '<', '>']));
    if !is_everywhere(program) && (is_likely || is_known(program)) {
        needs.named.programs.insert(program.to_string());
    }
    needs.network |= uses_network(words);
}

/// Programs that talk to other machines, whatever their arguments.
const NETWORK: [&str; 28] = [
    "curl", "wget", "gh", "glab", "gcloud", "gsutil", "bq", "aws", "az", "kubectl", "helm", "ssh",
    "scp", "rsync", "sftp", "dig", "nslookup", "ping", "nmap", "vercel", "wrangler", "twilio",
    "yt-dlp", "heroku", "flyctl", "supabase", "shopify", "hf",
];

/// Whether a command talks to other machines.
fn uses_network(words: &[&str]) -> bool {
    let is_local =
        || words.iter().any(|word| word.contains("localhost") || word.contains("127.0.0.1"));
    match words[0] {
        "git" => words.iter().any(|word| {
            matches!(*word, "clone" | "push" | "pull" | "fetch" | "ls-remote" | "submodule")
        }),
        program => NETWORK.contains(&program) && !is_local(),
    }
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
            None if c == '#' && last == ' ' => break,
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
        && word.len() <= crate::limits::PROGRAM_NAME_BYTES
        && word.chars().all(is_part)
        && !word.ends_with(['.', '-'])
        && ![".py", ".sh", ".js", ".ts", ".md", ".json"].iter().any(|end| word.ends_with(end))
}
