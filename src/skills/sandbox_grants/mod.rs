//! What a sandboxed script of a skill may use: the skill's folder and a temporary
//! one to write in; the system's programs and libraries and its interpreter to
//! read; and what the user grants.
//!
//! Landlock grants whole trees and takes nothing back. So where something that
//! must stay hidden (other skills, settings, the key) lies in a tree that is only
//! read, what lies around it is granted entry by entry; where it lies in a tree to
//! be written in, there can be no sandbox, and that is said.

mod system;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Confinement, ScriptSettings, parts};
use crate::limits;
use crate::settings::{SCRIPT_SANDBOX, SCRIPT_SANDBOX_READ, SCRIPT_SANDBOX_WRITE};
use crate::skills::boundary::Boundary;
use crate::skills::python::{Interpreter, is_executable, variable};
use crate::skills::skill::is_document;
use crate::world::confined::{MARK_OF_VENVS, identity};
use crate::world::files;
use crate::world::process::Restrictions;
use crate::world::sandbox::{Grants, Sandbox};
use system::{NEVER, OF_MANAGERS, REST, SETTINGS, SYSTEM};

/// What `multiprocessing` cannot do without: locks and shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// What belongs to a Python beside its program, in its prefix.
const OF_PYTHON: [&str; 8] =
    ["bin", "etc", "lib", "lib64", "libexec", "share", "ssl", MARK_OF_VENVS];

/// Variables with folders of programs and of libraries.
const SEARCHED: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH"];

/// Everything that decides about grants.
#[derive(Debug)]
pub(crate) struct GrantRequest<'a> {
    /// The folder of the skill whose script it is.
    pub folder: Option<&'a Path>,
    /// What runs it.
    pub python: &'a Interpreter,
    /// How scripts run.
    pub scripts: &'a ScriptSettings,
    /// What the user grants and hides.
    pub confinement: &'a Confinement,
    /// The folders in which other skills lie.
    pub skills_folders: &'a [PathBuf],
    /// A folder of this one run, in which its script lies.
    pub source: Option<&'a Path>,
    /// A folder of this one run for what it wants to put somewhere.
    pub temporary: Option<&'a Path>,
}

