//! A command line as types: each command has its own arguments and options, and no others.

use std::ffi::OsString;

use crate::ui::{Format, Verbosity};
use base::limits;

/// A parsed command line.
#[derive(Debug)]
pub struct CommandLine {
    /// The options of every command.
    pub options: CommonOptions,
    /// The command with its arguments and options.
    pub command: Command,
}

/// A command with its arguments and options.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// No command word: one question and its answer, or a conversation on a terminal.
    Ask(AskOptions),
    /// A conversation.
    Chat(AskOptions),
    /// The agent loop with a scripted model.
    Demo(ToolOptions),
    /// The checks of settings, endpoint, Python and skills.
    Doctor,
    /// The first set-up.
    Init(InitCommand),
    /// The memory between conversations.
    Facts(FactsCommand),
    /// A Model Context Protocol server on standard input and output.
    Mcp(McpOptions),
    /// Saved conversations.
    Sessions(SessionsCommand),
    /// Listing, checking and setting up skills.
    Skills(SkillsCommand),
    /// Running the tests of skills.
    Eval(EvalCommand),
    /// One tool call without a model.
    Tool(ToolCommand),
    /// Accepting the `.env` of a folder, by default the working folder.
    Trust(Option<String>),
}

/// Options that every command takes. Like environment variables, they may also be typed where
/// they have no effect, so that an alias can contain them.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct CommonOptions {
    /// Settings given by options: variable, value, name of the option.
    pub settings: Vec<(&'static str, OsString, &'static str)>,
    /// `--skills`.
    pub skills: Vec<OsString>,
    /// `--output`, `--json`.
    pub format: Format,
    /// `--quiet`, `--verbose`.
    pub verbosity: Verbosity,
    /// False with `--no-stream`.
    pub stream: bool,
    /// `--plain`.
    pub plain: bool,
    /// `--max-steps`.
    pub max_steps: u32,
    /// `--timeout`, in seconds.
    pub timeout_seconds: Option<f64>,
    /// False with `--no-stdin`.
    pub stdin: bool,
    /// False with `--no-scripts`.
    pub scripts: bool,
    /// Which environment files are read.
    pub env_files: EnvFiles,
}

/// Which environment files are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EnvFiles {
    /// `./.env`, then the one in the configuration folder.
    #[default]
    Usual,
    /// Only this one.
    Only(OsString),
    /// No file.
    Off,
}

/// Options of commands whose tools can run scripts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ToolOptions {
    /// `--confirm`.
    pub confirm: bool,
    /// `--log`.
    pub log: Option<OsString>,
}

/// A question or a conversation.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AskOptions {
    /// The words of the prompt, joined; `None`: there are no words.
    pub prompt: Option<String>,
    /// `--system`.
    pub system: Option<String>,
    /// A hint for a prompt of a single word that is probably meant as a command.
    pub meant: Option<&'static str>,
    /// `--attach`.
    pub attach: Vec<OsString>,
    /// `--skill`.
    pub skills: Vec<String>,
    /// `--require-skill`, `--require-script`.
    pub requirements: Requirements,
    /// `--session`, `--continue`.
    pub session: Option<SessionChoice>,
    /// `--dry-run`.
    pub dry_run: bool,
    /// Options of its tools.
    pub tools: ToolOptions,
}

/// The required basis of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// `--require-skill`: the document of a skill.
    pub skill: bool,
    /// `--require-script`: a script that ended with 0.
    pub script: bool,
}

/// The session that a conversation continues.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// The one with this name, which may be new.
    Named(String),
    /// The latest one of the working folder.
    Latest,
}

/// A subcommand of `facts`.
#[derive(Debug, PartialEq, Eq)]
pub enum FactsCommand {
    /// `facts list`.
    List,
    /// `facts add TEXT`; `-` stands for standard input.
    Add(String),
    /// `facts remove N`.
    Remove(usize),
}

/// A server.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct McpOptions {
    /// `--skills-as-tools`.
    pub skills_as_tools: bool,
    /// `--user-files`.
    pub user_files: bool,
    /// Options of its tools.
    pub tools: ToolOptions,
}

/// The options of `init`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InitCommand {
    /// `--base-url`.
    pub base_url: Option<String>,
    /// `--key-file`; `-`: standard input.
    pub key_file: Option<OsString>,
}

/// A subcommand of `sessions`.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionsCommand {
    /// `sessions list`.
    List,
    /// `sessions show NAME`.
    Show {
        /// The session.
        name: String,
        /// `--markdown`.
        markdown: bool,
    },
    /// `sessions delete NAME`.
    Delete(String),
}

/// A subcommand of `skills`.
#[derive(Debug, PartialEq, Eq)]
pub enum SkillsCommand {
    /// `skills list [QUERY]...`: the skills that fit a query best, or all.
    List {
        /// The query, as it was typed.
        query: Option<String>,
    },
    /// `skills show NAME`.
    Show(String),
    /// `skills check [NAME]...`.
    Check(CheckCommand),
    /// `skills new NAME`.
    New(String),
    /// `skills setup NAME [PACKAGE]...`.
    Setup(SetupCommand),
    /// `skills add`, `update`, `remove` and `restore`.
    Change(ChangeCommand),
}

