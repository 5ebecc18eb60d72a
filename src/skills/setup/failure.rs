//! The cause of a failed command, extracted from its output.
//!
//! The texts are those of pip, uv and git, which may change them; without a known text the last
//! line is the cause.

use crate::error::ErrorKind;
use crate::limits;
use crate::secret::mask_url_logins;
use crate::text;
use crate::world::process::{ProcessExit, ProcessOutcome};

/// The cause of a failure in one sentence, and a hint if one is known.
pub(super) struct SetupFailure {
    /// [`ErrorKind::Temporary`] if only the network failed.
    pub(super) kind: ErrorKind,
    pub(super) cause: String,
    pub(super) hint: Option<&'static str>,
}

const NO_ENSUREPIP: [&str; 3] =
    ["ensurepip is not available", "No module named ensurepip", "No module named venv"];
const UNTRUSTED_CERTIFICATE: [&str; 4] = [
    "CERTIFICATE_VERIFY_FAILED",
    "certificate verify failed",
    "invalid peer certificate",
    "SSL certificate problem",
];
/// Messages of `uv` if `UV_OFFLINE` is set.
const OFFLINE: [&str; 3] =
    ["network was disabled", "Network connectivity is disabled", "was not found in the cache"];
/// Message of older pips about a file that they could not download.
const OLD_PIP_HTTP: &str = "Could not install packages due to an OSError: HTTP";
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
const INVALID_REQUIREMENT: [&str; 5] = [
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
/// The last line of git if another program printed the cause.
const REPOSITORY_NOT_READ: &str = "Could not read from remote repository.";
const CONFLICT: [&str; 3] = [
    "ResolutionImpossible",
    "these package versions have conflicting dependencies",
    "requirements are unsatisfiable",
];

impl SetupFailure {
    pub(super) fn from_outcome(outcome: &ProcessOutcome) -> SetupFailure {
        let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
        let output = CommandOutput(&[&stderr, &stdout]);
        if output.contains_any(&NO_ENSUREPIP) {
            return SetupFailure {
                kind: ErrorKind::Io,
                cause: "this Python cannot create venvs: a part of it is not installed".into(),
                hint: Some(
                    "apt install python3-venv (Debian, Ubuntu), or put `uv` on PATH, which does not need that part",
                ),
            };
        }
        let cause = match outcome.exit {
            ProcessExit::Signaled(signal) => format!("it was killed by signal {signal}"),
            _ => output.cause().unwrap_or_else(|| "it gave no reason".into()),
        };
        let (kind, hint) = output.remedy();
        SetupFailure {
            kind,
            cause: text::one_line(&mask_url_logins(&cause), limits::SETUP_REASON_BYTES),
            hint,
        }
    }
}

/// The output of a command, the more important stream first.
struct CommandOutput<'s>(&'s [&'s str]);

impl CommandOutput<'_> {
    fn contains_any(&self, words: &[&str]) -> bool {
        let has = |text: &&str| words.iter().any(|word| text.contains(word));
        self.0.iter().any(has)
    }

    /// Whether the network failed. An index that was reached after all lists its versions.
    fn is_network_failure(&self) -> bool {
        let versions = "(from versions: ";
        let is_reached =
            self.contains_any(&[versions]) && !self.contains_any(&["(from versions: none)"]);
        self.contains_any(&NO_NETWORK) && !is_reached
    }

    fn cause(&self) -> Option<String> {
        let cause = self.0.iter().find_map(|text| extract_cause(text))?;
        if cause.ends_with(CONFLICT[1]) {
            let reasons: Vec<&str> =
                self.0.iter().flat_map(|text| conflict_reasons(text)).collect();
            return Some(format!("{cause}: {}", reasons.join(", ")));
        }
        if !self.is_network_failure() {
            return Some(cause);
        }
        let what = if cause.starts_with(NO_PACKAGE[0]) {
            // pip treats an index that it cannot reach as empty.
            "the package index".to_string()
        } else if let Some(host) = host_of_file(&cause) {
            let way = if cause.contains("ProxyError") { "the proxy for " } else { "" };
            format!("{way}the host `{host}`")
        } else {
            return Some(cause);
        };
        let why = self.connection_cause();
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("{what} was not reached{why}"))
    }

    /// Returns the system's error message of the last attempt.
    fn connection_cause(&self) -> Option<&str> {
        if self.contains_any(&UNTRUSTED_CERTIFICATE) {
            return Some("its certificate is not trusted");
        }
        let why = self.0.iter().find_map(|text| {
            let (_, why) = text.rsplit_once("[Errno ")?.1.split_once("] ")?;
            why.split(['\'', '"', ')', '\n']).next()
        });
        why.or_else(|| {
            self.contains_any(&["timed out", "-timeout"]).then_some("it did not answer in time")
        })
    }

    /// Whether the unreachable URL is a file, not a page of an index, which ends with a slash.
    fn is_file_download(&self) -> bool {
        self.0.iter().any(|text| {
            let fetched = ["Failed to fetch: ", "Unable to fetch ", " while fetching "]
                .iter()
                .find_map(|words| text.split_once(words))
                .and_then(|(_, rest)| rest.split_whitespace().next());
            text.contains(OLD_PIP_HTTP)
                || fetched.is_some_and(|url| !url.trim_matches('`').ends_with('/'))
        })
    }

    /// Returns the kind of failure, and a hint if one is known.
    fn remedy(&self) -> (ErrorKind, Option<&'static str>) {
        if self.contains_any(&["No space left on device"]) {
            return (
                ErrorKind::Io,
                Some("free space on the disk, or set PIP_CACHE_DIR or UV_CACHE_DIR to another one"),
            );
        }
        if self.is_network_failure() && !self.contains_any(&UNTRUSTED_CERTIFICATE) {
            let hint = if self.contains_any(&["ssh: "]) {
                "is the host of the repository reachable by ssh?"
            } else if self.contains_any(&["fatal: "]) {
                "is the host of the repository reachable? HTTPS_PROXY sets a proxy"
            } else if self.is_file_download() {
                "is the host of that file reachable? HTTPS_PROXY sets a proxy"
            } else {
                "is the package index reachable? HTTPS_PROXY sets a proxy, PIP_INDEX_URL or UV_INDEX_URL another index"
            };
            return (ErrorKind::Temporary, Some(hint));
        }
        let table: [(&[&str], &str); 5] = [
            (
                &UNTRUSTED_CERTIFICATE,
                "the certificate is not trusted: set PIP_CERT or SSL_CERT_FILE to a file with the certificates to trust",
            ),
            (
                &OFFLINE,
                "uv is offline (UV_OFFLINE), and the package is not in its cache: unset UV_OFFLINE, or set it to 0",
            ),
            (
                &INVALID_REQUIREMENT,
                "a requirement is a package name, optionally with a version: openpyxl>=3.1",
            ),
            (
                &NO_PACKAGE,
                "the index has no such package or version for this Python: correct the requirement; a package can have another name than its module",
            ),
            (
                &CONFLICT,
                "requirements exclude each other: loosen the version of one of them, in the command or where the skill declares it",
            ),
        ];
        let row = table.iter().find(|(words, _)| self.contains_any(words));
        (ErrorKind::Io, row.map(|(_, hint)| *hint))
    }
}

