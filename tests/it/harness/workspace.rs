//! A fresh folder, and a command line to run in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::outcome::Outcome;
use super::server::{Server, Shared};
use super::{CANARY, MODEL, PATIENCE, processes_with_marker, python, wait_until};

/// A folder of its own for the program, with `home/` and `skills/` in it, and
/// how to run the program there. Every method gives the test back, so that one
/// reads like a sentence; [`Test::again`] begins the next in the same folder.
///
/// The environment is `PATH`, `HOME`, `TERM=dumb`, `LANG=C.UTF-8` and what
/// [`Test::env`] adds; no signal is ignored. The folder goes when nothing uses it any more.
#[derive(Clone)]
pub(crate) struct Test {
    pub(super) folder: Arc<Folder>,
    pub(super) args: Vec<OsString>,
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) stdin: Stdin,
    pub(super) stdout: Stdout,
    pub(super) cwd: PathBuf,
    pub(super) timeout: Duration,
    /// Bytes of memory that the program may ask for.
    pub(super) memory: Option<u64>,
    pub(super) servers: Vec<Arc<Shared>>,
    pub(super) shell: Option<String>,
    pub(super) stdout_on_terminal: bool,
    pub(super) stderr_on_terminal: bool,
}

#[derive(Clone)]
pub(super) enum Stdin {
    /// `/dev/null`; on a terminal, the terminal.
    Unsaid,
    Null,
    Bytes(Vec<u8>),
    Open,
    File(PathBuf),
}

#[derive(Clone)]
pub(super) enum Stdout {
    Captured,
    Closed,
    File(PathBuf),
}

/// The folder itself, gone with the last who uses it.
pub(super) struct Folder {
    pub(super) path: PathBuf,
}

impl Test {
    /// An empty folder, no arguments, nothing on stdin, no endpoint.
    pub(crate) fn new() -> Test {
        let folder = Folder::new();
        let home = folder.path.join("home");
        for new in [&home, &folder.path.join("skills")] {
            fs::create_dir(new).expect("the folder is new");
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let env = [("PATH", path.as_os_str()), ("HOME", home.as_os_str())];
        let env = env.into_iter().chain([("TERM", "dumb".as_ref()), ("LANG", "C.UTF-8".as_ref())]);
        Test {
            env: env.map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: folder.path.clone(),
            folder: Arc::new(folder),
            args: Vec::new(),
            stdin: Stdin::Unsaid,
            stdout: Stdout::Captured,
            timeout: PATIENCE,
            memory: None,
            servers: Vec::new(),
            shell: None,
            stdout_on_terminal: true,
            stderr_on_terminal: true,
        }
    }

    /// The same folder, environment and endpoint, for another run: without
    /// arguments, without stdin.
    pub(crate) fn again(&self) -> Test {
        let (args, stdin, stdout) = (Vec::new(), Stdin::Unsaid, Stdout::Captured);
        Test { args, stdin, stdout, shell: None, ..self.clone() }
    }

    // What lies in the folder.

    /// A skill with this document.
    #[track_caller]
    pub(crate) fn skill(self, name: &str, document: &str) -> Test {
        self.file(&format!("skills/{name}/SKILL.md"), document)
    }

    /// A file, with the folders above it; an environment file for its owner only.
    #[track_caller]
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Test {
        wrote(path, fs::write(self.room_for(path), content));
        match path.rsplit('.').next() == Some("env") {
            true => self.mode(path, 0o600),
            false => self,
        }
    }

    /// A file that can be executed.
    #[track_caller]
    pub(crate) fn executable(self, path: &str, content: &str) -> Test {
        let test = self.file(path, content);
        test.mode(path, 0o755)
    }

    /// An empty folder.
    #[track_caller]
    pub(crate) fn folder(self, path: &str) -> Test {
        wrote(path, fs::create_dir_all(self.path(path)));
        self
    }

    /// A symbolic link with this very target, wherever that leads.
    #[track_caller]
    pub(crate) fn link(self, path: &str, target: impl AsRef<Path>) -> Test {
        wrote(path, symlink(target, self.room_for(path)));
        self
    }

    /// Other permissions.
    #[track_caller]
    pub(crate) fn mode(self, path: &str, mode: u32) -> Test {
        let permissions = fs::Permissions::from_mode(mode);
        wrote(path, fs::set_permissions(self.path(path), permissions));
        if mode & 0o100 != 0 {
            wait_for_writers(&self.path(path));
        }
        self
    }

    /// A virtual environment `venv` in a skill, a real one without pip.
    pub(crate) fn venv(self, skill: &str) -> Test {
        self.venv_at(&format!("skills/{skill}/venv"))
    }

    /// The same elsewhere, as `skills/x/.venv`.
    pub(crate) fn venv_at(self, path: &str) -> Test {
        python::write_venv(&self.room_for(path));
        self
    }

    /// A module that is installed in a skill's `venv`.
    #[track_caller]
    pub(crate) fn venv_module(self, skill: &str, file: &str, source: &str) -> Test {
        let packages = python::site_packages(&self.path(format!("skills/{skill}/venv")));
        wrote(file, fs::write(packages.join(file), source));
        self
    }

    /// The file `.env` of the working directory.
    #[track_caller]
    pub(crate) fn dotenv(self, text: &str) -> Test {
        let path = self.cwd.join(".env");
        self.file(&path.to_string_lossy(), text)
    }

    /// Where something in the folder is; an absolute path stays itself.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path.join(path)
    }

