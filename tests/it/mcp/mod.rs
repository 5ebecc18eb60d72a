//! The `mcp` command: the MCP server as its clients see it.

mod bad_input;
mod calls;
mod client;
mod eras;
mod lifetime;
mod prompts;
mod resources;
mod skills_as_tools;
mod skills_extension;

pub(super) use client::Client;
