//! The environment of the contenders: a folder with an empty home and generated skills, the
//! server, and the command of each program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::Contender;
use crate::replies::{READ_FILE, SKILL};
use crate::server::{Server, certificate_file};

/// The number of turns: full, or only enough to check that everything works.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Effort {
    /// As many turns as a stable median needs.
    Full,
    /// Two turns of everything.
    Quick,
}

/// The environment of all rows.
pub(crate) struct World {
    /// A copy of the program that is measured.
    pub binary: PathBuf,
    /// The server.
    pub server: Server,
    /// The number of turns.
    pub effort: Effort,
    /// A small static program that does nothing.
    pub no_op: PathBuf,
    curl: Option<PathBuf>,
    folder: PathBuf,
}

impl World {
    /// Creates the folder and the program that does nothing, and starts the server.
    pub(crate) fn new(binary: &Path, effort: Effort) -> Result<World, String> {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        remove_old_folders(root);
        let folder = root.join(format!("goals-{}", std::process::id()));
        let failed = |error| format!("failed to create the benchmark's folder: {error}");
        fs::create_dir_all(folder.join("home")).map_err(failed)?;
        // A copy, as after an installation: a linker's output is in smaller pieces in the
        // page cache, and each start takes a fifth longer.
        let installed = folder.join("skills-runner");
        fs::copy(binary, &installed).map_err(failed)?;
        let no_op = folder.join("no-op");
        fs::copy(compile_no_op(&folder)?, &no_op).map_err(failed)?;
        Ok(World {
            binary: installed,
            server: Server::start()
                .map_err(|error| format!("failed to start the server: {error}"))?,
            effort,
            no_op,
            curl: on_path("curl"),
            folder,
        })
    }

    /// The number of turns; `full` is enough for a stable median.
    pub(crate) fn turns(&self, full: usize) -> usize {
        match self.effort {
            Effort::Full => full,
            Effort::Quick => 2,
        }
    }

