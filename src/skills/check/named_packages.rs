//! The packages that a skill's files name for a reader: in `pip install` lines, prose, lists of
//! requirements, code blocks.
//!
//! A word counts wherever it stands: a model or a user who reads it does not have to guess.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use crate::Skill;
use crate::packages::normalized_name;
use base::limits;
use host::confined::{WalkLimits, read_whole};

/// Suffixes of files in which every word counts.
const TEXTS: [&str; 9] = ["md", "mdx", "txt", "rst", "toml", "yml", "yaml", "cfg", "sh"];

/// Words that mark lines that are about packages.
const ABOUT_PACKAGES: [&str; 5] = ["install", "requir", "depend", "packag", "pip"];

/// The words of a skill's files.
#[derive(Default)]
pub(super) struct NamedPackages {
    /// Those that may be names of packages.
    words: BTreeSet<String>,
    /// Those that may be names of modules: of import statements and lines about packages.
    modules: BTreeSet<String>,
    /// Not all files were read.
    is_cut: bool,
}

impl NamedPackages {
    /// Reads the documents and scripts of a skill.
    pub(super) fn read(skill: &Skill) -> NamedPackages {
        let mut named = NamedPackages::default();
        let tree = skill.root.walk(WalkLimits {
            depth: limits::WALK_DEPTH,
            files: limits::PROBE_FILES,
            entries: limits::PROBE_ENTRIES,
        });
        let tree = tree.unwrap_or_default();
        named.is_cut = tree.is_cut;
        let mut bytes_left = limits::PROBE_SKILL_BYTES;
        for path in &tree.files {
            let Some(is_script) = is_read(path) else { continue };
            let piece = skill.root.file(path).and_then(|file| read_whole(&file, bytes_left));
            let Ok(piece) = piece else { continue };
            named.is_cut |= piece.has_more;
            bytes_left -= piece.bytes.len();
            for line in String::from_utf8_lossy(&piece.bytes).lines() {
                named.add_line(line, is_script);
            }
        }
        named
    }

    fn add_line(&mut self, line: &str, is_script: bool) {
        let is_import = ["import ", "from "].iter().any(|word| line.trim_start().starts_with(word));
        let lower = line.to_ascii_lowercase();
        let is_about_packages = ABOUT_PACKAGES.iter().any(|word| lower.contains(word));
        if is_script && (is_import || !is_about_packages) {
            return;
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        for word in line.split(|c| !is_part(c)).filter(|word| !word.is_empty()) {
            let ends = word.match_indices('.').map(|(end, _)| end).chain([word.len()]);
            for name in ends.map(|end| normalized_name(&word[..end])) {
                if is_import || is_about_packages {
                    self.modules.insert(name.clone());
                }
                self.words.insert(name);
            }
        }
    }

    /// Whether a file names the package of a module, or imports the module as an example. An
    /// unknown package has a name that contains the module's.
    pub(super) fn includes(&self, module: &str, package: Option<&str>) -> bool {
        let module = normalized_name(module);
        let is_named = match package {
            Some(package) => self.words.contains(&normalized_name(package)),
            None => {
                let module = module.replace('-', "");
                self.words.iter().any(|word| word.replace('-', "").contains(&module))
            }
        };
        self.is_cut || is_named || self.modules.contains(&module)
    }
}

/// Whether a file is a script; `None`: it is not read.
fn is_read(path: &Path) -> Option<bool> {
    let extension = path.extension().and_then(OsStr::to_str)?;
    let is_script = extension == "py";
    (is_script || TEXTS.iter().any(|text| extension.eq_ignore_ascii_case(text)))
        .then_some(is_script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_a_package() {
        for (line, is_script, module, package, expected) in [
            ("pip install python-docx==1.1", false, "docx", Some("python-docx"), true),
            ("It uses `python_docx`.", false, "docx", Some("python-docx"), true),
            ("pip3 install firecrawl", false, "firecrawl", Some("firecrawl-py"), true),
            ("Edit the docx file.", false, "docx", Some("python-docx"), false),
            ("    from docx.shared import Pt", false, "docx", Some("python-docx"), true),
            ("open config.yaml, docs/yaml", false, "yaml", Some("PyYAML"), false),
            ("import google.cloud.storage as s", false, "google.cloud.storage", None, true),
            ("it reads gseapy.", false, "gseapy", None, true),
            ("pip install grid-scribe-sdk", false, "gridscribe", None, true),
            ("It scribes a grid.", false, "gridscribe", None, false),
            ("import requests", true, "requests", Some("requests"), false),
            ("requests.get(url)", true, "requests", Some("requests"), false),
            ("print('pip install requests')", true, "requests", Some("requests"), true),
        ] {
            let mut named = NamedPackages::default();
            named.add_line(line, is_script);
            assert_eq!(named.includes(module, package), expected, "{line}");
        }
    }
}
