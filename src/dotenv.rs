//! The reader of `.env` text, with python-dotenv's grammar.
//!
//! It turns text into named values and a list of faults, for `config`: what
//! `load_dotenv()` would offer to a Python program's environment.
//!
//! It must not read files or the process environment, must not decide that an
//! empty value means "unset" (that is the caller's rule), must not look for
//! `.env` in parent folders, and must never put a value into a message: values
//! are secrets. The size of the whole text is bounded by the caller.
//!
//! Every step moves forward only, so the time is linear in the text's length:
//! an opening quote without its partner is searched for once, since every
//! later quote of that kind is then behind a backslash and opens no value.

use crate::limits;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// One variable as the text defines it.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name; any text that the grammar allows, not only `[A-Z_]+`.
    pub name: String,
    /// The value after escapes and references; `None` for a name without `=`.
    pub value: Option<String>,
    /// The line, from 1, on which the statement that set the value begins.
    pub line: usize,
}

/// A statement that was skipped, or the reason why a whole file was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotenvProblem {
    /// The line, from 1, on which the statement begins.
    pub line: usize,
    /// What is wrong. Fixed text, so that it can never hold a value.
    pub message: &'static str,
}

/// What a text defines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dotenv {
    /// Each name once, in the order of first appearance, with its last value:
    /// a Python dictionary's order.
    pub variables: Vec<Variable>,
    /// The statements that were skipped, in the text's order.
    pub faults: Vec<DotenvProblem>,
}

/// Reads the bytes of a `.env` file.
///
/// Bytes that are not UTF-8 refuse the whole file, as in Python; so does NUL,
/// which no environment variable can hold.
pub fn parse_bytes(
    bytes: &[u8],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Dotenv, DotenvProblem> {
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let (end, message) = if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        (0, "the file is saved as UTF-16, not as UTF-8")
    } else if let Some(end) = valid.find('\0') {
        (end, "a NUL byte")
    } else if valid.len() < bytes.len() {
        (valid.len(), "the text is not UTF-8")
    } else {
        return Ok(parse(valid, environment));
    };
    let line = 1 + translate_newlines(&valid[..end]).matches('\n').count();
    Err(DotenvProblem { line, message })
}

/// Reads the text of a `.env` file.
///
/// `environment` answers `${NAME}` before the earlier variables of the file
/// do: `load_dotenv()` leaves alone what is already set. A skipped statement
/// leaves its name as it was.
pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Dotenv {
    let text = translate_newlines(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut reader = DotenvReader { rest: &text, line: 1 };
    let mut scope = Scope {
        variables: Vec::new(),
        positions: HashMap::new(),
        environment,
        expansion_left_bytes: limits::ENV_EXPANSION_BYTES,
    };
    let mut faults = Vec::new();
    loop {
        reader.take_while(is_space);
        if reader.rest.is_empty() {
            break;
        }
        let line = reader.line;
        let outcome = reader.read_statement().and_then(|found| match found {
            Some((name, value)) => scope.define(name, value, line),
            None => Ok(()),
        });
        if let Err(message) = outcome {
            // The rest of the line; nothing when the whole was read.
            reader.take_while(|c| c != '\n');
            faults.push(DotenvProblem { line, message });
        }
    }
    Dotenv { variables: scope.variables, faults }
}

/// Values are secrets: debug output tells only whether there is one.
impl fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Variable")
            .field("name", &self.name)
            .field("value", &self.value.as_ref().map(|_| "***"))
            .field("line", &self.line)
            .finish()
    }
}

impl fmt::Display for DotenvProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for DotenvProblem {}

/// Why a statement is skipped.
type SkipReason = &'static str;

/// A name and its value, before references are resolved.
type Binding<'a> = (&'a str, Option<String>);

