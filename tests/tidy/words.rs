//! Words that the source does not use, so that it stays readable for newcomers.

use crate::report;
use crate::source::{Part, parts, sources};

/// Words that identifiers, first sentences of doc comments and messages do not use, each with
/// what to write instead.
const WORDS: [(&str, &str); 33] = [
    ("tell", "report, return, show"),
    ("tells", "reports, returns, shows"),
    ("told", "reported, returned, shown"),
    ("telling", "reporting"),
    ("untold", "unreported, retracted"),
    ("who", "the user, or the name of the thing"),
    ("whom", "the user, or the name of the thing"),
    ("whoever", "any user, any process"),
    ("somebody", "another user, another process"),
    ("someone", "another user, another process"),
    ("nobody", "no user, no process"),
    ("anybody", "any user"),
    ("everybody", "all users"),
    ("person", "the user"),
    ("bury", "reap"),
    ("buries", "reaps"),
    ("buried", "reaped"),
    ("mend", "fix, repair"),
    ("mends", "fixes, repairs"),
    ("mended", "fixed, repaired"),
    ("mending", "repairing"),
    ("blame", "cause"),
    ("anew", "again"),
    ("whence", "source"),
    ("patience", "cancellation"),
    ("workbench", "tool context"),
    ("tally", "statistics"),
    ("attendant", "event source"),
    ("obstacle", "connect error"),
    ("veil", "redactor"),
    ("leash", "script process"),
    ("begun", "started"),
    ("meanwhile", "at the same time"),
];

/// Expressions of several words, for first sentences and messages.
const PHRASES: [(&str, &str); 12] = [
    ("is none", "is not a …, is missing"),
    ("are none", "are not …, are missing"),
    ("that is no ", "that is not a …"),
    ("as far as", "up to, if"),
    ("but for", "except"),
    ("put right", "repair"),
    ("puts right", "repairs"),
    ("for good", "permanently"),
    ("as it should", "correctly"),
    ("at hand", "available"),
    ("what came of", "the result of"),
    ("to be had", "available"),
];

#[test]
fn plain_words_in_names_doc_comments_and_messages() {
    let mut violations = Vec::new();
    for source in sources() {
        let mut check = |line: usize, text: &str, phrases: &[(&str, &str)]| {
            for (word, better) in forbidden(text, phrases) {
                let name = &source.name;
                violations.push(format!("src/{name}:{line}: `{word}`; better: {better}"));
            }
        };
        for (line, sentence) in source.first_sentences() {
            // Names in backticks are quoted.
            let prose: String = sentence.split('`').step_by(2).collect();
            check(line, &prose, &PHRASES);
        }
        for (line, part, text) in parts(source.without_tests()) {
            match part {
                Part::Code => {
                    for (index, code) in text.lines().enumerate() {
                        check(line + index, code, &[]);
                    }
                }
                // A single word is a name, such as a key or a file; unit tests quote users.
                Part::Text if text.contains(' ') && !source.is_test() => {
                    check(line, text, &PHRASES);
                }
                Part::Comment | Part::Text => {}
            }
        }
    }
    report(&violations);
}

/// The words of the lists that a text uses.
fn forbidden<'p>(
    text: &str,
    phrases: &'p [(&'p str, &'p str)],
) -> impl Iterator<Item = (&'p str, &'p str)> {
    // "Tell the user" is what a model is asked to do.
    let used = words(&text.replace("tell the user", ""));
    // "If there is none" is plain; "what is none" is not.
    let lower = text.to_lowercase().replace("there is none", "").replace("there are none", "");
    let used = move |word: &str| used.iter().any(|it| it == word);
    let words = WORDS.iter().filter(move |(word, _)| used(word));
    words.chain(phrases.iter().filter(move |(phrase, _)| lower.contains(phrase))).copied()
}

/// The words of a text in lower case; names in snake case and camel case are split.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in text.chars() {
        if !c.is_alphabetic() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words
}

#[test]
fn type_names_are_unique() {
    let mut defined: Vec<(String, String)> = Vec::new();
    let mut violations = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code() {
            let Some(name) = defined_type(line) else { continue };
            let place = format!("src/{}:{number}", source.name);
            match defined.iter().find(|(other, _)| *other == name) {
                Some((_, other)) => {
                    violations.push(format!("{place}: `{name}` is defined in {other}, too"));
                }
                None => defined.push((name.into(), place)),
            }
        }
    }
    assert!(defined.len() > 200, "the definitions were found");
    report(&violations);
}

/// The type that a line defines. Associated types, which a trait names, are not counted.
fn defined_type(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let item = match item.strip_prefix("pub") {
        Some(item) => item.trim_start_matches(|c: char| c != ' ').trim_start(),
        None => item,
    };
    let (keyword, name) = item.split_once(' ')?;
    let is_type = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    is_type.then_some(name)
}

#[test]
fn ids_of_foreign_documents_are_not_cited() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut violations = Vec::new();
    for folder in ["src", "tests", "benches", "fuzz/src", "examples"] {
        for path in crate::source::files(&root.join(folder), "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for (index, line) in text.lines().enumerate() {
                if line.split(|c: char| !c.is_alphanumeric() && c != '-').any(is_foreign_id) {
                    violations.push(format!("{}:{}: {line}", path.display(), index + 1));
                }
            }
        }
    }
    report(&violations);
}

/// Whether a word is an id of a requirement, such as R, a dash, a name, a dash and a number.
fn is_foreign_id(word: &str) -> bool {
    let mut parts = word.split('-');
    parts.next() == Some("R")
        && parts.next().is_some_and(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}
