//! What to do where a rule alone does not tell: it depends on what stands in
//! the line.

use super::DocumentText;
use crate::skills::frontmatter::Diagnostic;
use crate::skills::yaml::lines::split_key;

/// The remedy for a finding of the reader, where its rule alone does not tell.
pub(super) fn of(page: &DocumentText, finding: &Diagnostic) -> Option<String> {
    let at = finding.line.checked_sub(page.source_line())?;
    let line = page.source().lines().nth(at)?;
    match finding.rule {
        "anchor-alias-tag" => of_mark(page, line),
        "not-a-field" if !line.contains(':') => {
            let fix = "write it as `key: value`, or indent it if it goes on with the value above";
            Some(fix.to_owned())
        }
        "tab" if !line.trim_start_matches(' ').starts_with('\t') => {
            Some("use spaces, or put text that has a tab in double quotes".to_owned())
        }
        "field-type" if finding.message.contains("is a list") => {
            let is_flow = split_key(line).is_some_and(|(_, rest)| rest.trim().starts_with('['));
            let fix = if is_flow {
                "take the brackets away, and put the text in double quotes"
            } else {
                "write it as one text in double quotes"
            };
            Some(fix.to_owned())
        }
        _ => None,
    }
}

fn of_mark(page: &DocumentText, line: &str) -> Option<String> {
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
