//! Any path, opened in a folder full of traps: no file outside is ever opened, and whatever
//! can be opened without following links can also be opened with `openat2`.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use host::confined::{Mechanism, OpenError, OpenFile, PathTarget, Root, WalkLimits, read_whole};

/// The contents of files outside only.
const CANARY: &[u8] = b"outside-canary";

/// Parts of paths, selected by a byte.
const PARTS: [&str; 32] = [
    "a",
    "b",
    "c",
    "file",
    "deep",
    "..",
    ".",
    "",
    "/",
    "out",
    "out-file",
    "out-absolute",
    "chain",
    "loop",
    "dangling",
    "in-file",
    "in-folder",
    "in-absolute",
    "up",
    "proc",
    "fifo",
    "socket",
    "null",
    "...",
    "..hidden",
    "\u{ff0e}\u{ff0e}",
    "a\\b",
    "self",
    "root-evil",
    "x y",
    "\n",
    "in-up",
];

/// Device and inode.
type Identity = (u64, u64);

/// A folder that is created once per process, and the files in it.
struct Trap {
    base: PathBuf,
    inside: BTreeSet<Identity>,
    /// The same folder, opened with `openat2` and component by component.
    beneath: Root,
    walked: Root,
}

/// See the module.
pub fn check(data: &[u8]) {
    static TRAP: OnceLock<Trap> = OnceLock::new();
    let trap = TRAP.get_or_init(|| create_trap().expect("a temporary folder can be filled"));
    let path = match data.split_first() {
        Some((0, codes)) => path_of_parts(codes),
        _ => OsStr::from_bytes(data).to_owned(),
    };
    let (beneath, walked) = (trap.open(&trap.beneath, &path), trap.open(&trap.walked, &path));
    match (&beneath, &walked) {
        (_, Err(OpenError::Link)) => {}
        (Ok(one), Ok(other)) => assert_eq!(one, other, "two different files at {path:?}"),
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string(), "{path:?}"),
        _ => panic!("{path:?}: {beneath:?} with openat2, {walked:?} component by component"),
    }
    for root in [&trap.beneath, &trap.walked] {
        trap.check_other_functions(root, &path);
        trap.check_folder(root, &path);
    }
}

/// A path of known parts.
fn path_of_parts(codes: &[u8]) -> OsString {
    let mut path = OsString::new();
    for (index, code) in codes.iter().enumerate() {
        if index > 0 {
            path.push("/");
        }
        path.push(PARTS[usize::from(*code) % PARTS.len()]);
    }
    path
}

fn create_trap() -> io::Result<Trap> {
    clear_old_folders()?;
    let base = folder_of(std::process::id());
    // SAFETY: `clear` may run at any exit, and running it twice is harmless.
    unsafe { libc::atexit(clear) };
    let root = base.join("root");
    for folder in ["root/a/b/c", "root/...", "root/deep/deep/deep", "outside/a", "root-evil/a"] {
        fs::create_dir_all(base.join(folder))?;
    }
    for file in [
        "file",
        "a/file",
        "a/b/file",
        "a/b/c/file",
        ".../file",
        "..hidden",
        "\u{ff0e}\u{ff0e}",
        "a\\b",
        "x y",
        "\n",
        "deep/deep/file",
    ] {
        fs::write(root.join(file), "inside")?;
    }
    for file in ["outside/file", "outside/a/file", "root-evil/file", "root-evil/a/file", "file"] {
        fs::write(base.join(file), CANARY)?;
    }
    links(&base, &root)?;
    let fifo = CString::new(root.join("fifo").as_os_str().as_bytes())?;
    // SAFETY: the path ends with NUL.
    if unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) } != 0 {
        return Err(io::Error::last_os_error());
    }
    UnixListener::bind(root.join("socket"))?;
    let mut inside = BTreeSet::new();
    collect(&root, &mut inside)?;
    let open = |mechanism| Root::open_with(&root, mechanism).map_err(io::Error::other);
    Ok(Trap {
        beneath: open(Mechanism::available())?,
        walked: open(Mechanism::Walk)?,
        inside,
        base,
    })
}

/// Links in the root and in the folders below it.
fn links(base: &Path, root: &Path) -> io::Result<()> {
    let absolute = |path: &Path| path.to_string_lossy().into_owned();
    for (name, to) in [
        ("out", "../outside".to_string()),
        ("out-file", "../outside/file".into()),
        ("out-absolute", absolute(&base.join("outside"))),
        ("chain", "a/chain".into()),
        ("a/chain", "../a/b/chain".into()),
        ("a/b/chain", "../../../outside/file".into()),
        ("a/b/up", "../../..".into()),
        ("a/out", "../../outside".into()),
        ("a/b/in-up", "../file".into()),
        ("a/in-up", "../file".into()),
        ("loop", "loop".into()),
        ("a/loop", "../a/loop/loop".into()),
        ("dangling", "nowhere".into()),
        ("a/dangling", "../../nowhere".into()),
        ("in-file", "a/b/file".into()),
        ("in-folder", "a/b".into()),
        ("a/in-folder", "b/c".into()),
        ("in-absolute", absolute(&root.join("file"))),
        ("up", "..".into()),
        ("proc", "/proc/self/root".into()),
        ("a/proc", "/proc/self/cwd".into()),
        ("null", "/dev/null".into()),
        ("self", ".".into()),
        ("root-evil", "../root-evil/file".into()),
    ] {
        symlink(to, root.join(name))?;
    }
    Ok(())
}

