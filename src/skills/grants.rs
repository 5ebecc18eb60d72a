//! What a sandboxed script of a skill may use: the skill's folder and a temporary
//! one to write in; the system's programs and libraries and its interpreter to
//! read; and what the user grants.
//!
//! Landlock grants whole trees and takes nothing back. So where something that
//! must stay hidden (other skills, settings, the key) lies in a tree that is only
//! read, what lies around it is granted entry by entry; where it lies in a tree to
//! be written in, there can be no sandbox, and that is said.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Confinement, Scripts};
use crate::limits;
use crate::settings::{SCRIPT_SANDBOX, SCRIPT_SANDBOX_READ, SCRIPT_SANDBOX_WRITE};
use crate::skills::python::{Interpreter, variable};
use crate::world::files;
use crate::world::process::Confine;
use crate::world::sandbox::{Grants, Sandbox};

/// Programs, libraries and their data.
const SYSTEM: [&str; 9] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/home/linuxbrew/.linuxbrew",
];

/// Settings of the system that programs read: names, fonts, time zones, and of
/// certificates the public part only.
const SETTINGS: [&str; 33] = [
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    "/etc/R",
    "/etc/alternatives",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/ghostscript",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/libreoffice",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/papersize",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/texmf",
    "/etc/timezone",
];

/// What programs look up elsewhere: the number of processors, fonts.
const REST: [&str; 4] = [
    "/sys/devices/system/cpu",
    "/var/cache/fontconfig",
    "/var/lib/ghostscript",
    "/var/lib/texmf",
];

/// What `multiprocessing` cannot do without: locks and shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// What belongs to a Python beside its program, in its prefix.
const OF_PYTHON: [&str; 6] = ["bin", "lib", "lib64", "libexec", "pyvenv.cfg", "ssl"];

/// Variables with folders of programs and of libraries.
const SEARCHED: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH"];

/// Everything that decides about grants.
#[derive(Debug)]
pub struct Case<'a> {
    /// The folder of the skill whose script it is.
    pub folder: Option<&'a Path>,
    /// What runs it.
    pub python: &'a Interpreter,
    /// How scripts run.
    pub scripts: &'a Scripts,
    /// What the user grants and hides.
    pub confinement: &'a Confinement,
    /// The folders in which other skills lie.
    pub skills_folders: &'a [PathBuf],
    /// A folder of this one run, in which its script lies.
    pub source: Option<&'a Path>,
    /// A folder of this one run for what it wants to put somewhere.
    pub temporary: Option<&'a Path>,
}

