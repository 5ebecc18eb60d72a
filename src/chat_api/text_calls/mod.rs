//! Tool calls in the text of a reply: a server without a parser for its model's calls passes them
//! on as text.
//!
//! A text is read as calls only if it is nothing else (one sentence may precede them). Whether such
//! calls are run is decided by the agent.

use std::collections::BTreeSet;

use crate::quirks::call_markers;
use base::limits;
use base::text::{FenceLine, OpenFences, single_fence};
use base::tool::ToolDefinition;

mod literal;
mod reader;

use reader::CallReader;
pub use reader::TextCall;

/// First characters of a text or second sentence that is calls.
pub const OPENINGS: [char; 4] = ['{', '[', '<', '`'];

/// Possible start of a reply whose thoughts were taken off.
const THOUGHTS_END: &str = "</think>";

/// The calls that a text is, with the sentence before them.
pub fn read_text_calls<'t>(
    text: &'t str,
    tools: &[ToolDefinition],
) -> Option<(&'t str, Vec<TextCall>)> {
    if let Some(calls) = named_call(text.trim(), tools) {
        return Some(("", calls));
    }
    let (sentence, body) = sentence_and_calls(text)?;
    Some((sentence, CallReader::new(&call_markers::without_noise(body), tools).read_all()?))
}

/// The calls that a text is, each of which opens with this mark, with the sentence before them.
pub fn read_marked_calls(
    text: &str,
    mark: &str,
    tools: &[ToolDefinition],
) -> Option<(String, Vec<TextCall>)> {
    let [start, end] = call_markers::marked_tags(mark);
    let text = text.replace(&end, "</tool_call>");
    let mut parts = text.split(&start);
    let before = parts.next().filter(|_| !mark.is_empty())?;
    let mut calls = Vec::new();
    let mut sentence = None;
    for part in parts {
        let part = format!("<tool_call>{part}");
        let (_, read) = read_text_calls(&part, tools).filter(|(_, read)| read.len() == 1)?;
        // What precedes the first one is at most a sentence.
        if calls.is_empty() {
            let whole = format!("{before}{part}");
            let (words, all) = read_text_calls(&whole, tools)?;
            sentence = (all == read).then(|| words.to_string());
        }
        calls.extend(read);
    }
    Some((sentence?, calls))
}

/// A call that is the name of a tool and its arguments in JSON, as GLM writes it.
fn named_call(text: &str, tools: &[ToolDefinition]) -> Option<Vec<TextCall>> {
    let is_named = |tool: &ToolDefinition| {
        text.strip_prefix(&tool.name).is_some_and(|rest| rest.trim_start().starts_with('{'))
    };
    let is_short = text.len() <= limits::UNPARSED_CALL_BYTES;
    (is_short && tools.iter().any(is_named)).then(|| CallReader::marked(text, tools).read_all())?
}

/// The sentence before what may be calls, and these without the code fence around them.
pub fn sentence_and_calls(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let text = text.strip_prefix(THOUGHTS_END).map_or(text, str::trim_start);
    if text.len() > limits::UNPARSED_CALL_BYTES {
        return None;
    }
    let (sentence, calls) = text.split_at(sentence_end(text)?);
    let fence = single_fence(calls).filter(|fence| fence.is_alone);
    Some((sentence.trim_end(), fence.map_or(calls, |fence| fence.body)))
}

/// Whether a text, which begins with one of [`OPENINGS`], can go on as calls.
pub fn can_become_call(text: &str, tools: &[ToolDefinition]) -> bool {
    let text = &*call_markers::without_noise(text.trim_start());
    let has_start = |start: &str| text.starts_with(start) || start.starts_with(text);
    let has_marker = || call_markers::all().any(has_start);
    let second = text.chars().skip(1).find(|c| !c.is_whitespace());
    match text.chars().next() {
        Some('{') => matches!(second, None | Some('"' | '\'' | '}')),
        Some('[') => matches!(second, None | Some('{' | '[')) || has_marker(),
        Some('`') => {
            let body = text.split_once('\n').map_or("", |(_, body)| body.trim_start());
            has_start("```") && (body.is_empty() || body.starts_with(OPENINGS))
        }
        _ => {
            let names = tools.iter().map(|tool| &*tool.name).chain(call_markers::NAMED_TAGS);
            let is_tag = names.into_iter().any(|name| has_start(&format!("<{name}")));
            is_tag || has_marker() || has_start(THOUGHTS_END)
        }
    }
}

