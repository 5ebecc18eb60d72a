//! Fuzz targets: one module for each parser, with a function that panics if a property is
//! violated.
//!
//! `fuzz_targets/` passes them to libFuzzer; `examples/replay.rs` runs them on the seeds and
//! mutations with a stable compiler. A new target needs a module, a row of [`TARGETS`], a
//! file in `fuzz_targets/`, an entry in `Cargo.toml`, and a folder of seeds. The modules
//! `cuts` and `memory` are not targets: the targets use them.

pub mod archive;
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

/// A check, which panics if a property is violated for these bytes.
pub type Check = fn(&[u8]);

/// All targets with their names.
pub const TARGETS: &[(&str, Check)] = &[
    ("archive", archive::check),
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
