//! The conversation's own commands: one table, from which a line is
//! understood, the list of them is made, and a slip is told.

use crate::cli::chat::{Chat, LineOutcome};
use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::text;
use crate::world::output::Output;

/// What may stand behind a command on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandArgument {
    /// Nothing.
    Nothing,
    /// Words, or nothing.
    Optional,
    /// Words.
    Words,
}

/// A row of the table of commands.
pub(super) struct ChatCommand {
    /// The word, and the other words for the same.
    names: &'static [&'static str],
    /// What stands behind it, as the list shows it.
    usage: &'static str,
    about: &'static str,
    takes: CommandArgument,
    /// Does it. What stands behind the word comes trimmed.
    run: fn(&mut Chat<'_>, &str, &mut Output) -> LineOutcome,
}

/// Every command, in the order of the list. A command of several words has its
/// own file here.
static COMMANDS: &[ChatCommand] = &[
    ChatCommand {
        names: &["help"],
        usage: "[NAME]",
        about: "this list, or one line of it",
        takes: CommandArgument::Optional,
        run: |_, name, output| {
            help(name, output);
            LineOutcome::Nothing
        },
    },
    ChatCommand {
        names: &["clear"],
        usage: "",
        about: "forget the conversation",
        takes: CommandArgument::Nothing,
        run: |chat, _, output| {
            chat.conversation.clear();
            let dropped = match chat.detach() {
                names if names.is_empty() => names,
                names => format!(", and what was attached: {names}"),
            };
            output.note(&format!("the conversation is forgotten{dropped}"));
            LineOutcome::Nothing
        },
    },
    ChatCommand {
        names: &["retry"],
        usage: "",
        about: "send a request that failed or was interrupted again",
        takes: CommandArgument::Nothing,
        run: |chat, _, output| chat.retry(output),
    },
    ChatCommand {
        names: &["undo"],
        usage: "",
        about: "take the last question back, with its answer",
        takes: CommandArgument::Nothing,
        run: |chat, _, output| chat.undo(output),
    },
    ChatCommand {
        names: &["model"],
        usage: "[NAME]",
        about: "the model, or another one from here on",
        takes: CommandArgument::Optional,
        run: |chat, name, output| chat.choose_model(name, output),
    },
    ChatCommand {
        names: &["compact"],
        usage: "",
        about: "make a summary of all but the last turn",
        takes: CommandArgument::Nothing,
        run: |chat, _, output| {
            chat.compact(output);
            LineOutcome::Nothing
        },
    },
    ChatCommand {
        names: &["tokens"],
        usage: "",
        about: "how full the model's context is",
        takes: CommandArgument::Nothing,
        run: |chat, _, output| {
            chat.tell_tokens(output);
            LineOutcome::Nothing
        },
    },
    ChatCommand {
        names: &["attach"],
        usage: "[FILE]",
        about: "an image or a text file for the next question; alone: what is attached",
        takes: CommandArgument::Optional,
        run: |chat, name, output| chat.attach(name, output),
    },
    ChatCommand {
        names: &["skills"],
        usage: "",
        about: "the skills",
        takes: CommandArgument::Nothing,
        run: |chat, _, output| {
            chat.list_skills(output);
            LineOutcome::Nothing
        },
    },
    ChatCommand {
        names: &["tools"],
        usage: "",
        about: "what the model may call",
        takes: CommandArgument::Nothing,
        run: |chat, _, output| chat.list_tools(output),
    },
    ChatCommand {
        names: &["facts"],
        usage: "[add TEXT|remove N]",
        about: "what is remembered between conversations",
        takes: CommandArgument::Optional,
        run: |chat, rest, output| chat.facts(rest, output),
    },
    ChatCommand {
        names: &["session"],
        usage: "",
        about: "what is saved of the conversation, and where",
        takes: CommandArgument::Nothing,
        run: |chat, _, output| {
            chat.tell_session(output);
            LineOutcome::Nothing
        },
    },
    ChatCommand {
        names: &["save"],
        usage: "NAME",
        about: "keep the conversation under this name",
        takes: CommandArgument::Words,
        run: |chat, name, output| chat.save(name, output),
    },
    ChatCommand {
        names: &["exit", "quit"],
        usage: "",
        about: "leave (also Ctrl+D)",
        takes: CommandArgument::Nothing,
        run: |_, _, _| LineOutcome::Leave,
    },
];

