//! Code fences around the text that a model means.

/// A text in a code fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence<'t> {
    /// The word behind the opening marks: `python`.
    pub language: &'t str,
    /// The lines between the marks.
    pub body: &'t str,
    /// What precedes the fence.
    pub before: &'t str,
    /// Whether nothing else is in the text.
    pub is_alone: bool,
}

/// The code fence of a text with exactly one.
pub(crate) fn single_fence(text: &str) -> Option<Fence<'_>> {
    let mut marks = text.split_inclusive('\n').scan(0, |end, line| {
        let start = *end;
        *end += line.len();
        Some((start, line))
    });
    let mut next = || marks.find(|(_, line)| line.trim_start().starts_with("```"));
    let ((open, first), (close, last)) = (next()?, next()?);
    let is_closed = last.trim() == "```" && next().is_none();
    let (before, after) = (&text[..open], &text[close + last.len()..]);
    is_closed.then_some(Fence {
        language: first.trim().trim_start_matches('`'),
        body: &text[open + first.len()..close],
        before,
        is_alone: before.trim().is_empty() && after.trim().is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_closed_fence_is_found() {
        let found = |text| single_fence(text).map(|it| (it.language, it.body, it.is_alone));
        let table = [
            ("```python\na\nb\n```", Some(("python", "a\nb\n", true))),
            ("\n ```\na\n ```\n", Some(("", "a\n", true))),
            ("So:\n```py\na\n```\nDone.", Some(("py", "a\n", false))),
            ("```\n```", Some(("", "", true))),
            ("```python\na", None),
            ("```\na\n```\n```\nb\n```", None),
            ("```a``` b\n```x", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(found(text), expected, "{text:?}");
        }
    }
}
