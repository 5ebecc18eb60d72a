//! Shell completions: one script per shell, with lists generated from the tables.

use super::KINDS;
use crate::cli::commands::COMMANDS;
use crate::cli::option_table::{OPTIONS, OptionRow};
use crate::ui::FORMATS;
use agent::tools;

/// Kind of value that a shell completes for an option.
enum ValueKind {
    /// A text that only the user knows.
    Unknown,
    File,
    Folder,
    /// One of these words.
    Words(String),
}

fn value_kind(row: &OptionRow) -> ValueKind {
    match row.value() {
        Some("FILE") => ValueKind::File,
        Some("DIR") => ValueKind::Folder,
        Some("FORMAT") => ValueKind::Words(FORMATS.map(|(name, _)| name).join(" ")),
        Some("KIND") => ValueKind::Words(KINDS.map(|(name, _)| name).join(" ")),
        _ => ValueKind::Unknown,
    }
}

/// The completion script for bash.
pub(super) fn bash() -> String {
    let mut values = String::new();
    for (name, row) in option_names() {
        let action = match value_kind(row) {
            _ if row.value().is_none() => continue,
            ValueKind::Unknown => "reply=".to_string(),
            ValueKind::File => "compopt -o default".to_string(),
            ValueKind::Folder => "compopt -o dirnames".to_string(),
            ValueKind::Words(words) => format!("reply='{words}'"),
        };
        values += &format!("    [[ $option != {name} ]] || {action}\n");
    }
    let word = |(before, word, _): (&str, &str, &str)| {
        format!("    [[ $before != '{before}' ]] || reply+=' {word}'\n")
    };
    let names: Vec<String> = option_names().map(|(name, _)| name).collect();
    include_str!("complete.bash")
        .replace("@OPTIONS@", &values)
        .replace("@WORDS@", &command_words().map(word).collect::<String>())
        .replace("@ALL@", &names.join(" "))
        .replace("@TAKING@", &names_with_value("|"))
}

/// The completion script for zsh.
pub(super) fn zsh() -> String {
    let mut options = String::new();
    for (name, row) in option_names() {
        let about = row.whole_about().replace('\'', "'\\''");
        let value = match (row.value(), value_kind(row)) {
            (None, _) => String::new(),
            (Some(value), ValueKind::Unknown) => format!(":{value}: "),
            (Some(value), ValueKind::File) => format!(":{value}: _files"),
            (Some(value), ValueKind::Folder) => format!(":{value}: _files -/"),
            (Some(value), ValueKind::Words(words)) => format!(":{value}: compadd {words}"),
        };
        let sign = match &name {
            _ if value.is_empty() => "",
            long if long.starts_with("--") => "=",
            _ => "+",
        };
        options += &format!("        '*{name}{sign}[{about}]{value}' \\\n");
    }
    let word = |(before, word, about): (&str, &str, &str)| {
        let about = about.replace('\'', "'\\''");
        format!("    [[ $before != '{before}' ]] || rows+=('{word}:{about}')\n")
    };
    include_str!("complete.zsh")
        .replace("@OPTIONS@", &options)
        .replace("@WORDS@", &command_words().map(word).collect::<String>())
}

/// The completion script for fish.
pub(super) fn fish() -> String {
    let mut options = String::new();
    for (name, row) in option_names() {
        let name = match name.strip_prefix("--") {
            Some(long) => format!("-l {long}"),
            None => format!("-s {}", name.trim_start_matches('-')),
        };
        let value = match value_kind(row) {
            _ if row.value().is_none() => String::new(),
            ValueKind::Unknown => " -x".to_string(),
            ValueKind::File => " -rF".to_string(),
            ValueKind::Folder => " -xa '(__fish_complete_directories)'".to_string(),
            ValueKind::Words(words) => format!(" -xa '{words}'"),
        };
        let about = row.whole_about().replace('\'', "\\'");
        options += &format!("complete -c skills-runner {name}{value} -d '{about}'\n");
    }
    let word = |(before, word, about): (&str, &str, &str)| {
        let about = about.replace('\'', "\\'");
        format!(
            "complete -c skills-runner -n '__skills_runner_at \"{before}\"' -fa {word} -d '{about}'\n"
        )
    };
    include_str!("complete.fish")
        .replace("@OPTIONS@", &options)
        .replace("@WORDS@", &command_words().map(word).collect::<String>())
        .replace("@TAKING@", &names_with_value(" "))
}

/// The names of all options, short and long, with their rows.
fn option_names() -> impl Iterator<Item = (String, &'static OptionRow)> {
    OPTIONS.iter().flat_map(|row| {
        let short = row.short().map(|letter| format!("-{letter}"));
        short.into_iter().chain([row.long().to_string()]).map(move |name| (name, row))
    })
}

fn names_with_value(separator: &str) -> String {
    let names = option_names().filter(|(_, row)| row.value().is_some());
    names.map(|(name, _)| name).collect::<Vec<_>>().join(separator)
}

/// The words that can follow other words: commands, subcommands and tools, each with the words
/// before it and a description.
fn command_words() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let names = COMMANDS.iter().enumerate().filter_map(|(index, row)| {
        let is_first = index == 0 || COMMANDS[index - 1].name() != row.name();
        is_first.then_some(("", row.name(), row.about))
    });
    let subcommands =
        COMMANDS.iter().filter_map(|row| Some((row.name(), row.subcommand()?, row.about)));
    let tools = tools::BUILTIN_TOOLS.iter().map(|row| ("tool", row.tool.name(), "a tool"));
    names.chain(subcommands).chain(tools)
}
