//! The source of a script, read once through `world/confined`: the bytes shown to the user are
//! the bytes that run. This file must not open a script by its path.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::{RunPythonArguments, module};
use crate::limits;
use crate::skills::Skill;
use crate::tools::program::StartFolder;
use crate::world::confined::read_whole;
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
    /// Path relative to the skill's folder, as the model wrote it; `None` for source that the model wrote.
    pub path: Option<String>,
    /// The bytes to run.
    pub bytes: Cow<'a, [u8]>,
}

impl ScriptSource<'_> {
    /// Reads the source from a call's arguments or from the file that they name. The error is a
    /// text for the model.
    pub(super) fn read<'a>(
        arguments: &'a RunPythonArguments,
        skill: Option<&Skill>,
    ) -> Result<ScriptSource<'a>, String> {
        let file = arguments.file_path.as_deref().filter(|path| !path.is_empty());
        match (arguments.script.as_deref(), file) {
            (Some(script), Some(_)) if !script.trim().is_empty() => {
                Err("give either `script` or `file_path`, not both".into())
            }
            (_, Some(path)) => match skill {
                Some(skill) => read_from_skill(skill, path),
                None => {
                    Err("`file_path` names a script of a skill: give its `skill_name`, too".into())
                }
            },
            (Some(script), None) if script.len() > limits::SCRIPT_BYTES => {
                Err(format!("`script` is larger than {} bytes", limits::SCRIPT_BYTES))
            }
            (Some(script), None) => {
                Ok(ScriptSource { path: None, bytes: script.as_bytes().into() })
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

/// Reads a file of the skill through the confined root.
fn read_from_skill(skill: &Skill, path: &str) -> Result<ScriptSource<'static>, String> {
    let read = || {
        let relative = skill.root.relative_path(path)?;
        let file = skill.root.file(&relative)?;
        Ok((relative, read_whole(&file, limits::SCRIPT_BYTES)?))
    };
    let (relative, piece) =
        read().map_err(|error| skill.file_error("the script", "run", path, &error))?;
    if piece.has_more {
        return Err(format!(
            "the script `{path}` of the skill `{}` is larger than {} MiB: give a `script` that \
             runs it with `runpy.run_path`",
            skill.name,
            limits::SCRIPT_BYTES >> 20
        ));
    }
    Ok(ScriptSource { path: Some(relative), bytes: piece.bytes.into() })
}
