//! The output of `--generate`: the man page and shell completions, generated from the
//! same tables as the help. This part reads no files and no settings.

use crate::cli::table::{Action, Command, CommandRow, OptionRow};
use crate::tools;
use crate::world::output::FORMATS;

mod complete;
mod man;

/// A function that returns the generated text.
pub(crate) type Generator = fn() -> String;

/// The values of `--generate`.
pub(crate) static KINDS: [(&str, Generator); 4] = [
    ("man", man::page),
    ("complete-bash", complete::bash),
    ("complete-zsh", complete::zsh),
    ("complete-fish", complete::fish),
];

/// The kind of word that a shell should complete.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CompletionKind {
    /// No completion.
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

fn word_list<'n>(names: impl Iterator<Item = &'n str>) -> CompletionKind {
    CompletionKind::Word(names.collect::<Vec<_>>().join(" "))
}

/// The kind of an option's value.
fn value_kind(row: &OptionRow) -> CompletionKind {
    match (row.action, row.value) {
        (Action::Output, _) => word_list(FORMATS.iter().map(|(name, _)| *name)),
        (Action::Generate, _) => word_list(KINDS.iter().map(|(name, _)| *name)),
        (Action::Session, _) => CompletionKind::Session,
        (_, Some("FILE")) => CompletionKind::File,
        (_, Some("DIR")) => CompletionKind::Folder,
        _ => CompletionKind::Unknown,
    }
}

/// For a command that takes a NAME: the words before it, whether NAME may be repeated,
/// and the kind of NAME.
fn named_operand(row: &CommandRow) -> Option<(&'static str, bool, CompletionKind)> {
    let (before, rest) = row.usage.split_once("NAME")?;
    let kind = match row.command {
        Command::Tool => word_list(tools::BUILTIN_TOOLS.iter().map(|tool| tool.name())),
        Command::Sessions => CompletionKind::Session,
        // `skills new NAME` takes a name that does not exist yet.
        Command::Skills if !before.contains(" new ") => CompletionKind::Skill,
        _ => return None,
    };
    Some((before.trim_end_matches([' ', '[']), rest == "]...", kind))
}

#[cfg(test)]
mod tests {
    use super::{CompletionKind, KINDS, value_kind};
    use crate::cli::table::{Action, COMMANDS, OPTIONS};

    /// The completion scripts do not escape these characters.
    #[test]
    fn descriptions_need_no_escaping() {
        let options = OPTIONS.iter().map(|row| row.about);
        for about in options.chain(COMMANDS.iter().map(|row| row.about)) {
            assert!(!about.contains([']', '\\']), "{about}");
        }
    }

    /// The description of `--generate` does not come from `KINDS`.
    #[test]
    fn help_lists_all_kinds() {
        let kinds = KINDS.map(|(name, _)| name);
        let mut rows = OPTIONS.iter();
        let row = rows.find(|row| matches!(row.action, Action::Generate)).unwrap();
        let (_, named) = row.about.split_once(": ").unwrap();
        assert_eq!(named, kinds.join(", "));
        assert_eq!(value_kind(row), CompletionKind::Word(kinds.join(" ")));
    }
}