/// The unread text. Its only line end is LF.
struct DotenvReader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> DotenvReader<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.bytes().filter(|&byte| byte == b'\n').count();
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        self.take(length)
    }

    /// Reads one statement; a comment is `None`. On a failure the reader
    /// stands where the grammar stopped, and the rest of that line is lost:
    /// the last line of a quoted value that was closed, else its first.
    fn read_statement(&mut self) -> Result<Option<Binding<'a>>, SkipReason> {
        self.skip_export();
        if self.rest.starts_with('#') {
            self.skip_comment();
            return Ok(None);
        }
        let name = self.read_name()?;
        self.take_while(is_blank);
        let (value, complaint) = if self.rest.starts_with('=') {
            (Some(self.read_value()?), "text after the closing quote")
        } else {
            (None, "no `=` after the name")
        };
        self.skip_comment();
        self.take_while(is_blank);
        if self.rest.is_empty() || self.rest.starts_with('\n') {
            Ok(Some((name, value)))
        } else {
            Err(complaint)
        }
    }

    /// `export` alone, or before `=`, is a name like any other.
    fn skip_export(&mut self) {
        let after = self.rest.strip_prefix("export").unwrap_or_default();
        if after.starts_with(is_blank) {
            self.take("export".len());
            self.take_while(is_blank);
        }
    }

    fn skip_comment(&mut self) {
        if self.rest.trim_start_matches(is_blank).starts_with('#') {
            self.take_while(|c| c != '\n');
        }
    }

    fn read_name(&mut self) -> Result<&'a str, SkipReason> {
        if let Some(inside) = self.rest.strip_prefix('\'') {
            return match inside.find('\'') {
                None => Err("no closing quote after the name"),
                Some(0) => Err("an empty name"),
                // The name may hold a line feed: `take` must see all of it.
                Some(length) => Ok(self.take(length + 2).trim_matches('\'')),
            };
        }
        match self.take_while(|c| c != '=' && c != '#' && !is_space(c)) {
            "" => Err("no name"),
            name => Ok(name),
        }
    }

    /// Reads from the `=` to the value's end.
    fn read_value(&mut self) -> Result<String, SkipReason> {
        self.take(1);
        let blanks = self.take_while(is_blank);
        match self.rest.chars().next() {
            Some(quote @ ('\'' | '"')) => self.read_quoted(quote),
            // With a blank before it, `#` begins a comment: no value.
            Some('#') if !blanks.is_empty() => Ok(String::new()),
            _ => Ok(cut_comment(self.take_while(|c| c != '\n')).to_owned()),
        }
    }

    fn read_quoted(&mut self, quote: char) -> Result<String, SkipReason> {
        let mut escaped = false;
        let inside = &self.rest[1..];
        let end = inside.find(|c| {
            let closes = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        match end {
            Some(length) => {
                self.take(length + 2);
                Ok(decode_escapes(&inside[..length], quote))
            }
            None if quote == '"' => Err("no closing double quote"),
            None => Err("no closing single quote"),
        }
    }
}

/// The variables so far, and what their references may still bring in.
struct Scope<'a> {
    variables: Vec<Variable>,
    positions: HashMap<String, usize>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    expansion_left_bytes: usize,
}

