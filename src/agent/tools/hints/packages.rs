//! Missing Python packages, with the command by which the user installs them. The package of a
//! module that is not well known is never guessed: it is taken from a line of the document.

use std::path::{Path, PathBuf};

use super::{HintRequest, quoted_list};
use base::limits;
use base::text::one_line_name;
use skills::Skill;
use skills::installed::InstalledPackages;
use skills::packages::{known_module, normalized_name, package_named, package_of, project_name};
use skills::python::setup_command;
use skills::venv::{lacks_listed_requirements, path_in_skill};

/// Words before the names of packages in a command or advice.
const INSTALLERS: [&str; 2] = ["pip install ", "pip3 install "];

/// Words of a line that says that something is lacking.
const LACKS: [&str; 8] =
    ["not installed", "missing", "requires", "required", "not found", "please", "need", "cannot"];

/// Texts of pip's refusals to install packages into the user's Python.
const REFUSALS: [&str; 2] =
    ["externally-managed-environment", "Could not find an activated virtualenv"];

/// Missing packages.
#[derive(Default)]
struct MissingPackages<'t> {
    /// Modules that could not be imported, and packages that the program asks for.
    names: Vec<&'t str>,
    /// Packages to install for them: names, with extras if the source of the name has some.
    requirements: Vec<String>,
    /// Whether the package of a module is not known.
    has_unknown: bool,
    /// Further modules that the source imports and that may be missing.
    imports: Vec<&'t str>,
}

/// Returns the hint about missing packages, or about a module of the skill that was not found.
pub(super) fn hint(request: &HintRequest<'_>) -> Option<String> {
    let catalogue = request.skills.catalogue();
    let is_skill = |name: &str| catalogue.usable().any(|skill| skill.name == name);
    let modules = missing_modules(request);
    // A skill that was taken for a module is not to be installed.
    let is_module = |name: &&str| package_of(name).is_some() || !is_skill(&name.replace('_', "-"));
    let modules: Vec<&str> = modules.filter(is_module).collect();
    let demanded = demanded_packages(request);
    if modules.is_empty() && demanded.is_empty() {
        let advice = "nothing can be installed here: do without, or tell the user to install it";
        return is_refused(request).then(|| advice.into());
    }
    let document = request.skill.and_then(|skill| skill.read_document().ok());
    let lines = document.as_ref().map(|document| document.text.lines()).into_iter().flatten();
    let listed: Vec<&str> = lines.flat_map(words_of_command).collect();
    let mut missing = MissingPackages::default();
    for module in modules {
        let known = known_module(module);
        // A file deep in the skill may have the name of a well-known package.
        let own = own_module(request, module).filter(|_| package_of(module).is_none());
        if let Some(path) = own {
            return Some(own_module_hint(module, &path));
        }
        // Of a package that is there, a part can be missing.
        if !known.is_empty() && (known == module || known.contains('.')) {
            missing.add(known, requirement_of(module, &listed));
        }
    }
    for word in demanded {
        missing.add(word, Some(word.to_string()));
    }
    missing.add_imports(request, &listed);
    (!missing.names.is_empty()).then(|| missing.hint(request))
}

/// Returns a module's package: as the document says, or by the table.
fn requirement_of(module: &str, listed: &[&str]) -> Option<String> {
    let package = package_of(module);
    let name = normalized_name(package.unwrap_or(known_module(module)));
    let literal = listed.iter().find(|word| project_name(word) == name);
    literal.copied().or(package).map(str::to_string)
}

impl<'t> MissingPackages<'t> {
    fn add(&mut self, name: &'t str, requirement: Option<String>) {
        let is_named = requirement.as_ref().is_some_and(|it| self.has(it));
        if is_named || self.names.contains(&name) || self.names.len() == limits::HINT_NAMES {
            return;
        }
        self.names.push(name);
        self.has_unknown |= requirement.is_none();
        self.requirements.extend(requirement);
    }

