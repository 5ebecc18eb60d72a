//! What a skill needs, derived from its documents, their code and its scripts: packages, programs,
//! MCP servers, tools of other clients, the network, a shell, files of the user.
//!
//! Nothing is started and nothing is imported. What code imports counts by the table of well-known
//! modules. Of a sentence count only code, and tools by names that are no words.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::bounded;
use crate::limits;
use crate::skills::Skill;
use crate::skills::frontmatter;
use crate::skills::names::is_plugin;
use crate::skills::packages::{
    known_module, nearly_named, normalized_name, package_name, package_named, package_of,
};
use crate::skills::probe::{file_tree, own_modules};
use crate::skills::programs::{is_known, product_of};
use crate::skills::requirements::listed_requirements;
use crate::skills::siblings::named_skills;
use crate::text::{one_line, one_line_name};
use crate::world::confined::read_whole;
use crate::world::files;

mod code;
mod documents;
mod here;
mod install;
mod scripts;
mod shell;

pub(crate) use code::package_of_module;
pub(crate) use here::npm_folders;
pub(crate) use install::Installer;

/// Things that a skill needs by name, or those of them that are missing. Names are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct NamedNeeds {
    /// Python packages, with normalized names.
    pub python: BTreeSet<String>,
    /// Packages of npm.
    pub npm: BTreeSet<String>,
    /// Programs, except those of every system.
    pub programs: BTreeSet<String>,
    /// MCP servers, or connectors of a host.
    pub mcp: BTreeSet<String>,
    /// Tools of other clients, as these name them.
    pub tools: BTreeSet<String>,
    /// Other skills.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub skills: BTreeSet<String>,
}

/// What a skill needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Needs {
    /// What it needs by name.
    #[serde(flatten)]
    pub named: NamedNeeds,
    /// It talks to other machines.
    pub network: bool,
    /// It runs commands.
    pub shell: bool,
    /// It works with files of the user.
    pub files: bool,
    /// The well-known packages that its scripts import without a condition, and those that it
    /// declares: a setup installs them without a question. With normalized names.
    #[serde(skip)]
    pub required: BTreeSet<String>,
    /// Functions of its shell code: they are no programs.
    #[serde(skip)]
    functions: BTreeSet<String>,
    /// The packages that its documents and shell scripts install, or that their code imports.
    #[serde(skip)]
    pub inferred: BTreeMap<(Installer, String), InferredPackage>,
    /// The line that is read.
    #[serde(skip)]
    place: SourceLine,
    #[serde(skip)]
    line_kind: LineKind,
    /// Blocks of code in its documents that are no commands.
    #[serde(skip)]
    code_blocks: usize,
}

/// A package that a skill needs and does not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InferredPackage {
    /// What installs it.
    pub installer: Installer,
    /// Of Python normalized, of npm with the scope.
    pub name: String,
    /// What a command of the skill installs: a name with versions.
    pub requirement: Option<String>,
    /// The line that needs it.
    pub line: SourceLine,
}

impl InferredPackage {
    /// What follows the name of a package that is not of Python.
    pub(crate) fn source(&self) -> &'static str {
        if self.installer == Installer::Npm { " of npm" } else { "" }
    }

    /// What is installed for it. `None`: it is neither well known nor what a command of the skill
    /// installs from the usual place, or its name is nearly a well-known one.
    pub(crate) fn to_install(&self) -> Option<&str> {
        let literal = self.requirement.as_deref();
        match self.installer {
            Installer::Npm => literal,
            Installer::Python if package_named(&self.name).is_some() => {
                literal.or(Some(&self.name))
            }
            Installer::Python => literal.filter(|_| nearly_named(&self.name).is_none()),
        }
    }
}

