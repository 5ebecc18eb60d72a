//! Requirements files: line numbers exist, an added requirement is a separate line, and names
//! are normalized consistently.

use std::borrow::Cow;

use skills::packages::{known_module, normalized_name, package_of, project_name};
use skills::requirements::{decode, is_line_end, logical_lines};

/// See the module.
pub fn check(data: &[u8]) {
    let text = decode(data);
    if let Ok(same) = std::str::from_utf8(data)
        && !data.contains(&b'#')
        && !data.starts_with(&[0, 0])
    {
        assert!(matches!(text, Cow::Borrowed(it) if it == same), "UTF-8 stays as it is");
    }
    let found = logical_lines(&text);
    let count = 1 + text.matches(|c| c == '\n' || is_line_end(c)).count();
    let mut before = 0;
    for (number, line) in &found {
        assert!(before < *number && *number <= count, "line {number} of {count}");
        assert!(!line.is_empty() && line.trim() == line, "{line:?}");
        assert!(!line.contains(|c| c == '\n' || is_line_end(c)), "{line:?}");
        before = *number;
        check_names(line);
    }
}

fn check_names(line: &str) {
    let name = project_name(line);
    assert_eq!(normalized_name(&name), name, "{line:?}");
    assert_eq!(project_name(&name), name, "{line:?}");
    assert!(!name.starts_with('-') && !name.ends_with('-') && !name.contains("--"), "{name:?}");
    let part = known_module(line);
    assert!(line.starts_with(part));
    assert_eq!(package_of(part).is_some(), package_of(line).is_some(), "{line:?}");
}
