//! Finds headings and list items in the lines of a facts file, by the rules of `CommonMark`.
//!
//! Frontmatter, code blocks and HTML blocks contain no items or headings. A line that is not
//! UTF-8 text is neither.

use std::ops::Range;

/// The structure of a file. Lines are counted from 0.
#[derive(Debug, Default)]
pub(super) struct LineScan {
    /// The byte range of each line, with its line break.
    pub lines: Vec<Range<usize>>,
    /// The lines of the frontmatter, with both `---`.
    pub frontmatter: Option<Range<usize>>,
    /// Headings: line, level, text.
    pub headings: Vec<(usize, usize, String)>,
    /// The lines of each list item that is not in another item.
    pub items: Vec<Range<usize>>,
    /// The line before which text can be added at the end: the first line of a block that is
    /// never closed, or after the last line.
    pub end: usize,
    /// The line that closes this open block.
    pub closing: Option<String>,
}

/// A block that the lines before left open.
enum OpenSpan {
    Nothing,
    /// A code block: the character of its fence, and their number.
    Fence(char, usize),
    /// HTML, up to a line with this text, or up to a blank line if it is empty.
    Html(&'static str),
}

impl OpenSpan {
    /// Whether the block ends in this line.
    fn ends(&self, trimmed: &str) -> bool {
        match self {
            OpenSpan::Nothing => true,
            OpenSpan::Fence(mark, least) => {
                let count = trimmed.chars().take_while(|c| c == mark).count();
                count >= *least && count == trimmed.chars().count()
            }
            OpenSpan::Html("") => trimmed.is_empty(),
            OpenSpan::Html(end) if end.starts_with("</") => {
                let line = trimmed.to_ascii_lowercase();
                let mut tags = RAW_TAGS.iter();
                tags.any(|tag| line.contains(&format!("</{tag}>")))
            }
            OpenSpan::Html(end) => trimmed.contains(end),
        }
    }

    /// The line that ends the block, if a blank line does not.
    fn closing(&self) -> Option<String> {
        match self {
            OpenSpan::Nothing | OpenSpan::Html("") => None,
            OpenSpan::Fence(mark, least) => Some(mark.to_string().repeat(*least)),
            OpenSpan::Html(end) => Some((*end).to_string()),
        }
    }
}

/// Scans the lines of a file.
pub(super) fn scan(bytes: &[u8]) -> LineScan {
    let mut scan = LineScan::default();
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        scan.lines.push(at..at + line.len());
        at += line.len();
    }
    scan.frontmatter = frontmatter(bytes, &scan.lines);
    let begin = scan.frontmatter.as_ref().map_or(0, |range| range.end);
    let mut open = OpenSpan::Nothing;
    // The current item: the indentation of its content, and whether the previous line was
    // blank.
    let mut item: Option<(usize, bool)> = None;
    let mut is_paragraph = false;
    scan.end = scan.lines.len();
    for number in begin..scan.lines.len() {
        let line = text(bytes, &scan.lines[number]);
        let was_paragraph = std::mem::take(&mut is_paragraph);
        let trimmed = line.trim_start_matches([' ', '\t']);
        let indent: usize =
            line[..line.len() - trimmed.len()].chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
        let trimmed = trimmed.trim_end();
        // A block in an item ends with the item.
        let is_left = item.is_some_and(|(width, _)| indent < width) && !trimmed.is_empty();
        let is_open = !matches!(open, OpenSpan::Nothing);
        if is_open && is_left {
            (open, item) = (OpenSpan::Nothing, None);
        } else if is_open {
            let is_of_item = item.is_some() && !trimmed.is_empty();
            extend(&mut scan.items, is_of_item, number);
            if open.ends(trimmed) {
                open = OpenSpan::Nothing;
                (scan.end, scan.closing) = (scan.lines.len(), None);
            }
            if !trimmed.is_empty() {
                continue;
            }
        }
        if trimmed.is_empty() {
            // An item with an empty first line may have only one blank line there.
            let is_first = scan.items.last() == Some(&(number.wrapping_sub(1)..number));
            let is_bare = |line: &Range<usize>| !text(bytes, line).trim().contains([' ', '\t']);
            let ends = is_first && number.checked_sub(1).is_some_and(|at| is_bare(&scan.lines[at]));
            item = item.filter(|_| !ends).map(|(width, _)| (width, true));
            continue;
        }
        let is_inside = item.is_some_and(|(width, _)| indent >= width);
        if let Some((opened, is_whole)) = opening(trimmed).filter(|_| is_inside || indent < 4) {
            if !is_inside {
                item = None;
                scan.closing = opened.closing().filter(|_| !is_whole);
                if scan.closing.is_some() {
                    scan.end = number;
                }
            }
            if !is_whole {
                open = opened;
            }
            extend(&mut scan.items, is_inside, number);
            continue;
        }
        if is_inside {
            item = item.map(|(width, _)| (width, false));
            extend(&mut scan.items, true, number);
            continue;
        }
        let is_continued =
            item.is_some_and(|(_, blank)| !blank) && !trimmed.starts_with(['>', '|']);
        if indent >= 4 {
            // Code, unless it continues a paragraph.
            is_paragraph = was_paragraph;
            item = item.filter(|_| is_continued);
            extend(&mut scan.items, is_continued, number);
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
        } else if is_continued {
            // A continuation of the item's paragraph.
            extend(&mut scan.items, true, number);
        } else {
            item = None;
            is_paragraph = !trimmed.starts_with(['>', '|']);
        }
    }
    scan
}

