//! The commands of a setup: `python -m venv` and pip, or `uv`.
//!
//! They run under a guardian like scripts, so that no process of theirs stays behind; their
//! output is reported line by line. Other files decide what is installed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{ScriptSettings, find_program};
use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::secret::mask_url_logins;
use crate::skills::setup::SetupProgress;
use crate::skills::setup::failure::SetupFailure;
use crate::text;
use crate::world::cancellation::Cancellation;
use crate::world::capture::CaptureLimits;
use crate::world::lock::FolderLock;
use crate::world::process::{
    Leftovers, ProcessExit, ProcessJob, ProcessOutcome, ScriptStream, run_with_output,
};

/// Callback for the progress of a setup.
pub(super) type ProgressSink<'t> = dyn FnMut(SetupProgress<'_>) + 't;

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

/// Script that prints the folders of packages, programs and data, each after a NUL.
const INSTALL_PATHS: &str = "\
import os, sys, sysconfig
names = ['purelib', 'platlib', 'scripts', 'data']
paths = {os.path.realpath(sysconfig.get_path(name)) for name in names}
os.write(1, b''.join(b'\\0' + os.fsencode(path) for path in sorted(paths)))
";

/// Runs commands in a skill's folder. Python is isolated (`-I`), so that no module of the skill
/// or the user replaces one of pip's.
pub(super) struct CommandRunner<'s> {
    folder: &'s Path,
    cancellation: &'s Cancellation,
    environment: Vec<(OsString, OsString)>,
    uv: Option<PathBuf>,
    /// Whether only `--find-links` is used, no index.
    no_index: bool,
    lock: &'s FolderLock,
}

