//! Code fences: around the text that a model means, and in the lines of a document.

/// Languages of fences whose code a shell runs.
const SHELLS: [&str; 8] =
    ["bash", "sh", "shell", "zsh", "console", "terminal", "shell-session", "shellscript"];

/// The language that the text behind the marks of an opening fence names, in lower case.
pub fn fence_language(info: &str) -> String {
    info.split([' ', '{', ',', ':']).next().unwrap_or_default().to_lowercase()
}

/// Whether a shell runs the code of a fence with this language.
pub fn is_shell_language(language: &str) -> bool {
    SHELLS.contains(&language)
}

/// Position of a line relative to code fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceLine<'l> {
    /// Not code.
    Outside,
    /// The opening fence of a block, with the text behind its marks.
    Open(&'l str),
    /// Code, or a fence in it.
    Inside,
}

/// The fences that are open after a line of Markdown, the outermost first. Fences do not nest in
/// Markdown, but many documents show code in code.
#[derive(Debug, Default)]
pub struct OpenFences(Vec<(char, usize)>);

impl OpenFences {
    /// Reads the next line.
    pub fn advance<'l>(&mut self, line: &'l str) -> FenceLine<'l> {
        let text = line.trim_start_matches([' ', '\t', '>']);
        let mark = text.chars().next().filter(|c| "`~".contains(*c));
        let length = mark.map_or(0, |mark| text.len() - text.trim_start_matches(mark).len());
        let was_open = !self.0.is_empty();
        let Some(mark) = mark.filter(|_| length >= 3) else {
            return if was_open { FenceLine::Inside } else { FenceLine::Outside };
        };
        let info = text[length..].trim();
        match self.0.last() {
            // With further backticks it is inline code.
            None if mark == '`' && info.contains('`') => return FenceLine::Outside,
            None => {
                self.0.push((mark, length));
                return FenceLine::Open(info);
            }
            Some(&(open, least)) if open == mark && length >= least && info.is_empty() => {
                self.0.pop();
            }
            Some(&(open, _)) if open == mark && !info.is_empty() && self.0.len() < 8 => {
                self.0.push((mark, length));
            }
            Some(_) => {}
        }
        FenceLine::Inside
    }
}

/// A text in a code fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence<'t> {
    /// The word behind the opening marks: `python`.
    pub language: &'t str,
    /// The lines between the marks.
    pub body: &'t str,
    /// Text before the fence.
    pub before: &'t str,
    /// Whether nothing else is in the text.
    pub is_alone: bool,
}

/// The code fence of a text with exactly one. It ends with as many marks as it begins with, or with
/// the text.
pub fn single_fence(text: &str) -> Option<Fence<'_>> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        at += line.len();
        (at - line.len(), line)
    });
    let count = |line: &str| line.trim_start().bytes().take_while(|byte| *byte == b'`').count();
    let mut lines = lines.skip_while(|(_, line)| count(line) < 3);
    let (open, first) = lines.next()?;
    let marks = count(first);
    let is_mark = |line: &str| count(line) >= marks && line.trim().bytes().all(|byte| byte == b'`');
    let close = lines.find(|(_, line)| is_mark(line));
    let has_more = lines.any(|(_, line)| count(line) >= 3);
    let (end, after) = match close {
        Some((start, line)) => (start, &text[start + line.len()..]),
        None => (text.len(), ""),
    };
    let info = first.trim().trim_start_matches('`');
    let before = &text[..open];
    (!has_more && !info.contains('`')).then_some(Fence {
        language: info.split_whitespace().next().unwrap_or_default(),
        body: &text[open + first.len()..end],
        before,
        is_alone: before.trim().is_empty() && after.trim().is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_fence_is_found() {
        let found = |text| single_fence(text).map(|it| (it.language, it.body, it.is_alone));
        let table = [
            ("```python\na\nb\n```", Some(("python", "a\nb\n", true))),
            ("\n ```\na\n ```\n", Some(("", "a\n", true))),
            ("So:\n```py\na\n```\nDone.", Some(("py", "a\n", false))),
            ("```\n```", Some(("", "", true))),
            ("```python\na", Some(("python", "a", true))),
            ("```python title=\"x\"\na\n```", Some(("python", "a\n", true))),
            ("````\na\n```\nb\n````", Some(("", "a\n```\nb\n", true))),
            (
                "```py\nx = \"\"\"\n```js\n\"\"\"\n```",
                Some(("py", "x = \"\"\"\n```js\n\"\"\"\n", true)),
            ),
            ("```\na\n```\n```\nb\n```", None),
            ("```a``` b\n```x", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(found(text), expected, "{text:?}");
        }
    }
}
