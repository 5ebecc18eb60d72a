//! Tests of the frontmatter: its place, its fields, its problems.

use serde_json::json;

use super::*;
use host::clock::thread_time;

/// Each finding as `line rule`, with `lost` where a value is.
fn findings(front: &Frontmatter) -> Vec<String> {
    let show = |diagnostic: &Diagnostic| {
        let lost = if diagnostic.is_lost { " lost" } else { "" };
        format!("{} {}{lost}", diagnostic.line, diagnostic.rule.name())
    };
    front.diagnostics.iter().map(show).collect()
}

#[test]
fn reads_fields_and_finds_the_body() {
    for document in [
        "---\nname: a\ndescription: >\n  b\n  c\n---\nBody",
        "\u{feff}---\r\nname: a\r\ndescription: |-\r\n  b c\r\n--- \r\nBody",
        "---\nname: 'a'\ndescription: \"b\n  c\"\n---\nBody",
    ] {
        let front = parse(document);
        assert_eq!(findings(&front), [""; 0], "{document:?}");
        assert_eq!(front.name().as_deref(), Some("a"));
        assert_eq!(front.description().as_deref(), Some("b c"));
        assert_eq!(&document[front.body_start..], "Body");
    }
}

#[test]
fn missing_fields_have_their_own_messages() {
    let messages = |document: &str| -> Vec<String> {
        parse(document).diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect()
    };
    let missing = ["missing field 'name'", "missing field 'description'"];
    assert_eq!(messages("---\n---\n"), missing);
    assert_eq!(messages("---\nname: ''\ndescription:\n---\n"), missing);
    assert_eq!(messages("---\ndescription: x\n---"), missing[..1]);
    for document in [
        "",
        "# Title\n",
        "---",
        "---\n",
        "---\n- a\n---\n",
        "--- \nProse\n\n---\n",
        "----\na: b\n----\n",
    ] {
        let front = parse(document);
        assert_eq!(front.diagnostics[0].message, "no valid frontmatter", "{document:?}");
        assert_eq!((front.fields.len(), front.body_start), (0, 0));
    }
}

#[test]
fn reads_fields_of_other_types_as_text() {
    let front = parse(
        "---\nname: 3000\ndescription: [one, two]\nversion: 1.10\nargument-hint: [x] \non: yes\n---\n",
    );
    assert_eq!(front.name().as_deref(), Some("3000"));
    assert_eq!(front.description().as_deref(), Some("one, two"));
    assert_eq!(front.text("version").as_deref(), Some("1.10"));
    assert_eq!(front.fields["version"], json!(1.1));
    assert_eq!(front.text("true").as_deref(), Some("yes"));
    assert_eq!(front.text("argument-hint"), None);
    assert_eq!(front.as_written("argument-hint").as_deref(), Some("[x]"));
    assert_eq!(findings(&front), ["2 field-type", "3 field-type"]);
}

/// No text that was written in brackets or as a list is lost.
#[test]
fn reads_lists_as_prose() {
    for (list, expected) in [
        (
            " [Merge PDFs, split PDFs, and rotate. Use when X]",
            "Merge PDFs, split PDFs, and rotate. Use when X",
        ),
        (" [ one ,two, ] # note", "one ,two"),
        (" [Fill forms: yes, 1.10, no]", "Fill forms: yes, 1.10, no"),
        (" [\"a, b\", 'c.', d]", "a, b, c. d"),
        (" [one,\n  two]", "one, two"),
        (" [one, {two: 2}]", "one"),
        ("\n- Does this.\n- 'Use: now'\n- or then", "Does this. Use: now, or then"),
    ] {
        let front = parse(&format!("---\nname: a\ndescription:{list}\n---\n"));
        assert_eq!(front.description().as_deref(), Some(expected), "{list}");
    }
    for list in ["[]", "[ ]", "[[a]]"] {
        let front = parse(&format!("---\nname: a\ndescription: {list}\n---\n"));
        assert_eq!(front.description(), None, "{list}");
    }
}

