//! A skill's needs: what it declares, what its own scripts import, and the commands in the blocks
//! of shell code of its documents.
//!
//! Nothing is started and nothing is imported, and no sentence is read.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::Skill;
use crate::frontmatter;
use crate::packages::{
    known_module, nearly_named, normalized_name, package_name, package_named, package_of,
};
use crate::probe::{file_tree, own_modules};
use crate::programs::product_of;
use crate::requirements::listed_requirements;
use base::limits;
use base::text::{one_line, one_line_name};
use host::confined::read_whole;

mod code;
mod documents;
mod here;
mod install;
mod scripts;
mod shell;

pub use code::package_of_module;
pub use here::installed_for;
use install::{Installer, NamedPackage};

/// Things that a skill needs by name, or those of them that are missing. Names are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NamedNeeds {
    /// Python packages, with normalized names.
    pub python: BTreeSet<String>,
    /// Packages of npm.
    pub npm: BTreeSet<String>,
    /// Programs, except those of every system.
    pub programs: BTreeSet<String>,
    /// MCP servers.
    pub mcp: BTreeSet<String>,
}

/// A skill's needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Its needs by name.
    #[serde(flatten)]
    pub named: NamedNeeds,
    /// Other machines in the addresses of commands.
    pub hosts: BTreeSet<String>,
    /// The well-known packages that its scripts import without a condition, and those that it
    /// declares. With normalized names.
    #[serde(skip)]
    pub required: BTreeSet<String>,
    /// Functions of its shell code: they are no programs.
    #[serde(skip)]
    functions: BTreeSet<String>,
    /// The Python packages that commands of its documents install.
    #[serde(skip)]
    pub inferred: BTreeMap<String, InferredPackage>,
    /// The line that is read.
    #[serde(skip)]
    place: SourceLine,
}

/// A Python package that a document installs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredPackage {
    /// Normalized.
    pub name: String,
    /// Its requirement: a name with versions.
    pub requirement: Option<String>,
    /// The line with the command.
    pub line: SourceLine,
}

impl InferredPackage {
    /// Returns its requirement. `None`: it is neither well known nor what a command of the skill
    /// installs from the usual place, or its name is nearly a well-known one.
    pub fn to_install(&self) -> Option<&str> {
        let literal = self.requirement.as_deref();
        match package_named(&self.name) {
            Some(_) => literal.or(Some(&self.name)),
            None => literal.filter(|_| nearly_named(&self.name).is_none()),
        }
    }
}

/// The name and the place: `docx (SKILL.md line 3)`.
impl fmt::Display for InferredPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.name, self.line)
    }
}

/// A line of a skill's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLine {
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
    pub fn kinds(&self) -> Vec<(&'static str, String)> {
        let program = |name: &String| match product_of(name) {
            Some(product) if !product.eq_ignore_ascii_case(name) => format!("{name} ({product})"),
            _ => name.clone(),
        };
        let kinds = [
            ("Python packages", joined(&self.python)),
            ("npm packages", joined(&self.npm)),
            ("programs", self.programs.iter().map(program).collect::<Vec<_>>().join(", ")),
            ("MCP servers", joined(&self.mcp)),
        ];
        kinds.into_iter().filter(|(_, names)| !names.is_empty()).collect()
    }
}

fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// A skill's files as its needs are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NeedSource {
    /// Markdown, which a model reads.
    Document,
    Python,
    JavaScript,
    PackageList,
    HostSettings,
}

impl Needs {
    /// The needs of a skill. Files that cannot be read have none.
    pub fn of(skill: &Skill) -> Needs {
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
            match source {
                NeedSource::Document => {
                    let front = frontmatter::parse(&text);
                    needs.place.number = text[..front.body_start].lines().count();
                    needs.add_servers(&front.fields);
                    documents::read(&text[front.body_start..], &mut needs);
                }
                NeedSource::Python => scripts::read_python(&text, &own, &mut needs),
                NeedSource::JavaScript => scripts::read_javascript(&text, &mut needs),
                NeedSource::PackageList => scripts::read_package_list(&text, &mut needs),
                NeedSource::HostSettings => scripts::read_host_settings(&text, &mut needs),
            }
        }
        for row in listed_requirements(&skill.root) {
            needs.add_requirement(&row.requirement);
        }
        needs.named.programs = &needs.named.programs - &needs.functions;
        needs
    }

    /// The kinds of which there is something, with the names.
    pub fn kinds(&self) -> Vec<(&'static str, String)> {
        let hosts = Some(("hosts", joined(&self.hosts))).filter(|(_, names)| !names.is_empty());
        self.named.kinds().into_iter().chain(hosts).collect()
    }

    fn add_requirement(&mut self, requirement: &str) {
        if let Some(name) = package_name(requirement) {
            self.named.add(Installer::Python, &name);
            self.required.insert(normalized_name(&name));
        }
    }

    /// Records that the current line installs a Python package. Of several lines the first with
    /// versions counts, or else the first.
    fn infer(&mut self, package: NamedPackage) {
        let NamedPackage { name, requirement } = package;
        let is_better =
            |known: &InferredPackage| known.requirement.is_none() && requirement.is_some();
        let is_room = self.inferred.len() < limits::INFERRED_PACKAGES;
        if is_room && self.inferred.get(&name).is_none_or(is_better) {
            let text = one_line(self.place.text.trim(), limits::QUOTED_BYTES);
            let line = SourceLine { text, ..self.place.clone() };
            let package = InferredPackage { name: name.clone(), requirement, line };
            self.inferred.insert(name, package);
        }
    }

    /// Adds the package of a module that a script imports.
    fn add_module(&mut self, dotted: &str, own: &BTreeSet<String>) {
        let first = dotted.split('.').next().unwrap_or(dotted);
        if !own.contains(first) && !code::is_standard(first) {
            let package = package_of(dotted).unwrap_or_else(|| known_module(dotted));
            self.named.add(Installer::Python, package);
        }
    }

    /// Adds the MCP servers of the tools in the frontmatter: `mcp__github__search`.
    fn add_servers(&mut self, fields: &serde_json::Map<String, Value>) {
        for field in ["allowed-tools", "tools"] {
            let entries: Vec<&str> = match fields.get(field) {
                Some(Value::String(text)) => vec![text],
                Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            let is_end = |c: char| c.is_whitespace() || ",[]()\"'".contains(c);
            let tools = entries.iter().flat_map(|entry| entry.split(is_end));
            let servers = tools.filter_map(|tool| tool.strip_prefix("mcp__")?.split("__").next());
            let named = servers.filter(|server| !server.is_empty()).map(str::to_string);
            self.named.mcp.extend(named);
        }
    }
}

/// Whether a file is the document of the skill.
fn is_document(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.eq_ignore_ascii_case("SKILL.md"))
}

/// A file's kind of source; `None`: it is not read.
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
        "yaml" | "yml" if path.starts_with("agents") => NeedSource::HostSettings,
        _ => return None,
    })
}
