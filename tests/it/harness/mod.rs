//! What the integration tests are written with.
//!
//! A test makes a [`Server`] that plays the endpoint from a script, a [`Test`]
//! that is a fresh folder and a command line, runs the real program, and says
//! what must have come of it:
//!
//! ```ignore
//! let server = Server::start(vec![Reply::text("4")]);
//! Test::new().endpoint(&server).args(["what is 2 + 2?"]).run().success().stdout("4\n");
//! assert_eq!(server.finish()[0].last_message()["content"], "what is 2 + 2?");
//! ```
//!
//! Three things are checked without being asked for: that the key never shows
//! in what the program prints or in what it sends as a body, that the program
//! does not panic, and that every history it sends is one which the strictest
//! provider takes (see `history`). Nothing here knows how the program works
//! inside: it is driven through its interface alone.
#![allow(dead_code, unused_imports, reason = "the words of a language, not all used by every test")]

mod capture;
mod command;
mod completion;
mod connection;
mod filter;
mod history;
mod outcome;
mod processes;
mod proxy;
mod python;
mod reply;
mod request;
mod server;
mod stopwatch;
mod terminal;
mod tls;
mod wire;
mod workspace;

use std::fmt::Display;
use std::io::{Write as _, stderr};
use std::time::Duration;

pub(crate) use command::{Running, forget_signals};
pub(crate) use filter::{LANDLOCK, OPENAT2, Refused, SECCOMP, without, without_in};
pub(crate) use outcome::Outcome;
pub(crate) use processes::{family_of, is_alive, processes_with_marker, wait_until};
pub(crate) use proxy::Proxy;
pub(crate) use python::interpreter;
pub(crate) use reply::{Reply, event, last_event};
pub(crate) use request::Request;
pub(crate) use server::Server;
pub(crate) use stopwatch::Stopwatch;
pub(crate) use terminal::Terminal;
pub(crate) use tls::{TlsServer, tls_file};
pub(crate) use workspace::Test;

/// The key that [`Test::endpoint`] configures. It may stand in a request's
/// headers and nowhere else.
pub(crate) const CANARY: &str = "sk-canary-7f3a91c2d4e8b650";

/// The model that [`Test::endpoint`] configures.
pub(crate) const MODEL: &str = "test-model";

/// How long anything may take before the test fails, unless it says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// A length of time, in the words of a test: `seconds(0.5)`.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Says what is not tried here, and why. It is not captured as what a test
/// prints is: who reads the tests' output shall see it.
pub(crate) fn skipped(why: impl Display) {
    // In one piece, as tests run side by side.
    let line = format!("skipped: {why}\n");
    let _ = stderr().write_all(line.as_bytes());
}

/// Whether this line of a shell succeeds on this machine; said where it does not.
pub(crate) fn works(line: &str) -> bool {
    let tried = Test::new().shell(&format!("{line} >/dev/null 2>&1")).run();
    if tried.status != 0 {
        skipped(format_args!("`{line}` does not work on this machine"));
    }
    tried.status == 0
}
