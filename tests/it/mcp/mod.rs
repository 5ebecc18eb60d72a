//! `mcp`: the server, as its clients see it.

mod calls;
mod client;
mod prompts;

use client::Client;
