//! The source of a script, read once through `host/confined`: the bytes shown to the user are
//! the bytes that run. This file must not open a script by its path.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::slips::{self, ShellCall};
use super::{RunPythonArguments, module};
use crate::tools::ToolContext;
use crate::tools::program::StartFolder;
use crate::tools::schema::{call_of_script, script_paths};
use crate::tools::user_files::UserFiles;
use base::limits;
use base::text;
use host::confined::{OpenError, PathTarget, Root, read_whole};
use host::scratch::Scratch;
use skills::{Skill, split_words};

/// Python program that runs the copy of a script as Python runs the script itself.
const LOADER: &[u8] = include_bytes!("loader.py");

/// Environment variable, with its value, that keeps the working folder out of `sys.path` when
/// Python (3.11 or later) runs a command (`-c`). The loader removes it from the environment, so
/// that of the script's children only those of `multiprocessing` are affected, which inherit the
/// flag and receive a `sys.path`.
pub(super) const SAFE_PATH: (&str, &str) = ("PYTHONSAFEPATH", "skills-runner");

/// The source of a script.
pub(super) struct ScriptSource<'a> {
    /// The file; `None` for source that the model wrote.
    pub file: Option<ScriptFile>,
    /// The arguments.
    pub args: Cow<'a, [String]>,
    /// A line about a path that was taken for another.
    pub note: Option<String>,
    /// The bytes to run.
    pub bytes: Cow<'a, [u8]>,
}

/// The file of a script.
pub(super) struct ScriptFile {
    /// Path relative to `folder`.
    pub path: String,
    /// The skill's folder, or the user's.
    pub folder: PathBuf,
    /// Whether it is one of the skill.
    pub is_of_skill: bool,
}

impl ScriptSource<'_> {
    /// Reads the source from a call's arguments or from the file that they name. The error is a
    /// text for the model.
    pub(super) fn read<'a>(
        arguments: &'a RunPythonArguments,
        (skill, is_recent): (Option<&Skill>, bool),
        context: &ToolContext<'_>,
    ) -> Result<ScriptSource<'a>, String> {
        let file = arguments.file_path.as_deref().filter(|path| !path.is_empty());
        let args = &arguments.args;
        match (arguments.script.as_deref(), file) {
            (Some(script), Some(_)) if !script.trim().is_empty() => {
                Err("give either `script` or `file_path`, not both".into())
            }
            (_, Some(path)) => read_file(path, args, (skill, is_recent), context),
            (Some(script), None) if script.len() > limits::SCRIPT_BYTES => {
                Err(format!("`script` is larger than {} bytes", limits::SCRIPT_BYTES))
            }
            (Some(script), None) => read_script(script, args, skill, context),
            (None, None) => {
                Err("give `script` (Python source) or `file_path` (a script of the skill)".into())
            }
        }
    }

    /// Returns the text of a script file of the skill, with invalid UTF-8 replaced; `None` for
    /// source that the model wrote.
    pub(super) fn skill_script_text(&self) -> Option<String> {
        let text = || String::from_utf8_lossy(&self.bytes).into_owned();
        self.skill_path().map(|_| text())
    }

    /// The path of a script of the skill.
    pub(super) fn skill_path(&self) -> Option<&str> {
        self.file.as_ref().filter(|file| file.is_of_skill).map(|file| &*file.path)
    }

    /// Returns an error if the file of a script, which runs by its path, changed since it was read
    /// and shown to the user.
    pub(super) fn check_unchanged(&self) -> Result<(), String> {
        let Some(ScriptFile { path, folder, .. }) = &self.file else { return Ok(()) };
        let target =
            Root::open(folder).and_then(|root| root.open_target(&root.relative_path(path)?));
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
    /// where `folder` is that of its skill, or else the user's.
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
        let Some(file) = &self.file else {
            let copy = OsString::from(scratch.write_file("script.py", &self.bytes)?);
            return arguments(String::new(), copy.clone(), copy);
        };
        let path = &file.path;
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
            return arguments(module, copy.into(), file.folder.join(path).into());
        }
        // A name with a leading dash must not become an option, even if the script restarts
        // itself.
        let prefix = if path.starts_with('-') { "./" } else { "" };
        let script = format!("{prefix}{path}");
        arguments(module, copy.into(), script.into())
    }
}

