//! What of a skill's needs this machine lacks, by looking at files: no process is started.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::NamedNeeds;
use crate::config::{ScriptSettings, find_program};
use crate::limits;
use crate::skills::Skill;
use crate::skills::packages::{modules_of, project_name};
use crate::skills::programs::alternatives_of;
use crate::skills::python::Interpreter;

/// Tools of other clients for which there is one here.
const COUNTERPARTS: [&str; 18] = [
    "Bash",
    "BashOutput",
    "bash",
    "run_command",
    "exec_command",
    "write_stdin",
    "Read",
    "view_file",
    "view_image",
    "Write",
    "Edit",
    "MultiEdit",
    "apply_patch",
    "Glob",
    "Grep",
    "LS",
    "Skill",
    "js_repl",
];

impl NamedNeeds {
    /// What is missing for a skill. Packages whose place is unknown are not reported.
    pub(crate) fn missing(&self, skill: &Skill, scripts: &ScriptSettings) -> NamedNeeds {
        let venv = Interpreter::for_skill(skill, scripts).ok();
        let folders = venv
            .as_ref()
            .map(|it| python_folders(it, scripts.variable("HOME")))
            .unwrap_or_default();
        let installed = Installed::read(&folders);
        let lacks = |name: &&String| !folders.is_empty() && !installed.has(name);
        let bin = venv.as_ref().and_then(|it| it.venv.as_ref()).map(|venv| venv.join("bin"));
        let is_program = |name: &str| {
            find_program(OsStr::new(name), scripts.variable("PATH")).is_some()
                || bin.as_ref().is_some_and(|bin| bin.join(name).exists())
        };
        let lacks_program =
            |name: &&String| !is_program(name) && !alternatives_of(name).any(is_program);
        let node = find_program(OsStr::new("node"), scripts.variable("PATH"));
        let places = npm_folders(skill, scripts, node.as_deref());
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
            tools: of(&self.tools, &|name| !COUNTERPARTS.contains(&name.as_str())),
        }
    }
}

/// The packages and modules in folders of Python packages.
struct Installed {
    packages: BTreeSet<String>,
    /// Names of modules at the top.
    modules: BTreeSet<String>,
}

impl Installed {
    fn read(folders: &[PathBuf]) -> Installed {
        let mut installed = Installed { packages: BTreeSet::new(), modules: BTreeSet::new() };
        let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
        let entries = entries.flat_map(|entries| entries.flatten().take(limits::ENTRIES_READ));
        for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            match name
                .strip_suffix(".dist-info")
                .or_else(|| name.split_once(".egg-info").map(|it| it.0))
            {
                Some(package) => {
                    let package = package.split('-').next().unwrap_or(package);
                    installed.packages.insert(project_name(package));
                }
                None => {
                    let module = name.split('.').next().unwrap_or(&name);
                    installed.modules.insert(module.to_string());
                }
            }
        }
        installed
    }

    /// Whether a package is there, or another one with its modules.
    fn has(&self, package: &str) -> bool {
        let has_module = |module: &str| {
            let first = module.split('.').next().unwrap_or(module);
            // Packages share the folder of a namespace.
            !module.contains('.') && self.modules.contains(first)
        };
        self.packages.contains(package) || modules_of(package).any(has_module)
    }
}

/// The folders in which an interpreter finds packages. Empty: unknown.
fn python_folders(python: &Interpreter, home: Option<&OsStr>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut add = |library: &Path| {
        let versions = fs::read_dir(library).into_iter().flatten().flatten();
        for version in versions.filter(|it| it.file_name().to_string_lossy().starts_with("python3"))
        {
            for name in ["site-packages", "dist-packages"] {
                let folder = version.path().join(name);
                if folder.is_dir() {
                    folders.push(folder);
                }
            }
        }
    };
    let mut is_shared = true;
    if let Some(venv) = &python.venv {
        add(&venv.join("lib"));
        add(&venv.join("lib64"));
        let settings = fs::read_to_string(venv.join("pyvenv.cfg")).unwrap_or_default();
        is_shared = settings.replace(' ', "").contains("include-system-site-packages=true");
    }
    if is_shared
        && let Ok(program) = python.program.canonicalize()
        && let Some(prefix) = program.parent().and_then(Path::parent)
    {
        add(&prefix.join("lib"));
        if prefix == Path::new("/usr") {
            add(Path::new("/usr/local/lib"));
        }
        if let Some(home) = home {
            add(&Path::new(home).join(".local/lib"));
        }
    }
    folders
}

/// The folders in which Node.js finds packages for a skill's scripts and for the user's files.
fn npm_folders(skill: &Skill, scripts: &ScriptSettings, node: Option<&Path>) -> Vec<PathBuf> {
    let own = ["venv/node_modules", "node_modules", "scripts/node_modules"];
    let mut folders: Vec<PathBuf> = own.iter().map(|name| skill.path.join(name)).collect();
    folders.push(scripts.user_folder.join("node_modules"));
    let node = node.and_then(|node| node.canonicalize().ok());
    let prefix = node.as_deref().and_then(Path::parent).and_then(Path::parent);
    folders.extend(prefix.map(|prefix| prefix.join("lib/node_modules")));
    folders
}