/// Where the text after one sentence begins, which may be calls. `None`: it is something else.
fn sentence_end(text: &str) -> Option<usize> {
    if text.starts_with(OPENINGS) || call_markers::all().any(|marker| text.starts_with(marker)) {
        return Some(0);
    }
    let mut last = ' ';
    let mut start = text.char_indices().take_while(|(at, _)| *at <= limits::CALL_SENTENCE_BYTES);
    let (end, _) = start.find(|(_, c)| ends_sentence(std::mem::replace(&mut last, *c), *c))?;
    let behind = text[end..].trim_start();
    behind.starts_with(OPENINGS).then_some(text.len() - behind.len())
}

/// Whether a character ends the sentence before calls, which the one before it belongs to.
pub fn ends_sentence(last: char, c: char) -> bool {
    c == '\n' || c.is_whitespace() && matches!(last, '.' | '!' | '?' | ':')
}

/// The calls anywhere in a text, such as a quoted one. They are searched from the last brackets
/// before each name of a tool on.
pub fn find_calls(text: &str, tools: &[ToolDefinition]) -> Vec<TextCall> {
    let text = &*call_markers::without_noise(text);
    let brackets: Vec<usize> = text.match_indices(['{', '[', '<']).map(|(at, _)| at).collect();
    let names_of = |tool: &ToolDefinition| {
        let names = text.match_indices(&tool.name).take(limits::QUOTED_NAMES);
        names.map(|(at, _)| at).collect::<Vec<usize>>()
    };
    let mut starts: BTreeSet<usize> = BTreeSet::new();
    let names: Vec<usize> = tools.iter().flat_map(names_of).collect();
    for name in names.iter().copied() {
        let end = brackets.partition_point(|at| *at < name);
        let first = end.saturating_sub(limits::QUOTED_BRACKETS);
        starts.extend(&brackets[first..end]);
    }
    let part = |at: usize| &text[at..text.floor_char_boundary(at + limits::QUOTED_CALL_BYTES)];
    let calls = starts.into_iter().flat_map(|at| CallReader::new(part(at), tools).read_start());
    // As code, or with the arguments behind the name.
    let as_code = names.into_iter().flat_map(|at| CallReader::marked(part(at), tools).read_start());
    calls.chain(as_code).collect()
}

/// Whether the text is one call as code writes it: `get_skill("x")`.
pub fn is_code_call(text: &str, tools: &[ToolDefinition]) -> bool {
    let fence = single_fence(text).filter(|fence| fence.is_alone);
    let text = fence.map_or(text, |fence| fence.body).trim().trim_matches('`');
    let name = text.split('(').next().unwrap_or_default().trim();
    text.ends_with(')') && !text.contains("\n\n") && tools.iter().any(|tool| tool.name == name)
}

/// The calls that a text is as code writes them: `get_skill(skill_name="x")`, or a list of them,
/// after a sentence or not.
pub fn read_code_calls(text: &str, tools: &[ToolDefinition]) -> Option<Vec<TextCall>> {
    let text = text.trim();
    if text.len() > limits::UNPARSED_CALL_BYTES || !text.contains('(') {
        return None;
    }
    let body = sentence_and_calls(text).map_or(text, |(_, body)| body).trim().trim_matches('`');
    CallReader::marked(body, tools).read_all()
}

