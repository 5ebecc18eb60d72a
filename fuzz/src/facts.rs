//! The facts file: for any contents, a change affects only the line of one fact and the line
//! `modified:`, and an added fact is read again.

use agent::memory::fact::normalize_content;
use agent::memory::facts::{FactChange, Facts, NewFact};

/// See the module. The first line is the new fact, the rest the file.
pub fn check(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (new, file) = match end {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &b""[..]),
    };
    let new = normalize_content(&String::from_utf8_lossy(new));
    let Ok(facts) = Facts::parse(file.to_vec()) else {
        return;
    };
    // A blank file counts as empty.
    let is_blank = facts.all().is_empty() && !file.contains(&b'-');
    if !new.is_empty() && !is_blank {
        add(&facts, &new, file);
    }
    for number in 1..=facts.all().len() {
        let Some((fact, left)) = facts.without_fact(number, "2026-11-22") else {
            panic!("fact {number} cannot be removed");
        };
        let fact = fact.content.clone();
        let after = read(left.clone());
        let removed = texts(&facts).iter().filter(|text| **text == fact).count();
        let there = texts(&after).iter().filter(|text| **text == fact).count();
        assert!(there < removed, "{fact:?} is still there");
        assert_eq!(difference(file, &left), (1, 0), "other lines were changed");
    }
}

fn add(facts: &Facts, new: &str, file: &[u8]) {
    let fact = NewFact {
        content: new,
        important: false,
        source: "fuzz -->",
        time: "2026-11-22T09:00:00+01:00",
        replaced: None,
    };
    let Ok((change, bytes)) = facts.with_fact(&fact) else {
        panic!("the fact cannot be added");
    };
    let after = read(bytes.clone());
    if change == FactChange::Known {
        assert_eq!(bytes, file);
        return;
    }
    let (removed, added) = difference(file, &bytes);
    let old = match &change {
        FactChange::Added => {
            assert_eq!(removed, 0, "a line of the user was removed");
            None
        }
        FactChange::Replaced(old) => {
            // A fact that has become important moves to another position.
            let stays = removed <= 1 && added <= 1;
            assert!(stays || new.contains('#'), "{removed} lines became {added}");
            Some(&**old)
        }
        FactChange::Known => return,
    };
    // All other facts stay with their importance, and the new one is stored exactly.
    let mut expected = with_importance(facts);
    if let Some(old) = old {
        let is_it = |(text, important): &(String, bool)| {
            *text == old.content && *important == old.important
        };
        let at = expected.iter().position(is_it);
        expected.remove(at.unwrap_or_else(|| panic!("no fact {:?}", old.content)));
    }
    let mut there = with_importance(&after);
    for (text, important) in expected {
        let at = there.iter().position(|one| *one == (text.clone(), important));
        assert!(at.is_some(), "{text:?} is no fact any more, or its importance changed");
        at.map(|at| there.remove(at));
    }
    let [(text, important)] = there.as_slice() else {
        panic!("{} new facts", there.len());
    };
    let is_correct = match text.strip_prefix(new) {
        Some("") => !important || new.to_lowercase().contains("#important"),
        Some(" #important") => *important && old.is_some_and(|old| old.important),
        _ => false,
    };
    assert!(is_correct, "{new:?} became {text:?}, important: {important}");
    // Storing it again changes nothing.
    let again = after.with_fact(&NewFact { time: "2026-11-23T09:00:00+01:00", ..fact });
    assert!(matches!(again, Ok((FactChange::Known, _))), "{again:?}");
}

fn with_importance(facts: &Facts) -> Vec<(String, bool)> {
    let facts = facts.all().iter();
    facts.map(|fact| (fact.content.clone(), fact.important)).collect()
}

fn read(bytes: Vec<u8>) -> Facts {
    match Facts::parse(bytes) {
        Ok(facts) => facts,
        Err(cause) => panic!("what was written cannot be read: {cause}"),
    }
}

fn texts(facts: &Facts) -> Vec<String> {
    facts.all().iter().map(|fact| fact.content.clone()).collect()
}

/// The number of removed and added lines between the common lines at the start and the end.
/// Blank lines and the time of the last change do not count.
fn difference(old: &[u8], new: &[u8]) -> (usize, usize) {
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.map(<[u8]>::trim_ascii_end);
        let is_counted =
            |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"modified:");
        lines.filter(is_counted).map(<[u8]>::to_vec).collect()
    };
    let (old, new) = (lines(old), lines(new));
    let front = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[front..], &new[front..]);
    let behind = old.iter().rev().zip(new.iter().rev());
    let behind = behind.take_while(|(a, b)| a == b).count();
    (old.len() - behind, new.len() - behind)
}
