//! The paths that a sandboxed script may use. It may write in the skill's folder and in a
//! temporary one; it may read the system's programs and libraries and its interpreter; and
//! the user may grant more.
//!
//! Landlock grants whole trees and cannot exclude parts of them. If a path that must stay
//! hidden (other skills, settings, the key) is in a readable tree, the entries around it
//! are granted one by one; if it is in a writable tree, no sandbox is possible, and that is
//! an error.

mod system;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::private::{PrivateEntries, is_private_name};
use crate::protected::{self, canonical, is_skill, without_following};
use crate::python::{Interpreter, is_executable};
use crate::{SandboxConfig, ScriptSettings, SkillsFolder};
use base::error::Fault;
use base::limits;
use base::settings::{SCRIPT_SANDBOX, SCRIPT_SANDBOX_READ, SCRIPT_SANDBOX_WRITE};
use host::confined::VENV_MARKER;
use host::files;
use host::files::split_path_list;
use host::process::Restrictions;
use host::sandbox::{Grants, Sandbox};
use system::{NEVER_GRANTED, OTHER_DATA, SYSTEM_FOLDERS, SYSTEM_SETTINGS, VERSION_FILES};

/// Folder of the locks and shared memory that `multiprocessing` needs.
const SHARED_MEMORY: &str = "/dev/shm";

/// The entries of a Python's prefix that scripts may read.
const PYTHON_PARTS: [&str; 8] =
    ["bin", "etc", "lib", "lib64", "libexec", "share", "ssl", VENV_MARKER];

/// Variables that list folders of programs or libraries.
const SEARCH_VARIABLES: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH"];

/// The input that determines the grants for one program.
#[derive(Debug)]
pub struct GrantRequest<'a> {
    /// The folder of the skill whose script runs; `None` for an interpreter query.
    pub folder: Option<&'a Path>,
    /// The interpreter; `None` for a command without a venv.
    pub python: Option<&'a Interpreter>,
    /// Whether the working folder may be read.
    pub reads_user_folder: bool,
    /// The settings of scripts.
    pub scripts: &'a ScriptSettings,
    /// The paths that the user grants and hides.
    pub confinement: &'a SandboxConfig,
    /// The skills folders, with other skills.
    pub skills_folders: &'a [SkillsFolder],
    /// A temporary folder of this run that holds the script.
    pub source: Option<&'a Path>,
    /// A temporary folder of this run for the script's files.
    pub temporary: Option<&'a Path>,
}

