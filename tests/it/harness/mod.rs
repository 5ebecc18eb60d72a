//! The harness of the integration tests.
//!
//! A test creates a [`Server`] that answers requests from a script, and a [`Test`], which is a
//! new folder and a command line, runs the real program, and checks the outcome:
//!
//! ```ignore
//! let server = Server::start(vec![Reply::text("4")]);
//! Test::new().endpoint(&server).args(["what is 2 + 2?"]).run().success().stdout("4\n");
//! assert_eq!(server.finish()[0].last_message()["content"], "what is 2 + 2?");
//! ```
//!
//! Three checks are made in every test: the API key never appears in the output or in a request's
//! body, the program does not panic, and every history sent is accepted by the strictest providers
//! (see `history`). The harness uses only the program's external interface.
#![allow(dead_code, unused_imports, reason = "an API of which not every part is used")]

mod capture;
mod command;
mod completion;
mod connection;
mod history;
mod outcome;
mod processes;
mod proxy;
mod python;
mod reply;
mod request;
mod server;
mod stopwatch;
mod syscall_filter;
mod terminal;
mod tls;
mod wire;
mod workspace;

use std::fmt::Display;
use std::io::{Write as _, stderr};
use std::time::Duration;

pub(crate) use command::{Running, program, reset_signal_handlers};
pub(crate) use outcome::Outcome;
pub(crate) use processes::{is_alive, process_tree, processes_with_marker, wait_until};
pub(crate) use proxy::Proxy;
pub(crate) use python::interpreter;
pub(crate) use reply::{Reply, event, last_event};
pub(crate) use request::{ProgramText, Request};
pub(crate) use server::Server;
pub(crate) use stopwatch::Stopwatch;
pub(crate) use syscall_filter::{
    LANDLOCK, OPENAT2, RefusedSyscall, SECCOMP, program_refusing_syscalls,
    shell_line_refusing_syscalls,
};
pub(crate) use terminal::Terminal;
pub(crate) use tls::{TlsServer, tls_file};
pub(crate) use workspace::Test;

/// The API key that [`Test::endpoint`] configures. It may appear in a request's headers only.
pub(crate) const CANARY: &str = "sk-canary-7f3a91c2d4e8b650";

/// The model that [`Test::endpoint`] configures.
pub(crate) const MODEL: &str = "test-model";

/// The tools of an MCP server without `--user-files`.
pub(crate) const MCP_TOOLS: [&str; 4] =
    ["list_skills", "get_skill", "read_file_in_skill", "run_python_script"];

/// The tools that are offered where there is a skill and Python.
pub(crate) const SKILL_TOOLS: [&str; 8] = [
    "list_skills",
    "get_skill",
    "read_file_in_skill",
    "run_python_script",
    "run_command",
    "read_file",
    "write_file",
    "edit_file",
];

/// How long a run or a wait may take before the test fails, unless the test sets a timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A duration in seconds: `seconds(0.5)`.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Reports that a check is skipped, and why. Written to stderr directly, so that the test runner
/// does not capture it.
pub(crate) fn report_skipped(reason: impl Display) {
    // In one write, since tests run in parallel.
    let line = format!("skipped: {reason}\n");
    let _ = stderr().write_all(line.as_bytes());
}

/// Whether this shell line succeeds on this machine. If not, the skip is reported.
pub(crate) fn shell_line_works(line: &str) -> bool {
    let tried = Test::new().shell(&format!("{line} >/dev/null 2>&1")).run();
    if tried.status != 0 {
        report_skipped(format_args!("`{line}` does not work on this machine"));
    }
    tried.status == 0
}
