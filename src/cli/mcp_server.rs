//! `mcp`: a Model Context Protocol server on standard input and output.

use crate::cli::model_input::record_start;
use crate::cli::options::{CommonOptions, McpOptions};
use crate::cli::run::Run;
use crate::cli::startup::Startup;
use crate::config::ConfigNeeds;
use crate::mcp;
use crate::ui::Output;
use agent::tools::ToolContext;
use base::error::Result;

/// Serves until standard input ends.
pub(super) fn run(
    command: &McpOptions,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<()> {
    let mut run = Run::new(options, startup, ConfigNeeds::Skills, output)?;
    run.apply_tool_options(&command.tools, output)?;
    run.check_folders(output)?;
    run.check_lock_files()?;
    let catalogue = run.skills.catalogue();
    run.report_skills(&catalogue, "there is nothing to serve", output);
    record_start(&catalogue, output);
    let context = ToolContext { user_files: command.user_files, ..run.tool_context() };
    mcp::serve(context, command.skills_as_tools, output)
}