impl GrantRequest<'_> {
    /// The restrictions that the program's process applies before it starts, or why no
    /// sandbox is possible. `limit` is the program's time limit.
    pub fn restrictions(&self, limit: Duration) -> Result<Restrictions, Fault> {
        let sandbox = self
            .grants()
            .and_then(|grants| Sandbox::new(&grants, limit).map_err(Fault::without_fix));
        match sandbox {
            Ok(sandbox) => {
                Ok(Restrictions { enter: Arc::new(move || sandbox.enter()), scopes_signals: true })
            }
            Err(Fault { message, fix }) => {
                let message =
                    format!("{SCRIPT_SANDBOX} is on, but no sandbox is possible: {message}");
                Err(Fault { message, fix })
            }
        }
    }

    /// The grants, or why they cannot be given.
    pub fn grants(&self) -> Result<Grants, Fault> {
        let private = self.private_paths();
        let mut hidden: Vec<PathBuf> = private.into_iter().chain(self.other_skills()).collect();
        let mut write: Vec<PathBuf> = self.skill_folder(&hidden)?.into_iter().collect();
        let places = self.script_writable_folders();
        for folder in &self.confinement.write {
            write.push(check_write_grant(folder, &hidden, &places)?);
        }
        write.extend(canonical(SHARED_MEMORY));
        let source = self.source.and_then(canonical);
        if let Some(source) = &source
            && let Some(folder) = write.iter().find(|folder| source.starts_with(folder))
        {
            let message = format!(
                "temporary files would be in {}, where scripts may write",
                folder.display()
            );
            return Err(Fault::new(message, "set TMPDIR to another folder"));
        }
        write.extend(self.temporary.and_then(canonical));
        let mut read: Vec<PathBuf> = source.into_iter().collect();
        for path in self.readable_paths(&places)? {
            grant_around(&path, &hidden, &mut read);
        }
        read.extend(self.version_files());
        if let Some(folder) = self.readable_user_folder() {
            let most = limits::HIDDEN_ENTRIES;
            let private: Vec<PathBuf> = protected::private_paths(self.scripts).collect();
            let folders = [folder];
            hidden.extend(PrivateEntries::find(&private, &folders, most).all_paths());
            for path in direct_entries(&folders[0]) {
                grant_around(&path, &hidden, &mut read);
            }
        }
        // Not `hidden`: it lies in a folder of skills.
        read.extend(self.venv_paths());
        Ok(Grants { read, write })
    }

    /// The real path of the skill's folder. If it is a link, it must lead to a skill.
    fn skill_folder(&self, hidden: &[PathBuf]) -> Result<Option<PathBuf>, Fault> {
        let Some(own) = self.folder.and_then(canonical) else {
            return Ok(None);
        };
        let shown = own.display();
        if let Some(held) = first_inside(&own, hidden) {
            let message = format!(
                "the skill's folder holds {}, which its scripts must not access",
                held.display()
            );
            return Err(Fault::new(message, "move it elsewhere"));
        }
        let is_link = self.folder.and_then(without_following).as_ref() != Some(&own);
        if self.contains_home(&own) || is_link && !is_skill(&own) {
            let message = format!("the skill is a link to {shown}, which is not a skill");
            return Err(Fault::without_fix(message));
        }
        Ok(Some(own))
    }

    /// The folders in which scripts of this and other skills may create links.
    fn script_writable_folders(&self) -> Vec<PathBuf> {
        let own = self.folder.and_then(canonical);
        let granted = self.confinement.write.iter().filter_map(canonical);
        let shared = canonical(SHARED_MEMORY);
        let skills = self.other_skills().into_iter().chain(own);
        skills.chain(granted).chain(shared).collect()
    }

    /// Files with settings and credentials (existing or not) and paths that are never
    /// granted.
    fn private_paths(&self) -> Vec<PathBuf> {
        let hidden = protected::private_paths(self.scripts);
        hidden.chain(NEVER_GRANTED.iter().filter_map(canonical)).collect()
    }

    /// The skills folders, and the skills that links in them lead to.
    fn other_skills(&self) -> Vec<PathBuf> {
        // A skills folder may be the skill itself.
        let own = self.folder.and_then(canonical);
        let is_other = |path: &PathBuf| Some(path) != own.as_ref();
        let roots = self.skills_folders.iter().filter_map(canonical).filter(is_other).collect();
        let mut others = protected::skill_places(self.scripts, roots);
        others.retain(is_other);
        others
    }

    /// The working folder, if the program may read it: not where it is the home, a folder above
    /// it, or `/`.
    fn readable_user_folder(&self) -> Option<PathBuf> {
        let folder = canonical(&self.scripts.user_folder).filter(|_| self.reads_user_folder)?;
        let is_broad = self.contains_home(&folder) || folder.parent().is_none();
        (!is_broad).then_some(folder)
    }

    fn readable_paths(&self, places: &[PathBuf]) -> Result<Vec<PathBuf>, Fault> {
        let fixed = SYSTEM_FOLDERS.iter().chain(&SYSTEM_SETTINGS).chain(&OTHER_DATA);
        let mut paths: Vec<PathBuf> = fixed.map(PathBuf::from).collect();
        paths.extend(self.interpreter_paths(places));
        // The packages of `pip install --user`.
        let base = self.scripts.variable("PYTHONUSERBASE").map(PathBuf::from);
        let base = base.or_else(|| Some(self.home()?.join(".local")));
        let base = base.map(|base| base.join("lib"));
        let lists = SEARCH_VARIABLES.iter().filter_map(|name| self.scripts.variable(name));
        let searched = lists.flat_map(split_path_list).map(PathBuf::from);
        let searched = searched.filter(|path| path.is_absolute()).chain(base);
        // A whole home in a search path is a mistake, and too broad.
        let user = &self.scripts.user_folder;
        let is_broad = |path: &PathBuf| self.contains_home(path) || user.starts_with(path);
        let searched = searched.filter_map(|path| resolve_trusted(&path, places));
        paths.extend(searched.filter(|path| !is_broad(path)));
        for path in self.confinement.read.iter().filter(|path| path.exists()) {
            let found = resolve_trusted(path, places);
            paths.push(found.ok_or_else(|| untrusted_link_error(SCRIPT_SANDBOX_READ, path))?);
        }
        Ok(paths)
    }

    /// The files by which version managers choose a Python for the skill's folder, without
    /// links, which may lead anywhere.
    fn version_files(&self) -> Vec<PathBuf> {
        let above = self.folder.into_iter().flat_map(Path::ancestors);
        let files = above.flat_map(|folder| VERSION_FILES.map(|name| folder.join(name)));
        let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        files.filter(is_file).filter_map(without_following).collect()
    }

    /// The files of the interpreter and of what it starts: a venv's base interpreter, a
    /// version manager. The skill's venv is not trusted to name the base: a prefix counts
    /// only if it looks like a Python's.
    fn interpreter_paths(&self, places: &[PathBuf]) -> Vec<PathBuf> {
        let Some(python) = self.python else {
            return Vec::new();
        };
        let program = &python.program;
        if python.venv.is_none() && resolve_trusted(program, places).is_none() {
            return Vec::new();
        }
        let folder = program.parent().unwrap_or(program);
        let prefix = folder.parent().unwrap_or(folder);
        let mut found = Vec::new();
        if python.venv.is_none() {
            found.push(program.clone());
            if folder.ends_with("shims")
                && canonical(prefix).is_some_and(|it| !self.contains_home(&it))
            {
                // A version manager keeps its interpreters next to its shims.
                found.push(prefix.to_path_buf());
            } else if prefix.join(VENV_MARKER).is_file() {
                found.extend(self.python_parts(prefix));
            }
        }
        let bases = [canonical(program), venv_base(prefix)].into_iter().flatten();
        for base in bases.filter(|base| is_executable(base)) {
            let prefix = base.parent().filter(|folder| folder.ends_with("bin"));
            let prefix = prefix.and_then(Path::parent);
            if let Some(prefix) = prefix.filter(|prefix| has_library(prefix)) {
                found.extend(self.python_parts(prefix));
            }
        }
        found
    }

    /// The files of the skill's venv, for an interpreter query.
    fn venv_paths(&self) -> Vec<PathBuf> {
        let venv = self.python.and_then(|python| python.venv.as_ref());
        let venv = venv.into_iter().filter(|_| self.folder.is_none());
        venv.filter(|venv| venv.join(VENV_MARKER).is_file())
            .flat_map(|venv| self.python_parts(venv))
            .collect()
    }

    /// The parts of a Python in this prefix, without links that lead out of it.
    fn python_parts(&self, prefix: &Path) -> Vec<PathBuf> {
        let Some(prefix) = canonical(prefix).filter(|prefix| !self.contains_home(prefix)) else {
            return Vec::new();
        };
        let parts = PYTHON_PARTS.iter().filter_map(|part| canonical(prefix.join(part)));
        parts.filter(|part| part.starts_with(&prefix)).collect()
    }

    fn home(&self) -> Option<&Path> {
        self.scripts.variable("HOME").map(Path::new)
    }

    /// Whether the path contains the user's home.
    fn contains_home(&self, path: &Path) -> bool {
        let home = self.home();
        home.is_some_and(|home| home.starts_with(path))
            || home.and_then(canonical).is_some_and(|home| home.starts_with(path))
    }

    /// Advice for a script that was denied access.
    pub fn denial_hint(&self) -> String {
        let more = match self.confinement.write.as_slice() {
            [] => String::new(),
            folders => {
                let folders = folders.iter().map(|folder| folder.display().to_string());
                format!(" and {}", folders.collect::<Vec<_>>().join(", "))
            }
        };
        let own = if self.folder.is_some() { "in its skill's folder, " } else { "" };
        let list = if self.readable_user_folder().is_some() {
            "; it may read what is in the working folder (not `.env*` and `.git`), but not list it \
             (read_file does)"
        } else {
            ""
        };
        format!(
            "it ran in a sandbox: it may write {own}in $TMPDIR{more}, and has no network{list}; the user \
             can grant more with {SCRIPT_SANDBOX_WRITE} and {SCRIPT_SANDBOX_READ}"
        )
    }
}

