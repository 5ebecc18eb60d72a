//! The output of `--generate`: the man page and shell completions, generated from the
//! same tables as the help. This part reads no files and no settings.

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

#[cfg(test)]
mod tests {
    use super::KINDS;
    use crate::cli::commands::COMMANDS;
    use crate::cli::option_table::{OPTIONS, OptionRow};

    /// The completion scripts do not escape these characters.
    #[test]
    fn descriptions_need_no_escaping() {
        let options = OPTIONS.iter().map(OptionRow::whole_about);
        for about in options.chain(COMMANDS.iter().map(|row| row.about.to_string())) {
            assert!(!about.contains([']', '\\']), "{about}");
        }
    }

    /// The description of `--generate` does not come from `KINDS`.
    #[test]
    fn help_lists_all_kinds() {
        let kinds = KINDS.map(|(name, _)| name);
        let row = OPTIONS.iter().find(|row| row.long() == "--generate").unwrap();
        let (_, named) = row.about.split_once(": ").unwrap();
        assert_eq!(named, kinds.join(", "));
    }
}
