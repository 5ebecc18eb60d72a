//! The commands of a setup: `python -m venv` and pip, or `uv`.
//!
//! They run as scripts do, under a guardian, so that nothing of them is left
//! whatever ends them; their lines go to the person as they come. What is to be
//! installed is decided elsewhere.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{ScriptSettings, find_program};
use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::secret::without_logins;
use crate::skills::setup::SetupProgress;
use crate::skills::setup::failure::SetupFailure;
use crate::text;
use crate::world::cancellation::Cancellation;
use crate::world::capture::CaptureLimits;
use crate::world::lock::FolderLock;
use crate::world::process::{
    Leftovers, ProcessExit, ProcessJob, ProcessOutcome, ScriptStream, run_heard,
};

/// Who hears what happens.
pub(super) type ProgressSink<'t> = dyn FnMut(SetupProgress<'_>) + 't;

/// What must not decide where packages go, or what Python is.
const NOT_PASSED_ON: [&str; 11] = [
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

/// Prints where packages, programs and data go, each behind a NUL.
const PLACES: &str = "\
import os, sys, sysconfig
names = ['purelib', 'platlib', 'scripts', 'data']
paths = {os.path.realpath(sysconfig.get_path(name)) for name in names}
os.write(1, b''.join(b'\\0' + os.fsencode(path) for path in sorted(paths)))
";

/// Runs commands in a skill's folder. Python is isolated (`-I`): no module of the
/// skill or of the user can stand in for one of pip's.
pub(super) struct CommandRunner<'s> {
    folder: &'s Path,
    cancellation: &'s Cancellation,
    environment: Vec<(OsString, OsString)>,
    uv: Option<PathBuf>,
    /// Nothing is asked but `--find-links`.
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
        environment.retain(|(name, _)| !NOT_PASSED_ON.iter().any(|each| name == each));
        // A `user = true` in pip's own settings cannot be obeyed in a venv.
        environment.push(("PIP_USER".into(), "0".into()));
        // Without any retry pip is silent about an index that it cannot reach.
        for (_, retries) in
            environment.iter_mut().filter(|(name, value)| name == "PIP_RETRIES" && value == "0")
        {
            *retries = "1".into();
        }
        let uv = find_program(OsStr::new("uv"), variable(&environment, "PATH"));
        if uv.is_some() {
            speak_uv(&mut environment);
        }
        let no_index = uv.is_some() && is_on(variable(&environment, "PIP_NO_INDEX"));
        CommandRunner { folder, cancellation, environment, uv, no_index, lock }
    }

    /// What makes venvs and installs.
    pub(super) fn tool(&self) -> &'static str {
        if self.uv.is_some() { "uv" } else { "pip" }
    }

    /// Fills the marked folder `venv`.
    pub(super) fn make_venv(
        &self,
        python: &Path,
        venv: &Path,
        tell: &mut ProgressSink<'_>,
    ) -> Result<(), Error> {
        tell(SetupProgress::Makes { venv, python, tool: self.tool() });
        let what = format!("make `{}`", venv.display());
        let Some(uv) = &self.uv else {
            // In two steps, so that it shows why the second one fails.
            let options = ["-I", "-u", "-m", "venv", "--without-pip"];
            let args = words(options, [venv.as_os_str()]);
            let outcome = self.run(python, &args, limits::SETUP_COMMAND, tell)?;
            demand(&what, &outcome)?;
            return self.ensure_pip(&venv.join("bin/python"), &what);
        };
        let venv_with = |seed: &[&'static str], tell: &mut ProgressSink<'_>| {
            let options = ["venv", "--quiet", "--allow-existing", "--no-project"];
            let mut args =
                words(options.into_iter().chain(seed.iter().copied()), ["--python".as_ref()]);
            args.extend([python.into(), venv.into()]);
            self.run(uv, &args, limits::SETUP_COMMAND, tell)
        };
        let seeded = venv_with(&["--seed"], tell)?;
        if seeded.ending == ProcessExit::Exited(0) {
            return Ok(());
        }
        // pip is a courtesy to people; the index may not have it.
        demand(&what, &venv_with(&[], tell)?)
    }

    /// Installs what a requirements file and single requirements say.
    pub(super) fn install(
        &self,
        python: &Path,
        files: &[String],
        requirements: &[String],
        tell: &mut ProgressSink<'_>,
    ) -> Result<(), Error> {
        tell(SetupProgress::Installs { files, requirements });
        let named = files.iter().map(|file| format!("-r {file}"));
        let named: Vec<String> = named.chain(requirements.iter().cloned()).collect();
        let what = format!(
            "install `{}`",
            text::one_line(&without_logins(&named.join(", ")), limits::SUMMARY_CHARS)
        );
        let outcome = match &self.uv {
            Some(uv) => {
                // Scripts write no bytecode, so it is made here.
                let mut args = words(
                    ["pip", "install", "--compile-bytecode", "--python"],
                    [python.as_os_str()],
                );
                args.extend(self.no_index.then(|| "--no-index".into()));
                args.extend(packages(files, requirements));
                self.run(uv, &args, limits::SETUP_COMMAND, tell)?
            }
            None => {
                let options = ["--disable-pip-version-check", "--no-input", "--progress-bar=off"];
                let mut args = words(["-I", "-u", "-m", "pip", "install"], []);
                args.extend(options.map(OsString::from));
                args.extend(packages(files, requirements));
                self.ensure_pip(python, &what)?;
                self.run(python, &args, limits::SETUP_COMMAND, tell)?
            }
        };
        demand(&what, &outcome)
    }

    /// Unpacks the pip that Python brings into a venv that has none.
    fn ensure_pip(&self, python: &Path, what: &str) -> Result<(), Error> {
        let find = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('pip'))";
        let quiet: &mut ProgressSink<'_> = &mut |_| {};
        let find = words(["-I", "-c", find], []);
        if self.run(python, &find, limits::PYTHON_START, quiet)?.ending == ProcessExit::Exited(0) {
            return Ok(());
        }
        let ensure = words(["-I", "-u", "-m", "ensurepip", "--default-pip"], []);
        demand(what, &self.run(python, &ensure, limits::SETUP_COMMAND, quiet)?)
    }

    /// Where an interpreter's packages and programs go, without links; `None`
    /// if it cannot be started, or does not answer in time.
    pub(super) fn places(&self, python: &Path) -> Result<Option<Vec<PathBuf>>, Error> {
        let args = words(["-I", "-c", PLACES], []);
        let outcome = self.try_run(python, &args, limits::PYTHON_START, &mut |_| {})?;
        let outcome = outcome.ok().filter(|outcome| !outcome.timed_out);
        let Some(outcome) = outcome.filter(|outcome| outcome.ending == ProcessExit::Exited(0))
        else {
            return Ok(None);
        };
        // Whatever the venv prints at every start comes before.
        let answer = outcome.stdout.head().split(|byte| *byte == 0).skip(1);
        let places: Vec<PathBuf> =
            answer.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
        Ok(Some(places).filter(|places| !places.is_empty()))
    }

    /// Runs a command to its end, however it ends; an error if it could not be
    /// started, took too long, or was stopped.
    fn run(
        &self,
        program: &Path,
        args: &[OsString],
        limit: Duration,
        tell: &mut ProgressSink<'_>,
    ) -> Result<ProcessOutcome, Error> {
        let outcome = self.try_run(program, args, limit, tell)?;
        let outcome = outcome.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        if outcome.timed_out {
            // Not the limit that a person has set, which `try_run` tells.
            let (program, seconds) = (program.display(), limit.as_secs());
            let text = format!("failed to run `{program}`: it took longer than {seconds} s");
            return Err(Error::new(ErrorKind::Io, text));
        }
        Ok(outcome)
    }

    /// The same, where a program that does not start or end in time is an
    /// answer: the only error is that the setup has to stop.
    fn try_run(
        &self,
        program: &Path,
        args: &[OsString],
        limit: Duration,
        tell: &mut ProgressSink<'_>,
    ) -> Result<io::Result<ProcessOutcome>, Error> {
        let job = ProcessJob {
            program,
            args,
            folder: self.folder,
            environment: &self.environment,
            stdin: b"",
            limit: self.cancellation.limited_to(limit),
            leftovers: Leftovers::Kill,
            caps: CaptureLimits::halves(limits::OUTPUT_BYTES),
            interrupt: &self.cancellation.interrupt,
            scratch: None,
            confine: Some(self.lock.share()),
            event_source: None,
        };
        self.cancellation.check()?;
        let mut lines = [OutputLines::default(), OutputLines::default()];
        let mut hear = |stream, bytes: &[u8]| match stream {
            ScriptStream::Out => lines[0].push(bytes, tell),
            ScriptStream::Err => lines[1].push(bytes, tell),
        };
        let outcome = run_heard(&job, &mut hear);
        for lines in &mut lines {
            lines.end(tell);
        }
        // A pending signal, whatever came of the command.
        self.cancellation.check()?;
        match outcome.as_ref().map(|outcome| outcome.interrupted) {
            Ok(Some(signal)) => Err(Error::interrupted(signal.0)),
            _ => Ok(outcome),
        }
    }
}

