//! Lines that install packages: `pip install NAME`, `npm install NAME` and their like.

use crate::skills::packages::package_name;

/// The kind of the packages that a line installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Installer {
    /// Python packages.
    Python,
    /// Packages of npm.
    Npm,
}

/// A package that a command installs.
pub(super) struct NamedPackage {
    /// Of Python normalized, of npm with the scope.
    pub(super) name: String,
    /// The name with its versions, as in the command. `None`: it has an address or a condition, or
    /// the command installs from elsewhere.
    pub(super) requirement: Option<String>,
}

/// The packages that a command installs. `None`: it installs none.
pub(super) fn packages_of(words: &[&str]) -> Option<(Installer, Vec<NamedPackage>)> {
    let (installer, rest) = arguments(words)?;
    let mut packages: Vec<NamedPackage> = Vec::new();
    let mut is_value = false;
    let mut is_from_elsewhere = false;
    for word in rest {
        let word = word.trim_matches(['"', '\'', '`', ',', ')', '(']);
        if std::mem::take(&mut is_value) {
            continue;
        }
        if word.starts_with('-') {
            let option = word.split('=').next().unwrap_or_default();
            is_from_elsewhere |= OTHER_SOURCES.contains(&option);
            // `-r FILE`: what the file lists is read from it.
            is_value = matches!(
                word,
                "-r" | "--requirement"
                    | "-c"
                    | "--constraint"
                    | "-e"
                    | "--editable"
                    | "-i"
                    | "--index-url"
                    | "--extra-index-url"
                    | "-t"
                    | "--target"
                    | "--prefix"
                    | "--python"
                    | "-p"
                    | "--registry"
                    | "-f"
                    | "--find-links"
                    | "--workspace"
                    | "-w"
            );
            continue;
        }
        let name = match installer {
            Installer::Python => package_name(word).filter(|_| is_python_requirement(word)),
            Installer::Npm => npm_name(word),
        };
        // What follows a word that is no package is prose.
        let Some(name) = name else { break };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-[],<>=!~^*+@/".contains(c);
        // Behind the name of a package of Python, `@` precedes an address.
        let is_plain = word.chars().all(is_plain)
            && !word.contains("//")
            && (installer == Installer::Npm || !word.contains(['@', '/']));
        packages.push(NamedPackage { name, requirement: is_plain.then(|| word.to_string()) });
    }
    if is_from_elsewhere {
        for package in &mut packages {
            package.requirement = None;
        }
    }
    Some((installer, packages))
}

/// Options that say where packages come from.
const OTHER_SOURCES: [&str; 6] =
    ["-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--registry"];

/// The arguments of a command that installs something: of `npx` and its like only the package.
fn arguments<'w>(words: &'w [&'w str]) -> Option<(Installer, &'w [&'w str])> {
    use Installer::{Npm, Python};
    let (installer, skipped, is_one) = match words {
        ["python" | "python3" | "py", "-m", "pip", "install", ..] => (Python, 4, false),
        ["uv", "pip" | "tool", "install", ..] => (Python, 3, false),
        ["pip" | "pip3" | "pipx", "install", ..] | ["uv", "add", ..] => (Python, 2, false),
        ["uvx", ..] => (Python, 1, true),
        ["pipx", "run", ..] => (Python, 2, true),
        ["npm" | "pnpm" | "bun", "install" | "i" | "add", ..] | ["yarn", "add", ..] => {
            (Npm, 2, false)
        }
        ["yarn", "global", "add", ..] => (Npm, 3, false),
        ["npx", "-p" | "--package", ..] | ["pnpm" | "yarn", "dlx", ..] | ["npm", "exec", ..] => {
            (Npm, 2, true)
        }
        ["npx" | "bunx", ..] => (Npm, 1, true),
        _ => return None,
    };
    let mut rest = &words[skipped..];
    if is_one {
        let first = rest.iter().position(|word| !word.starts_with('-'))?;
        rest = &rest[first..=first];
    }
    Some((installer, rest))
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
