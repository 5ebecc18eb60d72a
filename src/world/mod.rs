//! The world outside: processes, files, network, signals, terminals. The only
//! layer with `unsafe`, each with its reason.

pub mod attendant;
pub mod capture;
pub mod clock;
pub mod confined;
pub mod files;
mod guardian;
pub mod harden;
pub mod input;
pub mod lines;
pub mod lock;
pub mod net;
pub mod output;
pub mod patience;
pub mod process;
pub mod random;
pub mod sandbox;
pub mod scratch;
pub mod signal;
pub mod terminal;
pub mod typing;
