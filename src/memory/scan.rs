//! The lines of a file of facts: which of them are headings, items, and what
//! else a person wrote, told apart as `CommonMark` does.
//!
//! Nothing inside frontmatter, a block of code or an HTML comment is an item or
//! a heading. A line that is no UTF-8 text is neither.

use std::ops::Range;

/// What the lines are. Lines are counted from 0.
#[derive(Debug, Default)]
pub struct Scan {
    /// Where each line begins and ends, with its line break.
    pub lines: Vec<Range<usize>>,
    /// The frontmatter, with the lines `---` around it.
    pub frontmatter: Option<Range<usize>>,
    /// Headings: line, level, text.
    pub headings: Vec<(usize, usize, String)>,
    /// Items of lists that stand in no other item, each with all of its lines.
    pub items: Vec<Range<usize>>,
    /// The line before which something can be added at the end: the first of a
    /// block that is never closed, or behind the last.
    pub end: usize,
}

/// What was left open by the lines before.
enum Open {
    Nothing,
    /// A block of code: how it is fenced, and how many times.
    Fence(char, usize),
    Comment,
}

/// Goes over the lines.
pub fn scan(bytes: &[u8]) -> Scan {
    let mut scan = Scan::default();
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        scan.lines.push(at..at + line.len());
        at += line.len();
    }
    scan.frontmatter = frontmatter(bytes, &scan.lines);
    let begin = scan.frontmatter.as_ref().map_or(0, |range| range.end);
    let mut open = Open::Nothing;
    // The item that goes on: how far what belongs to it is indented, and whether
    // the line before was blank.
    let mut item: Option<(usize, bool)> = None;
    let mut is_paragraph = false;
    scan.end = scan.lines.len();
    for number in begin..scan.lines.len() {
        let line = text(bytes, &scan.lines[number]);
        let was_paragraph = std::mem::take(&mut is_paragraph);
        let trimmed = line.trim_start_matches([' ', '\t']);
        let indent: usize = line[..line.len() - trimmed.len()]
            .chars()
            .map(|c| if c == '\t' { 4 } else { 1 })
            .sum();
        let trimmed = trimmed.trim_end();
        // A block in an item ends with it.
        let is_left = item.is_some_and(|(width, _)| indent < width) && !trimmed.is_empty();
        let is_closed = match open {
            _ if is_left => None,
            Open::Fence(mark, least) => {
                let count = trimmed.chars().take_while(|c| *c == mark).count();
                Some(count >= least && count == trimmed.chars().count())
            }
            Open::Comment => Some(trimmed.contains("-->")),
            Open::Nothing => None,
        };
        if is_closed != Some(false) {
            open = Open::Nothing;
        }
        if let Some(is_closed) = is_closed {
            if is_closed {
                scan.end = scan.lines.len();
            }
            let is_of_item = item.is_some() && !trimmed.is_empty();
            extend(&mut scan.items, is_of_item, number);
            continue;
        }
        if trimmed.is_empty() {
            item = item.map(|(width, _)| (width, true));
            continue;
        }
        let is_inside = item.is_some_and(|(width, _)| indent >= width);
        if let Some(opened) = opening(trimmed).filter(|_| is_inside || indent < 4) {
            open = opened;
            if !is_inside {
                (item, scan.end) = (None, number);
            }
            extend(&mut scan.items, is_inside, number);
            continue;
        }
        if is_inside {
            item = item.map(|(width, _)| (width, false));
            extend(&mut scan.items, true, number);
            continue;
        }
        let goes_on = item.is_some_and(|(_, blank)| !blank) && !trimmed.starts_with(['>', '|']);
        if indent >= 4 {
            // Code, unless a paragraph goes on.
            is_paragraph = was_paragraph;
            item = item.filter(|_| goes_on);
            extend(&mut scan.items, goes_on, number);
        } else if let Some((level, text)) = heading(trimmed) {
            item = None;
            scan.headings.push((number, level, text));
        } else if was_paragraph && is_underline(trimmed) {
            item = None;
            let level = if trimmed.starts_with('=') { 1 } else { 2 };
            scan.headings.push((number, level, String::new()));
        } else if is_rule(trimmed) {
            item = None;
        } else if let Some(width) = marker(trimmed) {
            item = Some((indent + width, false));
            scan.items.push(number..number + 1);
        } else if goes_on {
            // Still the paragraph of the item.
            extend(&mut scan.items, true, number);
        } else {
            item = None;
            is_paragraph = !trimmed.starts_with(['>', '|']);
        }
    }
    scan
}

/// The line as text, without its line break; as far as it is text.
pub fn text<'b>(bytes: &'b [u8], line: &Range<usize>) -> &'b str {
    let line = &bytes[line.clone()];
    let line = std::str::from_utf8(line).unwrap_or_else(|error| {
        std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default()
    });
    line.trim_end_matches(['\n', '\r'])
}

fn extend(items: &mut [Range<usize>], is_inside: bool, number: usize) {
    if let Some(item) = items.last_mut().filter(|_| is_inside) {
        item.end = number + 1;
    }
}

fn frontmatter(bytes: &[u8], lines: &[Range<usize>]) -> Option<Range<usize>> {
    let first = text(bytes, lines.first()?);
    if first.trim_start_matches('\u{feff}').trim_end() != "---" {
        return None;
    }
    let is_end = |line| ["---", "..."].contains(&text(bytes, line).trim_end());
    let end = lines.iter().skip(1).position(is_end)?;
    Some(0..end + 2)
}

fn opening(trimmed: &str) -> Option<Open> {
    if let Some(rest) = trimmed.strip_prefix("<!--") {
        return (!rest.contains("-->")).then_some(Open::Comment);
    }
    let mark = trimmed.chars().next().filter(|c| ['`', '~'].contains(c))?;
    let count = trimmed.chars().take_while(|c| *c == mark).count();
    let is_fence = count >= 3 && (mark == '~' || !trimmed[count..].contains('`'));
    is_fence.then_some(Open::Fence(mark, count))
}

fn heading(trimmed: &str) -> Option<(usize, String)> {
    let rest = trimmed.trim_start_matches('#');
    let level = trimmed.len() - rest.len();
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let text = rest.trim().trim_end_matches('#').trim_end();
    Some((level, text.to_string()))
}

fn is_underline(trimmed: &str) -> bool {
    ['=', '-']
        .iter()
        .any(|mark| trimmed.chars().all(|c| c == *mark))
}

fn is_rule(trimmed: &str) -> bool {
    let marks = || trimmed.chars().filter(|c| !c.is_whitespace());
    ['-', '*', '_']
        .iter()
        .any(|mark| marks().all(|c| c == *mark) && marks().count() >= 3)
}

/// How far the text of an item is behind its beginning.
pub fn marker(trimmed: &str) -> Option<usize> {
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &trimmed[digits..];
    let marks: &[char] = if digits == 0 {
        &['-', '*', '+']
    } else {
        &['.', ')']
    };
    let rest = rest.strip_prefix(marks)?;
    let text = rest.trim_start_matches([' ', '\t']);
    match rest.len() - text.len() {
        0 if !rest.is_empty() => None,
        // Code in the item, or nothing.
        0 | 5.. => Some(digits + 2),
        blanks => Some(digits + 1 + blanks),
    }
}
