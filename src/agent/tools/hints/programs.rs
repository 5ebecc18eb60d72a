//! Missing programs, with what they belong to.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::misplaced_files::is_in_other_folder;
use super::{HintRequest, RunKind, call_to_run, quoted_list};
use base::limits;
use host::files::find_program;
use skills::programs::{ALTERNATIVES, PROGRAMS, row_of};

/// Commands that install something, which the model must not do.
const INSTALLERS: [&str; 9] =
    ["pip", "pip3", "apt", "apt-get", "brew", "dnf", "yum", "apk", "sudo"];

/// Words in messages about a missing program. They count only in a line that names one.
const LACKS: [&str; 9] = [
    "not found",
    "not installed",
    "isn't installed",
    "not in your path",
    "not on path",
    "in path?",
    "could not find",
    "cannot find",
    "no such file",
];

/// Names of programs that are also words of a sentence.
const COMMON_WORDS: [&str; 8] = ["make", "go", "convert", "dot", "identify", "node", "zip", "r"];

/// Programs that run another one, whose name stands in their message.
const STARTERS: [&str; 7] = ["env", "xargs", "nohup", "timeout", "nice", "exec", "setsid"];

/// Returns the hint about the programs that a run did not find.
pub(super) fn hint(request: &HintRequest<'_>) -> Option<String> {
    let mut missing: Vec<&str> = Vec::new();
    for name in request.lines().flat_map(|line| missing_in_line(line, request)) {
        let is_new = !missing.contains(&name) && missing.len() < limits::HINT_NAMES;
        if is_new && !is_there(request, name) && !is_in_other_folder(request, name) {
            missing.push(name);
        }
    }
    let first = *missing.first()?;
    if let Some(call) = script_call(request, first) {
        return Some(format!("`{first}` is a script of the skill: {call}"));
    }
    if let Some(other) = alternative(request, first) {
        return Some(format!("`{first}` is not installed, `{other}` is: use that"));
    }
    if first == "uv" && request.kind == RunKind::Command {
        return Some("`uv` is not installed: run Python files with run_python_script".into());
    }
    if INSTALLERS.contains(&first) {
        return Some(format!(
            "`{first}` is not installed: install nothing, but tell the user what is missing"
        ));
    }
    let are = if missing.len() == 1 { ("is", "it") } else { ("are", "them") };
    let named: Vec<String> = missing.iter().map(|name| with_product(name)).collect();
    Some(format!(
        "{} {} not installed: tell the user to install {}",
        named.join(", "),
        are.0,
        are.1
    ))
}

/// The call that runs a script of the skill which a command took for a program.
fn script_call(request: &HintRequest<'_>, name: &str) -> Option<String> {
    let path = format!("scripts/{name}");
    let skill = request.skill.filter(|_| is_in_other_folder(request, &path))?;
    Some(call_to_run(&skill.name, &path, &[]))
}

fn with_product(program: &str) -> String {
    let quoted = quoted_list(&[program]);
    match row_of(program) {
        Some((product, _)) if !product.eq_ignore_ascii_case(program) => {
            format!("{quoted} ({product})")
        }
        _ => quoted,
    }
}

/// Whether the script could start the program.
fn is_there(request: &HintRequest<'_>, program: &str) -> bool {
    let path = request.scripts.variable("PATH");
    let in_venv = |venv: PathBuf| venv.join("bin").join(program).exists();
    find_program(OsStr::new(program), path).is_some() || request.venv().is_some_and(in_venv)
}

fn alternative(request: &HintRequest<'_>, program: &str) -> Option<&'static str> {
    let group = ALTERNATIVES.iter().find(|group| group.contains(&program))?;
    group.iter().copied().find(|other| is_there(request, other))
}

/// The programs that a line says are missing: one by a form of message that shells and runtimes
/// have, or well-known ones in a sentence.
fn missing_in_line<'l>(line: &'l str, request: &HintRequest<'_>) -> Vec<&'l str> {
    let named = shell_message(line).or_else(|| runtime_message(line, request));
    if let Some(name) = named {
        // A path names a file that is not there.
        return Some(name).filter(|name| is_program_name(name)).into_iter().collect();
    }
    let lower = line.to_lowercase();
    if !LACKS.iter().any(|words| lower.contains(words)) {
        return Vec::new();
    }
    // A folder of a path is no program.
    let is_edge = |c: char| !c.is_ascii_alphanumeric() && !"-_.+/".contains(c);
    let words = line.split(is_edge).map(|word| word.trim_end_matches('.'));
    let known = words.filter_map(|word| {
        let by_product = |(product, programs): &&(&str, &[&'static str])| {
            let product = product.strip_suffix("-utils").unwrap_or(product);
            let is_word = COMMON_WORDS.contains(&product.to_lowercase().as_str());
            !is_word
                && word.eq_ignore_ascii_case(product)
                && !programs.iter().any(|it| is_there(request, it))
        };
        if row_of(word).is_some() {
            return (!COMMON_WORDS.contains(&word)).then_some(word);
        }
        PROGRAMS.iter().find(by_product).map(|(_, programs)| programs[0])
    });
    known.collect()
}

/// `sh: 1: NAME: not found`, `bash: line 1: NAME: command not found`, `zsh: command not found:
/// NAME`, `env: 'NAME': No such file or directory`.
fn shell_message(line: &str) -> Option<&str> {
    let line = line.trim_end();
    if let Some((_, name)) = line.split_once(": command not found: ") {
        return Some(name);
    }
    let parts: Vec<&str> = line.split(": ").collect();
    let [start @ .., name, what] = parts.as_slice() else { return None };
    let before = start.last()?;
    let number = before.strip_prefix("line ").unwrap_or(before);
    let is_numbered = number.bytes().all(|byte| byte.is_ascii_digit());
    let is_starter = || STARTERS.contains(&before.rsplit('/').next().unwrap_or(before));
    let name = unquoted(name);
    match *what {
        "command not found" => Some(name),
        "not found" if is_numbered || is_starter() => Some(name),
        "No such file or directory" if is_starter() && !name.contains('/') => {
            Some(name.strip_prefix("failed to run command ").map_or(name, unquoted))
        }
        _ => None,
    }
}

/// Python's and Node.js's messages about a program that could not be started.
fn runtime_message<'l>(line: &'l str, request: &HintRequest<'_>) -> Option<&'l str> {
    if let Some((_, rest)) = line.split_once("spawn ").or_else(|| line.split_once("spawnSync ")) {
        return rest.split_once(" ENOENT").map(|(name, _)| name);
    }
    let (_, rest) = line.split_once("No such file or directory: '")?;
    let name = rest.split('\'').next()?;
    let is_started = request.stderr.contains("subprocess.py") && !name.contains('/');
    let is_known = row_of(name.rsplit('/').next()?).is_some();
    (is_started || is_known).then_some(name)
}

fn unquoted(name: &str) -> &str {
    name.trim_matches(['\'', '"', '‘', '’', '`'])
}

fn is_program_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && name.len() <= limits::PROGRAM_NAME_BYTES && name.chars().all(is_part)
}
