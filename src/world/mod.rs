//! Access to the operating system: processes, files, network, signals, terminals.
//!
//! The only layer that contains `unsafe`; every use states why it is sound.

mod after_fork;
pub(crate) mod archive;
pub(crate) mod cancellation;
pub(crate) mod capture;
pub(crate) mod clock;
pub(crate) mod confined;
pub(crate) mod event_source;
pub(crate) mod files;
pub(crate) mod git_index;
mod guardian;
pub(crate) mod hardening;
pub(crate) mod line_editing;
pub(crate) mod lines;
mod listing;
pub(crate) mod lock;
pub(crate) mod net;
mod poll;
pub(crate) mod process;
mod process_tree;
pub(crate) mod random;
pub(crate) mod sandbox;
pub(crate) mod scratch;
pub(crate) mod signal;
pub(crate) mod subreaper;
pub(crate) mod terminal;
pub(crate) mod typing;
pub(crate) mod worker;