/// Returns the error of a program that the installer ran, or a conflict; otherwise pip's last
/// error, uv's whole error, or the last line.
fn extract_cause(output: &str) -> Option<String> {
    let plain = text::sendable(output);
    let lines: Vec<&str> = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if let Some(cause) = embedded_cause(&lines) {
        return Some(cause);
    }
    let mut errors = lines.iter().rev();
    let error = errors.find_map(|line| line.strip_prefix("ERROR: "));
    // A traceback follows `Exception:`; its last line is the cause.
    if let Some(error) = error.filter(|error| *error != "Exception:") {
        // Some pips print the line number only after an excerpt of the file.
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
    // The hints are replaced by those of this file.
    for line in lines[at..].iter().take_while(|line| !line.starts_with("hint: ")) {
        let line = without_tree(line);
        match line.strip_prefix("cause: ") {
            Some(rest) => cause.extend([": ", rest]),
            None if cause.is_empty() => cause.push_str(line),
            None => cause.extend([" ", line]),
        }
    }
    Some(cause)
}

/// Returns a cause that is embedded in other output.
fn embedded_cause(lines: &[&str]) -> Option<String> {
    // The cause from git; the installer only prints the command.
    let is_fatal = |line: &&str| line.starts_with("fatal: ");
    if let Some(at) = lines.iter().position(is_fatal).filter(|_| names_git(lines)) {
        let cause = &lines[at]["fatal: ".len()..];
        // The message of ssh or the host is on the line before.
        let before = at.checked_sub(1).map(|before| lines[before]);
        let before = before.filter(|line| {
            !["Running ", "Cloning ", "--- "].iter().any(|begin| line.starts_with(begin))
        });
        return Some(match before {
            Some(output) if cause == REPOSITORY_NOT_READ => output.to_string(),
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
    // pip reports such a failure twice, the second time without the output.
    let at = lines.iter().position(|line| *line == "error: subprocess-exited-with-error")?;
    let what = lines[at..].iter().find(|line| line.starts_with('×'))?;
    let what = without_tree(what).trim_end_matches('.');
    let end = lines[at..].iter().position(|line| without_tree(line) == "[end of output]");
    Some(match end.and_then(|end| lines[at..].get(end.checked_sub(1)?)) {
        Some(output) => format!("{what}: {}", without_tree(output)),
        None => what.to_string(),
    })
}

/// Returns the conflicting requirements that pip lists.
fn conflict_reasons(output: &str) -> impl Iterator<Item = &str> {
    let lines = output.lines().map(str::trim);
    lines
        .skip_while(|line| *line != "The conflict is caused by:")
        .skip(1)
        .take_while(|line| line.contains(" requested ") || line.contains(" depends on "))
}

/// Returns the host of a file that could not be downloaded.
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

/// Strips the tree that pip and uv draw.
fn without_tree(line: &str) -> &str {
    line.strip_prefix("error: ")
        .unwrap_or(line)
        .trim_start_matches(['×', '╰', '├', '─', '▶', '│', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_found_among_other_lines() {
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
            assert_eq!(extract_cause(output).as_deref(), expected);
        }
    }

    /// The error is on one stream, its causes on the other.
    #[test]
    fn a_conflict_lists_its_causes() {
        let stderr = "ERROR: Cannot install a==1 and b because these package versions have conflicting dependencies.\nERROR: ResolutionImpossible: for help visit x\n";
        let stdout = "Collecting a\n\nThe conflict is caused by:\n    The user requested a==1\n    b 2.0 depends on a>1\n\nTo fix this you could try to:\n1. loosen\n";
        let expected = "Cannot install a==1 and b because these package versions have conflicting dependencies: The user requested a==1, b 2.0 depends on a>1";
        assert_eq!(CommandOutput(&[stderr, stdout]).cause().as_deref(), Some(expected));
    }

    #[test]
    fn an_unreachable_index_is_reported() {
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

    /// A requirement with a URL needs no index.
    #[test]
    fn an_unreachable_host_is_reported() {
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
            let parsed = CommandOutput(&[&output]);
            assert_eq!(parsed.cause().as_deref(), Some(cause));
            let (kind, found) = parsed.remedy();
            assert_eq!(kind, ErrorKind::Temporary, "{output}");
            assert!(found.unwrap().starts_with(hint), "{output}: {found:?}");
        }
        for (before, cause) in [
            ("  git@h: Permission denied (publickey).\n", "git@h: Permission denied (publickey)."),
            ("", REPOSITORY_NOT_READ),
        ] {
            let output = format!("{git}{before}{end}");
            assert_eq!(CommandOutput(&[&output]).cause().as_deref(), Some(cause));
            assert_eq!(CommandOutput(&[&output]).remedy().0, ErrorKind::Io);
        }
    }

    #[test]
    fn known_failures_have_a_hint() {
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
                Some("uv is offline (UV_OFFLINE)"),
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
