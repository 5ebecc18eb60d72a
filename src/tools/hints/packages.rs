//! Missing Python packages, with the command by which the user installs them. The package of a
//! module that is not well known is never guessed.

use std::path::{Path, PathBuf};

use super::{HintRequest, quoted_list};
use crate::limits;
use crate::skills::Skill;
use crate::skills::packages::{
    known_module, known_package, normalized_name, package_named, package_of,
};
use crate::skills::python::setup_command;
use crate::skills::venv::{installed_packages, lacks_listed_requirements, path_in_skill};
use crate::text::one_line_name;

/// Words before the names of packages in a command or advice.
const INSTALLERS: [&str; 2] = ["pip install ", "pip3 install "];

/// Words of a line that says that something is lacking.
const LACKS: [&str; 8] =
    ["not installed", "missing", "requires", "required", "not found", "please", "need", "cannot"];

/// Text of pip's refusal to install packages into the system's Python.
const UNMANAGED: &str = "externally-managed-environment";

/// What a run lacked.
#[derive(Default)]
struct MissingPackages<'t> {
    /// Modules that could not be imported, and packages that the program asks for.
    names: Vec<&'t str>,
    /// Packages of the table that provide them.
    packages: Vec<&'static str>,
    /// Whether the package of a module is not known.
    has_unknown: bool,
    /// Further modules that the source imports and that may be missing.
    imports: Vec<&'static str>,
}

/// Returns the hint about missing packages, or about a module of the skill that was not found.
pub(super) fn hint(request: &HintRequest<'_>) -> Option<String> {
    let mut missing = MissingPackages::default();
    for module in missing_modules(request) {
        let known = known_module(module);
        // A file deep in the skill may have the name of a well-known package.
        let own = own_module(request, module).filter(|_| package_of(module).is_none());
        if let Some(path) = own {
            return Some(own_module_hint(module, &path));
        }
        // Of a package that is there, a part can be missing.
        if !known.is_empty() && (known == module || known.contains('.')) {
            missing.add(known, package_of(module));
        }
    }
    for package in demanded_packages(request) {
        missing.add(package, Some(package));
    }
    if missing.names.is_empty() {
        return None;
    }
    let recent = request.recent_skill.filter(|_| request.skill.is_none());
    let recent = recent.and_then(|name| request.skills.open(name).ok());
    missing.add_imports(request);
    Some(missing.hint(request, recent.as_ref()))
}

impl<'t> MissingPackages<'t> {
    fn add(&mut self, name: &'t str, package: Option<&'static str>) {
        let is_named = package.is_some_and(|package| self.packages.contains(&package));
        if is_named || self.names.contains(&name) || self.names.len() == limits::HINT_NAMES {
            return;
        }
        self.names.push(name);
        self.has_unknown |= package.is_none();
        self.packages.extend(package);
    }

    /// Adds packages of the source's other imports. They are not in the skill's venv, or there is
    /// none, and a new one would be empty.
    fn add_imports(&mut self, request: &HintRequest<'_>) {
        let installed = request.venv().map(|venv| installed_packages(&venv)).unwrap_or_default();
        for module in imported_modules(request.source.unwrap_or_default()) {
            let Some((module, package)) = known_package(module) else { continue };
            let is_there = installed.contains(&normalized_name(package))
                || self.packages.contains(&package)
                || own_module(request, module).is_some();
            if !is_there && self.packages.len() < limits::HINT_NAMES {
                self.imports.push(module);
                self.packages.push(package);
            }
        }
    }

    fn hint(&self, request: &HintRequest<'_>, recent: Option<&Skill>) -> String {
        let names = quoted_list(&self.names);
        let are = if self.names.len() == 1 { "is" } else { "are" };
        let place = if request.venv().is_some() { " in the skill's venv" } else { "" };
        let also = match self.imports.as_slice() {
            [] => String::new(),
            names => format!("; it also imports {}", names.join(", ")),
        };
        let what = format!("{names} {are} not installed{place}{also}");
        if let Some(skill) = request.skill {
            return format!("{what}: {}", self.advice(skill, request.venv().as_deref()));
        }
        if let Some(skill) = recent {
            let name = one_line_name(&skill.name);
            let venv = path_in_skill(&skill.path);
            return match venv.filter(|venv| self.are_installed(venv)) {
                Some(_) => {
                    format!(
                        "{names} {are} installed for the skill `{name}`: give skill_name \"{name}\""
                    )
                }
                None => {
                    let advice = self.advice(skill, None);
                    format!("{what}: give skill_name \"{name}\", and {advice}")
                }
            };
        }
        match self.packages.as_slice() {
            [] => format!("{what}: tell the user to install the package"),
            packages => format!("{what}: tell the user to install {}", packages.join(", ")),
        }
    }

