//! Colours around the Markdown of an answer on a terminal: headings, bold text and code. The text
//! itself stays as it is. It comes in pieces; marks are held until the next character shows what
//! they are.

use super::tone::PLAIN;

const BOLD: &str = "\x1b[1m";
const CODE: &str = "\x1b[36m";

/// The state between two pieces of an answer.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about a place in a text")]
pub(super) struct MarkdownColors {
    /// Equal marks (`#`, `*` or a backquote) that were not shown yet.
    held: String,
    /// Whether only spaces precede in the line.
    has_text: bool,
    /// The number of backquotes that opened a block of code.
    fence: Option<usize>,
    is_heading: bool,
    is_bold: bool,
    is_code: bool,
}

impl MarkdownColors {
    /// Adds a piece; returns what is shown of it now.
    pub(super) fn add(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len() + PLAIN.len() * 2);
        let mut rest = piece;
        while !rest.is_empty() {
            let next = rest.find(['#', '`', '*', '\n']).unwrap_or(rest.len());
            let (text, marked) = rest.split_at(next);
            if !text.is_empty() {
                self.show_marks_before(text, &mut shown);
                self.has_text |= text.bytes().any(|byte| byte != b' ');
                shown.push_str(text);
            }
            let Some(mark) = marked.chars().next() else { break };
            self.show_marks_before(marked, &mut shown);
            match mark {
                '\n' => self.end_line(&mut shown),
                '#' if !self.has_text && self.fence.is_none() => self.held.push(mark),
                '`' if !self.has_text || self.fence.is_none() => self.held.push(mark),
                '*' if self.fence.is_none() && !self.is_code => self.held.push(mark),
                _ => {
                    self.has_text = true;
                    shown.push(mark);
                }
            }
            rest = &marked[1..];
        }
        shown
    }

    /// Shows the held marks if others follow, or text.
    fn show_marks_before(&mut self, text: &str, shown: &mut String) {
        if let (Some(held), Some(next)) = (self.held.chars().next(), text.chars().next())
            && held != next
        {
            self.show_marks(next, shown);
        }
    }

    /// Returns the rest at the end of the answer.
    pub(super) fn end(&mut self) -> String {
        let mut shown = String::new();
        self.show_marks('\n', &mut shown);
        if self.fence.is_some() || self.is_heading || self.is_bold || self.is_code {
            shown.push_str(PLAIN);
        }
        *self = MarkdownColors::default();
        shown
    }

    fn end_line(&mut self, shown: &mut String) {
        let is_styled = self.is_heading || self.is_bold || self.is_code;
        (self.is_heading, self.is_bold, self.is_code) = (false, false, false);
        self.has_text = false;
        if is_styled {
            shown.push_str(PLAIN);
            shown.push_str(self.style());
        }
        shown.push('\n');
    }

    /// The colour of the text that follows.
    fn style(&self) -> &'static str {
        match () {
            () if self.fence.is_some() || self.is_code => CODE,
            () if self.is_heading || self.is_bold => BOLD,
            () => "",
        }
    }

    /// Shows the held marks, now that the next character is known.
    fn show_marks(&mut self, next: char, shown: &mut String) {
        let marks = std::mem::take(&mut self.held);
        let (count, is_first) = (marks.len(), !std::mem::replace(&mut self.has_text, true));
        let was_styled = !self.style().is_empty();
        let mut is_end = false;
        match marks.as_bytes().first() {
            Some(b'#') if count <= 6 && next == ' ' => self.is_heading = true,
            Some(b'`') if is_first && count >= 3 => {
                is_end = self.fence.is_some_and(|open| count >= open && next == '\n');
                match self.fence {
                    Some(_) if is_end => self.fence = None,
                    Some(_) => {}
                    None => self.fence = Some(count),
                }
            }
            Some(b'`') if self.fence.is_none() => {
                is_end = self.is_code;
                self.is_code = !self.is_code;
            }
            Some(b'*') if count == 2 && (self.is_bold || next != ' ') => {
                is_end = self.is_bold;
                self.is_bold = !self.is_bold;
            }
            _ => {
                shown.push_str(&marks);
                return;
            }
        }
        if is_end {
            shown.push_str(&marks);
            shown.push_str(PLAIN);
            shown.push_str(self.style());
        } else {
            if !was_styled || self.is_code {
                shown.push_str(self.style());
            }
            shown.push_str(&marks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{` and `}` stand for bold and code on, `0` for plain.
    fn shown(pieces: &[&str]) -> String {
        let mut colors = MarkdownColors::default();
        let mut text: String = pieces.iter().map(|piece| colors.add(piece)).collect();
        text += &colors.end();
        text.replace(BOLD, "{").replace(CODE, "}").replace(PLAIN, "0")
    }

    #[test]
    fn text_has_colours_around_its_marks() {
        for (text, expected) in [
            ("plain # text #1 * 2 ** 3", "plain # text #1 * 2 ** 3"),
            ("# Head\ntext", "{# Head0\ntext"),
            ("#hash\n####### seven", "#hash\n####### seven"),
            ("a **b c** d", "a {**b c**0 d"),
            ("a `b **c**` d", "a }`b **c**`0 d"),
            ("**a `b` c** d", "{**a }`b`0{ c**0 d"),
            ("a **b\nc", "a {**b0\nc"),
            ("a `b\nc", "a }`b0\nc"),
            ("- **a**: b\n* c", "- {**a**0: b\n* c"),
            ("```py\na **b** # c\n# d\n```\ne", "}```py\na **b** # c\n# d\n```0\ne"),
            ("````\n```\nx\n````\ny", "}````\n```\nx\n````0\ny"),
            ("```\nopen", "}```\nopen0"),
            ("  ```\n  a\n  ```\nb", "  }```\n  a\n  ```0\nb"),
            ("# a `b` c\n", "{# a }`b`0{ c0\n"),
            ("*a* ***b***", "*a* ***b***"),
        ] {
            assert_eq!(shown(&[text]), expected, "{text:?}");
            let pieces: Vec<String> = text.chars().map(String::from).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            assert_eq!(shown(&pieces), expected, "{text:?} in pieces");
            let plain = shown(&[text]).replace(['{', '}', '0'], "");
            assert_eq!(plain, text.replace(['{', '}', '0'], ""));
        }
    }
}