/// The name and the place: `docx of npm (SKILL.md line 3)`.
impl fmt::Display for InferredPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`{} ({})", self.name, self.source(), self.line)
    }
}

/// What a line with a command is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineKind {
    /// A command for the model.
    #[default]
    Command,
    /// A line of a script.
    Script,
    /// Code in a sentence.
    Inline,
    /// A command, or a text that begins like one.
    Prose,
}

/// A line of a skill's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLine {
    /// Relative to the skill's folder.
    pub file: PathBuf,
    /// Counted from 1.
    pub number: usize,
    /// Its text, on one line, shortened.
    pub text: String,
}

/// The place: `SKILL.md line 12`.
impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", one_line_name(&self.file.to_string_lossy()), self.number)
    }
}

impl SourceLine {
    /// Goes on to the next line.
    fn next(&mut self, text: &str) {
        self.number += 1;
        text.clone_into(&mut self.text);
    }
}

impl NamedNeeds {
    fn add(&mut self, installer: Installer, name: &str) {
        match installer {
            Installer::Python => self.python.insert(normalized_name(name)),
            Installer::Npm => self.npm.insert(name.to_string()),
        };
    }

    /// The kinds of which there is something, each with the names.
    pub(crate) fn kinds(&self) -> Vec<(&'static str, String)> {
        let program = |name: &String| match product_of(name) {
            Some(product) if !product.eq_ignore_ascii_case(name) => format!("{name} ({product})"),
            _ => name.clone(),
        };
        let join = |names: &BTreeSet<String>| {
            names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let kinds = [
            ("Python packages", join(&self.python)),
            ("npm packages", join(&self.npm)),
            ("programs", self.programs.iter().map(program).collect::<Vec<_>>().join(", ")),
            ("MCP servers", join(&self.mcp)),
            ("tools of other clients", join(&self.tools)),
            ("skills", join(&self.skills)),
        ];
        kinds.into_iter().filter(|(_, names)| !names.is_empty()).collect()
    }
}

/// A skill's files as its needs are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NeedSource {
    /// Markdown, which a model reads.
    Document,
    Python,
    JavaScript,
    Shell,
    PackageList,
    HostSettings,
}

impl Needs {
    /// The needs of a skill. Files that cannot be read have none.
    pub(crate) fn of(skill: &Skill) -> Needs {
        let mut needs = Needs::default();
        let tree = file_tree(skill);
        let own = own_modules(&tree);
        let mut bytes_left = limits::NEEDS_SKILL_BYTES;
        // The document comes first: of a large skill not all is read.
        let (first, others): (Vec<_>, Vec<_>) =
            tree.files.iter().partition(|path| is_document(path));
        for path in first.into_iter().chain(others) {
            let Some(source) = source_of(path) else { continue };
            let piece = skill.root.file(path).and_then(|file| read_whole(&file, bytes_left));
            let Ok(piece) = piece else { continue };
            bytes_left -= piece.bytes.len();
            let text = String::from_utf8_lossy(&piece.bytes);
            needs.place = SourceLine { file: path.clone(), ..SourceLine::default() };
            needs.line_kind = match source {
                NeedSource::Document => LineKind::Command,
                _ => LineKind::Script,
            };
            match source {
                NeedSource::Document => {
                    let front = frontmatter::parse(&text);
                    needs.place.number = text[..front.body_start].lines().count();
                    needs.add_frontmatter(&front.fields);
                    let is_main = is_document(path);
                    if is_main {
                        let named = named_skills(&text).into_iter();
                        let others = named.filter(|(name, _)| *name != skill.folder_name());
                        let sure = others.filter(|(_, is_sure)| *is_sure).map(|(name, _)| name);
                        needs.named.skills.extend(sure.take(limits::NEEDED_SKILLS));
                    }
                    documents::read(&text[front.body_start..], is_main, &own, &mut needs);
                }
                NeedSource::Python => scripts::read_python(&text, &own, &mut needs),
                NeedSource::JavaScript => scripts::read_javascript(&text, &mut needs),
                NeedSource::Shell => scripts::read_shell(&text, &mut needs),
                NeedSource::PackageList => scripts::read_package_list(&text, &mut needs),
                NeedSource::HostSettings => scripts::read_host_settings(&text, &mut needs),
            }
        }
        for row in listed_requirements(&skill.root) {
            needs.add_requirement(&row.requirement);
        }
        needs.conclude(skill);
        needs
    }

    /// The kinds of which there is something, with the names.
    pub(crate) fn kinds(&self) -> Vec<(&'static str, String)> {
        let flags = [
            ("the network", self.network),
            ("a shell", self.shell),
            ("files of the user", self.files),
        ];
        let flags = flags.into_iter().filter(|(_, is_needed)| *is_needed);
        let kinds = self.named.kinds().into_iter();
        kinds.chain(flags.map(|(kind, _)| (kind, String::new()))).collect()
    }

    fn add_requirement(&mut self, requirement: &str) {
        if let Some(name) = package_name(requirement) {
            self.add_package(Installer::Python, &name);
            self.required.insert(normalized_name(&name));
        }
    }

    fn add_package(&mut self, installer: Installer, name: &str) {
        self.named.add(installer, name);
    }

    /// Records that the current line installs or imports a package. Of several lines the first
    /// with versions counts, or else the first.
    fn infer(&mut self, installer: Installer, name: &str, requirement: Option<String>) {
        let name = match installer {
            Installer::Python => normalized_name(name),
            Installer::Npm => name.to_string(),
        };
        let key = (installer, name.clone());
        let is_better =
            |known: &InferredPackage| known.requirement.is_none() && requirement.is_some();
        let is_room = self.inferred.len() < limits::INFERRED_PACKAGES;
        if is_room && self.inferred.get(&key).is_none_or(is_better) {
            let text = one_line(self.place.text.trim(), limits::QUOTED_BYTES);
            let line = SourceLine { text, ..self.place.clone() };
            let package = InferredPackage { installer, name, requirement, line };
            self.inferred.insert(key, package);
        }
    }

    /// Adds the package of a module that is well known, or that a script of the skill needs.
    fn add_module(&mut self, dotted: &str, own: &BTreeSet<String>, is_script: bool) {
        let first = dotted.split('.').next().unwrap_or(dotted);
        if own.contains(first) || code::is_standard(first) {
            return;
        }
        match package_of(dotted) {
            Some(package) => {
                self.add_package(Installer::Python, package);
                if !is_script {
                    self.infer(Installer::Python, package, None);
                }
            }
            None if is_script => {
                self.named.python.insert(normalized_name(known_module(dotted)));
            }
            None => {}
        }
    }

    /// Adds what the frontmatter names: tools, MCP servers and programs.
    fn add_frontmatter(&mut self, fields: &serde_json::Map<String, Value>) {
        for field in ["allowed-tools", "tools"] {
            let text = match fields.get(field) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(items)) => {
                    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
                }
                _ => continue,
            };
            documents::read_tool_list(&text, self);
        }
    }

    /// What follows from the names that were found.
    fn conclude(&mut self, skill: &Skill) {
        let functions = &self.functions;
        self.named.programs.retain(|name| !functions.contains(name) || is_known(name));
        if !self.shell
            && self.named.npm.is_empty()
            && let Some(name) = connector_of(skill)
        {
            self.named.mcp.insert(name);
        }
        let has = |names: &[&str], tools: &BTreeSet<String>| {
            names.iter().any(|name| tools.contains(*name))
        };
        self.shell |= has(&["Bash", "Shell", "exec_command"], &self.named.tools);
        self.files |= self.code_blocks > 1;
        self.files |= has(
            &["Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch"],
            &self.named.tools,
        );
        self.network |=
            has(&["WebFetch", "WebSearch"], &self.named.tools) || !self.named.mcp.is_empty();
    }
}

/// The connector of its plugin for which a skill is named.
fn connector_of(skill: &Skill) -> Option<String> {
    let plugin = skill.path.ancestors().skip(1).find(|folder| is_plugin(folder))?;
    let text = files::read_whole(&plugin.join(".app.json"), limits::PLUGIN_SETTINGS_BYTES).ok()?;
    let settings: Value = bounded::from_slice(&text).ok()?;
    let names = settings["apps"].as_object()?.keys();
    names.into_iter().find(|name| skill.name.starts_with(name.as_str())).cloned()
}

/// Whether a file is the document of the skill.
fn is_document(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.eq_ignore_ascii_case("SKILL.md"))
}

/// What kind of source a file is; `None`: it is not read.
fn source_of(path: &Path) -> Option<NeedSource> {
    let name = path.file_name()?.to_str()?;
    if name == "package.json" {
        return Some(NeedSource::PackageList);
    }
    let extension = path.extension().and_then(OsStr::to_str)?.to_ascii_lowercase();
    Some(match &*extension {
        "md" | "mdx" | "markdown" => NeedSource::Document,
        "py" => NeedSource::Python,
        "js" | "mjs" | "cjs" | "ts" | "mts" | "tsx" | "jsx" => NeedSource::JavaScript,
        "sh" | "bash" | "zsh" => NeedSource::Shell,
        "yaml" | "yml" if path.starts_with("agents") => NeedSource::HostSettings,
        _ => return None,
    })
}
