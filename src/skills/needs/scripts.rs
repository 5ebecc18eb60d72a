//! Needs of scripts and the lists of packages beside them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Needs;
use super::code::{npm_imports, python_imports};
use super::install::{Installer, npm_name};
use crate::packages::{normalized_name, package_of};
use crate::programs::is_everywhere;
use crate::yaml;
use base::bounded;
use base::text::one_line_name;

/// Adds what a Python file needs.
pub(super) fn read_python(text: &str, own: &BTreeSet<String>, needs: &mut Needs) {
    let mut is_block = false;
    let mut is_listed = false;
    let mut in_string = false;
    for line in text.lines() {
        // The texts of prompts and templates have imports, too.
        let quotes = line.matches("\"\"\"").count() + line.matches("'''").count();
        if quotes % 2 == 1 {
            in_string = !in_string;
            continue;
        }
        if in_string {
            continue;
        }
        if line.starts_with("# /// script") {
            is_block = true;
        } else if line.starts_with("# ///") {
            is_block = false;
        } else if is_block {
            is_listed |= line.contains("dependencies");
            if is_listed {
                quoted(line).for_each(|requirement| needs.add_requirement(requirement));
                is_listed = !line.contains(']');
            }
        }
        for module in python_imports(line) {
            needs.add_module(&module, own);
            // One in a block may be tried, or needed only for some task.
            let package = package_of(&module).filter(|_| line.starts_with(['i', 'f']));
            needs
                .required
                .extend(package.map(normalized_name).filter(|it| needs.named.python.contains(it)));
        }
    }
}

/// Adds what a file of JavaScript or TypeScript needs.
pub(super) fn read_javascript(text: &str, needs: &mut Needs) {
    for line in text.lines() {
        npm_imports(line).for_each(|package| needs.named.add(Installer::Npm, &package));
    }
}

/// Adds the dependencies of a `package.json`.
pub(super) fn read_package_list(text: &str, needs: &mut Needs) {
    let Ok::<Value, _>(list) = bounded::from_slice(text.as_bytes()) else { return };
    for field in ["dependencies", "devDependencies"] {
        let names = list[field].as_object().into_iter().flatten();
        names
            .filter_map(|(name, _)| npm_name(name))
            .for_each(|name| needs.named.add(Installer::Npm, &name));
    }
}

/// Adds the MCP servers and programs in the settings for a host (`agents/openai.yaml`).
pub(super) fn read_host_settings(text: &str, needs: &mut Needs) {
    let Ok(settings) = yaml::parse_core(text) else { return };
    let tools = settings.value["dependencies"]["tools"].as_array();
    for tool in tools.into_iter().flatten() {
        match tool["value"].as_str() {
            Some(name) if tool["type"] != "cli" => {
                needs.named.mcp.insert(one_line_name(name));
            }
            Some(name) if !is_everywhere(name) => {
                needs.named.programs.insert(one_line_name(name));
            }
            _ => {}
        }
    }
}

/// The texts in quotes of a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let at = rest.find(['"', '\'', '`'])?;
        let quote = rest[at..].chars().next()?;
        let (text, behind) = rest[at + 1..].split_once(quote)?;
        rest = behind;
        Some(text)
    })
}