/// The sandbox for an `InterpreterQuery`, which belongs to no skill; `None` if scripts run
/// without a sandbox. On an error (no sandbox is possible) the interpreter must not be started.
pub fn query_restrictions(
    python: &Interpreter,
    scripts: &ScriptSettings,
    skills_folders: &[SkillsFolder],
    limit: Duration,
) -> Result<Option<Restrictions>, Fault> {
    let Some(confinement) = &scripts.sandbox else {
        return Ok(None);
    };
    let case = GrantRequest {
        folder: None,
        python: Some(python),
        reads_user_folder: false,
        scripts,
        confinement,
        skills_folders,
        source: None,
        temporary: None,
    };
    case.restrictions(limit).map(Some)
}

/// Returns the real path of a folder of `SCRIPT_SANDBOX_WRITE`, if it may be granted.
fn check_write_grant(
    folder: &Path,
    hidden: &[PathBuf],
    places: &[PathBuf],
) -> Result<PathBuf, Fault> {
    let shown = folder.display();
    if !folder.exists() {
        let message = format!("{SCRIPT_SANDBOX_WRITE} names {shown}, which does not exist");
        return Err(Fault::new(message, "create it first"));
    }
    if !folder.is_dir() {
        let message = format!("{SCRIPT_SANDBOX_WRITE} names {shown}, which is not a folder");
        return Err(Fault::new(message, "name a folder"));
    }
    let found = resolve_trusted(folder, places);
    let found = found.ok_or_else(|| untrusted_link_error(SCRIPT_SANDBOX_WRITE, folder))?;
    match first_inside(&found, hidden) {
        Some(held) => {
            let held = held.display();
            let message = format!(
                "{SCRIPT_SANDBOX_WRITE} names {shown}, and {held}, which scripts must not access, is in it"
            );
            Err(Fault::new(message, "name a folder next to it"))
        }
        None => Ok(found),
    }
}

