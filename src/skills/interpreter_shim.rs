//! The interpreter behind a shim: what answers to `python3` on the search path
//! may be a version manager's detour, which takes longer than most scripts.
//!
//! It is asked once in a run whom it starts, for each skill, as version managers
//! go by the folder. Scripts get the answer in its place only where that is all it
//! does: whatever else it changes for them (a variable, an option, a limit, a
//! right) it goes on doing at every script, since it may be there for that.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{PythonChoice, ScriptSettings};
use crate::limits;
use crate::skills::Skill;
use crate::skills::python::{Interpreter, is_executable};
use crate::world::cancellation::Cancellation;
use crate::world::capture::CaptureLimits;
use crate::world::event_source::EventSource;
use crate::world::process::{self, Leftovers, ProcessExit, ProcessJob, ProcessOutcome};
use crate::world::signal::Interrupt;

/// Tells what it was started as: the lengths of its answers, and then these.
const PROGRAM: &str = "import os, sys
def told(name):
    try: return os.fsencode(os.readlink('/proc/self/' + name))
    except OSError: pass
    try: return open('/proc/self/' + name, 'rb').read()
    except OSError: return b''
leads = os.getsid(0) == os.getpid()
parts = [os.fsencode(sys.executable or ''), str(leads).encode()]
parts += map(told, ['exe', 'cwd', 'cmdline', 'environ'] + sys.argv[1:])
lengths = ' '.join(str(len(part)) for part in parts)
sys.stdout.buffer.write(lengths.encode() + b'\\n' + b''.join(parts))
";

/// What a wrapper that is somebody's sandbox gives its program, below `/proc/self`.
const INHERITED: [&str; 10] = [
    "limits",
    "status",
    "root",
    "ns/cgroup",
    "ns/ipc",
    "ns/mnt",
    "ns/net",
    "ns/pid",
    "ns/user",
    "ns/uts",
];

/// What of `status` is of that kind.
const RIGHTS: [&str; 9] = [
    "Umask:",
    "Uid:",
    "Gid:",
    "Groups:",
    "CapPrm:",
    "CapEff:",
    "CapBnd:",
    "NoNewPrivs:",
    "Seccomp",
];

/// The line of `limits` that holds the guardian's mark, which is another for each run.
const MARK: &str = "Max realtime timeout";

/// Variables that shells set for themselves, prompts among them, which one that
/// nobody types to changes; and the search path, which is handed on.
const OF_SHELLS: [&str; 8] = ["PATH", "_", "SHLVL", "PWD", "OLDPWD", "PS1", "PS2", "PS4"];
/// How the names of version managers' own variables begin.
const OF_MANAGERS: [&str; 8] =
    ["PYENV_", "_PYENV_", "ASDF_", "MISE_", "__MISE_", "RTX_", "RYE_", "PROTO_"];

/// What shims have answered in this run.
#[derive(Debug, Default)]
pub struct Shims {
    /// By shim and skill's folder; `None`: it is used as it is.
    answers: RefCell<BTreeMap<(PathBuf, PathBuf), Option<Interpreter>>>,
}

impl Shims {
    /// What runs the skill's scripts where the ladder ends at `python`: the
    /// interpreter behind it, if it is a shim and nothing more, otherwise itself.
    /// To find out takes no longer than `limit`.
    pub fn behind(
        &self,
        python: Interpreter,
        skill: &Skill,
        scripts: &ScriptSettings,
        cancellation: &Cancellation,
        event_source: Option<&dyn EventSource>,
        limit: Duration,
    ) -> Interpreter {
        // A sandboxed program cannot look at itself in `/proc`, and one without a
        // sandbox would not tell how it starts in it.
        let is_found = scripts.python == PythonChoice::Search && python.venv.is_none();
        if scripts.sandbox.is_some() || !is_found || !is_shim(&python.program) {
            return python;
        }
        let key = (python.program.clone(), skill.path.clone());
        let known = self.answers.borrow().get(&key).cloned();
        let answer = known.unwrap_or_else(|| {
            let limit = cancellation.limited_to(limit.min(limits::PYTHON_SHIM));
            let answer =
                resolve_shim(&python, skill, scripts, &cancellation.interrupt, event_source, limit);
            // Who was interrupted has not answered.
            if cancellation.check().is_ok() && answer != Err(ShimTimeout) {
                let answer = answer.clone().unwrap_or_default();
                self.answers.borrow_mut().insert(key, answer);
            }
            answer.unwrap_or_default()
        });
        // It may have been removed meanwhile.
        answer.filter(|found| is_executable(&found.program)).unwrap_or(python)
    }
}

