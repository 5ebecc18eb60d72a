//! Splits a message of the configuration into problem and remedy.

/// Splits a message into the problem and the remedy at its end.
pub(super) fn split_remedy(problem: &str) -> (&str, &str) {
    match split_at_remedy(problem) {
        Some(parts) => parts,
        None if problem.contains("over plain http") => {
            (problem, "use the endpoint's https:// address, if it has one")
        }
        None => (problem, "correct this setting"),
    }
}

/// Like `split_remedy`; `None` if the message has no remedy.
pub(super) fn split_at_remedy(problem: &str) -> Option<(&str, &str)> {
    const VERBS: [&str; 11] = [
        ": set ",
        ": pass ",
        ": copy ",
        ": chmod ",
        ": create it ",
        ": move it ",
        ": name ",
        ": `skills-runner ",
        "; `skills-runner ",
        "; `rm -r ",
        "; its owner has to ",
    ];
    let at = VERBS.iter().filter_map(|verb| problem.find(verb)).min()?;
    Some((&problem[..at], &problem[at + 2..]))
}
