//! Getting the tree of a repository with git, which has the credentials for private ones.
//!
//! Nothing of the repository runs: it has no working tree, no hooks and no submodules, and only the
//! protocol of its address is allowed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::cli::run::Run;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::secret::mask_url_logins;
use base::settings;
use base::text;
use host::capture::CaptureLimits;
use host::files::find_program;
use host::process::{self, Leftovers, ProcessExit, ProcessJob, Restrictions};
use host::scratch::Scratch;

/// Attributes that would make files depend on the settings of this machine, switched off.
const ATTRIBUTES: &[u8] = b"* -filter -text -ident -working-tree-encoding -export-subst\n";

/// Settings of each command: no hook and no attribute of the user counts, a pack is kept as one
/// file, whose size is limited, and a download has a lowest rate (`limits::DOWNLOADED_BYTES`).
const SETTINGS: [&str; 5] = [
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "fetch.unpackLimit=1",
    "http.lowSpeedLimit=1024",
    "http.lowSpeedTime=60",
];

/// Variables that would make git use another repository.
const REMOVED_VARIABLES: [&str; 6] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_WORK_TREE",
];

/// The settings that git has for the network, under the same names.
const NETWORK: [&str; 4] =
    [settings::HTTPS_PROXY, settings::HTTP_PROXY, settings::ALL_PROXY, settings::NO_PROXY];

/// git in a repository of its own, for one source.
struct Git<'r> {
    run: &'r Run,
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    address: &'r str,
    scratch: Scratch,
}

/// The file of git, if it is installed.
pub(super) fn program(run: &Run) -> Option<PathBuf> {
    find_program(OsStr::new("git"), run.config.scripts.variable("PATH"))
}

/// Gets the tree of a ref as a tar archive that names its commit.
pub(super) fn tree(address: &str, reference: Option<&str>, run: &Run) -> Result<File> {
    let failed =
        |cause: String| Error::new(ErrorKind::Io, format!("failed to get {address}: {cause}"));
    let program = program(run).ok_or_else(|| {
        failed("git is not installed".into()).with_hint("install git, or add an archive")
    })?;
    let scratch = Scratch::new(&run.config.scripts.temporary_folder);
    let scratch = scratch.map_err(|error| failed(error.to_string()))?;
    let git =
        Git { run, program, environment: environment(address, &scratch, run), address, scratch };
    git.call(&["init", "--quiet", "--bare", "--template="])?;
    let info = repository(&git.scratch).join("info");
    fs::create_dir_all(&info)
        .and_then(|()| fs::write(info.join("attributes"), ATTRIBUTES))
        .map_err(|error| failed(error.to_string()))?;
    let commit = git.fetch(reference)?;
    let archive = git.scratch.path().join("tree.tar");
    let output = format!("--output={}", archive.display());
    git.call(&["archive", "--format=tar", "--prefix=tree/", &output, &commit])?;
    File::open(archive).map_err(|error| failed(error.to_string()))
}

/// The environment of git: the user's, with the network settings of this program.
fn environment(address: &str, scratch: &Scratch, run: &Run) -> Vec<(OsString, OsString)> {
    let mut environment = run.config.scripts.installer_environment.clone();
    environment.retain(|(name, _)| !REMOVED_VARIABLES.iter().any(|each| name == each));
    let mut set = |name: &str, value: OsString| {
        environment.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        environment.push((name.into(), value));
    };
    // `./.env` must not choose the route, as in downloads.
    let trusted = |name| run.settings.value(name).filter(|(_, source)| !source.is_untrusted());
    for name in NETWORK {
        if let Some((value, _)) = trusted(name) {
            set(&name.to_ascii_lowercase(), value);
        }
    }
    if let Some((value, _)) = trusted(settings::SSL_CERT_FILE) {
        set("GIT_SSL_CAINFO", run.settings.path(&value, &run.folder).into());
    }
    let scheme = address.split(':').next().unwrap_or_default();
    set("GIT_ALLOW_PROTOCOL", scheme.into());
    set("GIT_DIR", repository(scratch).into());
    set("GIT_TERMINAL_PROMPT", "0".into());
    environment
}

fn repository(scratch: &Scratch) -> PathBuf {
    scratch.path().join("repository.git")
}

impl Git<'_> {
    /// Fetches the commit of a ref, and returns its name.
    fn fetch(&self, reference: Option<&str>) -> Result<String> {
        let fetch = |options: &[&str], refs: &[&str]| {
            let common = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"];
            self.call(&[&common, options, &["--", self.address], refs].concat())
        };
        let first = fetch(&["--depth=1"], &[reference.unwrap_or("HEAD")]);
        let name = match (first, reference) {
            (Ok(_), _) => "FETCH_HEAD",
            // Not every server gives commits by name, and no server short ones.
            (Err(_), Some(reference)) if is_commit(reference) => {
                fetch(&[], &["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"])?;
                reference
            }
            (Err(error), _) => return Err(error),
        };
        let commit = self.call(&["rev-parse", "--verify", &format!("{name}^{{commit}}")])?;
        Ok(commit.trim().to_string())
    }

    /// Runs a command of git, and returns what it prints.
    fn call(&self, words: &[&str]) -> Result<String> {
        let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        let args = settings.chain(words.iter().copied()).map(OsString::from).collect::<Vec<_>>();
        let cancellation = &self.run.cancellation;
        let job = ProcessJob {
            program: &self.program,
            args: &args,
            folder: Path::new("/"),
            environment: &self.environment,
            stdin: b"",
            limit: cancellation.capped_by_deadline(limits::GIT_TIMEOUT),
            leftovers: Leftovers::Kill,
            output_limits: CaptureLimits::halves(limits::OUTPUT_BYTES),
            interrupt: &cancellation.interrupt,
            scratch: None,
            restrictions: Some(Restrictions::file_size(limits::ARCHIVE_BYTES)),
            event_source: None,
        };
        cancellation.check()?;
        let outcome = process::run(&job);
        cancellation.check()?;
        let cause = match outcome {
            Ok(outcome) if outcome.exit == ProcessExit::Exited(0) => {
                return Ok(outcome.stdout.text());
            }
            Ok(outcome) if outcome.timed_out => "git took too long".into(),
            Ok(outcome) => {
                let printed = mask_url_logins(&outcome.stderr.text()).into_owned();
                let fatal = printed.lines().find_map(|line| line.split_once("fatal: "));
                let printed = fatal.map_or(printed.as_str(), |(_, cause)| cause);
                let printed = text::one_line(&text::sendable(printed), limits::QUOTED_BYTES);
                if printed.is_empty() { "git failed".into() } else { format!("git: {printed}") }
            }
            Err(error) => error.to_string(),
        };
        Err(Error::new(ErrorKind::Io, format!("failed to get {}: {cause}", self.address)))
    }
}

fn is_commit(reference: &str) -> bool {
    (7..=64).contains(&reference.len()) && reference.bytes().all(|b| b.is_ascii_hexdigit())
}
