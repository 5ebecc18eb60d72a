//! Missing npm packages, by the messages of Node.js.

use super::{HintRequest, RunKind, quoted_list};
use crate::limits;
use crate::text::shell_quoted;

const MESSAGES: [&str; 2] = ["Cannot find module '", "Cannot find package '"];

/// Returns the hint about missing npm packages.
pub(super) fn hint(request: &HintRequest<'_>) -> Option<String> {
    let mut missing: Vec<&str> = Vec::new();
    for name in request.lines().filter_map(missing_package) {
        if !missing.contains(&name) && missing.len() < limits::HINT_NAMES {
            missing.push(name);
        }
    }
    let are = if missing.len() == 1 { "is" } else { "are" };
    // Node.js looks for packages from the folder of the file upwards.
    let skill = request.skill.filter(|_| request.kind == RunKind::File);
    let folder = skill.map_or(&request.scripts.user_folder, |skill| &skill.path);
    (!missing.is_empty()).then(|| {
        format!(
            "{} {are} not installed: tell the user to run, in {}: npm install {}",
            quoted_list(&missing),
            shell_quoted(folder),
            missing.join(" ")
        )
    })
}

/// The package that Node.js did not find; `None` for a path.
fn missing_package(line: &str) -> Option<&str> {
    let (_, rest) = MESSAGES.iter().find_map(|words| line.split_once(words))?;
    let module = rest.split('\'').next()?;
    let mut ends = module.match_indices('/').map(|(end, _)| end);
    let end = if module.starts_with('@') { ends.nth(1) } else { ends.next() };
    let package = &module[..end.unwrap_or(module.len())];
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./@".contains(c);
    let begins = package.starts_with(|c: char| c == '@' || c.is_ascii_alphanumeric());
    (begins && package.chars().all(is_part)).then_some(package)
}
