//! Requirements files: lines have numbers that are there, what is added to a
//! file is a line of its own, and names are compared in one way.

use std::borrow::Cow;

use skills_runner::internals::skills::packages::{known_part, normalized, package_of, project};
use skills_runner::internals::skills::{decoded, ends_line, is_continued, lines};

/// See the module.
pub fn check(data: &[u8]) {
    let text = decoded(data);
    if let Ok(same) = std::str::from_utf8(data)
        && !data.contains(&b'#')
        && !data.starts_with(&[0, 0])
    {
        assert!(matches!(text, Cow::Borrowed(it) if it == same), "UTF-8 stays as it is");
    }
    let found = lines(&text);
    let count = 1 + text.matches(|c| c == '\n' || ends_line(c)).count();
    let mut before = 0;
    for (number, line) in &found {
        assert!(before < *number && *number <= count, "line {number} of {count}");
        assert!(!line.is_empty() && line.trim() == line, "{line:?}");
        assert!(!line.contains(|c| c == '\n' || ends_line(c)), "{line:?}");
        before = *number;
        check_names(line);
    }
    check_added(&text, &found);
}

/// A requirement that is added behind the last line is one of its own.
fn check_added(text: &str, found: &[(usize, String)]) {
    if is_continued(text) {
        return;
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let mut added = lines(&format!("{text}{end}six\n"));
    assert_eq!(added.pop().map(|(_, line)| line).as_deref(), Some("six"), "{text:?}");
    assert_eq!(added, found);
}

fn check_names(line: &str) {
    let name = project(line);
    assert_eq!(normalized(&name), name, "{line:?}");
    assert_eq!(project(&name), name, "{line:?}");
    assert!(!name.starts_with('-') && !name.ends_with('-') && !name.contains("--"), "{name:?}");
    let part = known_part(line);
    assert!(line.starts_with(part));
    assert_eq!(package_of(part).is_some(), package_of(line).is_some(), "{line:?}");
}
