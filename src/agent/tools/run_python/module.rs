//! Scripts that can only run as a module of their package.
//!
//! Some skills are written for `python -m scripts.report`: their scripts contain relative imports
//! (`from .tables import …`), which Python refuses in a file that is run by its path.

use std::path::{Component, Path};

/// Returns the module's name for `-m` if the script at `relative` in the skill's folder must run
/// as a module.
pub(super) fn module_name(relative: &str, source: &[u8]) -> Option<String> {
    imports_relatively(source).then(|| dotted_name(relative)).flatten()
}

fn imports_relatively(source: &[u8]) -> bool {
    source.split(|byte| *byte == b'\n').any(|line| {
        let rest = line.trim_ascii_start().strip_prefix(b"from");
        rest.is_some_and(|rest| rest.starts_with(b" ") && rest.trim_ascii_start().starts_with(b"."))
    })
}

/// Converts `scripts/report.py` to `scripts.report`; `None` for a file outside any folder, or a
/// path that is not a valid Python name.
fn dotted_name(relative: &str) -> Option<String> {
    let mut names = Vec::new();
    for component in Path::new(relative.strip_suffix(".py")?).components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let is_name = |name: &&str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    (names.len() > 1 && names.iter().all(is_name)).then(|| names.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_imports_make_a_module() {
        for source in ["from . import a", "x = 1\n    from .a import b\n", "from  ..a import b"] {
            assert!(imports_relatively(source.as_bytes()), "{source}");
        }
        for source in ["", "import a", "from a import b", "fromage = .5", "# from .a"] {
            assert!(!imports_relatively(source.as_bytes()), "{source}");
        }
    }

    #[test]
    fn a_path_is_a_module_only_where_python_can_name_it() {
        for (path, module) in [
            ("scripts/x.py", Some("scripts.x")),
            ("./scripts//deep/x.py", Some("scripts.deep.x")),
            ("x.py", None),
            ("scripts/x", None),
            ("my-scripts/x.py", None),
            ("scripts/2x.py", None),
            ("../a/x.py", None),
        ] {
            assert_eq!(dotted_name(path).as_deref(), module, "{path}");
        }
    }
}
