//! Skill documents: the tolerant parser agrees with the strict one.

use serde_json::{Map, Value};
use skills::frontmatter::{self, Frontmatter, first_line_of_text, parse_head};
use skills::yaml::{self, fence};

use crate::cuts::Numbers;
use crate::memory::with_limit;

/// See the module.
pub fn check(data: &[u8]) {
    let most = (1 << 18) + 1000 * data.len();
    let head = with_limit(most, || parse_head(data, true)).expect("a whole document is read");
    assert!(head.body_start <= data.len());
    let Ok(document) = std::str::from_utf8(data) else {
        return;
    };
    let front = frontmatter::parse(document);
    assert_eq!(shown(&head), shown(&front));
    check_fields(&front, document);
    check_strict(&front, document);
    check_heads(&front, document);
}

fn shown(front: &Frontmatter) -> String {
    format!("{front:?}")
}

fn check_fields(front: &Frontmatter, document: &str) {
    let body = document.get(front.body_start..).expect("the body begins at a character");
    document.get(front.source.clone()).expect("the source lies in the document");
    assert!(front.source.end <= front.body_start);
    let lines = 1 + document.matches(['\n', '\r']).count();
    let mut before = 0;
    for found in &front.diagnostics {
        assert!((1..=lines).contains(&found.line), "{found:?} of {lines} lines");
        assert!(before <= found.line, "out of order: {found:?}");
        assert!(!found.message.contains('\n'), "{found:?}");
        before = found.line;
    }
    for (key, _) in &front.fields {
        front.text(key);
        front.as_written(key);
    }
    for text in [front.name(), front.description()].into_iter().flatten() {
        assert!(!text.trim().is_empty());
    }
    assert!(first_line_of_text(body).is_none_or(|line| !line.is_empty() && body.contains(line)));
}

/// The values between two lines of dashes, read by the strict parser alone.
fn strict(document: &str) -> Option<Map<String, Value>> {
    let start = fence::find_opening(document)?;
    let (end, _) = fence::find_closing_line(document, start, "---", true)?;
    match yaml::parse(&yaml::normalize(&document[start..end])).ok()?.value {
        Value::Object(fields) => Some(fields),
        // Empty frontmatter has no fields.
        Value::Null => Some(Map::new()),
        _ => None,
    }
}

fn check_strict(front: &Frontmatter, document: &str) {
    if let Some(fields) = strict(document) {
        assert_eq!(front.fields, fields);
    }
}

/// Checks that the first bytes suffice if they contain the whole frontmatter.
fn check_heads(front: &Frontmatter, document: &str) {
    let mut numbers = Numbers::of(document.as_bytes());
    for _ in 0..4 {
        let bytes = &document.as_bytes()[..numbers.below(document.len() + 1)];
        let start = std::str::from_utf8(bytes).ok().and_then(fence::find_opening);
        let Some(head) = parse_head(bytes, false) else {
            continue;
        };
        if start.is_some() {
            assert_eq!(head.fields, front.fields, "{} bytes", bytes.len());
            assert_eq!((head.body_start, &head.source), (front.body_start, &front.source));
        }
    }
}