impl Scope<'_> {
    fn define(&mut self, name: &str, value: Option<String>, line: usize) -> Result<(), SkipReason> {
        let value = value.map(|value| self.expand(&value)).transpose()?;
        let name = name.to_owned();
        if let Some(&position) = self.positions.get(&name) {
            self.variables[position] = Variable { name, value, line };
        } else {
            self.positions.insert(name.clone(), self.variables.len());
            self.variables.push(Variable { name, value, line });
        }
        Ok(())
    }

    /// Replaces the references, once: what they bring in is not read again.
    fn expand(&mut self, mut rest: &str) -> Result<String, SkipReason> {
        let mut expanded = String::with_capacity(rest.len());
        while let Some(reference) = find_reference(rest) {
            expanded.push_str(&rest[..reference.start]);
            rest = &rest[reference.end..];
            let before = expanded.len();
            // Once the bound is met nothing is looked up any more, so that
            // many refused lines cost no more than one.
            let known = self.expansion_left_bytes > 0 && self.append(reference.name, &mut expanded);
            let grown = expanded.len() - before;
            self.expansion_left_bytes = self.expansion_left_bytes.saturating_sub(grown);
            if self.expansion_left_bytes == 0 {
                return Err("the references of this file bring in too much text");
            }
            if !known {
                expanded.push_str(reference.default);
            }
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// Appends the value of a name, unless the name is unknown. A name
    /// without `=` is known, and empty: its default is not used.
    fn append(&self, name: &str, text: &mut String) -> bool {
        if let Some(value) = (self.environment)(name) {
            text.push_str(&value);
        } else if let Some(&position) = self.positions.get(name) {
            text.push_str(self.variables[position].value.as_deref().unwrap_or(""));
        } else {
            return false;
        }
        true
    }
}

/// `${name}` or `${name:-default}` and where it stands.
struct Reference<'a> {
    start: usize,
    end: usize,
    name: &'a str,
    default: &'a str,
}

/// The first reference. Names end at `}` or `:`, defaults at `}`, without nesting.
fn find_reference(text: &str) -> Option<Reference<'_>> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("${")?;
        let name = start + 2;
        let stop = name + text[name..].find(['}', ':'])?;
        let default = if text[stop..].starts_with('}') {
            stop
        } else if text[stop..].starts_with(":-") {
            stop + 2
        } else {
            // Every `${` before this colon ends at it too, so none of them
            // is a reference: looking at each would take quadratic time.
            from = stop;
            continue;
        };
        let close = default + text[default..].find('}')?;
        return Some(Reference {
            start,
            end: close + 1,
            name: &text[name..stop],
            default: &text[default..close],
        });
    }
}

/// Drops an inline comment, which needs white space before its `#`.
fn cut_comment(value: &str) -> &str {
    let comment = value.match_indices('#').find(|&(at, _)| value[..at].ends_with(is_space));
    let end = comment.map_or(value.len(), |(at, _)| at);
    value[..end].trim_end_matches(is_space)
}

/// Replaces the escapes that the kind of quote knows; other backslashes stay.
fn decode_escapes(mut rest: &str, quote: char) -> String {
    let mut decoded = String::with_capacity(rest.len());
    while let Some(backslash) = rest.find('\\') {
        let letter = rest[backslash + 1..].chars().next();
        let character = letter.and_then(|letter| decode_escape(letter, quote));
        decoded.push_str(&rest[..backslash]);
        decoded.push(character.unwrap_or('\\'));
        // All letters that make an escape are one byte long.
        rest = &rest[backslash + 1 + usize::from(character.is_some())..];
    }
    decoded.push_str(rest);
    decoded
}