/// Whether it may be a detour: a script, or a link to a program of another name.
fn is_shim(program: &Path) -> bool {
    let mut start = [0; 2];
    let is_script = File::open(program)
        .and_then(|mut file| file.read_exact(&mut start))
        .is_ok_and(|()| &start == b"#!");
    let real = program.canonicalize().unwrap_or_default();
    let name = real.file_name().unwrap_or(OsStr::new("python"));
    is_script || !name.as_bytes().starts_with(b"python")
}

/// Nobody wants to know any more.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ShimTimeout;

fn resolve_shim(
    shim: &Interpreter,
    skill: &Skill,
    scripts: &ScriptSettings,
    interrupt: &Interrupt,
    event_source: Option<&dyn EventSource>,
    limit: Duration,
) -> Result<Option<Interpreter>, ShimTimeout> {
    let environment = shim.environment(skill, scripts);
    // That is the scripts' own, but no module of the skill is loaded.
    let mut args = ["-I", "-S", "-c", PROGRAM].map(OsString::from).to_vec();
    args.extend(INHERITED.map(OsString::from));
    let job = ProcessJob {
        program: &shim.program,
        args: &args,
        folder: &skill.path,
        environment: &environment,
        stdin: b"",
        limit,
        leftovers: Leftovers::Kill,
        caps: CaptureLimits { head_bytes: limits::PYTHON_SHIM_ANSWER_BYTES, tail_bytes: 0 },
        interrupt,
        scratch: None,
        confine: None,
        event_source,
    };
    // What it says is no script's output.
    let Ok(outcome) = process::run_heard(&job, &mut |_, _| {}) else {
        return Ok(None);
    };
    if outcome.dismissed {
        return Err(ShimTimeout);
    }
    Ok(judge(&outcome, skill, &args, &environment))
}

/// What it was started as, if that is all that the shim does.
fn judge(
    outcome: &ProcessOutcome,
    skill: &Skill,
    args: &[OsString],
    environment: &ShimEnvironment,
) -> Option<Interpreter> {
    let told = ShimAnswer::of(outcome)?;
    let real = told.executable.canonicalize().ok()?;
    let is_detour = told.executable.is_absolute()
        && real == told.running
        && told.folder == skill.path.canonicalize().ok()?
        && told.leads
        && told.words == args
        && told.has_inherited()
        && others(&told.environment) == others(environment);
    is_detour.then(|| Interpreter {
        program: told.executable,
        venv: None,
        search_path: value(&told.environment, "PATH"),
    })
}

type ShimEnvironment = Vec<(OsString, OsString)>;

fn value(environment: &ShimEnvironment, name: &str) -> Option<OsString> {
    let mut environment = environment.iter();
    let (_, value) = environment.find(|(known, _)| known == name)?;
    Some(value.clone())
}

/// What must be as it was.
fn others(environment: &ShimEnvironment) -> BTreeMap<&OsStr, &OsStr> {
    let pairs = environment.iter().map(|(name, value)| (&**name, &**value));
    let is_own = |name: &OsStr| {
        let name = name.as_bytes();
        let is_managers = |prefix: &&str| name.starts_with(prefix.as_bytes());
        OF_SHELLS.iter().any(|own| own.as_bytes() == name) || OF_MANAGERS.iter().any(is_managers)
    };
    pairs.filter(|(name, _)| !is_own(name)).collect()
}

