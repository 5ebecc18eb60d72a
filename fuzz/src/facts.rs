//! The file of facts: whatever a person has written, a change touches the lines
//! of one fact and the line `modified:`, and what was added is read again.

use skills_runner::internals::memory::{FactChange, Facts, NewFact, content};

/// See the module. The first line is the new fact, the rest the file.
pub fn check(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (new, file) = match end {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &b""[..]),
    };
    let new = content(&String::from_utf8_lossy(new));
    let Ok(facts) = Facts::parse(file.to_vec()) else {
        return;
    };
    // A blank file is taken as an empty one.
    let is_blank = facts.all().is_empty() && !file.contains(&b'-');
    if !new.is_empty() && !is_blank {
        add(&facts, &new, file);
    }
    for number in 1..=facts.all().len() {
        let Some((fact, left)) = facts.without(number, "2026-11-22") else {
            panic!("fact {number} cannot be removed");
        };
        let fact = fact.content.clone();
        let after = read(left.clone());
        let gone = texts(&facts).iter().filter(|text| **text == fact).count();
        let there = texts(&after).iter().filter(|text| **text == fact).count();
        assert!(there < gone, "{fact:?} is still there");
        // What stood behind it Markdown may read in another way; it stays as it is.
        assert_eq!(difference(file, &left).1, 0, "something was written");
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
    // Refused where it would not stand by itself.
    let Ok((change, bytes)) = facts.with(&fact) else {
        return;
    };
    let after = read(bytes.clone());
    if change == FactChange::Known {
        assert_eq!(bytes, file);
        return;
    }
    let (gone, come) = difference(file, &bytes);
    let old = match &change {
        FactChange::Added => {
            assert_eq!(gone, 0, "a person's line is gone");
            None
        }
        FactChange::Replaced(old) => {
            // One that has become important goes to another place.
            let stays = gone <= 1 && come <= 1;
            assert!(stays || new.contains('#'), "{gone} lines became {come}");
            Some(&**old)
        }
        FactChange::Known => return,
    };
    // What was there is there, as important as before, and the new one exactly.
    let mut wanted = weighed(facts);
    if let Some(old) = old {
        let is_it = |(text, important): &(String, bool)| {
            *text == old.content && *important == old.important
        };
        let at = wanted.iter().position(is_it);
        wanted.remove(at.unwrap_or_else(|| panic!("no fact {:?}", old.content)));
    }
    let mut there = weighed(&after);
    for (text, important) in wanted {
        let at = there.iter().position(|one| *one == (text.clone(), important));
        assert!(at.is_some(), "{text:?} is no fact any more, or of another weight");
        at.map(|at| there.remove(at));
    }
    let [(text, important)] = there.as_slice() else {
        panic!("{} new facts", there.len());
    };
    let is_meant = match text.strip_prefix(new) {
        Some("") => !important || new.to_lowercase().contains("#important"),
        Some(" #important") => *important && old.is_some_and(|old| old.important),
        _ => false,
    };
    assert!(is_meant, "{new:?} became {text:?}, important: {important}");
    // The same again changes nothing.
    let again = after.with(&NewFact { time: "2026-11-23T09:00:00+01:00", ..fact });
    assert!(matches!(again, Ok((FactChange::Known, _))), "{again:?}");
}

fn weighed(facts: &Facts) -> Vec<(String, bool)> {
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

/// How many lines of the old file are not in the new one, and how many are new,
/// between those that are the same in front and behind. Blank lines and the date
/// of the last change are not counted.
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
