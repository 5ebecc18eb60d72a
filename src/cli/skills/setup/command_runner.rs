//! The commands of a setup: `python -m venv` and pip, or `uv`.
//!
//! They run under a guardian like scripts, so that no process of theirs stays behind; their
//! output is reported line by line, and an error has its last lines. Other files decide what is
//! installed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::skills::setup::progress::{ProgressSink, SetupProgress};
use ::skills::ScriptSettings;
use base::error::{Error, ErrorKind};
use base::limits;
use base::secret::mask_url_logins;
use base::text::{self, shell_quoted};
use host::cancellation::Cancellation;
use host::capture::CaptureLimits;
use host::files::find_program;
use host::lines::{LineBuffer, LinePiece};
use host::lock::FolderLock;
use host::process::{
    Leftovers, ProcessExit, ProcessJob, ProcessOutcome, ScriptStream, run_with_output,
};

/// Variables that would change where packages are installed, or which Python runs.
const REMOVED_VARIABLES: [&str; 11] = [
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "VIRTUAL_ENV",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
    "UV_PREFIX",
    "UV_SYSTEM_PYTHON",
    "UV_TARGET",
];

/// Variables that say where pip gets packages, which `uv` ignores.
const PIP_SOURCES: [&str; 5] =
    ["PIP_CERT", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX"];

/// The remedy if Python's own `venv` fails.
const VENV_FIX: &str = "install what Python needs to create venvs (Debian, Ubuntu: apt install \
                        python3-venv), or put `uv` on PATH";

/// Runs commands in a skill's folder. Python is isolated (`-I`), so that no module of the skill
/// or the user replaces one of pip's.
pub(super) struct CommandRunner<'s> {
    folder: &'s Path,
    cancellation: &'s Cancellation,
    environment: Vec<(OsString, OsString)>,
    /// Used instead of pip if it is there and knows where to get packages.
    uv: Option<PathBuf>,
    /// Options of `uv`: its settings in the skill's folder must not count.
    uv_options: Vec<OsString>,
    lock: &'s FolderLock,
}