/// What the program told.
struct ShimAnswer<'o> {
    executable: PathBuf,
    /// The program that really runs.
    running: PathBuf,
    folder: PathBuf,
    /// It is the very process that was started: nothing waits for its end.
    leads: bool,
    /// Its command line but for its own name.
    words: Vec<OsString>,
    environment: ShimEnvironment,
    inherited: Vec<&'o [u8]>,
}

impl<'o> ShimAnswer<'o> {
    /// `None` where it failed, or anything but the answer was said.
    fn of(outcome: &'o ProcessOutcome) -> Option<ShimAnswer<'o>> {
        let is_silent = outcome.stderr.total_bytes() == 0 && outcome.left_behind == 0;
        if outcome.ending != ProcessExit::Exited(0) || !is_silent {
            return None;
        }
        let parts = parts(outcome.stdout.head())?;
        let [executable, leads, exe, cwd, words, variables, inherited @ ..] = parts.as_slice()
        else {
            return None;
        };
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let environment = texts(variables).map(|entry| {
            let end = entry.iter().position(|byte| *byte == b'=');
            let (name, value) = entry.split_at(end.unwrap_or(entry.len()));
            (owned(name), owned(value.get(1..).unwrap_or_default()))
        });
        Some(ShimAnswer {
            executable: path(executable),
            running: path(exe),
            folder: path(cwd),
            leads: *leads == b"True",
            words: texts(words).skip(1).map(owned).collect(),
            environment: environment.collect(),
            inherited: inherited.to_vec(),
        })
    }

    /// Whether it has from this process all that it could have from it.
    fn has_inherited(&self) -> bool {
        let own = INHERITED.map(|name| {
            let path = Path::new("/proc/self").join(name);
            let link = fs::read_link(&path).map(|link| link.into_os_string().into_encoded_bytes());
            let told = link.or_else(|_| fs::read(&path)).unwrap_or_default();
            inherited(name, &told)
        });
        let names = INHERITED.iter().zip(&self.inherited);
        let theirs = names.map(|(name, told)| inherited(name, told));
        self.inherited.len() == own.len() && theirs.eq(own)
    }
}

/// What of a file of `/proc/self` is no process's own.
fn inherited(name: &str, told: &[u8]) -> String {
    let told = String::from_utf8_lossy(told);
    let is_right = |line: &&str| match name {
        "status" => RIGHTS.iter().any(|name| line.starts_with(name)),
        "limits" => !line.starts_with(MARK),
        _ => true,
    };
    told.lines().filter(is_right).collect()
}

/// The parts behind the line of their lengths.
fn parts(answer: &[u8]) -> Option<Vec<&[u8]>> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let lengths = std::str::from_utf8(&answer[..end]).ok()?;
    let mut rest = &answer[end + 1..];
    let mut parts = Vec::new();
    for length in lengths.split(' ') {
        let (part, more) = rest.split_at_checked(length.parse().ok()?)?;
        parts.push(part);
        rest = more;
    }
    rest.is_empty().then_some(parts)
}

/// Texts that each end with a NUL.
fn texts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let pieces = bytes.split_inclusive(|byte| *byte == 0);
    pieces.map(|text| text.strip_suffix(b"\0").unwrap_or(text))
}

fn owned(text: &[u8]) -> OsString {
    OsStr::from_bytes(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_none() {
        let whole: [&[u8]; 3] = [b"a", b"", b"b\n"];
        assert_eq!(parts(b"1 0 2\nab\n"), Some(whole.to_vec()));
        let broken: [&[u8]; 6] = [
            b"1 0 2\nab",
            b"1 0 2\nabcd",
            b"1 0 2",
            b"hello\n1 0 2\nab\n",
            b"1 18446744073709551615\na",
            b"",
        ];
        for answer in broken {
            assert_eq!(parts(answer), None, "{answer:?}");
        }
    }
}