impl GrantRequest<'_> {
    /// What a program that has `limit` does to itself before it starts, or why that
    /// is impossible here.
    pub(crate) fn confine(&self, limit: Duration) -> Result<Restrictions, String> {
        let sandbox = self.grants().and_then(|grants| {
            Sandbox::new(&grants, limit).map_err(|unavailable| unavailable.to_string())
        });
        match sandbox {
            Ok(sandbox) => {
                Ok(Restrictions { enter: Arc::new(move || sandbox.enter()), scopes_signals: true })
            }
            Err(cause) => {
                Err(format!("{SCRIPT_SANDBOX} is on, and there can be no sandbox: {cause}"))
            }
        }
    }

    /// The grants, or why they cannot be given.
    pub(crate) fn grants(&self) -> Result<Grants, String> {
        let private = self.private();
        let hidden: Vec<PathBuf> = private.into_iter().chain(self.other_skills()).collect();
        let mut write: Vec<PathBuf> = self.own(&hidden)?.into_iter().collect();
        let places = self.places();
        for folder in &self.confinement.write {
            write.push(checked(folder, &hidden, &places)?);
        }
        write.extend(real(SHARED_MEMORY));
        let source = self.source.and_then(real);
        if let Some(source) = &source
            && let Some(folder) = write.iter().find(|folder| source.starts_with(folder))
        {
            return Err(format!(
                "temporary files would lie in {}, where scripts write: set TMPDIR to another folder",
                folder.display()
            ));
        }
        write.extend(self.temporary.and_then(real));
        let mut read: Vec<PathBuf> = source.into_iter().collect();
        for path in self.to_read(&places)? {
            grant_around(&path, &hidden, &mut read);
        }
        read.extend(self.choices());
        // Not `hidden`: it lies in a folder of skills.
        read.extend(self.venv());
        Ok(Grants { read, write })
    }

    /// The skill's folder, which may be a link, but to a skill.
    fn own(&self, hidden: &[PathBuf]) -> Result<Option<PathBuf>, String> {
        let Some(own) = self.folder.and_then(real) else {
            return Ok(None);
        };
        let shown = own.display();
        if let Some(held) = held_in(&own, hidden) {
            return Err(format!(
                "the skill's folder holds {}, which its scripts must not touch: move it elsewhere",
                held.display()
            ));
        }
        let is_link = self.folder.and_then(plain).as_ref() != Some(&own);
        if self.holds_home(&own) || is_link && !is_skill(&own) {
            return Err(format!("the skill is a link to {shown}, which is none"));
        }
        Ok(Some(own))
    }

    /// Where scripts, of this skill and of others, may put links.
    fn places(&self) -> Vec<PathBuf> {
        let own = self.folder.and_then(real);
        let granted = self.confinement.write.iter().filter_map(real);
        let shared = real(SHARED_MEMORY);
        let skills = self.other_skills().into_iter().chain(own);
        skills.chain(granted).chain(shared).collect()
    }

    /// Settings and credentials, also where they are still missing, and what is never
    /// granted.
    fn private(&self) -> Vec<PathBuf> {
        let hidden = self.confinement.hidden.iter();
        let hidden = hidden.filter_map(|path| real(path).or_else(|| plain(path)));
        hidden.chain(NEVER.iter().filter_map(real)).collect()
    }

    /// The folders of skills, and where links in them lead.
    fn other_skills(&self) -> Vec<PathBuf> {
        let forbidden = Boundary::of(self.scripts).draw();
        let is_forbidden = |path: &Path| {
            let found = identity(path);
            found.is_none_or(|found| forbidden.names(found).is_some())
        };
        let roots = || self.skills_folders.iter().filter_map(real);
        let entries = roots().filter_map(|root| fs::read_dir(root).ok()).flatten();
        // Links to anything else are no skills, and may lead to all there is.
        let links = entries.flatten().filter_map(|entry| {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            is_link
                .then(|| real(entry.path()).filter(|path| is_skill(path) && !is_forbidden(path)))?
        });
        let own = self.folder.and_then(real);
        let others = links.filter(|link| Some(link) != own.as_ref());
        roots().chain(others).collect()
    }

    fn to_read(&self, places: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
        let fixed = SYSTEM.iter().chain(&SETTINGS).chain(&REST);
        let mut paths: Vec<PathBuf> = fixed.map(PathBuf::from).collect();
        paths.extend(self.interpreter(places));
        // What a user has installed by `pip install --user`.
        let base = variable(self.scripts, "PYTHONUSERBASE").map(PathBuf::from);
        let base = base.or_else(|| Some(self.home()?.join(".local")));
        let base = base.map(|base| base.join("lib"));
        let lists = SEARCHED.iter().filter_map(|name| variable(self.scripts, name));
        let searched = lists.flat_map(parts).map(PathBuf::from);
        let searched = searched.filter(|path| path.is_absolute()).chain(base);
        // A whole home in a search path is somebody's slip, and too much.
        let user = &self.scripts.user_folder;
        let is_broad = |path: &PathBuf| self.holds_home(path) || user.starts_with(path);
        let searched = searched.filter_map(|path| steady(&path, places));
        paths.extend(searched.filter(|path| !is_broad(path)));
        for path in self.confinement.read.iter().filter(|path| path.exists()) {
            let found = steady(path, places);
            paths.push(found.ok_or_else(|| unsteady(SCRIPT_SANDBOX_READ, path))?);
        }
        Ok(paths)
    }

    /// By what version managers choose a Python for the skill's folder. Not links, which
    /// may lead anywhere.
    fn choices(&self) -> Vec<PathBuf> {
        let above = self.folder.into_iter().flat_map(Path::ancestors);
        let files = above.flat_map(|folder| OF_MANAGERS.map(|name| folder.join(name)));
        let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        files.filter(is_file).filter_map(plain).collect()
    }

    /// What the interpreter consists of, and what it leads to: a venv's base, a version
    /// manager. A venv of the skill is not trusted to say where that is: a prefix
    /// counts only if it looks like a Python's.
    fn interpreter(&self, places: &[PathBuf]) -> Vec<PathBuf> {
        let program = &self.python.program;
        if self.python.venv.is_none() && steady(program, places).is_none() {
            return Vec::new();
        }
        let folder = program.parent().unwrap_or(program);
        let prefix = folder.parent().unwrap_or(folder);
        let mut found = Vec::new();
        if self.python.venv.is_none() {
            found.push(program.clone());
            if folder.ends_with("shims") && real(prefix).is_some_and(|it| !self.holds_home(&it)) {
                // What it starts lies beside its shims.
                found.push(prefix.to_path_buf());
            } else if prefix.join(MARK_OF_VENVS).is_file() {
                found.extend(self.parts_of(prefix));
            }
        }
        let bases = [real(program), base_of_venv(prefix)].into_iter().flatten();
        for base in bases.filter(|base| is_executable(base)) {
            let prefix = base.parent().filter(|folder| folder.ends_with("bin"));
            let prefix = prefix.and_then(Path::parent);
            if let Some(prefix) = prefix.filter(|prefix| has_library(prefix)) {
                found.extend(self.parts_of(prefix));
            }
        }
        found
    }

    /// The skill's venv, for a program of our own that it runs.
    fn venv(&self) -> Vec<PathBuf> {
        let venv = self.python.venv.iter().filter(|_| self.folder.is_none());
        venv.filter(|venv| venv.join(MARK_OF_VENVS).is_file())
            .flat_map(|venv| self.parts_of(venv))
            .collect()
    }

    /// The parts of a Python in this prefix that really lie there.
    fn parts_of(&self, prefix: &Path) -> Vec<PathBuf> {
        let Some(prefix) = real(prefix).filter(|prefix| !self.holds_home(prefix)) else {
            return Vec::new();
        };
        let parts = OF_PYTHON.iter().filter_map(|part| real(prefix.join(part)));
        parts.filter(|part| part.starts_with(&prefix)).collect()
    }

    fn home(&self) -> Option<&Path> {
        variable(self.scripts, "HOME").map(Path::new)
    }

    /// Whether the user's home is in it.
    fn holds_home(&self, path: &Path) -> bool {
        let home = self.home();
        home.is_some_and(|home| home.starts_with(path))
            || home.and_then(real).is_some_and(|home| home.starts_with(path))
    }

    /// What a script that was refused something should be told.
    pub(crate) fn explain(&self) -> String {
        let more = match self.confinement.write.as_slice() {
            [] => String::new(),
            folders => {
                let folders = folders.iter().map(|folder| folder.display().to_string());
                format!(" and {}", folders.collect::<Vec<_>>().join(", "))
            }
        };
        format!(
            "the script ran in a sandbox: it may write in its skill's folder, in $TMPDIR{more}, and has no \
             network; the user can grant more with {SCRIPT_SANDBOX_WRITE} and {SCRIPT_SANDBOX_READ}"
        )
    }
}

