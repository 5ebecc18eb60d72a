//! Tests of the parser for `.env` text.

use super::*;
use host::clock::thread_time;
use std::cell::Cell;
use std::fmt::Write;
use std::time::Duration;

type Pairs<'a> = &'a [(&'a str, Option<&'a str>)];
type Problems<'a> = &'a [(usize, &'a str)];

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
    for (text, expected) in table {
        let read = read(text);
        assert_eq!(pairs(&read), *expected, "in {text:?}");
        assert_eq!(read.problems, [], "in {text:?}");
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
fn comments_need_white_space_before_them() {
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
fn values_from_the_environment_are_marked() {
    let read = read("A=${USER}\nB=${A}\nC=${B}${NONE:-x}\nD=${NONE:-x}\nE=1\nF=${E}\nA=2\nG=${A}");
    let variables = read.variables.iter().filter(|variable| variable.uses_environment);
    let marked: Vec<&str> = variables.map(|variable| variable.name.as_str()).collect();
    assert_eq!(marked, ["B", "C"]);
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
fn invalid_statements_are_reported_and_skipped() {
    let table: &[(&str, Pairs, Problems)] = &[
        ("A=1\n\n=2\nB=3", &[("A", Some("1")), ("B", Some("3"))], &[(3, "the name is missing")]),
        ("export \nB=3", &[("B", Some("3"))], &[(1, "the name is missing")]),
        ("''=1", &[], &[(1, "an empty name")]),
        ("'A=1\nB=2", &[("B", Some("2"))], &[(1, "no closing quote after the name")]),
        ("set A=1", &[], &[(1, "no `=` after the name")]),
        ("A=1\nA='2' 3", &[("A", Some("1"))], &[(2, "text after the closing quote")]),
        ("A=\"1\nB=2\" C=3\nD=4", &[("D", Some("4"))], &[(1, "text after the closing quote")]),
        ("A=\"1\nB=2", &[("B", Some("2"))], &[(1, "no closing double quote")]),
        ("A='1\\'\r\nB=2", &[("B", Some("2"))], &[(1, "no closing single quote")]),
    ];
    for (text, values, problems) in table {
        let read = read(text);
        let found = read.problems.iter().map(|problem| (problem.line, problem.message));
        assert_eq!(found.collect::<Vec<_>>(), *problems, "in {text:?}");
        assert_eq!(pairs(&read), *values, "in {text:?}");
    }
}

#[test]
fn a_variable_has_the_line_of_its_last_statement() {
    let read = read("\n A=1\rB='\n\n'\r\nC=1\nA=2");
    let lines = read.variables.iter().map(|variable| variable.line);
    assert_eq!(lines.collect::<Vec<_>>(), [7, 3, 6]);
}

#[test]
fn files_with_bytes_that_no_value_can_contain_are_refused() {
    for (bytes, line, message) in [
        (&b"A=1\r\nB=\xff"[..], 2, "the text is not UTF-8"),
        (b"A=1\rB=2\n\xc3", 3, "the text is not UTF-8"),
        (b"A=1\n\0\n\xff", 2, "the text contains a NUL byte"),
        (b"A=1\n\n\xff\0", 3, "the text is not UTF-8"),
        (b"\xff\xfeA\0", 1, "the file is saved as UTF-16, not as UTF-8"),
    ] {
        let refused = parse_bytes(bytes, &environment);
        assert_eq!(refused, Err(DotenvProblem { line, message }), "for {bytes:?}");
    }
    assert_eq!(parse_bytes(b"", &environment), Ok(Dotenv::default()));
}

#[test]
fn values_are_not_in_problems_or_debug_output() {
    let read = read("KEY=canary\nOTHER='canary' x\nMORE=\"canary");
    let shown = format!("{read:?} {}", read.problems[0]);
    assert!(!shown.contains("canary"), "{shown}");
    assert_eq!(read.problems.len(), 2);
    assert_eq!(read.problems[0].to_string(), "line 2: text after the closing quote");
}

#[test]
fn doubling_is_refused_with_its_line() {
    let mut text = "V0=xxxxxxxxxxxxxxxx\n".to_owned();
    for step in 1..100 {
        writeln!(text, "V{step}=${{V{0}}}${{V{0}}}", step - 1).unwrap();
    }
    text += "PLAIN=1\nV0=${V0}\n";
    let read = read(&text);
    // 16 bytes doubled 15 times expand to 1,048,544: one more line exceeds the limit.
    assert_eq!(read.variables.len(), 17);
    assert_eq!(read.problems[0].line, 17);
    assert_eq!(read.problems.len(), 99 - 15 + 1);
    assert_eq!(pairs(&read)[0].1, Some("xxxxxxxxxxxxxxxx"));
    assert_eq!(pairs(&read)[16], ("PLAIN", Some("1")));
}

#[test]
fn large_values_are_not_looked_up_beyond_the_limit() {
    let lookups = Cell::new(0);
    let large = |_: &str| {
        lookups.set(lookups.get() + 1);
        Some("x".repeat(128 * 1024))
    };
    let read = parse(&"A=${BIG}\n".repeat(100_000), &large);
    assert_eq!(lookups.get(), 8);
    assert_eq!((read.variables.len(), read.problems.len()), (1, 100_000 - 7));
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
    let bodies =
        ["${", "${:", "${x:", "${:-", "${}", "${A}", "${A:-", "${USER}", ":", "#", " # ", "\\\""];
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

/// Results of the real python-dotenv, written by `tests/oracle/dotenv_oracle.py`.
#[test]
fn agrees_with_python_dotenv() {
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("../../../tests/dotenv_vectors.json")).unwrap();
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
        let lines: Vec<_> = read.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(vector["values"], serde_json::Value::from(values), "in {text:?}");
        assert_eq!(vector["problems"], serde_json::Value::from(lines), "in {text:?}");
    }
}
