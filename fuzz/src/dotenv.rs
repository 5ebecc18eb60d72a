//! `.env` text: the lines of errors and variables exist, printed variables are read as
//! before, and memory is limited.

use std::collections::BTreeSet;

use base::dotenv::{Dotenv, Variable, parse, parse_bytes};
use base::limits;

use crate::memory::with_limit;

/// See the module.
pub fn check(data: &[u8]) {
    let environment = |name: &str| match name {
        "HOME" => Some("/home/user".to_string()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let most = (1 << 18) + 100 * data.len() + 4 * limits::ENV_EXPANSION_BYTES;
    let lines = 1 + newlines(data);
    match with_limit(most, || parse_bytes(data, &environment)) {
        Err(fault) => assert!((1..=lines).contains(&fault.line), "{fault}"),
        Ok(read) => {
            let text = std::str::from_utf8(data).expect("it was read as UTF-8");
            assert_eq!(read, parse(text, &environment));
            judge(&read, text.len(), lines);
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        check_printed(&parse(text, &|_| None));
    }
}

fn newlines(data: &[u8]) -> usize {
    let ends = |(at, byte): (usize, &u8)| {
        *byte == b'\n' || (*byte == b'\r' && data.get(at + 1) != Some(&b'\n'))
    };
    data.iter().enumerate().filter(|it| ends(*it)).count()
}

fn judge(read: &Dotenv, bytes: usize, lines: usize) {
    let mut before = 0;
    for fault in &read.problems {
        assert!(before <= fault.line && fault.line <= lines && fault.line > 0, "{fault}");
        before = fault.line;
    }
    let mut names = BTreeSet::new();
    let mut held = 0;
    for variable in &read.variables {
        assert!((1..=lines).contains(&variable.line), "{variable:?}");
        assert!(!variable.name.is_empty() && names.insert(&variable.name));
        held += variable.value.as_ref().map_or(0, String::len);
        let masked =
            Variable { value: variable.value.as_ref().map(|_| "x".into()), ..variable.clone() };
        assert_eq!(format!("{variable:?}"), format!("{masked:?}"), "debug output shows a value");
    }
    assert!(held <= bytes + limits::ENV_EXPANSION_BYTES);
}

/// Checks that variables written with quotes and escapes are read as before.
fn check_printed(read: &Dotenv) {
    let is_writable = |variable: &&Variable| {
        // A reference cannot be escaped, nor a quote in a name.
        let is_plain = |value: &String| !value.contains("${") && !value.contains('\0');
        !variable.name.contains('\'') && variable.value.as_ref().is_some_and(is_plain)
    };
    let variables: Vec<&Variable> = read.variables.iter().filter(is_writable).collect();
    let mut text = String::new();
    for (index, variable) in variables.iter().enumerate() {
        let value = variable.value.as_deref().unwrap_or_default();
        let value = value.replace('\\', "\\\\").replace('\'', "\\'").replace('"', "\\\"");
        let value =
            value.replace('\r', "\\r").replace('\n', if index % 2 == 0 { "\n" } else { "\\n" });
        text.push_str(&format!("export '{}' = \"{value}\" # note\r\n", variable.name));
    }
    let again = parse(&text, &|_| None);
    let pairs = |variables: &mut dyn Iterator<Item = &Variable>| -> Vec<(String, Option<String>)> {
        variables.map(|it| (it.name.clone(), it.value.clone())).collect()
    };
    assert_eq!(again.problems, [], "{text:?}");
    assert_eq!(pairs(&mut again.variables.iter()), pairs(&mut variables.into_iter()), "{text:?}");
}
