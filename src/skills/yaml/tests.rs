//! Tests of the reader: a table for each feature.

use serde_json::{Value, json};

use super::{Diagnostic, find_control_character, normalize, parse, parse_core, repair};
use crate::Rule;
use base::limits;

#[track_caller]
fn check(cases: &[(&str, Value)]) {
    for (text, expected) in cases {
        match parse(text) {
            Ok(parsed) => assert_eq!(parsed.value, *expected, "{text:?}"),
            Err(error) => panic!("{text:?}: line {}: {}", error.line, error.message),
        }
    }
}

#[test]
fn reads_plain_text() {
    check(&[
        ("a: some words", json!({"a": "some words"})),
        ("a:   wide    apart  # remark", json!({"a": "wide    apart"})),
        ("a: one\n  two\n\n  three\nb: x", json!({"a": "one two\nthree", "b": "x"})),
        ("a: one\n  - two\n  # end", json!({"a": "one - two"})),
        ("a:\n  on its own line", json!({"a": "on its own line"})),
        ("a: http://x.y:80/z#frag", json!({"a": "http://x.y:80/z#frag"})),
        ("a: -dash ?mark :colon", json!({"a": "-dash ?mark :colon"})),
        ("a: it's \"so\"", json!({"a": "it's \"so\""})),
        ("a : b", json!({"a": "b"})),
    ]);
}

#[test]
fn types_plain_text_as_yaml_1_1() {
    for (text, expected) in [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("TRUE", json!(true)),
        ("y", json!("y")),
        ("yEs", json!("yEs")),
        ("~", json!(null)),
        ("NULL", json!(null)),
        ("", json!(null)),
        ("0", json!(0)),
        ("+12", json!(12)),
        ("-1_000", json!(-1000)),
        ("012", json!(10)),
        ("08", json!("08")),
        ("0o17", json!("0o17")),
        ("0x1F", json!(31)),
        ("-0b1_01", json!(-5)),
        ("1:30", json!(90)),
        ("-1:30:15", json!(-5415)),
        ("1:60", json!("1:60")),
        ("0:30", json!("0:30")),
        ("_1", json!("_1")),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("18446744073709551616", json!("18446744073709551616")),
        ("1.5", json!(1.5)),
        ("1.", json!(1.0)),
        (".5", json!(0.5)),
        ("-.5", json!("-.5")),
        ("1_0.2_5", json!(10.25)),
        ("1.5e3", json!("1.5e3")),
        ("1.5e+3", json!(1500.0)),
        ("1e3", json!("1e3")),
        ("1:30.5", json!("1:30.5")),
        ("1.2.3", json!("1.2.3")),
        ("-.inf", json!("-.inf")),
        (".NaN", json!(".NaN")),
        ("2024-02-29", json!("2024-02-29")),
        ("2024-01-02 10:00:00Z", json!("2024-01-02 10:00:00Z")),
        ("2024-02-30", json!("2024-02-30")),
        ("2024-2-30", json!("2024-2-30")),
    ] {
        check(&[(&format!("a: {text}"), json!({ "a": expected }))]);
        check(&[(&format!("- \"{text}\""), json!([text]))]);
    }
}

