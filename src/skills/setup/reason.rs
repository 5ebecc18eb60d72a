//! Why a command failed, out of what it printed.
//!
//! What is told apart here are words of programs that may change them; where
//! none is known the last line is the reason.

use crate::limits;
use crate::text;
use crate::world::process::{Ending, Outcome};

/// A reason in one sentence, and what to do where that is known.
pub(super) struct Failure {
    pub(super) cause: String,
    pub(super) hint: Option<&'static str>,
}

const NO_ENSUREPIP: [&str; 3] = [
    "ensurepip is not available",
    "No module named ensurepip",
    "No module named venv",
];
const NO_NETWORK: [&str; 9] = [
    "Retrying (Retry(",
    "Failed to fetch",
    "Could not connect",
    "error sending request",
    "Connection refused",
    "Failed to establish a new connection",
    "Max retries exceeded",
    "Network is unreachable",
    "Temporary failure in name resolution",
];

const NO_REQUIREMENT: [&str; 5] = [
    "Invalid requirement",
    "Couldn't parse requirement",
    "Failed to parse",
    "Expected package name",
    "Expected end or semicolon",
];
const NO_PACKAGE: [&str; 6] = [
    "No matching distribution found",
    "was not found in the package registry",
    "was not found in the provided package locations",
    "was not found in the cache",
    "there is no version of",
    "there are no versions of",
];

impl Failure {
    pub(super) fn of(outcome: &Outcome) -> Failure {
        let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
        let has = |words: &[&str]| {
            words
                .iter()
                .any(|word| stdout.contains(word) || stderr.contains(word))
        };
        if has(&NO_ENSUREPIP) {
            return Failure {
                cause: "this Python cannot make venvs, a part of it is not installed".into(),
                hint: Some(
                    "apt install python3-venv (Debian, Ubuntu), or put `uv` on PATH, which needs no part of Python",
                ),
            };
        }
        let cause = match outcome.ending {
            Ending::Signaled(signal) => format!("it was killed by signal {signal}"),
            _ => last_words(&stderr)
                .or_else(|| last_words(&stdout))
                .unwrap_or_else(|| "it said no reason".into()),
        };
        Failure {
            cause: text::one_line(&cause, limits::SETUP_REASON_BYTES),
            hint: hint(&has),
        }
    }
}

/// What to do, where it is known.
fn hint(has: &dyn Fn(&[&str]) -> bool) -> Option<&'static str> {
    if has(&["No space left on device"]) {
        Some("make room on the disk, or set PIP_CACHE_DIR or UV_CACHE_DIR to another one")
    } else if has(&NO_NETWORK) {
        Some(
            "is the package index reachable? HTTPS_PROXY sets a proxy, PIP_INDEX_URL or UV_INDEX_URL another index",
        )
    } else if has(&NO_REQUIREMENT) {
        Some("a requirement is a package's name, if need be with its version: openpyxl>=3.1")
    } else if has(&NO_PACKAGE) {
        Some(
            "the index has no such package or version for this Python: mend the requirement; a package can bear another name than its module",
        )
    } else {
        None
    }
}

/// The last error of pip's, all of uv's, or the last line.
fn last_words(output: &str) -> Option<String> {
    let plain = text::sendable(output);
    let lines: Vec<&str> = plain
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if let Some(error) = lines
        .iter()
        .rev()
        .find_map(|line| line.strip_prefix("ERROR: "))
    {
        // Some pips tell the line of the file behind a picture of the fault.
        let place = lines
            .iter()
            .find_map(|line| line.find("(from line ").map(|at| &line[at..]));
        return Some(match place {
            Some(place) if !error.contains(place) => format!("{error} {place}"),
            _ => error.to_string(),
        });
    }
    let begins = |line: &&&str| line.starts_with("error: ") || line.starts_with('×');
    match lines.iter().position(|line| begins(&line)) {
        Some(at) => Some(
            lines[at..]
                .iter()
                .map(|line| untied(line))
                .collect::<Vec<_>>()
                .join(" "),
        ),
        None => lines.last().map(|line| (*line).to_string()),
    }
}

/// Without the branches of the tree that uv draws.
fn untied(line: &str) -> &str {
    line.strip_prefix("error: ")
        .unwrap_or(line)
        .trim_start_matches(['×', '╰', '├', '─', '▶', '│', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_among_other_lines() {
        let table = [
            (
                "WARNING: x\nERROR: Could not find a version that satisfies the requirement a\nERROR: No matching distribution found for a\n\n[notice] A new release\n",
                Some("No matching distribution found for a"),
            ),
            (
                "Using Python 3.11\n  × No solution found when resolving dependencies:\n  ╰─▶ Because a was not found,\n      your requirements are unsatisfiable.\n",
                Some(
                    "No solution found when resolving dependencies: Because a was not found, your requirements are unsatisfiable.",
                ),
            ),
            (
                "error: Failed to parse: `a b`\n  Caused by: x\n",
                Some("Failed to parse: `a b` Caused by: x"),
            ),
            (
                "Traceback\nOSError: [Errno 28] No space left on device\n",
                Some("OSError: [Errno 28] No space left on device"),
            ),
            (
                "ERROR: Invalid requirement: 'a b': Expected end or semicolon\n    a b\n      ^ (from line 3 of requirements.txt)\n",
                Some(
                    "Invalid requirement: 'a b': Expected end or semicolon (from line 3 of requirements.txt)",
                ),
            ),
            ("\n", None),
        ];
        for (output, expected) in table {
            assert_eq!(last_words(output).as_deref(), expected);
        }
    }

    #[test]
    fn what_to_do_is_told_for_what_is_known() {
        for (output, expected) in [
            (
                "WARNING: Retrying (Retry(total=0))\nERROR: No matching distribution found for a",
                Some("is the package index reachable?"),
            ),
            (
                "ERROR: No matching distribution found for a",
                Some("the index has no such package"),
            ),
            (
                "  ╰─▶ Because a was not found in the package registry and you require a",
                Some("the index has no such package"),
            ),
            (
                "ERROR: Invalid requirement: 'a b'",
                Some("a requirement is"),
            ),
            (
                "error: Couldn't parse requirement in `requirements.txt` at position 0",
                Some("a requirement is"),
            ),
            ("ERROR: Failed building wheel for a", None),
        ] {
            let hint = hint(&|words| words.iter().any(|word| output.contains(word)));
            let begins = hint
                .zip(expected)
                .is_some_and(|(hint, begin)| hint.starts_with(begin));
            assert!(begins || hint == expected, "{output}: {hint:?}");
        }
    }
}
