//! Hints in the results of scripts and commands: what was missing, what was left behind, and what
//! to do next. Each is one sentence.
//!
//! They are found in both streams and whatever the exit status, as a child may have failed. A
//! hint never names what the sandbox or the file tools hide.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use base::limits;
use base::text;
use skills::ScriptSettings;
use skills::changes::SkillChanges;
use skills::python::Interpreter;
use skills::venv::path_in_skill;
use skills::{Skill, Skills};

mod changed_files;
mod misplaced_files;
mod npm_packages;
mod packages;
mod programs;

pub(super) use changed_files::{left_in_skill, warning};

/// The folder that a script or command started in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartFolder {
    /// The skill's folder.
    Skill,
    /// The user's working folder.
    User,
}

/// The kind of a run, which decides what the model can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunKind {
    /// Python that the model wrote.
    Source,
    /// A script file of the skill.
    File,
    /// A shell command.
    Command,
}

/// A script or command that has run: what hints need of it.
#[allow(clippy::struct_excessive_bools, reason = "independent facts about a run")]
pub(super) struct HintRequest<'h> {
    pub kind: RunKind,
    /// The skill, if there is one.
    pub skill: Option<&'h Skill>,
    /// The Python interpreter, if it ran Python.
    pub python: Option<&'h Interpreter>,
    pub scripts: &'h ScriptSettings,
    pub skills: &'h Skills,
    pub start_folder: StartFolder,
    pub stdout: &'h str,
    pub stderr: &'h str,
    /// The text of the script or command, if it is text.
    pub source: Option<&'h str>,
    /// Whether the exit status was not 0, or the run was stopped.
    pub failed: bool,
    /// The number of processes that it left behind.
    pub left_behind: u32,
    /// Whether these keep running.
    pub keep_leftovers: bool,
    /// Its changes in the skill's folder, if that was checked.
    pub changes: Option<&'h SkillChanges>,
    /// Advice on the sandbox, if the output shows a refused access.
    pub sandbox_advice: Option<&'h str>,
    /// Whether the call before was the same one, and failed.
    pub failed_before: bool,
}

impl<'h> HintRequest<'h> {
    /// The lines of both streams.
    fn lines(&self) -> impl Iterator<Item = &'h str> {
        self.stderr.lines().chain(self.stdout.lines())
    }

    fn noun(&self) -> &'static str {
        match self.kind {
            RunKind::Source | RunKind::File => "script",
            RunKind::Command => "command",
        }
    }

    /// The path of the folder that it started in.
    fn start_path(&self) -> &'h Path {
        match (self.start_folder, self.skill) {
            (StartFolder::Skill, Some(skill)) => &skill.path,
            _ => &self.scripts.user_folder,
        }
    }

    /// The venv of the skill, which scripts and commands use.
    fn venv(&self) -> Option<PathBuf> {
        match self.python {
            Some(python) => python.venv.clone(),
            None => path_in_skill(&self.skill?.path),
        }
    }
}

/// The call that runs a script of a skill, for a model to copy.
pub(super) fn call_to_run(skill: &str, path: &str, args: &[String]) -> String {
    let call = json!({"skill_name": skill, "file_path": path, "args": args});
    format!("run_python_script {call}")
}

/// Returns the hints, the most important first.
pub(super) fn hints(request: &HintRequest<'_>) -> Vec<String> {
    let missing = [
        packages::hint(request),
        npm_packages::hint(request),
        programs::hint(request),
        misplaced_files::hint(request),
        withheld_variables(request),
    ];
    let is_explained = missing.iter().any(Option::is_some);
    let advice = request.sandbox_advice.filter(|_| !is_explained);
    let found = [
        advice.map(str::to_string),
        leftovers(request),
        repeated(request),
        changed_files::left_hint(request),
        request.changes.and_then(changed_files::hint),
        nothing_printed(request),
    ];
    missing.into_iter().chain(found).flatten().take(limits::HINTS).collect()
}

/// Hint for a failed run that names variables which scripts do not get, as they look like
/// credentials.
fn withheld_variables(request: &HintRequest<'_>) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_named = |name: &&str| {
        request.lines().any(|line| line.split(|c| !is_part(c)).any(|word| word == *name))
    };
    let named: Vec<&str> = request.scripts.withheld_names().filter(is_named).collect();
    (request.failed && !named.is_empty()).then(|| {
        let verb = if named.len() == 1 { "is a credential" } else { "are credentials" };
        format!(
            "{} {verb} of the user that scripts do not get: tell the user to set SCRIPT_ENV={}",
            text::first_names(&named),
            named.join(",")
        )
    })
}

/// Hint for a source that printed nothing and had no other visible effect.
fn nothing_printed(request: &HintRequest<'_>) -> Option<String> {
    let is_empty = request.stdout.trim().is_empty() && request.stderr.trim().is_empty();
    let source = request.source?;
    let has_effect = EFFECTS.iter().any(|word| source.contains(word));
    let is_lost = request.kind == RunKind::Source && !request.failed && is_empty && !has_effect;
    is_lost.then(|| "nothing was printed: print() what you need".to_string())
}

/// Words of sources that change files or start programs, for which printing nothing is usual.
const EFFECTS: [&str; 10] =
    ["open(", "write", "save", "copy", "move", "remove", "unlink", "rename", "mkdir", "subprocess"];

/// Lists names in backquotes.
fn quoted_list(names: &[&str]) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", text::one_line(name, limits::QUOTED_BYTES)))
        .collect();
    names.join(", ")
}

fn repeated(request: &HintRequest<'_>) -> Option<String> {
    let is_repeated = request.failed && request.failed_before;
    is_repeated.then(|| REPEATED.to_string())
}

const REPEATED: &str = "the same call failed before: change something";

/// Adds that hint to the result `{"error": …}` of any tool; other results stay as they are.
pub(super) fn with_repetition(content: String) -> String {
    match serde_json::from_str::<Map<String, Value>>(&content) {
        Ok(mut fields) if fields.contains_key("error") => {
            fields.insert("hint".into(), REPEATED.into());
            Value::Object(fields).to_string()
        }
        _ => content,
    }
}

fn leftovers(request: &HintRequest<'_>) -> Option<String> {
    let count = request.left_behind;
    let processes = if count == 1 { "process" } else { "processes" };
    let fate = match (request.keep_leftovers, count) {
        (_, 0) => return None,
        (true, 1) => "keeps running (SCRIPT_LEFTOVERS=keep)",
        (true, _) => "keep running (SCRIPT_LEFTOVERS=keep)",
        (false, 1) => "was ended with it",
        (false, _) => "were ended with it",
    };
    let noun = request.noun();
    let advice = if request.keep_leftovers {
        String::new()
    } else {
        format!(
            ": start, use and stop a server in one {noun}, or tell the user to \
             start the runner with SCRIPT_LEFTOVERS=keep"
        )
    };
    Some(format!("{count} {processes} that the {noun} left behind {fate}{advice}"))
}