/// Collects all entries in a folder; links are not followed.
fn collect(folder: &Path, inside: &mut BTreeSet<Identity>) -> io::Result<()> {
    let meta = fs::symlink_metadata(folder)?;
    inside.insert((meta.dev(), meta.ino()));
    if meta.is_dir() {
        for entry in fs::read_dir(folder)? {
            collect(&entry?.path(), inside)?;
        }
    }
    Ok(())
}

impl Trap {
    /// Opens a path, and fails if it is outside.
    fn open(&self, root: &Root, path: &OsStr) -> Result<Identity, OpenError> {
        match root.open_target(path)? {
            PathTarget::File(open) => Ok(self.check_file(&open, path)),
            PathTarget::Folder(folder) => Ok(self.check_open_folder(&folder, path)),
        }
    }

    fn check_file(&self, open: &OpenFile, path: &OsStr) -> Identity {
        let meta = open.file.metadata().expect("an open file has a status");
        assert!(meta.is_file(), "no regular file: {path:?}");
        let piece = read_whole(&open.file, 1 << 10).expect("a regular file is read");
        assert!(piece.bytes != CANARY, "outside was read by {path:?}");
        self.check_inside(&meta, path)
    }

    fn check_open_folder(&self, folder: &Root, path: &OsStr) -> Identity {
        let descriptor = folder.as_fd().try_clone_to_owned().expect("descriptors are left");
        let meta = File::from(descriptor).metadata().expect("an open folder has a status");
        assert!(meta.is_dir(), "no folder: {path:?}");
        self.check_inside(&meta, path)
    }

    fn check_inside(&self, meta: &fs::Metadata, path: &OsStr) -> Identity {
        let identity = (meta.dev(), meta.ino());
        assert!(self.inside.contains(&identity), "outside was opened by {path:?}");
        identity
    }

    /// Checks the other functions that open files.
    fn check_other_functions(&self, root: &Root, path: &OsStr) {
        if let Ok(path) = CString::new(path.as_bytes())
            && let Some(open) = root.open_plain_file(&path)
        {
            self.check_file(&open, OsStr::from_bytes(path.as_bytes()));
        }
        if let Ok(folder) = root.folder(path) {
            self.check_open_folder(&folder, path);
        }
        // It may be a link to anywhere, but must be directly in the folder.
        if root.linked_folder(path).is_ok() {
            assert!(
                !path.as_bytes().contains(&b'/') && !matches!(path.to_str(), Some("" | "." | ".."))
            );
        }
        let Some(text) = path.to_str() else { return };
        for text in [text.to_string(), format!("{}/root/{text}", self.base.display())] {
            if let Ok(relative) = root.relative_path(&text) {
                // A refusal is as correct as a file inside.
                let _ = self.open(root, OsStr::new(&relative));
            }
        }
    }

    /// Opens the first half of the path, and the second half below it.
    fn check_folder(&self, root: &Root, path: &OsStr) {
        let (first, second) = path.as_bytes().split_at(path.len() / 2);
        let Ok(folder) = root.folder(OsStr::from_bytes(first)) else {
            return;
        };
        let _ = self.open(&folder, OsStr::from_bytes(second));
        let limits = WalkLimits { depth: 8, files: 100, entries: 1000 };
        for file in folder.walk(limits).expect("an open folder can be walked").files {
            let open = self.open(&folder, file.as_os_str());
            assert!(open.is_ok(), "{file:?} was found and not opened: {open:?}");
        }
    }
}

/// The folder of a process.
fn folder_of(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("skills-runner-fuzz-{process}"))
}

/// Deletes the folder at exit. The next process deletes the folder of a killed one.
extern "C" fn clear() {
    let _ = fs::remove_dir_all(folder_of(std::process::id()));
}

fn clear_old_folders() -> io::Result<()> {
    for entry in fs::read_dir(std::env::temp_dir())? {
        let name = entry?.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("skills-runner-fuzz-"));
        if let Some(process) = process.and_then(|number| number.parse::<u32>().ok())
            && !Path::new("/proc").join(process.to_string()).exists()
        {
            fs::remove_dir_all(folder_of(process))?;
        }
    }
    Ok(())
}
