//! Integration tests: they run the real program against a scripted endpoint on loopback. Each
//! module tests one feature.

#![allow(
    clippy::too_many_lines,
    clippy::similar_names,
    clippy::match_bool,
    clippy::cast_possible_truncation,
    clippy::large_stack_arrays,
    reason = "tests are long tables and sequences"
)]

mod ask;
mod auto_schema;
mod certificates;
mod changes;
mod chat;
mod check;
mod commands;
mod config;
mod confinement;
mod confirm;
mod context;
mod conversation;
mod damaged_documents;
mod demo;
mod dialects;
mod discovery;
mod doctor;
mod endpoint;
mod environments;
mod eval;
mod faults;
mod first_run;
mod generate;
mod harness;
mod hints;
mod images;
mod imports;
mod install;
mod installed;
mod interrupts;
mod invisible_characters;
mod invocation;
mod key_leaks;
mod log;
mod many;
mod masking;
mod mcp;
mod memory;
mod named_skills;
mod needs;
mod network;
mod network_settings;
mod no_skill;
mod office;
mod output;
mod paths;
mod private_files;
mod probe;
mod prompt_file;
mod prompted;
mod questions;
mod quotations;
mod readme;
mod requirements;
mod rescue;
mod sandbox;
mod schema;
mod scripts;
mod search;
mod sessions;
mod setup;
mod skill_documents;
mod skill_files;
mod skills;
mod skills_commands;
mod slips;
mod small_models;
mod source;
mod standard_input;
mod static_binary;
mod strange_folder;
mod stuck;
mod terminal;
mod tools;
mod transcripts;
mod upgrade;
mod user_files;
