//! The tables of commands and options. The parser, the help, the man page, the
//! completions and the tests read the same rows.

use crate::settings;
use crate::world::output::Verbosity;

/// A row of the table of commands.
#[derive(Debug)]
pub(super) struct CommandRow {
    /// The first word on the command line.
    pub name: &'static str,
    /// The command with its arguments, as the help shows it.
    pub usage: &'static str,
    /// What the command does.
    pub about: &'static str,
    /// The parsed form.
    pub command: Command,
}

/// The command that a command line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// No command word: one question and its answer, or a conversation on a terminal.
    Question,
    /// A conversation.
    Chat,
    /// One tool call without a model.
    Tool,
    /// A Model Context Protocol server on standard input and output.
    Mcp,
    /// The agent loop with a scripted model.
    Demo,
    /// The checks of settings, endpoint, Python and skills.
    Doctor,
    /// The memory between conversations.
    Facts,
    /// Saved conversations.
    Sessions,
    /// Listing, checking and setting up skills.
    Skills,
}

/// Every command.
pub(super) static COMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "chat",
        usage: "chat [PROMPT]...",
        about: "start a conversation; from a pipe, each line is one turn",
        command: Command::Chat,
    },
    CommandRow {
        name: "demo",
        usage: "demo",
        about: "try it without an account: a scripted model, real tools and skills",
        command: Command::Demo,
    },
    CommandRow {
        name: "doctor",
        usage: "doctor",
        about: "check settings, endpoint, model, Python and skills; say what to fix; --json",
        command: Command::Doctor,
    },
    CommandRow {
        name: "facts",
        usage: "facts list",
        about: "list the facts remembered in MEMORY_PATH; every facts command takes --json",
        command: Command::Facts,
    },
    CommandRow {
        name: "facts",
        usage: "facts add TEXT",
        about: "remember a fact; TEXT `-` reads it from standard input",
        command: Command::Facts,
    },
    CommandRow {
        name: "facts",
        usage: "facts remove N",
        about: "forget the fact with this number",
        command: Command::Facts,
    },
    CommandRow {
        name: "mcp",
        usage: "mcp",
        about: "serve the skills to MCP clients on standard input and output; --skills-as-tools adds a tool for each skill",
        command: Command::Mcp,
    },
    CommandRow {
        name: "sessions",
        usage: "sessions list",
        about: "list saved conversations, the latest first; every sessions command takes --json",
        command: Command::Sessions,
    },
    CommandRow {
        name: "sessions",
        usage: "sessions show NAME",
        about: "print the messages of a saved conversation",
        command: Command::Sessions,
    },
    CommandRow {
        name: "sessions",
        usage: "sessions delete NAME",
        about: "delete a saved conversation that is not in use",
        command: Command::Sessions,
    },
    CommandRow {
        name: "skills",
        usage: "skills list",
        about: "list the skills and their problems; every skills command takes --json",
        command: Command::Skills,
    },
    CommandRow {
        name: "skills",
        usage: "skills show NAME",
        about: "show one skill: its fields, files, interpreter and problems",
        command: Command::Skills,
    },
    CommandRow {
        name: "skills",
        usage: "skills check [NAME]...",
        about: "report every problem with file, line and rule; status 1 on errors",
        command: Command::Skills,
    },
    CommandRow {
        name: "skills",
        usage: "skills new NAME",
        about: "create a new skill from a template",
        command: Command::Skills,
    },
    CommandRow {
        name: "skills",
        usage: "skills setup NAME [PACKAGE]...",
        about: "create the skill's venv and install the packages that it declares and those named here",
        command: Command::Skills,
    },
    CommandRow {
        name: "tool",
        usage: "tool NAME [JSON|-]",
        about: "run one tool without a model and print its result",
        command: Command::Tool,
    },
];

/// A row of the table of options.
#[derive(Debug)]
pub(super) struct OptionRow {
    /// The letter of the short form.
    pub short: Option<char>,
    /// The long name.
    pub long: &'static str,
    /// The placeholder of the value; `None`: the option takes no value.
    pub value: Option<&'static str>,
    /// What the option does.
    pub about: &'static str,
    /// What the parser does with it.
    pub action: Action,
}

