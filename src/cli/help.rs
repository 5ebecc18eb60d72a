//! The help, made from the tables of commands, options and settings.

use std::fmt::Write as _;

use crate::cli::args::{COMMANDS, OPTIONS};
use crate::settings::SETTINGS;

/// The version line.
pub const VERSION: &str = concat!("skills-runner ", env!("CARGO_PKG_VERSION"), "\n");

const USAGE: &str = "\
Give any OpenAI-compatible language model skills.

Usage:
  skills-runner [OPTIONS] [PROMPT]...          one question, one answer
  command | skills-runner [OPTIONS] [PROMPT]   standard input is the question, or is added to it
  skills-runner                                on a terminal: a conversation
";

const STATUSES: &str = "
Exit status:
  0 answered, 1 failed, 2 wrong usage, 3 stopped by --max-steps or --timeout, 4 the answer was cut off,
  75 temporary (try again later), 77 credentials refused, 78 configuration missing or invalid

The first command to try, without any account: skills-runner demo
";

/// The whole help.
pub fn text() -> String {
    let mut help = String::from(USAGE);
    let commands = COMMANDS
        .iter()
        .map(|row| (row.usage.to_string(), row.about.to_string()));
    section(
        &mut help,
        "Commands (words after -- are never one)",
        commands,
    );
    let options = OPTIONS.iter().map(|row| {
        let short = row
            .short
            .map_or("    ".to_string(), |letter| format!("-{letter}, "));
        let value = row.value.map_or(String::new(), |value| format!(" {value}"));
        (format!("{short}{}{value}", row.long), row.about.to_string())
    });
    section(&mut help, "Options", options);
    let settings = SETTINGS.iter().map(|row| {
        let default = if row.default.is_empty() {
            String::new()
        } else {
            format!(" [{}]", row.default)
        };
        (row.name.to_string(), format!("{}{default}", row.about))
    });
    section(
        &mut help,
        "Settings, from the environment or .env",
        settings,
    );
    help.push_str(STATUSES);
    help
}

fn section(help: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    let rows: Vec<_> = rows.collect();
    let width = rows
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    let _ = writeln!(help, "\n{title}:");
    for (name, about) in rows {
        let _ = writeln!(help, "  {name:width$}  {about}");
    }
}
