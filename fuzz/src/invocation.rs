//! Documents with arguments: words are split as in a shell, inserted values are not searched
//! for placeholders, and a document without placeholders stays as it is.

use base::limits;
use skills::frontmatter;
use skills::invocation::{SkillFolders, is_for_users, render};
use skills::split_words;

/// A character that occurs in no document and no argument.
const ARGUMENT: &str = "\u{e000}";
const FOLDER: &str = "\u{e001}";

/// See the module. The input is the document, and after a NUL the arguments.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (document, arguments) = text.split_once('\0').unwrap_or((text, ""));
    check_words(arguments);
    check_words(document);
    is_for_users(&frontmatter::parse(document));
    check_body(document, arguments);
    if !text.contains([ARGUMENT, FOLDER].map(|mark| mark.chars().next().unwrap_or_default())) {
        check_values(document);
    }
}

fn check_words(line: &str) {
    let all = split_words(line, usize::MAX);
    assert_eq!(split_words(line, 3), all[..all.len().min(3)]);
    assert_eq!(all.is_empty(), line.trim_matches(|c: char| c.is_ascii_whitespace()).is_empty());
    let mut quoted = String::new();
    for word in &all {
        quoted.push_str(" \"");
        for c in word.chars() {
            if matches!(c, '"' | '\\' | '$' | '`') {
                quoted.push('\\');
            }
            quoted.push(c);
        }
        quoted.push_str("\"\t");
    }
    assert_eq!(split_words(&quoted, usize::MAX), all, "{quoted}");
    let single = all.iter().filter(|word| !word.contains('\''));
    let quoted: Vec<String> = single.clone().map(|word| format!("'{word}'")).collect();
    assert_eq!(split_words(&quoted.join(" "), usize::MAX), single.cloned().collect::<Vec<_>>());
}

/// Checks the body, with and without placeholders.
fn check_body(document: &str, arguments: &str) {
    let front = frontmatter::parse(document);
    let body = if front.is_unclosed { document } else { &document[front.body_start..] };
    let folders = SkillFolders::new("/skills/a b");
    let plain = !document.contains(['$', '{', '<']);
    assert!(!plain || render(document, &folders, None).is_ok_and(|text| text == document));
    let Ok(text) = render(document, &folders, Some(arguments)) else {
        return;
    };
    assert!(text.len() <= limits::INVOCATION_BYTES);
    if !body.contains(['$', '{', '<', '\\']) {
        let rest = text.strip_prefix(body).expect("a plain body stays as it is");
        let expected = match arguments.trim() {
            "" => String::new(),
            _ => format!("\n\nARGUMENTS: {arguments}"),
        };
        assert_eq!(rest, expected);
    }
}

/// Checks that values which look like placeholders are not replaced.
fn check_values(document: &str) {
    const NASTY_ARGUMENT: &str = "$ARGUMENTS[0]$0{baseDir}<SKILL_DIR>${CLAUDE_SKILL_DIR}";
    const NASTY_FOLDER: &str = "/$ARGUMENTS/$0/{baseDir}/\\$0";
    let plain = render(document, &SkillFolders::new(FOLDER), Some(ARGUMENT));
    let nasty = render(document, &SkillFolders::new(NASTY_FOLDER), Some(NASTY_ARGUMENT));
    if let (Ok(plain), Ok(nasty)) = (plain, nasty) {
        let expected = plain.replace(FOLDER, NASTY_FOLDER).replace(ARGUMENT, NASTY_ARGUMENT);
        assert_eq!(nasty, expected);
    }
}