#[test]
fn reads_quoted_text() {
    check(&[
        (r#"a: "q\"\\\/\t\n\e\0 \x41\u2019\U0001F600""#, json!({"a": "q\"\\/\t\n\u{1b}\0 A’😀"})),
        (
            r#"a: "\N\_\L\P\a\b\v\f\r\ ""#,
            json!({"a": "\u{85}\u{a0}\u{2028}\u{2029}\u{7}\u{8}\u{b}\u{c}\r "}),
        ),
        (r#"a: "\ud83d\ude00""#, json!({"a": "😀"})),
        ("a: \"one  \n   two\n\n\n  three\"", json!({"a": "one two\n\nthree"})),
        ("a: \"one \\\n   two\\\n\n  three\"", json!({"a": "one two\nthree"})),
        ("a: 'it''s \\n: # fine'", json!({"a": "it's \\n: # fine"})),
        ("a: 'one\n  two'  # remark", json!({"a": "one two"})),
        ("a:\n  \"below\ntheir key\"\nb: ''", json!({"a": "below their key", "b": ""})),
        ("\"a b\": 1\n'c': 2", json!({"a b": 1, "c": 2})),
        ("a: \"tab\there\"", json!({"a": "tab\there"})),
    ]);
}

#[test]
fn reads_block_text() {
    check(&[
        ("a: |\n  one\n   two\n\n  three\nb: 1", json!({"a": "one\n two\n\nthree\n", "b": 1})),
        (
            "a: >\n  one\n  two\n\n  three\n    deep\n  four\n",
            json!({"a": "one two\nthree\n  deep\nfour\n"}),
        ),
        ("a: |-\n  one\n\n", json!({"a": "one"})),
        ("a: |+\n  one\n\nb: 1", json!({"a": "one\n\n", "b": 1})),
        ("a: >-  # remark\n  one\n  # text", json!({"a": "one # text"})),
        ("a: |2\n    two more\n", json!({"a": "  two more\n"})),
        ("a: |-1\n  x\n", json!({"a": " x"})),
        ("a: |\n\n  after a gap", json!({"a": "\nafter a gap"})),
        ("a: |\nb: >\n", json!({"a": "", "b": ""})),
        ("a: |\n  ---\n  key: value\n", json!({"a": "---\nkey: value\n"})),
        ("- |\n one\n- >\n  two", json!(["one\n", "two"])),
        ("a:\n|-\n  one\nb:\n\n>\n two", json!({"a": "one", "b": "two"})),
    ]);
}

#[test]
fn reads_collections() {
    check(&[
        (
            "a:\n- 1\n-\n- b: c\n  d: e\n- - f\nz:\n",
            json!({"a": [1, null, {"b": "c", "d": "e"}, ["f"]], "z": null}),
        ),
        ("a:\n  b:\n    c: 1\n  d: 2", json!({"a": {"b": {"c": 1}, "d": 2}})),
        ("a: # remark\n\n# remark\n  - b # remark\n\nc: d", json!({"a": ["b"], "c": "d"})),
        ("a: [b, 'c', 1, ]\nd: {}", json!({"a": ["b", "c", 1], "d": {}})),
        ("a: [\n  b, # remark\nc d\n ]", json!({"a": ["b", "c d"]})),
        ("a: [topic: foo | bar]", json!({"a": [{"topic": "foo | bar"}]})),
        (
            "a: {\"b\":[1,{\"c\":null}],\"d\":true}",
            json!({"a": {"b": [1, {"c": null}], "d": true}}),
        ),
        ("a: {b, c: , 'd': e:f}", json!({"a": {"b": null, "c": null, "d": "e:f"}})),
        ("1: a\nyes: b\n~: c\n1.5: d", json!({"1": "a", "true": "b", "null": "c", "1.5": "d"})),
        ("", json!(null)),
        ("# remark\n", json!(null)),
        ("a: 1\n...\n# remark\n", json!({"a": 1})),
    ]);
}

#[test]
fn counts_cr_and_mark_as_nothing() {
    let text = normalize("\u{feff}a: |\r\n  one\r\n  two\rb: 1\r\n");
    check(&[(&text, json!({"a": "one\ntwo\n", "b": 1}))]);
}

#[test]
fn refuses_with_rule_and_line() {
    for (text, rule, line) in [
        ("a: 1\nb: c: d", "unquoted-value", 2),
        ("a: 1\nb: c\n  d: e", "unquoted-value", 3),
        ("a: @b", "unquoted-value", 1),
        ("a: `b`", "unquoted-value", 1),
        ("a: &b c", "unsupported-yaml", 1),
        ("a: *b", "unsupported-yaml", 1),
        ("a: !!str b", "unsupported-yaml", 1),
        ("? a\n: b", "unsupported-yaml", 1),
        ("[a]: b", "unsupported-yaml", 1),
        ("a:\n  <<: {b: c}", "unquoted-value", 2),
        ("a: [b, c\nd: e", "bad-flow", 2),
        ("a: [b, c\n", "bad-flow", 1),
        ("a: [b,, c]", "bad-flow", 1),
        ("a: [b} ", "bad-flow", 1),
        ("a: [}", "bad-flow", 1),
        ("a:\n  b: {c: [1, 2}", "bad-flow", 2),
        ("a: [b}: c]", "bad-flow", 1),
        ("a: 'b\n\n", "unclosed-quote", 1),
        ("a: 'b' c", "unquoted-value", 1),
        ("a: \"\\q\"", "bad-escape", 1),
        ("a: \"\\ud800\"", "bad-escape", 1),
        ("a: \"\\u12\"", "bad-escape", 1),
        ("a: |\n  b\n c\n", "indentation", 3),
        ("a: > b\n", "unquoted-value", 1),
        ("a: 1\n  b: 2", "unquoted-value", 2),
        ("a: \"1\"\n  b: 2", "indentation", 2),
        ("a:\n    b: 1\n  c: 2", "indentation", 3),
        ("a: - b", "indentation", 1),
        ("- a\nb: c", "indentation", 2),
        ("a: 1\nb", "not-a-field", 2),
        ("\ta: 1", "tab", 1),
        ("a: 1\n---\nb: 2", "unsupported-yaml", 2),
        ("\n...", "unsupported-yaml", 2),
        ("a: 1\n...\nb: 2", "unsupported-yaml", 3),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!((error.rule.name(), error.line), (rule, line), "{text:?}: {}", error.message);
    }
}

#[test]
fn last_of_equal_keys_wins_and_is_reported() {
    let parsed = parse("a: 1\nb: {c: 1, c: 2}\na: 3").expect("valid");
    assert_eq!(parsed.value, json!({"a": 3, "b": {"c": 2}}));
    let lines: Vec<usize> = parsed.diagnostics.iter().map(|diagnostic| diagnostic.line).collect();
    assert_eq!(lines, [2, 3]);
    let many = parse(&"a: 1\n".repeat(1000)).expect("valid");
    assert_eq!(many.diagnostics.len(), limits::YAML_DIAGNOSTICS);
}

#[test]
fn keeps_how_top_level_values_were_written() {
    let parsed = parse("a: 1.10\nb: [x, y]\nc: text\nd: {e: 012}\nf: 1\nf: z").expect("valid");
    let written: Vec<(&str, &str)> =
        parsed.source_texts.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    assert_eq!(written, [("a", "1.10"), ("b", "[x, y]"), ("d", "{e: 012}")]);
}

#[test]
fn limits_nesting_and_keys() {
    let fits = format!("{}{}", "[".repeat(limits::YAML_DEPTH), "]".repeat(limits::YAML_DEPTH));
    assert!(parse(&fits).is_ok());
    let dashes = "- ".repeat(100_000);
    let mut steps = String::new();
    for depth in 0..200 {
        steps += &" ".repeat(depth);
        steps += "a:\n";
    }
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), dashes, steps] {
        assert_eq!(parse(&text).expect_err("too deep").rule, Rule::UnsupportedYaml);
        assert!(repair(&format!("a: 1\nb: {text}\nc: 2")).value.get("a").is_some());
    }
    assert_eq!(
        parse(&format!("{}: 1", "k".repeat(1025))).expect_err("long").rule,
        Rule::UnsupportedYaml
    );
}

