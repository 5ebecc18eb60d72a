//! What is to be run, read once: what was opened through the confined door, and
//! what a user is shown of it, is what runs. Nothing here opens a script by name.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::module;
use crate::limits;
use crate::skills::Skill;
use crate::tools::Arguments;
use crate::world::confined::read_whole;
use crate::world::scratch::Scratch;

/// Runs the copy of a script as Python runs the script itself.
const LOADER: &[u8] = include_bytes!("loader.py");

/// Keeps the working folder off the path of a Python that runs a command (`-c`), from
/// 3.11 on. The loader takes it out of the environment, so that it holds only for the
/// children of `multiprocessing`, which start so and are handed a path.
pub(super) const SAFE_PATH: (&str, &str) = ("PYTHONSAFEPATH", "skills-runner");

/// What is to be run.
pub(super) struct ScriptSource<'a> {
    /// Where it lies in the skill's folder; the model's own text lies nowhere.
    pub path: Option<String>,
    /// What runs, byte for byte.
    pub bytes: Cow<'a, [u8]>,
}

impl ScriptSource<'_> {
    /// What a call asks for. The error is for the model.
    pub(super) fn of<'a>(
        arguments: &'a Arguments,
        skill: &Skill,
    ) -> Result<ScriptSource<'a>, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let file = text("file_path").filter(|path| !path.is_empty());
        match (text("script"), file) {
            (Some(script), Some(_)) if !script.trim().is_empty() => {
                Err("give either `script` or `file_path`, not both".into())
            }
            (_, Some(path)) => of_skill(skill, path),
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

    /// The skill's own script as text, as far as it is text.
    pub(super) fn text_of_file(&self) -> Option<String> {
        let text = || String::from_utf8_lossy(&self.bytes).into_owned();
        self.path.is_some().then(text)
    }

    /// Writes it to a private folder, and gives the arguments with which Python runs
    /// it as a script of the skill in `folder`.
    pub(super) fn write(&self, scratch: &Scratch, folder: &Path) -> io::Result<Vec<OsString>> {
        let loader = scratch.write("loader.py", LOADER)?;
        let arguments = |module: String, copy: OsString, script: OsString| {
            let folder = folder.into();
            Ok(vec![loader.into(), folder, module.into(), copy, script])
        };
        let Some(path) = &self.path else {
            let copy = OsString::from(scratch.write("script.py", &self.bytes)?);
            return arguments(String::new(), copy.clone(), copy);
        };
        // An archive, or what Python has compiled: it runs without its source.
        if self.bytes.contains(&0) {
            let kind = Path::new(path).extension();
            let name =
                if kind.is_some_and(|kind| kind == "pyc") { "script.pyc" } else { "script.pyz" };
            let copy = OsString::from(scratch.write(name, &self.bytes)?);
            return arguments(String::new(), copy.clone(), copy);
        }
        let copy = scratch.write("script.py", &self.bytes)?;
        let module = module::name(path, &self.bytes).unwrap_or_default();
        // A name that begins with a dash is no option, also when the script starts
        // itself again.
        let prefix = if path.starts_with('-') { "./" } else { "" };
        let script = format!("{prefix}{path}");
        arguments(module, copy.into(), script.into())
    }
}

/// A file of the skill, opened as every file of it: confined.
fn of_skill(skill: &Skill, path: &str) -> Result<ScriptSource<'static>, String> {
    let read = || {
        let relative = skill.root.relative(path)?;
        let file = skill.root.file(&relative)?;
        Ok((relative, read_whole(&file, limits::SCRIPT_BYTES)?))
    };
    let (relative, piece) =
        read().map_err(|refusal| skill.explain("the script", "run", path, &refusal))?;
    if piece.more {
        return Err(format!(
            "the script `{path}` of the skill `{}` is larger than {} MiB: give a `script` that \
             runs it with `runpy.run_path`",
            skill.name,
            limits::SCRIPT_BYTES >> 20
        ));
    }
    Ok(ScriptSource { path: Some(relative), bytes: piece.bytes.into() })
}
