//! Invocation of a skill: the placeholders in its document are replaced by the arguments.
//!
//! | placeholder | value |
//! |---|---|
//! | `$ARGUMENTS` | all arguments, as typed |
//! | `$ARGUMENTS[N]` | word N, from 0 |
//! | `$N` | the same, only if the frontmatter has `arguments` or `argument-hint` (otherwise it belongs to shell or awk code) |
//! | `$name` | the word at the index of `name` in the frontmatter's `arguments`; empty if there is none |
//! | `${CLAUDE_SKILL_DIR}`, `{baseDir}`, `<SKILL_DIR>` | the skill's folder |
//!
//! `\$` before one of them is a plain `$`. The rules are those that Claude Code documents,
//! because skills are tried out there, except for `$N`. No file is opened here.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::limits;
use crate::skills::frontmatter::{self, Frontmatter};
use crate::skills::words::split_words;

/// Placeholders for the skill's folder, in addition to `${CLAUDE_SKILL_DIR}`.
const FOLDER_PLACEHOLDERS: [&str; 2] = ["{baseDir}", "<SKILL_DIR>"];
/// The placeholder `${CLAUDE_SKILL_DIR}` without its `$`.
const SKILL_DIR: &str = "{CLAUDE_SKILL_DIR}";
const ARGUMENTS: &str = "ARGUMENTS";

/// Returns the body of a document with its placeholders replaced. The arguments are
/// appended if no placeholder used them. If the frontmatter has no clear end, all of the document
/// is its body.
pub fn render(document: &str, folder: &str, arguments: &str) -> Result<String, String> {
    let frontmatter = frontmatter::parse(document);
    let start = if frontmatter.is_unclosed { 0 } else { frontmatter.body_start };
    let body = document.get(start..).unwrap_or_default();
    if body.trim().is_empty() {
        return Err("the document has no text after its frontmatter".into());
    }
    let values = PlaceholderValues {
        folder,
        arguments,
        words: split_words(arguments, limits::ARGUMENT_WORDS),
        names: declared_names(&frontmatter),
        replaces_numbers: ["arguments", "argument-hint"]
            .iter()
            .any(|key| frontmatter.fields.contains_key(*key)),
    };
    let mut text = BoundedText(String::with_capacity(body.len()));
    let is_argument_used = values.replace_placeholders(body, &mut text)?;
    if !is_argument_used && !arguments.trim().is_empty() {
        text.push("\n\nARGUMENTS: ")?;
        text.push(arguments)?;
    }
    Ok(text.0)
}

/// Whether the user may invoke the skill: not with `user-invocable: false`.
pub fn is_for_users(frontmatter: &Frontmatter) -> bool {
    flag(frontmatter, "user-invocable") != Some(false)
}

/// Whether the model may invoke the skill: not with `disable-model-invocation: true`.
pub(super) fn is_for_model(frontmatter: &Frontmatter) -> bool {
    flag(frontmatter, "disable-model-invocation") != Some(true)
}

/// The value of a field that is true or false, also as text.
fn flag(frontmatter: &Frontmatter, name: &str) -> Option<bool> {
    match frontmatter.fields.get(name)? {
        Value::Bool(value) => Some(*value),
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        _ => None,
    }
}

/// A text with a size limit.
struct BoundedText(String);

