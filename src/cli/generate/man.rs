//! The manual page, in the `man` macros. Its text is ASCII, so that it looks the same in
//! every locale.

use std::fmt::Write as _;

use crate::cli::commands::COMMANDS;
use crate::cli::help::{STATUSES, SUMMARY, USAGES, meaning, wrap};
use crate::cli::option_table::OPTIONS;
use base::limits;
use base::settings::SETTINGS;

const DESCRIPTION: &str = "\
A skill is a folder of instructions, reference files and Python scripts for a particular task. The model \
discovers, reads and runs what it needs. Standard output carries the answer and nothing else; standard \
error shows each tool call. `skills-runner doctor` finds what does not work and says how to fix it.";

const COMMANDS_ABOUT: &str =
    "The first word may be a command; every word after `--` belongs to the prompt.";

const ENVIRONMENT: &str = "Options override environment variables, which override files.";

static FILES: [(&str, &str); 2] = [
    ("./.env", "settings of the working folder"),
    (
        "$XDG_CONFIG_HOME/skills-runner/.env",
        "settings of the user (in ~/.config if the variable is not set)",
    ),
];

static EXAMPLES: [(&str, &str); 4] = [
    ("skills-runner demo", "try it without an account"),
    (
        "tail -n 500 app.log | skills-runner \"what fails here?\"",
        "standard input is added to the question",
    ),
    ("skills-runner -o json \"question\" | jq -r .answer", "one object for programs"),
    ("skills-runner skills check", "report problems of the skills"),
];

/// The manual page.
pub(super) fn page() -> String {
    let mut page = concat!(
        ".\\\" Written by `skills-runner --generate man`.\n",
        ".TH SKILLS\\-RUNNER 1 \"\" \"skills\\-runner ",
        env!("CARGO_PKG_VERSION"),
        "\" \"User Commands\"\n.SH NAME\nskills\\-runner \\- "
    )
    .to_string();
    page += &text(SUMMARY.trim_end_matches('.'));
    page += "\n.SH SYNOPSIS";
    for (index, (usage, _)) in USAGES.iter().enumerate() {
        page += if index == 0 { "\n" } else { "\n.br\n" };
        words(&mut page, usage);
    }
    section(&mut page, "DESCRIPTION", DESCRIPTION, &mut USAGES.iter().map(owned));
    let mut commands = COMMANDS.iter().map(|row| (row.usage.to_string(), row.about.to_string()));
    section(&mut page, "COMMANDS", COMMANDS_ABOUT, &mut commands);
    let mut options = OPTIONS.iter().map(|row| (row.usage.to_string(), row.whole_about()));
    section(&mut page, "OPTIONS", "", &mut options);
    let mut settings = SETTINGS.iter().map(|row| (row.name.to_string(), meaning(row)));
    section(&mut page, "ENVIRONMENT", ENVIRONMENT, &mut settings);
    section(&mut page, "FILES", "", &mut FILES.iter().map(owned));
    section(&mut page, "EXIT STATUS", "", &mut STATUSES.iter().map(owned));
    section(&mut page, "EXAMPLES", "", &mut EXAMPLES.iter().map(owned));
    page += "\n.SH SEE ALSO\n.BR env (1),\n.BR xargs (1)\n";
    page
}

fn owned((name, about): &(&str, &str)) -> (String, String) {
    ((*name).to_string(), (*about).to_string())
}

/// Adds a section: a paragraph, and rows of names with descriptions.
fn section(
    page: &mut String,
    title: &str,
    paragraph: &str,
    rows: &mut dyn Iterator<Item = (String, String)>,
) {
    let _ = write!(page, "\n.SH \"{title}\"");
    if !paragraph.is_empty() {
        lines(page, paragraph);
    }
    for (name, about) in rows {
        page.push_str("\n.TP\n");
        words(page, &name);
        lines(page, &about);
    }
}

/// Adds a paragraph, wrapped into lines.
fn lines(page: &mut String, paragraph: &str) {
    for line in wrap(&text(paragraph), limits::REPORT_COLUMNS) {
        page.push('\n');
        page.push_str(line);
    }
}

/// Adds a command line: literal words in bold, placeholders in italics.
fn words(page: &mut String, typed: &str) {
    for (index, word) in typed.split(' ').enumerate() {
        let is_placeholder =
            word.contains(|c: char| c.is_ascii_uppercase()) && !word.contains(['_', '-']);
        page.push_str(if index == 0 { "" } else { " " });
        page.push_str(if is_placeholder { "\\fI" } else { "\\fB" });
        page.push_str(&text(word));
        page.push_str("\\fR");
    }
}

/// Escapes a text for the macros; text between backquotes becomes bold.
fn text(text: &str) -> String {
    let mut page = String::new();
    let mut is_code = false;
    for character in text.chars() {
        match character {
            '`' => {
                is_code = !is_code;
                page.push_str(if is_code { "\\fB" } else { "\\fR" });
            }
            '\\' => page.push_str("\\e"),
            '-' => page.push_str("\\-"),
            '\'' => page.push_str("\\(aq"),
            '~' => page.push_str("\\(ti"),
            '^' => page.push_str("\\(ha"),
            // At the start of a line it would be a request.
            '.' if page.is_empty() || page.ends_with(' ') => page.push_str("\\&."),
            // Terminals without UTF-8 have no such character.
            '…' => page.push_str("..."),
            ' '..='\u{7e}' => page.push(character),
            _ => {
                let _ = write!(page, "\\[u{:04X}]", u32::from(character));
            }
        }
    }
    page
}
