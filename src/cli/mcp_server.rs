//! `mcp`: a Model Context Protocol server on standard input and output.

use crate::cli::args::CommandLine;
use crate::cli::setup::{Run, Startup};
use crate::config::ConfigNeeds;
use crate::error::Result;
use crate::mcp;
use crate::world::output::Output;

/// Serves until standard input ends.
pub(super) fn run(args: CommandLine, startup: &Startup, output: &mut Output) -> Result<()> {
    let run = Run::with_skills(args, startup, ConfigNeeds::Skills, output)?;
    run.start_serving(output);
    mcp::serve(run.tool_context(), run.args.skills_as_tools, output)
}
