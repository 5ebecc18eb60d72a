//! Whether a requirement can be one, by its shape: said before anything is done,
//! where an installer says it after minutes.
//!
//! Only what every pip and `uv` refuse is refused here; paths, addresses, options,
//! and what a version may be are theirs to judge.

/// What a version begins with. Longer ones first, so that none is taken for the
/// beginning of another.
const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

/// How files end that are installed.
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

/// Why the requirement is none.
pub(super) fn fault(requirement: &str) -> Option<&'static str> {
    let requirement = requirement.trim();
    if is_for_others(requirement) {
        return None;
    }
    let requirement = without_marker(requirement);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let rest = requirement.trim_start_matches(is_of_name);
    if rest.len() == requirement.len() {
        return Some("it does not begin with the name of a package");
    }
    let mut rest = rest.trim();
    if let Some(extras) = rest.strip_prefix('[') {
        let Some((_, behind)) = extras.split_once(']') else {
            return Some("a bracket is not closed");
        };
        rest = behind.trim();
    }
    // Old ones have their versions in parentheses; behind `===` all may stand.
    if rest.is_empty() || rest.starts_with('(') || rest.contains("===") {
        return None;
    }
    let mut versions = rest.split(',').map(str::trim);
    let is_wrong = |version: &str| {
        let Some(number) = OPERATORS.iter().find_map(|it| version.strip_prefix(it)) else {
            return !version.is_empty();
        };
        // Before packaging 22 a version was any word, or none.
        number.trim().contains(char::is_whitespace)
    };
    versions
        .any(is_wrong)
        .then_some("what is behind the name is no version with its operator, as in `>=3.1`")
}

/// A path, an address, an option, or what only an installer fills in.
fn is_for_others(requirement: &str) -> bool {
    requirement.starts_with(['-', '.'])
        || requirement.contains(['/', '\\', '$', ':', '@'])
        || requirement.contains(" -")
        || is_archive(requirement)
}

/// Whether it is the name of a file, before its extras and its marker.
pub(crate) fn is_archive(requirement: &str) -> bool {
    let file = split_file(requirement).0.to_ascii_lowercase();
    ARCHIVES.iter().any(|end| file.ends_with(end))
}

/// The name of a file, and the extras and the marker behind it.
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
    fn only_what_no_installer_takes_is_refused() {
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
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in [
            "a b", "a 1.0", "a=1", "a>=1 <2", "a>=1 2", "a[b", "a!", "==1", "größe", "a, b", "[a]",
            "'a'",
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }
}
