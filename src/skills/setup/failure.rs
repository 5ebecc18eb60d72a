//! Why a command failed, out of what it printed.
//!
//! What is told apart here are words of programs that may change them; where
//! none is known the last line is the reason.

use crate::error::ErrorKind;
use crate::limits;
use crate::secret::without_logins;
use crate::text;
use crate::world::process::{ProcessExit, ProcessOutcome};

/// A reason in one sentence, and what to do where that is known.
pub(super) struct SetupFailure {
    /// [`ErrorKind::Temporary`] where nothing but the network was in the way.
    pub(super) kind: ErrorKind,
    pub(super) cause: String,
    pub(super) hint: Option<&'static str>,
}

const NO_ENSUREPIP: [&str; 3] =
    ["ensurepip is not available", "No module named ensurepip", "No module named venv"];
const NO_TRUST: [&str; 4] = [
    "CERTIFICATE_VERIFY_FAILED",
    "certificate verify failed",
    "invalid peer certificate",
    "SSL certificate problem",
];
/// What `uv` says where `UV_OFFLINE` is set.
const OFFLINE: [&str; 3] =
    ["network was disabled", "Network connectivity is disabled", "was not found in the cache"];
/// What older pips say of a file that they could not get.
const POOL: &str = "Could not install packages due to an OSError: HTTP";
const NO_NETWORK: [&str; 14] = [
    "error: connection-",
    "Retrying (Retry(",
    "Max retries exceeded",
    "Failed to establish a new connection",
    "Connection refused",
    "Connection timed out",
    "Could not connect",
    "Could not resolve host",
    "Failed to connect to",
    "Name or service not known",
    "Network is unreachable",
    "No route to host",
    "Temporary failure in name resolution",
    "error sending request",
];
const NO_REQUIREMENT: [&str; 5] = [
    "Invalid requirement",
    "Couldn't parse requirement",
    "Failed to parse",
    "Expected package name",
    "Expected end or semicolon",
];
const NO_PACKAGE: [&str; 6] = [
    "No matching distribution found",
    "was not found in the package registry",
    "was not found in the provided package locations",
    "there is no version of",
    "there are no versions of",
    "only the following versions of",
];
/// git's last word where another program has the reason.
const NOT_READ: &str = "Could not read from remote repository.";
const CONFLICT: [&str; 3] = [
    "ResolutionImpossible",
    "these package versions have conflicting dependencies",
    "requirements are unsatisfiable",
];

impl SetupFailure {
    pub(super) fn of(outcome: &ProcessOutcome) -> SetupFailure {
        let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
        let said = CommandOutput(&[&stderr, &stdout]);
        if said.any(&NO_ENSUREPIP) {
            return SetupFailure {
                kind: ErrorKind::Io,
                cause: "this Python cannot make venvs, a part of it is not installed".into(),
                hint: Some(
                    "apt install python3-venv (Debian, Ubuntu), or put `uv` on PATH, which needs no part of Python",
                ),
            };
        }
        let cause = match outcome.ending {
            ProcessExit::Signaled(signal) => format!("it was killed by signal {signal}"),
            _ => said.cause().unwrap_or_else(|| "it said no reason".into()),
        };
        let (kind, hint) = said.remedy();
        SetupFailure {
            kind,
            cause: text::one_line(&without_logins(&cause), limits::SETUP_REASON_BYTES),
            hint,
        }
    }
}

