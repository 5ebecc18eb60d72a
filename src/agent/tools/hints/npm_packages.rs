//! Missing npm packages, by the messages of Node.js, with the command that installs them where
//! Node.js looks: from the folder of the importing file upwards.

use std::path::{Path, PathBuf};

use super::{HintRequest, quoted_list};
use base::limits;
use base::text::{one_line_name, shell_quoted};
use skills::needs::package_of_module;

const MESSAGES: [&str; 2] = ["Cannot find module '", "Cannot find package '"];

/// Returns the hint about missing npm packages.
pub(super) fn hint(request: &HintRequest<'_>) -> Option<String> {
    let mut missing: Vec<String> = Vec::new();
    for name in request.lines().filter_map(missing_package) {
        if !missing.contains(&name) && missing.len() < limits::HINT_NAMES {
            missing.push(name);
        }
    }
    let first = missing.first()?;
    let names = quoted_list(&missing.iter().map(String::as_str).collect::<Vec<_>>());
    let are = if missing.len() == 1 { "is" } else { "are" };
    let user = &request.scripts.user_folder;
    let importer = importing_file(request);
    let own = importer.as_deref().and_then(|file| folder_in_skill(request, file));
    if let Some((folder, has_list)) = own {
        let packages = if has_list { String::new() } else { format!(" {}", missing.join(" ")) };
        let folder = shell_quoted(&folder);
        return Some(format!(
            "{names} {are} not installed for this script: tell the user to run: npm install --prefix \
             {folder}{packages}"
        ));
    }
    let folder = one_line_name(&user.display().to_string());
    let is_elsewhere = importer.is_some_and(|file| !file.starts_with(user));
    if is_elsewhere && user.join("node_modules").join(first).is_dir() {
        return Some(format!(
            "{names} {are} installed in {folder}, but not for the script: write the script in {folder}"
        ));
    }
    let place = if is_elsewhere { "; then write the script there" } else { "" };
    let user = shell_quoted(user);
    let missing = missing.join(" ");
    Some(format!(
        "{names} {are} not installed: tell the user to run: npm install --prefix {user} {missing}{place}"
    ))
}

/// The package that Node.js did not find; `None` for a path.
fn missing_package(line: &str) -> Option<String> {
    let (_, rest) = MESSAGES.iter().find_map(|words| line.split_once(words))?;
    package_of_module(rest.split('\'').next()?)
}

/// The file that imports the package: `- FILE` after `Require stack:`, or `imported from FILE`.
fn importing_file(request: &HintRequest<'_>) -> Option<PathBuf> {
    let mut lines = request.lines().skip_while(|line| missing_package(line).is_none());
    let from =
        |line: &'_ str| line.split_once(" imported from ").map(|(_, file)| PathBuf::from(file));
    from(lines.next()?).or_else(|| {
        let mut stack = lines.skip_while(|line| *line != "Require stack:").skip(1);
        stack.next()?.strip_prefix("- ").map(PathBuf::from)
    })
}

/// The folder in the skill for the packages of a file of it, and whether a package.json there
/// lists them.
fn folder_in_skill(request: &HintRequest<'_>, file: &Path) -> Option<(PathBuf, bool)> {
    let skill = request.skill?.path.canonicalize().ok()?;
    let file = file.canonicalize().ok().filter(|file| file.starts_with(&skill))?;
    let mut folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(&skill));
    let with_list = folders.find(|folder| folder.join("package.json").is_file());
    Some(match with_list {
        Some(folder) => (folder.to_path_buf(), true),
        None => (skill, false),
    })
}
