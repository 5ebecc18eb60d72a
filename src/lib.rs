//! Skills for any language model that speaks OpenAI's chat completions.

pub mod address;
pub mod agent;
pub mod config;
pub mod conversation;
pub mod dotenv;
pub mod error;
pub mod event;
pub mod instructions;
pub mod limits;
pub mod message;
pub mod model;
pub mod secret;
pub mod settings;
pub mod skills;
pub mod text;
pub mod tool;
pub mod tools;
pub mod world;