    fn has(&self, requirement: &str) -> bool {
        let name = project_name(requirement);
        self.requirements.iter().any(|it| project_name(it) == name)
    }

    /// Adds packages of the source's other imports. They are not in the skill's venv, or there is
    /// none, and a new one would be empty.
    fn add_imports(&mut self, request: &HintRequest<'t>, listed: &[&str]) {
        let installed = request.venv().map(|venv| InstalledPackages::in_venv(&venv).names);
        let installed = installed.unwrap_or_default();
        for module in imported_modules(request.source.unwrap_or_default()) {
            let Some(requirement) = requirement_of(module, listed) else { continue };
            let is_there = installed.contains(&project_name(&requirement))
                || self.has(&requirement)
                || package_of(module).is_none() && own_module(request, module).is_some();
            // Several packages share the first word of a dotted name, so it is not a package
            // itself.
            let is_start = |name: &&str| module.starts_with(&format!("{name}."));
            if !is_there
                && let [name] = &mut self.names[..]
                && is_start(name)
            {
                *name = known_module(module);
                self.has_unknown = false;
                self.requirements.push(requirement);
                continue;
            }
            if !is_there && !self.names.is_empty() && self.requirements.len() < limits::HINT_NAMES {
                self.imports.push(known_module(module));
                self.requirements.push(requirement);
            }
        }
    }

    fn hint(&self, request: &HintRequest<'_>) -> String {
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
        let is_ready =
            |folder: &Path| path_in_skill(folder).is_some_and(|it| self.are_installed(&it));
        let catalogue = request.skills.catalogue();
        if let Some(skill) = catalogue.usable().find(|skill| is_ready(&skill.path)) {
            let name = one_line_name(&skill.name);
            return format!(
                "{names} {are} installed for the skill `{name}`: give skill_name \"{name}\""
            );
        }
        match self.requirements.as_slice() {
            [] => format!("{what}: tell the user to install the package"),
            all => format!("{what}: do without, or tell the user to install {}", all.join(", ")),
        }
    }

    /// Returns advice with the command that installs the packages.
    fn advice(&self, skill: &Skill, venv: Option<&Path>) -> String {
        let is_listed = match venv {
            Some(venv) => lacks_listed_requirements(skill, venv),
            None => skill.root.file("requirements.txt").is_ok(),
        };
        let mut packages: Vec<&str> = self.requirements.iter().map(String::as_str).collect();
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
        let installed = InstalledPackages::in_venv(venv).names;
        let mut all = self.requirements.iter();
        !self.has_unknown && all.all(|it| installed.contains(&project_name(it)))
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
fn demanded_packages<'h>(request: &HintRequest<'h>) -> Vec<&'h str> {
    let is_demand = |line: &&str| {
        let line = line.to_lowercase();
        let is_lack = request.failed || LACKS.iter().any(|words| line.contains(words));
        is_lack && !line.contains("[notice]")
    };
    let printed = request.lines().filter(is_demand);
    let tried = request.source.filter(|_| is_refused(request)).unwrap_or_default().lines();
    let words = printed.chain(tried).flat_map(words_of_command);
    words.filter(|word| package_named(&project_name(word)).is_some()).collect()
}

/// Whether pip refused to install into the user's Python.
fn is_refused(request: &HintRequest<'_>) -> bool {
    let is_refusal = |line: &str| REFUSALS.iter().any(|words| line.contains(words));
    request.failed && request.lines().any(is_refusal)
}

/// The requirements in a line with `pip install`; extras are kept, versions are not.
fn words_of_command(line: &str) -> impl Iterator<Item = &str> {
    let found = INSTALLERS.iter().find_map(|words| line.split_once(words));
    let words = found.map_or("", |(_, rest)| rest).split_whitespace();
    let words = words.skip_while(|word| word.starts_with('-'));
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.[],".contains(c);
    words.map_while(move |word| {
        let word = word.trim_start_matches(['"', '\'', '`']);
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let word = word[..end].trim_end_matches(['.', ',']);
        word.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(word)
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
