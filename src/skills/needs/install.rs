//! Lines that install packages: `pip install NAME`, `npm install NAME` and their like.

use crate::packages::{is_archive, package_name};
use crate::words::split_words;
use base::limits;

/// The kind of the packages that a line installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Installer {
    /// Python packages.
    Python,
    /// Packages of npm.
    Npm,
}

/// A package that a command installs.
pub(super) struct NamedPackage {
    /// Of Python normalized, of npm with the scope.
    pub(super) name: String,
    /// Of Python the name with its versions, as in the command. `None`: it has an address or a
    /// condition, or the command may install from elsewhere.
    pub(super) requirement: Option<String>,
}

/// Packages that install others: they are no need of a skill.
const INSTALLERS: [&str; 4] = ["npm", "pip", "setuptools", "wheel"];

/// Reads a command. `None`: it installs nothing.
pub(super) fn install_command(command: &str) -> Option<(Installer, Vec<NamedPackage>)> {
    let words = split_words(command, limits::LISTED_NAMES);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let start = words.iter().position(|word| !is_before_command(word))?;
    let (before, words) = words.split_at(start);
    let (installer, rest) = arguments(words)?;
    let is_setting = |word: &&str| {
        let word = word.to_ascii_lowercase();
        ["pip_", "uv_"].iter().any(|start| word.starts_with(start))
    };
    let mut is_usual_source = !before.iter().any(is_setting);
    let mut packages: Vec<NamedPackage> = Vec::new();
    let mut rest = rest.iter().peekable();
    while let Some(word) = rest.next() {
        if word.starts_with('-') {
            is_usual_source &= HARMLESS.contains(word);
            if WITH_VALUE.contains(word) {
                rest.next();
            }
            continue;
        }
        let word = word.trim_matches([',', ')', '(', '`']);
        let name = match installer {
            Installer::Python => package_name(word).filter(|_| is_python_requirement(word)),
            Installer::Npm => npm_name(word),
        };
        // What follows a word that is no package is prose.
        let Some(name) = name else { break };
        if INSTALLERS.contains(&name.as_str()) {
            continue;
        }
        // Its address, versions or condition.
        let is_cut =
            rest.peek().is_some_and(|next| next.starts_with(['@', ';', '=', '<', '>', '!', '~']));
        let requirement = plain_requirement(word).filter(|_| !is_cut);
        packages.push(NamedPackage { name, requirement });
    }
    if !is_usual_source {
        for package in &mut packages {
            package.requirement = None;
        }
    }
    Some((installer, packages))
}

/// Options that change nothing about what is installed from where.
#[rustfmt::skip]
const HARMLESS: [&str; 14] = [
    "--break-system-packages", "--dev", "--exact", "--force", "--no-cache-dir", "--no-input",
    "--quiet", "--system", "--upgrade", "--user", "--verbose", "-U", "-q", "-v",
];

/// Options with a value. Of `-r FILE` the file itself is read.
#[rustfmt::skip]
const WITH_VALUE: [&str; 28] = [
    "--constraint", "--default-index", "--editable", "--extra-index-url", "--find-links", "--group",
    "--index", "--index-url", "--loglevel", "--omit", "--prefix", "--python", "--registry",
    "--requirement", "--root-user-action", "--script", "--tag", "--target", "--timeout",
    "--trusted-host", "--workspace", "-c", "-e", "-f", "-i", "-p", "-r", "-t",
];

/// A name with versions and nothing else, without spaces.
fn plain_requirement(word: &str) -> Option<String> {
    let word: String = word.chars().filter(|c| *c != ' ').collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-[],<>=!~*+".contains(c);
    (word.chars().all(is_plain) && !is_archive(&word)).then_some(word)
}

/// The arguments of a command that installs something.
fn arguments<'w>(words: &'w [&'w str]) -> Option<(Installer, &'w [&'w str])> {
    use Installer::{Npm, Python};
    Some(match words {
        ["python" | "python3" | "py", "-m", "pip", "install", rest @ ..]
        | ["uv", "pip" | "tool", "install", rest @ ..]
        | ["pip" | "pip3" | "pipx", "install", rest @ ..]
        | ["uv", "add", rest @ ..] => (Python, rest),
        ["npm" | "pnpm" | "bun", "install" | "i" | "add", rest @ ..]
        | ["yarn", "add", rest @ ..]
        | ["yarn", "global", "add", rest @ ..] => (Npm, rest),
        _ => return None,
    })
}

/// Whether a word may precede the program: an assignment, a keyword, a pattern, or a program that
/// starts it.
pub(super) fn is_before_command(word: &str) -> bool {
    const WORDS: [&str; 18] = [
        "sudo", "env", "time", "nohup", "exec", "then", "do", "else", "if", "while", "until", "!",
        "{", "(", "elif", "command", "xargs", "timeout",
    ];
    let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    // `start)` in a `case`.
    let is_pattern = word.ends_with(')') && !word.contains('(');
    is_assignment || is_pattern || WORDS.contains(&word)
}

fn is_python_requirement(word: &str) -> bool {
    !word.contains(['$', '{', '*']) && !word.starts_with('<')
}

/// The name in a word such as `@scope/name@1.2`; `None`: a path, an address, a placeholder.
pub(super) fn npm_name(word: &str) -> Option<String> {
    let end = word.char_indices().skip(1).find(|(_, c)| *c == '@').map_or(word.len(), |(at, _)| at);
    let name = &word[..end];
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./@".contains(c);
    let slashes = name.matches('/').count();
    let is_name = name.starts_with(|c: char| c == '@' || c.is_ascii_alphanumeric())
        && name.chars().all(is_part)
        && slashes == usize::from(name.starts_with('@'))
        && !name.ends_with(['/', '.', '-', '@']);
    is_name.then(|| name.to_string())
}
