//! Resolution of shims: the `python3` on the search path may be a version manager's shim,
//! which takes longer to start an interpreter than most scripts take to run.
//!
//! A shim is queried once per run and skill, as version managers choose by the folder.
//! Scripts then use the real interpreter directly, but only if the shim does nothing else:
//! a wrapper that changes anything for them (a variable, an option, a limit, a right) may
//! exist for that purpose, and is used for every script.

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

/// Program that reports how it was started: a line with the lengths of the parts, then the
/// parts.
const PROGRAM: &str = "import os, sys
def read(name):
    try: return os.fsencode(os.readlink('/proc/self/' + name))
    except OSError: pass
    try: return open('/proc/self/' + name, 'rb').read()
    except OSError: return b''
leads = os.getsid(0) == os.getpid()
parts = [os.fsencode(sys.executable or ''), str(leads).encode()]
parts += map(read, ['exe', 'cwd', 'cmdline', 'environ'] + sys.argv[1:])
lengths = ' '.join(str(len(part)) for part in parts)
sys.stdout.buffer.write(lengths.encode() + b'\\n' + b''.join(parts))
";

/// Inherited process state that a sandboxing wrapper would change, below `/proc/self`.
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

/// The lines of `status` that are compared.
const STATUS_FIELDS: [&str; 9] = [
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

/// The line of `limits` that holds the guardian's mark, which differs for each run.
const GUARDIAN_MARK_LIMIT: &str = "Max realtime timeout";

/// Variables that shells set for themselves (non-interactive ones change the prompts), and
/// the search path, which is passed on.
const SHELL_VARIABLES: [&str; 8] = ["PATH", "_", "SHLVL", "PWD", "OLDPWD", "PS1", "PS2", "PS4"];
/// Prefixes of the variables of version managers.
const MANAGER_PREFIXES: [&str; 8] =
    ["PYENV_", "_PYENV_", "ASDF_", "MISE_", "__MISE_", "RTX_", "RYE_", "PROTO_"];

/// Cache of the interpreters that shims start, for one run.
#[derive(Debug, Default)]
pub struct ShimCache {
    /// By shim and skill's folder; `None`: the program is used as it is.
    answers: RefCell<BTreeMap<(PathBuf, PathBuf), Option<Interpreter>>>,
}

impl ShimCache {
    /// Returns the interpreter that `python` starts, if it is a shim and nothing more, or
    /// else `python` itself. The query takes no longer than `limit`.
    pub fn resolve(
        &self,
        python: Interpreter,
        skill: &Skill,
        scripts: &ScriptSettings,
        cancellation: &Cancellation,
        event_source: Option<&dyn EventSource>,
        limit: Duration,
    ) -> Interpreter {
        // A sandboxed program cannot read its `/proc`, and a query without the sandbox
        // would not show how the program starts in the sandbox.
        let is_found = scripts.python == PythonChoice::Search && python.venv.is_none();
        if scripts.sandbox.is_some() || !is_found || !is_shim(&python.program) {
            return python;
        }
        let key = (python.program.clone(), skill.path.clone());
        let known = self.answers.borrow().get(&key).cloned();
        let answer = known.unwrap_or_else(|| {
            let limit = cancellation.capped_by_deadline(limit.min(limits::PYTHON_SHIM_TIMEOUT));
            let answer =
                query_shim(&python, skill, scripts, &cancellation.interrupt, event_source, limit);
            // An interrupted query is no answer.
            if cancellation.check().is_ok() && answer != Err(ShimQueryCancelled) {
                let answer = answer.clone().unwrap_or_default();
                self.answers.borrow_mut().insert(key, answer);
            }
            answer.unwrap_or_default()
        });
        // The interpreter may have been removed since.
        answer.filter(|found| is_executable(&found.program)).unwrap_or(python)
    }
}

/// Whether a program may be a shim: a script, or a link to a program of another name.
fn is_shim(program: &Path) -> bool {
    let mut start = [0; 2];
    let is_script = File::open(program)
        .and_then(|mut file| file.read_exact(&mut start))
        .is_ok_and(|()| &start == b"#!");
    let real = program.canonicalize().unwrap_or_default();
    let name = real.file_name().unwrap_or(OsStr::new("python"));
    is_script || !name.as_bytes().starts_with(b"python")
}

/// The event source cancelled the tool call, so the answer is not needed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ShimQueryCancelled;

fn query_shim(
    shim: &Interpreter,
    skill: &Skill,
    scripts: &ScriptSettings,
    interrupt: &Interrupt,
    event_source: Option<&dyn EventSource>,
    limit: Duration,
) -> Result<Option<Interpreter>, ShimQueryCancelled> {
    let environment = shim.script_environment(skill, scripts);
    // The environment is that of scripts, but no module of the skill is loaded.
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
        output_limits: CaptureLimits {
            head_bytes: limits::PYTHON_SHIM_ANSWER_BYTES,
            tail_bytes: 0,
        },
        interrupt,
        scratch: None,
        restrictions: None,
        event_source,
    };
    // Its output is not a script's, so it is not shown.
    let Ok(outcome) = process::run_with_output(&job, &mut |_, _| {}) else {
        return Ok(None);
    };
    if outcome.cancelled {
        return Err(ShimQueryCancelled);
    }
    Ok(interpreter_behind(&outcome, skill, &args, &environment))
}