/// Whether a skill's document lies in this folder.
fn is_skill(folder: &Path) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| is_document(&name))
}

/// A folder of `SCRIPT_SANDBOX_WRITE`, if all of it may be granted.
fn checked(folder: &Path, hidden: &[PathBuf], places: &[PathBuf]) -> Result<PathBuf, String> {
    let shown = folder.display();
    if !folder.exists() {
        return Err(format!(
            "{SCRIPT_SANDBOX_WRITE} names {shown}, which does not exist: make it first"
        ));
    }
    if !folder.is_dir() {
        return Err(format!("{SCRIPT_SANDBOX_WRITE} names {shown}, which is no folder: name one"));
    }
    let found = steady(folder, places);
    let found = found.ok_or_else(|| unsteady(SCRIPT_SANDBOX_WRITE, folder))?;
    match held_in(&found, hidden) {
        Some(held) => Err(format!(
            "{SCRIPT_SANDBOX_WRITE} names {shown}, and {}, which scripts must not touch, is in it: \
             name a folder beside that",
            held.display()
        )),
        None => Ok(found),
    }
}

fn unsteady(name: &str, path: &Path) -> String {
    format!(
        "{name} names {}, which leads over a link where scripts write: name what it leads to, if \
         you mean that",
        path.display()
    )
}

/// Where an absolute path leads, if it leads over no link in one of these places.
fn steady(path: &Path, places: &[PathBuf]) -> Option<PathBuf> {
    let words = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut left = words(path);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(word) = left.pop() {
        if word == ".." {
            at.pop();
            continue;
        }
        // The root begins anew, as `join` does.
        let next = at.join(&word);
        match fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > limits::LINKS || places.iter().any(|place| at.starts_with(place)) {
                    return None;
                }
                left.extend(words(&target));
            }
            Err(_) => at = next,
        }
    }
    real(&at).filter(|real| *real == at)
}

/// The interpreter that a venv with copied programs was made from.
fn base_of_venv(venv: &Path) -> Option<PathBuf> {
    let text = files::read_whole(&venv.join(MARK_OF_VENVS), limits::VENV_SETTINGS_BYTES).ok()?;
    let text = String::from_utf8(text).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    let (_, home) = lines.find(|(name, _)| name.trim() == "home")?;
    real(Path::new(home.trim()).join("python3"))
}

/// Whether a Python has its modules in this prefix: in `lib/python3.11` or the like.
fn has_library(prefix: &Path) -> bool {
    ["lib", "lib64"].iter().any(|lib| {
        let versions = fs::read_dir(prefix.join(lib)).into_iter().flatten().flatten();
        versions
            .filter(|version| version.file_name().as_bytes().starts_with(b"py"))
            .any(|version| version.path().join("os.py").is_file())
    })
}

/// Grants `path` to be read, or if something hidden lies in it, what lies around
/// that. Links there are not followed: they may lead anywhere.
fn grant_around(path: &Path, hidden: &[PathBuf], granted: &mut Vec<PathBuf>) {
    let Some(path) = real(path) else { return };
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if held_in(&path, hidden).is_none() {
        return granted.push(path);
    }
    let Ok(entries) = fs::read_dir(&path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            grant_around(&entry.path(), hidden, granted);
        }
    }
}

/// The first of `hidden` that lies in `folder` or is it.
fn held_in<'h>(folder: &Path, hidden: &'h [PathBuf]) -> Option<&'h PathBuf> {
    hidden.iter().find(|hidden| hidden.starts_with(folder))
}

/// Where it lies if it is no link itself.
fn plain(path: impl AsRef<Path>) -> Option<PathBuf> {
    let path = path.as_ref();
    Some(real(path.parent()?)?.join(path.file_name()?))
}

fn real(path: impl AsRef<Path>) -> Option<PathBuf> {
    path.as_ref().canonicalize().ok()
}
