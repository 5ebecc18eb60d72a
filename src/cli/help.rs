//! The text of `--help`, generated from the tables of commands, options and settings.

use std::fmt::Write as _;

use crate::cli::commands::{COMMANDS, CommandRow};
use crate::cli::option_table::{Effect, OPTIONS, OptionRow};
use base::limits;
use base::settings::{SETTINGS, Setting};

/// The version line.
pub(crate) const VERSION: &str = concat!("skills-runner ", env!("CARGO_PKG_VERSION"), "\n");

/// The purpose of the program, in one line.
pub(crate) const SUMMARY: &str = "Give any OpenAI-compatible language model skills.";

/// The ways to call the program, each with its effect.
pub(crate) static USAGES: [(&str, &str); 3] = [
    ("skills-runner [OPTIONS] [PROMPT]...", "one question, one answer"),
    (
        "command | skills-runner [OPTIONS] [PROMPT]",
        "standard input is the question, or is added to it",
    ),
    ("skills-runner", "on a terminal: a conversation"),
];

/// The exit statuses, each with its meaning.
pub(crate) static STATUSES: [(&str, &str); 9] = [
    ("0", "answered"),
    ("1", "failed"),
    ("2", "wrong usage"),
    ("3", "stopped by a limit, or by a call that repeats itself"),
    ("4", "the answer was cut off"),
    ("5", "without the required skill or script"),
    ("75", "temporary (try again later)"),
    ("77", "credentials refused"),
    ("78", "configuration missing or invalid"),
];

/// The help of the command that the words begin with, or else the whole help, in lines of at most
/// `columns`.
pub(crate) fn text(words: &[String], columns: usize) -> String {
    let mut words = words.iter();
    let (name, subcommand) = (words.next(), words.next());
    let rows = || COMMANDS.iter().filter(|row| name.is_some_and(|name| row.name() == name));
    let is_meant = |row: &&CommandRow| subcommand.is_some_and(|it| row.subcommand() == Some(it));
    let meant: Vec<&CommandRow> = match rows().find(is_meant) {
        Some(row) => vec![row],
        None => rows().collect(),
    };
    if meant.is_empty() { whole_text(columns) } else { command_text(&meant, columns) }
}

/// The help of commands, with the options that only some commands take.
fn command_text(rows: &[&CommandRow], columns: usize) -> String {
    let mut help = String::new();
    for row in rows {
        let _ = writeln!(help, "skills-runner {}", row.usage);
        for line in wrap(row.about, columns - 2) {
            let _ = writeln!(help, "  {line}");
        }
    }
    let takes = |option: &&OptionRow| {
        use Effect::{Common, Generate, Help, Version};
        let is_common = matches!(option.effect, Common(_) | Generate | Help | Version);
        let mut commands = rows.iter().filter_map(|row| row.example().ok());
        !is_common && commands.any(|mut command| option.works_only(&mut command).is_none())
    };
    let mut only = if let [row] = rows { row.example().ok() } else { None };
    let options = OPTIONS.iter().filter(takes).map(|row| match &mut only {
        Some(command) => option_entry(row, row.about_for(command)),
        None => option_entry(row, &row.whole_about()),
    });
    section(&mut help, "Options", options, columns);
    help.push('\n');
    paragraph(&mut help, "Options of every command, and settings: skills-runner --help", columns);
    help
}

/// An option and its description as a row of a table.
fn option_entry(row: &OptionRow, about: &str) -> (String, String) {
    let indent = if row.short().is_some() { "" } else { "    " };
    (format!("{indent}{}", row.usage), about.to_string())
}

fn whole_text(columns: usize) -> String {
    let mut help = String::new();
    paragraph(&mut help, SUMMARY, columns);
    let usages = USAGES.iter().map(|(usage, about)| (usage.to_string(), about.to_string()));
    section(&mut help, "Usage", usages, columns);
    let commands = COMMANDS.iter().map(|row| (row.usage.to_string(), row.about.to_string()));
    section(&mut help, "Commands (every word after -- belongs to the prompt)", commands, columns);
    let options = OPTIONS.iter().map(|row| option_entry(row, &row.whole_about()));
    section(&mut help, "Options", options, columns);
    let settings = SETTINGS.iter().map(|row| (row.name.to_string(), meaning(row)));
    section(&mut help, "Settings (environment variables or .env)", settings, columns);
    help += "\nExit status:\n";
    let statuses = STATUSES.map(|(status, about)| [status, about].join(" "));
    for line in wrap(&statuses.join(", "), columns - 2) {
        let _ = writeln!(help, "  {line}");
    }
    help.push('\n');
    paragraph(&mut help, "To try it without an account: skills-runner demo", columns);
    help
}

/// The description of a setting, with its default.
pub(crate) fn meaning(row: &Setting) -> String {
    match row.default {
        "" => row.about.to_string(),
        default => format!("{} [{default}]", row.about),
    }
}

/// Adds a wrapped text.
fn paragraph(help: &mut String, text: &str, columns: usize) {
    for line in wrap(text, columns) {
        let _ = writeln!(help, "{line}");
    }
}

/// Adds a table of two columns; the second is wrapped.
fn section(
    help: &mut String,
    title: &str,
    rows: impl Iterator<Item = (String, String)>,
    columns: usize,
) {
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let beside = columns.saturating_sub(width + 4);
    help.push('\n');
    paragraph(help, &format!("{title}:"), columns);
    for (name, about) in rows {
        let (mut name, mut width, mut room) = (name.as_str(), width, beside);
        if beside < limits::HELP_ABOUT_COLUMNS {
            let _ = writeln!(help, "  {name}");
            (name, width, room) = ("", 4, columns - 8);
        }
        for line in wrap(&about, room) {
            let _ = writeln!(help, "  {name:width$}  {line}");
            name = "";
        }
    }
}

/// Breaks a text between words into lines of at most `room` columns; longer words
/// are not split.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let (mut start, mut end, mut width) = (0, 0, 0);
    for word in text.split_inclusive(' ') {
        let more = base::text::columns(word);
        if width > 0 && width + base::text::columns(word.trim_end()) > room {
            lines.push(text[start..end].trim_end());
            (start, width) = (end, 0);
        }
        end += word.len();
        width += more;
    }
    lines.push(&text[start..]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_fits_its_width() {
        for columns in [70, 80, 100] {
            let commands = COMMANDS.iter().map(|row| text(&[row.name().to_string()], columns));
            for help in commands.chain([text(&[], columns)]) {
                for line in help.lines() {
                    assert!(line.chars().count() <= columns, "{line}");
                }
            }
        }
    }
}
