//! The imports of the source files, and the cycles between modules that they make.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

/// The crates of the workspace below `src`; the other folders are modules of the program's crate.
const CRATES: [&str; 5] = ["agent", "base", "chat_api", "host", "skills"];

/// One import: module paths as lists of names, without `crate`.
pub(crate) struct Import {
    /// The file, relative to `src`.
    pub(crate) file: String,
    /// The module that imports.
    pub(crate) from: Vec<String>,
    /// The path that it imports: a module, or an item in it.
    pub(crate) path: Vec<String>,
}

/// All imports, in `use` declarations and in paths inside the code.
pub(crate) fn imports(sources: &[Source]) -> Vec<Import> {
    let mut imports = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let from = module_path(&source.name);
        let code = source.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
        for start in ["crate::", "super::"] {
            for (at, _) in code.match_indices(start) {
                let before = &code[..at];
                // `super::super::` is read at its first `super`.
                if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue;
                }
                for path in expand(&code[at..]) {
                    let path = absolute(&from, &path);
                    imports.push(Import { file: source.name.clone(), from: from.clone(), path });
                }
            }
        }
    }
    imports
}

/// Cycles between neighbours: modules in the same folder that need each other, where a folder
/// stands for everything in it. Each cycle is reported once, with the imports that close it.
pub(crate) fn cycles(imports: &[Import]) -> Vec<String> {
    let modules: BTreeSet<&[String]> = imports.iter().map(|import| &import.from[..]).collect();
    let mut neighbours: BTreeMap<&[String], Vec<(&str, &str, &str)>> = BTreeMap::new();
    for import in imports {
        let both = import.from.iter().zip(&import.path);
        let shared = both.take_while(|(from, path)| from == path).count();
        let (Some(from), Some(to)) = (import.from.get(shared), import.path.get(shared)) else {
            continue;
        };
        // An item of the parent is no neighbour.
        let neighbour = &import.path[..=shared];
        if modules.iter().any(|module| module.starts_with(neighbour)) {
            neighbours.entry(&import.path[..shared]).or_default().push((from, to, &import.file));
        }
    }
    let mut cycles = Vec::new();
    for (folder, edges) in neighbours {
        let mut reported = BTreeSet::new();
        for &(from, to, file) in &edges {
            let is_cycle = reaches(&edges, to, from);
            if is_cycle && reported.insert((from, to)) {
                let folder = folder.join("/");
                cycles.push(format!(
                    "src/{folder}: `{from}` needs `{to}` (src/{file}), which needs `{from}`"
                ));
            }
        }
    }
    cycles
}

/// Whether imports lead from one neighbour to the other.
fn reaches(edges: &[(&str, &str, &str)], from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for &(_, next, _) in edges.iter().filter(|(start, ..)| *start == module) {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen.contains(to)
}

/// The module of a file: `skills/yaml/mod.rs` is `skills`, `yaml`.
fn module_path(name: &str) -> Vec<String> {
    let path = name.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib");
    path.split('/').map(str::to_string).collect()
}

/// The paths of a use tree at the start of the code: `a::{b, c::d}` are `a::b` and `a::c::d`.
fn expand(code: &str) -> Vec<Vec<String>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut path = Vec::new();
    let mut rest = code;
    loop {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        if end > 0 {
            path.push(rest[..end].to_string());
        }
        let Some(next) = rest[end..].strip_prefix("::") else { return vec![path] };
        rest = next;
        if let Some(group) = rest.strip_prefix('{') {
            let branches = branches(group).into_iter().flat_map(expand);
            return branches.map(|branch| [path.clone(), branch].concat()).collect();
        }
    }
}

/// The parts between the commas of a group, up to its closing brace.
fn branches(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut branches) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                branches.push(group[start..at].trim());
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    branches
}

/// A path that begins with `crate` or `super` as a path from `src`.
fn absolute(from: &[String], path: &[String]) -> Vec<String> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let is_crate = from.first().is_some_and(|name| CRATES.contains(&name.as_str()));
    match supers {
        0 => [&from[..usize::from(is_crate)], &path[1..]].concat(),
        _ => [&from[..from.len() - supers], &path[supers..]].concat(),
    }
}

#[test]
fn paths_are_found_in_use_trees() {
    let paths = |code| expand(code).iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(
        paths("crate::a::{b, c::{d, E}, self};"),
        ["crate::a::b", "crate::a::c::d", "crate::a::c::E", "crate::a::self"]
    );
    assert_eq!(paths("crate::a::b(1)"), ["crate::a::b"]);
    let from = module_path("skills/yaml/mod.rs");
    let parent = ["super".to_string(), "check".to_string()];
    assert_eq!(absolute(&from, &parent), ["skills", "check"]);
    let own = ["crate".to_string(), "check".to_string()];
    assert_eq!(absolute(&from, &own), ["skills", "check"]);
}
