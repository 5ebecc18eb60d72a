//! What to do about a problem, as its own words tell it.

/// Parts a problem from what to do about it, which stands at its end.
pub(super) fn remedy(problem: &str) -> (&str, &str) {
    match parted(problem) {
        Some(parts) => parts,
        None if problem.contains("over plain http") => {
            (problem, "use the endpoint's https:// address, if it has one")
        }
        None => (problem, "correct it there"),
    }
}

/// The same; `None` where it does not say what to do.
pub(super) fn parted(problem: &str) -> Option<(&str, &str)> {
    const VERBS: [&str; 11] = [
        ": set ",
        ": pass ",
        ": copy ",
        ": chmod ",
        ": make it ",
        ": move it ",
        ": name ",
        ": `skills-runner ",
        "; `skills-runner ",
        "; `rm -r ",
        "; whoever made ",
    ];
    let at = VERBS.iter().filter_map(|verb| problem.find(verb)).min()?;
    Some((&problem[..at], &problem[at + 2..]))
}