/// A change of a folder of installed skills.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct ChangeCommand {
    /// The action.
    pub action: ChangeAction,
    /// `--skill`: of a source only these; none: all.
    pub skills: Vec<String>,
    /// `--to`: the skills folder.
    pub to: Option<OsString>,
    /// `--yes`: without asking.
    pub yes: bool,
    /// `--force`: also skills that were changed by hand.
    pub force: bool,
    /// `--dry-run`: only show it.
    pub dry_run: bool,
}

/// Kind of change of installed skills.
#[derive(Debug, PartialEq, Eq)]
pub enum ChangeAction {
    /// `skills add SOURCE`.
    Add(String),
    /// `skills update [NAME]...`; none: all.
    Update(Vec<String>),
    /// `skills remove NAME...`.
    Remove(Vec<String>),
    /// `skills restore`.
    Restore,
}

impl ChangeAction {
    /// The name of the subcommand.
    pub(super) fn name(&self) -> &'static str {
        match self {
            ChangeAction::Add(_) => "add",
            ChangeAction::Update(_) => "update",
            ChangeAction::Remove(_) => "remove",
            ChangeAction::Restore => "restore",
        }
    }
}

impl ChangeCommand {
    /// The change, without options.
    pub(super) fn new(action: ChangeAction) -> ChangeCommand {
        ChangeCommand {
            action,
            skills: Vec::new(),
            to: None,
            yes: false,
            force: false,
            dry_run: false,
        }
    }
}

/// `skills eval [NAME]...`.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct EvalCommand {
    /// The skills; none: all with tests.
    pub names: Vec<String>,
    /// `--runs`: runs of each case.
    pub runs: u32,
    /// `--triggers`: only these, unless `tasks` is set, too.
    pub triggers: bool,
    /// `--tasks`: only these, unless `triggers` is set, too.
    pub tasks: bool,
    /// `--baseline`: tasks also without the skill.
    pub baseline: bool,
    /// `--judge`: the model that decides assertions in prose.
    pub judge: Option<String>,
    /// `--jobs`: runs at a time.
    pub jobs: usize,
    /// `--min`: the least rate in millionths.
    pub min_millionths: Option<u32>,
    /// `--junit`: a file for CI servers.
    pub junit: Option<OsString>,
    /// `--out`: the folder of the results.
    pub out: Option<OsString>,
}

impl Default for EvalCommand {
    fn default() -> EvalCommand {
        EvalCommand {
            names: Vec::new(),
            runs: limits::EVAL_DEFAULT_RUNS,
            triggers: false,
            tasks: false,
            baseline: false,
            judge: None,
            jobs: 1,
            min_millionths: None,
            junit: None,
            out: None,
        }
    }
}

impl EvalCommand {
    /// The least rate, from 0 to 1.
    pub(super) fn min(&self) -> Option<f64> {
        self.min_millionths.map(|millionths| f64::from(millionths) / 1e6)
    }
}

/// The preparation of a skill.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SetupCommand {
    /// The skill.
    pub name: String,
    /// More packages to install.
    pub packages: Vec<String>,
    /// `--yes`.
    pub yes: bool,
}

/// The linter.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CheckCommand {
    /// The skills; none: all.
    pub names: Vec<String>,
    /// `--strict`.
    pub strict: bool,
    /// `--here`.
    pub here: bool,
}

/// A tool call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ToolCommand {
    /// The tool.
    pub name: String,
    /// Its arguments; `-` stands for standard input.
    pub json: Option<String>,
    /// Options of the tool.
    pub tools: ToolOptions,
}

impl Default for CommonOptions {
    fn default() -> CommonOptions {
        CommonOptions {
            settings: Vec::new(),
            skills: Vec::new(),
            format: Format::Text,
            verbosity: Verbosity::Normal,
            stream: true,
            plain: false,
            max_steps: limits::MAX_STEPS,
            timeout_seconds: None,
            stdin: true,
            scripts: true,
            env_files: EnvFiles::Usual,
        }
    }
}

impl CommonOptions {
    /// Whether the result of a command without a model is printed as JSON.
    pub(super) fn is_json(&self) -> bool {
        self.format != Format::Text
    }
}

impl Command {
    /// The options of the command's tools, if it can run any.
    pub(super) fn tool_options(&mut self) -> Option<&mut ToolOptions> {
        match self {
            Command::Ask(ask) | Command::Chat(ask) => Some(&mut ask.tools),
            Command::Demo(tools) => Some(tools),
            Command::Mcp(mcp) => Some(&mut mcp.tools),
            Command::Tool(tool) => Some(&mut tool.tools),
            Command::Doctor
            | Command::Init(_)
            | Command::Facts(_)
            | Command::Sessions(_)
            | Command::Skills(_)
            | Command::Eval(_)
            | Command::Trust(_) => None,
        }
    }
}
