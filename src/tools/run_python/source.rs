//! The source of a script, read once through `world/confined`: the bytes shown to the user are
//! the bytes that run. This file must not open a script by its path.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::slips::{self, ShellCall};
use super::{RunPythonArguments, module};
use crate::limits;
use crate::skills::{Skill, split_words};
use crate::tools::program::StartFolder;
use crate::world::confined::{OpenError, PathTarget, read_whole};
use crate::world::scratch::Scratch;

/// Python program that runs the copy of a script as Python runs the script itself.
const LOADER: &[u8] = include_bytes!("loader.py");

/// Environment variable, with its value, that keeps the working folder out of `sys.path` when
/// Python (3.11 or later) runs a command (`-c`). The loader removes it from the environment, so
/// that of the script's children only those of `multiprocessing` are affected, which inherit the
/// flag and receive a `sys.path`.
pub(super) const SAFE_PATH: (&str, &str) = ("PYTHONSAFEPATH", "skills-runner");

/// The source of a script.
pub(super) struct ScriptSource<'a> {
    /// Path relative to the skill's folder; `None` for source that the model wrote.
    pub path: Option<String>,
    /// A line about a path that was taken for another.
    pub note: Option<String>,
    /// The bytes to run.
    pub bytes: Cow<'a, [u8]>,
}

impl ScriptSource<'_> {
    /// Reads the source from a call's arguments or from the file that they name. The error is a
    /// text for the model; `offers_commands`: whether it may name `run_command`.
    pub(super) fn read<'a>(
        arguments: &'a RunPythonArguments,
        skill: Option<&Skill>,
        offers_commands: bool,
    ) -> Result<ScriptSource<'a>, String> {
        let file = arguments.file_path.as_deref().filter(|path| !path.is_empty());
        match (arguments.script.as_deref(), file) {
            (Some(script), Some(_)) if !script.trim().is_empty() => {
                Err("give either `script` or `file_path`, not both".into())
            }
            (_, Some(path)) => match skill {
                Some(skill) => read_from_skill(skill, path, &arguments.args),
                None => {
                    Err("`file_path` names a script of a skill: give its `skill_name`, too; run a file of the \
                         user with `run_command`"
                        .into())
                }
            },
            (Some(script), None) if script.len() > limits::SCRIPT_BYTES => {
                Err(format!("`script` is larger than {} bytes", limits::SCRIPT_BYTES))
            }
            (Some(script), None) => {
                let bytes = match read_script(script, skill, offers_commands)? {
                    Cow::Borrowed(script) => Cow::Borrowed(script.as_bytes()),
                    Cow::Owned(script) => Cow::Owned(script.into_bytes()),
                };
                Ok(ScriptSource { path: None, note: None, bytes })
            }
            (None, None) => {
                Err("give `script` (Python source) or `file_path` (a script of the skill)".into())
            }
        }
    }

    /// Returns the text of a script file of the skill, with invalid UTF-8 replaced; `None` for
    /// source that the model wrote.
    pub(super) fn skill_script_text(&self) -> Option<String> {
        let text = || String::from_utf8_lossy(&self.bytes).into_owned();
        self.path.is_some().then(text)
    }

    /// Returns an error if the file of a script, which runs by its path, changed since it was read
    /// and shown to the user.
    pub(super) fn check_unchanged(&self, skill: &Skill) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        let target = skill.root.open_target(path);
        let piece = target.and_then(|target| match target {
            PathTarget::File(open) => read_whole(&open.file, limits::SCRIPT_BYTES),
            PathTarget::Folder(_) => Err(OpenError::Changing),
        });
        match piece {
            Ok(piece) if !piece.has_more && piece.bytes == *self.bytes => Ok(()),
            _ => Err(format!("the script `{path}` changed after it was read: it was not run")),
        }
    }

    /// Writes the source to a private folder, and returns the arguments with which Python runs it
    /// as a script of the skill in `folder`, or of the user.
    pub(super) fn write_files(
        &self,
        scratch: &Scratch,
        folder: &Path,
        start: StartFolder,
    ) -> io::Result<Vec<OsString>> {
        let loader = scratch.write_file("loader.py", LOADER)?;
        let arguments = |module: String, copy: OsString, script: OsString| {
            let folder = folder.into();
            Ok(vec![loader.into(), folder, module.into(), copy, script])
        };
        let Some(path) = &self.path else {
            let copy = OsString::from(scratch.write_file("script.py", &self.bytes)?);
            return arguments(String::new(), copy.clone(), copy);
        };
        // An archive or compiled Python runs without its source.
        if self.bytes.contains(&0) {
            let extension = Path::new(path).extension();
            let name =
                if extension.is_some_and(|it| it == "pyc") { "script.pyc" } else { "script.pyz" };
            let copy = OsString::from(scratch.write_file(name, &self.bytes)?);
            return arguments(String::new(), copy.clone(), copy);
        }
        let copy = scratch.write_file("script.py", &self.bytes)?;
        let module = module::module_name(path, &self.bytes).unwrap_or_default();
        if start == StartFolder::User {
            return arguments(module, copy.into(), folder.join(path).into());
        }
        // A name with a leading dash must not become an option, even if the script restarts
        // itself.
        let prefix = if path.starts_with('-') { "./" } else { "" };
        let script = format!("{prefix}{path}");
        arguments(module, copy.into(), script.into())
    }
}

