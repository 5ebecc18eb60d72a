//! The real program against a scripted endpoint on loopback.
//!
//! Each module is one part of what users rely on. `R-…` in a test's comment
//! names the requirement it proves.

#![allow(
    clippy::too_many_lines,
    clippy::similar_names,
    clippy::match_bool,
    clippy::cast_possible_truncation,
    clippy::large_stack_arrays,
    reason = "tests are long tables, told in order"
)]

mod ask;
mod canary;
mod certificates;
mod changes;
mod chat;
mod check;
mod config;
mod confirm;
mod context;
mod conversation;
mod demo;
mod dialects;
mod discovery;
mod doctor;
mod documents;
mod doors;
mod endpoint;
mod environments;
mod faults;
mod generate;
mod harness;
mod images;
mod imports;
mod installed;
mod interrupts;
mod invisible;
mod invocation;
mod log;
mod many;
mod masking;
mod mcp;
mod memory;
mod network;
mod network_settings;
mod no_skill;
mod office;
mod output;
mod paths;
mod probe;
mod prompt_file;
mod questions;
mod readme;
mod sandbox;
mod scripts;
mod sessions;
mod setup;
mod skills;
mod skills_commands;
mod source;
mod standard_input;
mod static_binary;
mod terminal;
mod tools;
