//! `mcp`: the skills for clients of the Model Context Protocol.

use crate::cli::args::CommandLine;
use crate::cli::setup::{Run, Startup};
use crate::config::ConfigNeeds;
use crate::error::Result;
use crate::mcp;
use crate::world::output::Output;

/// Serves until standard input ends.
pub(super) fn run(typed: CommandLine, start: &Startup, output: &mut Output) -> Result<()> {
    let run = Run::with_skills(typed, start, ConfigNeeds::Skills, output)?;
    run.begin_serving(output);
    mcp::serve(run.tool_context(), run.typed.skills_as_tools, output)
}