/// What the parser does with an option.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Sets a row of the table of settings.
    Set(&'static str),
    System,
    Skills,
    Attach,
    Session,
    Continue,
    Output,
    Verbosity(Verbosity),
    NoStream,
    MaxSteps,
    Timeout,
    NoStdin,
    NoScripts,
    Sandbox,
    Confirm,
    Log,
    EnvFile,
    NoEnvFile,
    DryRun,
    Json,
    SkillsAsTools,
    Generate,
    Help,
    Version,
}

const fn option(
    short: Option<char>,
    long: &'static str,
    value: Option<&'static str>,
    about: &'static str,
    action: Action,
) -> OptionRow {
    OptionRow { short, long, value, about, action }
}

/// Every option.
pub(super) static OPTIONS: &[OptionRow] = &[
    option(
        Some('m'),
        "--model",
        Some("NAME"),
        "name of the model (LLM_MODEL_NAME)",
        Action::Set(settings::LLM_MODEL_NAME),
    ),
    option(
        Some('s'),
        "--system",
        Some("TEXT"),
        "system prompt instead of the built-in one; @FILE reads it from a file",
        Action::System,
    ),
    option(
        None,
        "--skills",
        Some("DIR"),
        "skills folder; may be repeated; if two have a skill of the same name, the first folder wins",
        Action::Skills,
    ),
    option(
        Some('a'),
        "--attach",
        Some("FILE"),
        "add an image (also http://…, https://…) or a text file to the prompt; may be repeated",
        Action::Attach,
    ),
    option(
        None,
        "--session",
        Some("NAME"),
        "save the conversation under this name, or continue it",
        Action::Session,
    ),
    option(
        Some('c'),
        "--continue",
        None,
        "continue the latest conversation of this folder",
        Action::Continue,
    ),
    option(
        Some('o'),
        "--output",
        Some("FORMAT"),
        "text (default), json (one object at the end) or jsonl (one object per event)",
        Action::Output,
    ),
    option(
        Some('q'),
        "--quiet",
        None,
        "no lines about tool calls on standard error",
        Action::Verbosity(Verbosity::Quiet),
    ),
    option(
        Some('v'),
        "--verbose",
        None,
        "also show requests, retries, timings, tokens, reasoning and results",
        Action::Verbosity(Verbosity::Verbose),
    ),
    option(None, "--no-stream", None, "request whole answers instead of streams", Action::NoStream),
    option(
        None,
        "--max-steps",
        Some("N"),
        "limit of model requests in one turn (default 50)",
        Action::MaxSteps,
    ),
    option(
        None,
        "--timeout",
        Some("SECONDS"),
        "time limit of the whole run, with retries and scripts (default none)",
        Action::Timeout,
    ),
    option(
        None,
        "--script-timeout",
        Some("SECONDS"),
        "time limit of one script (SCRIPT_TIMEOUT_SECONDS)",
        Action::Set(settings::SCRIPT_TIMEOUT_SECONDS),
    ),
    option(
        Some('n'),
        "--no-stdin",
        None,
        "never read standard input, like `ssh -n`",
        Action::NoStdin,
    ),
    option(None, "--no-scripts", None, "offer and run no scripts", Action::NoScripts),
    option(
        None,
        "--sandbox",
        None,
        "run scripts in a sandbox (SCRIPT_SANDBOX=on)",
        Action::Sandbox,
    ),
    option(
        None,
        "--confirm",
        None,
        "ask on the terminal before each script; without a terminal run none",
        Action::Confirm,
    ),
    option(
        None,
        "--log",
        Some("FILE"),
        "append all events, with whole scripts and results, to a private file",
        Action::Log,
    ),
    option(None, "--env-file", Some("FILE"), "read this file instead of .env", Action::EnvFile),
    option(None, "--no-env-file", None, "read no .env", Action::NoEnvFile),
    option(
        None,
        "--dry-run",
        None,
        "print the request that would be sent, without credentials, and exit",
        Action::DryRun,
    ),
    option(None, "--json", None, "same as -o json", Action::Json),
    option(
        None,
        "--skills-as-tools",
        None,
        "with `mcp`: also offer each skill as a tool",
        Action::SkillsAsTools,
    ),
    option(
        None,
        "--generate",
        Some("KIND"),
        "print the man page or a completion: man, complete-bash, complete-zsh, complete-fish",
        Action::Generate,
    ),
    option(Some('h'), "--help", None, "print this help", Action::Help),
    option(Some('V'), "--version", None, "print the version", Action::Version),
];