impl BoundedText {
    fn push(&mut self, part: &str) -> Result<(), String> {
        if self.0.len() + part.len() > limits::INVOCATION_BYTES {
            let most = limits::INVOCATION_BYTES >> 20;
            return Err(format!(
                "the document would become larger than {most} MiB with these arguments: give shorter ones"
            ));
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// The values of the placeholders.
struct PlaceholderValues<'v> {
    folder: &'v str,
    arguments: &'v str,
    words: Vec<String>,
    /// Declared names, each with the index of its word.
    names: BTreeMap<String, usize>,
    /// Whether `$N` is a placeholder.
    replaces_numbers: bool,
}

/// A part of the body that is replaced.
struct BodyPart<'p> {
    bytes: usize,
    /// The text that replaces it.
    value: &'p str,
    is_argument: bool,
}

impl<'p> BodyPart<'p> {
    fn new(bytes: usize, value: &'p str) -> BodyPart<'p> {
        BodyPart { bytes, value, is_argument: false }
    }

    fn argument(bytes: usize, value: &'p str) -> BodyPart<'p> {
        BodyPart { is_argument: true, ..BodyPart::new(bytes, value) }
    }
}

impl PlaceholderValues<'_> {
    /// Writes the body with its placeholders replaced, in one pass: values are not
    /// expanded again. Returns whether any argument was used.
    fn replace_placeholders(&self, body: &str, text: &mut BoundedText) -> Result<bool, String> {
        let mut is_argument_used = false;
        let mut rest = body;
        // The character before `rest`.
        let mut before = None;
        while let Some(at) = rest.find(['\\', '$', '{', '<']) {
            let (plain, here) = rest.split_at(at);
            text.push(plain)?;
            before = plain.chars().next_back().or(before);
            let piece = match here.as_bytes()[0] {
                b'\\' => Some(self.parse_backslashes(here)),
                b'$' => self.parse_dollar(here),
                // `${baseDir}` and `{{baseDir}}` belong to code or other templates.
                _ if matches!(before, Some('$' | '{')) => None,
                _ => {
                    let name = FOLDER_PLACEHOLDERS.iter().find(|name| here.starts_with(**name));
                    name.map(|name| BodyPart::new(name.len(), self.folder))
                }
            };
            let piece = piece.unwrap_or(BodyPart::new(1, &here[..1]));
            text.push(piece.value)?;
            is_argument_used |= piece.is_argument;
            before = here[..piece.bytes].chars().next_back();
            rest = &here[piece.bytes..];
        }
        text.push(rest)?;
        Ok(is_argument_used)
    }

    /// One backslash escapes a placeholder, and also the `$` of a number that is not a
    /// placeholder, as in `\$1.00`. Several backslashes escape nothing.
    fn parse_backslashes<'p>(&self, here: &'p str) -> BodyPart<'p> {
        let behind = here.trim_start_matches('\\');
        let count = here.len() - behind.len();
        let is_price = || behind.starts_with('$') && count_digits(&behind[1..]) > 0;
        if count == 1 && (is_price() || self.parse_dollar(behind).is_some()) {
            return BodyPart::new(2, "$");
        }
        BodyPart::new(count, &here[..count])
    }

    /// The placeholder that starts with this `$`, if it is one.
    fn parse_dollar<'p>(&'p self, here: &'p str) -> Option<BodyPart<'p>> {
        let behind = here.strip_prefix('$')?;
        if behind.starts_with(SKILL_DIR) {
            return Some(BodyPart::new(1 + SKILL_DIR.len(), self.folder));
        }
        if let Some(rest) = behind.strip_prefix(ARGUMENTS) {
            let start = 1 + ARGUMENTS.len();
            if let Some(index) = bracketed_number(rest) {
                return Some(self.numbered_word(here, index, start + index.len() + 2));
            }
            // `$ARGUMENTSX` is another name; `$ARGUMENTS_test.go` is a usual file name, and
            // letters of other scripts need no space before them.
            return (!starts_with_alphanumeric(rest))
                .then(|| BodyPart::argument(start, self.arguments));
        }
        let digits = count_digits(behind);
        if digits > 0 {
            // `$1st` and `$150k` are not placeholders.
            let is_ours = self.replaces_numbers && !starts_with_alphanumeric(&behind[digits..]);
            return is_ours.then(|| self.numbered_word(here, &behind[..digits], 1 + digits));
        }
        let (length, index) = self.longest_declared_name(behind)?;
        let word = self.words.get(index).map_or("", String::as_str);
        Some(BodyPart::argument(1 + length, word))
    }

