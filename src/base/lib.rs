//! Values, texts and limits that all parts share: messages, events, errors, settings, secrets.
//!
//! Nothing here opens a file, starts a process or uses the network.
#![forbid(unsafe_code)]

pub mod address;
pub mod bounded;
pub mod digest;
pub mod dotenv;
pub mod error;
pub mod event;
pub mod inexact_json;
pub mod limits;
pub mod media;
pub mod message;
pub mod secret;
pub mod settings;
pub mod text;
pub mod tool;