    /// What a file in the folder holds.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        let bytes = fs::read(self.path(path));
        let bytes = bytes.unwrap_or_else(|error| panic!("failed to read `{path}`: {error}"));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether there is such a thing in the folder, if only a dangling link.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// Fails when any file in the folder but a `.env` holds the key.
    #[track_caller]
    pub(crate) fn assert_key_not_saved(&self) {
        let mut places = vec![self.folder.path.clone()];
        while let Some(place) = places.pop() {
            let Ok(metadata) = place.symlink_metadata() else {
                continue;
            };
            if metadata.is_dir() {
                places
                    .extend(fs::read_dir(&place).into_iter().flatten().flatten().map(|e| e.path()));
            } else if metadata.is_file() && place.file_name() != Some(OsStr::new(".env")) {
                let bytes = fs::read(&place).unwrap_or_default();
                let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
                assert!(!found, "the key stands in {}", place.display());
            }
        }
    }

    // How the program is run.

    /// More arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Test {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// A shell's line instead of arguments, with the program on its `PATH`:
    /// `skills-runner hi | head -c 1`.
    pub(crate) fn shell(mut self, line: &str) -> Test {
        self.shell = Some(line.to_owned());
        self
    }

    /// One more environment variable, or another value of one.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Test {
        self.env.insert(name.into(), value.as_ref().to_owned());
        self
    }

    /// One environment variable less.
    pub(crate) fn env_unset(mut self, name: &str) -> Test {
        self.env.remove(OsStr::new(name));
        self
    }

    /// The server, the model and the key, as environment variables.
    pub(crate) fn endpoint(mut self, server: &Server) -> Test {
        self.servers.push(server.shared());
        self.env("LLM_API_BASE_URL", server.url())
            .env("LLM_MODEL_NAME", MODEL)
            .env("LLM_API_KEY", CANARY)
    }

    /// Stdin is a pipe with these bytes, then its end.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Test {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Stdin is `/dev/null`, also on a terminal.
    pub(crate) fn stdin_null(mut self) -> Test {
        self.stdin = Stdin::Null;
        self
    }

    /// Stdin is a pipe that stays open and empty, until
    /// [`super::Running::write_stdin`] and [`super::Running::close_stdin`].
    pub(crate) fn stdin_open(mut self) -> Test {
        self.stdin = Stdin::Open;
        self
    }

    /// Stdin is this file.
    pub(crate) fn stdin_file(mut self, path: impl AsRef<Path>) -> Test {
        self.stdin = Stdin::File(self.path(path));
        self
    }

    /// Nobody reads stdout: the first write to it fails.
    pub(crate) fn stdout_closed(mut self) -> Test {
        self.stdout = Stdout::Closed;
        self
    }

    /// Stdout goes to this file, which may be `/dev/full`.
    pub(crate) fn stdout_file(mut self, path: impl AsRef<Path>) -> Test {
        self.stdout = Stdout::File(self.path(path));
        self
    }

    /// On a terminal, only stdout and stdin are the terminal: `2> file`.
    pub(crate) fn stdout_to_pty_only(mut self) -> Test {
        self.stderr_on_terminal = false;
        self
    }

    /// On a terminal, only stderr and stdin are the terminal: `> file`.
    pub(crate) fn stderr_to_pty_only(mut self) -> Test {
        self.stdout_on_terminal = false;
        self
    }

    /// The working directory, which is otherwise the folder itself.
    pub(crate) fn cwd(mut self, path: impl AsRef<Path>) -> Test {
        self.cwd = self.path(path);
        self
    }

    /// How long the program may take before it is killed and the test fails.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Test {
        self.timeout = timeout;
        self
    }

    /// The kernel gives the program no more memory of its own than this: one
    /// that wants more is aborted. Nothing is missed, however short it was.
    pub(crate) fn memory(mut self, bytes: u64) -> Test {
        self.memory = Some(bytes);
        self
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn run(&self) -> Outcome {
        self.spawn().wait()
    }

    /// The living processes that this test's program has started, or is.
    pub(crate) fn processes(&self) -> Vec<i32> {
        processes_with_marker(&self.folder.path.to_string_lossy())
    }

    /// The path, with the folders above it made.
    #[track_caller]
    fn room_for(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        let parent = path.parent().expect("a path below the test's folder");
        wrote("a folder", fs::create_dir_all(parent));
        path
    }
}

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let above = std::env::temp_dir().canonicalize().expect("there is a temporary folder");
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = above.join(format!("skills-runner-it-{}-{number}.d", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Folder { path },
                // Left behind by a test that was killed, by chance with our number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("failed to make {}: {error}", path.display()),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.path).is_err() {
            open_up(&self.path);
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Folders that a test has locked cannot be removed by an ordinary user.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// A process that another test has just forked may still hold the file open as it
/// was written, and nothing runs what is open for writing (ETXTBSY).
fn wait_for_writers(path: &Path) {
    let Some(file) = fs::File::open(path).ok().filter(|file| {
        let metadata = file.metadata();
        metadata.is_ok_and(|metadata| metadata.is_file())
    }) else {
        return;
    };
    // SAFETY: a descriptor that is open, and plain numbers.
    let lease =
        |kind: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
    // Only what nobody writes can be leased for reading.
    let is_free = wait_until(PATIENCE, || {
        lease(libc::F_RDLCK) == 0 || std::io::Error::last_os_error().kind() != ErrorKind::WouldBlock
    });
    assert!(is_free, "{} is open for writing", path.display());
    lease(libc::F_UNLCK);
}

#[track_caller]
fn wrote(path: &str, result: std::io::Result<()>) {
    result.unwrap_or_else(|error| panic!("failed to write `{path}`: {error}"));
}