impl<'s> CommandRunner<'s> {
    pub(super) fn new(
        folder: &'s Path,
        scripts: &ScriptSettings,
        cancellation: &'s Cancellation,
        lock: &'s FolderLock,
    ) -> CommandRunner<'s> {
        let mut environment = scripts.installer_environment.clone();
        environment.retain(|(name, _)| !REMOVED_VARIABLES.iter().any(|each| name == each));
        // `user = true` in pip's own settings does not work in a venv.
        environment.push(("PIP_USER".into(), "0".into()));
        let uv = find_program(OsStr::new("uv"), scripts.variable("PATH"));
        let uv = uv.filter(|_| PIP_SOURCES.iter().all(|name| scripts.variable(name).is_none()));
        let home = scripts.variable("HOME").map(|home| Path::new(home).join(".config"));
        let settings = scripts.variable("XDG_CONFIG_HOME").map(PathBuf::from).or(home);
        let settings = settings.map(|folder| folder.join("uv/uv.toml")).filter(|it| it.is_file());
        let uv_options = match settings {
            Some(file) => vec!["--config-file".into(), file.into()],
            None => vec!["--no-config".into()],
        };
        CommandRunner { folder, cancellation, environment, uv, uv_options, lock }
    }

    /// Creates a venv in the marked folder `venv`.
    pub(super) fn create_venv(
        &self,
        python: &Path,
        venv: &Path,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<(), Error> {
        let tool = if self.uv.is_some() { "uv and " } else { "" };
        let (place, creator) = (shell_quoted(venv), shell_quoted(python));
        on_progress(SetupProgress::Note(&format!("creating {place} with {tool}{creator}")));
        let what = format!("create `{}`", venv.display());
        match &self.uv {
            Some(uv) => {
                let options = ["--quiet", "--allow-existing", "--no-project", "--python"];
                let places = [python.as_os_str(), venv.as_os_str()];
                let args = self.uv_arguments(&["venv"], to_arguments(&options, places));
                self.run(&what, uv, &args, on_progress)
            }
            None => {
                let args = to_arguments(&["-I", "-u", "-m", "venv"], [venv.as_os_str()]);
                let created = self.run(&what, python, &args, on_progress);
                created.map_err(|error| match error.kind() {
                    ErrorKind::Io => error.with_hint(VENV_FIX),
                    _ => error,
                })
            }
        }
    }

    /// Installs requirements files and single requirements, if there are any.
    pub(super) fn install(
        &self,
        python: &Path,
        files: &[&str],
        requirements: &[String],
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<(), Error> {
        if files.is_empty() && requirements.is_empty() {
            return Ok(());
        }
        let listed = files.iter().map(|file| format!("what {file} lists"));
        let all: Vec<String> = listed.chain(requirements.iter().cloned()).collect();
        let all = mask_url_logins(&all.join(", ")).into_owned();
        on_progress(SetupProgress::Note(&format!("installing {all}")));
        let what = format!("install `{}`", text::one_line(&all, limits::SUMMARY_CHARS));
        let files = files.iter().flat_map(|file| ["-r", file]);
        let packages = files.chain(requirements.iter().map(String::as_str)).map(OsStr::new);
        match &self.uv {
            Some(uv) => {
                // Scripts write no bytecode, so it is compiled here.
                let options = ["--compile-bytecode", "--python"];
                let args = to_arguments(&options, [python.as_os_str()].into_iter().chain(packages));
                let args = self.uv_arguments(&["pip", "install"], args);
                self.run(&what, uv, &args, on_progress)
            }
            None => {
                let options = [
                    ["-I", "-u", "-m", "pip", "install"].as_slice(),
                    &["--disable-pip-version-check", "--no-input", "--progress-bar=off"],
                ];
                let args = to_arguments(&options.concat(), packages);
                self.run(&what, python, &args, on_progress)
            }
        }
    }

    /// The arguments of `uv` for one of its commands.
    fn uv_arguments(&self, command: &[&str], args: Vec<OsString>) -> Vec<OsString> {
        [to_arguments(command, []), self.uv_options.clone(), args].concat()
    }

    /// Runs a command that must succeed.
    fn run(
        &self,
        what: &str,
        program: &Path,
        args: &[OsString],
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<(), Error> {
        let cause = match self.try_run(program, args, on_progress)? {
            Err(error) => error.to_string(),
            // `try_run` reports the user's own limit.
            Ok(outcome) if outcome.timed_out => {
                let limit = limits::SETUP_COMMAND_TIMEOUT.as_secs();
                format!("`{}` took longer than {limit} s", program.display())
            }
            Ok(outcome) => match outcome.exit {
                ProcessExit::Exited(0) => return Ok(()),
                ProcessExit::Signaled(signal) => {
                    format!("`{}` was killed by signal {signal}", program.display())
                }
                _ => last_lines(&outcome),
            },
        };
        Err(Error::new(ErrorKind::Io, format!("failed to {what}: {cause}")))
    }

    /// Runs a command. A program that does not start or takes too long is a result: the only
    /// error is that the setup must stop.
    fn try_run(
        &self,
        program: &Path,
        args: &[OsString],
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<io::Result<ProcessOutcome>, Error> {
        let job = ProcessJob {
            program,
            args,
            folder: self.folder,
            environment: &self.environment,
            stdin: b"",
            limit: self.cancellation.capped_by_deadline(limits::SETUP_COMMAND_TIMEOUT),
            leftovers: Leftovers::Kill,
            output_limits: CaptureLimits::halves(limits::OUTPUT_BYTES),
            interrupt: &self.cancellation.interrupt,
            scratch: None,
            restrictions: Some(self.lock.share_with_program()),
            event_source: None,
        };
        self.cancellation.check()?;
        let mut streams = [LineBuffer::default(), LineBuffer::default()];
        let mut hear = |stream, bytes: &[u8]| {
            let lines = match stream {
                ScriptStream::Out => &mut streams[0],
                ScriptStream::Err => &mut streams[1],
            };
            lines.push(bytes);
            while let Some(line) = lines.next_line(limits::OUTPUT_BYTES) {
                report_line(&line, on_progress);
            }
        };
        let outcome = run_with_output(&job, &mut hear);
        for lines in &mut streams {
            if let Some(line) = lines.take_last_line(limits::OUTPUT_BYTES) {
                report_line(&line, on_progress);
            }
        }
        // A pending signal, whatever the result of the command.
        self.cancellation.check()?;
        match outcome.as_ref().map(|outcome| outcome.interrupted) {
            Ok(Some(signal)) => Err(Error::interrupted(signal.0)),
            _ => Ok(outcome),
        }
    }
}

/// The last lines that a failed command printed, as one.
fn last_lines(outcome: &ProcessOutcome) -> String {
    let streams = [outcome.stderr.text(), outcome.stdout.text()];
    let Some(printed) = streams.iter().find(|text| !text.trim().is_empty()) else {
        return "it printed no reason".into();
    };
    let printed = mask_url_logins(printed);
    let printed = text::sendable(&printed);
    let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(limits::SETUP_REASON_LINES)..];
    text::one_line(&last.join(" "), limits::SETUP_REASON_BYTES)
}

fn to_arguments<'w>(
    options: &[&str],
    values: impl IntoIterator<Item = &'w OsStr>,
) -> Vec<OsString> {
    let options = options.iter().map(OsString::from);
    options.chain(values.into_iter().map(OsString::from)).collect()
}

/// Reports a line of a program's output; blank ones and longer ones are left out.
fn report_line(line: &LinePiece<'_>, on_progress: &mut ProgressSink<'_>) {
    if let LinePiece::Whole(line) = line {
        let line = String::from_utf8_lossy(line);
        let line = text::sendable(line.trim_end());
        if !line.is_empty() {
            on_progress(SetupProgress::OutputLine(&mask_url_logins(&line)));
        }
    }
}
