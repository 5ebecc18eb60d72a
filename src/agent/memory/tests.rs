//! Changes of the user's file: only the intended lines differ.

use std::fmt::Write as _;

use super::fact::normalize_content;
use super::facts::{FactChange, Facts, NewFact};

const DATE: &str = "2026-11-22";

fn new(content: &str) -> NewFact<'_> {
    NewFact { content, important: false, source: "s", time: DATE, replaced: None }
}

/// Adds a fact to a file.
#[track_caller]
fn with_fact(file: &[u8], content: &str) -> (FactChange, Vec<u8>) {
    Facts::parse(file.to_vec()).unwrap().with_fact(&new(content)).unwrap()
}

/// The removed and the added lines, as in `diff`.
fn differences<'t>(old: &'t [u8], new: &'t [u8]) -> (Vec<&'t [u8]>, Vec<&'t [u8]>) {
    let lines = |text: &'t [u8]| text.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
    let (mut removed, mut added) = (lines(old), lines(new));
    // The longest common subsequence.
    let mut common = vec![vec![0; added.len() + 1]; removed.len() + 1];
    for i in (0..removed.len()).rev() {
        for j in (0..added.len()).rev() {
            common[i][j] = if removed[i] == added[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < removed.len() && j < added.len() {
        if removed[i] == added[j] {
            (removed[i], added[j]) = (b"", b"");
            (i, j) = (i + 1, j + 1);
        } else if common[i + 1][j] >= common[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    removed.retain(|line| !line.is_empty());
    added.retain(|line| !line.is_empty());
    (removed, added)
}

const HAND: &str = "\u{feff}---
# my own
owner: me
type: \"memory\"  # of this house
modified: 2020-01-02 # by hand
created: 2020-01-01
---
Some words.

## Plans

- [2020-01-01] no fact: another section

# Key Facts #

## IMPORTANT ##
Words in front.

* the user has an allergy to nuts
+ [2021-05-05] the house number is 7 <!-- mine, not yours -->

### Of the house

- the door is green and old
  and needs paint
- the roof
  - is red

```
some code
```

| a | b |
|---|---|
| - | c |

<!--
words
-->

##  recent
- [2022-02-02] the user likes tea with milk <!-- source: old -->
- [ ] a task of a person

# Other

- below a heading of the first level

## Recent

- [2023-03-03] twice  the section
";

/// With every kind of line break.
#[test]
fn a_hand_edited_file_changes_only_where_it_is_meant() {
    for end in ["\n", "\r\n"] {
        let mut file = HAND.replace('\n', end).into_bytes();
        // A line that is not text, and no line break at the end.
        file.extend_from_slice(b"- \xff\xfe no text");
        let facts = Facts::parse(file.clone()).unwrap();
        let contents: Vec<&str> = facts.all().iter().map(|fact| fact.content.as_str()).collect();
        assert_eq!(
            contents,
            [
                "the user has an allergy to nuts",
                "the house number is 7",
                "the door is green and old",
                "the roof",
                "is red",
                "the user likes tea with milk",
                "[ ] a task of a person",
                "twice the section",
            ],
            "{end:?}"
        );
        let (change, done) = with_fact(&file, "the cat is called Tom");
        assert_eq!(change, FactChange::Added);
        let (removed, added) = differences(&file, &done);
        let line = |text: &str| format!("{text}{end}").into_bytes();
        assert_eq!(removed, [line("modified: 2020-01-02 # by hand")]);
        let cat = line("- [2026-11-22] the cat is called Tom <!-- source: s -->");
        assert_eq!(added, [line("modified: 2026-11-22 # by hand"), cat]);

        let (change, done) = with_fact(&file, "the user likes tea with honey and milk");
        let FactChange::Replaced(old) = change else { panic!("{change:?}") };
        assert_eq!(old.content, "the user likes tea with milk");
        let (removed, added) = differences(&file, &done);
        assert_eq!(
            removed[1],
            line("- [2022-02-02] the user likes tea with milk <!-- source: old -->")
        );
        assert_eq!(
            added[1],
            line("- [2022-02-02] the user likes tea with honey and milk <!-- source: s -->")
        );
        assert_eq!((removed.len(), added.len()), (2, 2));

        // A fact in the user's own form is not replaced.
        for text in ["the house number is 7 now", "twice the section now"] {
            assert_eq!(with_fact(&file, text).0, FactChange::Added, "{text}");
        }
        // An important fact stays important and in its place.
        let (_, done) = with_fact(&file, "the user has an allergy to all nuts");
        let (_, added) = differences(&file, &done);
        assert_eq!(
            added[1],
            line("* the user has an allergy to all nuts #important <!-- source: s -->")
        );

        let (fact, done) = facts.without_fact(3, DATE).unwrap();
        assert_eq!(fact.line, 24);
        let (removed, added) = differences(&file, &done);
        assert_eq!((removed.len(), added.len()), (2, 1), "{:?}", String::from_utf8_lossy(&done));
    }
}

#[test]
fn a_fact_becomes_important_once_and_stays_so() {
    let (_, file) = with_fact(b"", "the user likes tea");
    let text = String::from_utf8(file.clone()).unwrap();
    assert_eq!(
        text,
        "---\ntype: memory\ncreated: 2026-11-22\nmodified: 2026-11-22\n---\n\n# Key Facts\n\n## Important\n\n## Recent\n\n- [2026-11-22] the user likes tea <!-- source: s -->\n"
    );
    assert_eq!(with_fact(&file, "the user likes tea"), (FactChange::Known, file.clone()));
    let later =
        NewFact { important: true, source: "t", time: "2027-01-01", ..new("the user likes tea") };
    let (change, file) = Facts::parse(file).unwrap().with_fact(&later).unwrap();
    assert!(matches!(change, FactChange::Replaced(_)));
    let text = String::from_utf8(file.clone()).unwrap();
    assert!(text.contains("## Important\n\n- the user likes tea #important <!-- 2026-11-22, source: t -->\n\n## Recent\n"), "{text}");
    assert!(text.contains("modified: 2027-01-01"));
    // The same fact from another conversation: the source is updated.
    let (change, file) = with_fact(&file, "the user likes tea");
    assert!(matches!(change, FactChange::Replaced(_)));
    assert_eq!(with_fact(&file, "the user likes tea").0, FactChange::Known);
    let (_, file) = with_fact(&file, "the user likes the tea");
    let facts = Facts::parse(file).unwrap();
    let fact = &facts.all()[0];
    assert_eq!(
        (fact.content.as_str(), fact.important),
        ("the user likes the tea #important", true)
    );
    assert_eq!((fact.created.as_deref(), fact.source.as_deref()), (Some(DATE), Some("s")));
    assert_eq!(fact.tags(), ["important"]);
}

#[test]
fn nothing_in_a_fact_breaks_out_of_its_line() {
    for text in [
        "x --> y <!-- z",
        "a\r\n## Recent\n- b",
        "[2020-01-01] c",
        "- d",
        "```",
        "# e",
        "\u{1b}[31mf\u{7}",
        "g\u{2028}h\u{85}i",
        "---",
        "[ ] j",
    ] {
        for important in [false, true] {
            let clean = normalize_content(text);
            let fact = NewFact { important, source: "n --> <!-- \n## x", ..new(&clean) };
            let (_, file) = Facts::parse(Vec::new()).unwrap().with_fact(&fact).unwrap();
            let (_, file) = Facts::parse(file)
                .unwrap()
                .with_fact(&NewFact { important, ..new("something else") })
                .unwrap();
            let facts = Facts::parse(file.clone()).unwrap();
            let text = String::from_utf8(file).unwrap();
            let tag = if important { " #important" } else { "" };
            let contents: Vec<String> =
                facts.all().iter().map(|fact| fact.content.clone()).collect();
            assert_eq!(
                contents,
                [format!("{clean}{tag}"), format!("something else{tag}")],
                "{text}"
            );
            let fact = &facts.all()[0];
            assert_eq!(fact.created.as_deref(), Some(DATE), "{text}");
            assert_eq!(fact.source.as_deref(), Some("n -- !-- ## x"), "{text}");
        }
    }
    assert_eq!(normalize_content(" \n\t\u{0} "), "\u{fffd}");
    assert_eq!(normalize_content(" \n\t "), "");
}

/// Missing sections, and positions where a line would get another meaning.
#[test]
fn a_missing_section_is_added_where_it_belongs() {
    const FRONT: &str = "---\ntype: memory\nmodified: 2026-11-22\n---\n";
    let line = "- [2026-11-22] f <!-- source: s -->\n";
    let important = "- f #important <!-- 2026-11-22, source: s -->\n";
    let table = [
        ("", false, format!("\n## Recent\n\n{line}")),
        ("# Title", false, format!("# Title\n\n## Recent\n\n{line}")),
        (
            "## Important\n- a\n## Other\n",
            false,
            format!("## Important\n- a\n## Other\n\n## Recent\n\n{line}"),
        ),
        ("## Recent\n- a\n", true, format!("\n## Important\n\n{important}\n## Recent\n- a\n")),
        ("## Recent\n- a\n~~~\n- b\n", false, format!("## Recent\n- a\n~~~\n- b\n{line}")),
        ("## Recent\n## Other\n", false, format!("## Recent\n\n{line}\n## Other\n")),
        (
            "## Recent\n- a\n  ```\n  x\n\n## Other\n",
            false,
            format!("## Recent\n- a\n  ```\n  x\n\n{line}\n## Other\n"),
        ),
        (
            "## Recent\n\nSaid.\n\n### Sub\n\n- a\n",
            false,
            format!("## Recent\n\nSaid.\n\n### Sub\n\n- a\n{line}"),
        ),
        (
            "## Recent\n- a\n  wrapped\n\n  indented\n",
            false,
            format!("## Recent\n- a\n  wrapped\n\n  indented\n\n{line}"),
        ),
        (
            "## Recent\n- a\nwrapped\n***\nb\n",
            false,
            format!("## Recent\n- a\nwrapped\n***\nb\n\n{line}"),
        ),
        (
            "## Recent\n   - a\n\n  words\n",
            false,
            format!("## Recent\n   - a\n\n  words\n\n{line}"),
        ),
        (
            "## Recent\n```\n- a\n  ```\n1. b",
            false,
            format!("## Recent\n```\n- a\n  ```\n1. b\n{line}"),
        ),
    ];
    for (body, is_important, expected) in table {
        let file = format!("{FRONT}{body}");
        let facts = Facts::parse(file.clone().into_bytes()).unwrap();
        let (_, done) = facts.with_fact(&NewFact { important: is_important, ..new("f") }).unwrap();
        assert_eq!(
            String::from_utf8(done.clone()).unwrap(),
            format!("{FRONT}{expected}"),
            "{body:?}"
        );
        let again = Facts::parse(done).unwrap();
        assert!(again.all().iter().any(|fact| fact.content.starts_with('f')), "{body:?}");
    }
    let (_, done) = with_fact(b"---\ntype: memory\n---\n## Recent\n", "f");
    let done = String::from_utf8(done).unwrap();
    assert!(done.starts_with("---\ntype: memory\nmodified: 2026-11-22\n---\n"), "{done}");
}

#[test]
fn other_files_are_refused() {
    for foreign in [
        "# Shopping\n",
        "---\ntype: note\n---\n## Recent\n",
        "---\ntype: memory\n",
        "x",
        "---\n--- type: memory\n",
    ] {
        assert!(Facts::parse(foreign.into()).is_err(), "{foreign}");
    }
    for empty in ["", "\n \n", "\u{feff}"] {
        assert!(Facts::parse(empty.into()).unwrap().all().is_empty());
    }
}

#[test]
fn the_prompt_has_important_facts_and_the_newest_within_its_budget() {
    let mut file = String::from("---\ntype: memory\n---\n## Recent\n");
    for day in 10..30 {
        let _ = writeln!(file, "- [2026-10-{day}] fact of day {day}");
    }
    file.push_str("- of no day\n## Important\n- one of weight\n");
    let facts = Facts::parse(file.into()).unwrap();
    let all = facts.for_prompt(10_000);
    assert!(
        all.starts_with("- one of weight\n- [2026-10-29] fact of day 29\n- [2026-10-28]"),
        "{all}"
    );
    assert!(all.ends_with("day 10\n- of no day\n"), "{all}");
    let few = facts.for_prompt(90);
    assert_eq!(
        few,
        "- one of weight\n- [2026-10-29] fact of day 29\n- [2026-10-28] fact of day 28\n… and 19 more facts\n"
    );
    assert_eq!(Facts::parse(Vec::new()).unwrap().for_prompt(90), "");
    // Many important facts leave space for the newest other ones.
    let mut file = String::from("---\ntype: memory\n---\n## Important\n");
    for day in 10..30 {
        let _ = writeln!(file, "- weighty {day} <!-- 2026-10-{day}, source: s -->");
    }
    file.push_str("- ");
    file.push_str(&"long ".repeat(90));
    file.push_str("\n## Recent\n- [2026-10-01] light\n");
    let contents = Facts::parse(file.into()).unwrap().for_prompt(100);
    assert_eq!(
        contents,
        "- [2026-10-29] weighty 29\n- [2026-10-28] weighty 28\n- [2026-10-27] weighty 27\n- [2026-10-01] light\n… and 18 more facts\n"
    );
}

#[test]
fn each_line_of_a_list_is_a_fact_and_no_other() {
    let table: [(&str, &[&str]); 6] = [
        ("- a\nb\n  c\n\n  d\n", &["a"]),
        ("- a\n#tag\n### b\n> - c\n", &["a"]),
        ("- a\n-\nb\n* \n", &["a"]),
        ("- a\n***\n---\n- **b**\n-c\n", &["a", "**b**"]),
        ("1. a\n2) b\n10.5 c\n3 d\n", &["a", "b"]),
        ("  - a\n\t- b\n    * c\n + d\n", &["a", "b", "c", "d"]),
    ];
    for (body, expected) in table {
        let file = format!("---\ntype: memory\nmodified: {DATE}\n---\n## Recent\n{body}");
        let facts = Facts::parse(file.clone().into_bytes()).unwrap();
        let contents: Vec<&str> = facts.all().iter().map(|fact| fact.content.as_str()).collect();
        assert_eq!(contents, expected, "{body:?}");
        // A new fact and a removed one leave all other lines as they are.
        let (_, done) = with_fact(file.as_bytes(), "new words");
        let (removed, added) = differences(file.as_bytes(), &done);
        let added = added.into_iter().filter(|line| !line.trim_ascii().is_empty()).count();
        assert_eq!((removed.len(), added), (0, 1), "{body:?}");
        for number in 1..=expected.len() {
            let (fact, done) = facts.without_fact(number, DATE).unwrap();
            let line = file.split_inclusive('\n').nth(fact.line - 1).unwrap();
            let (removed, added) = differences(file.as_bytes(), &done);
            assert_eq!((removed, added.len()), (vec![line.as_bytes()], 0), "{body:?}");
        }
    }
}