#[test]
fn repairs_are_reported_with_lines() {
    let front = parse("---\nname: a\ndescription: Use when: x\nlicense: @y\n---\nBody");
    assert_eq!(front.description().as_deref(), Some("Use when: x"));
    assert_eq!(front.text("license").as_deref(), Some("@y"));
    assert_eq!(findings(&front), ["3 unquoted-value", "4 unquoted-value"]);
    let lost = parse("---\nname: a\ndescription: b\ntags: ''x'\n stray\n...\n---\n");
    assert_eq!(lost.name().as_deref(), Some("a"));
    let none = parse("---\n{a}\n--\n\tdescription: b\n---\n");
    assert!(none.diagnostics.is_sorted_by_key(|diagnostic| diagnostic.line), "{none:?}");
    let odd = parse("---\nname: a\ndescription: b\u{7}c\n---\n");
    assert_eq!(findings(&odd), ["3 control-character"]);
}

#[test]
fn finds_frontmatter_in_a_code_fence() {
    let document = "```markdown\n---\nname: a\ndescription: b\n---\nBody\n```\n";
    let front = parse(document);
    assert_eq!(findings(&front), ["1 late-frontmatter"]);
    assert_eq!(front.description().as_deref(), Some("b"));
    assert_eq!(&document[front.body_start..], "Body\n```\n");
    for document in ["```\n---\nprose\n---\n", "text\n---\nname: a\n---\n", "```\n"] {
        assert_eq!(parse(document).diagnostics[0].rule, Rule::NoFrontmatter);
    }
}

/// A comment of any length is skipped, and what follows is frontmatter only by its form.
#[test]
fn finds_frontmatter_below_comments_and_titles() {
    let fields = "---\nname: a\ndescription: b: c\ndisable-model-invocation: true\n---\nBody";
    let long = format!("<!--\n{}-->\n", "Permission is granted.\n".repeat(500));
    for above in [
        "<!-- generated -->\n",
        "<!-- one --> <!-- two -->\r\n\r\n",
        "<!--\n# a note\n---\nname: x\n---\n-->\n",
        "\u{feff}<!-- x -->\n\u{feff}",
        "<!-- x -->\n\n\u{feff}\n",
        "<!-- x -->",
        "# SPDX-License-Identifier: MIT\n#\n",
        "// Copyright\n//\n\n",
        "# Title\n\n",
        "\n\nTitle\n=====\n\n",
        &long,
    ] {
        let document = format!("{above}{fields}");
        let front = parse(&document);
        assert_eq!(front.description().as_deref(), Some("b: c"), "{above:?}");
        assert_eq!(front.fields["disable-model-invocation"], json!(true));
        assert_eq!(&document[front.body_start..], "Body");
        assert_eq!(findings(&front)[0], "1 late-frontmatter", "{above:?}");
        for length in 0..=document.len() {
            let head = parse_head(&document.as_bytes()[..length], false);
            let is_closed = length >= front.body_start;
            assert_eq!(head.is_some(), is_closed, "{above:?} {length}");
            assert!(head.is_none_or(|head| head.fields == front.fields));
        }
    }
    let latin =
        parse_head(b"<!-- \xa9 -->\n---\n\nname: a\ndescription: b\n---\n", true).expect("whole");
    assert_eq!(latin.name().as_deref(), Some("a"));
    assert!(findings(&latin).contains(&"1 not-utf8 lost".to_owned()), "{latin:?}");
    let front = parse("<!-- (c) -->\n---\ndescription: b\ndisable-model-invocation: true\n---\n");
    assert_eq!(front.fields["disable-model-invocation"], true);
}

