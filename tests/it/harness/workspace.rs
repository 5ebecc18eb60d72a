//! A new folder, and a command line to run in it.

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
use super::{CANARY, DEFAULT_TIMEOUT, MODEL, processes_with_marker, python, wait_until};

/// A new folder for the program, containing `home/` and `skills/`, and how to run the program
/// there. Methods return the test, for chaining; [`Test::next_run`] prepares another run in the
/// same folder.
///
/// The environment is `PATH`, `HOME`, `TERM=dumb`, `LANG=C.UTF-8` and what
/// [`Test::env`] adds; no signal is ignored. The folder is deleted after its last use.
#[derive(Clone)]
pub(crate) struct Test {
    pub(super) folder: Arc<Folder>,
    pub(super) args: Vec<OsString>,
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) stdin: Stdin,
    pub(super) stdout: Stdout,
    pub(super) cwd: PathBuf,
    pub(super) timeout: Duration,
    /// Memory limit in bytes.
    pub(super) memory: Option<u64>,
    pub(super) servers: Vec<Arc<Shared>>,
    pub(super) shell: Option<String>,
    pub(super) stdout_on_terminal: bool,
    pub(super) stderr_on_terminal: bool,
}

#[derive(Clone)]
pub(super) enum Stdin {
    /// `/dev/null`; on a terminal, the terminal.
    Default,
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

/// The folder itself, deleted when dropped.
pub(super) struct Folder {
    pub(super) path: PathBuf,
}

impl Test {
    /// Creates the folder; no arguments, stdin or endpoint.
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
            stdin: Stdin::Default,
            stdout: Stdout::Captured,
            timeout: DEFAULT_TIMEOUT,
            memory: None,
            servers: Vec::new(),
            shell: None,
            stdout_on_terminal: true,
            stderr_on_terminal: true,
        }
    }

    /// Another run with the same folder, environment and endpoint, without arguments and stdin.
    pub(crate) fn next_run(&self) -> Test {
        let (args, stdin, stdout) = (Vec::new(), Stdin::Default, Stdout::Captured);
        Test { args, stdin, stdout, shell: None, ..self.clone() }
    }

    // Content of the folder.

    /// Adds a skill with this document.
    #[track_caller]
    pub(crate) fn skill(self, name: &str, document: &str) -> Test {
        self.file(&format!("skills/{name}/SKILL.md"), document)
    }

    /// Writes a file and creates its parent folders; only the owner can read a `.env`.
    #[track_caller]
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Test {
        expect_written(path, fs::write(self.create_parent(path), content));
        match path.rsplit('.').next() == Some("env") {
            true => self.mode(path, 0o600),
            false => self,
        }
    }

    /// Writes an executable file.
    #[track_caller]
    pub(crate) fn executable(self, path: &str, content: &str) -> Test {
        let test = self.file(path, content);
        test.mode(path, 0o755)
    }

    /// Creates an empty folder.
    #[track_caller]
    pub(crate) fn folder(self, path: &str) -> Test {
        expect_written(path, fs::create_dir_all(self.path(path)));
        self
    }

    /// Creates a symbolic link with this exact target, which need not exist.
    #[track_caller]
    pub(crate) fn link(self, path: &str, target: impl AsRef<Path>) -> Test {
        expect_written(path, symlink(target, self.create_parent(path)));
        self
    }

    /// Changes permissions.
    #[track_caller]
    pub(crate) fn mode(self, path: &str, mode: u32) -> Test {
        let permissions = fs::Permissions::from_mode(mode);
        expect_written(path, fs::set_permissions(self.path(path), permissions));
        if mode & 0o100 != 0 {
            wait_for_writers(&self.path(path));
        }
        self
    }

    /// Creates a real venv, without pip, as `venv` in a skill.
    pub(crate) fn venv(self, skill: &str) -> Test {
        self.venv_at(&format!("skills/{skill}/venv"))
    }

    /// Like [`Test::venv`], at another path, such as `skills/x/.venv`.
    pub(crate) fn venv_at(self, path: &str) -> Test {
        python::write_venv(&self.create_parent(path));
        self
    }

    /// Installs a module in a skill's `venv`.
    #[track_caller]
    pub(crate) fn venv_module(self, skill: &str, file: &str, source: &str) -> Test {
        let packages = python::site_packages(&self.path(format!("skills/{skill}/venv")));
        expect_written(file, fs::write(packages.join(file), source));
        self
    }

    /// Writes the file `.env` of the working directory.
    #[track_caller]
    pub(crate) fn dotenv(self, text: &str) -> Test {
        let path = self.cwd.join(".env");
        self.file(&path.to_string_lossy(), text)
    }

    /// The absolute path of an entry of the folder.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path.join(path)
    }

    /// Reads a file of the folder.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        let bytes = fs::read(self.path(path));
        let bytes = bytes.unwrap_or_else(|error| panic!("failed to read `{path}`: {error}"));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether the folder has such an entry, which may be a dangling link.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// Fails if any file in the folder except a `.env` contains the key.
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
                assert!(!found, "the key is in {}", place.display());
            }
        }
    }

    // How to run the program.

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Test {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Runs a shell line, with the program on its `PATH`:
    /// `skills-runner hi | head -c 1`.
    pub(crate) fn shell(mut self, line: &str) -> Test {
        self.shell = Some(line.to_owned());
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Test {
        self.env.insert(name.into(), value.as_ref().to_owned());
        self
    }

    /// Removes an environment variable.
    pub(crate) fn env_unset(mut self, name: &str) -> Test {
        self.env.remove(OsStr::new(name));
        self
    }

    /// Sets the environment variables for the server, the model and the key.
    pub(crate) fn endpoint(mut self, server: &Server) -> Test {
        self.servers.push(server.shared());
        self.env("LLM_API_BASE_URL", server.url())
            .env("LLM_MODEL_NAME", MODEL)
            .env("LLM_API_KEY", CANARY)
    }

    /// Makes stdin a pipe with these bytes.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Test {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Makes stdin `/dev/null`, on a terminal as well.
    pub(crate) fn stdin_null(mut self) -> Test {
        self.stdin = Stdin::Null;
        self
    }

    /// Makes stdin an open, empty pipe for [`super::Running::write_stdin`] and
    /// [`super::Running::close_stdin`].
    pub(crate) fn stdin_open(mut self) -> Test {
        self.stdin = Stdin::Open;
        self
    }

    /// Makes stdin this file.
    pub(crate) fn stdin_file(mut self, path: impl AsRef<Path>) -> Test {
        self.stdin = Stdin::File(self.path(path));
        self
    }

    /// Makes stdout a socket whose other end is closed: the first write fails.
    pub(crate) fn stdout_closed(mut self) -> Test {
        self.stdout = Stdout::Closed;
        self
    }

    /// Redirects stdout to this file, which may be `/dev/full`.
    pub(crate) fn stdout_file(mut self, path: impl AsRef<Path>) -> Test {
        self.stdout = Stdout::File(self.path(path));
        self
    }

    /// Takes stderr off the terminal, as `2> file` does.
    pub(crate) fn stdout_to_pty_only(mut self) -> Test {
        self.stderr_on_terminal = false;
        self
    }

    /// Takes stdout off the terminal, as `> file` does.
    pub(crate) fn stderr_to_pty_only(mut self) -> Test {
        self.stdout_on_terminal = false;
        self
    }

    /// Sets the working directory, by default the folder itself.
    pub(crate) fn cwd(mut self, path: impl AsRef<Path>) -> Test {
        self.cwd = self.path(path);
        self
    }

    /// Sets the time after which the program is killed and the test fails.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Test {
        self.timeout = timeout;
        self
    }

    /// Limits the program's memory by the kernel: a program that needs more is aborted. Unlike
    /// polling, this catches short peaks.
    pub(crate) fn memory_limit(mut self, bytes: u64) -> Test {
        self.memory = Some(bytes);
        self
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn run(&self) -> Outcome {
        self.spawn().wait()
    }

    /// The running processes of this test: the program and those that it started.
    pub(crate) fn processes(&self) -> Vec<i32> {
        processes_with_marker(&self.folder.path.to_string_lossy())
    }

    /// Creates the parent folders and returns the path.
    #[track_caller]
    fn create_parent(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        let parent = path.parent().expect("a path below the test's folder");
        expect_written("a folder", fs::create_dir_all(parent));
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
                // Left by a killed test that had the same process id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("failed to create {}: {error}", path.display()),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.path).is_err() {
            unlock_folders(&self.path);
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Makes all folders below writable again, without which only root could delete them.
fn unlock_folders(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock_folders(&entry.path());
        }
    }
}

/// Waits until the file is not open for writing, since executing it would fail (ETXTBSY). A process
/// that another test has just forked may still have it open.
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
    // A read lease is granted only for a file that no process has open for writing.
    let is_free = wait_until(DEFAULT_TIMEOUT, || {
        lease(libc::F_RDLCK) == 0 || std::io::Error::last_os_error().kind() != ErrorKind::WouldBlock
    });
    assert!(is_free, "{} is open for writing", path.display());
    lease(libc::F_UNLCK);
}

#[track_caller]
fn expect_written(path: &str, result: std::io::Result<()>) {
    result.unwrap_or_else(|error| panic!("failed to write `{path}`: {error}"));
}