/// The names of all commands.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|row| row.names.iter().copied())
}

/// Whether the command of this name takes words.
pub(super) fn takes_words(name: &str) -> bool {
    find(name).is_some_and(|row| row.takes != CommandArgument::Nothing)
}

/// Whether the line is one of the table's.
pub(super) fn is_command(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    line.starts_with('/') && find(&word[1..]).is_some()
}

fn find(name: &str) -> Option<&'static ChatCommand> {
    COMMANDS.iter().find(|row| row.names.contains(&name))
}

fn help(name: &str, output: &mut Output) {
    let word = name.trim_start_matches('/');
    let one = find(word);
    if one.is_none() && !word.is_empty() {
        let word = text::one_line(word, limits::SUMMARY_CHARS);
        output.note(&format!("there is no command /{word}; these there are:"));
    }
    let is_meant = |row: &&ChatCommand| one.is_none_or(|one| std::ptr::eq(*row, one));
    for row in COMMANDS.iter().filter(is_meant) {
        let names: Vec<String> = row.names.iter().map(|name| format!("/{name}")).collect();
        let blank = if row.usage.is_empty() { "" } else { " " };
        let names = names.join(" or ");
        output.note(&format!("{names}{blank}{}: {}", row.usage, row.about));
    }
    if one.is_none() {
        output
            .note("/SKILL [arguments]: follow the skill of this name, with what stands behind it");
        for line in [
            "a line that begins with a blank is a question, whatever it says",
            "a line that ends with \\ goes on in the next one, unless it ends with \\\\ or a blank",
            "\"\"\" begins a block of lines, and \"\"\" at the end of a line closes it",
            "lines that are pasted at once are one message, behind the commands that they begin with",
            "Ctrl+C cancels what goes on; at the prompt, pressed twice, it leaves",
        ] {
            output.note(line);
        }
    }
}

impl Chat<'_> {
    /// What a line asks for; a command is done.
    pub(super) fn take_line(&mut self, line: &str, output: &mut Output) -> LineOutcome {
        let is_question = line.starts_with(char::is_whitespace);
        // The indentation of a text's first line is a part of it.
        let line = match line.trim() {
            text if text.contains('\n') => line.trim_end().trim_start_matches('\n'),
            text => text,
        };
        // What a terminal sends for an arrow key says nothing.
        if text::sendable(line).trim().is_empty() {
            return LineOutcome::Nothing;
        }
        let Some(command) = line.strip_prefix('/').filter(|_| !is_question) else {
            return self.question(line, output);
        };
        let (word, rest) = match command.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim_start()),
            None => (command, ""),
        };
        match find(word) {
            Some(row) if row.takes == CommandArgument::Nothing && !rest.is_empty() => {
                self.refuse(format!("/{word} stands alone on its line"), true, output)
            }
            Some(row) if row.takes == CommandArgument::Words && rest.is_empty() => {
                let message = format!("/{word} needs what it is for: /{word} {}", row.usage);
                self.refuse(message, false, output)
            }
            Some(row) => (row.run)(self, rest, output),
            // A path such as /etc/hosts is a question.
            None if word.contains('/') => self.question(line, output),
            None => self.take_name(word, line, rest, output),
        }
    }

    /// Tells that a line is a slip, of which nothing is sent. A person types
    /// it anew; for a script it is a turn that failed, which must not be green.
    pub(super) fn refuse(
        &mut self,
        message: String,
        may_be_sent: bool,
        output: &mut Output,
    ) -> LineOutcome {
        let mut error = Error::new(ErrorKind::Io, message);
        if may_be_sent {
            error = error.with_hint("with a blank in front the line is sent as a question");
        }
        if self.is_terminal {
            output.error(&error);
        } else {
            self.fail(error, output);
        }
        LineOutcome::Nothing
    }

    /// A turn that fails before anything is sent.
    pub(super) fn fail(&mut self, error: Error, output: &mut Output) {
        output.begin_turn();
        output.end_turn(Some(&error));
        self.failure = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice_in_the_table() {
        let mut all: Vec<&str> = names().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for row in COMMANDS {
            assert_eq!(row.usage.is_empty(), row.takes == CommandArgument::Nothing);
        }
    }
}