/// Returns the Python that a script means, or what to do if it is something else.
fn read_script<'s>(
    script: &'s str,
    skill: Option<&Skill>,
    offers_commands: bool,
) -> Result<Cow<'s, str>, String> {
    let command = if offers_commands { "use `run_command`" } else { "run it by subprocess.run" };
    let script = slips::python_source(script)
        .map_err(|language| format!("`script` is {language}, not Python: {command}"))?;
    let find = |path: &str| find_script(skill?, path);
    let Some(words) = slips::shell_words(&script, |path| find(path).is_some()) else {
        return Ok(script);
    };
    let call = ShellCall::parse(&words, find);
    let call = call.map(|call| format!("call this tool with {}, or ", call.arguments()));
    let call = call.unwrap_or_default();
    Err(format!("`script` is a line for a shell, not Python: {call}{command}"))
}

/// Returns the path in the skill's folder of the script that a path means.
fn find_script(skill: &Skill, path: &str) -> Option<String> {
    let resolved = skill.resolve_file(path).ok()?;
    matches!(resolved.target, PathTarget::File(_)).then_some(resolved.path)
}

/// Reads a file of the skill through the confined root.
fn read_from_skill(
    skill: &Skill,
    path: &str,
    args: &[String],
) -> Result<ScriptSource<'static>, String> {
    let read = || {
        let resolved = skill.resolve_file(path)?;
        let note = resolved.note("ran");
        match resolved.target {
            PathTarget::File(open) => {
                Ok((resolved.path, note, read_whole(&open.file, limits::SCRIPT_BYTES)?))
            }
            PathTarget::Folder(_) => Err(OpenError::NotAFile("a folder")),
        }
    };
    let (path, note, piece) = read().map_err(|error| {
        let words = split_words(path, limits::SCRIPT_ARGUMENTS_BYTES);
        match ShellCall::parse(&words, |path| find_script(skill, path)) {
            Some(mut call) if words.len() > 1 => {
                call.args.extend_from_slice(args);
                let call = call.arguments();
                format!("`file_path` is a line for a shell: give the words after the path as `args`: {call}")
            }
            _ => skill.file_error("the script", "run", path, &error),
        }
    })?;
    if piece.has_more {
        return Err(format!(
            "the script `{path}` of the skill `{}` is larger than {} MiB: give a `script` that \
             runs it with `runpy.run_path`",
            skill.name,
            limits::SCRIPT_BYTES >> 20
        ));
    }
    Ok(ScriptSource { path: Some(path), note, bytes: piece.bytes.into() })
}
