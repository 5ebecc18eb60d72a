//! The table of commands. The parser, the help, the man page and the completions read it. A new
//! command is a row here and a variant in `options`.

use std::vec;

use crate::cli::options::{
    AskOptions, ChangeAction, ChangeCommand, CheckCommand, Command, EvalCommand, FactsCommand,
    InitCommand, McpOptions, SessionsCommand, SetupCommand, SkillsCommand, ToolCommand,
    ToolOptions,
};
use crate::cli::values::usage;
use base::error::Result;
use base::limits;
use base::text;

/// A row of the table of commands.
#[derive(Debug)]
pub(super) struct CommandRow {
    /// The words that select the command, in small letters, and its arguments: in brackets if they
    /// are optional, with dots if they can be repeated.
    pub usage: &'static str,
    /// A short description.
    pub about: &'static str,
    /// A hint after too few or too many arguments, besides the usage.
    hint: Option<&'static str>,
    /// Makes the command of its arguments, which are as many as it requires.
    make: fn(Operands) -> Result<Command>,
}

/// The arguments of a command.
type Operands = vec::IntoIter<String>;

const fn command(
    usage: &'static str,
    about: &'static str,
    make: fn(Operands) -> Result<Command>,
) -> CommandRow {
    CommandRow { usage, about, hint: None, make }
}

const FACT_NUMBERS: &str = "`skills-runner facts list` shows the numbers";
const SESSION_NAMES: &str = "`skills-runner sessions list` shows the names";

/// Every command. The first subcommand runs if none is typed.
pub(super) static COMMANDS: &[CommandRow] = &[
    command(
        "chat [PROMPT]...",
        "start a conversation; from a pipe, each line is one turn",
        |words| Ok(Command::Chat(AskOptions { prompt: joined(words), ..AskOptions::default() })),
    ),
    command("demo", "try it without an account: a scripted model, real tools and skills", |_| {
        Ok(Command::Demo(ToolOptions::default()))
    }),
    command(
        "init",
        "the first set-up: finds or asks for the endpoint, writes your .env, checks it",
        |_| Ok(Command::Init(InitCommand::default())),
    ),
    command(
        "doctor",
        "check settings, endpoint, model, Python and skills; say what to fix; --json",
        |_| Ok(Command::Doctor),
    ),
    command(
        "facts list",
        "list the facts remembered in MEMORY_PATH; every facts command takes --json",
        |_| Ok(Command::Facts(FactsCommand::List)),
    ),
    command(
        "facts add TEXT...",
        "remember a fact; TEXT `-` reads it from standard input",
        |words| Ok(Command::Facts(FactsCommand::Add(joined(words).unwrap_or_default()))),
    ),
    command("facts remove N", "forget the fact with this number", |words| {
        fact_number(&first(words)).map(|number| Command::Facts(FactsCommand::Remove(number)))
    })
    .with_hint(FACT_NUMBERS),
    command(
        "mcp",
        "serve the skills to MCP clients on standard input and output; --skills-as-tools adds a tool for each skill, --user-files the tools for commands and files",
        |_| Ok(Command::Mcp(McpOptions::default())),
    ),
    command(
        "sessions list",
        "list saved conversations, the latest first; every sessions command takes --json",
        |_| Ok(Command::Sessions(SessionsCommand::List)),
    ),
    command("sessions show NAME", "print the messages of a saved conversation", |words| {
        Ok(Command::Sessions(SessionsCommand::Show { name: first(words), markdown: false }))
    })
    .with_hint(SESSION_NAMES),
    command("sessions delete NAME", "delete a saved conversation that is not in use", |words| {
        Ok(Command::Sessions(SessionsCommand::Delete(first(words))))
    })
    .with_hint(SESSION_NAMES),
    command(
        "skills list [QUERY]...",
        "list the skills, or those that fit a query best; every skills command takes --json",
        |words| Ok(Command::Skills(SkillsCommand::List { query: joined(words) })),
    ),
    command(
        "skills show NAME",
        "show one skill: its fields, files, interpreter, needs and problems",
        |words| Ok(Command::Skills(SkillsCommand::Show(first(words)))),
    ),
    command(
        "skills check [NAME]...",
        "report every problem with file, line and rule; status 1 on errors",
        |words| {
            let check = CheckCommand { names: words.collect(), ..CheckCommand::default() };
            Ok(Command::Skills(SkillsCommand::Check(check)))
        },
    ),
    command("skills new NAME", "create a new skill from a template", |words| {
        Ok(Command::Skills(SkillsCommand::New(first(words))))
    }),
    command(
        "skills setup NAME [PACKAGE]...",
        "install the packages that the skill needs, and those named here, into the skill's venv",
        |mut words| {
            let name = words.next().unwrap_or_default();
            let setup = SetupCommand { name, packages: words.collect(), yes: false };
            Ok(Command::Skills(SkillsCommand::Setup(setup)))
        },
    ),
    command(
        "skills add SOURCE",
        "install skills from OWNER/REPO of GitHub, an https, ssh or file address, an archive or a folder",
        |words| install(ChangeAction::Add(first(words))),
    ),
    command(
        "skills update [NAME]...",
        "install the present version of skills that were added; shows what changes",
        |words| install(ChangeAction::Update(words.collect())),
    ),
    command("skills remove NAME...", "remove skills that were added", |words| {
        install(ChangeAction::Remove(words.collect()))
    }),
    command("skills restore", "bring back what skills-runner.lock lists, byte for byte", |_| {
        install(ChangeAction::Restore)
    }),
    command(
        "skills eval [NAME]...",
        "run the tests in the evals/ of skills: does the model use a skill, and does it help",
        |words| {
            let eval = EvalCommand { names: words.collect(), ..EvalCommand::default() };
            Ok(Command::Eval(eval))
        },
    ),
    command(
        "tool NAME [JSON|-]",
        "run one tool without a model and print its result",
        |mut words| {
            let name = words.next().unwrap_or_default();
            Ok(Command::Tool(ToolCommand { name, json: words.next(), ..ToolCommand::default() }))
        },
    )
    .with_hint("put the JSON into single quotes"),
    command(
        "trust [DIR]",
        "accept the .env of a folder that you trust; print what it sets",
        |mut words| Ok(Command::Trust(words.next())),
    ),
];