impl Case<'_> {
    /// What a program that has `limit` does to itself before it starts, or why that
    /// is impossible here.
    pub fn confine(&self, limit: Duration) -> Result<Confine, String> {
        let sandbox = self.grants().and_then(|grants| {
            Sandbox::new(&grants, limit).map_err(|unavailable| unavailable.to_string())
        });
        match sandbox {
            Ok(sandbox) => Ok(Arc::new(move || sandbox.enter())),
            Err(cause) => Err(format!(
                "{SCRIPT_SANDBOX} is on, and there can be no sandbox: {cause}"
            )),
        }
    }

    /// The grants, or why they cannot be given.
    pub fn grants(&self) -> Result<Grants, String> {
        let private = self.private();
        let own = self.folder.and_then(real);
        if let Some(held) = own.as_ref().and_then(|own| held_in(own, &private)) {
            return Err(format!(
                "the skill's folder holds {}, which scripts must not read: move it elsewhere",
                held.display()
            ));
        }
        let mut write: Vec<PathBuf> = own.into_iter().collect();
        let others = self.other_skills();
        let hidden: Vec<PathBuf> = private.into_iter().chain(others).collect();
        for folder in &self.confinement.write {
            write.push(Self::checked(folder, &hidden)?);
        }
        write.extend(self.temporary.map(PathBuf::from));
        write.extend(real(SHARED_MEMORY));
        let mut read: Vec<PathBuf> = self.source.map(PathBuf::from).into_iter().collect();
        for path in self.to_read() {
            grant_around(&path, &hidden, &mut read);
        }
        Ok(Grants { read, write })
    }

    /// A folder of `SCRIPT_SANDBOX_WRITE`, if all of it may be granted.
    fn checked(folder: &Path, hidden: &[PathBuf]) -> Result<PathBuf, String> {
        let shown = folder.display();
        let real = real(folder).filter(|real| real.is_dir()).ok_or_else(|| {
            format!("{SCRIPT_SANDBOX_WRITE} names {shown}, which is no folder: make it first")
        })?;
        match held_in(&real, hidden) {
            Some(held) => Err(format!(
                "{SCRIPT_SANDBOX_WRITE} names {shown}, and {}, which scripts must not touch, is in it: \
                 name a folder beside that",
                held.display()
            )),
            None => Ok(real),
        }
    }

    /// Settings and credentials, as far as they exist.
    fn private(&self) -> Vec<PathBuf> {
        let hidden = self.confinement.hidden.iter();
        hidden.filter_map(real).collect()
    }

    /// The folders of skills, and where links in them lead.
    fn other_skills(&self) -> Vec<PathBuf> {
        let roots = || self.skills_folders.iter().filter_map(real);
        let entries = roots().filter_map(|root| fs::read_dir(root).ok()).flatten();
        let links = entries.flatten().filter_map(|entry| {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            is_link.then(|| real(entry.path()))?
        });
        let own = self.folder.and_then(real);
        let others = links.filter(|link| Some(link) != own.as_ref());
        roots().chain(others).collect()
    }

    fn to_read(&self) -> Vec<PathBuf> {
        let fixed = SYSTEM.iter().chain(&SETTINGS).chain(&REST);
        let mut paths: Vec<PathBuf> = fixed.map(PathBuf::from).collect();
        paths.extend(of_interpreter(&self.python.program));
        let home = variable(self.scripts, "HOME").map(Path::new);
        // What a user has installed by `pip install --user`.
        let base = variable(self.scripts, "PYTHONUSERBASE").map(PathBuf::from);
        let base = base.or_else(|| Some(home?.join(".local")));
        paths.extend(base.map(|base| base.join("lib")));
        // A whole home in a search path is somebody's slip, and too much.
        let user = self.scripts.user_folder.as_path();
        let is_broad =
            |path: &Path| user.starts_with(path) || home.is_some_and(|home| home.starts_with(path));
        let lists = SEARCHED
            .iter()
            .filter_map(|name| variable(self.scripts, name));
        let searched = lists.flat_map(parts).filter_map(real);
        paths.extend(searched.filter(|path| !is_broad(path)));
        paths.extend(self.confinement.read.iter().cloned());
        paths
    }

    /// What a script that was refused something should be told.
    pub fn explain(&self) -> String {
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

/// What an interpreter consists of: its prefix, and that of the one it leads to.
fn of_interpreter(program: &Path) -> Vec<PathBuf> {
    let mut programs = vec![program.to_path_buf()];
    programs.extend(real(program));
    let mut found = Vec::new();
    while let Some(program) = programs.pop() {
        let Some(folder) = program.parent() else {
            continue;
        };
        let Some(prefix) = folder.parent() else {
            continue;
        };
        found.push(program.clone());
        if folder.ends_with("shims") {
            // A version manager: what it starts lies beside its shims.
            found.push(prefix.to_path_buf());
        } else if folder.ends_with("bin") {
            found.extend(OF_PYTHON.map(|part| prefix.join(part)));
        }
        programs.extend(base_of_venv(prefix).filter(|base| !found.contains(base)));
    }
    found
}

/// The interpreter that a venv with copied programs was made from.
fn base_of_venv(venv: &Path) -> Option<PathBuf> {
    let text = files::read_whole(&venv.join("pyvenv.cfg"), limits::VENV_SETTINGS_BYTES).ok()?;
    let text = String::from_utf8(text).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    let (_, home) = lines.find(|(name, _)| name.trim() == "home")?;
    real(Path::new(home.trim()).join("python3"))
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

fn real(path: impl AsRef<Path>) -> Option<PathBuf> {
    path.as_ref().canonicalize().ok()
}

/// The absolute paths of a list as in `PATH`.
fn parts(list: &OsStr) -> impl Iterator<Item = PathBuf> {
    let parts = list.as_bytes().split(|&byte| byte == b':');
    let parts = parts.map(|part| PathBuf::from(OsStr::from_bytes(part)));
    parts.filter(|path| path.is_absolute())
}