/// The interpreter that the shim started, if the shim changed nothing else.
fn interpreter_behind(
    outcome: &ProcessOutcome,
    skill: &Skill,
    args: &[OsString],
    environment: &ShimEnvironment,
) -> Option<Interpreter> {
    let answer = ShimAnswer::parse(outcome)?;
    let real = answer.executable.canonicalize().ok()?;
    let is_detour = answer.executable.is_absolute()
        && real == answer.running
        && answer.folder == skill.path.canonicalize().ok()?
        && answer.is_session_leader
        && answer.args == args
        && answer.has_inherited_state()
        && compared_variables(&answer.environment) == compared_variables(environment);
    is_detour.then(|| Interpreter {
        program: answer.executable,
        venv: None,
        search_path: variable_value(&answer.environment, "PATH"),
    })
}

type ShimEnvironment = Vec<(OsString, OsString)>;

fn variable_value(environment: &ShimEnvironment, name: &str) -> Option<OsString> {
    let mut environment = environment.iter();
    let (_, value) = environment.find(|(known, _)| known == name)?;
    Some(value.clone())
}

/// The variables that a shim must not change.
fn compared_variables(environment: &ShimEnvironment) -> BTreeMap<&OsStr, &OsStr> {
    let pairs = environment.iter().map(|(name, value)| (&**name, &**value));
    let is_own = |name: &OsStr| {
        let name = name.as_bytes();
        let is_managers = |prefix: &&str| name.starts_with(prefix.as_bytes());
        SHELL_VARIABLES.iter().any(|own| own.as_bytes() == name)
            || MANAGER_PREFIXES.iter().any(is_managers)
    };
    pairs.filter(|(name, _)| !is_own(name)).collect()
}

/// The program's parsed answer.
struct ShimAnswer<'o> {
    executable: PathBuf,
    /// The program that is running, by `/proc/self/exe`.
    running: PathBuf,
    folder: PathBuf,
    /// Whether it is the process that was started, so no wrapper waits for its end.
    is_session_leader: bool,
    /// Its command line without the program.
    args: Vec<OsString>,
    environment: ShimEnvironment,
    inherited: Vec<&'o [u8]>,
}

impl<'o> ShimAnswer<'o> {
    /// `None` if the program failed or printed anything else.
    fn parse(outcome: &'o ProcessOutcome) -> Option<ShimAnswer<'o>> {
        let is_silent = outcome.stderr.total_bytes() == 0 && outcome.left_behind == 0;
        if outcome.exit != ProcessExit::Exited(0) || !is_silent {
            return None;
        }
        let parts = split_parts(outcome.stdout.head())?;
        let [executable, leads, exe, cwd, words, variables, inherited @ ..] = parts.as_slice()
        else {
            return None;
        };
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let environment = nul_terminated_texts(variables).map(|entry| {
            let end = entry.iter().position(|byte| *byte == b'=');
            let (name, value) = entry.split_at(end.unwrap_or(entry.len()));
            (os_string(name), os_string(value.get(1..).unwrap_or_default()))
        });
        Some(ShimAnswer {
            executable: path(executable),
            running: path(exe),
            folder: path(cwd),
            is_session_leader: *leads == b"True",
            args: nul_terminated_texts(words).skip(1).map(os_string).collect(),
            environment: environment.collect(),
            inherited: inherited.to_vec(),
        })
    }

    /// Whether its inherited process state is that of this process.
    fn has_inherited_state(&self) -> bool {
        let own = INHERITED.map(|name| {
            let path = Path::new("/proc/self").join(name);
            let link = fs::read_link(&path).map(|link| link.into_os_string().into_encoded_bytes());
            let content = link.or_else(|_| fs::read(&path)).unwrap_or_default();
            comparable_state(name, &content)
        });
        let names = INHERITED.iter().zip(&self.inherited);
        let theirs = names.map(|(name, content)| comparable_state(name, content));
        self.inherited.len() == own.len() && theirs.eq(own)
    }
}

/// The content of a file of `/proc/self` without what differs for each process.
fn comparable_state(name: &str, content: &[u8]) -> String {
    let content = String::from_utf8_lossy(content);
    let is_right = |line: &&str| match name {
        "status" => STATUS_FIELDS.iter().any(|name| line.starts_with(name)),
        "limits" => !line.starts_with(GUARDIAN_MARK_LIMIT),
        _ => true,
    };
    content.lines().filter(is_right).collect()
}

/// Splits an answer into the parts after the line with their lengths.
fn split_parts(answer: &[u8]) -> Option<Vec<&[u8]>> {
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

/// Splits texts that each end with a NUL.
fn nul_terminated_texts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let pieces = bytes.split_inclusive(|byte| *byte == 0);
    pieces.map(|text| text.strip_suffix(b"\0").unwrap_or(text))
}

fn os_string(text: &[u8]) -> OsString {
    OsStr::from_bytes(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_answers_are_rejected() {
        let whole: [&[u8]; 3] = [b"a", b"", b"b\n"];
        assert_eq!(split_parts(b"1 0 2\nab\n"), Some(whole.to_vec()));
        let broken: [&[u8]; 6] = [
            b"1 0 2\nab",
            b"1 0 2\nabcd",
            b"1 0 2",
            b"hello\n1 0 2\nab\n",
            b"1 18446744073709551615\na",
            b"",
        ];
        for answer in broken {
            assert_eq!(split_parts(answer), None, "{answer:?}");
        }
    }
}
