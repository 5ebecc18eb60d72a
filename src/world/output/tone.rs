//! How things stand, and the colours for it on a terminal.

pub(super) const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
pub(super) const RED: &str = "\x1b[31m";
pub(super) const YELLOW: &str = "\x1b[33m";
pub(super) const PLAIN: &str = "\x1b[0m";

/// How a line of a report stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Beside the point.
    Aside,
    /// Works, and could be better.
    Doubtful,
    /// Does not work.
    Bad,
}

impl Tone {
    /// What switches its colour on.
    pub(super) fn color(self) -> &'static str {
        match self {
            Tone::Good => GREEN,
            Tone::Aside => DIM,
            Tone::Doubtful => YELLOW,
            Tone::Bad => RED,
        }
    }
}