    /// The word with this number. If there is none, the whole placeholder stays:
    /// `$ARGUMENTS[9]` is not read as `$ARGUMENTS`.
    fn numbered_word<'p>(&'p self, here: &'p str, index: &str, bytes: usize) -> BodyPart<'p> {
        let index: Option<usize> = index.parse().ok();
        match index.and_then(|index| self.words.get(index)) {
            Some(word) => BodyPart::argument(bytes, word),
            None => BodyPart::new(bytes, &here[..bytes]),
        }
    }

    /// The length of the longest declared name at the start of the text that ends at a
    /// word boundary, and the index of its word.
    fn longest_declared_name(&self, text: &str) -> Option<(usize, usize)> {
        if self.names.is_empty() {
            return None;
        }
        let most = text.len().min(limits::ARGUMENT_NAME_BYTES);
        let length = text.as_bytes()[..most].iter().take_while(|byte| is_name_byte(**byte)).count();
        let ends_at = |end: &usize| {
            let next = text.as_bytes().get(*end);
            !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'['))
        };
        let mut ends = (1..=length).rev().filter(ends_at);
        ends.find_map(|end| Some((end, *self.names.get(&text[..end])?)))
    }
}

/// The names in the frontmatter's `arguments` (a list, or words), with their indexes.
/// Items that are not valid after a `$` are left out, but counted.
fn declared_names(frontmatter: &Frontmatter) -> BTreeMap<String, usize> {
    let list: Vec<&str> = match frontmatter.fields.get("arguments") {
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                // Some describe each argument: `- name: issue`.
                Value::Object(fields) => fields.get("name").and_then(Value::as_str),
                other => other.as_str(),
            })
            .map(|name| name.unwrap_or_default().trim())
            .collect(),
        Some(Value::String(text)) => text
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|word| !word.is_empty())
            .collect(),
        _ => Vec::new(),
    };
    let is_name = |name: &str| {
        name.len() <= limits::ARGUMENT_NAME_BYTES
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(is_name_byte)
            && name != ARGUMENTS
    };
    let mut names = BTreeMap::new();
    for (index, name) in list.into_iter().enumerate() {
        if is_name(name) {
            names.entry(name.to_string()).or_insert(index);
        }
    }
    names
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn count_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The number in `[N]`.
fn bracketed_number(text: &str) -> Option<&str> {
    let text = text.strip_prefix('[')?;
    let (index, behind) = text.split_at(count_digits(text));
    (!index.is_empty() && behind.starts_with(']')).then_some(index)
}

