//! The loop of requests and tool calls, and what it works on.
//!
//! A [`conversation`] holds the messages, [`context`] fits it into the model's window, [`session`]
//! saves it; [`tools`] are what the model may call, [`memory`] what it keeps between
//! conversations; [`turn`] runs them until the model answers.
#![forbid(unsafe_code)]

pub mod context;
pub mod conversation;
pub mod memory;
pub mod session;
pub mod system_prompt;
pub mod tools;
pub mod turn;
