//! Access to the operating system: processes, files, network, signals, terminals.
//!
//! The only crate that contains `unsafe`; every use states why it is sound.

mod after_fork;
pub mod archive;
pub mod cancellation;
pub mod capture;
pub mod clock;
pub mod confined;
pub mod event_source;
pub mod files;
pub mod git_index;
mod guardian;
pub mod hardening;
pub mod line_editing;
pub mod lines;
mod listing;
pub mod lock;
pub mod net;
mod poll;
pub mod process;
mod process_tree;
pub mod random;
pub mod sandbox;
pub mod scratch;
pub mod signal;
pub mod subreaper;
pub mod terminal;
pub mod typing;
pub mod worker;
