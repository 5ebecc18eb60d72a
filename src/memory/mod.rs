//! What outlives a conversation: facts in one Markdown file, and daily notes.
//!
//! Both are files of the person's, whose every byte stays. `facts` knows the
//! format and only computes; `store` and `notes` read and write.

mod edit;
pub mod facts;
pub mod notes;
pub mod overlap;
mod scan;
pub mod store;
#[cfg(test)]
mod tests;

pub use store::{Added, Memory};