fn decode_escape(letter: char, quote: char) -> Option<char> {
    match letter {
        '\\' | '\'' => Some(letter),
        _ if quote == '\'' => None,
        '"' => Some('"'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        _ => None,
    }
}

/// Python opens the file in text mode: CRLF and a lone CR arrive as LF, inside
/// quotes too.
fn translate_newlines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// What Python's `\s` and `rstrip` take for white space: Unicode's property,
/// and the four separators of ASCII.
fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// White space within a line. Only LF ends one: form feed and U+2028 do not.
fn is_blank(character: char) -> bool {
    character != '\n' && is_space(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::clock::thread_time;
    use std::cell::Cell;
    use std::fmt::Write;
    use std::time::Duration;

    type Pairs<'a> = &'a [(&'a str, Option<&'a str>)];
    type Faults<'a> = &'a [(usize, &'a str)];

    fn environment(name: &str) -> Option<String> {
        match name {
            "USER" => Some("ann".to_owned()),
            "NOTHING" => Some(String::new()),
            _ => None,
        }
    }

    fn read(text: &str) -> Dotenv {
        parse(text, &environment)
    }

    fn pairs(read: &Dotenv) -> Vec<(&str, Option<&str>)> {
        let variables = read.variables.iter();
        variables.map(|variable| (variable.name.as_str(), variable.value.as_deref())).collect()
    }

    fn check(table: &[(&str, Pairs)]) {
        for (text, wanted) in table {
            let read = read(text);
            assert_eq!(pairs(&read), *wanted, "in {text:?}");
            assert_eq!(read.faults, [], "in {text:?}");
        }
    }

    #[test]
    fn names_and_plain_values() {
        check(&[
            ("", &[]),
            (" \n\t\n# nothing\n", &[]),
            ("KEY=value", &[("KEY", Some("value"))]),
            ("  KEY \t=  two words  ", &[("KEY", Some("two words"))]),
            ("KEY=", &[("KEY", Some(""))]),
            ("KEY", &[("KEY", None)]),
            ("export KEY=value", &[("KEY", Some("value"))]),
            ("export=value", &[("export", Some("value"))]),
            ("exported=value", &[("exported", Some("value"))]),
            ("'two words'=value", &[("two words", Some("value"))]),
            ("a.b-c=d=e", &[("a.b-c", Some("d=e"))]),
            ("KEY=it's", &[("KEY", Some("it's"))]),
            ("KEY=C:\\new", &[("KEY", Some("C:\\new"))]),
            ("A=1\nB=2\nA=3", &[("A", Some("3")), ("B", Some("2"))]),
            ("A=1\nA", &[("A", None)]),
        ]);
    }

    #[test]
    fn comments_need_white_space_in_front() {
        check(&[
            ("KEY=red#1", &[("KEY", Some("red#1"))]),
            ("KEY=red #1", &[("KEY", Some("red"))]),
            ("KEY=#1", &[("KEY", Some("#1"))]),
            ("KEY= #1", &[("KEY", Some(""))]),
            ("KEY='red #1'# note", &[("KEY", Some("red #1"))]),
            ("KEY # note", &[("KEY", None)]),
            ("export # note", &[]),
        ]);
    }

    #[test]
    fn quotes_and_escapes() {
        check(&[
            (r#"KEY="a\tb\"c\\d\'e""#, &[("KEY", Some("a\tb\"c\\d'e"))]),
            (r"KEY='a\tb\'c\\d'", &[("KEY", Some(r"a\tb'c\d"))]),
            (r#"KEY="\a\b\f\n\r\v""#, &[("KEY", Some("\u{7}\u{8}\u{c}\n\r\u{b}"))]),
            (r#"KEY="\x41\q\é""#, &[("KEY", Some(r"\x41\q\é"))]),
            ("KEY=\"\"", &[("KEY", Some(""))]),
            ("KEY=\" a \"", &[("KEY", Some(" a "))]),
            ("KEY=\"one\n#two\n\" # note\nB=1", &[("KEY", Some("one\n#two\n")), ("B", Some("1"))]),
        ]);
    }

    #[test]
    fn references() {
        check(&[
            ("A=1\nB=${A}2", &[("A", Some("1")), ("B", Some("12"))]),
            ("A='1'\nB='${A}'", &[("A", Some("1")), ("B", Some("1"))]),
            ("A=${LATER}\nLATER=1", &[("A", Some("")), ("LATER", Some("1"))]),
            ("A=${NONE:-a b}", &[("A", Some("a b"))]),
            ("A=${NONE:-${B}}", &[("A", Some("${B}"))]),
            ("A=${USER}", &[("A", Some("ann"))]),
            ("USER=bob\nA=${USER}", &[("USER", Some("bob")), ("A", Some("ann"))]),
            ("A=${NOTHING:-x}", &[("A", Some(""))]),
            ("A\nB=${A:-x}", &[("A", None), ("B", Some(""))]),
            ("A=1\nA=${A}${A}", &[("A", Some("11"))]),
            ("A=$USER ${USER", &[("A", Some("$USER ${USER"))]),
            ("A=${USER:x}${USER-x}", &[("A", Some("${USER:x}"))]),
            ("A=${${USER}}", &[("A", Some("}"))]),
            ("A='${B}'\nB=${A}", &[("A", Some("")), ("B", Some(""))]),
        ]);
    }

    #[test]
    fn line_ends_byte_order_mark_and_white_space() {
        check(&[
            ("A=1\r\nB=2\rC=3", &[("A", Some("1")), ("B", Some("2")), ("C", Some("3"))]),
            ("A='1\r\n2\r3'", &[("A", Some("1\n2\n3"))]),
            ("\u{feff}A=1", &[("A", Some("1"))]),
            ("\u{feff}\u{feff}A=1", &[("\u{feff}A", Some("1"))]),
            ("\u{a0}A\u{3000}=\u{1c}1\u{2028}#x\u{85}", &[("A", Some("1"))]),
            ("A=1\u{c}B=2", &[("A", Some("1\u{c}B=2"))]),
            ("A=\u{200b}", &[("A", Some("\u{200b}"))]),
        ]);
    }

    #[test]
    fn broken_statements_are_told_and_skipped() {
        let table: &[(&str, Pairs, Faults)] = &[
            ("A=1\n\n=2\nB=3", &[("A", Some("1")), ("B", Some("3"))], &[(3, "no name")]),
            ("export \nB=3", &[("B", Some("3"))], &[(1, "no name")]),
            ("''=1", &[], &[(1, "an empty name")]),
            ("'A=1\nB=2", &[("B", Some("2"))], &[(1, "no closing quote after the name")]),
            ("set A=1", &[], &[(1, "no `=` after the name")]),
            ("A=1\nA='2' 3", &[("A", Some("1"))], &[(2, "text after the closing quote")]),
            ("A=\"1\nB=2\" C=3\nD=4", &[("D", Some("4"))], &[(1, "text after the closing quote")]),
            ("A=\"1\nB=2", &[("B", Some("2"))], &[(1, "no closing double quote")]),
            ("A='1\\'\r\nB=2", &[("B", Some("2"))], &[(1, "no closing single quote")]),
        ];
        for (text, values, faults) in table {
            let read = read(text);
            let told = read.faults.iter().map(|fault| (fault.line, fault.message));
            assert_eq!(told.collect::<Vec<_>>(), *faults, "in {text:?}");
            assert_eq!(pairs(&read), *values, "in {text:?}");
        }
    }

    #[test]
    fn lines_are_those_of_the_last_setting() {
        let read = read("\n A=1\rB='\n\n'\r\nC=1\nA=2");
        let lines = read.variables.iter().map(|variable| variable.line);
        assert_eq!(lines.collect::<Vec<_>>(), [7, 3, 6]);
    }

    #[test]
    fn bytes_that_no_value_can_hold_refuse_the_file() {
        for (bytes, line, message) in [
            (&b"A=1\r\nB=\xff"[..], 2, "the text is not UTF-8"),
            (b"A=1\rB=2\n\xc3", 3, "the text is not UTF-8"),
            (b"A=1\n\0\n\xff", 2, "a NUL byte"),
            (b"A=1\n\n\xff\0", 3, "the text is not UTF-8"),
            (b"\xff\xfeA\0", 1, "the file is saved as UTF-16, not as UTF-8"),
        ] {
            let refused = parse_bytes(bytes, &environment);
            assert_eq!(refused, Err(DotenvProblem { line, message }), "for {bytes:?}");
        }
        assert_eq!(parse_bytes(b"", &environment), Ok(Dotenv::default()));
    }

    #[test]
    fn values_stay_out_of_faults_and_debug_output() {
        let read = read("KEY=canary\nOTHER='canary' x\nMORE=\"canary");
        let shown = format!("{read:?} {}", read.faults[0]);
        assert!(!shown.contains("canary"), "{shown}");
        assert_eq!(read.faults.len(), 2);
        assert_eq!(read.faults[0].to_string(), "line 2: text after the closing quote");
    }

    #[test]
    fn doubling_is_refused_with_its_line() {
        let mut text = "V0=xxxxxxxxxxxxxxxx\n".to_owned();
        for step in 1..100 {
            writeln!(text, "V{step}=${{V{0}}}${{V{0}}}", step - 1).unwrap();
        }
        text += "PLAIN=1\nV0=${V0}\n";
        let read = read(&text);
        // 16 bytes doubled 15 times bring in 1,048,544: one line more is over.
        assert_eq!(read.variables.len(), 17);
        assert_eq!(read.faults[0].line, 17);
        assert_eq!(read.faults.len(), 99 - 15 + 1);
        assert_eq!(pairs(&read)[0].1, Some("xxxxxxxxxxxxxxxx"));
        assert_eq!(pairs(&read)[16], ("PLAIN", Some("1")));
    }

    #[test]
    fn large_values_are_not_looked_up_for_ever() {
        let asked = Cell::new(0);
        let large = |_: &str| {
            asked.set(asked.get() + 1);
            Some("x".repeat(128 * 1024))
        };
        let read = parse(&"A=${BIG}\n".repeat(100_000), &large);
        assert_eq!(asked.get(), 8);
        assert_eq!((read.variables.len(), read.faults.len()), (1, 100_000 - 7));
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        const SIZE: usize = 64 * 1024;
        let pieces = [
            "\"",
            "'",
            "A=\"",
            "A='",
            "A=\"\n",
            "A='\n",
            "A=\"\\\"\n",
            "A='\\'\n",
            "'A\n",
            "''\n",
            "\\",
            "A=\\\"",
            "=\n",
            "A\n",
            " ",
            "\n",
            "\r",
            "#",
            " #",
            "A= x",
            "\u{3000}",
            "export ",
            "export\n",
            "A=\"x\" ",
            "\0",
            "${",
            "$",
            "}",
            ":-",
        ];
        let frames = [
            ("", ""),
            ("A=", ""),
            ("A=", ":}"),
            ("A=\"", ""),
            ("A=\"", "\""),
            ("A='", ""),
            ("A='", "'"),
            ("A=${", "}"),
            ("A=${A:-", "}"),
            ("'", ""),
            ("'", "'=x"),
            ("export ", ""),
        ];
        let bodies = [
            "${", "${:", "${x:", "${:-", "${}", "${A}", "${A:-", "${USER}", ":", "#", " # ", "\\\"",
        ];
        for piece in pieces.iter().chain(&bodies) {
            for (head, tail) in frames {
                let text = format!("{head}{}{tail}", piece.repeat(SIZE / piece.len()));
                let start = thread_time();
                let _ = read(&text);
                // Linear time takes some 10 ms. The margin is for a slow machine.
                let took = thread_time().saturating_sub(start);
                assert!(took < Duration::from_secs(5), "{took:?} for {head:?} {piece:?} {tail:?}");
            }
        }
    }

    /// What the real python-dotenv made of these texts; the script
    /// `tests/oracle/dotenv_oracle.py` wrote them.
    #[test]
    fn agrees_with_python_dotenv() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../tests/dotenv_vectors.json")).unwrap();
        let vectors = vectors.as_array().unwrap();
        assert!(vectors.len() >= 300);
        for vector in vectors {
            let text = vector["text"].as_str().unwrap();
            let read = parse_bytes(text.as_bytes(), &|name| {
                vector["environment"][name].as_str().map(str::to_owned)
            });
            let read = read.unwrap();
            let values: serde_json::Map<_, _> = read
                .variables
                .into_iter()
                .map(|variable| (variable.name, variable.value.into()))
                .collect();
            let faults: Vec<_> = read.faults.iter().map(|fault| fault.line).collect();
            assert_eq!(vector["values"], serde_json::Value::from(values), "in {text:?}");
            assert_eq!(vector["faults"], serde_json::Value::from(faults), "in {text:?}");
        }
    }
}