/// What pip's variables say of the index, in those of `uv`, which heeds only its
/// own. One that is set already stays.
fn speak_uv(environment: &mut Vec<(OsString, OsString)>) {
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
        let is_told = |name: &str| variable(environment, name).is_some();
        if is_told(uvs) || (uvs == "UV_INDEX_URL" && is_told("UV_DEFAULT_INDEX")) {
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

/// As pip reads a switch.
fn is_on(value: Option<&OsStr>) -> bool {
    let value = value.map(|value| value.to_string_lossy().to_lowercase());
    value.is_some_and(|value| ["1", "true", "yes", "on", "t", "y"].contains(&value.as_str()))
}

fn demand(what: &str, outcome: &ProcessOutcome) -> Result<(), Error> {
    if outcome.ending == ProcessExit::Exited(0) {
        return Ok(());
    }
    let SetupFailure { kind, cause, hint } = SetupFailure::of(outcome);
    let error = Error::new(kind, format!("failed to {what}: {cause}"));
    Err(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}

fn words<'w>(
    first: impl IntoIterator<Item = &'w str>,
    then: impl IntoIterator<Item = &'w OsStr>,
) -> Vec<OsString> {
    let first = first.into_iter().map(OsString::from);
    first.chain(then.into_iter().map(OsString::from)).collect()
}

fn packages(files: &[String], requirements: &[String]) -> Vec<OsString> {
    let files = files.iter().flat_map(|file| ["-r", file.as_str()]);
    words(files.chain(requirements.iter().map(String::as_str)), [])
}

/// A stream in lines, as they end.
#[derive(Default)]
struct OutputLines {
    begun: Vec<u8>,
}

impl OutputLines {
    fn push(&mut self, bytes: &[u8], tell: &mut ProgressSink<'_>) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            self.begun.extend_from_slice(piece);
            let is_whole = piece.ends_with(b"\n") || piece.ends_with(b"\r");
            if is_whole || self.begun.len() > limits::LINE_BYTES {
                self.end(tell);
            }
        }
    }

    fn end(&mut self, tell: &mut ProgressSink<'_>) {
        let line = String::from_utf8_lossy(&self.begun);
        let line = text::sendable(line.trim_end());
        if !line.is_empty() {
            tell(SetupProgress::Line(&line));
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uv_hears_what_pip_was_told_and_nothing_is_overruled() {
        let variables = |list: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            list.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let pips =
            [("PIP_INDEX_URL", "http://i"), ("PIP_FIND_LINKS", "/a  /b"), ("PIP_CERT", "/c")];
        let mut environment = variables(&pips);
        speak_uv(&mut environment);
        let uvs =
            [("UV_INDEX_URL", "http://i"), ("UV_FIND_LINKS", "/a,/b"), ("SSL_CERT_FILE", "/c")];
        assert_eq!(environment[3..], variables(&uvs));
        let told = [
            ("PIP_INDEX_URL", "x"),
            ("UV_DEFAULT_INDEX", "y"),
            ("PIP_CERT", "x"),
            ("SSL_CERT_FILE", "y"),
        ];
        let mut environment = variables(&told);
        speak_uv(&mut environment);
        assert_eq!(environment, variables(&told));
        assert!(is_on(Some(OsStr::new("True"))) && !is_on(Some(OsStr::new("0"))) && !is_on(None));
    }

    #[test]
    fn lines_are_told_whole_however_they_come() {
        let mut told = Vec::new();
        let mut lines = OutputLines::default();
        let mut tell = |progress: SetupProgress<'_>| told.push(progress.to_string());
        for bytes in ["Coll", "ecting a\r", "\n\x1b[31mred\x1b[0m\n\n10%\r", "20%\rlast"] {
            lines.push(bytes.as_bytes(), &mut tell);
        }
        lines.end(&mut tell);
        assert_eq!(told, ["Collecting a", "red", "10%", "20%", "last"]);
    }
}