/// Reads the Python that a script means, or the file that a line for a shell runs. The error says
/// what to do with anything else.
fn read_script<'a>(
    script: &'a str,
    args: &'a [String],
    skill: Option<&Skill>,
    context: &ToolContext<'_>,
) -> Result<ScriptSource<'a>, String> {
    let command = if context.user_files { "use `run_command`" } else { "run it by subprocess.run" };
    let script = slips::python_source(script)
        .map_err(|language| format!("`script` is {language}, not Python: {command}"))?;
    let find_skills = |path: &str| find_script(skill?, path);
    let read_users = |path: &str| read_from_user(path, Cow::default(), context).ok();
    let find = |path: &str| find_skills(path).or_else(|| read_users(path).map(|_| path.into()));
    if let Some(words) = slips::shell_words(&script, |path| find(path).is_some()) {
        let call = ShellCall::parse(&words, find)
            .ok_or_else(|| format!("`script` is a line for a shell, not Python: {command}"))?;
        let args = Cow::Owned([&call.args[..], args].concat());
        return match skill.filter(|_| find_skills(&call.file).is_some()) {
            Some(skill) => read_from_skill(skill, &call.file, args),
            None => read_from_user(&call.file, args, context),
        };
    }
    let bytes = match script {
        Cow::Borrowed(script) => Cow::Borrowed(script.as_bytes()),
        Cow::Owned(script) => Cow::Owned(script.into_bytes()),
    };
    Ok(ScriptSource { file: None, args: Cow::Borrowed(args), note: None, bytes })
}

/// Reads a file of the skill, or else one of the user, also by its absolute path if the call names
/// no skill. Words behind the path are arguments.
fn read_file<'a>(
    path: &str,
    args: &'a [String],
    (skill, is_recent): (Option<&Skill>, bool),
    context: &ToolContext<'_>,
) -> Result<ScriptSource<'a>, String> {
    let failed = match skill.map(|skill| read_from_skill(skill, path, Cow::Borrowed(args))) {
        Some(Ok(source)) => return Ok(source),
        Some(Err(error)) => Some(error),
        None => None,
    };
    let words = split_words(path, limits::SCRIPT_ARGUMENTS_BYTES);
    let call = ShellCall::parse(&words, |path| find_script(skill?, path));
    if let (Some(skill), Some(call)) = (skill, call.filter(|_| words.len() > 1)) {
        let call_args = [&call.args[..], args].concat();
        return read_from_skill(skill, &call.file, Cow::Owned(call_args));
    }
    let is_absent = |skill: &Skill| matches!(skill.resolve_file(path), Err(OpenError::NotFound));
    if let (Some(skill), Some(error)) = (skill, &failed)
        && !is_recent
        && !is_absent(skill)
    {
        return Err(error.clone());
    }
    match (read_from_user(path, Cow::Borrowed(args), context), failed) {
        (Ok(source), _) => Ok(source),
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(call_of_script(path, args, context).unwrap_or(error)),
    }
}

/// Returns the path in the skill's folder of the script that a path means, perhaps only its end.
fn find_script(skill: &Skill, path: &str) -> Option<String> {
    let Ok(resolved) = skill.resolve_file(path) else {
        let mut same =
            script_paths(skill).into_iter().filter(|it| it.ends_with(&format!("/{path}")));
        return same.next().filter(|_| same.next().is_none());
    };
    matches!(resolved.target, PathTarget::File(_)).then_some(resolved.path)
}

/// Reads a file of the user as the file tools do.
fn read_from_user<'a>(
    path: &str,
    args: Cow<'a, [String]>,
    context: &ToolContext<'_>,
) -> Result<ScriptSource<'a>, String> {
    let opened = UserFiles::open(context)?.open_to_read(path)?;
    let PathTarget::File(open) = opened.target else {
        return Err(format!("`{}` is a folder", text::one_line(path, limits::SUMMARY_CHARS)));
    };
    let piece = read_whole(&open.file, limits::SCRIPT_BYTES).map_err(|error| error.to_string())?;
    if piece.has_more {
        return Err(format!("the script is larger than {} MiB", limits::SCRIPT_BYTES >> 20));
    }
    let folder = context.scripts.map(|scripts| scripts.user_folder.clone()).unwrap_or_default();
    let file = Some(ScriptFile { path: path.into(), folder, is_of_skill: false });
    Ok(ScriptSource { file, args, note: opened.note, bytes: piece.bytes.into() })
}

/// Reads a file of the skill through the confined root.
fn read_from_skill<'a>(
    skill: &Skill,
    path: &str,
    args: Cow<'a, [String]>,
) -> Result<ScriptSource<'a>, String> {
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
    let (path, note, piece) =
        read().map_err(|error| skill.file_error("the script", "run", path, &error))?;
    if piece.has_more {
        return Err(format!(
            "the script `{path}` of the skill `{}` is larger than {} MiB: give a `script` that \
             runs it with `runpy.run_path`",
            skill.name,
            limits::SCRIPT_BYTES >> 20
        ));
    }
    let file = Some(ScriptFile { path, folder: skill.path.clone(), is_of_skill: true });
    Ok(ScriptSource { file, args, note, bytes: piece.bytes.into() })
}