#[test]
fn finds_control_characters() {
    assert_eq!(find_control_character("tab\t, é, 🎉, \u{feff}\u{2028}\r\n"), None);
    assert_eq!(find_control_character("a\nb\u{85}"), Some((2, '\u{85}')));
    assert_eq!(find_control_character("\0"), Some((1, '\0')));
}

#[test]
fn repairs_entry_by_entry() {
    for (text, expected) in [
        ("a: use when: x\nb: 1", json!({"a": "use when: x", "b": 1})),
        (
            "a: use when: x\n  and y\n\n  or z # all\nb: 1",
            json!({"a": "use when: x and y\nor z # all", "b": 1}),
        ),
        ("a: begun\nand gone on\n# remark\nb: 1", json!({"a": "begun and gone on", "b": 1})),
        ("a: @x\nb: *y*\nc: `z`", json!({"a": "@x", "b": "*y*", "c": "`z`"})),
        ("a: [x, y\nb: 1", json!({"a": "[x, y", "b": 1})),
        ("a: [x] [y]", json!({"a": "[x] [y]"})),
        ("a: \"no end\nb: 1", json!({"a": "no end", "b": 1})),
        ("a: \"say \"x\" now\"", json!({"a": "say \"x\" now"})),
        ("a: \"x\" and \"y\"", json!({"a": "\"x\" and \"y\""})),
        ("a: \"C:\\Users\"", json!({"a": "C:\\Users"})),
        ("a: > at once\n  folded", json!({"a": "at once folded"})),
        ("a:\tx\nb:\n\tc: 1", json!({"a": "x", "b": {"c": 1}})),
        ("a: |\n\tone\n\ttwo: x", json!({"a": "one\ntwo: x"})),
        ("a:\n  b: c: d\n  e:\n    - *f\n    - g\n", json!({"a": {"b": "c: d", "e": ["*f", "g"]}})),
        ("a: |\n  x\n\nb: |+\n  y\n\nc: d: e", json!({"a": "x\n", "b": "y\n\n", "c": "d: e"})),
        ("a: >\n  x\nstray\nb: 1", json!({"a": "x\n", "b": 1})),
        ("name:x\ndescription:y z", json!({"name": "x", "description": "y z"})),
        ("  a: b: c\n  d: 1", json!({"a": "b: c", "d": 1})),
        ("  a: b\n c: 1", json!({"a": "b", "c": 1})),
        ("my key: 1\nb: c: d", json!({"my key": 1, "b": "c: d"})),
        ("nothing here", json!(null)),
        ("- a\n- b: c: d", json!(null)),
    ] {
        let parsed = repair(text);
        assert_eq!(parsed.value, expected, "{text:?}");
        assert!(!parsed.diagnostics.is_empty() || parsed.value.is_null(), "{text:?}");
    }
}

