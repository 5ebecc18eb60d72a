//! What to do about what YAML takes for more than text: it depends on what
//! stands there.

use super::Page;
use crate::skills::frontmatter::Diagnostic;

/// The remedy for a finding of the reader, where its rule alone does not tell.
pub(super) fn of(page: &Page, finding: &Diagnostic) -> Option<String> {
    if finding.rule != "anchor-alias-tag" {
        return None;
    }
    let at = finding.line.checked_sub(page.source_line())?;
    let line = page.source().lines().nth(at)?;
    let word = marked_word(line)?;
    let (mark, name) = word.split_at_checked(1)?;
    let is_anchored = || words(page.source()).any(|word| word.strip_prefix('&') == Some(name));
    Some(match mark {
        "!" if name.starts_with('!') => {
            format!("take the tag `{word}` out, and put the value behind it in double quotes")
        }
        "&" if !name.is_empty() => format!(
            "take the anchor `{word}` out, and write its value once more where `*{name}` stands \
             for it"
        ),
        "*" if is_anchored() => {
            format!("write out, in place of `{word}`, what the anchor `&{name}` stands for")
        }
        _ => "put the value in double quotes".to_owned(),
    })
}

/// The first word that begins with one of the marks.
fn marked_word(line: &str) -> Option<&str> {
    words(line).find(|word| word.starts_with(['&', '*', '!']))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || ",[]{}".contains(c))
}
