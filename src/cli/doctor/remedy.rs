//! What to do about a problem, as its own words tell it.

/// Parts a problem from what to do about it, which stands at its end.
pub fn remedy(problem: &str) -> (&str, &str) {
    const VERBS: [&str; 8] = [
        ": set ",
        ": pass ",
        ": copy ",
        ": chmod ",
        ": `skills-runner ",
        "; `skills-runner ",
        "; `rm -r ",
        "; whoever made ",
    ];
    let at = VERBS.iter().filter_map(|verb| problem.find(verb)).min();
    match at {
        Some(at) => (&problem[..at], &problem[at + 2..]),
        None if problem.contains("over plain http") => (
            problem,
            "use the endpoint's https:// address, if it has one",
        ),
        None => (problem, "correct it there"),
    }
}