#[allow(clippy::unnecessary_wraps, reason = "the form of a command")]
fn install(action: ChangeAction) -> Result<Command> {
    Ok(Command::Skills(SkillsCommand::Change(ChangeCommand::new(action))))
}

/// The only argument. It is never missing, as the command requires it.
fn first(mut words: Operands) -> String {
    words.next().unwrap_or_default()
}

/// The words as one text; `None`: there are none.
pub(super) fn joined(words: Operands) -> Option<String> {
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn fact_number(word: &str) -> Result<usize> {
    match word.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => {
            let shown = text::one_line(word, limits::SUMMARY_CHARS);
            let message = format!("facts remove takes the number of one fact, not `{shown}`");
            Err(usage(message).with_hint(FACT_NUMBERS))
        }
    }
}

impl CommandRow {
    const fn with_hint(self, hint: &'static str) -> CommandRow {
        CommandRow { hint: Some(hint), ..self }
    }

    /// The name of the command: its first word.
    pub(super) fn name(&self) -> &'static str {
        self.usage.split(' ').next().unwrap_or_default()
    }

    /// The second word, if the command has subcommands.
    pub(super) fn subcommand(&self) -> Option<&'static str> {
        let is_word = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
        self.usage.split(' ').nth(1).filter(is_word)
    }

    /// The command with placeholders as arguments, for its help.
    pub(super) fn example(&self) -> Result<Command> {
        let (_, operands) = self.words_and_operands();
        self.command(operands.split_whitespace().map(|_| "1".to_string()).collect())
    }

    /// The words that select the command, and its arguments.
    fn words_and_operands(&self) -> (&'static str, &'static str) {
        let end = self.usage.find(|c: char| c.is_ascii_uppercase() || c == '[');
        let (words, operands) = self.usage.split_at(end.unwrap_or(self.usage.len()));
        (words.trim_end(), operands)
    }

    /// Makes the command of the words after it.
    pub(super) fn command(&self, words: Vec<String>) -> Result<Command> {
        let (name, operands) = self.words_and_operands();
        let mut hint = format!("skills-runner {}", self.usage);
        if let Some(more) = self.hint {
            hint = format!("{hint}; {more}");
        }
        let mut known = operands.split_whitespace();
        let most = known.clone().count();
        if let Some(missing) = known.nth(words.len())
            && !missing.starts_with('[')
        {
            let missing = missing.trim_end_matches('.');
            return Err(usage(format!("{name} needs {missing}")).with_hint(hint));
        }
        if words.len() > most && !operands.ends_with("...") {
            let takes = if most == 0 { "no arguments" } else { operands };
            return Err(usage(format!("{name} takes {takes}"))
                .with_hint(format!("{hint}; {}", prompt_hint(self.name()))));
        }
        (self.make)(words.into_iter())
    }
}

/// Single words that are not commands but are typed as such, each with what was probably meant.
const MEANT: [(&str, &str); 10] = [
    ("help", "`skills-runner --help`"),
    ("version", "`skills-runner --version`"),
    ("list", "`skills-runner skills list`"),
    ("skill", "`skills-runner skills list`"),
    ("models", "-m NAME chooses a model"),
    ("config", "`skills-runner doctor`"),
    ("login", "set LLM_API_KEY"),
    ("update", "install the new version"),
    ("quit", "`/quit` ends a conversation"),
    ("exit", "`/exit` ends a conversation"),
];

/// Returns what a prompt of this single word probably means, if it is not a question.
pub(super) fn meant_command(prompt: &str) -> Option<&'static str> {
    MEANT.iter().find(|(word, _)| *word == prompt).map(|(_, hint)| *hint)
}

/// How to type a prompt that starts with the name of a command.
pub(super) fn prompt_hint(name: &str) -> String {
    format!("for a prompt that starts with `{name}`: skills-runner -- {name} …")
}
