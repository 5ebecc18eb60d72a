//! What `--generate` prints: the man page and the completions of shells, made
//! from the same tables as the help. Nothing here reads anything.

use crate::cli::table::{Action, Command, CommandRow, OptionRow};
use crate::tools;
use crate::world::output::FORMATS;

mod complete;
mod man;

/// A writer of one of them.
pub(crate) type Generator = fn() -> String;

/// Everything that can be generated, by its name.
pub(crate) static KINDS: [(&str, Generator); 4] = [
    ("man", man::page),
    ("complete-bash", complete::bash),
    ("complete-zsh", complete::zsh),
    ("complete-fish", complete::fish),
];

/// What is likely to be typed in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CompletionKind {
    /// Nobody can know.
    Unknown,
    File,
    Folder,
    /// The name of a skill.
    Skill,
    /// The name of a saved conversation.
    Session,
    /// One of these words.
    Word(String),
}

fn word<'n>(names: impl Iterator<Item = &'n str>) -> CompletionKind {
    CompletionKind::Word(names.collect::<Vec<_>>().join(" "))
}

/// The value of an option.
fn value(row: &OptionRow) -> CompletionKind {
    match (row.action, row.value) {
        (Action::Output, _) => word(FORMATS.iter().map(|(name, _)| *name)),
        (Action::Generate, _) => word(KINDS.iter().map(|(name, _)| *name)),
        (Action::Session, _) => CompletionKind::Session,
        (_, Some("FILE")) => CompletionKind::File,
        (_, Some("DIR")) => CompletionKind::Folder,
        _ => CompletionKind::Unknown,
    }
}

/// The words of a command before the name that it takes, whether it takes more
/// than one, and whose name it is.
fn named(row: &CommandRow) -> Option<(&'static str, bool, CompletionKind)> {
    let (before, rest) = row.usage.split_once("NAME")?;
    let guess = match row.which {
        Command::Tool => word(tools::TABLE.iter().map(|tool| tool.name())),
        Command::Sessions => CompletionKind::Session,
        // Its name is still to be found.
        Command::Skills if !before.contains(" new ") => CompletionKind::Skill,
        _ => return None,
    };
    Some((before.trim_end_matches([' ', '[']), rest == "]...", guess))
}

#[cfg(test)]
mod tests {
    use super::{CompletionKind, KINDS, value};
    use crate::cli::table::{Action, COMMANDS, OPTIONS};

    /// What a script would have to escape, and does not.
    #[test]
    fn rows_hold_no_signs_that_end_an_explanation() {
        let options = OPTIONS.iter().map(|row| row.about);
        for about in options.chain(COMMANDS.iter().map(|row| row.about)) {
            assert!(!about.contains([']', '\\']), "{about}");
        }
    }

    /// The help's line about `--generate` is written by hand.
    #[test]
    fn the_help_names_the_kinds() {
        let kinds = KINDS.map(|(name, _)| name);
        let mut rows = OPTIONS.iter();
        let row = rows.find(|row| matches!(row.action, Action::Generate)).unwrap();
        let (_, named) = row.about.split_once(": ").unwrap();
        assert_eq!(named, kinds.join(", "));
        assert_eq!(value(row), CompletionKind::Word(kinds.join(" ")));
    }
}
