//! `mcp`: the server, as its clients see it.

mod calls;
mod client;

use client::Client;