/// What a command printed, the most telling stream first.
struct CommandOutput<'s>(&'s [&'s str]);

impl CommandOutput<'_> {
    fn any(&self, words: &[&str]) -> bool {
        let has = |text: &&str| words.iter().any(|word| text.contains(word));
        self.0.iter().any(has)
    }

    /// Whether the network was in the way. An index that was reached after all
    /// tells its versions.
    fn is_cut_off(&self) -> bool {
        let versions = "(from versions: ";
        let is_reached = self.any(&[versions]) && !self.any(&["(from versions: none)"]);
        self.any(&NO_NETWORK) && !is_reached
    }

    fn cause(&self) -> Option<String> {
        let cause = self.0.iter().find_map(|text| last_words(text))?;
        if cause.ends_with(CONFLICT[1]) {
            let reasons: Vec<&str> = self.0.iter().flat_map(|text| reasons(text)).collect();
            return Some(format!("{cause}: {}", reasons.join(", ")));
        }
        if !self.is_cut_off() {
            return Some(cause);
        }
        let what = if cause.starts_with(NO_PACKAGE[0]) {
            // pip takes an index that it cannot reach for one that is empty.
            "the package index".to_string()
        } else if let Some(host) = host_of_file(&cause) {
            let way = if cause.contains("ProxyError") { "the proxy before " } else { "" };
            format!("{way}the host `{host}`")
        } else {
            return Some(cause);
        };
        let why = self.why_not_reached();
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("{what} was not reached{why}"))
    }

    /// The system's words for it, in the last try.
    fn why_not_reached(&self) -> Option<&str> {
        if self.any(&NO_TRUST) {
            return Some("its certificate is not trusted");
        }
        let why = self.0.iter().find_map(|text| {
            let (_, why) = text.rsplit_once("[Errno ")?.1.split_once("] ")?;
            why.split(['\'', '"', ')', '\n']).next()
        });
        why.or_else(|| self.any(&["timed out", "-timeout"]).then_some("it did not answer in time"))
    }

    /// Whether what was not reached is no page of an index, whose addresses end
    /// with a slash.
    fn is_file(&self) -> bool {
        self.0.iter().any(|text| {
            let fetched = ["Failed to fetch: ", "Unable to fetch ", " while fetching "]
                .iter()
                .find_map(|words| text.split_once(words))
                .and_then(|(_, rest)| rest.split_whitespace().next());
            text.contains(POOL) || fetched.is_some_and(|url| !url.trim_matches('`').ends_with('/'))
        })
    }

    /// What kind of failure it is, and what to do where that is known.
    fn remedy(&self) -> (ErrorKind, Option<&'static str>) {
        if self.any(&["No space left on device"]) {
            return (
                ErrorKind::Io,
                Some("make room on the disk, or set PIP_CACHE_DIR or UV_CACHE_DIR to another one"),
            );
        }
        if self.is_cut_off() && !self.any(&NO_TRUST) {
            let hint = if self.any(&["ssh: "]) {
                "is the host of the repository reachable by ssh?"
            } else if self.any(&["fatal: "]) {
                "is the host of the repository reachable? HTTPS_PROXY sets a proxy"
            } else if self.is_file() {
                "is the host of that file reachable? HTTPS_PROXY sets a proxy"
            } else {
                "is the package index reachable? HTTPS_PROXY sets a proxy, PIP_INDEX_URL or UV_INDEX_URL another index"
            };
            return (ErrorKind::Temporary, Some(hint));
        }
        let table: [(&[&str], &str); 5] = [
            (
                &NO_TRUST,
                "the certificate is not trusted: PIP_CERT or SSL_CERT_FILE names a file with those to trust",
            ),
            (
                &OFFLINE,
                "uv is told to stay offline (UV_OFFLINE), and has it not in its cache: unset that, or set it to 0",
            ),
            (
                &NO_REQUIREMENT,
                "a requirement is a package's name, if need be with its version: openpyxl>=3.1",
            ),
            (
                &NO_PACKAGE,
                "the index has no such package or version for this Python: mend the requirement; a package can bear another name than its module",
            ),
            (
                &CONFLICT,
                "requirements exclude each other: loosen the version of one of them, in the command or where the skill declares it",
            ),
        ];
        let row = table.iter().find(|(words, _)| self.any(words));
        (ErrorKind::Io, row.map(|(_, hint)| *hint))
    }
}

/// What stopped a program that another one ran, or a conflict; the last error of
/// pip's, all of uv's, or the last line.
fn last_words(output: &str) -> Option<String> {
    let plain = text::sendable(output);
    let lines: Vec<&str> = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if let Some(cause) = part(&lines) {
        return Some(cause);
    }
    let mut errors = lines.iter().rev();
    let error = errors.find_map(|line| line.strip_prefix("ERROR: "));
    // Behind that is where it happened, and what at the end.
    if let Some(error) = error.filter(|error| *error != "Exception:") {
        // Some pips tell the line of the file behind a picture of the fault.
        let place = lines.iter().find_map(|line| line.find("(from line ").map(|at| &line[at..]));
        return Some(match place {
            Some(place) if !error.contains(place) => format!("{error} {place}"),
            _ => error.to_string(),
        });
    }
    let begins = |line: &&str| line.starts_with("error: ") || line.starts_with('×');
    let Some(at) = lines.iter().position(begins) else {
        return lines.last().map(|line| (*line).to_string());
    };
    let mut cause = String::new();
    // Hints are given here.
    for line in lines[at..].iter().take_while(|line| !line.starts_with("hint: ")) {
        let line = untied(line);
        match line.strip_prefix("cause: ") {
            Some(rest) => cause.extend([": ", rest]),
            None if cause.is_empty() => cause.push_str(line),
            None => cause.extend([" ", line]),
        }
    }
    Some(cause)
}

