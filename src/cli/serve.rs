//! `mcp`: the skills for clients of the Model Context Protocol.

use crate::cli::args::Typed;
use crate::cli::setup::{Run, Start};
use crate::config::Needs;
use crate::error::Result;
use crate::mcp;
use crate::world::output::Output;

/// Serves until standard input ends.
pub fn run(typed: Typed, start: &Start, output: &mut Output) -> Result<()> {
    let run = Run::with_skills(typed, start, Needs::Skills, output)?;
    run.begin_serving(output);
    mcp::serve(run.bench(), run.typed.skills_as_tools, output)
}
