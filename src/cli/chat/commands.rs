//! The commands of a conversation, in one table that drives parsing, `/help` and errors.

use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::invocation::{ReservedName, SlashCommand};
use crate::ui::Output;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::text;

/// A row of the table of commands.
pub(super) struct ChatCommand {
    /// The name and its synonyms.
    names: &'static [&'static str],
    /// The argument, as `/help` shows it: empty if there is none, in brackets if it may be
    /// missing.
    usage: &'static str,
    about: &'static str,
    /// Runs the command with the trimmed argument.
    run: fn(&mut Chat<'_>, &str, &mut Output) -> Result<LineOutcome>,
}

/// Every command, in the order of `/help`.
static COMMANDS: &[ChatCommand] = &[
    ChatCommand {
        names: &["help"],
        usage: "[NAME]",
        about: "list the commands, or describe one",
        run: |_, name, output| Ok(help(name, output)),
    },
    ChatCommand {
        names: &["clear"],
        usage: "",
        about: "delete all messages and start over",
        run: |chat, _, output| Ok(chat.clear(output)),
    },
    ChatCommand {
        names: &["retry"],
        usage: "",
        about: "repeat a request that failed or was interrupted",
        run: |chat, _, output| Ok(chat.retry(output)),
    },
    ChatCommand {
        names: &["undo"],
        usage: "",
        about: "remove the last question and its answer",
        run: |chat, _, output| Ok(chat.undo(output)),
    },
    ChatCommand {
        names: &["model"],
        usage: "[NAME]",
        about: "show the model, or switch to another one",
        run: |chat, name, output| chat.choose_model(name, output),
    },
    ChatCommand {
        names: &["compact"],
        usage: "",
        about: "replace all turns except the last with a summary",
        run: |chat, _, output| chat.compact(output),
    },
    ChatCommand {
        names: &["tokens"],
        usage: "",
        about: "show how much of the context window is used",
        run: |chat, _, output| Ok(chat.show_tokens(output)),
    },
    ChatCommand {
        names: &["attach"],
        usage: "[FILE]",
        about: "add an image or a text file to the next question; without FILE, list attachments",
        run: |chat, name, output| chat.attach(name, output),
    },
    ChatCommand {
        names: &["skills"],
        usage: "",
        about: "list the skills",
        run: |chat, _, output| Ok(chat.list_skills(output)),
    },
    ChatCommand {
        names: &["tools"],
        usage: "",
        about: "list the tools that the model can call",
        run: |chat, _, output| Ok(chat.list_tools(output)),
    },
    ChatCommand {
        names: &["facts"],
        usage: "[add TEXT|remove N]",
        about: "list, add or remove facts remembered between conversations",
        run: |chat, rest, output| chat.run_facts_command(rest, output),
    },
    ChatCommand {
        names: &["session"],
        usage: "",
        about: "show where the conversation is saved",
        run: |chat, _, output| Ok(chat.show_session(output)),
    },
    ChatCommand {
        names: &["save"],
        usage: "NAME",
        about: "save the conversation under this name",
        run: |chat, name, output| chat.save(name, output),
    },
    ChatCommand {
        names: &["exit", "quit"],
        usage: "",
        about: "end the conversation (also Ctrl+D)",
        run: |_, _, _| Ok(LineOutcome::Leave),
    },
];

/// The names of all commands.
pub(super) fn command_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|row| row.names.iter().copied())
}

/// The names that no skill can have after the slash.
pub(super) fn reserved_names() -> Vec<ReservedName> {
    let rows = COMMANDS.iter().flat_map(|row| row.names.iter().map(move |name| (name, row)));
    let reserved =
        rows.map(|(name, row)| ReservedName { name, takes_argument: !row.usage.is_empty() });
    reserved.collect()
}

/// Whether the line is a command of the table.
pub(super) fn is_command(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    line.starts_with('/') && find(&word[1..]).is_some()
}

fn find(name: &str) -> Option<&'static ChatCommand> {
    COMMANDS.iter().find(|row| row.names.contains(&name))
}

