//! The machine's Python interpreter, and venvs that are cheap to create.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The interpreter itself. `python3` on `PATH` may be a version manager's script or the link of
/// a venv.
pub(crate) fn interpreter() -> &'static Path {
    static INTERPRETER: OnceLock<PathBuf> = OnceLock::new();
    INTERPRETER.get_or_init(|| {
        let source = "import sys; print(getattr(sys, '_base_executable', '') or sys.executable)";
        let output = Command::new("python3").args(["-I", "-c", source]).output();
        let output = output.expect("the tests need a python3 on PATH");
        assert!(output.status.success(), "python3 does not run: {output:?}");
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    })
}

/// Writes a venv as `python3 -m venv --without-pip` creates it. It is created once for all tests
/// and copied after that.
pub(super) fn write_venv(to: &Path) {
    static TEMPLATE: OnceLock<Vec<Entry>> = OnceLock::new();
    let template = TEMPLATE.get_or_init(|| {
        // Next to the first venv needed, so that it is deleted with that test's folder.
        let place = to.with_file_name("venv-template");
        let output = Command::new(interpreter())
            .args(["-I", "-m", "venv", "--without-pip"])
            .arg(&place)
            .output()
            .expect("the interpreter runs");
        assert!(output.status.success(), "failed to create a venv: {output:?}");
        let mut entries = Vec::new();
        collect(&place, Path::new(""), &mut entries);
        fs::remove_dir_all(&place).expect("the folder was just created");
        entries
    });
    fs::create_dir_all(to).expect("the test's own folder");
    for entry in template {
        entry.write(to);
    }
}

/// The folder from which a venv imports installed packages.
pub(super) fn site_packages(venv: &Path) -> PathBuf {
    let mut versions = fs::read_dir(venv.join("lib")).expect("a venv has a folder lib").flatten();
    let version = versions.next().expect("lib has a folder named after the version");
    version.path().join("site-packages")
}

/// A file, folder or link in a venv, with its relative path.
struct Entry {
    path: PathBuf,
    kind: Kind,
}

enum Kind {
    Folder,
    File(Vec<u8>, u32),
    Link(PathBuf),
}

impl Entry {
    fn write(&self, venv: &Path) {
        let path = venv.join(&self.path);
        let written = match &self.kind {
            Kind::Folder => fs::create_dir(&path),
            Kind::Link(target) => symlink(target, &path),
            Kind::File(bytes, mode) => fs::write(&path, bytes)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(*mode))),
        };
        written.unwrap_or_else(|error| panic!("failed to write {}: {error}", path.display()));
    }
}

/// Collects all entries; a folder precedes its content.
fn collect(venv: &Path, below: &Path, entries: &mut Vec<Entry>) {
    for entry in fs::read_dir(venv.join(below)).expect("the folder was just created").flatten() {
        let path = below.join(entry.file_name());
        let metadata = entry.metadata().expect("the file was just created");
        if metadata.is_symlink() {
            let target = fs::read_link(entry.path()).expect("a link");
            entries.push(Entry { path, kind: Kind::Link(target) });
        } else if metadata.is_dir() {
            entries.push(Entry { path: path.clone(), kind: Kind::Folder });
            collect(venv, &path, entries);
        } else {
            let bytes = fs::read(entry.path()).expect("the file was just created");
            let kind = Kind::File(bytes, metadata.permissions().mode());
            entries.push(Entry { path, kind });
        }
    }
}
