//! Variables that a failed run names and that scripts do not get, as they look like credentials.

use super::HintRequest;
use crate::text::first_names;

/// Returns the hint about the variables that the output of a failed run names.
pub(super) fn hint(request: &HintRequest<'_>) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_named = |name: &&str| {
        request.lines().any(|line| line.split(|c| !is_part(c)).any(|word| word == *name))
    };
    let named: Vec<&str> = request.scripts.withheld_names().filter(is_named).collect();
    (request.failed && !named.is_empty()).then(|| {
        let verb = if named.len() == 1 { "is a credential" } else { "are credentials" };
        format!(
            "{} {verb} of the user that scripts do not get: tell the user to start the runner with SCRIPT_ENV={}",
            first_names(&named),
            named.join(",")
        )
    })
}