/// The cause where it stands among much else.
fn part(lines: &[&str]) -> Option<String> {
    // git's; whoever ran it tells the command, and no reason.
    let is_fatal = |line: &&str| line.starts_with("fatal: ");
    if let Some(at) = lines.iter().position(is_fatal).filter(|_| names_git(lines)) {
        let cause = &lines[at]["fatal: ".len()..];
        // What ssh or the host says of it stands before.
        let before = at.checked_sub(1).map(|before| lines[before]);
        let before = before.filter(|line| {
            !["Running ", "Cloning ", "--- "].iter().any(|begin| line.starts_with(begin))
        });
        return Some(match before {
            Some(said) if cause == NOT_READ => said.to_string(),
            _ => cause.to_string(),
        });
    }
    let conflict = lines.iter().find_map(|line| {
        let cause = line.strip_prefix("ERROR: ")?;
        cause.contains(CONFLICT[1]).then_some(cause)
    });
    if let Some(conflict) = conflict {
        return Some(conflict.trim_end_matches('.').to_string());
    }
    // pip tells such an end twice, the second time without what was said.
    let at = lines.iter().position(|line| *line == "error: subprocess-exited-with-error")?;
    let what = lines[at..].iter().find(|line| line.starts_with('×'))?;
    let what = untied(what).trim_end_matches('.');
    let end = lines[at..].iter().position(|line| untied(line) == "[end of output]");
    Some(match end.and_then(|end| lines[at..].get(end.checked_sub(1)?)) {
        Some(said) => format!("{what}: {}", untied(said)),
        None => what.to_string(),
    })
}

/// What excludes each other, as pip lists it.
fn reasons(output: &str) -> impl Iterator<Item = &str> {
    let lines = output.lines().map(str::trim);
    lines
        .skip_while(|line| *line != "The conflict is caused by:")
        .skip(1)
        .take_while(|line| line.contains(" requested ") || line.contains(" depends on "))
}

/// The host of a file that pip could not get.
fn host_of_file(cause: &str) -> Option<String> {
    if let Some((_, pool)) = cause.split_once("ConnectionPool(host='") {
        let (host, rest) = pool.split_once("', port=")?;
        let port = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        return Some(format!("{host}:{port}"));
    }
    let words = [" while fetching ", "Unable to fetch "];
    let (_, url) = words.iter().find_map(|words| cause.split_once(words))?;
    let (_, place) = url.split_once("://")?;
    let host = place.split(['/', '?', '#', ' ']).next()?;
    Some(host.rsplit('@').next().unwrap_or(host).to_string())
}

fn names_git(lines: &[&str]) -> bool {
    let is_git = |line: &&str| line.contains("git clone ") || line.contains("git fetch ");
    lines.iter().any(is_git)
}