impl<'s> CommandRunner<'s> {
    pub(super) fn new(
        folder: &'s Path,
        scripts: &ScriptSettings,
        cancellation: &'s Cancellation,
        lock: &'s FolderLock,
    ) -> CommandRunner<'s> {
        let mut environment = scripts.environment.clone();
        environment.retain(|(name, _)| !REMOVED_VARIABLES.iter().any(|each| name == each));
        // `user = true` in pip's own settings does not work in a venv.
        environment.push(("PIP_USER".into(), "0".into()));
        // Without retries pip does not report an index that it cannot reach.
        for (_, retries) in
            environment.iter_mut().filter(|(name, value)| name == "PIP_RETRIES" && value == "0")
        {
            *retries = "1".into();
        }
        let uv = find_program(OsStr::new("uv"), variable(&environment, "PATH"));
        if uv.is_some() {
            translate_for_uv(&mut environment);
        }
        let no_index = uv.is_some() && is_on(variable(&environment, "PIP_NO_INDEX"));
        CommandRunner { folder, cancellation, environment, uv, no_index, lock }
    }

    /// Name of the program that creates venvs and installs.
    pub(super) fn installer(&self) -> &'static str {
        if self.uv.is_some() { "uv" } else { "pip" }
    }

    /// Creates a venv in the marked folder `venv`.
    pub(super) fn create_venv(
        &self,
        python: &Path,
        venv: &Path,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<(), Error> {
        on_progress(SetupProgress::CreatingVenv { venv, python, tool: self.installer() });
        let what = format!("create `{}`", venv.display());
        let Some(uv) = &self.uv else {
            // In two steps, so that the cause of a failure in the second is visible.
            let options = ["-I", "-u", "-m", "venv", "--without-pip"];
            let args = to_arguments(options, [venv.as_os_str()]);
            let outcome = self.run(python, &args, limits::SETUP_COMMAND_TIMEOUT, on_progress)?;
            require_success(&what, &outcome)?;
            return self.ensure_pip(&venv.join("bin/python"), &what);
        };
        let venv_with = |seed: &[&'static str], on_progress: &mut ProgressSink<'_>| {
            let options = ["venv", "--quiet", "--allow-existing", "--no-project"];
            let mut args = to_arguments(
                options.into_iter().chain(seed.iter().copied()),
                ["--python".as_ref()],
            );
            args.extend([python.into(), venv.into()]);
            self.run(uv, &args, limits::SETUP_COMMAND_TIMEOUT, on_progress)
        };
        let seeded = venv_with(&["--seed"], on_progress)?;
        if seeded.exit == ProcessExit::Exited(0) {
            return Ok(());
        }
        // pip is only for the user's convenience; the index may lack it.
        require_success(&what, &venv_with(&[], on_progress)?)
    }

    /// Installs requirements files and single requirements.
    pub(super) fn install(
        &self,
        python: &Path,
        files: &[String],
        requirements: &[String],
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<(), Error> {
        on_progress(SetupProgress::Installing { files, requirements });
        let named = files.iter().map(|file| format!("-r {file}"));
        let named: Vec<String> = named.chain(requirements.iter().cloned()).collect();
        let what = format!(
            "install `{}`",
            text::one_line(&mask_url_logins(&named.join(", ")), limits::SUMMARY_CHARS)
        );
        let outcome = match &self.uv {
            Some(uv) => {
                // Scripts write no bytecode, so it is compiled here.
                let mut args = to_arguments(
                    ["pip", "install", "--compile-bytecode", "--python"],
                    [python.as_os_str()],
                );
                args.extend(self.no_index.then(|| "--no-index".into()));
                args.extend(package_arguments(files, requirements));
                self.run(uv, &args, limits::SETUP_COMMAND_TIMEOUT, on_progress)?
            }
            None => {
                let options = ["--disable-pip-version-check", "--no-input", "--progress-bar=off"];
                let mut args = to_arguments(["-I", "-u", "-m", "pip", "install"], []);
                args.extend(options.map(OsString::from));
                args.extend(package_arguments(files, requirements));
                self.ensure_pip(python, &what)?;
                self.run(python, &args, limits::SETUP_COMMAND_TIMEOUT, on_progress)?
            }
        };
        require_success(&what, &outcome)
    }

    /// Installs the pip bundled with Python into a venv without pip.
    fn ensure_pip(&self, python: &Path, what: &str) -> Result<(), Error> {
        let find = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('pip'))";
        let quiet: &mut ProgressSink<'_> = &mut |_| {};
        let find = to_arguments(["-I", "-c", find], []);
        if self.run(python, &find, limits::PYTHON_START_TIMEOUT, quiet)?.exit
            == ProcessExit::Exited(0)
        {
            return Ok(());
        }
        let ensure = to_arguments(["-I", "-u", "-m", "ensurepip", "--default-pip"], []);
        require_success(what, &self.run(python, &ensure, limits::SETUP_COMMAND_TIMEOUT, quiet)?)
    }

    /// Returns the folders in which an interpreter installs, with links resolved; `None` if it
    /// cannot be started or does not answer in time.
    pub(super) fn install_paths(&self, python: &Path) -> Result<Option<Vec<PathBuf>>, Error> {
        let args = to_arguments(["-I", "-c", INSTALL_PATHS], []);
        let outcome = self.try_run(python, &args, limits::PYTHON_START_TIMEOUT, &mut |_| {})?;
        let outcome = outcome.ok().filter(|outcome| !outcome.timed_out);
        let Some(outcome) = outcome.filter(|outcome| outcome.exit == ProcessExit::Exited(0)) else {
            return Ok(None);
        };
        // Output that the venv prints at every start precedes the answer.
        let answer = outcome.stdout.head().split(|byte| *byte == 0).skip(1);
        let places: Vec<PathBuf> =
            answer.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
        Ok(Some(places).filter(|places| !places.is_empty()))
    }

    /// Runs a command, whatever its exit status.
    ///
    /// # Errors
    ///
    /// It could not be started, took too long, or was stopped.
    fn run(
        &self,
        program: &Path,
        args: &[OsString],
        limit: Duration,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<ProcessOutcome, Error> {
        let outcome = self.try_run(program, args, limit, on_progress)?;
        let outcome = outcome.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        if outcome.timed_out {
            // `try_run` reports the user's own limit.
            let (program, seconds) = (program.display(), limit.as_secs());
            let text = format!("failed to run `{program}`: it took longer than {seconds} s");
            return Err(Error::new(ErrorKind::Io, text));
        }
        Ok(outcome)
    }

    /// The same, but a program that does not start or takes too long is a result: the only error
    /// is that the setup must stop.
    fn try_run(
        &self,
        program: &Path,
        args: &[OsString],
        limit: Duration,
        on_progress: &mut ProgressSink<'_>,
    ) -> Result<io::Result<ProcessOutcome>, Error> {
        let job = ProcessJob {
            program,
            args,
            folder: self.folder,
            environment: &self.environment,
            stdin: b"",
            limit: self.cancellation.capped_by_deadline(limit),
            leftovers: Leftovers::Kill,
            output_limits: CaptureLimits::halves(limits::OUTPUT_BYTES),
            interrupt: &self.cancellation.interrupt,
            scratch: None,
            restrictions: Some(self.lock.share_with_program()),
            event_source: None,
        };
        self.cancellation.check()?;
        let mut lines = [OutputLines::default(), OutputLines::default()];
        let mut hear = |stream, bytes: &[u8]| match stream {
            ScriptStream::Out => lines[0].push(bytes, on_progress),
            ScriptStream::Err => lines[1].push(bytes, on_progress),
        };
        let outcome = run_with_output(&job, &mut hear);
        for lines in &mut lines {
            lines.flush(on_progress);
        }
        // A pending signal, whatever the result of the command.
        self.cancellation.check()?;
        match outcome.as_ref().map(|outcome| outcome.interrupted) {
            Ok(Some(signal)) => Err(Error::interrupted(signal.0)),
            _ => Ok(outcome),
        }
    }
}

/// Copies pip's variables for the index to those of `uv`, which ignores pip's. Variables that
/// are already set stay.
fn translate_for_uv(environment: &mut Vec<(OsString, OsString)>) {
    let commas = |value: &OsStr| {
        let text = value.to_string_lossy();
        text.split_whitespace().collect::<Vec<_>>().join(",").into()
    };
    for (pips, uvs) in [
        ("PIP_INDEX_URL", "UV_INDEX_URL"),
        ("PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL"),
        ("PIP_FIND_LINKS", "UV_FIND_LINKS"),
        ("PIP_CERT", "SSL_CERT_FILE"),
    ] {
        let is_set = |name: &str| variable(environment, name).is_some();
        if is_set(uvs) || (uvs == "UV_INDEX_URL" && is_set("UV_DEFAULT_INDEX")) {
            continue;
        }
        let Some(value) = variable(environment, pips) else {
            continue;
        };
        let value = match uvs {
            "UV_FIND_LINKS" => commas(value),
            _ => value.to_owned(),
        };
        environment.push((uvs.into(), value));
    }
}

fn variable<'e>(environment: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let found = environment.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_os_str())
}

/// Whether pip treats the value as true.
fn is_on(value: Option<&OsStr>) -> bool {
    let value = value.map(|value| value.to_string_lossy().to_lowercase());
    value.is_some_and(|value| ["1", "true", "yes", "on", "t", "y"].contains(&value.as_str()))
}

fn require_success(what: &str, outcome: &ProcessOutcome) -> Result<(), Error> {
    if outcome.exit == ProcessExit::Exited(0) {
        return Ok(());
    }
    let SetupFailure { kind, cause, hint } = SetupFailure::from_outcome(outcome);
    let error = Error::new(kind, format!("failed to {what}: {cause}"));
    Err(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}

fn to_arguments<'w>(
    first: impl IntoIterator<Item = &'w str>,
    then: impl IntoIterator<Item = &'w OsStr>,
) -> Vec<OsString> {
    let first = first.into_iter().map(OsString::from);
    first.chain(then.into_iter().map(OsString::from)).collect()
}

fn package_arguments(files: &[String], requirements: &[String]) -> Vec<OsString> {
    let files = files.iter().flat_map(|file| ["-r", file.as_str()]);
    to_arguments(files.chain(requirements.iter().map(String::as_str)), [])
}

/// Splits a stream into lines.
#[derive(Default)]
struct OutputLines {
    partial: Vec<u8>,
}

impl OutputLines {
    fn push(&mut self, bytes: &[u8], on_progress: &mut ProgressSink<'_>) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            self.partial.extend_from_slice(piece);
            let is_whole = piece.ends_with(b"\n") || piece.ends_with(b"\r");
            if is_whole || self.partial.len() > limits::LINE_BYTES {
                self.flush(on_progress);
            }
        }
    }

    fn flush(&mut self, on_progress: &mut ProgressSink<'_>) {
        let line = String::from_utf8_lossy(&self.partial);
        let line = text::sendable(line.trim_end());
        if !line.is_empty() {
            on_progress(SetupProgress::OutputLine(&line));
        }
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_pip_are_copied_for_uv_and_none_is_overwritten() {
        let variables = |list: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            list.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let pips =
            [("PIP_INDEX_URL", "http://i"), ("PIP_FIND_LINKS", "/a  /b"), ("PIP_CERT", "/c")];
        let mut environment = variables(&pips);
        translate_for_uv(&mut environment);
        let uvs =
            [("UV_INDEX_URL", "http://i"), ("UV_FIND_LINKS", "/a,/b"), ("SSL_CERT_FILE", "/c")];
        assert_eq!(environment[3..], variables(&uvs));
        let preset = [
            ("PIP_INDEX_URL", "x"),
            ("UV_DEFAULT_INDEX", "y"),
            ("PIP_CERT", "x"),
            ("SSL_CERT_FILE", "y"),
        ];
        let mut environment = variables(&preset);
        translate_for_uv(&mut environment);
        assert_eq!(environment, variables(&preset));
        assert!(is_on(Some(OsStr::new("True"))) && !is_on(Some(OsStr::new("0"))) && !is_on(None));
    }

    #[test]
    fn output_is_reported_in_whole_lines() {
        let mut reported = Vec::new();
        let mut lines = OutputLines::default();
        let mut on_progress = |progress: SetupProgress<'_>| reported.push(progress.to_string());
        for bytes in ["Coll", "ecting a\r", "\n\x1b[31mred\x1b[0m\n\n10%\r", "20%\rlast"] {
            lines.push(bytes.as_bytes(), &mut on_progress);
        }
        lines.flush(&mut on_progress);
        assert_eq!(reported, ["Collecting a", "red", "10%", "20%", "last"]);
    }
}