/// Whether the text is a call of one of these tools: a line outside of code that starts with a
/// marker, or nothing but calls.
pub fn is_unparsed_call(text: &str, tools: &[ToolDefinition]) -> bool {
    let text = text.trim();
    let last_name = tools.iter().filter_map(|tool| text.rfind(&tool.name)).max();
    !tools.is_empty()
        && (last_name.is_some_and(|last| is_marked_call(text, last))
            || read_text_calls(text, tools).is_some())
}

/// Whether the text has a call of whatever tool: a line outside of code that starts with a marker,
/// and arguments.
pub fn has_call_marker(text: &str) -> bool {
    let text = text.trim();
    let last = text.rfind(['{', '=', '(']);
    last.is_some_and(|last| is_marked_call(text, last))
}

/// Whether a line outside of code starts with a marker, before or at the position `last`.
fn is_marked_call(text: &str, last: usize) -> bool {
    let ends = call_markers::ENDS.iter().any(|end| text.ends_with(end));
    let (mut fences, mut offset) = (OpenFences::default(), 0);
    for line in text.split_inclusive('\n') {
        let unindented = line.trim_start_matches(' ');
        // Four spaces are code in Markdown.
        let is_indented = line.len() - unindented.len() >= 4 || line.starts_with('\t');
        if fences.advance(line) == FenceLine::Outside && !is_indented {
            let marker =
                call_markers::STARTS.iter().filter_map(|marker| unindented.find(marker)).min();
            // After other words it is a call only if the text ends with an end marker and it is
            // not quoted, as in code, in a mail (`> `) or in the output of `grep -n`.
            let is_call_position = |position: usize| {
                let before = &unindented[..position];
                let is_quoted = before.contains('`') || before.starts_with('>');
                position == 0 || ends && !is_quoted && before.contains(char::is_alphabetic)
            };
            if offset <= last && marker.is_some_and(is_call_position) {
                return true;
            }
        }
        offset += line.len();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn calls_in_the_text_are_detected() {
        let tools = [ToolDefinition {
            name: "list_skills".into(),
            description: "d".into(),
            parameters: Value::Null,
        }];
        for text in [
            "<tool_call>\n{\"name\": \"list_skills\", \"arguments\": {}}\n</tool_call>",
            "<function=list_skills></function>",
            "[TOOL_CALLS] [{\"name\": \"list_skills\"}]",
            " {\"name\": \"list_skills\", \"arguments\": {}} ",
            "```json\n{\"name\": \"list_skills\", \"parameters\": {}}\n```",
            "I'll look.\n\n<tool_call>\n{\"name\": \"list_skills\"}\n</tool_call>",
            "I'll look. <function=list_skills>\n</function>",
            "I use `list_skills` now.\n\n<tool_call>\n{\"name\": \"list_skills\"}\n</tool_call>",
            "Now:\n[TOOL_CALLS][{\"name\": \"list_skills\", \"arguments\": {}}]",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.list_skills:0",
            "<minimax:tool_call>\n<invoke name=\"list_skills\">",
            "<|channel|>commentary to=functions.list_skills <|message|>{}<|call|>",
            "[{\"function\": {\"name\": \"list_skills\", \"arguments\": \"{}\"}}]",
        ] {
            assert!(is_unparsed_call(text, &tools), "{text}");
            assert!(!is_unparsed_call(text, &[]), "{text}");
        }
        for text in [
            "list_skills gives the skills",
            "{\"name\": \"other\", \"arguments\": {}}",
            "{\"name\": \"list_skills\"}",
            "The model writes <tool_call> and list_skills",
            "<tool_call> is a tag",
            "An example:\n\n    <tool_call>{\"name\": \"list_skills\"}</tool_call>",
            "So:\n```\n<tool_call>{\"name\": \"list_skills\"}</tool_call>\n```",
            "write `<tool_call>` and list_skills and </tool_call>",
            "",
        ] {
            assert!(!is_unparsed_call(text, &tools), "{text}");
        }
    }
}
