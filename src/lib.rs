//! Skills for any language model that speaks OpenAI's chat completions.
//!
//! The crate is the program: `main.rs` hands over arguments, environment and
//! working directory and takes an exit status back. Layers, top to bottom; a
//! module imports only from its own layer and those below it:
//!
//! | layer | modules |
//! |---|---|
//! | 5 front ends | [`cli`] |
//! | 4 conversation | [`agent`], [`context`], [`conversation`], [`instructions`], [`session`] |
//! | 3 doing | [`model`], [`tools`] |
//! | 2 knowing | [`config`], [`settings`], [`dotenv`], [`memory`], [`skills`] |
//! | 1 world | [`world`]: processes, files, network, signals, input, output |
//! | 0 words | [`address`], [`error`], [`event`], [`limits`], [`media`], [`message`], [`secret`], [`text`], [`tool`] |
//!
//! Nothing but the front ends and `world::output` prints, nothing but
//! `main.rs` reads the environment, and nothing exits.

pub mod address;
pub mod agent;
pub mod cli;
pub mod config;
pub mod context;
pub mod conversation;
pub mod dotenv;
pub mod error;
pub mod event;
pub mod instructions;
pub mod limits;
pub mod media;
pub mod memory;
pub mod message;
pub mod model;
pub mod secret;
pub mod session;
pub mod settings;
pub mod skills;
pub mod text;
pub mod tool;
pub mod tools;
pub mod world;