/// Whether a name would continue here.
fn starts_with_alphanumeric(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::world::clock::thread_time;

    const PLAIN: &str = "---\nname: s\ndescription: d\n---\n";
    const HINTED: &str = "---\nname: s\nargument-hint: [file] [format]\n---\n";

    #[track_caller]
    fn check(front: &str, table: &[(&str, &str, &str)]) {
        for (body, arguments, expected) in table {
            let text = render(&format!("{front}{body}"), "/s", arguments).unwrap();
            assert_eq!(text, *expected, "{body:?} with {arguments:?}");
        }
    }

    #[test]
    fn all_arguments_are_inserted_as_typed() {
        check(
            PLAIN,
            &[
                ("Fix $ARGUMENTS now.", "a  'b c'", "Fix a  'b c' now."),
                ("$ARGUMENTS,$ARGUMENTS", "x", "x,x"),
                ("Fix $ARGUMENTS.", "", "Fix ."),
                ("分析$ARGUMENTS的代码", "main.rs", "分析main.rs的代码"),
                ("$ARGUMENTS_test.go", "run", "run_test.go"),
                ("$ARGUMENTSX $ARGUMENTS2", "x", "$ARGUMENTSX $ARGUMENTS2\n\nARGUMENTS: x"),
                ("$arguments", "x", "$arguments\n\nARGUMENTS: x"),
                ("a\r\n$ARGUMENTS\r\n", "x\ny", "a\r\nx\ny\r\n"),
            ],
        );
    }

    #[test]
    fn words_are_counted_from_0_and_missing_ones_are_kept() {
        check(
            PLAIN,
            &[
                ("$ARGUMENTS[0]-$ARGUMENTS[1]", "'a b' c", "a b-c"),
                ("$ARGUMENTS[2] $ARGUMENTS[0]", "a", "$ARGUMENTS[2] a"),
                ("$ARGUMENTS[7]", "a b", "$ARGUMENTS[7]\n\nARGUMENTS: a b"),
                ("$ARGUMENTS[x] $ARGUMENTS[] $ARGUMENTS[0", "a", "a[x] a[] a[0"),
                ("$ARGUMENTS[99999999999999999999999]", "", "$ARGUMENTS[99999999999999999999999]"),
            ],
        );
        check(
            HINTED,
            &[
                ("$0 to $1, $2", "a b", "a to b, $2"),
                ("$10$0", "a b", "$10a"),
                ("$10", "0 1 2 3 4 5 6 7 8 9 ten", "ten"),
                ("$1.00 $1_x $1的", "a b", "b.00 b_x b的"),
                ("$1st $1k $0", "a b", "$1st $1k a"),
                ("$0", "", "$0"),
                ("$$0", "a", "$a"),
            ],
        );
    }

    /// Shell and awk would break.
    #[test]
    fn numbers_are_kept_if_no_arguments_are_declared() {
        let awk = "awk '{print $1}' \"$0\" $9.99";
        check(PLAIN, &[(awk, "", awk), (awk, "x y", &format!("{awk}\n\nARGUMENTS: x y"))]);
        for key in ["arguments: [a]", "arguments: file", "argument-hint: '[file]'"] {
            check(&format!("---\nname: s\n{key}\n---\n"), &[("$0", "v", "v")]);
        }
    }

    #[test]
    fn names_are_declared_in_the_frontmatter() {
        for names in [
            "arguments: [issue, branch-name, issue_id]",
            "arguments: issue branch-name issue_id",
            "arguments:\n  - name: issue\n    description: d\n  - name: branch-name\n  - issue_id",
        ] {
            check(
                &format!("---\nname: s\n{names}\n---\n"),
                &[
                    ("$issue on $branch-name", "7 main", "7 on main"),
                    ("$issue_id|$issue-x|$issues", "7 m 9", "9|7-x|$issues"),
                    ("$issue[0] $branch", "7", "$issue[0] $branch\n\nARGUMENTS: 7"),
                    ("<$branch-name>", "7", "<>"),
                    ("$0 $other", "7", "7 $other"),
                ],
            );
        }
        check(
            "---\narguments: [1st, ARGUMENTS, x, x]\n---\n",
            &[("$x $ARGUMENTS $1st", "a b c d", "c a b c d $1st")],
        );
        check(PLAIN, &[("$issue", "7", "$issue\n\nARGUMENTS: 7")]);
    }

    #[test]
    fn backslash_escapes_a_placeholder() {
        check(
            HINTED,
            &[
                (
                    r"\$ARGUMENTS \$ARGUMENTS[0] \$0",
                    "a",
                    "$ARGUMENTS $ARGUMENTS[0] $0\n\nARGUMENTS: a",
                ),
                (r"\$9 $0", "a", "$9 a"),
                (r"\$HOME \$ \n \", "", r"\$HOME \$ \n \"),
                (r"\\$0 \\\$0", "a", r"\\a \\\a"),
                (r"\${CLAUDE_SKILL_DIR} \$ARGUMENTSX", "", r"${CLAUDE_SKILL_DIR} \$ARGUMENTSX"),
            ],
        );
        check(PLAIN, &[(r"costs \$1.50", "", "costs $1.50")]);
        check("---\narguments: [a]\n---\n", &[(r"\$a \$b $a", "x", r"$a \$b x")]);
    }

    #[test]
    fn folder_placeholders_use_no_arguments() {
        check(
            PLAIN,
            &[
                (
                    "${CLAUDE_SKILL_DIR}/x {baseDir}/y <SKILL_DIR>/z",
                    "a",
                    "/s/x /s/y /s/z\n\nARGUMENTS: a",
                ),
                (
                    "${baseDir} {{baseDir}} {basedir} <SKILL_DIR ${CLAUDE_SKILL_DIR",
                    "",
                    "${baseDir} {{baseDir}} {basedir} <SKILL_DIR ${CLAUDE_SKILL_DIR",
                ),
                ("{x} < <<SKILL_DIR>> $", "", "{x} < </s> $"),
            ],
        );
    }

    #[test]
    fn values_are_not_expanded_again() {
        let value = r"$ARGUMENTS $0 \$0 {baseDir} <SKILL_DIR>";
        check(
            HINTED,
            &[
                ("$ARGUMENTS", value, value),
                ("$0|$1", "'$1 {baseDir}' two", "$1 {baseDir}|two"),
                ("$ARGUMENTS[0]{baseDir}", "$", "$/s"),
            ],
        );
        let text = render("<SKILL_DIR>/x $0", "/$ARGUMENTS/{baseDir}", "a").unwrap();
        assert_eq!(text, "/$ARGUMENTS/{baseDir}/x $0\n\nARGUMENTS: a");
    }

    #[test]
    fn documents_without_frontmatter_are_all_body() {
        check(
            "",
            &[
                ("# T\n$ARGUMENTS", "a", "# T\na"),
                ("\u{feff}$ARGUMENTS", "a", "a"),
                ("x", " \n", "x"),
            ],
        );
        render("", "/s", "a").unwrap_err();
        check("---\r\nname: s\r\n---\r\n", &[("a\r\n", "b", "a\r\n\n\nARGUMENTS: b")]);
    }

    /// A document as large as may be, of nothing but placeholders, and lines
    /// that a careless reader searches again and again.
    #[test]
    fn time_is_linear_and_size_is_limited() {
        let start = thread_time();
        let fits = |body: &str, arguments: &str| {
            let front = "---\narguments: [a, b-c-d-e-f-g-h-i-j-k-l]\n---\n";
            render(&format!("{front}{body}"), "/s", arguments).map(|text| text.len())
        };
        let many = limits::DOCUMENT_BYTES / 10;
        assert_eq!(fits(&"$ARGUMENTS".repeat(many), "ten bytes."), Ok(many * 10));
        let million = "x".repeat(1 << 20);
        assert_eq!(fits("$ARGUMENTS", &million), Ok(1 << 20));
        let error = fits(&"$ARGUMENTS".repeat(many), &million).unwrap_err();
        assert!(error.contains("larger than 2 MiB"), "{error}");
        for body in ["\\", "$", "{", "<", "$b-c-d-", "$ARGUMENTS[", "$9", "\\$"] {
            let count = limits::DOCUMENT_BYTES / body.len();
            fits(&body.repeat(count), "a").unwrap();
        }
        for line in ["\"", "'", "\\", "\"\\", "a ", "\"' "] {
            fits("$0", &line.repeat((1 << 20) / line.len())).unwrap();
        }
        let took = thread_time().saturating_sub(start);
        assert!(took < Duration::from_secs(20), "{took:?}");
    }

    #[test]
    fn user_invocable_false_is_for_the_model_only() {
        for (value, expected) in
            [("false", false), ("no", false), ("'false'", false), ("true", true), ("", true)]
        {
            let frontmatter = frontmatter::parse(&format!("---\nuser-invocable: {value}\n---\n"));
            assert_eq!(is_for_users(&frontmatter), expected, "{value:?}");
        }
        assert!(is_for_users(&frontmatter::parse(PLAIN)));
    }
}