fn help(name: &str, output: &mut Output) -> LineOutcome {
    let word = name.trim_start_matches('/');
    let one = find(word);
    if one.is_none() && !word.is_empty() {
        let word = text::one_line(word, limits::SUMMARY_CHARS);
        output.note(&format!("unknown command /{word}; the commands are:"));
    }
    let is_meant = |row: &&ChatCommand| one.is_none_or(|one| std::ptr::eq(*row, one));
    for row in COMMANDS.iter().filter(is_meant) {
        let names: Vec<String> = row.names.iter().map(|name| format!("/{name}")).collect();
        let blank = if row.usage.is_empty() { "" } else { " " };
        let names = names.join(" or ");
        output.note(&format!("{names}{blank}{}: {}", row.usage, row.about));
    }
    if one.is_none() {
        output.note("/SKILL [arguments]: use the skill with this name");
        for line in [
            "a line that starts with a space is always a question",
            "a line that ends with \\ continues on the next line, unless it ends with \\\\ or a space",
            "\"\"\" starts a block of lines; \"\"\" at the end of a line closes it",
            "lines pasted together are one message, after any commands at their start",
            "Ctrl+C cancels the current turn; twice at the prompt, it ends the conversation",
        ] {
            output.note(line);
        }
    }
    LineOutcome::Nothing
}

impl Chat<'_> {
    /// Handles a line: runs a command, or adds a question to the conversation.
    pub(super) fn handle_line(&mut self, line: &str, output: &mut Output) -> LineOutcome {
        self.run_line(line, output).unwrap_or_else(|error| self.refuse_line(error, output))
    }

    fn run_line(&mut self, line: &str, output: &mut Output) -> Result<LineOutcome> {
        let is_question = line.starts_with(char::is_whitespace);
        // Keep the indentation of the first line of a text.
        let line = match line.trim() {
            text if text.contains('\n') => line.trim_end().trim_start_matches('\n'),
            text => text,
        };
        // A line of control characters only, such as an arrow key, is empty.
        if text::sendable(line).trim().is_empty() {
            return Ok(LineOutcome::Nothing);
        }
        let Some(command) = SlashCommand::parse(line).filter(|_| !is_question) else {
            return Ok(self.add_text_question(line, output));
        };
        let SlashCommand { name: word, arguments: rest } = command;
        match find(word) {
            Some(row) if row.usage.is_empty() && !rest.is_empty() => {
                Err(line_error(format!("/{word} takes no argument")).with_hint(AS_QUESTION))
            }
            Some(row)
                if !row.usage.is_empty() && !row.usage.starts_with('[') && rest.is_empty() =>
            {
                Err(line_error(format!("/{word} needs an argument: /{word} {}", row.usage)))
            }
            Some(row) => (row.run)(self, rest, output),
            None => self.invoke_skill(command, line, output),
        }
    }

    /// Reports a line that failed. On a terminal the user can correct it; from a pipe it counts
    /// as a failed turn, so that the exit status is not 0.
    pub(super) fn refuse_line(&mut self, error: Error, output: &mut Output) -> LineOutcome {
        match error.kind() {
            // Ctrl+C cancels what the line started.
            ErrorKind::Interrupted(signal) if self.survives_signal(signal) => {
                self.run.cancellation.interrupt.take_pending();
                output.warn("interrupted; the conversation is unchanged");
            }
            // The signal stays pending: reading the next line ends the conversation.
            ErrorKind::Interrupted(_) => {}
            _ if self.is_terminal => output.error(&error),
            _ => {
                output.start_turn();
                output.end_turn(Some(&error));
                self.failure = Some(error);
            }
        }
        LineOutcome::Nothing
    }
}

/// The error for an invalid line, of which nothing is sent.
pub(super) fn line_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Io, message)
}

/// The hint for a line that may have been meant as a question.
pub(super) const AS_QUESTION: &str = "start the line with a space to send it as a question";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_names_are_unique() {
        let mut all: Vec<&str> = command_names().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