/// The UTF-8 text of a line without its line break, up to the first invalid byte.
pub(super) fn text<'b>(bytes: &'b [u8], line: &Range<usize>) -> &'b str {
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

/// Tags whose content is not Markdown until one of them is closed.
const RAW_TAGS: [&str; 4] = ["pre", "script", "style", "textarea"];

/// Tags that start an HTML block, as listed by `CommonMark`.
const BLOCK_TAGS: &str = " address article aside base basefont blockquote body caption center \
    col colgroup dd details dialog dir div dl dt fieldset figcaption figure footer form frame \
    frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main menu menuitem nav \
    noframes ol optgroup option p param search section summary table tbody td tfoot th thead \
    title tr track ul ";

/// A block that starts here and can interrupt a paragraph, and whether it is an HTML block
/// that ends in the same line.
fn opening(trimmed: &str) -> Option<(OpenSpan, bool)> {
    if let Some(rest) = trimmed.strip_prefix('<') {
        let open = OpenSpan::Html(html(rest)?);
        let is_whole = open.ends(rest);
        return Some((open, is_whole));
    }
    let mark = trimmed.chars().next().filter(|c| ['`', '~'].contains(c))?;
    let count = trimmed.chars().take_while(|c| *c == mark).count();
    let is_fence = count >= 3 && (mark == '~' || !trimmed[count..].contains('`'));
    is_fence.then_some((OpenSpan::Fence(mark, count), false))
}

/// The end of an HTML block whose first line has this text after `<`.
fn html(rest: &str) -> Option<&'static str> {
    let begins = [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>")];
    if let Some((_, end)) = begins.iter().find(|(begin, _)| rest.starts_with(begin)) {
        return Some(end);
    }
    if let Some(rest) = rest.strip_prefix('!') {
        return rest.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(">");
    }
    let tag = rest.strip_prefix('/').unwrap_or(rest);
    let behind = tag.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let name = tag[..tag.len() - behind.len()].to_ascii_lowercase();
    if !(behind.is_empty() || behind.starts_with([' ', '\t', '>']) || behind.starts_with("/>")) {
        return None;
    }
    match RAW_TAGS.iter().position(|raw| *raw == name) {
        Some(at) if tag.len() == rest.len() && !behind.starts_with('/') => {
            ["</pre>", "</script>", "</style>", "</textarea>"].get(at).copied()
        }
        _ => (!name.is_empty() && BLOCK_TAGS.contains(&format!(" {name} "))).then_some(""),
    }
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
    ['=', '-'].iter().any(|mark| trimmed.chars().all(|c| c == *mark))
}

fn is_rule(trimmed: &str) -> bool {
    let marks = || trimmed.chars().filter(|c| !c.is_whitespace());
    ['-', '*', '_'].iter().any(|mark| marks().all(|c| c == *mark) && marks().count() >= 3)
}

/// The width of a list marker with the blanks after it.
pub(super) fn marker(trimmed: &str) -> Option<usize> {
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &trimmed[digits..];
    let marks: &[char] = if digits == 0 { &['-', '*', '+'] } else { &['.', ')'] };
    let rest = rest.strip_prefix(marks)?;
    let text = rest.trim_start_matches([' ', '\t']);
    match rest.len() - text.len() {
        0 if !rest.is_empty() => None,
        // The item contains code or nothing.
        0 | 5.. => Some(digits + 2),
        blanks => Some(digits + 1 + blanks),
    }
}