    /// The working folder of the contenders: an empty folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// A new, empty folder.
    pub(crate) fn new_folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.folder.join(name);
        let made = fs::create_dir_all(&folder);
        made.map_err(|error| format!("failed to create a folder: {error}"))?;
        Ok(folder)
    }

    /// A folder of `count` skills, each with a document of 6 KB; one has a file to read.
    pub(crate) fn skills(&self, count: usize) -> Result<PathBuf, String> {
        let root = self.folder.join(format!("skills-{count}"));
        if root.exists() {
            return Ok(root);
        }
        let write = |number: usize| {
            let folder = root.join(format!("skill-{number:05}"));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("SKILL.md"), document(number))
        };
        let note = root.join(SKILL).join(READ_FILE);
        let made = (0..count).try_for_each(write);
        let made = made.and_then(|()| fs::write(note, "One line of a note.\n".repeat(40)));
        made.map_err(|error| format!("failed to write skills: {error}"))?;
        Ok(root)
    }

    /// The program as called by a script: no standard input, no lines about tools, no `.env`.
    /// It has an empty home, an endpoint, a key and this number of skills. It also has
    /// `PATH`, because without a Python it offers fewer tools.
    pub(crate) fn ours(&self, scenario: &str, skills: usize) -> Result<Contender, String> {
        self.ours_at(&format!("http://127.0.0.1:{}", self.server.http_port), scenario, skills)
    }

    /// The same over https, with a file for the certificate's issuer.
    pub(crate) fn ours_by_tls(&self, skills: usize) -> Result<Contender, String> {
        let address = format!("https://127.0.0.1:{}", self.server.https_port);
        let ours = self.ours_at(&address, "short", skills)?;
        Ok(ours.env("SSL_CERT_FILE", certificate_file("ca.pem")))
    }

    fn ours_at(&self, address: &str, scenario: &str, skills: usize) -> Result<Contender, String> {
        Ok(self
            .bare(&self.binary)
            .env("SKILLS_FOLDER_PATH", self.skills(skills)?)
            .env("LLM_API_BASE_URL", format!("{address}/{scenario}/v1"))
            .env("LLM_MODEL_NAME", "bench")
            .env("LLM_API_KEY", "sk-bench")
            .args(["-n", "-q", "--no-env-file", "hi"]))
    }

    /// The program with nothing but its home and `PATH`.
    pub(crate) fn bare(&self, binary: &Path) -> Contender {
        Contender::new("ours", binary, &self.home())
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
    }

    /// curl with the smallest request for the same reply, without its own configuration.
    /// `-N`: it writes immediately, as this program does on a terminal.
    pub(crate) fn curl(&self, scenario: &str) -> Result<Contender, String> {
        self.curl_at(&format!("http://127.0.0.1:{}/{scenario}", self.server.http_port))
    }

    /// The same over https. It reads one certificate instead of the system's bundle, which
    /// would take several milliseconds.
    pub(crate) fn curl_by_tls(&self) -> Result<Contender, String> {
        let curl = self.curl_at(&format!("https://127.0.0.1:{}/short", self.server.https_port))?;
        Ok(curl.args(["--cacert"]).args([certificate_file("ca.pem")]))
    }

    /// The cost of curl's start: it loads its libraries and prints.
    pub(crate) fn curl_version(&self) -> Result<Contender, String> {
        let curl = Contender::new("curl", self.curl_program()?, &self.home());
        Ok(curl.env("HOME", self.home()).args(["-q", "--version"]))
    }

    fn curl_at(&self, address: &str) -> Result<Contender, String> {
        let body = r#"{"model":"bench","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
        Ok(Contender::new("curl", self.curl_program()?, &self.home())
            .env("HOME", self.home())
            .args(["-q", "-sS", "-N", "--fail", "--data-raw", body])
            .args(["-H", "Content-Type: application/json"])
            .args(["-H", "Authorization: Bearer sk-bench"])
            .args([format!("{address}/v1/chat/completions")]))
    }

    fn curl_program(&self) -> Result<&Path, String> {
        Ok(self.curl.as_deref().ok_or("there is no curl in PATH")?)
    }

    /// The cost of running any program.
    pub(crate) fn no_op(&self) -> Contender {
        Contender::new("no-op", &self.no_op, &self.home())
    }

    /// The cost of reading the first 4 KB of each document: this program with `--read`.
    pub(crate) fn reader(&self, skills: &Path) -> Result<Contender, String> {
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let reader = Contender::new("read 4 KB", &this, &self.home());
        Ok(reader.args(["--read"]).args([skills]))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Deletes folders of interrupted runs.
fn remove_old_folders(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("goals-"));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A typical document: a description of about 100 characters, and 6 KB in total.
fn document(number: usize) -> String {
    let description = format!(
        "Converts measurements of kind {number} between metric and imperial units. \
         Use when a question names two units."
    );
    let head = format!("---\nname: skill-{number:05}\ndescription: {description}\n---\n");
    head + &"Take the factor from the table, multiply once, round at the end.\n".repeat(90)
}

/// Reads the first 4 KB of every document in the folder.
pub(crate) fn read_all(folder: &Path) -> std::io::Result<()> {
    use std::io::Read;
    let mut buffer = vec![0; 4 << 10];
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let mut file = fs::File::open(entry?.path().join("SKILL.md"))?;
        total += file.read(&mut buffer)?;
    }
    println!("{total}");
    Ok(())
}

/// The program with this name in `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|place| place.is_file())
}

/// Compiles a static program that does nothing: with musl if that target is installed, else
/// with the default libc.
fn compile_no_op(folder: &Path) -> Result<PathBuf, String> {
    let source = folder.join("no_op.rs");
    let program = folder.join("no_op");
    fs::write(&source, "fn main() {}\n").map_err(|error| error.to_string())?;
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let mut last = String::new();
    for target in [Some(target), None] {
        let mut command = Command::new(&rustc);
        command.args(["--edition", "2024", "-O", "-C", "panic=abort", "-C", "strip=symbols"]);
        command.args(["-C", "target-feature=+crt-static"]);
        if let Some(target) = target {
            command.args(["--target", &target]);
        }
        let output = command.arg("-o").arg(&program).arg(&source).output();
        let output = output.map_err(|error| format!("failed to start rustc: {error}"))?;
        if output.status.success() {
            return Ok(program);
        }
        last = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    Err(format!("failed to compile the program that does nothing: {last}"))
}
