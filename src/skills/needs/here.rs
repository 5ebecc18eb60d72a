//! A skill's needs that this machine lacks, by looking at files: no process is started.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::NamedNeeds;
use crate::installed::InstalledPackages;
use crate::programs::alternatives_of;
use crate::python::Interpreter;
use crate::{ScriptSettings, Skill};
use base::limits;
use host::files::{find_program, read_whole};

impl NamedNeeds {
    /// Finds what a skill lacks. Packages whose place is unknown are not reported.
    #[must_use]
    pub fn missing(&self, skill: &Skill, scripts: &ScriptSettings) -> NamedNeeds {
        let installed = installed_for(skill, scripts);
        let lacks = |name: &&String| installed.as_ref().is_some_and(|it| !it.has(name));
        let python = Interpreter::for_skill(skill, scripts).ok();
        let bin = python.and_then(|python| python.venv).map(|venv| venv.join("bin"));
        let is_program = |name: &str| {
            find_program(OsStr::new(name), scripts.variable("PATH")).is_some()
                || bin.as_ref().is_some_and(|bin| bin.join(name).exists())
        };
        let lacks_program =
            |name: &&String| !is_program(name) && !alternatives_of(name).any(is_program);
        let places = npm_folders(skill, scripts);
        let lacks_npm = |name: &&String| !places.iter().any(|folder| folder.join(name).is_dir());
        let of = |names: &BTreeSet<String>, lacks: &dyn Fn(&&String) -> bool| {
            names.iter().filter(lacks).cloned().collect()
        };
        NamedNeeds {
            python: of(&self.python, &lacks),
            npm: of(&self.npm, &lacks_npm),
            programs: of(&self.programs, &lacks_program),
            // The runner is no client of any server.
            mcp: self.mcp.clone(),
        }
    }
}

/// The packages that the skill's scripts find. `None`: it is not known where they look.
pub fn installed_for(skill: &Skill, scripts: &ScriptSettings) -> Option<InstalledPackages> {
    let python = Interpreter::for_skill(skill, scripts).ok()?;
    let program = pyenv_program(&python.program, scripts)?;
    InstalledPackages::found_by(&program, python.venv.as_deref(), scripts.variable("HOME"))
}

/// The interpreter that a command of pyenv in its folder `shims` starts, by the rules of pyenv:
/// `PYENV_VERSION`, `.python-version` in the working folder or above it, else the file `version` of
/// pyenv. Any other program is returned as it is; `None`: it is not known.
fn pyenv_program(program: &Path, scripts: &ScriptSettings) -> Option<PathBuf> {
    let shims = program.parent().filter(|folder| folder.ends_with("shims"));
    let Some(root) = shims.and_then(Path::parent) else { return Some(program.into()) };
    let files = scripts.user_folder.ancestors().map(|folder| folder.join(".python-version"));
    let mut files = files.chain([root.join("version")]);
    let named = scripts.variable("PYENV_VERSION").map(|value| value.to_string_lossy().into_owned());
    let read = |file: PathBuf| read_whole(&file, limits::LINE_BYTES).ok();
    let text = || files.find_map(read).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = named.or_else(text)?;
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let version = lines.find_map(|line| line.split([':', ' ', '\t']).find(|it| !it.is_empty()))?;
    // A folder's author may have written it.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if version.starts_with('.') || !version.chars().all(is_plain) {
        return None;
    }
    let versions = root.join("versions");
    let program = versions.join(newest(&versions, version)).join("bin").join(program.file_name()?);
    program.is_file().then_some(program)
}

/// The version with this name, or the newest one that begins with its numbers: `3.12.4` for `3.12`.
fn newest(versions: &Path, name: &str) -> String {
    let numbers = |name: &str| -> Vec<u32> { name.split('.').flat_map(str::parse).collect() };
    let all = fs::read_dir(versions).into_iter().flatten().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    let below = names.filter(|version| version.starts_with(&format!("{name}.")));
    let newest = below.max_by_key(|version| numbers(version));
    newest.filter(|_| !versions.join(name).is_dir()).unwrap_or_else(|| name.to_string())
}

/// The folders in which Node.js finds packages for a skill's scripts and for the user's files.
fn npm_folders(skill: &Skill, scripts: &ScriptSettings) -> Vec<PathBuf> {
    let node = find_program(OsStr::new("node"), scripts.variable("PATH"));
    let own = ["node_modules", "scripts/node_modules"];
    let mut folders: Vec<PathBuf> = own.iter().map(|name| skill.path.join(name)).collect();
    folders.push(scripts.user_folder.join("node_modules"));
    let node = node.and_then(|node| node.canonicalize().ok());
    let prefix = node.as_deref().and_then(Path::parent).and_then(Path::parent);
    folders.extend(prefix.map(|prefix| prefix.join("lib/node_modules")));
    folders
}
