//! Status of a report line, and terminal colours.

pub(super) const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
pub(super) const RED: &str = "\x1b[31m";
pub(super) const YELLOW: &str = "\x1b[33m";
pub(super) const PLAIN: &str = "\x1b[0m";

/// Terminal features, by the environment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TerminalFeatures {
    /// Colours: false with `NO_COLOR` or on a dumb terminal.
    pub has_color: bool,
    /// The cursor can move: false on a dumb terminal.
    pub can_move: bool,
}

/// Status of a report line, shown as its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// No problem.
    Good,
    /// Not relevant.
    Neutral,
    /// Works, but could be better.
    Warning,
    /// Does not work.
    Bad,
}

impl Tone {
    /// Escape sequence that starts the colour.
    pub(super) fn color(self) -> &'static str {
        match self {
            Tone::Good => GREEN,
            Tone::Neutral => DIM,
            Tone::Warning => YELLOW,
            Tone::Bad => RED,
        }
    }
}