fn untrusted_link_error(name: &str, path: &Path) -> Fault {
    let message = format!(
        "{name} names {}, which leads over a link in a folder where scripts may write",
        path.display()
    );
    Fault::new(message, "name its target, if you mean that")
}

/// The real path of an absolute path; `None` if it leads over a link in one of these
/// folders.
fn resolve_trusted(path: &Path, places: &[PathBuf]) -> Option<PathBuf> {
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
        // A root component restarts the path, as `join` does.
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
    canonical(&at).filter(|real| *real == at)
}

/// The entries of a folder, except private ones and links, which may lead anywhere.
fn direct_entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_granted = |entry: &fs::DirEntry| {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        !is_link && !is_private_name(&entry.file_name().to_string_lossy())
    };
    entries.filter(is_granted).map(|entry| entry.path())
}

/// The interpreter that a venv with copied programs was created from.
fn venv_base(venv: &Path) -> Option<PathBuf> {
    let text = files::read_whole(&venv.join(VENV_MARKER), limits::VENV_SETTINGS_BYTES).ok()?;
    let text = String::from_utf8(text).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    let (_, home) = lines.find(|(name, _)| name.trim() == "home")?;
    canonical(Path::new(home.trim()).join("python3"))
}

/// Whether this prefix holds a Python's modules, as in `lib/python3.11`.
fn has_library(prefix: &Path) -> bool {
    ["lib", "lib64"].iter().any(|lib| {
        let versions = fs::read_dir(prefix.join(lib)).into_iter().flatten().flatten();
        versions
            .filter(|version| version.file_name().as_bytes().starts_with(b"py"))
            .any(|version| version.path().join("os.py").is_file())
    })
}

/// Grants reading of `path` or, if it contains a hidden path, of the entries around that.
/// Links are not followed there, as they may lead anywhere.
fn grant_around(path: &Path, hidden: &[PathBuf], granted: &mut Vec<PathBuf>) {
    let Some(path) = canonical(path) else { return };
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if first_inside(&path, hidden).is_none() {
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

/// The first of `hidden` that is `folder` or inside it.
fn first_inside<'h>(folder: &Path, hidden: &'h [PathBuf]) -> Option<&'h PathBuf> {
    hidden.iter().find(|hidden| hidden.starts_with(folder))
}
