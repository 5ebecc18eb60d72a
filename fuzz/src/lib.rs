//! What must hold whatever is read: one module for each reader, one function
//! in it that panics where a law is broken.
//!
//! `fuzz_targets/` hands them to libFuzzer, `examples/replay.rs` runs them over
//! the seeds and their mutations with a stable compiler. A new target is a
//! module, a row of [`TARGETS`], a file in `fuzz_targets/` with its row in
//! `Cargo.toml`, and a folder of seeds.

pub mod arguments;
pub mod capture_mask;
pub mod cuts;
pub mod dotenv;
pub mod facts;
pub mod frontmatter;
pub mod invocation;
pub mod jsonrpc;
pub mod memory;
pub mod paths;
pub mod reply;
pub mod requirements;
pub mod session;
pub mod sse;

/// Panics where a law is broken for these bytes.
pub type Check = fn(&[u8]);

/// Every target, by its name.
pub const TARGETS: &[(&str, Check)] = &[
    ("arguments", arguments::check),
    ("capture_mask", capture_mask::check),
    ("dotenv", dotenv::check),
    ("facts", facts::check),
    ("frontmatter", frontmatter::check),
    ("invocation", invocation::check),
    ("jsonrpc", jsonrpc::check),
    ("paths", paths::check),
    ("reply", reply::check),
    ("requirements", requirements::check),
    ("session", session::check),
    ("sse", sse::check),
];