#[test]
fn rules_in_a_body_are_no_frontmatter() {
    for document in [
        "# Title\n\n---\n\nText\n\n---\n",
        "# Title\n\n---\n\nname: the user's\n\n---\n",
        "# Title\n---\nname: a\n",
        "# Title\n---\nNote: b\n---\nname: a\n",
        "# Title\n---\n# Names\n---\n",
        "# Title\n\n---\ndescription: of this part, below\n---\n",
        "# Title\n\n---\nname: a\nversion: 1\n---\n",
        "# Title\n\n---\n# Request\nname: a\ndescription: b\n---\n",
        "# Title\nSkills begin so:\n---\nname: a\n---\n",
        "# Title\n```\n---\nname: a\n---\n```\n",
        "Title\n-----\n---\nname: a\n---\n",
        "<!-- open\n---\nname: a\n---\n",
        "<!-- -->\n- item\n---\nname: a\n---\n",
        "/\n---\nname: a\n---\n",
    ] {
        let front = parse(document);
        assert_eq!(findings(&front), ["1 no-frontmatter lost"], "{document:?}");
        assert_eq!(front.body_start, 0);
    }
}

#[test]
fn finds_a_missing_end() {
    for (document, body) in [
        ("---\nname: a\ndescription: b\n\n# Title\n\nText", "\n# Title\n\nText"),
        ("---\nname: a\ndescription: b\n", ""),
        ("---\nname: a\ndescription: b---\n# Title\nText", "# Title\nText"),
        ("---\nname: a\ndescription: b---\n\nText\n\n---\nMore", "\nText\n\n---\nMore"),
        (
            "---\nname: a\ndescription: b\n\nText goes on\n\n---\nMore",
            "\nText goes on\n\n---\nMore",
        ),
        ("---\nname: a\ndescription: b\n...\nText", "Text"),
        ("\n\n---\nname: a\ndescription: b\n---\nText", "Text"),
    ] {
        let front = parse(document);
        assert_eq!(front.description().as_deref(), Some("b"), "{document:?}");
        assert_eq!(&document[front.body_start..], body);
        let found = findings(&front);
        assert!(found.len() == 1 && !found[0].contains("lost"), "{document:?}: {found:?}");
    }
}

/// The start of a file is enough once it holds the frontmatter.
#[test]
fn reads_heads() {
    let document = "---\nname: a\ndescription: é\n---\nBody é".as_bytes();
    let closed_at = document.len() - "Body é".len();
    for length in 0..=document.len() {
        let front = parse_head(&document[..length], false);
        assert_eq!(front.is_some(), length >= closed_at, "{length}");
        assert!(front.is_none_or(|front| front.body_start == closed_at));
        assert!(parse_head(&document[..length], true).is_some());
    }
    let plain = parse_head(b"Text\nText\n", false).expect("no frontmatter can follow");
    assert_eq!(findings(&plain), ["1 no-frontmatter lost"]);
}

#[test]
fn reads_heads_that_are_not_utf8() {
    let front = parse_head(b"---\nname: a\ndescription: \xff b\n---\n", false).expect("closed");
    assert_eq!(front.description().as_deref(), Some("\u{fffd} b"));
    assert_eq!(findings(&front), ["3 not-utf8 lost"]);
    assert!(parse_head(b"---\nname: \xff", false).is_none());
    let body = parse_head(b"---\nname: a\ndescription: b\n---\n\xff", true).expect("whole");
    assert_eq!(findings(&body), [""; 0]);
}

#[test]
fn gives_the_first_line_of_text() {
    for (body, expected) in [
        ("\n\n## Title ##\nText", Some("Title")),
        ("---\n\n<!-- note\nmore -->\n```sh\nText here  ", Some("Text here")),
        ("#\n> quoted", Some("quoted")),
        ("- item", Some("- item")),
        (" \n---\n", None),
        ("", None),
    ] {
        assert_eq!(first_line_of_text(body), expected, "{body:?}");
    }
}

#[test]
fn hostile_documents_are_read_in_linear_time() {
    let size = 1 << 17;
    for piece in [
        "[",
        "{a: ",
        "- ",
        "a: b: c\n",
        "a: \"\n",
        "\ta:\tb\n",
        "x\n",
        "a: [\n",
        " \n",
        "---\n",
        "#\n",
        "a: b---\n",
    ] {
        let text = format!("---\na: {}", piece.repeat(size / piece.len()));
        let start = thread_time();
        let front = parse(&text);
        assert!(!front.diagnostics.is_empty());
        // A reader that is not linear would need minutes.
        assert!(thread_time().saturating_sub(start).as_secs() < 10, "{piece:?}");
    }
}
