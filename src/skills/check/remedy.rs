//! Fixes that depend on the text of the line, not on the rule alone.

use super::DocumentText;
use crate::skills::frontmatter::Diagnostic;
use crate::skills::yaml::lines::split_key;

/// Returns the fix for a diagnostic of the reader if the line decides it.
pub(super) fn find_remedy(document: &DocumentText, finding: &Diagnostic) -> Option<String> {
    let at = finding.line.checked_sub(document.source_line())?;
    let line = document.source().lines().nth(at)?;
    match finding.rule {
        "anchor-alias-tag" => mark_remedy(document, line),
        "not-a-field" if !line.contains(':') => {
            let fix = "write it as `key: value`, or indent it if it continues the value above";
            Some(fix.to_owned())
        }
        "tab" if !line.trim_start_matches(' ').starts_with('\t') => {
            Some("use spaces, or put text that has a tab in double quotes".to_owned())
        }
        "field-type" if finding.message.contains("is a list") => {
            let is_flow = split_key(line).is_some_and(|(_, rest)| rest.trim().starts_with('['));
            let fix = if is_flow {
                "remove the brackets, and put the text in double quotes"
            } else {
                "write it as one text in double quotes"
            };
            Some(fix.to_owned())
        }
        _ => None,
    }
}

fn mark_remedy(document: &DocumentText, line: &str) -> Option<String> {
    let word = marked_word(line)?;
    let (mark, name) = word.split_at_checked(1)?;
    let is_anchored = || words(document.source()).any(|word| word.strip_prefix('&') == Some(name));
    Some(match mark {
        "!" if name.starts_with('!') => {
            format!("remove the tag `{word}`, and put the value after it in double quotes")
        }
        "&" if !name.is_empty() => {
            format!("remove the anchor `{word}`, and repeat its value in place of `*{name}`")
        }
        "*" if is_anchored() => {
            format!("replace `{word}` with the value of the anchor `&{name}`")
        }
        _ => "put the value in double quotes".to_owned(),
    })
}

/// Returns the first word that starts with `&`, `*` or `!`.
fn marked_word(line: &str) -> Option<&str> {
    words(line).find(|word| word.starts_with(['&', '*', '!']))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || ",[]{}".contains(c))
}
