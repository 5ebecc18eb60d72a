//! Syntax check of requirements before anything is installed: an installer may report an invalid
//! one only after minutes.
//!
//! It refuses only what all versions of pip and `uv` refuse. Paths, URLs, options and version
//! numbers are left to them.

/// Version operators; longer ones first, because some are prefixes of others.
const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

/// Suffixes of files that can be installed.
const ARCHIVES: [&str; 12] = [
    ".whl",
    ".zip",
    ".gz",
    ".bz2",
    ".xz",
    ".tar",
    ".tgz",
    ".tbz",
    ".txz",
    ".tlz",
    ".tar.lz",
    ".tar.lzma",
];

/// Returns why a requirement is invalid; `None` if it may be valid.
pub(super) fn syntax_error(requirement: &str) -> Option<&'static str> {
    let requirement = requirement.trim();
    if is_left_to_installer(requirement) {
        return None;
    }
    let requirement = without_marker(requirement);
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let rest = requirement.trim_start_matches(is_name_char);
    if rest.len() == requirement.len() {
        return Some("it does not start with a package name");
    }
    let mut rest = rest.trim();
    if let Some(extras) = rest.strip_prefix('[') {
        let Some((_, after)) = extras.split_once(']') else {
            return Some("a bracket is not closed");
        };
        rest = after.trim();
    }
    // Old requirements have versions in parentheses; any text may follow `===`.
    if rest.is_empty() || rest.starts_with('(') || rest.contains("===") {
        return None;
    }
    let mut versions = rest.split(',').map(str::trim);
    let is_invalid = |version: &str| {
        let Some(number) = OPERATORS.iter().find_map(|operator| version.strip_prefix(operator))
        else {
            return !version.is_empty();
        };
        // Before version 22 of `packaging`, a version could be any word, or missing.
        number.trim().contains(char::is_whitespace)
    };
    versions
        .any(is_invalid)
        .then_some("the text after the name is not a version with an operator, as in `>=3.1`")
}

/// Whether only the installer checks it: a path, a URL, an option, or text with variables.
fn is_left_to_installer(requirement: &str) -> bool {
    requirement.starts_with(['-', '.'])
        || requirement.contains(['/', '\\', '$', ':', '@'])
        || requirement.contains(" -")
        || is_archive(requirement)
}

/// Whether a requirement is the file name of an archive, ignoring extras and marker.
pub(crate) fn is_archive(requirement: &str) -> bool {
    let file = split_file(requirement).0.to_ascii_lowercase();
    ARCHIVES.iter().any(|end| file.ends_with(end))
}

/// Splits a requirement into its file name, and its extras and marker.
pub(super) fn split_file(requirement: &str) -> (&str, &str) {
    let file = without_marker(requirement).trim_end();
    let extras = file.ends_with(']').then(|| file.rfind('[')).flatten();
    requirement.split_at(extras.unwrap_or(file.len()))
}

fn without_marker(requirement: &str) -> &str {
    requirement.split(';').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requirements_that_every_installer_refuses_are_invalid() {
        for good in [
            "a",
            "ruamel.yaml",
            "Flask_Cors",
            "openpyxl>=3.1",
            "a ~= 1.0 , != 1.5,",
            "a==1.*",
            "a===any-thing",
            "a[b,c] >=1",
            "a (>=1)",
            "a; python_version < '3'",
            "a >1 ; sys_platform == 'linux' and extra == 'x'",
            "a @ https://h/x y",
            "git+https://h/x.git",
            "./my wheels/a.whl",
            "my a-1.0.tar.gz",
            "lp-1.0+abc-py3-none-any.whl[foo]",
            "lp-1.0+abc-py3-none-any.whl ; python_version>\"2\"",
            "LP-1.0+abc.TAR.LZMA[a, b] ;os_name=='x'",
            "six===*;python_version<\"2\"",
            "six===1,2",
            "six<*,>=_",
            "six>=",
            "C:\\a b",
            "${NAME} x",
            "-r more.txt",
            "a==1 --hash=sha256:00",
        ] {
            assert_eq!(syntax_error(good), None, "{good}");
        }
        for bad in [
            "a b", "a 1.0", "a=1", "a>=1 <2", "a>=1 2", "a[b", "a!", "==1", "größe", "a, b", "[a]",
            "'a'",
        ] {
            assert!(syntax_error(bad).is_some(), "{bad}");
        }
    }
}