    /// What the user has to do so that the skill has the packages.
    fn advice(&self, skill: &Skill, venv: Option<&Path>) -> String {
        let is_listed = match venv {
            Some(venv) => lacks_listed_requirements(skill, venv),
            None => skill.root.file("requirements.txt").is_ok(),
        };
        let mut packages = self.packages.clone();
        let note = match (self.has_unknown, is_listed) {
            (false, _) => "",
            (true, true) => " (which installs what the skill's requirements.txt lists)",
            (true, false) => {
                packages.push("PACKAGE");
                " (PACKAGE: the package that provides it)"
            }
        };
        format!("tell the user to run: {}{note}", setup_command(skill, &packages))
    }

    fn are_installed(&self, venv: &Path) -> bool {
        let installed = installed_packages(venv);
        let mut packages = self.packages.iter();
        !self.has_unknown && packages.all(|package| installed.contains(&normalized_name(package)))
    }
}

/// The modules that were not found, by Python's messages. Scripts that catch the error print only
/// its message.
fn missing_modules<'h>(request: &HintRequest<'h>) -> impl Iterator<Item = &'h str> {
    request.lines().filter_map(|line| {
        let quoted = ["No module named '", "Missing optional dependency '"];
        let quoted = quoted.iter().find_map(|words| line.split_once(words));
        if let Some((_, rest)) = quoted {
            return rest.split_once('\'').map(|(name, _)| name);
        }
        // `python3 -m NAME`.
        let (program, name) = line.split_once(": No module named ")?;
        let is_python = program.rsplit('/').next().unwrap_or_default().starts_with("python");
        is_python.then_some(name.trim())
    })
}

/// The well-known packages that a program asks for, or that the script tried to install.
fn demanded_packages(request: &HintRequest<'_>) -> Vec<&'static str> {
    let is_demand = |line: &&str| {
        let line = line.to_lowercase();
        !line.contains("[notice]") && LACKS.iter().any(|words| line.contains(words))
    };
    let printed = request.lines().filter(is_demand);
    let is_refused = request.failed && request.lines().any(|line| line.contains(UNMANAGED));
    let tried = request.source.filter(|_| is_refused).unwrap_or_default().lines();
    printed.chain(tried).flat_map(packages_in_command).collect()
}

/// The packages of the table in a line with `pip install`.
fn packages_in_command(line: &str) -> impl Iterator<Item = &'static str> {
    let found = INSTALLERS.iter().find_map(|words| line.split_once(words));
    let words = found.map_or("", |(_, rest)| rest).split_whitespace();
    let words = words.skip_while(|word| word.starts_with('-'));
    let is_edge = |c: char| !c.is_ascii_alphanumeric();
    words.map_while(move |word| {
        let name = word.trim_matches(is_edge);
        let name = name.split(['[', '=', '<', '>', '~', '!']).next().unwrap_or(name);
        package_named(name)
    })
}

/// The modules that a source imports: a guess from its lines, also of a program in a command.
fn imported_modules(source: &str) -> impl Iterator<Item = &str> {
    source.split(['\n', ';', '"', '\'']).flat_map(|statement| {
        let statement = statement.trim();
        let names = match statement.strip_prefix("from ") {
            Some(rest) => rest.split_once(" import ").map_or("", |(module, _)| module),
            None => statement.strip_prefix("import ").unwrap_or_default(),
        };
        names.split(',').filter_map(|name| name.split_whitespace().next())
    })
}

/// A file of a module that belongs to the skill, or lies in the user's folder.
fn own_module(request: &HintRequest<'_>, module: &str) -> Option<PathBuf> {
    let name = module.split('.').next().unwrap_or(module);
    let is_part = |path: &PathBuf| {
        let is_in_package = path.parent().and_then(Path::file_name) == Some(name.as_ref());
        let is_module = path.file_stem() == Some(name.as_ref());
        path.extension() == Some("py".as_ref()) && (is_module || is_in_package)
    };
    let in_skill = |skill: &Skill| {
        skill.files().files.into_iter().find(is_part).map(|path| skill.path.join(path))
    };
    let in_user_folder = || {
        let path = request.scripts.user_folder.join(name).with_extension("py");
        path.is_file().then_some(path)
    };
    request.skill.and_then(in_skill).or_else(in_user_folder)
}

fn own_module_hint(module: &str, path: &Path) -> String {
    let name = module.split('.').next().unwrap_or(module);
    // The folder that holds the module or the package.
    let levels = if path.file_stem() == Some(name.as_ref()) { 1 } else { 2 };
    let folder = path.ancestors().nth(levels).unwrap_or(path);
    let [path, folder] = [path, folder].map(|path| one_line_name(&path.display().to_string()));
    format!(
        "`{name}` is no package but {path}: put sys.path.insert(0, '{folder}') before the import"
    )
}