/// As in `libyaml`, tabs are white space unless they indent.
#[test]
fn tabs_that_do_not_indent_are_kept() {
    for (text, expected) in [
        ("a: b\tc", json!({"a": "b\tc"})),
        ("a: b\tc\n  d\te\t", json!({"a": "b\tc d\te"})),
        ("r\tq:\tx", json!({"r\tq": "x"})),
        ("a\t: b\t#c", json!({"a": "b"})),
        ("a:\t\nb: 1\t", json!({"a": null, "b": 1})),
        ("a: [b,\tc\td]\t# e", json!({"a": ["b", "c\td"]})),
        ("a: {\tb\t:\tc\t}", json!({"a": {"b": "c"}})),
        ("a: \"x\ty\"\t# c", json!({"a": "x\ty"})),
        ("a: |\t\n  x\n  \ty", json!({"a": "x\n\ty"})),
        ("a:\n\tb: c\td", json!({"a": {"b": "c\td"}})),
        ("a: Use: b\tc", json!({"a": "Use: b\tc"})),
    ] {
        let parsed = parse(text).unwrap_or_else(|_| repair(text));
        assert_eq!(parsed.value, expected, "{text:?}");
        let rule = parsed.diagnostics.first().map(|diagnostic| diagnostic.rule);
        let is_reported = rule
            == Some(match text {
                _ if text.contains("Use") => Rule::UnquotedValue,
                _ if text.contains("\n\t") => Rule::Tab,
                _ => Rule::UnsupportedYaml,
            });
        assert!(is_reported, "{text:?} {rule:?}");
    }
    for text in ["\ta: b", "a:\n\tb: c", "a: b\n\tc", "a: >\n\tb", "a:\n- b\n\t- c"] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

/// Fields that are part of the value above by mistake, and lines that are part of it.
#[test]
fn indented_field_is_read_as_a_separate_field() {
    let table = [
        (
            "name: i\n description: Use when X",
            json!({"name": "i", "description": "Use when X"}),
            "2 indented-field",
        ),
        (
            "name: i\n\tdescription: Use",
            json!({"name": "i", "description": "Use"}),
            "2 indented-field",
        ),
        (
            "a: Fill: yes\n license: MIT\n  or so",
            json!({"a": "Fill: yes", "license": "MIT or so"}),
            "1 unquoted-value, 2 indented-field",
        ),
        (
            "a: 'b'\n  metadata:\n    x: y\n  description: |-\n    c",
            json!({"a": "b", "metadata": {"x": "y"}, "description": "c"}),
            "2 indented-field, 4 indented-field",
        ),
        ("a: |\n   b\n license: MIT", json!({"a": "b\n", "license": "MIT"}), "3 indented-field"),
        ("a:\n  b: c\n license:", json!({"a": {"b": "c"}, "license": null}), "3 indented-field"),
        ("a:\n - b\n  license: MIT", json!({"a": ["b"], "license": "MIT"}), "3 indented-field"),
        (
            "a: {b: c}\n license: MIT",
            json!({"a": {"b": "c"}, "license": "MIT"}),
            "2 indented-field",
        ),
        // Fields of the value above, or text.
        (
            "a:\n  b: c: d\n  license: MIT",
            json!({"a": {"b": "c: d", "license": "MIT"}}),
            "2 unquoted-value",
        ),
        (
            "a:\n - b: @c\n   license: MIT",
            json!({"a": ["b: @c license: MIT"]}),
            "2 unquoted-value, 3 indented-field",
        ),
        (
            "a: {b: c,\n license: MIT",
            json!({"a": "{b: c, license: MIT"}),
            "1 bad-flow, 2 indented-field",
        ),
        ("a: b\n note: c", json!({"a": "b note: c"}), "2 indented-field"),
        ("name: a\n name: b", json!({"name": "a name: b"}), "2 indented-field"),
        (
            "a: b: c\n license:MIT\n http://x",
            json!({"a": "b: c license:MIT http://x"}),
            "1 unquoted-value",
        ),
    ];
    for (text, expected, findings) in table {
        assert!(parse(text).is_err(), "{text:?}");
        let parsed = repair(text);
        assert_eq!(parsed.value, expected, "{text:?}");
        assert_eq!(lines_and_rules(&parsed.diagnostics), findings, "{text:?}");
    }
}

fn lines_and_rules(diagnostics: &[Diagnostic]) -> String {
    let found = diagnostics.iter().map(|it| format!("{} {}", it.line, it.rule.name()));
    found.collect::<Vec<_>>().join(", ")
}

#[test]
fn field_in_block_text_is_text() {
    let text = "a: >\n  x\n  license: MIT";
    assert!(parse(text).is_ok(), "no field: what is sound says what it says");
}

/// The values of the `yaml` package 2 for JavaScript, with which the MCP Inspector and the
/// protocol's conformance suite read frontmatter.
#[test]
fn core_schema_reads_plain_text_as_yaml_1_2() {
    let text = "a: yes\nb: on\non: off\nc: 012\nd: 1:30\ne: 1_000\nf: 0o17\ng: 0x1F\n\
                h: 1e3\ni: -1.50\nj: .5\nk: 1.\nl: true\nm: ~\nn: 2024-01-01\no: 1.2.3\n\
                p: +7\nq: 0b1\nr: 18446744073709551615\ns: -\nt: 1e\nv: 0x+1\nu: [no, False]\n";
    let expected = json!({
        "a": "yes", "b": "on", "on": "off", "c": 12, "d": "1:30", "e": "1_000", "f": 15, "g": 31,
        "h": 1000.0, "i": -1.5, "j": 0.5, "k": 1.0, "l": true, "m": null, "n": "2024-01-01",
        "o": "1.2.3", "p": 7, "q": "0b1", "r": u64::MAX, "s": "-", "t": "1e", "v": "0x+1", "u": ["no", false],
    });
    // A lone dash starts a list.
    let text = text.replace("s: -\n", "s: '-'\n");
    assert_eq!(parse_core(&text).unwrap().value, expected);
    assert_eq!(parse("on: yes").unwrap().value, json!({"true": true}));
}
