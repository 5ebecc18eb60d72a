//! What scripts and the lists of packages beside them need.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Needs;
use super::code::{npm_imports, python_imports, uses_network};
use super::install::{Installer, npm_name};
use super::shell::{ShellReader, read_line};
use crate::bounded;
use crate::skills::packages::{normalized_name, package_of};
use crate::skills::programs::is_everywhere;
use crate::skills::yaml;
use crate::text::one_line_name;

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
            needs.network |= uses_network(&module);
            needs.add_module(&module, own, true);
            // One in a block may be tried, or needed only for some task.
            let package = package_of(&module).filter(|_| line.starts_with(['i', 'f']));
            needs
                .required
                .extend(package.map(normalized_name).filter(|it| needs.named.python.contains(it)));
        }
        if !line.contains('(') && !line.contains('[') {
            continue;
        }
        for words in [
            "subprocess.run([",
            "subprocess.Popen([",
            "check_output([",
            "check_call([",
            "shutil.which(",
            "which(",
            "run([",
            "cmd = [",
        ] {
            started(line, words, needs);
        }
    }
}

/// Adds what a file of JavaScript or TypeScript needs.
pub(super) fn read_javascript(text: &str, needs: &mut Needs) {
    needs.named.programs.insert("node".to_string());
    needs.shell = true;
    for line in text.lines() {
        npm_imports(line).for_each(|package| needs.add_package(Installer::Npm, &package));
        needs.network |= line.contains("fetch(") || line.contains("https.request(");
        for words in ["spawn(", "spawnSync(", "execFile(", "execFileSync("] {
            started(line, words, needs);
        }
        for words in ["execSync(", "exec("] {
            if let Some((_, rest)) = line.split_once(words)
                && let Some(command) = quoted(rest).next()
                && rest.starts_with(['"', '\'', '`'])
            {
                read_line(command, needs);
            }
        }
    }
}

/// Adds what a script of a shell needs.
pub(super) fn read_shell(text: &str, needs: &mut Needs) {
    needs.shell = true;
    let mut reader = ShellReader::default();
    for line in text.lines() {
        needs.place.next(line);
        reader.read(line, needs);
    }
}

/// Adds the dependencies of a `package.json`.
pub(super) fn read_package_list(text: &str, needs: &mut Needs) {
    let Ok::<Value, _>(list) = bounded::from_slice(text.as_bytes()) else { return };
    for field in ["dependencies", "devDependencies"] {
        let names = list[field].as_object().into_iter().flatten();
        names
            .filter_map(|(name, _)| npm_name(name))
            .for_each(|name| needs.add_package(Installer::Npm, &name));
    }
}

/// Adds the MCP servers and connectors in the settings for a host (`agents/openai.yaml`).
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

/// Adds the program in a list of words or a first argument behind these words.
fn started(line: &str, words: &str, needs: &mut Needs) {
    let Some((_, rest)) = line.split_once(words) else { return };
    if !rest.starts_with(['"', '\'']) {
        return;
    }
    let Some(program) = quoted(rest).next() else { return };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
    let is_name = !program.is_empty() && program.chars().all(is_part);
    if is_name && !is_everywhere(program) {
        needs.named.programs.insert(program.to_string());
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
