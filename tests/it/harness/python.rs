//! The machine's real Python, and virtual environments that cost next to nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The interpreter itself: what answers to `python3` on `PATH` may be a
/// version manager's script, or a virtual environment's link.
pub(crate) fn interpreter() -> &'static Path {
    static INTERPRETER: OnceLock<PathBuf> = OnceLock::new();
    INTERPRETER.get_or_init(|| {
        let ask = "import sys; print(getattr(sys, '_base_executable', '') or sys.executable)";
        let output = Command::new("python3").args(["-I", "-c", ask]).output();
        let output = output.expect("the tests need a python3 on PATH");
        assert!(output.status.success(), "python3 does not run: {output:?}");
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    })
}

/// Writes a virtual environment, as `python3 -m venv --without-pip` makes it.
/// The real thing is made once for all tests; the others get a copy.
pub(super) fn write_venv(to: &Path) {
    static TEMPLATE: OnceLock<Vec<Entry>> = OnceLock::new();
    let template = TEMPLATE.get_or_init(|| {
        // Beside the first one that is wanted, so that it goes with that test's folder.
        let place = to.with_file_name("venv-template");
        let output = Command::new(interpreter())
            .args(["-I", "-m", "venv", "--without-pip"])
            .arg(&place)
            .output()
            .expect("the interpreter ran a moment ago");
        assert!(output.status.success(), "failed to make a venv: {output:?}");
        let mut entries = Vec::new();
        collect(&place, Path::new(""), &mut entries);
        fs::remove_dir_all(&place).expect("the folder was just made");
        entries
    });
    fs::create_dir_all(to).expect("the test's own folder");
    for entry in template {
        entry.write(to);
    }
}

/// The folder that a virtual environment imports installed packages from.
pub(super) fn site_packages(venv: &Path) -> PathBuf {
    let mut versions = fs::read_dir(venv.join("lib")).expect("a venv has a folder lib").flatten();
    let version = versions.next().expect("lib has a folder named after the version");
    version.path().join("site-packages")
}

/// One thing in a virtual environment, by its path in there.
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

/// Folders come before what is in them.
fn collect(venv: &Path, below: &Path, entries: &mut Vec<Entry>) {
    for entry in fs::read_dir(venv.join(below)).expect("the folder was just made").flatten() {
        let path = below.join(entry.file_name());
        let metadata = entry.metadata().expect("the file was just made");
        if metadata.is_symlink() {
            let target = fs::read_link(entry.path()).expect("a link");
            entries.push(Entry { path, kind: Kind::Link(target) });
        } else if metadata.is_dir() {
            entries.push(Entry { path: path.clone(), kind: Kind::Folder });
            collect(venv, &path, entries);
        } else {
            let bytes = fs::read(entry.path()).expect("the file was just made");
            let kind = Kind::File(bytes, metadata.permissions().mode());
            entries.push(Entry { path, kind });
        }
    }
}
