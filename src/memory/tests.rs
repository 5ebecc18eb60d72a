//! What becomes of a person's file: only the lines that are meant differ.

use std::fmt::Write as _;

use super::facts::{FactChange, Facts, NewFact, content};

const DATE: &str = "2026-11-22";

fn new(content: &str) -> NewFact<'_> {
    NewFact { content, important: false, source: "s", time: DATE, replaced: None }
}

/// The file with a fact in it, and what became of that.
#[track_caller]
fn with(file: &[u8], content: &str) -> (FactChange, Vec<u8>) {
    Facts::parse(file.to_vec()).unwrap().with(&new(content)).unwrap()
}

/// The lines that are there only before, and only after, as `diff` has them.
fn differences<'t>(old: &'t [u8], new: &'t [u8]) -> (Vec<&'t [u8]>, Vec<&'t [u8]>) {
    let lines = |text: &'t [u8]| text.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
    let (mut gone, mut come) = (lines(old), lines(new));
    // The longest common subsequence.
    let mut common = vec![vec![0; come.len() + 1]; gone.len() + 1];
    for i in (0..gone.len()).rev() {
        for j in (0..come.len()).rev() {
            common[i][j] = if gone[i] == come[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < gone.len() && j < come.len() {
        if gone[i] == come[j] {
            (gone[i], come[j]) = (b"", b"");
            (i, j) = (i + 1, j + 1);
        } else if common[i + 1][j] >= common[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    gone.retain(|line| !line.is_empty());
    come.retain(|line| !line.is_empty());
    (gone, come)
}

const HAND: &str = "\u{feff}---
# my own
owner: me
type: \"memory\"  # of this house
modified: '2020-01-02' # by hand
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
## Recent
- not a fact
```

| a | b |
|---|---|
| - | c |

<!--
## Recent
- neither
-->

##  recent
- [2022-02-02] the user likes tea with milk <!-- source: old -->
- [ ] a task of a person
1. a numbered line

Important
---------

- below a heading of another kind

## Recent

- [2023-03-03] twice  the section
";

/// R-FACT-5, with every kind of line break.
#[test]
fn a_hand_edited_file_changes_only_where_it_is_meant() {
    for end in ["\n", "\r\n"] {
        let mut file = HAND.replace('\n', end).into_bytes();
        // Lines that are no text, and no line break at the end.
        file.extend_from_slice(b"- \xff\xfe no text");
        let facts = Facts::parse(file.clone()).unwrap();
        let told: Vec<&str> = facts.all().iter().map(|fact| fact.content.as_str()).collect();
        assert_eq!(
            told,
            [
                "the user has an allergy to nuts",
                "the house number is 7",
                "the door is green and old and needs paint",
                "the roof - is red",
                "the user likes tea with milk",
                "[ ] a task of a person",
                "a numbered line",
                "twice the section",
            ],
            "{end:?}"
        );
        let (change, done) = with(&file, "the cat is called Tom");
        assert_eq!(change, FactChange::Added);
        let (gone, come) = differences(&file, &done);
        let line = |text: &str| format!("{text}{end}").into_bytes();
        assert_eq!(gone, [line("modified: '2020-01-02' # by hand")]);
        let added = line("- [2026-11-22] the cat is called Tom <!-- source: s -->");
        assert_eq!(come, [line("modified: '2026-11-22' # by hand"), added]);

        let (change, done) = with(&file, "the user likes tea with honey and milk");
        let FactChange::Replaced(old) = change else { panic!("{change:?}") };
        assert_eq!(old.content, "the user likes tea with milk");
        let (gone, come) = differences(&file, &done);
        assert_eq!(
            gone[1],
            line("- [2022-02-02] the user likes tea with milk <!-- source: old -->")
        );
        assert_eq!(
            come[1],
            line("- [2022-02-02] the user likes tea with honey and milk <!-- source: s -->")
        );
        assert_eq!((gone.len(), come.len()), (2, 2));

        // What a person wrote in a form of their own is not replaced.
        for text in [
            "the house number is 7 now",
            "the door is green and old and needs paint soon",
            "twice the sections",
        ] {
            assert_eq!(with(&file, text).0, FactChange::Added, "{text}");
        }
        // An important one stays one, with its mark and its place.
        let (_, done) = with(&file, "the user has an allergy to all nuts");
        let (_, come) = differences(&file, &done);
        assert_eq!(
            come[1],
            line("* the user has an allergy to all nuts #important <!-- source: s -->")
        );

        let (fact, done) = facts.without(3, DATE).unwrap();
        assert_eq!(fact.line, 24);
        let (gone, come) = differences(&file, &done);
        assert_eq!((gone.len(), come.len()), (3, 1), "{:?}", String::from_utf8_lossy(&done));
    }
}

#[test]
fn a_fact_becomes_important_once_and_stays_so() {
    let (_, file) = with(b"", "the user likes tea");
    let text = String::from_utf8(file.clone()).unwrap();
    assert_eq!(
        text,
        "---\ntype: memory\ncreated: 2026-11-22\nmodified: 2026-11-22\n---\n\n# Key Facts\n\n## Important\n\n## Recent\n\n- [2026-11-22] the user likes tea <!-- source: s -->\n"
    );
    assert_eq!(with(&file, "the user likes tea"), (FactChange::Known, file.clone()));
    let later =
        NewFact { important: true, source: "t", time: "2027-01-01", ..new("the user likes tea") };
    let (change, file) = Facts::parse(file).unwrap().with(&later).unwrap();
    assert!(matches!(change, FactChange::Replaced(_)));
    let text = String::from_utf8(file.clone()).unwrap();
    assert!(text.contains("## Important\n\n- the user likes tea #important <!-- 2026-11-22, source: t -->\n\n## Recent\n"), "{text}");
    assert!(text.contains("modified: 2027-01-01"));
    // The same from another conversation: that one is its source now.
    let (change, file) = with(&file, "the user likes tea");
    assert!(matches!(change, FactChange::Replaced(_)));
    assert_eq!(with(&file, "the user likes tea").0, FactChange::Known);
    let (_, file) = with(&file, "the user likes the tea");
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
            let clean = content(text);
            let fact = NewFact { important, source: "n --> <!-- \n## x", ..new(&clean) };
            let (_, file) = Facts::parse(Vec::new()).unwrap().with(&fact).unwrap();
            let (_, file) = Facts::parse(file)
                .unwrap()
                .with(&NewFact { important, ..new("something else") })
                .unwrap();
            let facts = Facts::parse(file.clone()).unwrap();
            let text = String::from_utf8(file).unwrap();
            let tag = if important { " #important" } else { "" };
            let told: Vec<String> = facts.all().iter().map(|fact| fact.content.clone()).collect();
            assert_eq!(told, [format!("{clean}{tag}"), format!("something else{tag}")], "{text}");
            let fact = &facts.all()[0];
            assert_eq!(fact.created.as_deref(), Some(DATE), "{text}");
            assert_eq!(fact.source.as_deref(), Some("n -- !-- ## x"), "{text}");
        }
    }
    assert_eq!(content(" \n\t\u{0} "), "\u{fffd}");
    assert_eq!(content(" \n\t "), "");
}

/// Missing sections, and places where a line would not be what it is meant to be.
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
            format!("## Important\n- a\n\n## Recent\n\n{line}\n## Other\n"),
        ),
        ("## Recent\n- a\n", true, format!("\n## Important\n\n{important}\n## Recent\n- a\n")),
        (
            "words\n```\n## Recent\n",
            false,
            format!("words\n\n## Recent\n\n{line}\n```\n## Recent\n"),
        ),
        ("## Recent\n- a\n~~~\n- b\n", false, format!("## Recent\n- a\n{line}~~~\n- b\n")),
        ("## Recent\n## Other\n", false, format!("## Recent\n\n{line}\n## Other\n")),
        (
            "## Recent\n- a\n  ```\n  x\n\n## Other\n",
            false,
            format!("## Recent\n- a\n  ```\n  x\n{line}\n## Other\n"),
        ),
        (
            "## Recent\n\nSaid.\n\n### Sub\n\n- a\n",
            false,
            format!("## Recent\n\nSaid.\n\n{line}\n### Sub\n\n- a\n"),
        ),
    ];
    for (body, is_important, expected) in table {
        let file = format!("{FRONT}{body}");
        let facts = Facts::parse(file.clone().into_bytes()).unwrap();
        let (_, done) = facts.with(&NewFact { important: is_important, ..new("f") }).unwrap();
        assert_eq!(
            String::from_utf8(done.clone()).unwrap(),
            format!("{FRONT}{expected}"),
            "{body:?}"
        );
        let again = Facts::parse(done).unwrap();
        assert!(again.all().iter().any(|fact| fact.content.starts_with('f')), "{body:?}");
    }
    let (_, done) = with(b"---\ntype: memory\n---\n## Recent\n", "f");
    let done = String::from_utf8(done).unwrap();
    assert!(done.starts_with("---\ntype: memory\nmodified: 2026-11-22\n---\n"), "{done}");
}

#[test]
fn a_file_of_somebody_elses_is_none_of_ours() {
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

/// R-FACT-4.
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
    // Many important ones leave room for the newest, and are the newest themselves.
    let mut file = String::from("---\ntype: memory\n---\n## Important\n");
    for day in 10..30 {
        let _ = writeln!(file, "- weighty {day} <!-- 2026-10-{day}, source: s -->");
    }
    file.push_str("- ");
    file.push_str(&"long ".repeat(90));
    file.push_str("\n## Recent\n- [2026-10-01] light\n");
    let told = Facts::parse(file.into()).unwrap().for_prompt(100);
    assert_eq!(
        told,
        "- [2026-10-29] weighty 29\n- [2026-10-28] weighty 28\n- [2026-10-27] weighty 27\n- [2026-10-01] light\n… and 18 more facts\n"
    );
}

/// What is indented below an item belongs to it: no fact is put in front of that.
#[test]
fn no_new_fact_swallows_what_a_person_wrote() {
    const FRONT: &str = "---\ntype: memory\nmodified: 2026-11-22\n---\n";
    let facts = "- [2026-01-01] mine one\n- [2026-01-02] other two\n";
    let important = "- giraffe neck #important <!-- 2026-11-22, source: s -->\n";
    let recent = "- [2026-11-22] giraffe neck <!-- source: s -->\n";
    let at_end = |old: &str, name: &str, line: &str| format!("{old}\n## {name}\n\n{line}");
    let indented = format!("\n  ## Recent\n\n{facts}");
    let both = format!("## Important\n{indented}");
    let html = "## Recent\n- wrapped fact\n  second line\n<div>\n## Recent\n</div>\n";
    let raw = "## Recent\n- a fact\n<PRE>\n\n## Important\n</pre>\n";
    let table = [
        (&*indented, true, at_end(&indented, "Important", important)),
        (&both, true, at_end(&both, "Important", important)),
        (&both, false, format!("{both}{recent}")),
        (
            "## Recent\n\n  words\n\n  ```\n  x\n  ```\n",
            false,
            format!("## Recent\n\n  words\n\n  ```\n  x\n  ```\n\n{recent}"),
        ),
        (
            html,
            false,
            format!("## Recent\n- wrapped fact\n  second line\n{recent}<div>\n## Recent\n</div>\n"),
        ),
        (html, true, format!("\n## Important\n\n{important}\n{html}")),
        (raw, true, format!("\n## Important\n\n{important}\n{raw}")),
    ];
    for (body, is_important, expected) in table {
        let facts = Facts::parse(format!("{FRONT}{body}").into()).unwrap();
        let (change, done) =
            facts.with(&NewFact { important: is_important, ..new("giraffe neck") }).unwrap();
        assert_eq!(change, FactChange::Added);
        let done = String::from_utf8(done).unwrap();
        assert_eq!(done, format!("{FRONT}{expected}"), "{body:?}");
    }
    let facts = Facts::parse(format!("{FRONT}{html}").into()).unwrap();
    assert_eq!(facts.all()[0].content, "wrapped fact second line");
    // Nowhere: a block that is open, and indented.
    let facts = Facts::parse(format!("{FRONT}words\n  ~~~\n- no fact\n").into()).unwrap();
    let cause = facts.with(&new("a fact")).unwrap_err();
    assert!(cause.contains("line 6") && cause.contains("`~~~`"), "{cause}");
}
