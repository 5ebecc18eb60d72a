//! The Python packages that are installed, by looking at files: no interpreter is started.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::packages::{any_module_of, project_name};
use base::limits;

/// The packages and modules in folders of Python packages.
pub struct InstalledPackages {
    /// Normalized names of packages.
    pub names: BTreeSet<String>,
    /// Names of modules at the top.
    modules: BTreeSet<String>,
}

impl InstalledPackages {
    /// The packages in a venv itself.
    pub fn in_venv(venv: &Path) -> InstalledPackages {
        InstalledPackages::read(&package_folders(&venv.join("lib")))
    }

    /// The packages that an interpreter finds, those of the user in `home` included. `None`: it is
    /// not known where it looks.
    pub(crate) fn found_by(
        python: &Path,
        venv: Option<&Path>,
        home: Option<&OsStr>,
    ) -> Option<InstalledPackages> {
        let folders = folders_of(python, venv, home);
        (!folders.is_empty()).then(|| InstalledPackages::read(&folders))
    }

    /// The packages in folders.
    fn read(folders: &[PathBuf]) -> InstalledPackages {
        let mut installed = InstalledPackages { names: BTreeSet::new(), modules: BTreeSet::new() };
        let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
        let entries = entries.flat_map(|entries| entries.flatten().take(limits::ENTRIES_READ));
        for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            let package = name.strip_suffix(".dist-info");
            match package.or_else(|| name.split_once(".egg-info").map(|it| it.0)) {
                Some(package) => {
                    let package = package.split('-').next().unwrap_or(package);
                    installed.names.insert(project_name(package));
                }
                None => {
                    let module = name.split('.').next().unwrap_or(&name);
                    installed.modules.insert(module.to_string());
                }
            }
        }
        installed
    }

    /// Whether a package is there, or another one with a module of it.
    pub fn has(&self, package: &str) -> bool {
        // Packages share the folder of a namespace.
        let has_module = |module: &str| !module.contains('.') && self.modules.contains(module);
        self.names.contains(package) || any_module_of(package, has_module)
    }
}

/// The folders of packages in a folder of libraries, which has one for each version of Python.
fn package_folders(library: &Path) -> Vec<PathBuf> {
    let versions = fs::read_dir(library).into_iter().flatten().flatten().take(limits::LISTED_NAMES);
    let is_python = |name: &OsStr| name.to_string_lossy().starts_with("python3");
    let versions = versions.filter(|version| is_python(&version.file_name()));
    let folders = versions.flat_map(|version| {
        ["site-packages", "dist-packages"].map(|name| version.path().join(name))
    });
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The folders in which an interpreter finds packages. Empty: unknown.
fn folders_of(python: &Path, venv: Option<&Path>, home: Option<&OsStr>) -> Vec<PathBuf> {
    let mut libraries = Vec::new();
    let mut is_shared = true;
    if let Some(venv) = venv {
        libraries.extend(["lib", "lib64"].map(|name| venv.join(name)));
        let settings = fs::read_to_string(venv.join("pyvenv.cfg")).unwrap_or_default();
        is_shared = settings.replace(' ', "").contains("include-system-site-packages=true");
    }
    if is_shared
        && let Ok(program) = python.canonicalize()
        && let Some(prefix) = program.parent().and_then(Path::parent)
    {
        libraries.push(prefix.join("lib"));
        if prefix == Path::new("/usr") {
            libraries.push("/usr/local/lib".into());
        }
        libraries.extend(home.map(|home| Path::new(home).join(".local/lib")));
    }
    libraries.iter().flat_map(|library| package_folders(library)).collect()
}