/// Without the branches of the tree that pip and uv draw.
fn untied(line: &str) -> &str {
    line.strip_prefix("error: ")
        .unwrap_or(line)
        .trim_start_matches(['×', '╰', '├', '─', '▶', '│', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_among_other_lines() {
        let table = [
            (
                "WARNING: x\nERROR: Could not find a version that satisfies the requirement a\nERROR: No matching distribution found for a\n\n[notice] A new release\n",
                Some("No matching distribution found for a"),
            ),
            (
                "Using Python 3.11\n  × No solution found when resolving dependencies:\n  ╰─▶ Because a was not found,\n      your requirements are unsatisfiable.\n",
                Some(
                    "No solution found when resolving dependencies: Because a was not found, your requirements are unsatisfiable.",
                ),
            ),
            (
                "error: Failed to parse: `a b`\n  Caused by: x\n",
                Some("Failed to parse: `a b` Caused by: x"),
            ),
            (
                "Traceback\nOSError: [Errno 28] No space left on device\n",
                Some("OSError: [Errno 28] No space left on device"),
            ),
            (
                "ERROR: Invalid requirement: 'a b': Expected end or semicolon\n    a b\n      ^ (from line 3 of requirements.txt)\n",
                Some(
                    "Invalid requirement: 'a b': Expected end or semicolon (from line 3 of requirements.txt)",
                ),
            ),
            (
                "  Running command git clone --quiet https://h.invalid/x.git /tmp/x\n  fatal: unable to access 'https://h.invalid/x.git/': Could not resolve host: h.invalid\n  error: subprocess-exited-with-error\n  × git clone did not run successfully.\n  │ exit code: 128\nerror: subprocess-exited-with-error\n\n× git clone did not run successfully.\n",
                Some(
                    "unable to access 'https://h.invalid/x.git/': Could not resolve host: h.invalid",
                ),
            ),
            (
                "  error: subprocess-exited-with-error\n  × python setup.py egg_info did not run successfully.\n  │ exit code: 1\n  ╰─> [2 lines of output]\n      Traceback:\n      ImportError: no x\n      [end of output]\n\nerror: metadata-generation-failed\n× Encountered error\n",
                Some("python setup.py egg_info did not run successfully: ImportError: no x"),
            ),
            (
                "error: No solution found\n  cause: Because a was not found in the cache\n\nhint: Packages were unavailable because the network was disabled.\n",
                Some("No solution found: Because a was not found in the cache"),
            ),
            (
                "ERROR: Exception:\nTraceback (most recent call last):\n  File \"x\"\nUnicodeDecodeError: 'utf-8' codec\n",
                Some("UnicodeDecodeError: 'utf-8' codec"),
            ),
            ("\n", None),
        ];
        for (output, expected) in table {
            assert_eq!(last_words(output).as_deref(), expected);
        }
    }

    /// The error is on one stream, its reasons on the other.
    #[test]
    fn a_conflict_has_its_reasons() {
        let stderr = "ERROR: Cannot install a==1 and b because these package versions have conflicting dependencies.\nERROR: ResolutionImpossible: for help visit x\n";
        let stdout = "Collecting a\n\nThe conflict is caused by:\n    The user requested a==1\n    b 2.0 depends on a>1\n\nTo fix this you could try to:\n1. loosen\n";
        let expected = "Cannot install a==1 and b because these package versions have conflicting dependencies: The user requested a==1, b 2.0 depends on a>1";
        assert_eq!(CommandOutput(&[stderr, stdout]).cause().as_deref(), Some(expected));
    }

    #[test]
    fn an_index_that_was_not_reached_is_told() {
        let none = "ERROR: Could not find a version (from versions: none)\nERROR: No matching distribution found for a\n";
        let broken = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<x>: Failed to establish a new connection: [Errno 111] Connection refused')': /simple/a/\n";
        let some = none.replace("none", "1.0, 2.0");
        for (output, expected) in [
            (format!("{broken}{none}"), "the package index was not reached: Connection refused"),
            (format!("{broken}{some}"), "No matching distribution found for a"),
            (none.to_string(), "No matching distribution found for a"),
        ] {
            assert_eq!(CommandOutput(&[&output]).cause().as_deref(), Some(expected));
        }
    }

    /// What a requirement names by its URL lies on no index.
    #[test]
    fn a_host_that_was_not_reached_is_told() {
        let file = "is the host of that file reachable?";
        let git = "  Running command git clone --quiet 'ssh://****@h:9/x.git' /tmp/x\n";
        let end = "  fatal: Could not read from remote repository.\n\n  Please make sure\n";
        for (output, cause, hint) in [
            (
                "ERROR: Could not install packages due to an OSError: HTTPSConnectionPool(host='h.invalid', port=443): Max retries exceeded with url: /x.zip (Caused by NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f711e0995d0>: Failed to establish a new connection: [Errno -2] Name or service not known'))\n".to_string(),
                "the host `h.invalid:443` was not reached: Name or service not known",
                file,
            ),
            (
                "ERROR: Could not install packages due to an OSError: HTTPConnectionPool(host='h', port=80): Max retries exceeded with url: /x.zip (Caused by ReadTimeoutError(\"HTTPConnectionPool(host='h', port=80): Read timed out. (read timeout=1.0)\"))\n".to_string(),
                "the host `h:80` was not reached: it did not answer in time",
                file,
            ),
            (
                "error: connection-failed\n\n× Failed to connect to h while fetching https://me:****@h:9/x.zip\n╰─> [Errno 111] Connection refused\n\nhint: Are you connected?\n".to_string(),
                "the host `h:9` was not reached: Connection refused",
                file,
            ),
            (
                "error: connection-timeout\n\n× Unable to fetch http://h:9/x.zip\n╰─> h didn't respond within 1.0 seconds\n\nhint: This\n".to_string(),
                "the host `h:9` was not reached: it did not answer in time",
                file,
            ),
            (
                "error: Failed to download `x @ https://h/x.zip`\n  cause: Failed to fetch: https://h/x.zip\n  cause: error sending request\n".to_string(),
                "Failed to download `x @ https://h/x.zip`: Failed to fetch: https://h/x.zip: error sending request",
                file,
            ),
            (
                format!("{git}  ssh: connect to host h port 9: Connection refused\n{end}"),
                "ssh: connect to host h port 9: Connection refused",
                "is the host of the repository reachable by ssh?",
            ),
            (
                format!("{git}  fatal: unable to access 'https://h/': Could not resolve host: h\n"),
                "unable to access 'https://h/': Could not resolve host: h",
                "is the host of the repository reachable? HTTPS_PROXY",
            ),
        ] {
            let said = CommandOutput(&[&output]);
            assert_eq!(said.cause().as_deref(), Some(cause));
            let (kind, found) = said.remedy();
            assert_eq!(kind, ErrorKind::Temporary, "{output}");
            assert!(found.unwrap().starts_with(hint), "{output}: {found:?}");
        }
        for (before, cause) in [
            ("  git@h: Permission denied (publickey).\n", "git@h: Permission denied (publickey)."),
            ("", NOT_READ),
        ] {
            let output = format!("{git}{before}{end}");
            assert_eq!(CommandOutput(&[&output]).cause().as_deref(), Some(cause));
            assert_eq!(CommandOutput(&[&output]).remedy().0, ErrorKind::Io);
        }
    }

    #[test]
    fn what_to_do_is_told_for_what_is_known() {
        use ErrorKind::{Io, Temporary};
        for (output, kind, expected) in [
            (
                "WARNING: Retrying (Retry(total=0))\nERROR: (from versions: none)\nERROR: No matching distribution found for a",
                Temporary,
                Some("is the package index reachable?"),
            ),
            (
                "WARNING: Retrying (Retry(total=0))\nERROR: (from versions: 1.0)\nERROR: No matching distribution found for a",
                Io,
                Some("the index has no such package"),
            ),
            (
                "error: Failed to fetch: `http://h/`\n  cause: error sending request\n  cause: tcp connect error\n",
                Temporary,
                Some("is the package index reachable?"),
            ),
            (
                "error: Failed to fetch: `http://h/`\n  cause: HTTP status client error (404 Not Found)\n",
                Io,
                None,
            ),
            (
                "error: Failed to fetch\n  cause: error sending request\n  cause: invalid peer certificate: UnknownIssuer\n",
                Io,
                Some("the certificate is not trusted"),
            ),
            (
                "fatal: unable to access 'https://h/': Could not resolve host: h",
                Temporary,
                Some("is the host of the repository reachable?"),
            ),
            (
                "ERROR: No matching distribution found for a",
                Io,
                Some("the index has no such package"),
            ),
            (
                "  ╰─▶ Because a was not found in the package registry and you require a, your requirements are unsatisfiable",
                Io,
                Some("the index has no such package"),
            ),
            (
                "error: No solution\n  cause: Because a was not found in the cache and you require a, your requirements are unsatisfiable\nhint: the network was disabled",
                Io,
                Some("uv is told to stay offline (UV_OFFLINE)"),
            ),
            (
                "error: No solution\n  cause: Because you require a==1 and a<1, your requirements are unsatisfiable",
                Io,
                Some("requirements exclude each other"),
            ),
            (
                "ERROR: Cannot install a\nERROR: ResolutionImpossible: for help visit x",
                Io,
                Some("requirements exclude each other"),
            ),
            ("ERROR: Invalid requirement: 'a b'", Io, Some("a requirement is")),
            (
                "error: Couldn't parse requirement in `requirements.txt` at position 0",
                Io,
                Some("a requirement is"),
            ),
            ("ERROR: Failed building wheel for a", Io, None),
        ] {
            let (found, hint) = CommandOutput(&[output]).remedy();
            assert_eq!(found, kind, "{output}");
            let begins = hint.zip(expected).is_some_and(|(hint, begin)| hint.starts_with(begin));
            assert!(begins || hint == expected, "{output}: {hint:?}");
        }
    }
}
