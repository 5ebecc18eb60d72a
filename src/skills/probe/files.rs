//! The files of a skill that the probe reads, and the modules that they define.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::Skill;
use crate::requirements::REQUIREMENTS_FILES;
use base::limits;
use host::confined::{FileTree, WalkLimits};

/// Kind of a file that the probe reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileRole {
    Script,
    Project,
    Requirements,
}

pub(super) fn file_role(path: &Path) -> Option<FileRole> {
    let is_one_of = |files: [&str; 2]| files.iter().any(|file| path == Path::new(file));
    if path.extension() == Some(OsStr::new("py")) {
        Some(FileRole::Script)
    } else if is_one_of(["pyproject.toml", "scripts/pyproject.toml"]) {
        Some(FileRole::Project)
    } else if is_one_of(REQUIREMENTS_FILES) {
        Some(FileRole::Requirements)
    } else {
        None
    }
}

/// Whether a file is not a script to run, but a template, an example, a test or the like.
pub(crate) fn is_sample_file(path: &Path) -> bool {
    const FOLDERS: [&str; 12] = [
        "assets",
        "boilerplate",
        "example",
        "examples",
        "fixtures",
        "reference",
        "references",
        "template",
        "templates",
        "test",
        "testdata",
        "tests",
    ];
    let is_such = |name: &OsStr| FOLDERS.iter().any(|folder| name.eq_ignore_ascii_case(folder));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.parent().is_some_and(|folder| folder.iter().any(is_such))
        || name.starts_with("test_")
        || name.ends_with("_test.py")
        || ["conftest.py", "setup.py"].contains(&name.as_ref())
}

/// Modules that a skill provides itself: every name in the path of one of its Python
/// files or extension modules, as scripts may search for modules anywhere.
pub(crate) fn own_modules(tree: &FileTree) -> BTreeSet<String> {
    let is_module = |path: &&PathBuf| {
        let extension = path.extension().and_then(OsStr::to_str);
        matches!(extension, Some("py" | "pyc" | "so" | "pyd"))
    };
    let words = tree.files.iter().filter(is_module).flat_map(|path| {
        path.iter().filter_map(|word| {
            let word = word.to_str()?;
            word.split('.').next().map(str::to_owned)
        })
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// The module name of a Python file for scripts in the same folder; `None` for part of a
/// package, and for names that are not UTF-8.
pub(super) fn top_module(path: &Path, is_package: &dyn Fn(&Path) -> bool) -> Option<String> {
    let folder = path.parent()?;
    let (name, within) = match path.file_stem()?.to_str()? {
        "__init__" => (folder.file_name()?.to_str()?, folder.parent()?),
        name => (name, folder),
    };
    (!is_package(within)).then(|| name.to_owned())
}

pub(crate) fn file_tree(skill: &Skill) -> FileTree {
    let limits = WalkLimits {
        depth: limits::WALK_DEPTH,
        files: limits::PROBE_FILES,
        entries: limits::PROBE_ENTRIES,
    };
    skill.root.walk(limits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_read() {
        for (path, expected) in [
            ("a.py", Some(FileRole::Script)),
            ("deep/down/a.py", Some(FileRole::Script)),
            ("a.pyc", None),
            ("requirements.txt", Some(FileRole::Requirements)),
            ("scripts/requirements.txt", Some(FileRole::Requirements)),
            ("assets/requirements.txt", None),
            ("pyproject.toml", Some(FileRole::Project)),
            ("scripts/pyproject.toml", Some(FileRole::Project)),
            ("assets/pyproject.toml", None),
        ] {
            assert_eq!(file_role(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn samples_are_not_scripts() {
        for path in [
            "assets/app.py",
            "scripts/Templates/app.py",
            "tests/run.py",
            "scripts/test_a.py",
            "a_test.py",
            "setup.py",
        ] {
            assert!(is_sample_file(Path::new(path)), "{path}");
        }
        for path in ["scripts/a.py", "a.py", "latest.py", "test.py", "core/x.py"] {
            assert!(!is_sample_file(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn own_modules_are_all_names_in_paths_of_python_files() {
        let files = ["lib/inner/a.py", "fast.cpython-311-x86_64.so", "pandas/notes.md"];
        let tree = FileTree { files: files.map(PathBuf::from).to_vec(), ..FileTree::default() };
        let own: Vec<String> = own_modules(&tree).into_iter().collect();
        assert_eq!(own, ["a", "fast", "inner", "lib"]);
    }
}
