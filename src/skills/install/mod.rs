//! Installing skills: what a source contains ([`tree`]), which names can be installed together
//! ([`names`]), and how a skills folder changes at once ([`staging`]).

mod names;
mod record;
mod staging;
mod tree;

pub use names::PathSet;
pub use staging::{StagedChange, Staging, StagingPlaces};
pub use tree::{FoundFiles, FoundSkill, SkillFile, SourceTree};
