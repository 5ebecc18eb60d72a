//! The tables of the command line: commands and options. The parser, the help
//! and the tests read the same rows.

use crate::settings;
use crate::world::output::Verbosity;

/// A row of the table of commands.
#[derive(Debug)]
pub(super) struct CommandRow {
    /// The word.
    pub name: &'static str,
    /// Its words, as the help shows them.
    pub usage: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Which it is.
    pub which: Command,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// One question, one answer; without a question on a terminal a conversation.
    Ask,
    /// A conversation.
    Chat,
    /// One tool by hand.
    Tool,
    /// The Model Context Protocol on standard input and output.
    Mcp,
    /// The loop with a scripted model.
    Demo,
    /// What works, and what to fix.
    Doctor,
    /// What is remembered between conversations.
    Facts,
    /// Saved conversations.
    Sessions,
    /// The skills themselves.
    Skills,
}

/// Every command.
pub(super) static COMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "chat",
        usage: "chat [PROMPT]...",
        about: "a conversation, also from a pipe: one line, one turn",
        which: Command::Chat,
    },
    CommandRow {
        name: "demo",
        usage: "demo",
        about: "the whole loop without an account: a scripted model, real tools",
        which: Command::Demo,
    },
    CommandRow {
        name: "doctor",
        usage: "doctor",
        about: "what works from settings to skills, and what to fix; --json",
        which: Command::Doctor,
    },
    CommandRow {
        name: "facts",
        usage: "facts list",
        about: "what is remembered between conversations, in MEMORY_PATH; --json, as all of these",
        which: Command::Facts,
    },
    CommandRow {
        name: "facts",
        usage: "facts add TEXT",
        about: "remember a fact; `-` reads it from standard input",
        which: Command::Facts,
    },
    CommandRow {
        name: "facts",
        usage: "facts remove N",
        about: "forget the fact of this number",
        which: Command::Facts,
    },
    CommandRow {
        name: "mcp",
        usage: "mcp",
        about: "serve the skills to MCP clients on standard input and output; --skills-as-tools",
        which: Command::Mcp,
    },
    CommandRow {
        name: "sessions",
        usage: "sessions list",
        about: "saved conversations, the latest first; --json, as all of these",
        which: Command::Sessions,
    },
    CommandRow {
        name: "sessions",
        usage: "sessions show NAME",
        about: "what was said in one",
        which: Command::Sessions,
    },
    CommandRow {
        name: "sessions",
        usage: "sessions delete NAME",
        about: "delete one that nobody uses",
        which: Command::Sessions,
    },
    CommandRow {
        name: "skills",
        usage: "skills list",
        about: "the skills and what is wrong with them; --json, as all of these",
        which: Command::Skills,
    },
    CommandRow {
        name: "skills",
        usage: "skills show NAME",
        about: "one skill: its fields, files, interpreter, problems",
        which: Command::Skills,
    },
    CommandRow {
        name: "skills",
        usage: "skills check [NAME]...",
        about: "the linter: every problem with file, line and rule; status 1 on errors; --fix",
        which: Command::Skills,
    },
    CommandRow {
        name: "skills",
        usage: "skills new NAME",
        about: "write the skeleton of a skill",
        which: Command::Skills,
    },
    CommandRow {
        name: "skills",
        usage: "skills setup NAME [PACKAGE]...",
        about: "make the skill's venv and install what it declares, and these packages",
        which: Command::Skills,
    },
    CommandRow {
        name: "tool",
        usage: "tool NAME [JSON|-]",
        about: "run one tool by hand and print its result",
        which: Command::Tool,
    },
];

/// A row of the table of options.
#[derive(Debug)]
pub(super) struct OptionRow {
    /// The letter, if it has one.
    pub short: Option<char>,
    /// The long name.
    pub long: &'static str,
    /// What its value is called, if it takes one.
    pub value: Option<&'static str>,
    /// What it does.
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
    Fix,
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
        "the model (LLM_MODEL_NAME)",
        Action::Set(settings::LLM_MODEL_NAME),
    ),
    option(
        Some('s'),
        "--system",
        Some("TEXT"),
        "instructions instead of the built-in ones; @FILE reads them",
        Action::System,
    ),
    option(
        None,
        "--skills",
        Some("DIR"),
        "skills folder; repeat it for several, the first wins a name",
        Action::Skills,
    ),
    option(
        Some('a'),
        "--attach",
        Some("FILE"),
        "goes with the prompt: an image (also http://…, https://…) or a text file; repeat it",
        Action::Attach,
    ),
    option(
        None,
        "--session",
        Some("NAME"),
        "save the conversation under this name, or go on with it",
        Action::Session,
    ),
    option(
        Some('c'),
        "--continue",
        None,
        "go on with the latest conversation of this folder",
        Action::Continue,
    ),
    option(
        Some('o'),
        "--output",
        Some("FORMAT"),
        "text (default); json: one object at the end; jsonl: one a line, as things happen",
        Action::Output,
    ),
    option(
        Some('q'),
        "--quiet",
        None,
        "no lines about tools on standard error",
        Action::Verbosity(Verbosity::Quiet),
    ),
    option(
        Some('v'),
        "--verbose",
        None,
        "also requests, retries, timings, tokens, thoughts, results",
        Action::Verbosity(Verbosity::Verbose),
    ),
    option(None, "--no-stream", None, "ask for whole answers", Action::NoStream),
    option(None, "--max-steps", Some("N"), "model calls in one turn, default 50", Action::MaxSteps),
    option(
        None,
        "--timeout",
        Some("SECONDS"),
        "the whole run, retries and scripts included; default none",
        Action::Timeout,
    ),
    option(
        None,
        "--script-timeout",
        Some("SECONDS"),
        "one script (SCRIPT_TIMEOUT_SECONDS)",
        Action::Set(settings::SCRIPT_TIMEOUT_SECONDS),
    ),
    option(
        Some('n'),
        "--no-stdin",
        None,
        "never read standard input, as `ssh -n`",
        Action::NoStdin,
    ),
    option(None, "--no-scripts", None, "scripts are not offered and not run", Action::NoScripts),
    option(
        None,
        "--sandbox",
        None,
        "scripts run in a sandbox (SCRIPT_SANDBOX=on)",
        Action::Sandbox,
    ),
    option(
        None,
        "--confirm",
        None,
        "ask on the terminal before a script runs; without a terminal none does",
        Action::Confirm,
    ),
    option(
        None,
        "--log",
        Some("FILE"),
        "append all that happens to a private file, scripts and results in full",
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
    option(None, "--json", None, "as -o json", Action::Json),
    option(None, "--fix", None, "with `skills check`: mend what can be mended safely", Action::Fix),
    option(
        None,
        "--skills-as-tools",
        None,
        "with `mcp`: each skill is a tool of its own, too",
        Action::SkillsAsTools,
    ),
    option(
        None,
        "--generate",
        Some("KIND"),
        "print the man page or a completion: man, complete-bash, complete-zsh, complete-fish",
        Action::Generate,
    ),
    option(Some('h'), "--help", None, "this help", Action::Help),
    option(Some('V'), "--version", None, "the version", Action::Version),
];
